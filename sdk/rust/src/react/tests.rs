//! The loop against a scripted model, and the words for a real one.

use crate::conversation::StopReason;
use crate::tools::{EffectClass, Function};
use crate::types::{Issue, Usage};

use super::*;

fn granted() -> Vec<ToolInfo> {
    let function = Function {
        name: "read".to_owned(),
        description: "Reads.".to_owned(),
        parameters: "{}".to_owned(),
        effect: EffectClass::ReadOnly,
    };
    vec![ToolInfo { id: "notes".to_owned(), description: "Notes.".to_owned(), functions: vec![function] }]
}

/// Replies from a list; the one tool echoes its arguments and fails for `{"fail": true}`.
struct Scripted {
    replies: Vec<Reply>,
    told: Vec<String>,
}

impl Driver for Scripted {
    type Answer = Outcome;

    fn ask(&mut self, tried: u32) -> Result<Reply, Error> {
        self.told.push(format!("ask {tried}"));
        if self.replies.is_empty() { Err(Error::failed("the script is over")) } else { Ok(self.replies.remove(0)) }
    }

    fn read(&self, reply: &str) -> Result<Wish<Outcome>, String> {
        read_reply(reply, &granted())
    }

    fn requested(&self, call: &ToolCallRequest) -> Result<ToolCall, String> {
        if call.function == "picture" {
            let arguments = json!({ "data_url": "data:image/png;base64,AQID" }).to_string();
            return Ok(ToolCall { tool: call.tool.clone(), function: "read".to_owned(), arguments });
        }
        granted_call(&granted(), &call.tool, &call.function, &json!({}))
    }

    fn call(&mut self, calls: &[ToolCall]) -> Vec<Result<ToolResult, ToolError>> {
        let one = |call: &ToolCall| match call.arguments.contains("fail") {
            true => Err(ToolError::Failed("no such note".to_owned())),
            false => Ok(ToolResult { output: call.arguments.clone(), truncated: false }),
        };
        calls.iter().map(one).collect()
    }

    fn say(&mut self, text: String) -> Result<(), Error> {
        self.told.push(text);
        Ok(())
    }

    fn answer(&mut self, answer: ToolCallResult) -> Result<(), Error> {
        self.told.push(format!("{}: {} {}", answer.id, answer.output, answer.failed));
        Ok(())
    }

    fn show(&mut self, pictures: Vec<Image>) -> Result<(), Error> {
        self.told.extend(pictures.iter().map(|one| format!("picture {} {:?}", one.media_type, one.data)));
        Ok(())
    }
}

fn reply(text: &str, calls: Vec<ToolCallRequest>) -> Reply {
    let usage = Usage {
        input_tokens: 0,
        cached_tokens: 0,
        cache_written_tokens: 0,
        output_tokens: 0,
        reasoning_tokens: 0,
        cost_microdollars: None,
    };
    Reply { text: text.to_owned(), calls, reason: StopReason::End, usage, extra: "{}".to_owned() }
}

#[track_caller]
fn check(replies: &[&str], told: &[&str], end: &Result<End<Outcome>, &str>) {
    let replies = replies.iter().map(|text| reply(text, Vec::new())).collect();
    let mut driver = Scripted { replies, told: Vec::new() };
    let found = drive(&mut driver, &Caps { steps_max: 3, ..Caps::default() });
    assert_eq!(driver.told, told);
    assert_eq!(found.map_err(|error| error.to_string()), end.clone().map_err(str::to_owned));
}

const READ: &str = r#"{"action": "tool", "tool": "notes", "function": "read", "arguments": {"name": "ä"}}"#;
const FAIL: &str = r#"{"action": "tool", "tool": "notes", "function": "read", "arguments": {"fail": true}}"#;
const FINISH: &str = r#"So: {"action": "finish", "output": {"a": 1}, "summary": "done"}"#;

fn finished() -> End<Outcome> {
    End::Finished(crate::outcome(&json!({ "a": 1 }), "done"))
}

#[test]
fn the_model_sees_what_its_tools_answered_also_their_errors() {
    let told = [
        "ask 0",
        "Observation (notes.read): {\"name\":\"ä\"}",
        "ask 0",
        "Tool error (notes.read): no such note",
        "ask 0",
    ];
    check(&[READ, FAIL, FINISH], &told, &Ok(finished()));
}

