//! A check, the programs that judging it needs, and the verdict; and the trait of each kind of evidence.
//!
//! This module decides nothing: each kind of evidence has a module of its own, and [`Judge`](crate::Judge) chooses
//! among them.

use crate::kind::EvidenceKind;
use std::collections::BTreeMap;

/// The subject of a judgement: a test program, and its files.
pub struct JudgedCheck<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// The evidence for its pass.
    pub kind: EvidenceKind,
    /// True when the audit has twins of the tests; false for tests that share state, which cannot run several times.
    pub twins: bool,
    /// The path of its report, from the top of the work; only for [`EvidenceKind::Junit`].
    pub report: Option<&'a str>,
    /// The least number of tests in that report; only for [`EvidenceKind::Junit`].
    pub tests_min: u64,
    /// Randomness of the system, for keys and names.
    pub seed: [u8; 32],
    /// The files.
    pub files: &'a dyn CheckFiles,
}

/// The files of the copy that a check runs on. Paths use `/` and are relative to its top.
pub trait CheckFiles {
    /// The paths of all files of the copy, sorted.
    fn paths(&self) -> Vec<String>;
    /// The text of one file of the copy; none if it is no plain file or too large.
    fn read(&self, path: &str) -> Option<String>;
    /// The paths of the files that the base commit had.
    fn base_paths(&self) -> Vec<String>;
    /// The text of one file of the base commit; none if it does not exist or is no text.
    fn read_base(&self, path: &str) -> Option<String>;
    /// The paths of the files of the copy that were taken from the base commit.
    fn pinned(&self) -> Vec<String>;
}

/// A program to run on a fresh copy: without files of earlier programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; it starts at the top of the work.
    pub argv: Vec<String>,
    /// Environment variables besides those of the check.
    pub env: BTreeMap<String, String>,
    /// Files to put into [`BESIDE`], beside the work.
    pub beside: BTreeMap<String, Vec<u8>>,
    /// Files to put over the work.
    pub over: BTreeMap<String, Vec<u8>>,
    /// Files to return, from the scratch directory.
    pub reads: Vec<String>,
    /// True when its output is returned whole, for parsing, and not cut for a person.
    pub is_read_whole: bool,
}

/// The directory of the judge's own files, beside the work.
pub const BESIDE: &str = "judge";

/// The end of a program.
#[derive(Clone, Debug, Default)]
pub struct ProgramEnd {
    /// The exit code; 128 plus the signal that ended it.
    pub exit_code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The existing files of [`Launch::reads`].
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The next step of a judgement.
#[derive(Debug)]
pub enum JudgeStep {
    /// Run this on a fresh copy, and report how it ended. People see the output of the first one.
    Launch(Launch),
    /// The verdict. A program that failed by itself needs no reason.
    Judged(CheckVerdict),
}

/// The verdict on a program that ended with 0, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckVerdict {
    /// True when the program passed.
    pub passed: bool,
    /// One line for agents and people; empty if the exit code is enough.
    pub why: String,
}

impl CheckVerdict {
    pub(crate) fn pass(why: impl Into<String>) -> JudgeStep {
        JudgeStep::Judged(Self { passed: true, why: why.into() })
    }

    /// Failed by its own exit code.
    pub(crate) fn failed() -> JudgeStep {
        JudgeStep::Judged(Self { passed: false, why: String::new() })
    }

    pub(crate) fn refused(why: impl std::fmt::Display) -> JudgeStep {
        JudgeStep::Judged(Self { passed: false, why: format!("not taken as a pass: {why}") })
    }
}

/// One kind of evidence.
pub(crate) trait Runner {
    /// The next step; the first one when no program ended yet.
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep;
}
