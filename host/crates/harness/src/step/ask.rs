//! An ask: one agent answers, or the tasks of a plan do.
//!
//! The operator or a model chooses the agent that answers; the model's reply is not trusted: it is searched for a known
//! name, and anything else becomes the safest choice. A task is a session without a tree: it gives an answer or fails,
//! and its answer reaches the tasks that depend on it. Refuses to judge an answer.

use super::{CapReached, Ignored, OrderRefusal, Turn};
use crate::action::{Choice, EndStatus, Park, Work, WorkKind};
use crate::input::Dispatch;
use crate::state::{BlockedBy, Cap, Feature, Lane, Phase, Session, Wait, WaitFor};
use crate::{select, texts};
use longhaul_core::event::Event;
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus::{Dropped, InProgress, Passing};
use longhaul_core::work::{FeatureSpec, OnFailure, Outcome, Plan, Synthesis};
use std::collections::{BTreeMap, BTreeSet};

/// The id of the task of a single agent.
const ONLY: &str = "answer";

/// The word for a goal that needs a plan.
const COMPLEX: &str = "complex";

/// Bytes of the suffix that makes an id fresh: `-r` and a number.
const NUMBER_BYTES_MAX: usize = 12;

impl Turn<'_> {
    /// Begins an ask.
    pub(super) fn dispatch(&mut self) -> Result<(), OrderRefusal> {
        let setup = &self.state.setup;
        let first = setup.agents.first().cloned();
        let Some(first) = first else {
            return Err(OrderRefusal::UnknownAgent { agent: String::new(), known: "none".to_owned() });
        };
        let is_only = setup.agents.len() == 1;
        match setup.dispatch.clone() {
            Dispatch::Agent(agent) if !setup.agents.contains(&agent) => {
                let known = texts::names(&setup.agents);
                return Err(OrderRefusal::UnknownAgent { agent: texts::line(&agent, 80), known });
            }
            Dispatch::Agent(agent) => self.give_to("agent", &agent, "asked for by name"),
            Dispatch::Plan => self.plan_tasks("asked for"),
            Dispatch::Auto | Dispatch::Route if is_only => self.give_to("agent", &first, "the only one"),
            Dispatch::Auto => self.choose(Choice::Path),
            Dispatch::Route => self.choose(Choice::Agent),
        }
        Ok(())
    }

    fn choose(&mut self, choice: Choice) {
        let (system, prompt) = texts::choice(self.state, choice);
        let (name, among) = match choice {
            Choice::Path => ("choose/path", ["simple", COMPLEX].map(str::to_owned).to_vec()),
            Choice::Agent => ("choose/agent", self.state.setup.agents.clone()),
        };
        self.start(None, Work::new(name.to_owned(), WorkKind::Choose { choice, system, prompt, among }));
    }

    pub(super) fn chosen(&mut self, work: &Work, words: &str) {
        let WorkKind::Choose { choice, .. } = work.job else { return };
        match choice {
            Choice::Path if says(words, COMPLEX) => self.plan_tasks("a model calls the goal complex"),
            Choice::Path => self.choose(Choice::Agent),
            Choice::Agent => match self.named(words) {
                Some(agent) => self.give_to("route", &agent, "a model chose it"),
                None => {
                    let why = format!("a model chose `{}`, which there is not", texts::line(words, 80));
                    let agent = self.default_agent().to_owned();
                    self.give_to("route", &agent, &why);
                }
            },
        }
    }

    /// A missing choice does not fail the ask.
    pub(super) fn not_chosen(&mut self, choice: Choice, why: &str) {
        self.warn(format!("no model could choose the agent: {why}"));
        match choice {
            Choice::Path => self.choose(Choice::Agent),
            Choice::Agent => {
                let agent = self.default_agent().to_owned();
                self.give_to("route", &agent, "no model chose");
            }
        }
    }

    /// The agent whose name the words are, or the only name that they contain as a word.
    fn named(&self, words: &str) -> Option<String> {
        let agents = &self.state.setup.agents;
        let exact = agents.iter().find(|agent| words.trim() == agent.as_str());
        let mut said = agents.iter().filter(|agent| says(words, agent));
        exact.or_else(|| said.next().filter(|_| said.next().is_none())).cloned()
    }

    /// The agent for tasks with an unknown agent.
    pub(super) fn default_agent(&self) -> &str {
        let setup = &self.state.setup;
        let named = setup.default_agent.as_ref().filter(|agent| setup.agents.contains(agent));
        named.or(setup.agents.first()).map_or("", String::as_str)
    }

    fn plan_tasks(&mut self, why: &str) {
        self.emit(Event::Dispatched { path: "plan".to_owned(), agent: None, why: why.to_owned() });
        self.start_plan(None);
    }

    fn give_to(&mut self, path: &str, agent: &str, why: &str) {
        self.emit(Event::Dispatched { path: path.to_owned(), agent: Some(agent.to_owned()), why: why.to_owned() });
        let spec = FeatureSpec {
            id: ONLY.to_owned(),
            title: texts::line(&self.state.goal, self.state.limits.title_bytes_max),
            instruction: self.state.goal.clone(),
            category: "functional".to_owned(),
            priority: 5,
            agent: Some(agent.to_owned()),
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        };
        self.state.direct = true;
        self.state.phase = Phase::Running;
        self.state.features = vec![Feature { on_failure: OnFailure::Replan, ..Feature::new(spec) }];
        self.advance();
    }

    pub(super) fn task_answered(&mut self, session: &Session, work: &Work, outcome: &Outcome) {
        let summary = self.line(&outcome.summary);
        let answer = texts::answer_of(&outcome.output, self.state.limits.answer_bytes_max);
        let unknowns: Vec<_> =
            outcome.unknowns.iter().take(self.state.limits.issues_max).map(|it| self.line(it)).collect();
        let ignored = matches!(&work.job, WorkKind::Generate { agent, .. } if self.state.setup.confidence_ignored.contains(agent));
        let confidence = outcome.confidence.filter(|confidence| !ignored && (0.0..=1.0).contains(confidence));
        self.state.counts.failures_equal = 0;
        self.state.counts.failure_last.clear();
        if let Some(feature) = self.state.feature_mut(&session.feature) {
            feature.summary = summary;
            feature.generated = Some(work.key());
            feature.confidence = confidence;
            feature.doubted = false;
            feature.answer.clone_from(&answer);
            feature.issues.clear();
        }
        self.set_status(&session.feature, Passing, "answered");
        if self.state.direct {
            let synthesis =
                Synthesis { answer, confidence: Some(confidence.unwrap_or(1.0)), conflicts: Vec::new(), unknowns };
            self.emit(Event::Answered { answer: synthesis.answer.clone(), confidence: synthesis.confidence });
            self.state.answer = Some(synthesis);
        }
        self.end_session(session);
    }

    /// No task is active and none can begin.
    pub(super) fn end_of_tasks(&mut self) {
        if let Some(task) = self.aborting() {
            let summary = format!("given up, as the plan says, since `{}` failed", task.spec.id);
            return self.end(EndStatus::Incomplete, format!("{summary}; {}", texts::summary(self.state)));
        }
        let waits = |feature: &Feature| feature.blocked_by.is_some_and(|by| by != BlockedBy::Dependency);
        let stands = self.state.direct || self.state.answer.is_some() || self.state.features.iter().any(waits);
        let wants = self.failed_steps().next().is_some() || self.doubtful_steps().next().is_some();
        if !stands && wants && self.state.counts.replans < self.state.limits.replans_max {
            return self.replan_doubted();
        }
        if stands || self.passing().next().is_none() {
            return self.end_as_it_stands();
        }
        self.synthesize();
    }

    /// Each answer is doubted once: the resulting plan may let it stand.
    fn replan_doubted(&mut self) {
        let doubted: Vec<_> = self.doubtful_steps().map(|feature| feature.spec.id.clone()).collect();
        for id in doubted {
            if let Some(feature) = self.state.feature_mut(&id) {
                feature.doubted = true;
            }
        }
        self.replan();
    }

    /// The planner was asked as often as allowed, so the present answers have to be enough.
    pub(super) fn go_on_without_plan(&mut self, why: &str) {
        self.warn(format!("there is no new plan: {why}"));
        self.state.counts.replans = self.state.limits.replans_max;
        self.advance();
    }

    /// A plan was accepted: the next request for one has all its attempts.
    pub(super) fn plan_taken(&mut self) {
        if self.state.is_ask() {
            self.state.counts.plan_attempts = 0;
            self.state.plan_notes.retain(|note| note.about != super::reports::PLAN_BEFORE);
        }
    }

    /// True when there is an answer, and each failed task is one that the plan continues without.
    pub(super) fn is_answered(&self) -> bool {
        let fine = |feature: &Feature| matches!(feature.status, Passing | Dropped) || select::is_skipped(feature);
        self.state.answer.is_some() && self.state.features.iter().all(fine)
    }

    /// The tasks of a new plan under fresh ids, so that no answer is taken for another's. A task that equals an
    /// answered one is that task.
    pub(super) fn with_fresh_ids(&self, mut plan: Plan) -> (Plan, Vec<String>) {
        let same = |spec: &FeatureSpec| {
            self.passing().any(|feature| feature.spec.id == spec.id && feature.spec.instruction == spec.instruction)
        };
        let (kept, rest): (Vec<_>, Vec<_>) = plan.steps.into_iter().partition(|step| same(&step.spec));
        let own: BTreeSet<_> = rest.iter().map(|step| step.spec.id.clone()).collect();
        let mut fresh: BTreeMap<String, String> = BTreeMap::new();
        // An id of the maximal length leaves no space for a number.
        let stem_bytes_max = self.state.limits.id_bytes_max.saturating_sub(NUMBER_BYTES_MAX);
        for id in own.iter().filter(|id| self.state.feature(id).is_some()) {
            let stem = &id[..id.floor_char_boundary(stem_bytes_max)];
            let numbered = |number: u32| format!("{stem}-r{number}");
            let is_given = |id: &String| fresh.values().any(|given| given == id);
            let is_free = |id: &String| !own.contains(id) && self.state.feature(id).is_none() && !is_given(id);
            let free = (self.state.asked_again..).map(numbered).find(is_free).unwrap_or_default();
            fresh.insert(id.clone(), free);
        }
        plan.steps = rest;
        for step in &mut plan.steps {
            let names = std::iter::once(&mut step.spec.id).chain(&mut step.spec.depends_on);
            names.for_each(|name| {
                if let Some(free) = fresh.get(name) {
                    name.clone_from(free)
                }
            });
        }
        let names = texts::names(kept.iter().map(|step| &step.spec.id));
        let warning = format!("the new plan names what is answered already and is kept: {names}");
        (plan, if kept.is_empty() { Vec::new() } else { vec![warning] })
    }

    // Inputs of a person, or a clock, during the ask.

    pub(super) fn steered(&mut self, feature: Option<String>, text: &str) -> Result<Option<Ignored>, OrderRefusal> {
        let text = truncate(text.trim(), self.state.limits.text_bytes_max);
        if self.state.phase != Phase::Running || text.is_empty() {
            return Err(OrderRefusal::NothingToSteer);
        }
        let edits_max = self.state.limits.edits_max;
        if self.state.counts.edits >= edits_max {
            return Err(OrderRefusal::TooManyEdits { edits_max });
        }
        let told: Vec<Option<String>> = match feature {
            Some(id) if self.state.feature(&id).is_none() => {
                return Err(OrderRefusal::UnknownFeature { feature: texts::line(&id, 80) });
            }
            Some(id) => vec![Some(id)],
            None => self.state.lanes.iter().map(|lane| lane.work.feature().map(str::to_owned)).collect(),
        };
        let is_open = |id: &Option<String>| {
            let feature = id.as_ref().and_then(|id| self.state.feature(id));
            feature.is_none_or(|feature| !matches!(feature.status, Passing | Dropped))
        };
        let told: Vec<_> = told.into_iter().filter(is_open).collect();
        if told.is_empty() {
            return Err(OrderRefusal::NothingToSteer);
        }
        self.state.counts.edits = self.state.counts.edits.saturating_add(1);
        for feature in told {
            self.emit(Event::Steered { feature, text: text.clone() });
        }
        Ok(None)
    }

    pub(super) fn cancel_task(&mut self, id: &str) -> Result<Option<Ignored>, OrderRefusal> {
        if let Some(status) = self.ended() {
            return Err(OrderRefusal::Ended { status });
        }
        let Some((_, feature)) = self.find(id) else {
            return Err(OrderRefusal::UnknownFeature { feature: texts::line(id, 80) });
        };
        match (feature.status, feature.blocked_by) {
            (Passing, _) => return Err(OrderRefusal::AlreadyPasses { feature: id.to_owned() }),
            (Dropped, _) | (_, Some(BlockedBy::Cancel)) => return Ok(Some(Ignored::NothingToDo)),
            _ => self.check_not_committing(id)?,
        }
        if self.state.is_ask() {
            self.block(id, BlockedBy::Cancel, "stopped by a person; a resume goes on where it was");
            self.set_aside(id);
        } else {
            self.block(id, BlockedBy::Cancel, "stopped by a person; a resume begins it anew");
            self.leave(id);
        }
        self.advance();
        Ok(None)
    }

    /// There is no tree to be cleaned, so the task keeps its place in its journal.
    fn set_aside(&mut self, id: &str) {
        let Some(position) = self.state.lane_of(id) else { return };
        let lane = self.cancel(position);
        self.state.set_aside.retain(|aside| aside.work.feature() != Some(id));
        self.state.set_aside.push(Lane { wait: None, ..lane });
    }

    /// Continues a stopped task, unless its spec has changed.
    pub(super) fn go_on_with(&mut self, id: &str) -> bool {
        let Some(at) = self.state.set_aside.iter().position(|aside| aside.work.feature() == Some(id)) else {
            return false;
        };
        let Lane { session, work, .. } = self.state.set_aside.remove(at);
        let asked = self.state.feature(id).map(|feature| texts::ask_task(self.state, feature));
        if !matches!(&work.job, WorkKind::Generate { task, .. } if asked.as_ref() == Some(task)) {
            return false;
        }
        // A killed process did not report the usage.
        self.state.cancelled.remove(&work.key());
        self.set_status(id, InProgress, "goes on where it was");
        self.start(session, work);
        true
    }

    /// Stops at the present state: the work continues from its journals after a resume with a higher cap.
    pub(super) fn wall_used_up(&mut self, spent_ms: u64) -> Option<Ignored> {
        let max = self.state.limits.wall_ms_max.filter(|max| spent_ms >= *max);
        let Some(max) = max.filter(|_| self.state.phase == Phase::Running) else { return Some(Ignored::NothingToDo) };
        let text = format!("the run worked for {spent_ms} of {max} ms; raise wall_ms_max and resume");
        for lane in self.state.lanes.iter_mut().filter(|lane| lane.wait.is_none()) {
            let park = Park { reason: text.clone(), until_ms: None };
            lane.wait = Some(Wait { wait: WaitFor::Cap(Cap::WallMsMax), park });
        }
        self.end_at_cap(CapReached { name: Cap::WallMsMax.as_str(), text });
        None
    }
}

/// True when `words` contain `word` by itself, in any letter case.
fn says(words: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    words.split(|c: char| !is_part(c)).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::says;

    #[test]
    fn a_word_is_found_by_itself_and_not_within_another() {
        assert!(says("It is Complex.", "complex"));
        assert!(!says("uncomplex, over-complex", "complex"));
    }
}
