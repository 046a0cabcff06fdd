//! A changed goal: features that it adds, changes and drops, as the driver found them.
//!
//! Passing features stay unchanged. Without a plan yet, the planner is asked again with the present goal, so that a
//! fault of the goal can be corrected.

use super::{Ignored, OrderRefusal, Turn};
use crate::action::EndStatus;
use crate::plan;
use crate::select;
use crate::state::{Phase, WaitFor};
use longhaul_core::work::FeatureStatus::{Dropped, InProgress, NotStarted, Passing};
use longhaul_core::work::{Plan, PlanStep};

type Taken = Result<Option<Ignored>, OrderRefusal>;

impl Turn<'_> {
    pub(super) fn goal_reread(&mut self, goal: String, steps: Vec<PlanStep>, dropped: Vec<String>) -> Taken {
        if self.state.phase == Phase::New {
            return Err(OrderRefusal::NotBegun);
        }
        if self.state.is_ask() {
            return Err(OrderRefusal::NoBranch);
        }
        if let Some(status @ EndStatus::Abandoned) = self.ended() {
            return Err(OrderRefusal::Ended { status });
        }
        if goal.trim().is_empty() {
            return Err(OrderRefusal::NoGoal);
        }
        if self.state.is_planning() {
            self.plan_anew(goal);
            return Ok(None);
        }
        let (stays, steps): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| self.is(&step.spec.id, Passing));
        let dropped: Vec<String> = dropped.into_iter().filter(|id| self.may_drop(id)).collect();
        if steps.is_empty() && dropped.is_empty() && goal == self.state.goal {
            return Ok(Some(Ignored::NothingToDo));
        }
        self.take_goal(goal, steps, &dropped)?;
        for step in stays {
            let id = step.spec.id;
            self.warn(format!("`{id}` passes and stays as it is, though the goal says something else of it now"));
        }
        Ok(None)
    }

    fn is(&self, id: &str, status: longhaul_core::work::FeatureStatus) -> bool {
        self.state.feature(id).is_some_and(|feature| feature.status == status)
    }

    fn may_drop(&self, id: &str) -> bool {
        self.state.feature(id).is_some() && !self.is(id, Passing) && !self.is(id, Dropped)
    }

    /// The planner's request, and its answer, concerned the former goal.
    fn plan_anew(&mut self, goal: String) {
        self.state.goal = goal;
        self.state.plan_notes.clear();
        self.state.counts.plan_attempts = 0;
        if self.ended().is_some() {
            // A resume asks with the goal of that time.
            return;
        }
        let Some(position) = self.state.lanes.iter().position(|lane| lane.session.is_none()) else { return };
        let is_held = self.state.lanes[position].wait.as_ref().is_some_and(|wait| wait.wait != WaitFor::Work);
        let work = self.cancel(position).work;
        self.start_plan(Some(if is_held { work } else { work.again() }));
    }

    fn take_goal(&mut self, goal: String, steps: Vec<PlanStep>, dropped: &[String]) -> Result<(), OrderRefusal> {
        let is_new = |id: &str| steps.iter().any(|step| step.spec.id == id);
        let stays = self.state.features.iter().filter(|feature| {
            let id = &feature.spec.id;
            feature.status != Dropped && !is_new(id) && !dropped.contains(id)
        });
        let stays = stays.map(|feature| PlanStep { spec: feature.spec.clone(), on_failure: feature.on_failure });
        let all: Vec<PlanStep> = stays.chain(steps.iter().cloned()).collect();
        let accepted = plan::accept(Plan { steps: all, notes: String::new() }, &self.state.setup, &self.state.limits)?;
        for id in steps.iter().map(|step| &step.spec.id).chain(dropped) {
            self.check_not_committing(id)?;
        }
        self.state.goal = goal;
        accepted.warnings.into_iter().for_each(|warning| self.warn(warning));
        for step in accepted.steps.into_iter().filter(|step| is_new(&step.spec.id)) {
            self.take_changed(step);
        }
        for id in dropped {
            self.set_status(id, Dropped, "not in the goal any more");
            self.leave(id);
        }
        if !(steps.is_empty() && dropped.is_empty()) {
            self.edited();
        }
        Ok(())
    }

    /// A feature that the goal adds or changes.
    fn take_changed(&mut self, step: PlanStep) {
        let id = step.spec.id.clone();
        let Some(position) = self.state.features.iter().position(|feature| feature.spec.id == id) else {
            let feature = self.feature_of(step);
            self.state.features.push(feature);
            return self.set_status(&id, NotStarted, "added by the goal");
        };
        let feature = &mut self.state.features[position];
        let goes_on = feature.status == InProgress;
        feature.spec = step.spec;
        feature.offered = None;
        feature.consent = None;
        feature.attempts_forgiven = feature.attempts;
        let is_ready = select::dependencies_pass(&self.state.features[position], &self.state.features);
        let status = if goes_on && is_ready { InProgress } else { NotStarted };
        self.set_status(&id, status, "changed by the goal");
        self.leave(&id);
    }
}
