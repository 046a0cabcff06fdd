//! Commands that run without a question: the operator's `allow` lines of a tool that runs commands.
//!
//! A line is a program, its words and the shapes of further arguments, and covers a command whose words match it one by
//! one. Lines and commands go through the same two readers (see [`crate::shell`]), so no text with a meaning for a
//! shell is ever matched. For a program in the reviewed table (see [`crate::forms`]) a shape accepts only options that
//! the table has for the command; for any other program, none that is known to start another one. A program that runs
//! its arguments as code has to be written out to the last word. Refuses patterns within a word, and a shape in the
//! place of the program.

use crate::arguments::Arguments;
use crate::forms::{knows, knows_option};
use crate::shell::{NotPlain, plain_list, plain_words, runs_others, starts_others_of};
use serde_json::Value;

/// The most lines of one tool.
pub const LINES_MAX: usize = 500;

/// One `allow` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedCommand {
    line: String,
    program: String,
    shapes: Vec<Shape>,
}

/// The shape of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// This word.
    Word(String),
    /// `<arg>`: one word that is no option.
    Argument,
    /// `<path>`: one relative path without `..`.
    Path,
    /// `<number>`: one word of digits.
    Number,
    /// `<args>`: any number of words that are no options.
    Arguments,
    /// `*`: any number of words, including options.
    Rest,
}

/// The reason why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    /// The line is not one plain command.
    #[error("`{line}` is not taken: {why}; write a program and its words, as in \"cargo test *\"")]
    NotPlain {
        /// The line.
        line: String,
        /// The fault.
        why: NotPlain,
    },
    /// An unknown shape, or a pattern within a word.
    #[error(
        "`{line}` has `{word}`; shapes are <arg>, <path>, <number>, and at the end <args> or *, each a word of its own"
    )]
    Shape {
        /// The line.
        line: String,
        /// The word.
        word: String,
    },
    /// A word after `<args>` or `*`.
    #[error("`{line}` goes on behind `{word}`, which takes all that follows; write it last")]
    NotLast {
        /// The line.
        line: String,
        /// The shape.
        word: String,
    },
    /// A shape would let such a program run anything.
    #[error("`{line}`: `{program}` runs what its arguments say; write out every word, without a shape")]
    RunsOthers {
        /// The line.
        line: String,
        /// The program.
        program: String,
    },
    /// There are more lines than [`LINES_MAX`].
    #[error("there are {0} lines; {LINES_MAX} are the most")]
    TooMany(usize),
}

impl AllowedCommand {
    /// Reads the lines of a tool.
    ///
    /// # Errors
    /// The first line that is refused.
    pub fn read_all(lines: &[String]) -> Result<Vec<Self>, AllowError> {
        if lines.len() > LINES_MAX {
            return Err(AllowError::TooMany(lines.len()));
        }
        lines.iter().map(|line| Self::read(line)).collect()
    }

    fn read(line: &str) -> Result<Self, AllowError> {
        let shown = crate::visible(line);
        let not_a_shape = |word: String| AllowError::Shape { line: shown.clone(), word };
        if line.contains(STAND_IN) {
            return Err(not_a_shape(STAND_IN.to_owned()));
        }
        // The readers see a stand-in for each shape: `<` and `*` have a meaning for shells.
        let (mut stood_in, mut shapes, mut quote) = (Vec::new(), Vec::new(), None);
        for word in line.split(' ') {
            let shape = shape(word).filter(|_| quote.is_none());
            stood_in.push(if shape.is_some() { STAND_IN } else { word });
            shapes.extend(shape);
            quote = quote_after(quote, word);
        }
        let words = plain_words(&stood_in.join(" "));
        let words = words.map_err(|why| match line.contains(['<', '>', '*']) {
            true => not_a_shape(crooked(line)),
            false => AllowError::NotPlain { line: shown.clone(), why },
        })?;
        let mut shapes = shapes.into_iter();
        let stand_in = |word: String| if word == STAND_IN { shapes.next() } else { Some(Shape::Word(word)) };
        let mut found: Vec<Shape> = words.into_iter().filter_map(stand_in).collect();
        let program = match found.first() {
            Some(Shape::Word(program)) => program.clone(),
            _ => return Err(not_a_shape(crooked(line))),
        };
        found.remove(0);
        let one = Self { line: shown, program, shapes: found };
        one.check()?;
        Ok(one)
    }

