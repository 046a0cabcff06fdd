//! A tool call in one line, for people who watch: `files.edit invoices/invoice.py +1 -0`.
//!
//! Made of the whole call and the whole answer, where both are available, and stored with the step. Their content comes
//! from the guest, the model and the tool: none of it makes a second line, and no JSON is shown. Refuses to judge: a
//! line repeats the tool's own statement.

use super::{ToolCall, ToolError, ToolOutput};
use crate::test_summary::test_summary;
use crate::text::printable;
use serde_json::{Map, Value};

/// Characters of the call, and of its result: both together fill a line.
const CALL_CHARS_MAX: usize = 90;
const OUTCOME_CHARS_MAX: usize = 120;

/// Characters of one argument after its name.
const ARGUMENT_CHARS_MAX: usize = 40;

/// Arguments that are shown after their names.
const NAMED_MAX: usize = 3;

/// Lines of each of two texts that are compared line by line; of longer ones all lines count.
const COMPARED_LINES_MAX: usize = 1_000;

/// Arguments that describe a call best, the best first. They are shown without their names.
const SUBJECTS: &[&str] = &[
    "path", "file", "url", "query", "pattern", "key", "name", "id", "feature", "ref", "question", "title", "message",
    "text",
];

/// Arguments with whole texts, for which a line has no space.
const CONTENTS: &[&str] = &["content", "contents", "old", "new", "edits", "patch", "diff", "code", "source", "script"];

/// The call: `files.edit invoices/invoice.py`, `shell pytest -q`.
#[must_use]
pub fn call_line(call: &ToolCall) -> String {
    let name = short(&format!("{}.{}", call.tool, call.function), CALL_CHARS_MAX);
    let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else { return name };
    if let Some(command) = command(&arguments) {
        return short(&format!("{} {command}", call.tool), CALL_CHARS_MAX);
    }
    let about = about(&arguments);
    if about.is_empty() { name } else { short(&format!("{name} {about}"), CALL_CHARS_MAX) }
}

/// The call and its result: `files.edit invoices/invoice.py +1 -0`, `shell pytest -q  3 passed`.
#[must_use]
pub fn outcome_line(call: &ToolCall, answer: &Result<ToolOutput, ToolError>) -> String {
    let called = call_line(call);
    let outcome = match answer {
        Ok(output) => {
            let cut = if output.truncated { " (cut)" } else { "" };
            short(&format!("{}{cut}", outcome(call, &output.output)), OUTCOME_CHARS_MAX)
        }
        Err(error) => short(&failure(error), OUTCOME_CHARS_MAX),
    };
    match outcome.as_str() {
        "" => called,
        _ if outcome.starts_with('+') => format!("{called} {outcome}"),
        _ => format!("{called}  {outcome}"),
    }
}

