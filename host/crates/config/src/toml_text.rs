//! Error messages about a user's TOML text, in one line: the place, and the name that was probably meant. Pure.
//!
//! Refuses to read files, and to guess where no name is near.

use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The similarity from which on one name counts as a misspelling of the other: `prio` and `priority` are similar at
/// 0.90, `gone` and `one` at 0.92; `fake` and `file` at 0.73 are not.
const LIKENESS_MIN: f64 = 0.82;

/// Names that are listed if none is similar.
const LISTED_MAX: usize = 40;

/// The known name that a word was probably meant for.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The part before a colon is the same in all names of a kind.
    let own = |name: &str| name.rsplit_once(':').map_or(name, |(_, own)| own).to_lowercase();
    let word = own(word);
    let likeness = |name: &str| strsim::jaro_winkler(&word, &own(name));
    let near = known.into_iter().map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    near.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

/// The end of a message about an unknown name: the probable name, or the list of known ones.
pub fn or_one_of<T: AsRef<str>>(word: &str, known: &[T]) -> String {
    match (nearest(word, known.iter().map(AsRef::as_ref)), known) {
        (Some(near), _) => format!("; did you mean `{near}`?"),
        (None, []) => "; there are none".to_owned(),
        (None, known) => {
            let names: Vec<String> = known.iter().take(LISTED_MAX).map(|name| format!("`{}`", name.as_ref())).collect();
            format!("; there are {}", names.join(", "))
        }
    }
}

/// The end of a message about an unknown name that can be created: the probable name, or `make`.
pub fn or_make<T: AsRef<str>>(word: &str, known: &[T], make: &str) -> String {
    match nearest(word, known.iter().map(AsRef::as_ref)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; {make}"),
    }
}

/// Converts a TOML parser's error: the line, counted from 1, and one line with the remedy.
pub fn of_toml(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let names = in_backticks(&message);
    let line = line_of_error(text, error.span(), names.first().copied());
    let table = line.and_then(|line| table_at(text, line)).map(|table| format!("[{table}] ")).unwrap_or_default();
    let said = match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown ") => {
            let what = message.split(" `").next().unwrap_or("unknown field");
            format!("{what} `{unknown}`{}", or_one_of(unknown, known))
        }
        Some((missing, _)) if message.starts_with("missing field") => format!("missing field `{missing}`; add it"),
        _ => message.clone(),
    };
    (line, format!("{table}{said}"))
}

/// A value as a whole text has it, or one line with the place of the first fault and the remedy.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| match of_toml(text, &error) {
        (Some(line), said) => format!("line {line}: {said}"),
        (None, said) => said,
    })
}

/// The line, counted from 1, of a key by its path such as `agents.code.models`, or of the nearest existing one above
/// it.
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut found = None;
    for name in path.split('.') {
        let Some((key, value)) = table.iter().find(|(key, _)| &**key.get_ref() == name) else { break };
        found = Some(line_at(text, key.span().start));
        match value.get_ref() {
            DeValue::Table(below) => table = below,
            _ => break,
        }
    }
    found
}

/// Takes the key out of a document that a parser's error calls unknown, and returns the path of the table that held it.
/// None: the error calls no key unknown.
pub(crate) fn take_unknown(document: &mut DeTable<'_>, error: &toml::de::Error) -> Option<String> {
    let message = error.message();
    let name = in_backticks(message).first().copied().filter(|_| message.starts_with("unknown field "))?;
    // The error about a table that is parsed as a whole has the place of the table: then the next key of that name is
    // meant, as in `line_of_error`.
    let start = first_key(document, name, error.span().map_or(0, |span| span.start))?;
    taken(document, start, "")
}

/// The place of the first key of a name, from a byte on.
fn first_key(table: &DeTable<'_>, name: &str, from: usize) -> Option<usize> {
    let mut first: Option<usize> = None;
    for (key, value) in table {
        let start = key.span().start;
        let own = (start >= from && &**key.get_ref() == name).then_some(start);
        let below = match value.get_ref() {
            DeValue::Table(below) => first_key(below, name, from),
            DeValue::Array(items) => items.iter().filter_map(|item| first_key_in(item.get_ref(), name, from)).min(),
            _ => None,
        };
        first = [first, own, below].into_iter().flatten().min();
    }
    first
}

