//! Orders of the operator about the whole run, and the times and answers that it waits for.

use super::{Ignored, Refusal, Turn};
use crate::action::{EndStatus, Park};
use crate::input::Setup;
use crate::limits::HarnessLimits;
use crate::state::{BlockedBy, Counts, Note, Phase, WaitFor};
use longhaul_core::RunId;
use longhaul_core::event::Event;
use longhaul_core::work::FeatureStatus::{Blocked, Failing, NotStarted};

/// What an order led to: nothing to add, or why it changed nothing.
type Taken = Result<Option<Ignored>, Refusal>;

impl Turn<'_> {
    pub(super) fn begin(
        &mut self,
        run: RunId,
        goal: String,
        context: serde_json::Value,
        setup: Setup,
        limits: HarnessLimits,
    ) -> Taken {
        if self.state.phase != Phase::New {
            return Ok(Some(Ignored::NothingToDo));
        }
        check_limits(&limits)?;
        if goal.trim().is_empty() {
            return Err(Refusal::NoGoal);
        }
        self.state.run = Some(run);
        self.state.goal = goal;
        self.state.context = context;
        self.state.setup = setup;
        self.state.limits = limits;
        self.start_plan(None);
        Ok(None)
    }

    /// Work waits for a person, and will go on under its key.
    pub(super) fn parked(&mut self, key: &str, question: &str, is_effect: bool) -> Option<Ignored> {
        let question = self.line(question);
        let reason = match &self.state.phase {
            Phase::Running => "",
            Phase::Waiting { wait: WaitFor::Work, park } => &park.reason,
            Phase::New | Phase::Waiting { .. } | Phase::Ended { .. } => return Some(Ignored::NotAwaited),
        };
        if self.state.outstanding.as_ref().is_none_or(|work| work.key() != key) {
            return Some(Ignored::NotAwaited);
        }
        if reason == question && self.is_waiting() {
            return Some(Ignored::NothingToDo);
        }
        let answer_with = if is_effect {
            "longhaul answer RUN --happened JSON | --did-not-happen | --skip"
        } else {
            "longhaul answer RUN --text ANSWER"
        };
        self.ask(WaitFor::Work, &question, answer_with);
        None
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state.phase, Phase::Waiting { .. })
    }

    pub(super) fn answered_run(&mut self, answer: &str) -> Taken {
        let Phase::Waiting { wait, park } = self.state.phase.clone() else {
            return Err(Refusal::NoQuestion { feature: None });
        };
        match wait {
            WaitFor::Outage => return Err(Refusal::NoQuestion { feature: None }),
            WaitFor::Work | WaitFor::Repository => self.go_on(),
            WaitFor::Plan => {
                let text = self.line(answer);
                self.note_for_planner(park.reason, text);
                self.plan_again();
            }
        }
        Ok(None)
    }

    /// Asks for the work that a wait or an end held back.
    fn go_on(&mut self) {
        self.state.phase = Phase::Running;
        match self.state.outstanding.take() {
            Some(work) => self.start(work),
            None => self.advance(),
        }
    }

    /// Asks for the plan that a wait or an end held back, with what was said since.
    fn plan_again(&mut self) {
        let held = self.state.outstanding.take();
        self.start_plan(held);
    }

    pub(super) fn note_for_planner(&mut self, about: String, text: String) {
        self.state.plan_notes.push(Note { about, text });
        keep_last(&mut self.state.plan_notes, self.state.limits.answers_max);
    }

    pub(super) fn answered_feature(&mut self, id: &str, answer: &str) -> Taken {
        let (answer, answers_max) = (self.line(answer), self.state.limits.answers_max);
        let open = |by| matches!(by, Some(BlockedBy::Question | BlockedBy::Denial));
        let ended = self.ended();
        if let Some(status @ (EndStatus::Failed | EndStatus::Abandoned)) = ended {
            return Err(Refusal::Ended { status });
        }
        let Some(feature) = self.state.feature_mut(id) else {
            return Err(Refusal::UnknownFeature { feature: crate::texts::line(id, 80) });
        };
        if !open(feature.blocked_by) {
            return Err(Refusal::NoQuestion { feature: Some(id.to_owned()) });
        }
        feature.answers.push(Note { about: feature.why.clone(), text: answer });
        keep_last(&mut feature.answers, answers_max);
        self.set_status(id, NotStarted, "its question was answered");
        self.settle_or_reopen();
        Ok(None)
    }

    pub(super) fn woke(&mut self) -> Option<Ignored> {
        match &self.state.phase {
            Phase::Waiting { park: Park { until_ms: Some(until), .. }, .. } if self.at_ms < *until => {
                Some(Ignored::TooEarly)
            }
            Phase::Waiting { wait: WaitFor::Outage, .. } => {
                self.go_on();
                None
            }
            Phase::New | Phase::Running | Phase::Waiting { .. } | Phase::Ended { .. } => Some(Ignored::NothingToDo),
        }
    }

    pub(super) fn pause(&mut self) -> Taken {
        match self.state.phase {
            Phase::New => return Err(Refusal::NotBegun),
            Phase::Ended { .. } => return Ok(Some(Ignored::NothingToDo)),
            Phase::Running | Phase::Waiting { .. } if self.state.paused => return Ok(Some(Ignored::NothingToDo)),
            Phase::Running | Phase::Waiting { .. } => {}
        }
        self.state.paused = true;
        self.emit(Event::Paused);
        Ok(None)
    }

    pub(super) fn resume(&mut self, retry_failing: bool, limits: Option<HarnessLimits>) -> Taken {
        if self.state.phase == Phase::New {
            return Err(Refusal::NotBegun);
        }
        if self.ended() == Some(EndStatus::Abandoned) {
            return Err(Refusal::Ended { status: EndStatus::Abandoned });
        }
        if let Some(limits) = &limits {
            check_limits(limits)?;
        }
        let goes_on = self.state.phase == Phase::Running && !self.state.paused;
        let changes = limits.is_some() || retry_failing;
        if self.ended() == Some(EndStatus::Completed) || (goes_on && !changes) {
            return Ok(Some(Ignored::NothingToDo));
        }
        self.state.limits = limits.unwrap_or_else(|| self.state.limits.clone());
        if retry_failing {
            self.forgive();
        }
        if self.state.paused {
            self.state.paused = false;
            self.emit(Event::RunResumed);
        }
        if !goes_on {
            self.take_up();
        }
        Ok(None)
    }

    /// Lets features that are failing, or that were denied something, be tried again.
    fn forgive(&mut self) {
        self.free_denied();
        for feature in self.state.features.iter_mut().filter(|feature| feature.status == Failing) {
            feature.attempts_forgiven = feature.attempts;
        }
    }

    fn take_up(&mut self) {
        match &self.state.phase {
            Phase::New => {}
            Phase::Running => self.actions.extend(super::pending(self.state)),
            Phase::Waiting { wait: WaitFor::Outage | WaitFor::Repository, .. } => self.go_on(),
            // The question stands.
            Phase::Waiting { wait: WaitFor::Work | WaitFor::Plan, park } => {
                self.actions.push(crate::Action::Park(park.clone()));
            }
            Phase::Ended { .. } => self.reopen(),
        }
    }

    /// Takes up a run that has ended, with the counts of what may go wrong in a row at zero.
    pub(super) fn reopen(&mut self) {
        self.state.counts = Counts { edits: self.state.counts.edits, ..Counts::default() };
        self.emit(Event::RunResumed);
        self.free_denied();
        if self.state.is_planning() {
            return self.plan_again();
        }
        self.go_on();
    }

    /// What was denied may be allowed by now.
    fn free_denied(&mut self) {
        let denied =
            |feature: &&crate::Feature| feature.status == Blocked && feature.blocked_by == Some(BlockedBy::Denial);
        let ids: Vec<_> = self.state.features.iter().filter(denied).map(|feature| feature.spec.id.clone()).collect();
        for id in ids {
            self.set_status(&id, NotStarted, "tried again after a refusal");
        }
    }

    /// After a change of the features: who waits for whom, and a run that had ended goes on.
    pub(super) fn settle_or_reopen(&mut self) {
        self.settle();
        if self.ended().is_some() {
            self.reopen();
        }
    }

    pub(super) fn ended(&self) -> Option<EndStatus> {
        match self.state.phase {
            Phase::Ended { status, .. } => Some(status),
            Phase::New | Phase::Running | Phase::Waiting { .. } => None,
        }
    }

    pub(super) fn abandon(&mut self, reason: &str) -> Taken {
        match self.ended() {
            None if self.state.phase == Phase::New => return Err(Refusal::NotBegun),
            Some(EndStatus::Completed | EndStatus::Failed | EndStatus::Abandoned) => {
                return Ok(Some(Ignored::NothingToDo));
            }
            Some(EndStatus::Incomplete) => self.state.outstanding = None,
            None => self.cancel(),
        }
        self.state.session = None;
        let reason = self.line(reason);
        let summary = format!("abandoned: {reason}; {}", crate::texts::summary(self.state));
        self.end(EndStatus::Abandoned, summary);
        Ok(None)
    }
}

fn check_limits(limits: &HarnessLimits) -> Result<(), Refusal> {
    limits.unusable().map_or(Ok(()), |limit| Err(Refusal::UnusableLimit { limit }))
}

fn keep_last(notes: &mut Vec<Note>, count_max: usize) {
    let surplus = notes.len().saturating_sub(count_max);
    notes.drain(..surplus);
}