    fn check(&self) -> Result<(), AllowError> {
        let line = || self.line.clone();
        let many = self.shapes.iter().position(|shape| matches!(shape, Shape::Arguments | Shape::Rest));
        if let Some(at) = many.filter(|at| at + 1 < self.shapes.len()) {
            let word = if self.shapes[at] == Shape::Rest { "*" } else { "<args>" };
            return Err(AllowError::NotLast { line: line(), word: word.to_owned() });
        }
        let is_open = self.shapes.iter().any(|shape| !matches!(shape, Shape::Word(_)));
        if is_open && runs_others(&self.program) {
            return Err(AllowError::RunsOthers { line: line(), program: self.program.clone() });
        }
        Ok(())
    }

    /// The program of the line.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The text of the line.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// True when the line allows a command.
    #[must_use]
    pub fn covers(&self, words: &[String]) -> bool {
        if words.first() != Some(&self.program) {
            return false;
        }
        let mut at = 1;
        for shape in &self.shapes {
            let rest = at..words.len();
            match shape {
                Shape::Arguments => return rest.into_iter().all(|at| self.takes(words, at) && !is_option(&words[at])),
                Shape::Rest => return rest.into_iter().all(|at| self.takes(words, at)),
                shape if at < words.len() && self.is_of(shape, words, at) => at += 1,
                _ => return false,
            }
        }
        at == words.len()
    }

    fn is_of(&self, shape: &Shape, words: &[String], at: usize) -> bool {
        let word = words[at].as_str();
        match shape {
            Shape::Word(expected) => word == expected,
            Shape::Argument => self.takes(words, at) && !word.is_empty() && !is_option(word),
            Shape::Path => self.takes(words, at) && is_path(word),
            Shape::Number => !word.is_empty() && word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_digit()),
            Shape::Arguments | Shape::Rest => false,
        }
    }

    /// True when a shape accepts the word at `at`: it must not change the meaning of the line for the program.
    fn takes(&self, words: &[String], at: usize) -> bool {
        let word = words[at].as_str();
        let is_behind_dashes = words[..at].iter().any(|word| word == "--");
        let is_known = !knows(&self.program) || !(is_option(word) || is_behind_dashes) || knows_option(words, at);
        is_known && !starts_others_of(&self.program, word)
    }
}

/// True when one of the lines lets a call pass. In doubt none does, and a person is asked.
#[must_use]
pub fn allows(lines: &[AllowedCommand], arguments: &Arguments) -> bool {
    let Some(words) = words_of(arguments) else { return false };
    lines.iter().any(|line| line.covers(&words))
}

/// The words of the single command in a call that has no further arguments but its directory and its timeout.
fn words_of(arguments: &Arguments) -> Option<Vec<String>> {
    let fields = &arguments.0;
    if !fields.keys().all(|name| ["argv", "command", "cwd", "timeout_ms"].contains(&name.as_str())) {
        return None;
    }
    let cwd = fields.get("cwd").map_or(Some(""), Value::as_str)?;
    if !cwd.is_empty() && !is_path(cwd) {
        return None;
    }
    match (fields.get("command"), fields.get("argv")) {
        (Some(Value::String(line)), None) => plain_words(line).ok(),
        (None, Some(Value::Array(words))) => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            plain_list(&words?).ok()
        }
        _ => None,
    }
}

/// The word that stands for a shape while a line is read.
const STAND_IN: &str = "-shape-of-an-argument-";

