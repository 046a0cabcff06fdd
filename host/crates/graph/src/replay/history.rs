//! The stored runs of a step: enough to decide whether it has to run again, and to reuse them if not.

use crate::analysis::VariableName;
use crate::step::{StepEnd, StepReport};
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of stored runs of a step: the current one and the last few before it.
pub const RUNS_MAX: usize = 4;

/// One run, with its input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRun {
    /// The digest of the step's source and of the settings of all steps: seed, limits and grants.
    pub source: Digest,
    /// The names that it looked up: the value's digest, none when the name did not exist.
    pub reads: BTreeMap<VariableName, Option<Digest>>,
    /// Those of them of which the value by itself is what mattered: the step left everything that shares objects with
    /// it as it was, and read nothing else of that.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub alone: BTreeSet<VariableName>,
    /// The digest of the whole namespace, if it read that.
    pub all: Option<Digest>,
    /// The report of the run.
    pub report: StepReport,
}

/// The stored data of a step beside its source.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StepHistory {
    /// The run whose changes are in the namespace.
    pub current: Option<Arc<StepRun>>,
    /// The earlier runs, the latest first: at most [`RUNS_MAX`] less one.
    #[serde(default)]
    pub earlier: Vec<Arc<StepRun>>,
    /// Set before the start of a run that may have effects, until its report arrives.
    #[serde(default)]
    pub started: bool,
}

impl StepHistory {
    /// True when the current run raised or was stopped.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.current.as_ref().is_some_and(|run| run.report.ended != StepEnd::Well)
    }

    /// All runs, the current one first.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<StepRun>> {
        self.current.iter().chain(&self.earlier)
    }

    /// Makes a run the current one; the previous one stays, and the oldest is removed.
    pub(crate) fn push(&mut self, run: Arc<StepRun>) {
        self.earlier.retain(|earlier| !Arc::ptr_eq(earlier, &run) && !earlier.answers_as(&run));
        if let Some(last) = self.current.replace(run)
            && !self.current.as_ref().is_some_and(|run| Arc::ptr_eq(run, &last) || last.answers_as(run))
            && !last.is_stopped()
        {
            self.earlier.insert(0, last);
        }
        self.earlier.truncate(RUNS_MAX - 1);
    }
}

impl StepRun {
    fn answers_as(&self, other: &Self) -> bool {
        self.source == other.source
            && self.reads == other.reads
            && self.alone == other.alone
            && self.all == other.all
            && self.report.files == other.report.files
    }

    /// True when a limit ended it: the next run may get further.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.report.ended, StepEnd::Stopped { .. })
    }
}
