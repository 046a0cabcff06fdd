//! What the driver is to do.
//!
//! [`Action::Emit`], [`Action::Park`] and [`Action::Finish`] ride in the transaction that stores the
//! state. [`Action::Work`] starts after it, and only if no work of the same key is running: after a
//! pause or a crash the same work is asked for again, and goes on from its journal.

use longhaul_core::event::Event;
use longhaul_core::work::{CheckSpec, Criterion, Goal, Task};
use serde::{Deserialize, Serialize};

/// One thing to do.
#[expect(clippy::large_enum_variant, reason = "a handful live at once, and none is stored in a list")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Carry this out, and hand in [`crate::Input::Done`] or [`crate::Input::Parked`] with its key.
    Work(Work),
    /// The work of this key is no longer wanted: stop it. What it used is still counted when it is
    /// handed in.
    Cancel {
        /// Of the [`Work`].
        key: String,
    },
    /// Number this event and keep it.
    Emit(Event),
    /// Nothing goes on until the time comes or a person acts.
    Park(Park),
    /// The run is over.
    Finish {
        /// How.
        status: EndStatus,
        /// In one line.
        summary: String,
    },
}

/// Why a run waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// In one line; a question if a person is to act.
    pub reason: String,
    /// Hand in [`crate::Input::Woke`] at this time, in milliseconds since 1970-01-01 UTC. None: a
    /// person has to act.
    pub until_ms: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    /// Every feature passes or was dropped.
    Completed,
    /// Some do not; the best effort is kept.
    Incomplete,
    /// There is no plan.
    Failed,
    /// The operator gave it up.
    Abandoned,
}

impl EndStatus {
    /// As in [`Event::RunEnded`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

/// A piece of work, whole: what was stored is what is asked for again, to the letter, so that a
/// journal finds the arguments it was begun with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The key without the try.
    pub name: String,
    /// Counts from 1. An invocation that ended in an outage has ended; the next try is another one.
    pub attempt: u32,
    /// What to do.
    pub job: Job,
}

impl Work {
    pub(crate) fn new(name: String, job: Job) -> Self {
        Self { name, attempt: 1, job }
    }

    /// The same once more, under a key of its own.
    pub(crate) fn again(mut self) -> Self {
        self.attempt = self.attempt.saturating_add(1);
        self
    }

    /// Unique within the run and stable: invocation ids are made of it. For example `plan`, `f-ID/pin`,
    /// `f-ID/2/generate`, `f-ID/e1/2/judge` in the feature's second session, `f-ID/commit/t2` at the
    /// second try. Letters, digits, `-`, `_` and `/`.
    #[must_use]
    pub fn key(&self) -> String {
        match self.attempt {
            1 => self.name.clone(),
            attempt => format!("{}/t{attempt}", self.name),
        }
    }

    /// The feature it is for.
    #[must_use]
    pub fn feature(&self) -> Option<&str> {
        match &self.job {
            Job::Plan { .. } => None,
            Job::Pin { feature, .. }
            | Job::Generate { feature, .. }
            | Job::Judge { feature, .. }
            | Job::Commit { feature, .. }
            | Job::Discard { feature } => Some(feature),
        }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Ask the planner for features. Ends in [`crate::Report::Planned`].
    Plan {
        /// What it gets; the driver adds the settings.
        goal: Goal,
    },
    /// Pin the feature's checks with their test files and run each once on the base tree. Ends in
    /// [`crate::Report::Pinned`].
    Pin {
        /// The feature.
        feature: String,
        /// Its checks.
        checks: Vec<CheckSpec>,
    },
    /// Have an agent work on the tree. Ends in [`crate::Report::Generated`].
    Generate {
        /// The feature.
        feature: String,
        /// Counts from 1.
        round: u32,
        /// The agent's name in `longhaul.toml`.
        agent: String,
        /// What it gets; the driver adds the settings.
        task: Task,
    },
    /// Have the evaluator judge what came out. Ends in [`crate::Report::Judged`].
    Judge {
        /// The feature.
        feature: String,
        /// Counts from 1.
        round: u32,
        /// The key of the [`Job::Generate`] whose output is judged.
        generated: String,
        /// What was asked for.
        instruction: String,
        /// What must hold.
        criteria: Vec<Criterion>,
    },
    /// Commit exactly the files that changed, from the tree that was judged. Ends in
    /// [`crate::Report::Committed`].
    Commit {
        /// The feature.
        feature: String,
        /// Subject, a blank line, the agent's summary, a blank line, trailers of ours.
        message: String,
    },
    /// Keep what there is as a blob, then restore the tree to the last commit. Ends in
    /// [`crate::Report::Discarded`].
    Discard {
        /// The feature.
        feature: String,
    },
}

impl Job {
    /// Whether it asks models, so that a budget has to be looked at first.
    #[must_use]
    pub fn asks_models(&self) -> bool {
        match self {
            Self::Plan { .. } | Self::Generate { .. } | Self::Judge { .. } => true,
            Self::Pin { .. } | Self::Commit { .. } | Self::Discard { .. } => false,
        }
    }

    /// In one word, for messages.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "plan",
            Self::Pin { .. } => "pin",
            Self::Generate { .. } => "generate",
            Self::Judge { .. } => "judge",
            Self::Commit { .. } => "commit",
            Self::Discard { .. } => "discard",
        }
    }
}
