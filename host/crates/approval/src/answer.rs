//! What a person's line means. An empty line means nothing: it approves of nothing and refuses nothing.

use serde::{Deserialize, Serialize};

/// Longest answer that is read, in bytes. What is over it is no answer: a pasted file is not meant as one.
const ANSWER_BYTES_MAX: usize = 8_192;

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// `y`: this call, once.
    Once,
    /// `n`, with a reason or without.
    No {
        /// Why, for the agent.
        reason: Option<String>,
    },
    /// `a`: this call, and by rule what is like it, for the rest of the run.
    ByRule,
    /// Anything else: what to do instead.
    Correction {
        /// For the agent.
        text: String,
    },
}

/// Why a line is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing that can be seen.
    #[error("an empty line is no answer; type `y`, `n`, `a`, or what to do instead")]
    Empty,
    /// Too much.
    #[error("the answer has {0} bytes of at most {ANSWER_BYTES_MAX}; say it shorter")]
    TooLong(usize),
}

impl Answer {
    /// Reads a line.
    ///
    /// # Errors
    /// [`NoAnswer`]: ask again.
    pub fn read(line: &str) -> Result<Self, NoAnswer> {
        let line = cleaned(line)?;
        Ok(match line.to_lowercase().as_str() {
            "y" | "yes" => Self::Once,
            "n" | "no" => Self::No { reason: None },
            "a" | "allow" => Self::ByRule,
            _ => match line.split_once(char::is_whitespace) {
                Some(("n" | "N", reason)) => Self::No { reason: Some(reason.trim().to_owned()) },
                _ => Self::Correction { text: line },
            },
        })
    }

    /// Reads the answer to a question of an agent: any text is one.
    ///
    /// # Errors
    /// [`NoAnswer`]: ask again.
    pub fn reply(line: &str) -> Result<String, NoAnswer> {
        cleaned(line)
    }
}

/// The line without what a terminal may have left in it.
fn cleaned(line: &str) -> Result<String, NoAnswer> {
    if line.len() > ANSWER_BYTES_MAX {
        return Err(NoAnswer::TooLong(line.len()));
    }
    let kept = |c: &char| matches!(c, '\n' | '\t') || !longhaul_core::text::is_hidden(*c);
    let line: String = line.chars().filter(kept).collect();
    let line = line.trim();
    if line.is_empty() { Err(NoAnswer::Empty) } else { Ok(line.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: &Result<Answer, NoAnswer>) {
        for line in lines {
            assert_eq!(&Answer::read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_means_what_a_person_would_think() {
        check(&["y", "Y", "yes", " YES\n", "y\r\n"], &Ok(Answer::Once));
        check(&["n", "N", "no", "No \n"], &Ok(Answer::No { reason: None }));
        check(&["n too early", "N  too early"], &Ok(Answer::No { reason: Some("too early".into()) }));
        check(&["a", "A", "allow"], &Ok(Answer::ByRule));
        let correction = |text: &str| Ok(Answer::Correction { text: text.into() });
        check(&["no, use rm -i"], &correction("no, use rm -i"));
        check(&["yes please"], &correction("yes please"));
        check(&["a b"], &correction("a b"));
        // A fullwidth y is no y.
        check(&["ｙ"], &correction("ｙ"));
    }

    #[test]
    fn what_nobody_can_see_is_no_answer() {
        check(&["", " ", "\n", "\t \r\n", "\u{200b}", "\u{feff}\u{202e}", "\x1b", "\0"], &Err(NoAnswer::Empty));
        assert_eq!(Answer::read(&"y".repeat(8_193)), Err(NoAnswer::TooLong(8_193)));
        assert_eq!(Answer::reply(" "), Err(NoAnswer::Empty));
        assert_eq!(Answer::reply(" blue\n"), Ok("blue".into()));
    }
}
