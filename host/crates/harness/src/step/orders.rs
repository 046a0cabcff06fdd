//! Orders of the operator about the whole run, and the times and answers that it waits for.

use super::{Ignored, OrderRefusal, Turn};
use crate::action::EndStatus;
use crate::input::{HarnessSetup, PersonRequest};
use crate::limits::HarnessLimits;
use crate::plan;
use crate::state::{AS_A_PERSON_SAYS, BlockedBy, Consent, Counts, Lane, Phase, SessionNote, Wait, WaitFor};
use longhaul_core::RunId;
use longhaul_core::event::Event;
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus::{Blocked, Failing, NotStarted, Passing};
use longhaul_core::work::Plan;

/// The result of an order: nothing to add, or why it changed nothing.
type Taken = Result<Option<Ignored>, OrderRefusal>;

impl Turn<'_> {
    pub(super) fn begin(
        &mut self,
        run: RunId,
        goal: String,
        context: serde_json::Value,
        setup: HarnessSetup,
        limits: HarnessLimits,
    ) -> Taken {
        if self.state.phase != Phase::New {
            return Ok(Some(Ignored::NothingToDo));
        }
        check_limits(&limits)?;
        if goal.trim().is_empty() {
            return Err(OrderRefusal::NoGoal);
        }
        self.state.run = Some(run);
        self.state.goal = goal;
        self.state.context = context;
        self.state.setup = setup;
        self.state.limits = limits;
        match self.state.setup.plan.take() {
            None if self.state.is_ask() => self.dispatch()?,
            None => self.start_plan(None),
            Some(plan) => self.follow(*plan)?,
        }
        Ok(None)
    }

    /// Follows the operator's plan.
    fn follow(&mut self, plan: Plan) -> Result<(), OrderRefusal> {
        let notes = truncate(&plan.notes, self.state.limits.text_bytes_max);
        let accepted = plan::accept(plan, &self.state.setup, &self.state.limits)?;
        self.state.phase = Phase::Running;
        self.take_plan(accepted, notes, Vec::new());
        Ok(())
    }

    /// Work waits for a person, and will continue under its key.
    pub(super) fn parked(&mut self, key: &str, question: &str, wanted: &PersonRequest) -> Option<Ignored> {
        let question = self.line(question);
        let found = self.state.lanes.iter().position(|lane| lane.work.key() == key);
        let Some(position) = found.filter(|_| self.state.phase == Phase::Running) else {
            return Some(Ignored::NotAwaited);
        };
        match &self.state.lanes[position].wait {
            Some(wait) if wait.wait != WaitFor::Work => return Some(Ignored::NotAwaited),
            Some(wait) if wait.park.reason == question => return Some(Ignored::NothingToDo),
            Some(_) | None => {}
        }
        let Lane { session, work, .. } = self.state.lanes.remove(position);
        let answer_with = match (wanted, work.feature()) {
            (PersonRequest::Effect(command), _) => command.clone(),
            (PersonRequest::Words, Some(feature)) => format!("longhaul answer RUN --feature {feature} --text ANSWER"),
            (PersonRequest::Words, None) => "longhaul answer RUN --text ANSWER".to_owned(),
            (PersonRequest::Approval(id), _) => format!("longhaul approvals answer {id} ANSWER"),
        };
        self.ask(session, work, WaitFor::Work, &question, &answer_with);
        None
    }

    /// An answer without a feature is for the one open question.
    pub(super) fn answered_run(&mut self, answer: &str) -> Taken {
        let asks = |lane: &Lane| matches!(&lane.wait, Some(Wait { wait, .. }) if wait.is_for_a_person());
        let asking: Vec<_> = (0..self.state.lanes.len()).filter(|at| asks(&self.state.lanes[*at])).collect();
        match asking[..] {
            _ if self.state.phase != Phase::Running => Err(OrderRefusal::NoQuestion { feature: None }),
            [] => Err(OrderRefusal::NoQuestion { feature: None }),
            [position] => {
                self.answered_lane(position, answer);
                Ok(None)
            }
            _ => {
                let name = |at: usize| self.state.lanes[at].work.feature().unwrap_or("the plan").to_owned();
                Err(OrderRefusal::WhichQuestion { features: asking.into_iter().map(name).collect() })
            }
        }
    }

    /// Only the waiting work is notified, and never its feature: an approval of a call answers no question.
    pub(super) fn approved(&mut self, key: &str) -> Option<Ignored> {
        let waits = |lane: &Lane| matches!(&lane.wait, Some(Wait { wait: WaitFor::Work, .. }));
        let found = self.state.lanes.iter().position(|lane| lane.work.key() == key && waits(lane));
        let Some(position) = found.filter(|_| self.ended().is_none()) else { return Some(Ignored::NotAwaited) };
        self.answered_lane(position, "");
        None
    }

    /// As [`Turn::approved`], but the rows of this step must not be stored for work that does not wait any more.
    pub(super) fn resolved(&mut self, key: &str) -> Taken {
        match self.approved(key) {
            None => Ok(None),
            Some(_) => Err(OrderRefusal::NoQuestion { feature: None }),
        }
    }

    /// Work whose answer is unused waits again, with its earlier question.
    pub(super) fn taken_back(&mut self, key: &str, question: &str, answer_with: &str) -> Taken {
        let found = self.state.lanes.iter().position(|lane| lane.work.key() == key && lane.wait.is_none());
        let position = found.filter(|_| self.state.phase == Phase::Running).ok_or(OrderRefusal::AnswerUsed)?;
        let question = self.line(question);
        let Lane { session, work, .. } = self.state.lanes.remove(position);
        self.ask(session, work, WaitFor::Work, &question, answer_with);
        Ok(None)
    }

    fn answered_lane(&mut self, position: usize, answer: &str) {
        match self.state.lanes[position].wait.take() {
            Some(Wait { wait: WaitFor::Plan, park }) => {
                let text = self.line(answer);
                self.note_for_planner(park.reason, text);
                // The person's answer allows as many plans again; the one that is requested now is the first.
                self.state.counts.replans = self.state.limits.replans_max.min(1);
                let held = self.state.lanes.remove(position).work;
                self.start_plan(Some(held));
            }
            _ => {
                let Lane { session, work, .. } = self.state.lanes.remove(position);
                self.start(session, work);
            }
        }
    }

    /// Requests the work of each lane for which this holds, literally; the others stay unchanged.
    fn go_on_where(&mut self, is_over: impl Fn(&Lane) -> bool) {
        for lane in std::mem::take(&mut self.state.lanes) {
            if is_over(&lane) { self.start(lane.session, lane.work) } else { self.state.lanes.push(lane) }
        }
    }

    pub(super) fn note_for_planner(&mut self, about: String, text: String) {
        self.state.plan_notes.push(SessionNote { about, text });
        keep_last(&mut self.state.plan_notes, self.state.limits.answers_max);
    }

    pub(super) fn answered_feature(&mut self, id: &str, answer: &str) -> Taken {
        let (answer, answers_max) = (self.line(answer), self.state.limits.answers_max);
        let open = |by| matches!(by, Some(BlockedBy::Question | BlockedBy::Denial));
        let ended = self.ended();
        if let Some(status @ (EndStatus::Failed | EndStatus::Abandoned)) = ended {
            return Err(OrderRefusal::Ended { status });
        }
        let asks = |lane: &Lane| matches!(&lane.wait, Some(Wait { wait, .. }) if wait.is_for_a_person());
        if let Some(position) = self.state.lane_of(id).filter(|at| ended.is_none() && asks(&self.state.lanes[*at])) {
            self.answered_lane(position, &answer);
            return Ok(None);
        }
        let Some(feature) = self.state.feature_mut(id) else {
            return Err(OrderRefusal::UnknownFeature { feature: crate::texts::line(id, 80) });
        };
        if !open(feature.blocked_by) {
            return Err(OrderRefusal::NoQuestion { feature: Some(id.to_owned()) });
        }
        let is_about_done = feature.consent == Some(Consent::Wanted);
        if is_about_done {
            feature.consent = if is_done(&answer) { None } else { Some(Consent::Given) };
        }
        let is_done = is_about_done && is_done(&answer);
        feature.answers.push(SessionNote { about: feature.why.clone(), text: answer });
        keep_last(&mut feature.answers, answers_max);
        match is_done {
            true => self.set_status(id, Passing, AS_A_PERSON_SAYS),
            false => self.set_status(id, NotStarted, "its question was answered"),
        }
        self.settle_or_reopen();
        Ok(None)
    }

    pub(super) fn woke(&mut self) -> Option<Ignored> {
        let at_ms = self.at_ms;
        let is_due = |wait: &Wait| wait.park.until_ms.is_some_and(|until| until <= at_ms);
        if self.state.phase != Phase::Running {
            return Some(Ignored::NothingToDo);
        }
        if self.state.waits().any(|(_, wait)| is_due(wait)) {
            self.go_on_where(|lane| lane.wait.as_ref().is_some_and(is_due));
            return None;
        }
        Some(if self.state.wakes_at_ms().is_some() { Ignored::TooEarly } else { Ignored::NothingToDo })
    }

    pub(super) fn pause(&mut self) -> Taken {
        match self.state.phase {
            Phase::New => return Err(OrderRefusal::NotBegun),
            Phase::Ended { .. } => return Ok(Some(Ignored::NothingToDo)),
            Phase::Running if self.state.paused => return Ok(Some(Ignored::NothingToDo)),
            Phase::Running => {}
        }
        self.state.paused = true;
        self.emit(Event::Paused);
        Ok(None)
    }

    pub(super) fn resume(&mut self, retry_failing: bool, limits: Option<HarnessLimits>) -> Taken {
        if self.state.phase == Phase::New {
            return Err(OrderRefusal::NotBegun);
        }
        if self.ended() == Some(EndStatus::Abandoned) {
            return Err(OrderRefusal::Ended { status: EndStatus::Abandoned });
        }
        if let Some(limits) = &limits {
            check_limits(limits)?;
        }
        let waits = self.state.lanes.iter().any(|lane| lane.wait.is_some());
        let goes_on = self.state.phase == Phase::Running && !self.state.paused && !waits;
        let changes = limits.is_some() || retry_failing;
        if self.ended() == Some(EndStatus::Completed) || (goes_on && !changes) {
            return Ok(Some(Ignored::NothingToDo));
        }
        self.state.limits = limits.unwrap_or_else(|| self.state.limits.clone());
        if retry_failing {
            self.forgive();
            self.call_off_planner();
        }
        if self.state.paused {
            self.state.paused = false;
            self.emit(Event::RunResumed);
        }
        self.free_blocked(BlockedBy::Cancel, "taken up again");
        if goes_on {
            self.advance()
        } else {
            self.take_up()
        }
        Ok(None)
    }

    /// Lets features that are failing, or were denied something, be retried.
    fn forgive(&mut self) {
        self.free_blocked(BlockedBy::Denial, "retried after a refusal");
        for feature in self.state.features.iter_mut().filter(|feature| feature.status == Failing) {
            feature.attempts_forgiven = feature.attempts;
        }
    }

    /// Requests all work again except questions: work in progress continues where it is.
    fn take_up(&mut self) {
        if self.ended().is_some() {
            return self.reopen();
        }
        // Work in progress continues whatever it costs, and questions stand.
        let stands = |lane: &Lane| match &lane.wait {
            None => true,
            Some(wait) => matches!(wait.wait, WaitFor::Work | WaitFor::Plan),
        };
        let standing: Vec<_> = self.state.lanes.iter().filter(|lane| stands(lane)).cloned().collect();
        self.actions.extend(standing.iter().filter_map(|lane| super::pending_of(lane, self.state.paused)));
        self.go_on_where(|lane| !stands(lane));
        self.advance();
    }

    /// Resumes a run that has ended, with the counts of failures in a row at zero.
    pub(super) fn reopen(&mut self) {
        self.state.counts = Counts { edits: self.state.counts.edits, ..Counts::default() };
        self.state.phase = Phase::Running;
        self.state.answer = None;
        self.emit(Event::RunResumed);
        self.free_blocked(BlockedBy::Denial, "retried after a refusal");
        // A refused plan is requested again, with the notes since then.
        let is_refused = |lane: &Lane| lane.session.is_none() && lane.wait.is_none();
        match self.state.lanes.iter().position(is_refused) {
            Some(position) => {
                let held = self.state.lanes.remove(position).work;
                self.start_plan(Some(held));
            }
            None if self.state.is_planning() && self.state.lanes.is_empty() => self.start_plan(None),
            None => {
                self.go_on_where(|_| true);
                self.advance();
            }
        }
    }

    /// A denial may be lifted by now, and a resume also continues work that a person stopped.
    fn free_blocked(&mut self, by: BlockedBy, why: &str) {
        let freed = |feature: &&crate::Feature| feature.status == Blocked && feature.blocked_by == Some(by);
        let ids: Vec<_> = self.state.features.iter().filter(freed).map(|feature| feature.spec.id.clone()).collect();
        for id in ids {
            self.set_status(&id, NotStarted, why);
        }
    }

    /// After a change of the features: a run that had ended continues, and the next work starts.
    pub(super) fn settle_or_reopen(&mut self) {
        self.call_off_planner();
        if self.ended().is_some() {
            self.settle();
            return self.reopen();
        }
        self.advance();
    }

    /// The planner's present request, or a person's question about it, concerns the former features.
    fn call_off_planner(&mut self) {
        if self.state.is_planning() {
            return;
        }
        while let Some(position) = self.state.lanes.iter().position(|lane| lane.session.is_none()) {
            self.cancel(position);
        }
    }

    pub(super) fn ended(&self) -> Option<EndStatus> {
        match self.state.phase {
            Phase::Ended { status, .. } => Some(status),
            Phase::New | Phase::Running => None,
        }
    }

    pub(super) fn abandon(&mut self, reason: &str) -> Taken {
        match self.ended() {
            None if self.state.phase == Phase::New => return Err(OrderRefusal::NotBegun),
            Some(EndStatus::Completed | EndStatus::Failed | EndStatus::Abandoned) => {
                return Ok(Some(Ignored::NothingToDo));
            }
            Some(EndStatus::Incomplete) | None => {}
        }
        while !self.state.lanes.is_empty() {
            self.cancel(0);
        }
        let reason = self.line(reason);
        let summary = format!("abandoned: {reason}; {}", crate::texts::summary(self.state));
        self.end(EndStatus::Abandoned, summary);
        Ok(None)
    }
}

/// True when a person says that nothing is left to do.
fn is_done(answer: &str) -> bool {
    ["done", "yes"].iter().any(|word| answer.trim().trim_end_matches('.').eq_ignore_ascii_case(word))
}

fn check_limits(limits: &HarnessLimits) -> Result<(), OrderRefusal> {
    limits.unusable().map_or(Ok(()), |limit| Err(OrderRefusal::UnusableLimit { limit }))
}

fn keep_last(notes: &mut Vec<SessionNote>, count_max: usize) {
    let surplus = notes.len().saturating_sub(count_max);
    notes.drain(..surplus);
}