/// A command line of a tool that runs programs.
fn command(arguments: &Map<String, Value>) -> Option<String> {
    let line = match (arguments.get("command").or(arguments.get("cmd")), arguments.get("argv")) {
        (Some(Value::String(line)), _) => line.clone(),
        (Some(Value::Array(words)), _) | (None, Some(Value::Array(words))) => {
            let word = |word: &Value| quoted(word.as_str().unwrap_or_default());
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    };
    let cwd = arguments.get("cwd").and_then(Value::as_str).filter(|cwd| !cwd.is_empty() && *cwd != ".");
    Some(cwd.map_or_else(|| line.clone(), |cwd| format!("{line} (in {cwd})")))
}

/// The arguments as text: the most descriptive one, then others after their names.
fn about(arguments: &Map<String, Value>) -> String {
    if let (Some(from), Some(to)) = (
        text_of(arguments, &["from", "path", "source", "old_path"]),
        text_of(arguments, &["to", "destination", "new_path", "target"]),
    ) {
        return format!("{} -> {}", quoted(from), quoted(to));
    }
    let subject = SUBJECTS.iter().find(|name| arguments.get(**name).and_then(scalar).is_some());
    let mut parts: Vec<String> = Vec::new();
    if let Some(code) = text_of(arguments, &["code", "source", "script"]) {
        parts.push(counted(code.lines().count(), "line"));
    }
    parts.extend(subject.and_then(|name| scalar(arguments.get(*name)?)));
    if let Some(patch) = text_of(arguments, &["patch", "diff"]) {
        parts.extend(files_of_patch(patch));
    }
    let others =
        arguments.iter().filter(|(name, _)| Some(&name.as_str()) != subject && !CONTENTS.contains(&name.as_str()));
    let named =
        others.filter_map(|(name, value)| Some(format!("{name}={}", short(&in_words(value)?, ARGUMENT_CHARS_MAX))));
    parts.extend(named.take(NAMED_MAX));
    parts.join(" ")
}

/// The result of a call that the tool answered.
fn outcome(call: &ToolCall, output: &str) -> String {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
    match serde_json::from_str::<Value>(output) {
        Ok(Value::Object(answer)) => changed(&call.function, &arguments, &answer)
            .or_else(|| ran(&answer))
            .or_else(|| found(&answer))
            .unwrap_or_else(|| fields(&answer)),
        Ok(Value::Array(all)) => counted(all.len(), "item"),
        Ok(Value::String(text)) => first_line(&text).to_owned(),
        Ok(Value::Null) => String::new(),
        Ok(other) => other.to_string(),
        // An answer that is no JSON is shown like any text.
        Err(_) => first_line(output).to_owned(),
    }
}

fn failure(error: &ToolError) -> String {
    match error {
        ToolError::UnknownFunction(_) => "there is no such function".to_owned(),
        ToolError::InvalidArguments(why) => format!("wrong arguments: {}", first_line(why)),
        ToolError::Denied(denial) => format!("refused: {}", first_line(&denial.reason)),
        ToolError::Limit(hit) => format!("stopped: {hit}"),
        ToolError::Unavailable(outage) => format!("not there: {}", first_line(&outage.reason)),
        ToolError::TimedOut(ms) => format!("no answer after {} s", ms.div_ceil(1_000)),
        ToolError::Failed(why) => format!("failed: {}", first_line(why)),
        ToolError::OutcomeUnknown(why) => format!("may have happened: {}", first_line(why)),
    }
}

/// Lines that a change of files added and removed: by the tool's answer, or by its arguments.
fn changed(function: &str, arguments: &Value, answer: &Map<String, Value>) -> Option<String> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| answer.get(*name).and_then(Value::as_u64));
    if let (Some(added), Some(removed)) = (number(["lines_added", "added"]), number(["lines_removed", "removed"])) {
        let new = if answer.get("created") == Some(&Value::Bool(true)) { ", new" } else { "" };
        return Some(format!("+{added} -{removed}{new}"));
    }
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    if let (Some(old), Some(new)) = (text(arguments, "old"), text(arguments, "new")) {
        return Some(plus_minus(line_changes(&old, &new)));
    }
    if let Some(edits) = arguments.get("edits").and_then(Value::as_array) {
        let of = |edit: &Value| Some(line_changes(&text(edit, "old")?, &text(edit, "new")?));
        let both = edits.iter().filter_map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        return Some(plus_minus(both));
    }
    if let Some(patch) = text(arguments, "patch").or_else(|| text(arguments, "diff")) {
        let count = |sign: &str, head: &str| {
            patch.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
        };
        return Some(plus_minus((count("+", "+++ "), count("-", "--- "))));
    }
    let lines = text(arguments, "content")?.lines().count();
    match answer.get("created").and_then(Value::as_bool) {
        Some(true) => Some(format!("+{lines} -0, new")),
        Some(false) => Some(format!("written anew, {}", counted(lines, "line"))),
        None if function.contains("append") => Some(format!("+{lines} -0")),
        None => None,
    }
}

/// The result of a program: its tests, or how it ended with its last output.
fn ran(answer: &Map<String, Value>) -> Option<String> {
    let code = answer.get("exit_code")?.as_i64()?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(error) = answer.get("error").and_then(Value::as_str).filter(|error| !error.is_empty()) {
        return Some(format!("failed: {}", first_line(error)));
    }
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    let tests = test_summary(stdout).or_else(|| test_summary(stderr)).map(|tests| tests.to_string());
    let last = match code {
        0 => last_line(stdout).or_else(|| last_line(stderr)),
        _ => last_line(stderr).or_else(|| last_line(stdout)),
    };
    Some(match (code, tests, last) {
        (_, Some(tests), _) => tests,
        (0, None, Some(last)) if is_json(last) => counted(stdout.lines().count(), "line"),
        (0, None, Some(last)) => last.to_owned(),
        (0, None, None) => "done".to_owned(),
        (code, None, Some(last)) => format!("exit code {code}: {last}"),
        (code, None, None) => format!("exit code {code}"),
    })
}

