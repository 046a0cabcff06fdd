//! Proposed checks of a planner, and features that no check proves.
//!
//! A proposed check runs on the tree before any work, where it must fail. One that passes there is reported as vacuous;
//! one that cannot be loaded goes back to the planner once, and is then left out of the plan. The operator's own checks
//! are not tried: a check whose text is in the goal is theirs. A feature that only vacuous checks decide, and that no
//! evaluator can judge otherwise or whose work changed nothing, waits for a person; the rest of the run continues. A
//! feature that the previous run built with the same spec passes by that run's verdict.

use super::Turn;
use super::reports::PLAN_BEFORE;
use crate::action::{Work, WorkKind};
use crate::evidence;
use crate::input::{Strategy, Trial, TrialOutcome};
use crate::plan::{self, Accepted};
use crate::state::{BlockedBy, Consent, Session, digest};
use crate::texts;
use longhaul_core::event::{Event, ProposedCriterion};
use longhaul_core::work::{CheckBody, CheckSpec, Plan, PlanStep};

/// Criteria of a plan that are shown.
const PROPOSED_MAX: usize = 200;

/// Bytes of the text of one that is shown.
const PROPOSED_BYTES_MAX: usize = 300;

impl Turn<'_> {
    /// Tries the planner's proposed checks. Without any the plan is accepted at once.
    pub(super) fn try_or_take(&mut self, planned_by: Work, accepted: Accepted, notes: String) {
        let proposed = self.proposed_checks(&accepted.steps);
        if proposed.is_empty() {
            return self.take(&planned_by, accepted, notes);
        }
        accepted.warnings.into_iter().for_each(|warning| self.warn(warning));
        let name = format!("{}/try", planned_by.key());
        let plan = Plan { steps: accepted.steps, notes };
        self.start(None, Work::new(name, WorkKind::TryChecks { plan, proposed, planned_by: Box::new(planned_by) }));
    }

    pub(super) fn tried(&mut self, work: Work, trials: &[Trial]) {
        let WorkKind::TryChecks { mut plan, planned_by, .. } = work.job else { return };
        let unloadable: Vec<String> = trials.iter().filter_map(|trial| self.unloadable(trial)).collect();
        if !unloadable.is_empty() && self.state.counts.checks_sent_back == 0 {
            self.state.counts.checks_sent_back = 1;
            let why = self.line(&unloadable.join("; "));
            self.warn(format!("the plan goes back to the planner: {why}"));
            self.note_for_planner(PLAN_BEFORE.to_owned(), why);
            return self.start_plan(Some(planned_by.again()));
        }
        for why in unloadable {
            self.warn(format!("{why}; it is left out of the plan"));
        }
        for Trial { feature, check, outcome } in trials {
            let Some(step) = plan.steps.iter_mut().find(|step| step.spec.id == *feature) else { continue };
            match outcome {
                TrialOutcome::Fails => {}
                TrialOutcome::Passes => {
                    self.emit(Event::VacuousCheck { feature: feature.clone(), check: check.clone() })
                }
                TrialOutcome::CannotLoad(_) => leave_out(step, check),
            }
        }
        self.take_tried(*planned_by, plan);
    }

    /// The sessions find out the results of the checks.
    pub(super) fn not_tried(&mut self, work: Work, why: &str) {
        let WorkKind::TryChecks { plan, planned_by, .. } = work.job else { return };
        self.warn(format!("the checks of the plan were not tried before the work: {why}"));
        self.take_tried(*planned_by, plan);
    }

    fn take_tried(&mut self, planned_by: Work, plan: Plan) {
        let notes = plan.notes.clone();
        let kept: Vec<_> = self.passing().map(|feature| &feature.spec).collect();
        // The remaining plan must be able to pass.
        match plan::accept_beside(plan, &kept, &self.state.setup, &self.state.limits) {
            Ok(accepted) => self.take(&planned_by, accepted, notes),
            Err(error) => self.plan_refused(planned_by, error.to_string()),
        }
    }

    fn take(&mut self, planned_by: &Work, accepted: Accepted, notes: String) {
        self.state.counts.checks_sent_back = 0;
        if let WorkKind::Replan { .. } = planned_by.job {
            return self.take_replan(accepted, notes);
        }
        let proposed = self.proposed_criteria(&accepted.steps);
        self.take_plan(accepted, notes, proposed);
    }

    /// Checks that neither the goal nor an existing feature has.
    fn proposed_checks(&self, steps: &[PlanStep]) -> Vec<(String, String)> {
        let goal = self.state.goal.replace('\r', "");
        let is_there = |id: &str, check: &CheckSpec| {
            self.state.feature(id).is_some_and(|feature| feature.spec.checks.contains(check))
        };
        let mut proposed = Vec::new();
        for PlanStep { spec, .. } in steps {
            let own = spec.checks.iter().filter(|check| !is_written(check, &goal) && !is_there(&spec.id, check));
            proposed.extend(own.map(|check| (spec.id.clone(), check.name.clone())));
        }
        proposed
    }

    /// The criteria of features that the goal does not state.
    fn proposed_criteria(&self, steps: &[PlanStep]) -> Vec<ProposedCriterion> {
        if self.state.setup.strategy == Strategy::Ask {
            return Vec::new();
        }
        let goal = self.state.goal.replace('\r', "");
        let of_step = |step: &PlanStep| {
            let spec = step.spec.clone();
            let says = |name: &str| spec.checks.iter().any(|check| check.name == name && is_written(check, &goal));
            let of_goal = |text: &str, check: Option<&str>| goal.contains(text.trim()) || check.is_some_and(says);
            let own = spec.criteria.iter().filter(|one| !of_goal(&one.text, one.check.as_deref()));
            let shown = |text: &str| texts::line(text, PROPOSED_BYTES_MAX);
            let feature = &spec.id;
            own.map(|one| ProposedCriterion {
                feature: feature.clone(),
                text: shown(&one.text),
                check: one.check.clone(),
            })
            .collect::<Vec<_>>()
        };
        steps.iter().flat_map(of_step).take(PROPOSED_MAX).collect()
    }

    fn unloadable(&self, trial: &Trial) -> Option<String> {
        let TrialOutcome::CannotLoad(why) = &trial.outcome else { return None };
        Some(format!("check `{}` of feature `{}` cannot be loaded: {}", trial.check, trial.feature, self.line(why)))
    }

    /// True when the previous run built exactly this feature, and everything that decides it still holds: its checks
    /// passed by that work.
    pub(super) fn passed_before(&self, id: &str) -> bool {
        let Some((_, feature)) = self.find(id) else { return false };
        let before = self.state.setup.passed_before.get(id);
        before == Some(&digest(&feature.spec)) && evidence::is_vacuous(&feature.spec.criteria, &feature.vacuous, true)
    }

    /// True when only vacuous checks decide a feature, under an evaluator that has nothing else.
    pub(super) fn nobody_could_tell(&self, id: &str) -> bool {
        let Some((_, feature)) = self.find(id) else { return false };
        self.state.setup.checks_only.is_some()
            && feature.consent != Some(Consent::Given)
            && evidence::is_vacuous(&feature.spec.criteria, &feature.vacuous, true)
    }

    /// Before anything is spent on work that could not be judged.
    pub(super) fn ask_before_work(&mut self, session: &Session) {
        let evaluator = self.state.setup.checks_only.clone().unwrap_or_default();
        let why = format!(
            "{} passed before the work began and cannot show that it is done, and the evaluator `{evaluator}` judges by \
             checks alone",
            self.vacuous_checks(&session.feature)
        );
        self.ask_for_word(&session.feature, &why, "say what is to be done, which is taken while the checks pass");
        self.end_session(session);
    }

    /// After work that no check proves done.
    pub(super) fn ask_whether_done(&mut self, session: Session) {
        let checks = self.vacuous_checks(&session.feature);
        let why = match session.is_changed {
            true => format!("{checks} passed before the work began, so they do not show that it is done"),
            false => format!("already true before the work began: {checks} passed then, and nothing was changed"),
        };
        self.ask_for_word(&session.feature, &why, "say what is missing");
        self.start_discard(session);
    }

    fn ask_for_word(&mut self, id: &str, why: &str, or: &str) {
        let run = self.state.run.as_ref().map_or("RUN", |run| run.as_str());
        let question = format!(
            "{why}; if there is nothing left to do: longhaul answer {run} --feature {id} --text done; else {or}, or give \
             it a check that fails now: longhaul features edit {id} --python-check FILE"
        );
        let question = self.line(&question);
        self.block(id, BlockedBy::Question, &question);
        if let Some(feature) = self.state.feature_mut(id) {
            feature.consent = Some(Consent::Wanted);
        }
    }

    fn vacuous_checks(&self, id: &str) -> String {
        let names = self.find(id).map(|(_, feature)| feature.spec.checks.iter().map(|check| &check.name));
        let names: Vec<_> = names.into_iter().flatten().collect();
        let what = if names.len() == 1 { "its check" } else { "its checks" };
        format!("{what} {}", texts::names(names))
    }
}

/// True when the operator wrote it: into the goal, or as a command of `[checks]`.
fn is_written(check: &CheckSpec, goal: &str) -> bool {
    match &check.body {
        CheckBody::Native(_) => true,
        CheckBody::Python(source) => goal.contains(source.trim()),
    }
}

/// Its criteria stay, for the evaluator who reads the work.
fn leave_out(step: &mut PlanStep, name: &str) {
    step.spec.checks.retain(|check| check.name != name);
    for criterion in step.spec.criteria.iter_mut().filter(|criterion| criterion.check.as_deref() == Some(name)) {
        criterion.check = None;
    }
}
