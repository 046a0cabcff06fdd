//! The tool `notes`: counts the words of a text, and keeps notes.
//!
//! Notes live in the plugin's key-value space, so they are there in the next call and after a restart. There is
//! no delete. A note is written whole, so sending `save` twice is the same as once.

use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::{Error, Functions, keyvalue, schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn functions() -> Functions {
    let text = || schema::text().about("any text");
    let name = || schema::text().chars(1, 100).about("the name of the note");
    let text_alone = schema::object().required("text", text());
    let name_and_text = schema::object().required("name", name()).required("text", text());
    let name_alone = schema::object().required("name", name());
    Functions::new("notes", "Counts the words of a text, and keeps notes.")
        .read_only("count", "Counts words, lines and characters.", text_alone, count)
        .idempotent("save", "Keeps a note, in the place of one of that name.", name_and_text, save)
        .read_only("read", "Gives a note back.", name_alone, read)
}

longhaul_sdk::export_functions!(functions);

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Counts {
    words: usize,
    lines: usize,
    characters: usize,
}

fn count(arguments: Text, _: &CallContext) -> Result<Counts, ToolError> {
    let text = arguments.text;
    let lines = if text.is_empty() { 0 } else { text.matches('\n').count() + 1 };
    Ok(Counts { words: text.split_whitespace().count(), lines, characters: text.chars().count() })
}

#[derive(Deserialize)]
struct Note {
    name: String,
    text: String,
}

fn save(note: Note, _: &CallContext) -> Result<Value, ToolError> {
    keyvalue::set(&key(&note.name), note.text.as_bytes())?;
    Ok(json!({ "saved": note.name }))
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

fn read(arguments: Name, _: &CallContext) -> Result<Value, ToolError> {
    let name = arguments.name;
    let note = keyvalue::get(&key(&name))?;
    let note = note.ok_or_else(|| Error::failed(format!("there is no note `{name}`")))?;
    Ok(json!({ "text": String::from_utf8_lossy(&note) }))
}

fn key(name: &str) -> String {
    format!("note/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: usize, lines: usize, characters: usize) {
        let context =
            CallContext { idempotency_key: String::new(), remaining_ms: 1, attempt: 1, settings: String::new() };
        let counts = count(Text { text: text.to_owned() }, &context);
        assert_eq!(counts, Ok(Counts { words, lines, characters }));
    }

    #[test]
    fn words_lines_and_characters_are_counted() {
        check("", 0, 0, 0);
        check("one", 1, 1, 3);
        check(" zwei  Wörter\n", 2, 2, 14);
        check("\n\n", 0, 3, 2);
        check("👍🏽", 1, 1, 2);
    }
}