/// The amount that was found or read.
fn found(answer: &Map<String, Value>) -> Option<String> {
    if let Some(status) = answer.get("status").and_then(Value::as_u64) {
        let bytes = ["body", "text", "content"].iter().find_map(|name| answer.get(*name)?.as_str()).map(str::len);
        return Some(bytes.map_or_else(|| status.to_string(), |bytes| format!("{status}, {}", counted(bytes, "byte"))));
    }
    if let Some((name, all)) = answer.iter().find_map(|(name, value)| Some((name, value.as_array()?))) {
        return Some(counted_as(all.len(), name));
    }
    let content = answer.get("content").or_else(|| answer.get("text")).and_then(Value::as_str)?;
    match content.lines().count() {
        0 => Some("empty".to_owned()),
        1 => Some(first_line(content).to_owned()),
        lines => Some(counted(lines, "line")),
    }
}

/// An answer of unknown shape: its plain fields by their names.
fn fields(answer: &Map<String, Value>) -> String {
    let field = |(name, value): (&String, &Value)| {
        let text = short(&scalar(value)?, ARGUMENT_CHARS_MAX);
        (!text.is_empty()).then(|| format!("{name}={text}"))
    };
    answer.iter().filter_map(field).take(NAMED_MAX).collect::<Vec<_>>().join(", ")
}

/// Lines that are in only one of the texts, in their order: added, removed.
#[must_use]
pub fn line_changes(old: &str, new: &str) -> (usize, usize) {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    (old, new) = (old.split_off(same), new.split_off(same));
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    old.truncate(old.len() - same);
    new.truncate(new.len() - same);
    let common = if old.len().max(new.len()) > COMPARED_LINES_MAX { 0 } else { common_lines(&old, &new) };
    (new.len() - common, old.len() - common)
}

/// The length of the longest common subsequence.
fn common_lines(old: &[&str], new: &[&str]) -> usize {
    let mut row = vec![0; new.len() + 1];
    for line in old {
        let mut above_left = 0;
        for (at, other) in new.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if line == other { above_left + 1 } else { above.max(row[at]) };
            above_left = above;
        }
    }
    row[new.len()]
}

fn plus_minus((added, removed): (usize, usize)) -> String {
    format!("+{added} -{removed}")
}

/// The files that a patch changes, in git's format.
fn files_of_patch(patch: &str) -> Vec<String> {
    let path = |line: &str| line.strip_prefix("+++ ").map(|path| path.trim().trim_start_matches("b/").to_owned());
    patch.lines().filter_map(path).take(NAMED_MAX).collect()
}

fn text_of<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(*name)?.as_str())
}

/// A plain value as a word; none for lists and objects.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if is_json(text) => Some("…".to_owned()),
        Value::String(text) => Some(quoted(&short(text, CALL_CHARS_MAX))),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value of an argument: a list by its length, an object only by its presence.
fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(all) => Some(counted(all.len(), "item")),
        Value::Object(_) => Some("…".to_owned()),
        plain => scalar(plain),
    }
}

/// True when a text is an object or a list of JSON, which people do not read.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A word unchanged; with spaces, in quotes.
fn quoted(text: &str) -> String {
    let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
    if is_word { text.to_owned() } else { format!("\"{text}\"") }
}

fn counted(count: usize, of: &str) -> String {
    crate::text::count(count, of)
}

