//! The suite `working_memory` of `$LONGHAUL_CASES`, and cases that it does not cover.

use super::*;
use crate::conversation::prompts;
use longhaul_core::model::{MessageRole, text_tokens};
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn every_case_of_the_suite_working_memory_holds() {
    let cases = cases();
    assert!(!cases.is_empty(), "no case of the suite `working_memory` in {}", directory().display());
    for case in &cases {
        let found = match case.get("kind").and_then(Value::as_str) {
            Some("count_tokens") => json!(text_tokens(case["input"].as_str().expect("a text"))),
            None => remembered(case),
            Some(other) => panic!("unknown kind `{other}`; write a driver for it in {}", file!()),
        };
        assert_eq!(found, case["expected"], "{}", case["id"]);
    }
}

fn directory() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    std::env::var_os("LONGHAUL_CASES").map_or_else(default, PathBuf::from)
}

/// Files are picked by their field `suite`, never by their name.
fn cases() -> Vec<Value> {
    let entries = std::fs::read_dir(directory()).unwrap_or_else(|error| panic!("{}: {error}", directory().display()));
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let read = |path: PathBuf| -> Value {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).map(read);
    let ours = files.filter(|file| file["suite"] == "working_memory");
    ours.flat_map(|file| file["cases"].as_array().cloned().expect("a list of cases")).collect()
}

/// Messages come one by one, and each time the memory is trimmed to `max_tokens`.
fn remembered(case: &Value) -> Value {
    assert!(matches!(case["token_counter"].as_str(), None | Some("chars")), "unknown counter in {}", case["id"]);
    let tokens_max = case["max_tokens"].as_u64().expect("a number");
    let summaries: Vec<&str> = texts(&case["summaries_returned"]);
    let mut memory = Memory { lines: Vec::new(), summaries: 0 };
    memory.lines.extend(texts(&case["pinned"]).into_iter().map(|text| Line::of("system", text, true)));
    for message in case["messages"].as_array().expect("a list") {
        let (speaker, text) = (message[0].as_str().expect("a role"), message[1].as_str().expect("a text"));
        memory.lines.push(Line::of(speaker, text, false));
        memory.cut_back(tokens_max, &summaries);
    }
    json!({
        "llm_calls": memory.summaries,
        "summarization_count": memory.summaries,
        "token_total": memory.lines.iter().map(Line::tokens).sum::<u64>(),
        "messages": memory.lines.iter().map(|line| json!([line.speaker, line.text])).collect::<Vec<_>>(),
    })
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text")).collect()
}

struct Memory {
    lines: Vec<Line>,
    summaries: usize,
}

struct Line {
    speaker: String,
    text: String,
    pinned: bool,
}

impl Line {
    fn of(speaker: &str, text: &str, pinned: bool) -> Self {
        Self { speaker: speaker.to_owned(), text: text.to_owned(), pinned }
    }

    fn tokens(&self) -> u64 {
        self.text.chars().count() as u64
    }

    fn size(&self) -> Size {
        Size { tokens: self.tokens(), pinned: self.pinned, glued: false }
    }
}

impl Memory {
    fn cut_back(&mut self, tokens_max: u64, summaries: &[&str]) {
        let mut passes = 0;
        loop {
            let sizes: Vec<Size> = self.lines.iter().map(Line::size).collect();
            match next(&sizes, tokens_max, passes) {
                Step::Done => return,
                Step::Drop(places) => self.drop(&places),
                Step::Summarise(places) => {
                    let answer = summaries[self.summaries.min(summaries.len() - 1)];
                    self.drop(&places);
                    let following = self.lines[places[0]..].iter().find(|line| !line.pinned);
                    let following = following.map(|line| match line.speaker.as_str() {
                        "assistant" => MessageRole::Assistant,
                        _ => MessageRole::User,
                    });
                    let speaker = match prompts::speaker_before(following) {
                        MessageRole::Assistant => "assistant",
                        MessageRole::User | MessageRole::Tool => "user",
                    };
                    self.lines.insert(places[0], Line::of(speaker, &prompts::halved(answer), false));
                    self.summaries += 1;
                    passes += 1;
                }
            }
        }
    }

    fn drop(&mut self, places: &[usize]) {
        for place in places.iter().rev() {
            self.lines.remove(*place);
        }
    }
}

#[test]
fn an_answer_goes_with_the_call_that_asked_for_it() {
    let size = |glued| Size { tokens: 10, pinned: false, glued };
    let sizes = [size(false), size(true), size(true), size(false)];
    assert_eq!(next(&sizes, 39, 0), Step::Summarise(vec![0, 1, 2]));
    assert_eq!(next(&sizes, 39, 2), Step::Drop(vec![0, 1, 2]));
    assert_eq!(next(&sizes, 40, 0), Step::Done);
}

#[test]
fn what_is_pinned_stays_however_long_it_is() {
    let sizes = [Size { tokens: 100, pinned: true, glued: false }; 3];
    assert_eq!(next(&sizes, 1, 0), Step::Done);
}
