//! The answer of a step of a session, which the step can make up: read within bounds, or refused as a whole.

use crate::outputs::ANSWER_VALUES_MAX;
use longhaul_core::json::has_more_values;
use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Names of variables in one answer, and bytes of one.
const NAMES_MAX: usize = 20_000;
const NAME_BYTES_MAX: usize = 400;

/// Bytes of the reason why a value is not kept, and why an answer is none.
const REASON_BYTES_MAX: usize = 2_000;

/// State that is in no variable, and kept as one.
const HIDDEN: [&str; 2] = ["<random>", "<decimal>"];

/// The answer of a step.
#[derive(Debug, Deserialize)]
pub(crate) struct StepAnswer {
    pub(crate) exit_code: i32,
    #[serde(default)]
    pub(crate) outputs: Vec<Value>,
    #[serde(default)]
    pub(crate) outputs_dropped: u64,
    pub(crate) groups: Vec<AnsweredGroup>,
    #[serde(default)]
    pub(crate) deleted: Vec<String>,
}

/// Variables that share objects, as a step leaves them: a value, or the reason why there is none.
#[derive(Debug, Deserialize)]
pub(crate) struct AnsweredGroup {
    pub(crate) names: Vec<String>,
    pub(crate) live: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) blob: Option<String>,
}

/// Variables that share objects, as a session keeps them: in the form that the interpreter reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptGroup {
    pub(crate) names: Vec<String>,
    /// The digest of the value, for the interpreter. None: some of the variables have another value by now.
    pub(crate) value: Option<String>,
    /// The pickled value, in base64. Only the sandbox reads it.
    pub(crate) blob: String,
}

impl StepAnswer {
    /// Reads an answer.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if has_more_values(text.as_bytes(), ANSWER_VALUES_MAX) {
            return Err(format!("the interpreter answered more than {ANSWER_VALUES_MAX} values"));
        }
        let wrong = |error: serde_json::Error| truncate(&error.to_string(), REASON_BYTES_MAX);
        let answer: Self = serde_json::from_str(text)
            .map_err(|error| format!("the interpreter answered something else: {}", wrong(error)))?;
        let names = answer.groups.iter().flat_map(|group| &group.names).chain(&answer.deleted);
        if names.clone().count() > NAMES_MAX || !names.clone().all(|name| is_name(name)) {
            return Err("the interpreter answered names that no variables have".to_owned());
        }
        let is_whole = |group: &AnsweredGroup| {
            !group.names.is_empty()
                && group.live.is_some() != group.blob.is_some()
                && group.live.as_ref().is_none_or(|reason| reason.len() <= REASON_BYTES_MAX)
                && group.value.as_ref().is_none_or(|value| value.len() <= NAME_BYTES_MAX)
                && group.blob.as_ref().is_none_or(|blob| blob.bytes().all(is_base64))
        };
        if !answer.groups.iter().all(is_whole) {
            return Err("the interpreter answered a value that is none".to_owned());
        }
        Ok(answer)
    }

    /// It in the form of a job's answer: how the step ended, and its outputs.
    pub(crate) fn of_job(&self) -> String {
        let Self { exit_code, outputs, outputs_dropped, .. } = self;
        json!({ "exit_code": exit_code, "outputs": outputs, "outputs_dropped": outputs_dropped }).to_string()
    }
}

/// True when a variable may have the name. Python takes letters of all scripts.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part =
        |letter: char| letter.is_alphanumeric() || letter == '_' || !letter.is_ascii() && !letter.is_control();
    HIDDEN.contains(&name) || !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_part)
}

