//! The request to a runner of steps, and its report.
//!
//! Values never appear here: they are in blobs, which are named by the digest of their bytes. Variables that share an
//! object that can change are one [`ValueGroup`] and one blob. The `value` of a group in a report was computed in the
//! same process as the step, which can make it lie; it affects only which steps of the same graph run again.

use crate::analysis::VariableName;
use crate::graph::StepId;
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of Python's `random`, as a variable: it exists after a step drew from it or seeded it.
pub const RANDOM: &str = "<random>";

/// The context of Python's `decimal` without its flags, as a variable: it exists after a step changed it.
pub const DECIMAL: &str = "<decimal>";

/// Begins the name under which the graph knows what a variable shares with others. No variable has such a name.
pub const SHARING: &str = "<sharing ";

/// The most names of variables in one report. A runner refuses a step that has more.
pub const NAMES_MAX: usize = 10_000;

/// The most files of one report.
pub const FILES_MAX: usize = 1_000;

/// Variables that share objects, as one step left them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValueGroup {
    /// The variables.
    pub names: BTreeSet<VariableName>,
    /// The place of their values.
    pub kept: KeptValues,
    /// Names that functions in the group may look up when they are called.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<VariableName>,
    /// Of a group of several variables, the digest of what each reaches by itself, without what it shares with the
    /// others. Groups of earlier versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alone: BTreeMap<VariableName, Digest>,
}

impl ValueGroup {
    /// The digest of what a variable reaches by itself; none if it is not known.
    #[must_use]
    pub fn value_of(&self, name: &str) -> Option<Digest> {
        match &self.kept {
            KeptValues::Stored { value, .. } if self.names.len() == 1 && self.names.contains(name) => Some(*value),
            KeptValues::Stored { .. } => self.alone.get(name).copied(),
            KeptValues::Live { .. } => None,
        }
    }
}

/// The place of a group's values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KeptValues {
    /// In a blob.
    Stored {
        /// The digest of the blob.
        blob: Digest,
        /// Its length.
        bytes: u64,
        /// Equal for equal values, whatever produced them.
        value: Digest,
    },
    /// Not stored: they live in the instance that made them, and are made again when they are needed.
    Live {
        /// The reason why they cannot be stored.
        reason: String,
        /// Equal when the same step with the same input made them.
        value: Digest,
    },
}

impl KeptValues {
    /// The digest that represents the values when inputs are compared.
    #[must_use]
    pub fn value(&self) -> Digest {
        match self {
            Self::Stored { value, .. } | Self::Live { value, .. } => *value,
        }
    }
}

/// The changes of a step to the namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Delta {
    /// Groups that it made or changed. A name is in at most one of them.
    pub groups: Vec<Arc<ValueGroup>>,
    /// Names that it unbound.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deleted: BTreeSet<VariableName>,
}

impl Delta {
    /// Every name in the change.
    pub fn names(&self) -> impl Iterator<Item = &VariableName> {
        self.groups.iter().flat_map(|group| &group.names).chain(&self.deleted)
    }
}

/// A group that a step may read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenGroup {
    /// Those of its variables that no later step rebound.
    pub names: BTreeSet<VariableName>,
    /// The values.
    pub blob: Digest,
    /// The group's value, if it still has all of its variables.
    pub value: Option<Digest>,
}

/// A step that runs first in the same instance, since its values cannot be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrecedingStep {
    /// The step.
    pub step: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// The seed of the step.
    pub seed: Digest,
}

/// The request for one run of one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRequest {
    /// The step.
    pub step: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// The source of its random numbers, unless [`RANDOM`] is given.
    pub seed: Digest,
    /// The groups that it may read.
    pub given: Vec<GivenGroup>,
    /// Steps to run first, in this order, without their output.
    pub before: Vec<PrecedingStep>,
    /// The number of earlier attempts, in which the step read more than was given.
    pub attempt: u32,
    /// True when the run may have external effects. Its start is stored before it has any.
    pub acts: bool,
}

/// The report of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// The step.
    pub step: StepId,
    /// The end of the run.
    pub ended: StepEnd,
    /// Its standard output, bounded by the runner's limits.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// True when a part of the two was dropped.
    pub truncated: bool,
    /// The `repr` of its last expression when that is not `None`: at most 10,000 characters.
    pub result: Option<String>,
    /// Names that it looked up, including missing ones. Without those that it had bound itself.
    pub reads: BTreeSet<VariableName>,
    /// True when it read the namespace as a whole.
    pub sees_all: bool,
    /// Its changes. Empty when it was stopped.
    pub delta: Delta,
    /// Variables that it bound to values that equal the earlier ones, so that they are in no change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rebound: BTreeSet<VariableName>,
    /// The files of granted directories that it opened for reading, by their paths in the guest, and the directories
    /// that it listed, each with a digest of the content when it ended; none for a file that did not exist.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Option<Digest>>,
    /// The files of granted directories that it opened for writing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub written: BTreeSet<String>,
    /// Its changes that no later step sees, such as `builtins.print`.
    pub unkept: Vec<String>,
    /// Short texts of variables that it had looked up when it raised: at most 20, of 200 characters.
    pub values: BTreeMap<VariableName, String>,
    /// From the start of its instance to its end, in microseconds.
    pub duration_us: u64,
    /// Fuel, about one unit per instruction.
    pub fuel_used: u64,
    /// The most memory that it held, in bytes.
    pub memory_bytes_peak: u64,
    /// The content of the blobs that its delta names. Stored separately, by digest.
    #[serde(skip)]
    pub blobs: Vec<(Digest, Arc<[u8]>)>,
}

impl StepReport {
    /// A report of a step that completed and did nothing.
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
            rebound: BTreeSet::new(),
            files: BTreeMap::new(),
            written: BTreeSet::new(),
            unkept: Vec::new(),
            values: BTreeMap::new(),
            duration_us: 0,
            fuel_used: 0,
            memory_bytes_peak: 0,
            blobs: Vec::new(),
        }
    }
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StepEnd {
    /// The source completed.
    #[default]
    Well,
    /// It raised. Its changes until then remain.
    Raised(Exception),
    /// A limit stopped it, or its instance died. It changed nothing.
    Stopped {
        /// The limit, if it was one: `timeout_ms`, `fuel_max`, `memory_bytes_max`, `stack_bytes_max`, ...
        limit: Option<String>,
        /// The message, in one line.
        message: String,
    },
}

/// An exception that a step raised.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Exception {
    /// The class, without its module.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text, at most 4,000 characters.
    pub message: String,
    /// The line of the step's source that raised it, or that called the raising code; from 1.
    pub line: Option<u32>,
    /// The frames of the traceback, outermost first: at most 50, from the middle of which some are left out.
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
    /// The traceback in Python's format, with the lines of those steps that `source_of` knows.
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
