//! The answers of a replay: the next thing to do, the reason why a step does not run, the outcome of a report, errors.
//!
//! These types decide nothing; the replay does.

use crate::analysis::VariableName;
use crate::graph::{MissedEdge, StepGraphError, StepId};
use crate::step::StepRequest;
use std::collections::BTreeSet;

/// The next thing to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// Run the step, and call [`Replay::ran`](super::Replay::ran) with the report. If `request.acts`, first store the
    /// steps of [`Replay::take_changed`](super::Replay::take_changed).
    Run(StepRequest),
    /// Nothing: a kept run is the step's result.
    Answered {
        /// The step.
        step: StepId,
        /// True when the run is the current one.
        is_same: bool,
    },
    /// Nothing: the step cannot run now.
    Skipped {
        /// The step.
        step: StepId,
        /// The reason.
        why: Skip,
    },
    /// All stale steps are done.
    Done,
}

/// The reason why a step does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Skip {
    /// Its source does not parse.
    Broken,
    /// It depends on a step that failed or could not run.
    Blocked {
        /// That step.
        by: StepId,
    },
    /// It may have had effects when it was interrupted. [`Replay::again`](super::Replay::again) lets it run again.
    Unknown,
    /// It needs a value that lives in the instance of a step that cannot run a second time, since it has effects.
    LiveActs {
        /// That step.
        producer: StepId,
    },
}

/// The outcome of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportOutcome {
    /// It is kept, and its changes are in the namespace.
    Kept {
        /// Dependencies that analysis had missed.
        missed: Vec<MissedEdge>,
        /// Fresh steps that had read a value that is now different.
        stale: Vec<StepId>,
        /// True when the step's result is unchanged.
        is_same: bool,
    },
    /// It is dropped: the step read these names, which it was not given. [`Replay::next`](super::Replay::next) returns
    /// it once more.
    Again {
        /// The missing names that exist.
        missing: BTreeSet<VariableName>,
    },
}

/// The reason why a replay was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An error of the graph.
    #[error(transparent)]
    Graph(#[from] StepGraphError),
    /// This report was not requested.
    #[error("step `{step}` was not to be run; ask for the next step first")]
    NotAsked {
        /// The step of the report.
        step: StepId,
    },
    /// A report has a name in two groups, or too many of them.
    #[error("the report of step `{step}` is no report: {reason}; nothing of it was kept")]
    BadReport {
        /// The step.
        step: StepId,
        /// The fault of the report.
        reason: &'static str,
    },
}