fn first_key_in(item: &DeValue<'_>, name: &str, from: usize) -> Option<usize> {
    let DeValue::Table(table) = item else { return None };
    first_key(table, name, from)
}

/// Takes the key at a place out of a table or of those below it, and returns the path of the table that held it.
fn taken(table: &mut DeTable<'_>, start: usize, path: &str) -> Option<String> {
    if table.iter().any(|(key, _)| key.span().start == start) {
        *table = std::mem::take(table).into_iter().filter(|(key, _)| key.span().start != start).collect();
        return Some(path.to_owned());
    }
    for (key, value) in table {
        let name = key.get_ref();
        let path = if path.is_empty() { name.clone().into_owned() } else { format!("{path}.{name}") };
        let found = match value.get_mut() {
            DeValue::Table(below) => taken(below, start, &path),
            DeValue::Array(items) => items.iter_mut().find_map(|item| match item.get_mut() {
                DeValue::Table(below) => taken(below, start, &path),
                _ => None,
            }),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The line, counted from 1, of a byte.
fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

/// For a table that is parsed as a whole, the span is all of it: then the line of the key is searched.
fn line_of_error(text: &str, span: Option<Range<usize>>, name: Option<&str>) -> Option<usize> {
    let start = span.as_ref().map(|span| span.start);
    let rest = text.get(start.unwrap_or(0)..)?;
    let is_key = |line: &str, name: &str| {
        let line = line.trim_start().trim_start_matches('[');
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '=', '.', ']', '\t']))
    };
    let named = name.and_then(|name| rest.lines().position(|line| is_key(line, name)));
    match (start, named) {
        (start, Some(lines)) => Some(line_at(text, start.unwrap_or(0)) + lines),
        (Some(start), None) => Some(line_at(text, start)),
        (None, None) => None,
    }
}

/// The last table header before a line, or on it.
fn table_at(text: &str, line: usize) -> Option<&str> {
    let headers = text.lines().take(line).filter_map(|line| line.trim().strip_prefix('['));
    let header = headers.last()?.trim_start_matches('[');
    let is_name = |header: &&str| {
        !header.is_empty() && header.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    header.split(']').next().map(str::trim).filter(is_name)
}

fn in_backticks(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_for_the_one_that_was_meant_and_for_no_other() {
        let known = ["plugin", "models", "tools", "steps_max", "priority", "api_key_env"];
        for (word, expected) in [
            ("tols", Some("tools")),
            ("model", Some("models")),
            ("step_max", Some("steps_max")),
            ("prio", Some("priority")),
            ("api_key", Some("api_key_env")),
            ("Plugin", Some("plugin")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[track_caller]
    fn told(text: &str, expected: &str) {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct Part {
            plugin: String,
            #[serde(default)]
            tools: Vec<String>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct File {
            agents: std::collections::BTreeMap<String, Part>,
        }
        let error = toml::from_str::<File>(text).expect_err(text);
        let (line, said) = of_toml(text, &error);
        assert_eq!(format!("{}: {said}", line.unwrap_or(0)), expected);
    }

    #[test]
    fn an_error_of_toml_becomes_one_line_with_its_place() {
        told("[agents.a]\nplugin = \"x\"\ntols = []\n", "3: [agents.a] unknown field `tols`; did you mean `tools`?");
        told("[agent.a]\nplugin = \"x\"\n", "1: [agent.a] unknown field `agent`; did you mean `agents`?");
        told("[agents.a]\nplugin = \"x\"\nqq = 1\n", "3: [agents.a] unknown field `qq`; there are `plugin`, `tools`");
        told("[agents.a]\nplugin = 3\n", "2: [agents.a] invalid type: integer `3`, expected a string");
        told("[agents.a]\ntools = []\n", "1: [agents.a] missing field `plugin`; add it");
    }

    #[test]
    fn a_key_is_found_by_its_path_in_every_way_of_writing_it() {
        let text = "[a]\nb = 1\n\n[c.d]\ne = { f = 1 }\ng.h = 2\n";
        for (path, line) in [("a.b", 2), ("c.d", 4), ("c.d.e.f", 5), ("c.d.g.h", 6), ("c.d.gone", 4), ("a.b.x", 2)] {
            assert_eq!(line_of(text, path), Some(line), "{path}");
        }
        assert_eq!(line_of(text, "gone"), None);
    }
}
