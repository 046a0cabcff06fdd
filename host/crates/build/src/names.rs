//! The allowed names of a plugin: the name becomes a file, a crate and a folder.

use crate::error::BuildError;

/// Longest name, in characters: it is part of file names beside a digest of 64.
const NAME_CHARS_MAX: usize = 64;

/// Reserved words of Rust, Python or JavaScript. A name must be valid in all languages, so that a plugin can be written
/// again in another one.
const KEYWORDS: [&str; 92] = [
    // Rust.
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    // Python.
    "and",
    "assert",
    "case",
    "class",
    "def",
    "del",
    "elif",
    "except",
    "finally",
    "from",
    "global",
    "import",
    "is",
    "lambda",
    "none",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "with",
    // JavaScript.
    "arguments",
    "catch",
    "debugger",
    "default",
    "delete",
    "eval",
    "export",
    "extends",
    "function",
    "implements",
    "instanceof",
    "interface",
    "new",
    "null",
    "package",
    "switch",
    "throw",
    "undefined",
    "var",
];

/// Names of the other crates of a project in Rust; cargo cannot tell two of one name apart.
const TAKEN: [&str; 10] =
    ["alloc", "core", "longhaul", "longhaul-sdk", "proc-macro", "serde", "serde-json", "std", "test", "wit-bindgen"];

/// Refuses a name that is invalid as a file, a crate or a module.
///
/// # Errors
/// The rule for names.
pub fn check_name(name: &str) -> Result<(), BuildError> {
    check_form(name)?;
    if KEYWORDS.contains(&name) {
        return Err(BuildError::project(format!(
            "`{name}` is a keyword of a language that plugins are written in; take another name, such as `my-{name}`"
        )));
    }
    if TAKEN.contains(&name) {
        return Err(BuildError::project(format!(
            "`{name}` is the name of a library that plugins use; take another name, such as `my-{name}`"
        )));
    }
    Ok(())
}

/// Refuses a name that is not plain: lower-case words with hyphens between them.
///
/// # Errors
/// The rule for the form of names.
pub fn check_form(name: &str) -> Result<(), BuildError> {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit());
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('-').all(is_word);
    if !is_plain || name.len() > NAME_CHARS_MAX {
        let shown: String = name.chars().take(NAME_CHARS_MAX + 1).collect();
        return Err(BuildError::project(format!(
            "`{}` is no name of a plugin; take lower-case letters and digits with single hyphens between words, \
             beginning with a letter, at most {NAME_CHARS_MAX} characters, such as `word-count`",
            shown.escape_default()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &str) {
        for name in names {
            let found = check_name(name).map_err(|error| error.to_string());
            match expected {
                "" => assert!(found.is_ok(), "{found:?}"),
                text => assert!(found.as_ref().is_err_and(|error| error.contains(text)), "{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_name_is_plain_and_no_word_of_a_language() {
        check(&["a", "word-count", "x2", "a-1", &"a".repeat(64)], "");
        check(&["", "A", "1a", "-a", "a-", "a--b", "a_b", "a.b", "../a", "a/b", "ä", "a\nb"], "is no name of a plugin");
        check(&[&"a".repeat(65)], "at most 64 characters");
        check(&["async", "lambda", "function", "none"], "is a keyword");
        check(&["serde", "longhaul-sdk", "std"], "is the name of a library");
    }
}