/// `3 matches` of a list of that name.
fn counted_as(count: usize, name: &str) -> String {
    let one = name.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let one = one.or_else(|| name.strip_suffix("ches").map(|stem| format!("{stem}ch")));
    let one = one.or_else(|| name.strip_suffix('s').map(str::to_owned));
    if count == 1 { format!("1 {}", one.as_deref().unwrap_or(name)) } else { format!("{count} {name}") }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// On one line, without control characters, cut to this number of characters.
fn short(text: &str, chars_max: usize) -> String {
    // Four bytes a character at most: the rest is not read.
    let start = &text[..text.floor_char_boundary(4 * chars_max)];
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = printable(&line, usize::MAX).chars().take(chars_max).collect();
    if shown.len() < line.len() || start.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Denial, LimitHit, Outage};
    use serde_json::json;

    fn call(name: &str, arguments: &Value) -> ToolCall {
        let (tool, function) = name.split_once('.').expect("a tool and a function");
        ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments: arguments.to_string() }
    }

    #[track_caller]
    fn check(name: &str, arguments: Value, output: Value, expected: &str) {
        let answer = Ok(ToolOutput { output: output.to_string(), truncated: false });
        assert_eq!(outcome_line(&call(name, &arguments), &answer), expected);
    }

    #[test]
    fn a_call_and_its_outcome_are_one_short_line() {
        let edit = json!({ "path": "invoices/invoice.py", "old": "a = 1\n", "new": "a = 1\nb = 2\n" });
        check(
            "files.edit",
            edit,
            json!({ "path": "invoices/invoice.py", "bytes": 12, "sha256": "00", "replaced": 1 }),
            "files.edit invoices/invoice.py +1 -0",
        );
        let edits = json!({ "path": "a.py", "edits": [{ "old": "x", "new": "y" }, { "old": "p\nq", "new": "q" }] });
        check("files.edit", edits, json!({ "path": "a.py" }), "files.edit a.py +1 -2");
        check(
            "files.edit",
            json!({ "path": "a.py" }),
            json!({ "lines_added": 4, "lines_removed": 2 }),
            "files.edit a.py +4 -2",
        );
        check(
            "files.write",
            json!({ "path": "a.py", "content": "1\n2\n" }),
            json!({ "created": true, "bytes": 4 }),
            "files.write a.py +2 -0, new",
        );
        check(
            "files.write",
            json!({ "path": "a.py", "content": "1\n" }),
            json!({ "created": false }),
            "files.write a.py  written anew, 1 line",
        );
        let patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
        check("files.patch", json!({ "patch": patch }), json!({}), "files.patch x.py +2 -1");
        check(
            "files.move",
            json!({ "from": "a.py", "to": "b c.py" }),
            json!({ "moved": true }),
            "files.move a.py -> \"b c.py\"  moved=true",
        );
        check("files.delete", json!({ "path": "a.py" }), json!({ "deleted": true }), "files.delete a.py  deleted=true");
        check(
            "files.read",
            json!({ "path": "a.py", "offset": 10 }),
            json!({ "path": "a.py", "content": "1\n2\n3" }),
            "files.read a.py offset=10  3 lines",
        );
        check(
            "files.list",
            json!({}),
            json!({ "path": "", "entries": [1, 2], "truncated": false }),
            "files.list  2 entries",
        );
        check(
            "files.search",
            json!({ "query": "def total", "files": "*.py" }),
            json!({ "matches": [1] }),
            "files.search \"def total\" files=*.py  1 match",
        );
        check(
            "search.names",
            json!({ "files": "**/*.rs" }),
            json!({ "files": [1, 2, 3], "stopped_at": null }),
            "search.names files=**/*.rs  3 files",
        );
        let ran = |code: i32, stdout: &str, stderr: &str| json!({ "success": code == 0, "exit_code": code, "stdout": stdout, "stderr": stderr, "duration_ms": 3, "error": null });
        check(
            "shell.run",
            json!({ "argv": ["pytest", "-q"] }),
            ran(0, "...\n3 passed in 0.01s\n", ""),
            "shell pytest -q  3 passed",
        );
        check(
            "shell.run",
            json!({ "command": "pytest -q" }),
            ran(1, "1 failed, 2 passed in 0.01s", ""),
            "shell pytest -q  1 failed, 2 passed",
        );
        check(
            "shell.run",
            json!({ "argv": ["git", "commit", "-m", "a b"], "cwd": "sub" }),
            ran(128, "", "warn\nfatal: no\n"),
            "shell git commit -m \"a b\" (in sub)  exit code 128: fatal: no",
        );
        check("shell.run", json!({ "argv": ["true"] }), ran(0, "", ""), "shell true  done");
        check("shell.run", json!({ "argv": ["jq", "."] }), ran(0, "{\"a\": 1}\n", ""), "shell jq .  1 line");
        check("shell.run", json!({ "argv": ["false"] }), ran(1, "", ""), "shell false  exit code 1");
        check(
            "shell.run",
            json!({ "argv": ["sleep"] }),
            json!({ "exit_code": -1, "stdout": "", "stderr": "", "error": "Timeout: given up after 9 ms; raise it" }),
            "shell sleep  failed: Timeout: given up after 9 ms; raise it",
        );
        check(
            "python.run",
            json!({ "source": "a = 1\nprint(a)" }),
            json!({ "stdout": "1\n", "stderr": "", "exit_code": 0 }),
            "python.run 2 lines  1",
        );
        check(
            "web.fetch",
            json!({ "url": "https://example.com/" }),
            json!({ "status": 200, "body": "<html>" }),
            "web.fetch https://example.com/  200, 6 bytes",
        );
        check(
            "project.list_project_features",
            json!({ "status": "failing" }),
            json!({ "features": [{}, {}] }),
            "project.list_project_features status=failing  2 features",
        );
        check("human.ask", json!({ "question": "Which one?" }), json!("the\nsecond"), "human.ask \"Which one?\"  the");
    }

    #[test]
    fn a_tool_that_nobody_knows_is_shown_without_json() {
        let arguments = json!({ "zone": "eu", "deep": { "a": { "b": 1 } }, "list": [1, 2], "more": 4, "much": 5 });
        check(
            "mcp-x.make",
            arguments,
            json!({ "ok": true, "deep": { "a": 1 }, "n": 2 }),
            "mcp-x.make zone=eu deep=… list=2 items  ok=true, n=2",
        );
        check("x.y", json!({}), json!(null), "x.y");
        check("x.y", json!({ "body": "{\"a\": [1]}" }), json!({ "said": "[1]" }), "x.y body=…  said=…");
        check("x.y", json!([1]), json!(4), "x.y  4");
        check("x.y", json!({ "name": "a" }), json!([{}, {}]), "x.y a  2 items");
        check(
            "x.y",
            json!({ "note": "long ".repeat(40) }),
            json!({}),
            "x.y note=\"long long long long long long long long…",
        );
        let broken = ToolCall { tool: "x".into(), function: "y".into(), arguments: "{\"a\": ".into() };
        assert_eq!(call_line(&broken), "x.y");
    }

    #[test]
    fn why_nothing_came_of_it_is_said_in_short() {
        let failed = |error: ToolError| outcome_line(&call("t.f", &json!({ "path": "p" })), &Err(error));
        let denial =
            Denial { reason: "`rm` is not on the list".into(), fix: "[tools.t.settings] programs = [\"rm\"]".into() };
        assert_eq!(failed(ToolError::Denied(denial)), "t.f p  refused: `rm` is not on the list");
        assert_eq!(failed(ToolError::UnknownFunction("g".into())), "t.f p  there is no such function");
        assert_eq!(
            failed(ToolError::InvalidArguments("missing `old`\nat 3".into())),
            "t.f p  wrong arguments: missing `old`"
        );
        assert_eq!(
            failed(ToolError::Limit(LimitHit::new("bytes_max", 9, 8))),
            "t.f p  stopped: limit `bytes_max` reached: 9 of 8"
        );
        let outage = Outage { reason: "no route".into(), retry_after_ms: None };
        assert_eq!(failed(ToolError::Unavailable(outage)), "t.f p  not there: no route");
        assert_eq!(failed(ToolError::TimedOut(1_500)), "t.f p  no answer after 2 s");
        assert_eq!(failed(ToolError::Failed("\n  oops\nmore".into())), "t.f p  failed: oops");
    }

    #[test]
    fn nothing_hostile_makes_a_second_line_or_reaches_the_terminal() {
        let arguments = json!({ "path": "a\n  PASS all\u{1b}[2J\u{202e}", "x\ny": "z\r" });
        let output = json!({ "exit_code": 0, "stdout": "\u{1b}]0;t\u{7}\u{9b}31m", "stderr": "" });
        let line =
            outcome_line(&call("t.f", &arguments), &Ok(ToolOutput { output: output.to_string(), truncated: true }));
        assert!(!line.chars().any(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
        assert!(line.chars().count() <= CALL_CHARS_MAX + OUTCOME_CHARS_MAX + 4, "{line}");
        let long = call("t.f", &json!({ "path": "é".repeat(100_000) }));
        assert!(call_line(&long).chars().count() <= CALL_CHARS_MAX + 1);
    }

    #[test]
    fn lines_that_changed_are_counted_as_git_counts_them() {
        let check = |old: &str, new: &str, expected: (usize, usize)| {
            assert_eq!(line_changes(old, new), expected, "{old:?} {new:?}")
        };
        check("", "", (0, 0));
        check("a\nb\nc", "a\nb\nc", (0, 0));
        check("a\nb\nc", "a\nx\nc", (1, 1));
        check("a\nb\nc\nd", "b\nd\ne", (1, 2));
        check("", "a\nb", (2, 0));
        check("a\nb", "", (0, 2));
        check("x = 1", "x = 1\ny = 2", (1, 0));
        let (long, other) = ("a\n".repeat(3_000), format!("b\n{}c\n", "d\n".repeat(2_000)));
        check(&long, &other, (2_002, 3_000));
    }
}
