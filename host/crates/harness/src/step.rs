//! The one machine of all strategies: plan, then work through the graph of features, each generated and
//! judged in rounds until it passes and is committed, or its rounds are used up.
//!
//! Work is done in lanes, one for each session, or one for the planner; each lane has one piece of work. An input that
//! does not fit the state changes nothing: it is ignored, when it is late or brings nothing new, or refused with a
//! remedy, when a person requested something impossible.
//!
//! | file | holds |
//! |---|---|
//! | `step.rs` | the entry point, the common parts, and the end of a run |
//! | `step/orders.rs` | begin, answer, pause, resume, abandon |
//! | `step/edits.rs` | features added, edited, dropped |
//! | `step/reread.rs` | a changed goal |
//! | `step/sessions.rs` | the beginning, the work and the end of a session |
//! | `step/reports.rs` | the consequences of a report |
//! | `step/proof.rs` | proposed checks of a planner, and features that no check proves |
//! | `step/ask.rs` | the dispatch of an ask, and its tasks |
//! | `step/pipeline.rs` | a pipeline without open steps |
//! | `step/revert.rs` | features that no longer pass, after a revert or by their checks |

mod ask;
mod edits;
mod orders;
mod pipeline;
mod proof;
mod reports;
mod reread;
mod revert;
mod rubric;
mod sessions;

pub use pipeline::wants_replan;

use crate::action::{Action, EndStatus, Park, Work, WorkKind};
use crate::input::{Input, Strategy};
use crate::limits::RETRIES_MAX;
use crate::plan::PlanError;
use crate::state::{BlockedBy, Cap, Feature, Lane, Phase, RunState, Session, Wait, WaitFor, is_complete};
use crate::{select, texts};
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::text::count;
use longhaul_core::work::{FeatureStatus, OnFailure};

/// The result of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// The state may have changed: store it, with the events among these actions, then take the others in order.
    Acted(Vec<Action>),
    /// Nothing changed and nothing is to be done.
    Ignored(Ignored),
}

/// The reason why an input changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The work of this key is not awaited: the report is late or repeated.
    NotAwaited,
    /// The work of this key cannot end in such a report: a defect of the driver.
    WrongReport,
    /// The state already is what the input asks for.
    NothingToDo,
    /// The time has not come.
    TooEarly,
}

/// The reason why an operator's order is refused. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderRefusal {
    /// The caps allow no run at all.
    #[error("`{limit}` is 0, so nothing could ever be done; set it to 1 or more in [run.limits]")]
    UnusableLimit {
        /// The name of the limit in `[run.limits]`.
        limit: &'static str,
    },
    /// There is no goal.
    #[error("the goal is empty; say what is to be built")]
    NoGoal,
    /// The run has not begun.
    #[error("the run has not begun; begin it with a goal first")]
    NotBegun,
    /// There are no features to edit yet.
    #[error("the plan is not there yet; edit features once it is")]
    NoPlanYet,
    /// The run is over and cannot be resumed.
    #[error("the run has ended as {}; start a new one", .status.as_str())]
    Ended {
        /// The status with which it ended.
        status: EndStatus,
    },
    /// There is no such feature.
    #[error("there is no feature `{feature}`; `longhaul features` lists them")]
    UnknownFeature {
        /// The id of the feature, cut.
        feature: String,
    },
    /// The feature is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The run has had too many edits.
    #[error("the feature list was edited {edits_max} times, which is edits_max; raise it in [run.limits] and resume")]
    TooManyEdits {
        /// The limit.
        edits_max: u32,
    },
    /// The commit is in progress.
    #[error("feature `{feature}` has passed and is being committed; try again in a moment")]
    BeingCommitted {
        /// The id of the feature.
        feature: String,
    },
    /// The work would continue from commits that are taken away.
    #[error("the run is working; pause it first: `longhaul pause`")]
    Working,
    /// The feature passes already.
    #[error("feature `{feature}` passes and is committed; to take it back, revert its commit")]
    AlreadyPasses {
        /// The id of the feature.
        feature: String,
    },
    /// The ask has no such agent.
    #[error("agent `{agent}` not found; there is: {known}")]
    UnknownAgent {
        /// The name of the agent, cut.
        agent: String,
        /// The known agents.
        known: String,
    },
    /// The run commits nothing.
    #[error("an ask has no branch and no checks; name a run of `longhaul run`")]
    NoBranch,
    /// No work is active that could be corrected.
    #[error("no work is active that could be corrected; `longhaul status` shows the status of the run")]
    NothingToSteer,
    /// There is no open question.
    #[error("no question is open {}; `longhaul status` shows what the run waits for", .feature.as_ref().map_or("for the run".to_owned(), |id| format!("for feature `{id}`")))]
    NoQuestion {
        /// The feature that the answer was for.
        feature: Option<String>,
    },
    /// The answer was already used.
    #[error("the answer was used, or there was none; `longhaul status` shows the status of the run")]
    AnswerUsed,
    /// There are several open questions.
    #[error("{} questions are open, of {}; say which one with --feature", .features.len(), .features.join(", "))]
    WhichQuestion {
        /// The features that wait.
        features: Vec<String>,
    },
}

