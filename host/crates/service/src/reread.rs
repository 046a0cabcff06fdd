//! Reading the goal's file of a run again, and adding, changing and dropping features as it says.
//!
//! The planner is asked where there is no model, for the goal as it was and as it is. So a goal in free words changes
//! no features: for them there is `longhaul features`, or a new run.

use super::{RunRef, Service};
use longhaul_api::runs::{AffectedRun, RereadOutcome};
use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_core::work::{FeatureStatus, Plan, PlanStep};
use longhaul_harness::{Input, RunState};
use longhaul_plugins::plugin_set;
use longhaul_preflight as check;
use longhaul_preflight::machine;
use longhaul_preflight::plugins::{Planned, plan_of};
use longhaul_records::record::{RunRecord, StoredRun};
use std::sync::Arc;

impl Service {
    /// Reads it, and tells the run.
    pub(super) async fn reread_goal(self: &Arc<Self>, which: &RunRef) -> fault::Result<RereadOutcome> {
        let StoredRun { record, state } = self.ready(which).await?;
        record.expect_branch()?;
        let config = record.config_now()?;
        // It says where the goal is, whose words models are told.
        self.expect_trust(&record.directory, &config)?;
        let goal = machine::goal(&record.directory, &config)?;
        let now = self.written(&record, &config, &goal).await?;
        let before = self.written(&record, &config, &state.goal).await.ok().flatten();
        let GoalChanges { steps, dropped } = changes(&state, before.as_ref(), now.as_ref());
        let told = told(&state, &steps, &dropped, now.is_some(), goal == state.goal);
        let AffectedRun { run } = self.order(which, Input::GoalReread { goal, steps, dropped }).await?;
        Ok(RereadOutcome { run, changes: told })
    }

    /// The plan that a goal writes; none where a model makes it.
    async fn written(&self, record: &RunRecord, config: &Config, goal: &str) -> fault::Result<Option<Plan>> {
        let planner = plugin_set::pinned(&self.host, config, &record.pins, "planner", &record.directory).await?;
        match plan_of(&self.host, config, &planner, goal.to_owned()).await {
            Planned::Written(plan) => Ok(Some(plan)),
            Planned::Wrong(text) => {
                check::refuse(&[check::of_goal(config, &text)])?;
                Ok(None)
            }
            Planned::Denied(_) | Planned::AsksAModel => Ok(None),
        }
    }
}

/// The differences of a goal from its text before.
#[derive(Debug, Default, PartialEq)]
struct GoalChanges {
    steps: Vec<PlanStep>,
    dropped: Vec<String>,
}

/// Compared with the goal as it was, so that what a person edited since stays as they left it. A goal that was none of
/// features before is compared with the features that there are.
fn changes(state: &RunState, before: Option<&Plan>, now: Option<&Plan>) -> GoalChanges {
    let Some(now) = now else { return GoalChanges::default() };
    let is_known = |step: &PlanStep| match before {
        Some(before) => before.steps.contains(step),
        None => state.feature(&step.spec.id).is_some_and(|feature| is_alike(step, feature)),
    };
    let there: Vec<String> = match before {
        Some(before) => before.steps.iter().map(|step| step.spec.id.clone()).collect(),
        None => state.features.iter().map(|feature| feature.spec.id.clone()).collect(),
    };
    let names = |id: &String| now.steps.iter().any(|step| step.spec.id == *id);
    GoalChanges {
        steps: now.steps.iter().filter(|step| !is_known(step)).cloned().collect(),
        dropped: there.into_iter().filter(|id| !names(id)).collect(),
    }
}

/// Compares only what the harness leaves as it is: its own corrections of a new feature are no difference.
fn is_alike(step: &PlanStep, feature: &longhaul_harness::Feature) -> bool {
    let (one, other) = (&step.spec, &feature.spec);
    one.instruction == other.instruction && one.checks == other.checks && one.depends_on == other.depends_on
}

/// The changes in words, one line each.
fn told(state: &RunState, steps: &[PlanStep], dropped: &[String], is_written: bool, is_same: bool) -> Vec<String> {
    let has_plan = !state.features.is_empty();
    let status = |id: &str| state.feature(id).map(|feature| feature.status);
    let step = |step: &PlanStep| match status(&step.spec.id) {
        None => format!("added: {}", step.spec.id),
        Some(FeatureStatus::Passing) => format!("changed, and kept since it passes: {}", step.spec.id),
        Some(_) => format!("changed: {}", step.spec.id),
    };
    let gone = |id: &String| match status(id) {
        Some(FeatureStatus::Passing) => Some(format!("not in the goal any more, and kept since it passes: {id}")),
        Some(FeatureStatus::Dropped) | None => None,
        Some(_) => Some(format!("dropped: {id}")),
    };
    let lines: Vec<String> =
        steps.iter().filter(|_| has_plan).map(step).chain(dropped.iter().filter_map(gone)).collect();
    match lines.is_empty() {
        false => lines,
        true if !has_plan => vec!["the goal is planned again".to_owned()],
        true if is_same || is_written => vec!["no feature changed".to_owned()],
        true => vec![
            "the goal writes no features, so those that there are stay; change them with `longhaul features`"
                .to_owned(),
        ],
    }
}
