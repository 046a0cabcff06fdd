//! A check, the programs that judging it runs, and the verdict; and the trait of each kind of evidence.
//!
//! Nothing is decided here: each kind of evidence is a module of its own, and [`Judge`](crate::Judge) chooses among
//! them.

use crate::kind::EvidenceKind;
use std::collections::BTreeMap;

/// What is judged: a program of tests, and the files that it finds.
pub struct JudgedCheck<'a> {
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
    pub files: &'a dyn CheckFiles,
}

/// The files of the copy that a check runs on. Paths use `/` and are relative to its top.
pub trait CheckFiles {
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
pub struct ProgramEnd {
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
pub enum JudgeStep {
    /// Run this on a fresh copy, and say how it ended. The output of the first is what people see.
    Launch(Launch),
    /// It is judged. What failed by itself has nothing to say here.
    Judged(CheckVerdict),
}

/// Whether a program that ended with 0 passed, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckVerdict {
    /// Whether it is a pass.
    pub passed: bool,
    /// One line for agents and people; empty where the exit code says all.
    pub why: String,
}

impl CheckVerdict {
    pub(crate) fn pass(why: impl Into<String>) -> JudgeStep {
        JudgeStep::Judged(Self { passed: true, why: why.into() })
    }

    /// By its exit code, which it has told itself.
    pub(crate) fn failed() -> JudgeStep {
        JudgeStep::Judged(Self { passed: false, why: String::new() })
    }

    pub(crate) fn refused(why: impl std::fmt::Display) -> JudgeStep {
        JudgeStep::Judged(Self { passed: false, why: format!("not taken as a pass: {why}") })
    }
}

/// One kind of evidence.
pub(crate) trait Runner {
    /// The first program when nothing ended yet.
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep;
}