/// Applies `input` at `at_ms` (milliseconds since 1970-01-01 UTC).
///
/// Pure: equal states, times and inputs give equal states and reactions.
///
/// # Errors
/// A [`OrderRefusal`] of an operator's order; then the state is unchanged.
pub fn step(state: &mut RunState, at_ms: u64, input: Input) -> Result<Reaction, OrderRefusal> {
    let mut turn = Turn { state, at_ms, actions: Vec::new() };
    let ignored = match input {
        Input::Begin { run, goal, context, setup, limits } => turn.begin(run, goal, context, setup, limits)?,
        Input::Done { key, used, report } => turn.done(&key, used, report),
        Input::Parked { key, question, wanted } => turn.parked(&key, &question, &wanted),
        Input::Approved { key } => turn.approved(&key),
        Input::Resolved { key } => turn.resolved(&key)?,
        Input::AnswerTakenBack { key, question, answer_with } => turn.taken_back(&key, &question, &answer_with)?,
        Input::Answered { feature: Some(feature), answer } => turn.answered_feature(&feature, &answer)?,
        Input::Answered { feature: None, answer } => turn.answered_run(&answer)?,
        Input::Woke => turn.woke(),
        Input::PauseRequested => turn.pause()?,
        Input::Resume { retry_failing, limits } => turn.resume(retry_failing, limits)?,
        Input::FeatureAdded { spec } => turn.add(spec)?,
        Input::FeatureEdited { spec } => turn.edit(spec)?,
        Input::FeatureDropped { feature } => turn.drop_feature(&feature)?,
        Input::GoalReread { goal, steps, dropped } => turn.goal_reread(goal, steps, dropped)?,
        Input::Reverted { .. } | Input::Regressed { .. } if turn.state.is_ask() => return Err(OrderRefusal::NoBranch),
        Input::Reverted { features, left, to, kept_as } => turn.reverted(&features, left, &to, kept_as)?,
        Input::Regressed { features } => turn.regressed(&features)?,
        Input::Steered { feature, text } => turn.steered(feature, &text)?,
        Input::TaskCancelled { feature } => turn.cancel_task(&feature)?,
        Input::WallUsedUp { spent_ms } => turn.wall_used_up(spent_ms),
        Input::Abandon { reason } => turn.abandon(&reason)?,
    };
    turn.end_when_held_back();
    Ok(ignored.map_or(Reaction::Acted(turn.actions), Reaction::Ignored))
}

/// The work and the waits of a state, to be taken up after a crash. Events and endings are not included, since they
/// were stored with the state.
#[must_use]
pub fn pending(state: &RunState) -> Vec<Action> {
    match &state.phase {
        Phase::New | Phase::Ended { .. } => Vec::new(),
        Phase::Running => state.lanes.iter().filter_map(|lane| pending_of(lane, state.paused)).collect(),
    }
}

