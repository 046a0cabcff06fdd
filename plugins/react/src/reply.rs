//! From a reply of the model to what it wants done.
//!
//! A reply may hold prose, fences and false starts around its JSON; the first object that names an
//! action counts. What cannot be read is answered with what was wrong, so the model can mend it.

use longhaul_sdk::json;
use serde_json::{Map, Value};

/// The request of the model.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    Act(Vec<Action>),
    Finish { answer: Value, confidence: Option<f64> },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Action {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// The first complete JSON object in `text`, scanning every `{`.
#[cfg(test)]
fn first_json_object(text: &str) -> Option<Value> {
    json::first_object(text, |_| true)
}

/// Reads a reply, or says what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Wish, String> {
    let names_action = |value: &Value| value.get("action").is_some() || value.get("actions").is_some();
    let Some(object) = json::first_object(text, names_action) else {
        return Err(no_action(text));
    };
    match (&object["action"], &object["actions"]) {
        (Value::String(name), _) if name == "finish" => Ok(finish(&object)),
        (Value::String(name), _) if !name.is_empty() => {
            let arguments = arguments(object.get("args").or_else(|| object.get("arguments")))?;
            Ok(Wish::Act(vec![Action { name: name.clone(), arguments }]))
        }
        (_, Value::Array(list)) if !list.is_empty() => {
            list.iter().map(one_of_many).collect::<Result<_, _>>().map(Wish::Act)
        }
        _ => Err("`action` must be the name of a tool or \"finish\"".to_owned()),
    }
}

/// Reads the words of a model that calls tools through its provider: without a call, they end its turn.
pub(crate) fn read_native(text: &str, was_cut: bool) -> Result<Wish, String> {
    let names_action = |value: &Value| value.get("action").is_some_and(Value::is_string);
    if json::first_object(text, names_action).is_some() {
        return read(text);
    }
    match text.trim() {
        _ if was_cut => Err("it was cut at the limit of its length; go on in smaller steps".to_owned()),
        "" => Err("it is empty; call a tool, or say in words what was done".to_owned()),
        words => Ok(Wish::Finish { answer: words.into(), confidence: None }),
    }
}

fn no_action(text: &str) -> String {
    let found = json::first_object(text, |_| true);
    let what = match found {
        Some(_) => "there is a JSON object without `action`",
        None if text.contains('{') => "the JSON object is broken or not closed",
        None => "there is no JSON object",
    };
    format!("{what}; reply with one object such as {{\"thought\": \"...\", \"action\": \"NAME\", \"args\": {{}}}}")
}

fn finish(object: &Value) -> Wish {
    let answer = object.get("answer").or_else(|| object["args"].get("answer"));
    let confidence = object["confidence"].as_f64().map(|confidence| confidence.clamp(0.0, 1.0));
    Wish::Finish { answer: answer.cloned().unwrap_or(Value::Null), confidence }
}

fn one_of_many(value: &Value) -> Result<Action, String> {
    let name = ["tool", "action", "name"].iter().find_map(|key| value[*key].as_str());
    let name = name
        .filter(|name| !name.is_empty() && *name != "finish")
        .ok_or("each of `actions` needs `tool`, the name of a tool; to finish, use `action` alone")?;
    let arguments = arguments(value.get("args").or_else(|| value.get("arguments")))?;
    Ok(Action { name: name.to_owned(), arguments })
}

/// Arguments are an object; some models send it as a string, or leave it out.
fn arguments(value: Option<&Value>) -> Result<Value, String> {
    match value {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(Value::Object(object)) => Ok(Value::Object(object.clone())),
        Some(Value::String(text)) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| "`args` must be a JSON object, not text".to_owned()),
        Some(_) => Err("`args` must be a JSON object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    /// The suite `action_json` of `$LONGHAUL_CASES`.
    #[test]
    fn the_first_object_is_found_in_every_case_of_the_suite() {
        let own = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases"));
        let folder = std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from);
        let paths = folder.read_dir().expect("the cases").map(|entry| entry.expect("readable").path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let read = |path: PathBuf| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
        };
        let mut seen = 0;
        for file in files.map(read).filter(|file| file["suite"] == "action_json") {
            for case in file["cases"].as_array().expect("a list of cases") {
                let input = case["input"].as_str().expect("a text");
                let found = first_json_object(input).unwrap_or(Value::Null);
                assert_eq!(found, case["expected"], "{}", case["id"]);
                seen += 1;
            }
        }
        assert!(seen > 0, "no case of the suite `action_json` in {}", folder.display());
    }

    fn act(name: &str, arguments: Value) -> Action {
        Action { name: name.to_owned(), arguments }
    }

    #[test]
    fn a_reply_is_read_as_what_it_wants() {
        let one = r#"{"note": 1} {"thought": "t", "action": "files.read", "args": {"path": "a"}}"#;
        let wish = Wish::Act(vec![act("files.read", json!({ "path": "a" }))]);
        assert_eq!(read(one), Ok(wish));

        let many = r#"{"actions": [{"tool": "a"}, {"tool": "b", "args": "{\"k\": 1}"}]}"#;
        let wish = Wish::Act(vec![act("a", json!({})), act("b", json!({ "k": 1 }))]);
        assert_eq!(read(many), Ok(wish));

        let done = r#"{"action": "finish", "answer": "42", "confidence": 7}"#;
        let wish = Wish::Finish { answer: json!("42"), confidence: Some(1.0) };
        assert_eq!(read(done), Ok(wish));
    }

    #[test]
    fn words_without_a_call_end_the_turn_of_a_model_that_calls_through_its_provider() {
        let words = "I added `sum` to sum.py; see {curly: braces}.";
        let end = Wish::Finish { answer: words.into(), confidence: None };
        assert_eq!(read_native(&format!(" {words}\n"), false), Ok(end));
        assert_eq!(read_native(r#"{"action": "checks"}"#, false), Ok(Wish::Act(vec![act("checks", json!({}))])));
        let done = Wish::Finish { answer: "42".into(), confidence: None };
        assert_eq!(read_native(r#"{"action": "finish", "answer": "42"}"#, false), Ok(done));
        assert!(read_native(" ", false).is_err_and(|text| text.contains("it is empty")));
        assert!(read_native("I will now", true).is_err_and(|text| text.contains("was cut")));
    }

    #[test]
    fn what_is_wrong_with_a_reply_is_said() {
        for (text, expected) in [
            ("sorry", "there is no JSON object"),
            ("{\"action\": ", "broken or not closed"),
            ("{\"a\": 1}", "without `action`"),
            ("{\"action\": 7}", "must be the name"),
            ("{\"action\": \"x\", \"args\": [1]}", "`args` must be a JSON object"),
            ("{\"actions\": [{}]}", "needs `tool`"),
            ("{\"actions\": []}", "must be the name"),
        ] {
            let wrong = read(text).expect_err(text);
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }
}