fn shape(word: &str) -> Option<Shape> {
    match word {
        "<arg>" => Some(Shape::Argument),
        "<path>" => Some(Shape::Path),
        "<number>" => Some(Shape::Number),
        "<args>" => Some(Shape::Arguments),
        "*" => Some(Shape::Rest),
        _ => None,
    }
}

/// The quote that is open after a word.
fn quote_after(open: Option<char>, word: &str) -> Option<char> {
    word.chars().filter(|char| matches!(char, '\'' | '"')).fold(open, |open, char| match open {
        None => Some(char),
        Some(open) if open == char => None,
        open => open,
    })
}

fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

fn crooked(line: &str) -> String {
    let word = line.split(' ').find(|word| word.contains(['<', '>', '*']) && shape(word).is_none());
    crate::visible(word.unwrap_or(line))
}

/// A relative path without `..`, which no program reads as an option.
fn is_path(word: &str) -> bool {
    let goes_up = word.split('/').any(|part| part == "..");
    !word.is_empty() && !word.starts_with(['-', '/', '~']) && !goes_up
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(lines: &[&str]) -> Vec<AllowedCommand> {
        AllowedCommand::read_all(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()).expect("lines")
    }

    fn passes(lines: &[AllowedCommand], arguments: &serde_json::Value) -> bool {
        allows(lines, &Arguments::read(&arguments.to_string()).expect("arguments"))
    }

    fn allowed() -> Vec<AllowedCommand> {
        lines(&[
            "pytest -q",
            "pytest -q <path>",
            "cargo test *",
            "git status",
            "git log -n <number>",
            "git diff <args>",
            "grep -rn <arg> <path>",
            "python -m pytest -q",
            "echo 'two words'",
            "find . -name <arg>",
        ])
    }

    #[test]
    fn what_the_operator_listed_passes_as_a_line_and_as_words() {
        for line in [
            "pytest -q",
            "pytest  -q",
            "pytest '-q'",
            "pytest -q tests/test_a.py::test_one",
            "cargo test",
            "cargo test --workspace -- --nocapture name",
            "git status",
            "git log -n 20",
            "git diff",
            "git diff main src",
            "grep -rn 'fn main' src/lib.rs",
            "python -m pytest -q",
            "echo \"two words\"",
            "find . -name Cargo.toml",
        ] {
            assert!(passes(&allowed(), &json!({ "command": line })), "{line}");
            let words = plain_words(line).expect("plain");
            let arguments = json!({ "argv": words, "cwd": "a/b", "timeout_ms": 5 });
            assert!(passes(&allowed(), &arguments), "{words:?}");
        }
    }

    #[test]
    fn what_only_looks_as_if_it_were_listed_does_not_pass() {
        for line in [
            // More than one command, or one with a meaning for a shell.
            "pytest -q; id",
            "pytest -q && id",
            "pytest -q || id",
            "pytest -q | sh",
            "pytest -q &",
            "pytest -q\nid",
            "pytest -q > out",
            "pytest -q < in",
            "pytest -q 2>&1",
            "pytest -q $(id)",
            "pytest -q `id`",
            "pytest -q $HOME",
            "(pytest -q)",
            "{ pytest -q; }",
            "! pytest -q",
            "pytest -q # id",
            "pytest -q \\; id",
            "cargo test $(id)",
            "cargo test; id",
            "cargo test *",
            "cargo test ~root",
            "cargo test {a,b}",
            "git diff \"$(id)\"",
            // Another program, or the same under another name.
            "PATH=. pytest -q",
            "PYTHONPATH=evil pytest -q",
            "./pytest -q",
            "/usr/bin/pytest -q",
            "bin/../pytest -q",
            "Pytest -q",
            "pytest3 -q",
            "'pytest' -q",
            "\"pytest\" -q",
            "py\"test\" -q",
            "env pytest -q",
            "time pytest -q",
            "sh -c 'pytest -q'",
            "command pytest -q",
            "p\u{443}test -q",
            "pytest\u{200b} -q",
            "pytest\u{a0}-q",
            "pytest\t-q",
            // Other words, fewer or more.
            "pytest",
            "pytest -q -p evil",
            "pytest -qq",
            "pytest -Q",
            "pytest --q",
            "pytest -q -q",
            "pytest -q ''",
            "pytest -q ../out",
            "pytest -q /etc",
            "pytest -q a/../../b",
            "pytest -q -x",
            "pytest -q a b",
            "pytest -q ~/x",
            "cargo +nightly test",
            "cargo --config x test",
            "cargo tests",
            "cargo run",
            "cargo test --config build.rustc=x",
            "cargo test --conf=x",
            "git -c core.pager=id status",
            "git status -s",
            "git --exec-path=. status",
            "git statusx",
            "git log -n -1",
            "git log -n 1x",
            "git log -n",
            "git log -n ''",
            "git log -n 1 --output=x",
            "git diff --ext-diff",
            "git diff --output=x",
            "git diff -O",
            "git diff config",
            "grep -rn x",
            "grep -rn -f x",
            "grep -rn x /etc/passwd",
            "grep -rn x src y",
            "grep -f x src",
            "python -m pytest -q x",
            "python -m pytest",
            "python -c x",
            "python3 -m pytest -q",
            "echo two words",
            "find . -name x -delete",
            "find . -name -exec",
            "find .. -name x",
            "",
            " ",
            "-shape-of-an-argument-",
            "pytest -shape-of-an-argument-",
            "pytest -q <path>",
            "git log -n <number>",
        ] {
            assert!(!passes(&allowed(), &json!({ "command": line })), "{line}");
        }
        for arguments in [
            json!({ "argv": ["pytest", "-q", "x"], "command": "pytest -q" }),
            json!({ "command": ["pytest", "-q"] }),
            json!({ "argv": "pytest -q" }),
            json!({ "argv": ["pytest", 1] }),
            json!({ "argv": ["pytest -q"] }),
            json!({ "argv": [["pytest"], "-q"] }),
            json!({ "argv": ["pytest", "-q\u{202e}"] }),
            json!({ "argv": [] }),
            json!({ "command": "pytest -q", "cwd": "../other" }),
            json!({ "command": "pytest -q", "cwd": "/etc" }),
            json!({ "command": "pytest -q", "cwd": 1 }),
            json!({ "command": "pytest -q", "env": { "PATH": "." } }),
            json!({ "cmd": "pytest -q" }),
            json!({ "program": "pytest", "args": ["-q"] }),
            json!({}),
        ] {
            assert!(!passes(&allowed(), &arguments), "{arguments}");
        }
    }

    #[test]
    fn a_line_that_says_more_than_it_means_is_refused_where_it_is_read() {
        let check = |line: &str, expected: &str| {
            let told = AllowedCommand::read(line).map(|_| ()).expect_err(line).to_string();
            assert!(told.contains(expected), "{line}: {told}");
        };
        check("", "it has no command");
        check("* x", "shapes are");
        check("<arg>", "shapes are");
        check("cargo *test", "has `*test`");
        check("cargo <name>", "has `<name>`");
        check("cargo test > out", "has `>`");
        check("cargo * test", "goes on behind `*`");
        check("git diff <args> x", "goes on behind `<args>`");
        check("cargo test; id", "which a shell gives a meaning");
        check("A=b cargo test", "`A=b cargo test` is not taken");
        check("python *", "write out every word");
        check("sh <path>", "write out every word");
        check("npx <arg>", "write out every word");
        assert_eq!(
            AllowedCommand::read_all(&vec!["ls".to_owned(); LINES_MAX + 1]),
            Err(AllowError::TooMany(LINES_MAX + 1))
        );
        check("echo -shape-of-an-argument-", "shapes are");
        let quoted = lines(&["echo 'any * of them' <arg>"]);
        assert!(passes(&quoted, &json!({ "command": "echo 'any * of them' x" })));
        assert!(!passes(&quoted, &json!({ "command": "echo 'any other of them' x" })));
    }
}
