//! What a runner of steps is asked, and what it says.
//!
//! Values never appear here: they lie in blobs, which are named by the digest of their bytes. Variables that share an
//! object that can change are one [`ValueGroup`] and one blob. What a report says of a group's `value` was computed
//! beside the step, which can make it lie; it decides about nothing but which steps of the same graph are run again.

use crate::analysis::VariableName;
use crate::graph::StepId;
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of Python's `random`, as a variable: there once a step drew from it or seeded it.
pub const RANDOM: &str = "<random>";

/// The context of Python's `decimal` without its flags, as a variable: there once a step changed it.
pub const DECIMAL: &str = "<decimal>";

/// Names of variables that one report may hold. A runner refuses a step that has more.
pub const NAMES_MAX: usize = 10_000;

/// Variables that share objects, as one step left them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValueGroup {
    /// The variables.
    pub names: BTreeSet<VariableName>,
    /// Where their values are.
    pub kept: KeptValues,
    /// Names that functions in it may look up when they are called.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<VariableName>,
}

/// Where the values of a group are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KeptValues {
    /// In a blob.
    Stored {
        /// The blob.
        blob: Digest,
        /// Its length.
        bytes: u64,
        /// Equal for equal values, however they came about.
        value: Digest,
    },
    /// Nowhere: they live in the instance that made them, and are made again when they are needed.
    Live {
        /// Why they cannot be kept.
        reason: String,
        /// Equal when the same step with the same input made them.
        value: Digest,
    },
}

impl KeptValues {
    /// What stands for the values when inputs are compared.
    #[must_use]
    pub fn value(&self) -> Digest {
        match self {
            Self::Stored { value, .. } | Self::Live { value, .. } => *value,
        }
    }
}

/// What a step changed of the namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Delta {
    /// Groups that it made or changed. A name is in one of them at most.
    pub groups: Vec<Arc<ValueGroup>>,
    /// Names that it unbound.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deleted: BTreeSet<VariableName>,
}

impl Delta {
    /// Every name that it is about.
    pub fn names(&self) -> impl Iterator<Item = &VariableName> {
        self.groups.iter().flat_map(|group| &group.names).chain(&self.deleted)
    }
}

/// A group that a step may look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenGroup {
    /// Those of its variables that no later step bound anew.
    pub names: BTreeSet<VariableName>,
    /// The values.
    pub blob: Digest,
    /// The group's value, when it still has all of its variables.
    pub value: Option<Digest>,
}

/// A step that is run first in the same instance, since what it made cannot be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrecedingStep {
    /// The step.
    pub step: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// What it is seeded with.
    pub seed: Digest,
}

/// One run of one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRequest {
    /// The step.
    pub step: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// What its random numbers come from, unless [`RANDOM`] is given.
    pub seed: Digest,
    /// What it may look at.
    pub given: Vec<GivenGroup>,
    /// Steps to be run first, in this order, without their output.
    pub before: Vec<PrecedingStep>,
    /// How often the step was run for this already, since it looked at more than was given.
    pub attempt: u32,
    /// Whether the run may have effects outside. That it starts is kept before it does.
    pub acts: bool,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// The step.
    pub step: StepId,
    /// How it ended.
    pub ended: StepEnd,
    /// What it printed, bounded by the runner's limits.
    pub stdout: String,
    /// What it complained about, likewise.
    pub stderr: String,
    /// Whether some of the two was dropped.
    pub truncated: bool,
    /// The `repr` of its last expression when that is not `None`: at most 10,000 characters.
    pub result: Option<String>,
    /// Names that it looked up, also those that were not there. Not those that it had bound itself.
    pub reads: BTreeSet<VariableName>,
    /// Whether it looked at the namespace as a whole.
    pub sees_all: bool,
    /// What it changed. Empty when it was stopped.
    pub delta: Delta,
    /// What it changed that no later step sees, such as `builtins.print`.
    pub unkept: Vec<String>,
    /// Short texts of variables that it had looked up when it raised: at most 20, of 200 characters.
    pub values: BTreeMap<VariableName, String>,
    /// From the start of its instance to its end, in microseconds.
    pub duration_us: u64,
    /// Instructions, in wasmtime's fuel.
    pub fuel_used: u64,
    /// The most memory that it held, in bytes.
    pub memory_bytes_peak: u64,
    /// The content of the blobs that its delta names. Kept elsewhere, by digest.
    #[serde(skip)]
    pub blobs: Vec<(Digest, Arc<[u8]>)>,
}

impl StepReport {
    /// A report of a step that came to its end and did nothing.
    #[must_use]
    pub fn of(step: StepId) -> Self {
        Self {
            step,
            ended: StepEnd::Well,
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            result: None,
            reads: BTreeSet::new(),
            sees_all: false,
            delta: Delta::default(),
            unkept: Vec::new(),
            values: BTreeMap::new(),
            duration_us: 0,
            fuel_used: 0,
            memory_bytes_peak: 0,
            blobs: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StepEnd {
    /// The source came to its end.
    #[default]
    Well,
    /// It raised. What it had changed until then stays changed.
    Raised(Exception),
    /// A limit stopped it, or its instance died. It changed nothing.
    Stopped {
        /// The limit, if it was one: `timeout_ms`, `fuel_max`, `memory_bytes_max`, `stack_bytes_max`, ...
        limit: Option<String>,
        /// What happened, in one line.
        message: String,
    },
}

/// What a step raised.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Exception {
    /// The class, without its module.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text, at most 4,000 characters.
    pub message: String,
    /// The line of the step's source where it was raised, or from where it called what raised; from 1.
    pub line: Option<u32>,
    /// Where it went through, outermost first: at most 50, from the middle of which some are left out.
    pub frames: Vec<Frame>,
}

/// One place of a traceback.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Frame {
    /// The file; `<step ID>` for a step's source.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function, or `<module>`.
    pub name: String,
}

impl Exception {
    /// As Python prints it, with the lines of those steps that `source_of` knows.
    #[must_use]
    pub fn traceback(&self, source_of: impl Fn(&str) -> Option<Arc<str>>) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("Traceback (most recent call last):\n");
        for frame in &self.frames {
            let _ = writeln!(text, "  File \"{}\", line {}, in {}", frame.file, frame.line, frame.name);
            let step = frame.file.strip_prefix("<step ").and_then(|rest| rest.strip_suffix('>'));
            let at = usize::try_from(frame.line).unwrap_or(0).wrapping_sub(1);
            let source = step.and_then(&source_of);
            if let Some(line) = source.as_deref().and_then(|source| source.lines().nth(at)) {
                let _ = writeln!(text, "    {}", line.trim().chars().take(200).collect::<String>());
            }
        }
        let colon = if self.message.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "{}{colon}{}", self.kind, self.message);
        text
    }
}
