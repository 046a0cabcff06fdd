//! Requests and responses about forks: runs that go on from a point of another one. This module looks nothing up.

use crate::points::Point;
use crate::runs::RunRef;
use longhaul_core::RunId;
use longhaul_core::event::WorkUsage;
use longhaul_core::journal::EffectClass;
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Make a run that goes on from a point of another one, or tell what it would share and repeat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForkRun {
    /// The other run.
    pub run: RunRef,
    /// The point.
    pub at: Point,
    /// The answer in the place of the one at the point, as JSON. Only for the point of an entry.
    #[serde(default)]
    pub answer: Option<String>,
    /// Guidance that the agents at work at the point read at their next step.
    #[serde(default)]
    pub message: Option<String>,
    /// The name of the model that answers in the place of all others.
    #[serde(default)]
    pub model: Option<String>,
    /// Plugins that the fork takes as they are installed now, by their names in longhaul.toml.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// The options of its models. None: those of the other run.
    #[serde(default)]
    pub models: Option<ModelOptions>,
    /// The branch of the fork. None: `longhaul/NAME-fork-N`.
    #[serde(default)]
    pub branch: Option<String>,
    /// True when the fork may repeat what the other run did after the point, without asking a person.
    #[serde(default)]
    pub repeat_effects: bool,
    /// True when nothing is made.
    #[serde(default)]
    pub dry_run: bool,
}

impl ForkRun {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        let named = self.models.iter().flat_map(|models| models.replay_from.iter().chain(&models.record_to));
        named.map(PathBuf::as_path).collect()
    }
}

/// A fork that was made, or what it would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkOutcome {
    /// The fork. None: nothing was made.
    #[serde(default)]
    pub run: Option<RunId>,
    /// The parts of it.
    pub plan: ForkPlan,
}

/// The parts of a fork: what it shares with the other run, and what that run did after the point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkPlan {
    /// The other run.
    pub parent: RunId,
    /// The point, as it was named.
    pub at: String,
    /// The number of the last event before the point.
    pub event: u64,
    /// The time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The branch of the fork. Empty for an ask.
    pub branch: String,
    /// The commit at which the branch begins. Empty for an ask.
    pub commit: String,
    /// The number of features that pass at the point, and of all that were not dropped.
    pub passing: (usize, usize),
    /// The work at the point, with what it takes from the journals of the other run.
    pub shared: Vec<SharedWork>,
    /// The usage of the other run up to the point, which does not count for the fork.
    pub inherited: WorkUsage,
    /// The effects of the other run after the point, which a fork does not undo.
    pub effects: Vec<LaterEffects>,
    /// The number of later effects that `effects` leaves out.
    pub effects_left_out: u64,
    /// The model that answers in the place of all others.
    #[serde(default)]
    pub model: Option<String>,
    /// The parts whose plugins differ from those of the other run, by their tables.
    #[serde(default)]
    pub replaced_plugins: Vec<String>,
    /// The notes for a person, a sentence each.
    pub notes: Vec<String>,
}

/// One piece of work at the point of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedWork {
    /// Its key, such as `f-sum/1/generate`.
    pub key: String,
    /// The number of journal entries that are answered from the other run.
    pub entries: u32,
    /// True when a person wrote the last of these answers.
    #[serde(default)]
    pub edited: bool,
}

/// Effects of one kind that a run had after a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterEffects {
    /// Their class.
    pub effect: EffectClass,
    /// The call, such as `mail.send`.
    pub call: String,
    /// The number of calls.
    pub count: u64,
}
