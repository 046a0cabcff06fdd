//! Checks the values of a plugin against the contract. They are checked where they are made, so that the error names
//! the plugin that made them and not a later reader.
//!
//! A field of the type `json` holds one JSON value; an empty text there means `null`. A confidence is a number from 0
//! to 1, a score a number. The functions of a tool have distinct names. Refuses to judge whether an answer is right,
//! and to repair one that breaks the contract.

use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryHit};
use longhaul_core::text::printable;
use longhaul_core::tool::{ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Outcome, Plan, Synthesis, Verdict};
use serde::de::IgnoredAny;
use std::collections::BTreeSet;

/// Bytes of a wrong text that its error quotes.
const QUOTED_BYTES_MAX: usize = 40;

/// A value that an export returns.
pub(crate) trait CheckedAnswer {
    /// Checks it against the contract; the error names the field that breaks it, and how.
    fn check(&mut self) -> Result<(), String>;
}

impl<T: CheckedAnswer, E> CheckedAnswer for Result<T, E> {
    fn check(&mut self) -> Result<(), String> {
        // An error is text, and a limit, an outage or a denial of the guest's own making.
        self.as_mut().map_or(Ok(()), CheckedAnswer::check)
    }
}

impl<T: CheckedAnswer> CheckedAnswer for Option<T> {
    fn check(&mut self) -> Result<(), String> {
        self.as_mut().map_or(Ok(()), CheckedAnswer::check)
    }
}

impl<T: CheckedAnswer> CheckedAnswer for Vec<T> {
    fn check(&mut self) -> Result<(), String> {
        self.iter_mut().try_for_each(CheckedAnswer::check)
    }
}

impl CheckedAnswer for Outcome {
    fn check(&mut self) -> Result<(), String> {
        json("output", &mut self.output)?;
        self.confidence.map_or(Ok(()), confidence)
    }
}

impl CheckedAnswer for Synthesis {
    fn check(&mut self) -> Result<(), String> {
        json("answer", &mut self.answer)?;
        self.confidence.map_or(Ok(()), confidence)
    }
}

impl CheckedAnswer for ToolOutput {
    fn check(&mut self) -> Result<(), String> {
        json("output", &mut self.output)
    }
}

impl CheckedAnswer for Verification {
    fn check(&mut self) -> Result<(), String> {
        match self {
            Self::Happened(output) => output.check(),
            Self::DidNotHappen | Self::Unknown(_) => Ok(()),
        }
    }
}

/// The note of `prepare` is the only answer that is a plain text.
impl CheckedAnswer for String {
    fn check(&mut self) -> Result<(), String> {
        json("prepared", self)
    }
}

impl CheckedAnswer for ToolInfo {
    fn check(&mut self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for function in &mut self.functions {
            let name = printable(&function.name, QUOTED_BYTES_MAX);
            if name.is_empty() {
                return Err("a function has no name".to_owned());
            }
            json(&format!("parameters` of function `{name}"), &mut function.parameters)?;
            if !names.insert(function.name.as_str()) {
                return Err(format!("function `{name}` is given twice; give each function a name of its own"));
            }
        }
        Ok(())
    }
}

impl CheckedAnswer for MemoryHit {
    fn check(&mut self) -> Result<(), String> {
        if !self.score.is_finite() {
            return Err(format!("`score` is {}; it is a number", self.score));
        }
        CheckedAnswer::check(&mut self.entry)
    }
}

impl CheckedAnswer for MemoryEntry {
    fn check(&mut self) -> Result<(), String> {
        json("value", &mut self.value)
    }
}

/// Answers without constraints, or whose readers bound and check them.
macro_rules! free {
    ($($answer:ty),*) => {
        $(impl CheckedAnswer for $answer {
            fn check(&mut self) -> Result<(), String> {
                Ok(())
            }
        })*
    };
}

free! { (), bool, i32, KeyPage, Plan, Verdict }

fn json(field: &str, text: &mut String) -> Result<(), String> {
    if text.trim().is_empty() {
        "null".clone_into(text);
    }
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| {
        let begins = printable(text, QUOTED_BYTES_MAX);
        format!("`{field}` must be JSON, and is not: {error}; it begins `{begins}`")
    })
}

fn confidence(confidence: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&confidence) {
        return Ok(());
    }
    Err(format!("`confidence` is {confidence}; it is a number from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::journal::EffectClass;
    use longhaul_core::tool::FunctionInfo;

    #[track_caller]
    fn check(answer: &mut impl CheckedAnswer, expected: &str) {
        assert_eq!(answer.check().err().unwrap_or_default(), expected);
    }

    fn outcome(output: &str, confidence: Option<f64>) -> Outcome {
        Outcome { output: output.into(), summary: String::new(), confidence, unknowns: Vec::new() }
    }

    #[test]
    fn an_output_is_one_json_value_and_an_empty_one_is_null() {
        for fine in ["null", "\"\"", " {} ", "[1e999]", &"[".repeat(500), "1"] {
            let text = fine.to_owned() + &"]".repeat(if fine.starts_with("[[") { 500 } else { 0 });
            check(&mut outcome(&text, None), "");
        }
        let mut empty = outcome(" \n", None);
        check(&mut empty, "");
        assert_eq!(empty.output, "null");
        check(
            &mut outcome("done\u{1b}[2J", None),
            "`output` must be JSON, and is not: expected value at line 1 column 1; it begins `done\\u001b[2J`",
        );
        check(
            &mut outcome("1 2", None),
            "`output` must be JSON, and is not: trailing characters at line 1 column 3; it begins `1 2`",
        );
    }

    #[test]
    fn a_confidence_is_from_0_to_1() {
        for fine in [None, Some(0.0), Some(-0.0), Some(0.5), Some(1.0)] {
            check(&mut outcome("1", fine), "");
        }
        for (wrong, shown) in [(-0.1, "-0.1"), (1.1, "1.1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let said = format!("`confidence` is {shown}; it is a number from 0 to 1");
            check(&mut outcome("1", Some(wrong)), &said);
            let (conflicts, unknowns) = (Vec::new(), Vec::new());
            check(&mut Synthesis { answer: "1".into(), confidence: Some(wrong), conflicts, unknowns }, &said);
        }
        let (conflicts, unknowns) = (Vec::new(), Vec::new());
        check(&mut Synthesis { answer: "1".into(), confidence: None, conflicts, unknowns }, "");
    }

    #[test]
    fn a_tool_names_each_function_once() {
        let function = |name: &str| FunctionInfo {
            name: name.into(),
            description: String::new(),
            parameters: "{}".into(),
            effect: EffectClass::ReadOnly,
            claim: None,
        };
        let info = |names: &[&str]| ToolInfo {
            id: "t".into(),
            description: String::new(),
            functions: names.iter().map(|name| function(name)).collect(),
        };
        check(&mut info(&["a", "b"]), "");
        check(&mut info(&["a", "b", "a"]), "function `a` is given twice; give each function a name of its own");
        check(&mut info(&[""]), "a function has no name");
    }

    #[test]
    fn a_score_is_a_number_and_a_value_json() {
        let hit = |value: &str, score| MemoryHit {
            entry: MemoryEntry { key: "k".into(), value: value.into(), tags: Vec::new(), expires_at_ms: None },
            score,
        };
        check(&mut vec![hit("1", 0.5)], "");
        check(&mut vec![hit("1", 0.5), hit("1", f64::NAN)], "`score` is NaN; it is a number");
        let wrong = "`value` must be JSON, and is not: expected value at line 1 column 1; it begins `x`";
        check(&mut Some(hit("x", 1.0).entry), wrong);
    }
}
