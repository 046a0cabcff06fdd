//! Operations on the bytes of files, without any disk.

use serde_json::{Value, json};

/// A part of a file as text; none when it is not text in UTF-8.
///
/// A character that the part's edges cut through is left out, and the edges are given.
pub(crate) fn part(bytes: &[u8], is_start: bool, is_end: bool) -> Option<(usize, &str)> {
    // A character has at most three bytes behind its first.
    let is_inside = |byte: &&u8| !is_start && **byte & 0xC0 == 0x80;
    let skipped = bytes.iter().take(3).take_while(is_inside).count();
    let rest = &bytes[skipped..];
    let text = match std::str::from_utf8(rest) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && !is_end => {
            std::str::from_utf8(&rest[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some((skipped, text))
}

/// `content` with its one occurrence of `old` replaced, or what is wrong.
pub(crate) fn replaced(content: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old` is empty; to make a file, use `write`".to_owned());
    }
    match content.matches(old).count() {
        1 => Ok(content.replacen(old, new, 1)),
        0 => Err("`old` matches nothing; read the file and copy the text exactly".to_owned()),
        count => Err(format!("`old` matches {count} places; give more of the text around the one you mean")),
    }
}

/// `content` with all replacements made, one after the other, or what is wrong with the first that cannot be.
pub(crate) fn replaced_all(content: &str, edits: &[(&str, &str)]) -> Result<String, String> {
    let mut content = content.to_owned();
    for (at, (old, new)) in (1_u32..).zip(edits) {
        content = replaced(&content, old, new)
            .map_err(|wrong| format!("edit {at} of {}: {wrong}; no edit was made", edits.len()))?;
    }
    Ok(content)
}

/// The numbers of lines that a change adds and removes.
pub(crate) fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let front = same(&mut old.iter().zip(&new));
    let (old, new) = (&old[front..], &new[front..]);
    let back = same(&mut old.iter().rev().zip(new.iter().rev()));
    let (old, new) = (&old[..old.len() - back], &new[..new.len() - back]);
    let kept = kept_lines(old, new);
    (new.len() - kept, old.len() - kept)
}

/// The longest common subsequence; 0 where finding it would cost more than a count is worth.
fn kept_lines(old: &[&str], new: &[&str]) -> usize {
    if old.len().saturating_mul(new.len()) > KEPT_WORK_MAX {
        return 0;
    }
    let mut row = vec![0; new.len() + 1];
    for a in old {
        let mut diagonal = 0;
        for (at, b) in (1..).zip(new) {
            let above = row[at];
            row[at] = if a == b { diagonal + 1 } else { above.max(row[at - 1]) };
            diagonal = above;
        }
    }
    row[new.len()]
}

const KEPT_WORK_MAX: usize = 1_000_000;

/// The pattern of the searched lines.
pub(crate) struct Query {
    text: String,
    is_glob: bool,
    ignore_case: bool,
}

impl Query {
    pub(crate) fn new(text: &str, is_glob: bool, ignore_case: bool) -> Self {
        let text = if ignore_case { text.to_lowercase() } else { text.to_owned() };
        // A pattern may match anywhere in a line, as a text does.
        let text = if is_glob { format!("*{text}*") } else { text };
        Self { text, is_glob, ignore_case }
    }

    fn matches(&self, line: &str) -> bool {
        let lower;
        let line = if self.ignore_case {
            lower = line.to_lowercase();
            &lower
        } else {
            line
        };
        if self.is_glob { glob(&self.text, line) } else { line.contains(&self.text) }
    }
}

/// The lines of `content` that match, at most `max`, each cut.
pub(crate) fn matches(path: &str, content: &str, query: &Query, max: usize) -> Vec<Value> {
    let found = (1_u32..).zip(content.lines()).filter(|(_, line)| query.matches(line));
    let shown = found.take(max).map(|(number, line)| {
        let text = longhaul_sdk::json::cut(line.trim_end(), LINE_CHARS_MAX);
        json!({ "path": path, "line": number, "text": text })
    });
    shown.collect()
}

const LINE_CHARS_MAX: usize = 200;

/// True when `text` matches `pattern`, where `*` is any characters and `?` is one.
///
/// Goes back only to the last `*`, so a hostile pattern costs length times length, not more.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_is_cut_between_characters() {
        let bytes = "aäb".as_bytes();
        assert_eq!(part(bytes, true, true), Some((0, "aäb")));
        assert_eq!(part(&bytes[..2], true, false), Some((0, "a")));
        assert_eq!(part(&bytes[2..], false, true), Some((1, "b")));
        assert_eq!(part(&bytes[..2], true, true), None, "a file that ends in half a character");
        assert_eq!(part(b"a\0b", true, true), None);
        assert_eq!(part(b"\xff\xfe", true, true), None);
        assert_eq!(part(b"", true, true), Some((0, "")));
    }

    #[test]
    fn an_edit_needs_exactly_one_match() {
        assert_eq!(replaced("a b c", "b", "x"), Ok("a x c".to_owned()));
        assert_eq!(replaced("a b c", "b", ""), Ok("a  c".to_owned()));
        assert!(replaced("a", "b", "x").is_err_and(|text| text.contains("matches nothing")));
        assert!(replaced("b b b", "b", "x").is_err_and(|text| text.contains("matches 3 places")));
        assert!(replaced("b", "", "x").is_err_and(|text| text.contains("empty")));
    }

    #[test]
    fn several_edits_are_all_made_or_none_is() {
        assert_eq!(replaced_all("a b c", &[("a", "b b"), ("c", "d")]), Ok("b b b d".to_owned()));
        let wrong = replaced_all("a b c", &[("a", "b"), ("b", "x")]).expect_err("two places");
        assert_eq!(
            wrong,
            "edit 2 of 2: `old` matches 2 places; give more of the text around the one you mean; no edit was made"
        );
    }

    #[test]
    fn changed_lines_are_counted_as_a_diff_would() {
        for (before, after, expected) in [
            ("", "a\nb\n", (2, 0)),
            ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
            ("a\nb\nc\nd\n", "b\nx\nd\n", (1, 2)),
            ("a\n", "a\n", (0, 0)),
            ("a\na\n", "a\n", (0, 1)),
        ] {
            assert_eq!(changed_lines(before, after), expected, "{before:?} {after:?}");
        }
        let long = |line: &str| format!("{line}\n").repeat(2_000);
        assert_eq!(changed_lines(&long("a"), &long("b")), (2_000, 2_000));
    }

    #[test]
    fn patterns_know_star_and_question_mark() {
        for (pattern, text, expected) in [
            ("*.py", "a.py", true),
            ("*.py", "a/b.py", true),
            ("*.py", "a.pyc", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a--b-b-c", true),
            ("a*b*c", "a--c", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
        let hostile = "*a".repeat(200);
        assert!(!glob(&hostile, &"a".repeat(199)));
    }

    #[test]
    fn lines_are_found_by_text_or_pattern() {
        let content = "def Add(a, b):\n    return a + b\n";
        let lines = |text, is_glob, ignore_case| -> Vec<Value> {
            let query = Query::new(text, is_glob, ignore_case);
            matches("a.py", content, &query, 9).iter().map(|found| found["line"].clone()).collect()
        };
        assert_eq!(lines("return", false, false), [json!(2)]);
        assert_eq!(lines("add", false, false), Vec::<Value>::new());
        assert_eq!(lines("add", false, true), [json!(1)]);
        assert_eq!(lines("a*b", true, false), [json!(1), json!(2)]);
        assert_eq!(lines("a*b", false, false), Vec::<Value>::new());
    }
}