#[test]
fn a_picture_is_shown_and_its_bytes_are_left_out_of_the_words() {
    let picture = READ.replace(r#""name": "ä""#, r#""data_url": "data:image/png;base64,AQID""#);
    let words = "{\"data_url\":\"[image image/png, 3 bytes]\"}";
    let (observation, shown) = (format!("Observation (notes.read): {words}"), "picture image/png [1, 2, 3]");
    check(&[&picture, FINISH], &["ask 0", &observation, shown, "ask 0"], &Ok(finished()));

    let request = ToolCallRequest {
        id: "1".to_owned(),
        tool: "notes".to_owned(),
        function: "picture".to_owned(),
        arguments: "{}".to_owned(),
    };
    let replies = vec![reply("", vec![request]), reply(FINISH, Vec::new())];
    let mut driver = Scripted { replies, told: Vec::new() };
    assert_eq!(drive(&mut driver, &Caps::default()).ok(), Some(finished()));
    assert_eq!(driver.told, ["ask 0", &format!("1: {} false", json!(words)), shown, "ask 0"]);
}

#[test]
fn a_tool_that_is_not_granted_is_an_observation() {
    let other = READ.replace("notes", "shell");
    let told = ["ask 0", "Tool error (shell.read): there is no such function; there are: notes.read", "ask 0"];
    check(&[&other, FINISH], &told, &Ok(finished()));
}

#[test]
fn an_unreadable_reply_gets_one_repair_round() {
    let wrong = "it is not one JSON object: expected value at line 1 column 1; reply with one object such as \
                 {\"action\": \"finish\", \"output\": ..., \"summary\": \"...\"}";
    let repair = format!("Your reply cannot be used: {wrong}");
    check(&["sorry", FINISH], &["ask 0", &repair, "ask 1"], &Ok(finished()));
    check(&["sorry", "sorry"], &["ask 0", &repair, "ask 1"], &Ok(End::Unreadable(wrong.to_owned())));
}

#[test]
fn steps_run_out() {
    let observation = "Observation (notes.read): {\"name\":\"ä\"}";
    let told = ["ask 0", observation, "ask 0", observation, "ask 0", observation];
    check(&[READ, READ, READ, FINISH], &told, &Ok(End::OutOfSteps));
    check(&[], &["ask 0"], &Err("the script is over"));
}

#[test]
fn calls_of_the_provider_are_answered_by_their_ids() {
    let request = |id: &str, function: &str| ToolCallRequest {
        id: id.to_owned(),
        tool: "notes".to_owned(),
        function: function.to_owned(),
        arguments: "{}".to_owned(),
    };
    let replies = vec![reply("", vec![request("1", "read"), request("2", "rm")]), reply(FINISH, Vec::new())];
    let mut driver = Scripted { replies, told: Vec::new() };
    assert_eq!(drive(&mut driver, &Caps::default()).ok(), Some(finished()));
    let told = ["ask 0", "1: \"{}\" false", "2: \"there is no such function; there are: notes.read\" true", "ask 0"];
    assert_eq!(driver.told, told);
}

#[test]
fn what_is_wrong_with_a_reply_is_said() {
    for (reply, expected) in [
        ("{\"a\": 1}", "there is no `action` in it"),
        ("{\"action\": ", "EOF while parsing"),
        ("{\"action\": 7}", "must be \"tool\" or \"finish\""),
        ("{\"action\": \"tool\"}", "`tool` is missing"),
    ] {
        let wrong = read_reply(reply, &granted()).expect_err(reply);
        assert!(wrong.contains(expected), "{reply}: {wrong}");
    }
}

#[test]
fn the_task_is_told_with_all_that_is_known() {
    let task = Task {
        id: "t".to_owned(),
        instruction: " write ".to_owned(),
        context: "{}".to_owned(),
        settings: "{}".to_owned(),
        criteria: Vec::new(),
        feedback: vec![Issue { criterion: None, text: "too short".to_owned() }],
        round: 2,
    };
    assert_eq!(task_text(&task), "Task:\nwrite\n\nAn earlier attempt failed:\n- too short");
}
