//! The evidence for a pass of a test runner.
//!
//! An exit code of 0 proves nothing: the code under test can end the program. So a pass is the expected tests by name,
//! each reported through a channel of its own, and an audit: the tests run again under random names, among canaries and
//! twins that must fail. The crate decides what to run and judges the results; it starts nothing and reads no file
//! itself, but looks whether a `python3` is beside the program that a check names. Refuses to call an unknown result a
//! pass: code that passes because it knows the expected values is left to hidden criteria and to readers.

mod cargo;
mod clike;
#[cfg(test)]
mod fake;
mod flags;
mod go;
mod junit;
mod kind;
mod node;
mod python;
mod record;
mod runner;

pub use flags::{RunnerFile, RunnerFileRule, near_the_judge, runner_file};
pub use kind::EvidenceKind;
pub use runner::{BESIDE, CheckFiles, CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd};

use runner::Runner;

/// Judges one check. Call [`Judge::next`] until it is judged.
pub struct Judge {
    runner: Box<dyn Runner + Send>,
}

impl Judge {
    /// Begins to judge a check, by its kind of evidence.
    #[must_use]
    pub fn of(check: &JudgedCheck<'_>) -> Self {
        let runner: Box<dyn Runner + Send> = match check.kind {
            EvidenceKind::Pytest | EvidenceKind::Unittest => Box::new(python::Python::of(check)),
            EvidenceKind::Cargo => Box::new(cargo::Cargo::of(check)),
            EvidenceKind::Node => Box::new(node::Node::of(check)),
            EvidenceKind::Go => Box::new(go::Go::of(check)),
            EvidenceKind::Junit => Box::new(junit::Junit::of(check)),
            EvidenceKind::Exit => Box::new(Exit { argv: check.argv.to_vec() }),
        };
        Self { runner }
    }

    /// The next step, given how the previous program ended.
    pub fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        self.runner.next(ended)
    }
}

/// A bare exit code.
struct Exit {
    argv: Vec<String>,
}

impl Runner for Exit {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        match ended {
            None => JudgeStep::Launch(Launch { argv: self.argv.clone(), ..Launch::default() }),
            Some(ended) if ended.exit_code == 0 => CheckVerdict::pass(""),
            Some(_) => CheckVerdict::failed(),
        }
    }
}