/// True when people see a variable of the name.
pub(crate) fn is_shown(name: &str) -> bool {
    !HIDDEN.contains(&name)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// The groups of a session after a step: those that the step left as they were, and those that it made.
pub(crate) fn merged(given: Vec<KeptGroup>, answer: StepAnswer) -> (Vec<KeptGroup>, Vec<(Vec<String>, String)>) {
    let changed: HashSet<String> =
        answer.groups.iter().flat_map(|group| &group.names).chain(&answer.deleted).cloned().collect();
    let mut kept: Vec<KeptGroup> =
        given.into_iter().filter_map(|group| rest_of(group, |name| changed.contains(name))).collect();
    let mut unkept = Vec::new();
    for group in answer.groups {
        match (group.blob, group.live) {
            (Some(blob), _) => kept.push(KeptGroup { names: group.names, value: group.value, blob }),
            (None, reason) => unkept.push((group.names, reason.unwrap_or_default())),
        }
    }
    (kept, unkept)
}

/// A group without the variables that have another value now; none when it has no other.
fn rest_of(group: KeptGroup, is_changed: impl Fn(&String) -> bool) -> Option<KeptGroup> {
    let before = group.names.len();
    let names: Vec<String> = group.names.into_iter().filter(|name| !is_changed(name)).collect();
    let value = group.value.filter(|_| names.len() == before);
    (!names.is_empty()).then_some(KeptGroup { names, value, blob: group.blob })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(names: &[&str], value: Option<&str>, blob: &str) -> KeptGroup {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        KeptGroup { names, value: value.map(str::to_owned), blob: blob.to_owned() }
    }

    #[test]
    fn a_session_keeps_what_a_step_left_and_takes_what_it_changed() {
        let given = vec![kept(&["a", "b"], Some("1"), "AB"), kept(&["c"], Some("2"), "CC"), kept(&["d"], None, "DD")];
        let answer = json!({
            "exit_code": 0,
            "groups": [
                { "names": ["b", "e"], "value": "3", "blob": "BE" },
                { "names": ["f"], "live": "it holds a generator" },
            ],
            "deleted": ["c"],
        });
        let (groups, unkept) = merged(given, StepAnswer::read(&answer.to_string()).expect("an answer"));
        let expected = [kept(&["a"], None, "AB"), kept(&["d"], None, "DD"), kept(&["b", "e"], Some("3"), "BE")];
        assert_eq!(groups, expected);
        assert_eq!(unkept, [(vec!["f".to_owned()], "it holds a generator".to_owned())]);
    }

    #[test]
    fn an_answer_that_no_interpreter_gives_is_refused_whole() {
        let refused = |group: Value| {
            let answer = json!({ "exit_code": 0, "groups": [{ "names": ["x"], "blob": "AA" }, group] });
            StepAnswer::read(&answer.to_string()).is_err()
        };
        assert!(!refused(json!({ "names": ["größe", "<random>"], "value": "1", "blob": "AA==" })));
        for group in [
            json!({ "names": [], "blob": "AA" }),
            json!({ "names": ["a b"], "blob": "AA" }),
            json!({ "names": ["../x"], "blob": "AA" }),
            json!({ "names": ["\u{1b}[2J"], "blob": "AA" }),
            json!({ "names": ["x".repeat(401)], "blob": "AA" }),
            json!({ "names": ["x"], "blob": "\"}" }),
            json!({ "names": ["x"] }),
            json!({ "names": ["x"], "blob": "AA", "live": "why" }),
            json!({ "names": ["x"], "live": "y".repeat(2_001) }),
        ] {
            assert!(refused(group.clone()), "{group}");
        }
        assert!(StepAnswer::read("{}").is_err() && StepAnswer::read("nonsense").is_err());
        let long = json!({ "exit_code": "x".repeat(1_000_000), "groups": [] }).to_string();
        assert!(StepAnswer::read(&long).is_err_and(|reason| reason.len() < 3_000));
        let many = format!(r#"{{"exit_code": 0, "groups": [], "outputs": [[{}0]]}}"#, "0,".repeat(ANSWER_VALUES_MAX));
        assert!(StepAnswer::read(&many).is_err_and(|reason| reason.contains("more than 1000000 values")));
    }
}