fn pending_of(lane: &Lane, paused: bool) -> Option<Action> {
    match &lane.wait {
        Some(wait) => Some(Action::Park(wait.park.clone())),
        None if paused => None,
        None => Some(Action::Work(lane.work.clone())),
    }
}

/// One call of [`step()`]: the state and the actions so far.
struct Turn<'a> {
    state: &'a mut RunState,
    at_ms: u64,
    actions: Vec<Action>,
}

/// The cap that stops work before it is done: its name and a line about it.
struct CapReached {
    name: &'static str,
    text: String,
}

impl Turn<'_> {
    fn emit(&mut self, event: Event) {
        self.actions.push(Action::Emit(event));
    }

    fn warn(&mut self, text: String) {
        self.emit(Event::Warning { text });
    }

    /// A foreign text as one line that can be stored.
    fn line(&self, text: &str) -> String {
        texts::line(text, self.state.limits.text_bytes_max)
    }

    /// Changes a feature's status and emits the event.
    fn set_status(&mut self, id: &str, status: FeatureStatus, why: &str) {
        if let Some(feature) = self.state.feature_mut(id) {
            feature.become_status(status, why);
            let event = Event::Feature { feature: id.to_owned(), status, why: why.to_owned() };
            self.emit(event);
        }
    }

    fn block(&mut self, id: &str, by: BlockedBy, why: &str) {
        self.set_status(id, FeatureStatus::Blocked, why);
        if let Some(feature) = self.state.feature_mut(id) {
            feature.blocked_by = Some(by);
        }
    }

    /// Opens a lane with `work`, which is requested unless a pause or the budget holds it back.
    fn start(&mut self, session: Option<Session>, work: Work) {
        self.state.phase = Phase::Running;
        let cap = if work.job.asks_models() { self.budget_used_up() } else { None };
        match cap {
            Some((cap, text)) => self.hold_at_cap(session, work, cap, text),
            None => {
                if !self.state.paused {
                    self.actions.push(Action::Work(work.clone()));
                }
                self.state.lanes.push(Lane { session, work, wait: None });
            }
        }
    }

    /// Closes a lane. Its work is cancelled, if it was started; its usage is counted when it is reported.
    fn cancel(&mut self, position: usize) -> Lane {
        let lane = self.state.lanes.remove(position);
        // A wait for a service, a cap or the repository holds back an attempt that was not started.
        let started = lane.wait.as_ref().is_none_or(|wait| wait.wait == WaitFor::Work);
        if started && self.state.phase == Phase::Running {
            let key = lane.work.key();
            self.state.cancelled.insert(key.clone());
            self.actions.push(Action::Cancel { key });
        }
        lane
    }

    /// Requests a plan with all present notes, under the key of `held` if an attempt was held back.
    fn start_plan(&mut self, held: Option<Work>) {
        let work = match held {
            Some(held @ Work { job: WorkKind::Choose { .. }, .. }) => held,
            Some(Work { job: WorkKind::TryChecks { planned_by, .. }, .. }) => {
                return self.start_plan(Some(planned_by.again()));
            }
            Some(Work { name, attempt, job: WorkKind::Replan { plan, results, .. } }) => {
                Work { name, attempt, job: WorkKind::Replan { goal: texts::goal(self.state), plan, results } }
            }
            Some(held) => Work { job: WorkKind::Plan { goal: texts::goal(self.state) }, ..held },
            None => Work::new("plan".to_owned(), WorkKind::Plan { goal: texts::goal(self.state) }),
        };
        self.start(None, work);
    }

    /// Starts the next work, as far as lanes are free, and ends the run when there is none.
    fn advance(&mut self) {
        self.settle();
        if self.is_aborted() || self.asks_planner() {
            return self.end_once_idle();
        }
        while self.state.lanes.len() < self.room() {
            let Some(next) = self.next_feature() else { break };
            if let Some(cap) = self.cap_before_session() {
                return self.end_at_cap_once_idle(cap);
            }
            self.start_session(next);
        }
        self.end_once_idle();
    }

    /// Nothing starts beside the planner: its answer may change everything that is not done.
    fn asks_planner(&self) -> bool {
        self.state.lanes.iter().any(|lane| lane.session.is_none())
    }

    fn room(&self) -> usize {
        usize::try_from(self.state.limits.parallel_max).unwrap_or(usize::MAX)
    }

    fn next_feature(&self) -> Option<usize> {
        let RunState { features, limits, setup, .. } = &*self.state;
        let worked_on = |id: &str| self.state.lane_of(id).is_some();
        let attempts_max = |feature: &Feature| match (setup.strategy, feature.on_failure) {
            (Strategy::Session, _) => limits.feature_attempts_max,
            (_, OnFailure::Retry(more)) => more.min(RETRIES_MAX).saturating_add(1),
            (_, OnFailure::Skip | OnFailure::Replan | OnFailure::Abort) => 1,
        };
        select::next(features, worked_on, attempts_max)
    }

    /// Nothing more starts; when no work is active either, the strategy decides.
    fn end_once_idle(&mut self) {
        match self.state.setup.strategy {
            _ if !self.state.lanes.is_empty() => {}
            Strategy::Session => self.end_as_it_stands(),
            Strategy::Pipeline => self.end_of_steps(),
            Strategy::Ask => self.end_of_tasks(),
        }
    }

    fn end_at_cap_once_idle(&mut self, cap: CapReached) {
        if self.state.lanes.is_empty() {
            self.end_at_cap(cap);
        }
    }

    fn end_as_it_stands(&mut self) {
        let is_done = if self.state.is_ask() { self.is_answered() } else { is_complete(&self.state.features) };
        let status = if is_done { EndStatus::Completed } else { EndStatus::Incomplete };
        self.end(status, texts::summary(self.state));
    }

    /// Blocks the features that wait for one that does not pass, and frees the others.
    fn settle(&mut self) {
        let waits = select::waits(&self.state.features);
        for (position, wait) in waits.into_iter().enumerate() {
            let feature = &self.state.features[position];
            let id = feature.spec.id.clone();
            match wait {
                Some(why) if feature.why != why || feature.status != FeatureStatus::Blocked => {
                    self.block(&id, BlockedBy::Dependency, &why);
                }
                None if feature.blocked_by == Some(BlockedBy::Dependency) => {
                    self.set_status(&id, FeatureStatus::NotStarted, "no longer waits for another");
                }
                Some(_) | None => {}
            }
        }
    }

    fn find(&self, id: &str) -> Option<(usize, &Feature)> {
        self.state.features.iter().enumerate().find(|(_, feature)| feature.spec.id == id)
    }

    /// Opens a lane whose work waits for a time, or for a person.
    fn hold(&mut self, session: Option<Session>, work: Work, wait: WaitFor, reason: String, until_ms: Option<u64>) {
        let park = Park { reason, until_ms };
        self.state.lanes.push(Lane { session, work, wait: Some(Wait { wait, park: park.clone() }) });
        self.actions.push(Action::Park(park));
    }

    fn hold_at_cap(&mut self, session: Option<Session>, work: Work, cap: Cap, text: String) {
        let wait = Wait { wait: WaitFor::Cap(cap), park: Park { reason: text, until_ms: None } };
        self.state.lanes.push(Lane { session, work, wait: Some(wait) });
    }

    /// Holds a lane until a person acts, and asks.
    fn ask(&mut self, session: Option<Session>, work: Work, wait: WaitFor, question: &str, answer_with: &str) {
        let run = self.state.run.as_ref().map_or("RUN", |run| run.as_str());
        let answer_with = answer_with.replace("RUN", run);
        self.emit(Event::Parked { question: question.to_owned(), answer_with });
        self.hold(session, work, wait, question.to_owned(), None);
    }

    fn budget_used_up(&self) -> Option<(Cap, String)> {
        let (limits, usage) = (&self.state.limits, self.state.used.usage);
        let tokens = limits.tokens_max.filter(|max| usage.tokens() >= *max);
        let cost = limits.cost_microdollars_max.filter(|max| usage.cost_microdollars >= as_f64(*max));
        let of_tokens = |max| {
            let text = format!("the run used {} of {max} tokens; raise tokens_max and resume", usage.tokens());
            (Cap::TokensMax, text)
        };
        let of_cost = |max| {
            let cost = usage.cost_microdollars;
            let text = format!("the run cost {cost} of {max} microdollars; raise cost_microdollars_max and resume");
            (Cap::CostMicrodollarsMax, text)
        };
        tokens.map(of_tokens).or_else(|| cost.map(of_cost))
    }

    fn cap_before_session(&self) -> Option<CapReached> {
        let (limits, counts) = (&self.state.limits, &self.state.counts);
        if counts.failures_equal >= limits.failures_equal_max {
            let (failed, text) = (&counts.failures_equal, &counts.failure_last);
            let text = format!(
                "{} in a row failed alike: {text}; mend what they share and resume",
                count(*failed as usize, "feature")
            );
            return Some(CapReached { name: "failures_equal_max", text });
        }
        if counts.sessions >= limits.sessions_max {
            let text =
                format!("the run had {}; resume it for as many more", count(counts.sessions as usize, "session"));
            return Some(CapReached { name: "sessions_max", text });
        }
        self.budget_used_up().map(|(cap, text)| CapReached { name: cap.as_str(), text })
    }

    /// Ends the run when every lane waits for a higher cap, since no wait would end.
    fn end_when_held_back(&mut self) {
        let cap_of = |lane: &Lane| match &lane.wait {
            Some(Wait { wait: WaitFor::Cap(cap), park }) => Some((*cap, park.reason.clone())),
            _ => None,
        };
        let caps: Option<Vec<_>> = self.state.lanes.iter().map(cap_of).collect();
        if self.state.phase != Phase::Running {
            return;
        }
        if let Some((cap, text)) = caps.and_then(|caps| caps.into_iter().next()) {
            self.end_at_cap(CapReached { name: cap.as_str(), text });
        }
    }

    /// Ends the run with its lanes held back, so that a resume continues them.
    fn end_at_cap(&mut self, cap: CapReached) {
        let summary = if self.state.is_planning() {
            format!("no plan: {}", cap.text)
        } else {
            format!("{}; stopped at {}: {}", texts::summary(self.state), cap.name, cap.text)
        };
        self.emit(Event::Limit { name: cap.name.to_owned(), text: cap.text });
        let status = if self.state.is_planning() { EndStatus::Failed } else { EndStatus::Incomplete };
        self.end(status, summary);
    }

    fn end(&mut self, status: EndStatus, summary: String) {
        self.state.phase = Phase::Ended { status, summary: summary.clone() };
        self.state.paused = false;
        let used = self.state.used;
        self.emit(Event::RunEnded { status: status.as_str().to_owned(), summary: summary.clone(), used });
        self.actions.push(Action::Finish { status, summary });
    }
}

/// Adds usage, with the cost in whole microdollars: such sums survive JSON exactly, so a run that was loaded again
/// equals one that was not.
fn plus(sum: WorkUsage, more: WorkUsage) -> WorkUsage {
    let mut more = more;
    let cost = more.usage.cost_microdollars.round();
    more.usage.cost_microdollars = if cost.is_finite() { cost.max(0.0) } else { 0.0 };
    sum.plus(more)
}

#[expect(clippy::cast_precision_loss, reason = "money far below 2^53 microdollars, which is nine billion dollars")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
