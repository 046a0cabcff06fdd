//! Forks of runs: what they share with another run, and what that one did after the point.

use super::approvals::Effect;
use super::runs::Passing;
use super::usage::WorkUsageView;
use crate::forks::{ForkOutcome, ForkPlan, LaterEffects, SharedWork};
use serde::Serialize;

/// A fork that was made, or what it would be.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Fork))]
pub struct ForkView {
    /// The fork; null: nothing was made.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// The parts of it.
    pub plan: ForkPlanView,
}

impl From<ForkOutcome> for ForkView {
    fn from(ForkOutcome { run, plan }: ForkOutcome) -> Self {
        Self { run: run.map(|run| run.to_string()), plan: plan.into() }
    }
}

/// The parts of a fork: what it shares with the other run, and what that run did after the point.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ForkPlan))]
pub struct ForkPlanView {
    /// The other run.
    pub parent: String,
    /// The point, as it was named.
    pub at: String,
    /// The number of the last event before the point.
    pub event: u64,
    /// Time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The branch of the fork; empty for an ask.
    pub branch: String,
    /// The commit at which the branch begins; empty for an ask.
    pub commit: String,
    /// Number of features that pass at the point.
    pub passing: Passing,
    /// The work at the point, with what it takes from the journals of the other run.
    pub shared: Vec<SharedWorkView>,
    /// The usage of the other run up to the point, which does not count for the fork.
    pub inherited_usage: WorkUsageView,
    /// The effects of the other run after the point, which a fork does not undo.
    pub later_effects: Vec<LaterEffectsView>,
    /// Number of later effects that the list leaves out.
    pub later_effects_omitted: u64,
    /// The model that answers in the place of all others; null: none does.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub model: Option<String>,
    /// The parts whose plugins differ from those of the other run.
    pub replaced_plugins: Vec<String>,
    /// Notes, a sentence each.
    pub notes: Vec<String>,
}

impl From<ForkPlan> for ForkPlanView {
    fn from(inner: ForkPlan) -> Self {
        Self {
            parent: inner.parent.to_string(),
            at: inner.at,
            event: inner.event,
            at_ms: inner.at_ms,
            branch: inner.branch,
            commit: inner.commit,
            passing: inner.passing.into(),
            shared: inner.shared.into_iter().map(Into::into).collect(),
            inherited_usage: inner.inherited.into(),
            later_effects: inner.effects.into_iter().map(Into::into).collect(),
            later_effects_omitted: inner.effects_left_out,
            model: inner.model,
            replaced_plugins: inner.replaced_plugins,
            notes: inner.notes,
        }
    }
}

/// One piece of work at the point of a fork.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = SharedWork))]
pub struct SharedWorkView {
    /// Its key, such as `f-sum/1/generate`.
    pub key: String,
    /// Number of journal entries that are answered from the other run.
    pub entries: u32,
    /// True when a person wrote the last of these answers.
    pub edited: bool,
}

impl From<SharedWork> for SharedWorkView {
    fn from(SharedWork { key, entries, edited }: SharedWork) -> Self {
        Self { key, entries, edited }
    }
}

/// Effects of one kind after a point.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = LaterEffects))]
pub struct LaterEffectsView {
    /// Their class.
    pub effect: Effect,
    /// The call, such as `mail.send`.
    pub call: String,
    /// Number of calls.
    pub count: u64,
}

impl From<LaterEffects> for LaterEffectsView {
    fn from(LaterEffects { effect, call, count }: LaterEffects) -> Self {
        Self { effect: effect.into(), call, count }
    }
}
