//! Calls in full, as text for people: the name of each, and below it its arguments, a line for each field.
//!
//! A text of several lines stands line by line, so that a difference of two texts is one of lines. It is written to be
//! read and compared, and is never parsed.

use serde_json::Value;

/// Calls in order. A line without indentation begins each of them.
pub(crate) fn in_full<'a>(calls: impl IntoIterator<Item = (&'a str, &'a Value)>) -> String {
    let mut text = String::new();
    for (name, arguments) in calls {
        text += &escaped(name);
        text.push('\n');
        match arguments {
            Value::Null => {}
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| put(&mut text, &format!("{}:", escaped(name)), value, 1));
            }
            Value::Array(values) => values.iter().for_each(|value| put(&mut text, "-", value, 1)),
            other => put(&mut text, "-", other, 1),
        }
    }
    text
}

/// One value behind its mark, `NAME:` or `-`.
fn put(text: &mut String, mark: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            *text += &format!("{indent}{mark}\n");
            fields.iter().for_each(|(name, value)| put(text, &format!("{}:", escaped(name)), value, depth + 1));
        }
        Value::Array(values) if !values.is_empty() => {
            *text += &format!("{indent}{mark}\n");
            values.iter().for_each(|value| put(text, "-", value, depth + 1));
        }
        Value::String(lines) if lines.contains('\n') => {
            // As in YAML: `|` for a text that ends its last line, `|-` for one that does not.
            let (body, sign) = lines.strip_suffix('\n').map_or((lines.as_str(), "|-"), |body| (body, "|"));
            *text += &format!("{indent}{mark} {sign}\n");
            for line in body.split('\n') {
                match line {
                    "" => text.push('\n'),
                    line => *text += &format!("{indent}  {}\n", escaped(line)),
                }
            }
        }
        Value::String(one) => *text += &format!("{indent}{mark} {}\n", plain(one)),
        other => *text += &format!("{indent}{mark} {other}\n"),
    }
}

/// A text of one line, in quotes where it could be read as something else.
fn plain(text: &str) -> String {
    let is_odd = text.trim() != text
        || ["", "|", "|-"].contains(&text)
        || text.chars().any(char::is_control)
        || serde_json::from_str::<Value>(text).is_ok();
    if is_odd { escaped(&Value::from(text).to_string()) } else { text.to_owned() }
}

/// The text without characters that a terminal or an editor would obey.
fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() && char != '\t' {
            clean.extend(char.escape_default());
        } else {
            clean.push(char);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_has_a_line_and_each_line_of_a_text_its_own() {
        let arguments = json!({
            "tool": "files",
            "arguments": { "path": "a b", "lines": ["one", 2, null, []], "empty": {} },
            "content": "first\n\n  second\n",
            "open": "a\nb",
            "odd": ["", " x", "1", "true", "|", "\u{1b}[31m", "{}"],
        });
        let (files, name) = (json!("unit"), json!([0, "m"]));
        let text =
            in_full([("tools.call", &arguments), ("tools.list", &Value::Null), ("checks.run", &files), ("x", &name)]);
        assert_eq!(
            text,
            "tools.call
  tool: files
  arguments:
    path: a b
    lines:
      - one
      - 2
      - null
      - []
    empty: {}
  content: |
    first

      second
  open: |-
    a
    b
  odd:
    - \"\"
    - \" x\"
    - \"1\"
    - \"true\"
    - \"|\"
    - \"\\u001b[31m\"
    - \"{}\"
tools.list
checks.run
  - unit
x
  - 0
  - m
"
        );
    }

    #[test]
    fn no_name_begins_a_line_of_its_own() {
        let arguments = json!({ "a\nb": 1 });
        assert_eq!(in_full([("x\ny", &arguments)]), "x\\ny\n  a\\nb: 1\n");
    }
}
