//! A pipeline without workable steps: it asks the planner for the remaining steps, or a person, or the planner for a
//! synthesis of the results.
//!
//! Passing steps are kept and not run again. Refuses to call a plan done that has a failing step.

use super::Turn;
use crate::action::{EndStatus, StepSummary, Work, WorkKind};
use crate::input::Strategy;
use crate::plan::{self, Accepted};
use crate::state::{Feature, WaitFor};
use crate::{select, texts};
use longhaul_core::event::Event;
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus::{Dropped, Failing, NotStarted, Passing};
use longhaul_core::work::{Issue, OnFailure, Plan, PlanStep, Synthesis};

impl Turn<'_> {
    /// True when a step failed for good that the plan marks as fatal.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborting().is_some()
    }

    pub(super) fn aborting(&self) -> Option<&Feature> {
        let aborts = |feature: &&Feature| feature.status == Failing && feature.on_failure == OnFailure::Abort;
        self.state.features.iter().find(aborts).filter(|_| self.state.setup.strategy != Strategy::Session)
    }

    /// No step is active and none can begin.
    pub(super) fn end_of_steps(&mut self) {
        if let Some(step) = self.aborting() {
            let summary = format!("given up, as the plan says, since `{}` failed", step.spec.id);
            return self.end(EndStatus::Incomplete, format!("{summary}; {}", texts::summary(self.state)));
        }
        let may_replan = self.state.counts.replans < self.state.limits.replans_max;
        let (fails, is_doubtful) = (self.failed_steps().next().is_some(), self.doubtful_steps().next().is_some());
        match fails {
            true if !may_replan => return self.ask_about_failures(),
            _ if may_replan && (fails || is_doubtful) => return self.replan(),
            _ => {}
        }
        let open = |feature: &Feature| !matches!(feature.status, Passing | Dropped) && !select::is_skipped(feature);
        let nothing_to_say = self.passing().next().is_none();
        if nothing_to_say || self.state.answer.is_some() || self.state.features.iter().any(open) {
            return self.end_as_it_stands();
        }
        self.synthesize();
    }

    /// Passing steps included, so that a planner can see what is left.
    pub(super) fn ended_steps(&self) -> impl Iterator<Item = &Feature> {
        self.state.features.iter().filter(|feature| matches!(feature.status, Passing | Failing))
    }

    pub(super) fn failed_steps(&self) -> impl Iterator<Item = &Feature> {
        self.state.features.iter().filter(|feature| feature.status == Failing && !select::is_skipped(feature))
    }

    /// Passing steps whose agents are not confident: worth another look while plans are left.
    pub(super) fn doubtful_steps(&self) -> impl Iterator<Item = &Feature> {
        let percent_min = self.state.limits.confidence_percent_min;
        let is_doubtful = move |feature: &&Feature| {
            !feature.doubted && wants_replan(true, feature.confidence, f64::from(percent_min) / 100.0)
        };
        self.passing().filter(is_doubtful)
    }

    pub(super) fn replan(&mut self) {
        self.state.counts.replans = self.state.counts.replans.saturating_add(1);
        let work = self.replan_work();
        self.start(None, work);
    }

    pub(super) fn replan_work(&mut self) -> Work {
        let job = WorkKind::Replan {
            goal: texts::goal(self.state),
            plan: self.plan_as_it_stands(),
            results: self.ended_steps().map(report_of).collect(),
        };
        self.work_of_planner("replan", job)
    }

    /// Under a key of its own even when a count starts again.
    pub(super) fn work_of_planner(&mut self, name: &str, job: WorkKind) -> Work {
        self.state.asked_again = self.state.asked_again.saturating_add(1);
        Work::new(format!("{name}/{}", self.state.asked_again), job)
    }

    fn plan_as_it_stands(&self) -> Plan {
        let there = self.state.features.iter().filter(|feature| feature.status != Dropped);
        let step = |feature: &Feature| PlanStep { spec: feature.spec.clone(), on_failure: feature.on_failure };
        Plan { steps: there.map(step).collect(), notes: String::new() }
    }

    pub(super) fn replanned(&mut self, work: Work, plan: Plan) {
        let notes = truncate(&plan.notes, self.state.limits.text_bytes_max);
        let (plan, mut warnings) = match self.state.is_ask() {
            true => self.with_fresh_ids(plan),
            false => self.without_what_passed(plan),
        };
        let kept: Vec<_> = self.passing().map(|feature| &feature.spec).collect();
        match plan::accept_beside(plan, &kept, &self.state.setup, &self.state.limits) {
            Ok(mut accepted) => {
                warnings.append(&mut accepted.warnings);
                accepted.warnings = warnings;
                self.try_or_take(work, accepted, notes);
            }
            Err(error) => self.plan_refused(work, error.to_string()),
        }
    }

    pub(super) fn passing(&self) -> impl Iterator<Item = &Feature> {
        self.state.features.iter().filter(|feature| feature.status == Passing)
    }

    fn without_what_passed(&self, mut plan: Plan) -> (Plan, Vec<String>) {
        let passes = |step: &PlanStep| self.passing().any(|feature| feature.spec.id == step.spec.id);
        let (kept, rest): (Vec<_>, Vec<_>) = plan.steps.into_iter().partition(passes);
        plan.steps = rest;
        let names: Vec<_> = kept.iter().map(|step| format!("`{}`", step.spec.id)).collect();
        let warning = format!("the new plan names what passes already and is kept: {}", names.join(", "));
        (plan, if names.is_empty() { Vec::new() } else { vec![warning] })
    }

    /// The new plan replaces the remaining steps: steps that it does not name are dropped.
    pub(super) fn take_replan(&mut self, accepted: Accepted, notes: String) {
        let steps: Vec<_> = accepted.steps.iter().map(|step| (step.spec.id.clone(), step.spec.title.clone())).collect();
        let kept = self.passing().map(|feature| feature.spec.id.clone()).collect();
        let replan = self.state.counts.replans;
        accepted.warnings.into_iter().for_each(|warning| self.warn(warning));
        self.emit(Event::Replanned { replan, features: steps.clone(), kept, notes });
        let gone = |feature: &&Feature| {
            !matches!(feature.status, Passing | Dropped) && !steps.iter().any(|(id, _)| *id == feature.spec.id)
        };
        let gone: Vec<_> = self.state.features.iter().filter(gone).map(|feature| feature.spec.id.clone()).collect();
        for id in gone {
            self.set_status(&id, Dropped, &format!("not in the plan any more (replan {replan})"));
        }
        self.plan_taken();
        accepted.steps.into_iter().for_each(|step| self.take_step(step));
        self.advance();
    }

    fn take_step(&mut self, step: PlanStep) {
        let id = step.spec.id.clone();
        let on_failure = step.on_failure;
        let Some(feature) = self.state.feature_mut(&id) else {
            let feature = self.feature_of(step);
            return self.state.features.push(feature);
        };
        feature.spec = step.spec;
        feature.on_failure = on_failure;
        feature.attempts_forgiven = feature.attempts;
        feature.proposed = false;
        feature.offered = None;
        feature.consent = None;
        self.set_status(&id, NotStarted, "planned again");
    }

    /// As many plans failed as are allowed: the goal is in question, which a person decides.
    fn ask_about_failures(&mut self) {
        let plans = self.state.counts.replans.saturating_add(1);
        let question = format!(
            "{plans} plans did not lead to the goal; {}; what should be done differently?",
            texts::summary(self.state)
        );
        let question = self.line(&question);
        let work = self.replan_work();
        self.ask(None, work, WaitFor::Plan, &question, "longhaul answer RUN --text ANSWER");
    }

    pub(super) fn synthesize(&mut self) {
        let job =
            WorkKind::Synthesize { goal: texts::goal(self.state), results: self.passing().map(report_of).collect() };
        let work = self.work_of_planner("synthesize", job);
        self.start(None, work);
    }

    pub(super) fn synthesized(&mut self, synthesis: Synthesis) {
        let bytes_max = self.state.limits.text_bytes_max;
        let cut = |texts: Vec<String>| -> Vec<String> {
            texts.iter().take(self.state.limits.issues_max).map(|text| texts::line(text, bytes_max)).collect()
        };
        let synthesis = Synthesis {
            answer: match self.state.is_ask() {
                true => texts::json_within(&synthesis.answer, self.state.limits.answer_bytes_max),
                false => truncate(&synthesis.answer, self.state.limits.instruction_bytes_max),
            },
            confidence: synthesis.confidence.map(|it| if it.is_finite() { it.clamp(0.0, 1.0) } else { 0.0 }),
            conflicts: cut(synthesis.conflicts),
            unknowns: cut(synthesis.unknowns),
        };
        self.take_answer(synthesis);
    }

    /// The steps pass, so the work is done: their summaries replace an answer.
    pub(super) fn not_synthesized(&mut self, why: &str) {
        self.warn(format!("the planner gave no answer, so the steps' own are joined: {why}"));
        let words = |feature: &Feature| match feature.answer.as_str() {
            "" => feature.summary.clone(),
            answer => texts::plain(answer),
        };
        let said: Vec<_> = self.passing().map(|feature| format!("{}: {}", feature.spec.id, words(feature))).collect();
        let answer = truncate(&said.join("\n"), self.state.limits.instruction_bytes_max);
        let answer = serde_json::Value::String(answer).to_string();
        self.take_answer(Synthesis { answer, confidence: Some(0.5), conflicts: Vec::new(), unknowns: Vec::new() });
    }

    pub(super) fn take_answer(&mut self, synthesis: Synthesis) {
        self.emit(Event::Answered { answer: synthesis.answer.clone(), confidence: synthesis.confidence });
        self.state.answer = Some(synthesis);
        self.end_as_it_stands();
    }
}

/// True when a step's result needs another plan: it failed, or its agent's confidence is below `confidence_min`. A
/// result without a confidence is not doubted.
#[must_use]
pub fn wants_replan(passed: bool, confidence: Option<f64>, confidence_min: f64) -> bool {
    !passed || confidence.is_some_and(|confidence| confidence < confidence_min)
}

fn report_of(feature: &Feature) -> StepSummary {
    StepSummary {
        step: feature.spec.id.clone(),
        passed: feature.status == Passing,
        generated: feature.generated.clone(),
        issues: match &feature.last_error {
            Some(why) if feature.issues.is_empty() && feature.status == Failing => vec![Issue::general(why.clone())],
            _ => feature.issues.clone(),
        },
    }
}
