//! What a pass of a test runner must show.
//!
//! A program that ends with 0 has said nothing: the code under test can end it. So a pass is the expected tests by
//! name, each reported through a channel of its own, and an audit: the tests run again under random names, among
//! canaries and twins that must fail. The crate says what to run and judges what came of it; it starts nothing and
//! reads no file itself, but looks whether a `python3` lies beside the program that a check names. Refuses to call
//! anything a pass that it does not know: what fools it by knowing the expected values is left to hidden criteria and
//! to readers.

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

pub use flags::{Rule, RunnerFile, near_the_judge, runner_file};
pub use kind::EvidenceKind;

use std::collections::BTreeMap;

/// What is judged: a program of tests, and the files that it finds.
pub struct Check<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// What its pass must show.
    pub kind: EvidenceKind,
    /// Whether the audit has twins: tests that share state cannot run several times.
    pub twins: bool,
    /// Where it writes its report, from the top of the work; only for [`EvidenceKind::Junit`].
    pub report: Option<&'a str>,
    /// The least number of tests in that report; only for [`EvidenceKind::Junit`].
    pub tests_min: u64,
    /// Randomness of the system: keys and names are made of it.
    pub seed: [u8; 32],
    /// The files.
    pub files: &'a dyn Files,
}

/// The files of the copy that a check runs on. Paths use `/` and are relative to its top.
pub trait Files {
    /// The paths of all files of the copy, sorted.
    fn paths(&self) -> Vec<String>;
    /// The text of one file of the copy; none where it is no plain file or too large.
    fn read(&self, path: &str) -> Option<String>;
    /// The paths of the files that the base commit had.
    fn base_paths(&self) -> Vec<String>;
    /// The text of one file as the base commit had it; none where it had none, or one that is no text.
    fn read_base(&self, path: &str) -> Option<String>;
    /// The paths of the files of the copy that were taken from the base commit.
    fn pinned(&self) -> Vec<String>;
}

/// A program to run on a fresh copy: nothing that one before it wrote is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; it starts at the top of the work.
    pub argv: Vec<String>,
    /// Variables besides those of the check.
    pub env: BTreeMap<String, String>,
    /// Files put into [`BESIDE`], beside the work.
    pub beside: BTreeMap<String, Vec<u8>>,
    /// Files put over the work.
    pub over: BTreeMap<String, Vec<u8>>,
    /// Files that are handed back, from the scratch directory.
    pub reads: Vec<String>,
    /// Whether its output is taken whole, for reading, and not cut for a person.
    pub is_read_whole: bool,
}

/// The directory beside the work that the judge's own files are in.
pub const BESIDE: &str = "judge";

/// How a program ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// 128 and the signal where one ended it.
    pub exit_code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// Those of [`Launch::reads`] that are there.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// Run this on a fresh copy, and say how it ended. The output of the first is what people see.
    Launch(Launch),
    /// It is judged. What failed by itself has nothing to say here.
    Judged(Verdict),
}

/// Whether a program that ended with 0 passed, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is a pass.
    pub passed: bool,
    /// One line for agents and people; empty where the exit code says all.
    pub why: String,
}

impl Verdict {
    fn pass(why: impl Into<String>) -> Step {
        Step::Judged(Self { passed: true, why: why.into() })
    }

    /// By its exit code, which it has told itself.
    fn failed() -> Step {
        Step::Judged(Self { passed: false, why: String::new() })
    }

    fn refused(why: impl std::fmt::Display) -> Step {
        Step::Judged(Self { passed: false, why: format!("not taken as a pass: {why}") })
    }
}

/// Judges one check. Call [`Judge::next`] until it is judged.
pub struct Judge {
    runner: Box<dyn Runner + Send>,
}

/// One kind of evidence.
trait Runner {
    /// The first program when nothing ended yet.
    fn next(&mut self, ended: Option<Ended>) -> Step;
}

impl Judge {
    /// Begins to judge a check by the kind of evidence that it has.
    #[must_use]
    pub fn of(check: &Check<'_>) -> Self {
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

    /// What comes next, given how the program before ended.
    pub fn next(&mut self, ended: Option<Ended>) -> Step {
        self.runner.next(ended)
    }
}

/// A bare exit code.
struct Exit {
    argv: Vec<String>,
}

impl Runner for Exit {
    fn next(&mut self, ended: Option<Ended>) -> Step {
        match ended {
            None => Step::Launch(Launch { argv: self.argv.clone(), ..Launch::default() }),
            Some(ended) if ended.exit_code == 0 => Verdict::pass(""),
            Some(_) => Verdict::failed(),
        }
    }
}
