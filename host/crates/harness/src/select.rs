//! The choice of the next feature, and the reasons why others wait.
//!
//! Dependencies that can never be met are refused before they get here, see [`crate::plan`]; so when there is no next
//! feature, each feature that does not pass has a reason.

use crate::state::Feature;
use longhaul_core::work::FeatureStatus::{Blocked, Dropped, Failing, InProgress, NotStarted, Passing};
use longhaul_core::work::{FeatureSpec, OnFailure};
use std::cmp::Reverse;

/// The position of the next feature without a session: one in progress; else the one of highest priority that was not
/// started and whose dependencies pass; else the failing one with the fewest attempts that has any left of its
/// `attempts_max`. Ties go in plan order.
#[must_use]
pub fn next(
    features: &[Feature],
    is_worked_on: impl Fn(&str) -> bool,
    attempts_max: impl Fn(&Feature) -> u32,
) -> Option<usize> {
    let idle = |feature: &Feature| !is_worked_on(&feature.spec.id);
    let in_progress = || best(features, |feature| feature.status == InProgress && idle(feature), |_| 0);
    let ready = || {
        let fit = |feature: &Feature| idle(feature) && is_ready(feature, features);
        best(features, fit, |feature| Reverse(feature.spec.priority))
    };
    let failing = || {
        let again = |feature: &Feature| {
            feature.status == Failing && idle(feature) && feature.has_attempts(attempts_max(feature))
        };
        best(features, again, |feature| feature.attempts)
    };
    in_progress().or_else(ready).or_else(failing)
}

/// The lowest `rank` among those that are `fit`; the first of several.
fn best<R: Ord>(features: &[Feature], fit: impl Fn(&Feature) -> bool, rank: impl Fn(&Feature) -> R) -> Option<usize> {
    let fitting = features.iter().enumerate().filter(|(_, feature)| fit(feature));
    fitting.min_by_key(|(_, feature)| rank(feature)).map(|(position, _)| position)
}

fn is_ready(feature: &Feature, features: &[Feature]) -> bool {
    feature.status == NotStarted && dependencies_pass(feature, features)
}

/// True when each of its dependencies passes, or is skipped by the plan.
#[must_use]
pub fn dependencies_pass(feature: &Feature, features: &[Feature]) -> bool {
    let done = |other: &Feature| other.status == Passing || is_skipped(other);
    let passes = |id: &String| features.iter().any(|other| other.spec.id == *id && done(other));
    feature.spec.depends_on.iter().all(passes)
}

/// True when it fails and the plan continues without it.
#[must_use]
pub fn is_skipped(feature: &Feature) -> bool {
    feature.status == Failing && feature.on_failure == OnFailure::Skip
}

/// The features in waves: the features of a wave can be worked on once the earlier waves pass.
#[must_use]
pub fn waves(specs: &[FeatureSpec]) -> Vec<Vec<&str>> {
    let mut left: Vec<&FeatureSpec> = specs.iter().collect();
    let mut waves = Vec::new();
    loop {
        let waits = |spec: &&FeatureSpec| spec.depends_on.iter().any(|id| left.iter().any(|other| other.id == *id));
        let (later, wave): (Vec<_>, Vec<_>) = left.iter().copied().partition(|spec| waits(spec));
        if wave.is_empty() {
            return waves;
        }
        waves.push(wave.into_iter().map(|spec| spec.id.as_str()).collect());
        left = later;
    }
}

/// For each feature, why it has to wait for another, if it does: a dependency that is failing, blocked or dropped, or
/// that waits itself.
#[must_use]
pub fn waits(features: &[Feature]) -> Vec<Option<String>> {
    let mut waits = vec![None; features.len()];
    // Each pass finds at least one more, or is the last: dependencies have no cycle.
    for _ in 0..features.len() {
        let found: Vec<_> = features.iter().map(|feature| wait_of(feature, features, &waits)).collect();
        if found == waits {
            break;
        }
        waits = found;
    }
    waits
}

fn wait_of(feature: &Feature, features: &[Feature], waits: &[Option<String>]) -> Option<String> {
    let reason = |id: &String| {
        let position = features.iter().position(|other| other.spec.id == *id)?;
        let what = match features[position].status {
            _ if waits[position].is_some() => "is blocked",
            Failing if is_skipped(&features[position]) => return None,
            Failing => "is failing",
            Blocked if features[position].blocked_by != Some(crate::state::BlockedBy::Dependency) => "is blocked",
            Dropped => "was dropped; edit `depends_on`, or drop this feature too",
            Blocked | NotStarted | InProgress | Passing => return None,
        };
        Some(format!("depends on `{id}`, which {what}"))
    };
    can_wait(feature).then(|| feature.spec.depends_on.iter().find_map(reason)).flatten()
}

/// Only a feature without a session can wait for others.
pub(crate) fn can_wait(feature: &Feature) -> bool {
    let by_dependency = feature.blocked_by == Some(crate::state::BlockedBy::Dependency);
    feature.status == NotStarted || (feature.status == Blocked && by_dependency)
}
