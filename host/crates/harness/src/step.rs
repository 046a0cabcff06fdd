//! The first strategy, `session`: plan, then one feature after the other, each generated and judged in
//! rounds until it passes and is committed, or its rounds are used up.
//!
//! One piece of work is outstanding at a time. An input that does not fit where the run is changes
//! nothing: it is ignored, when it is late or says nothing new, or refused with a remedy, when a
//! person asked for something that cannot be done.
//!
//! | file | holds |
//! |---|---|
//! | `step.rs` | the entry, what everything else is made of, and how a run ends |
//! | `step/orders.rs` | begin, answer, pause, resume, abandon |
//! | `step/edits.rs` | features added, edited, dropped |
//! | `step/reports.rs` | what becomes of a report |

mod edits;
mod orders;
mod reports;

use crate::action::{Action, EndStatus, Job, Park, Work};
use crate::input::Input;
use crate::plan::PlanError;
use crate::state::{BlockedBy, Feature, Phase, Session, State, WaitFor, is_complete};
use crate::{select, texts};
use longhaul_core::event::{Event, Used};
use longhaul_core::work::FeatureStatus;

/// What an input led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// The state may have changed: store it, with the events among these, then do the rest in order.
    Acted(Vec<Action>),
    /// Nothing changed and nothing is to be done.
    Ignored(Ignored),
}

/// Why an input changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The work of this key is not awaited: the report is late, or came before.
    NotAwaited,
    /// The work of this key does not end in such a report: a defect of the driver.
    WrongReport,
    /// Things already are as the input wants them.
    NothingToDo,
    /// The time has not come.
    TooEarly,
}

/// Why an order of the operator is not carried out. The state is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The caps allow no run at all.
    #[error("`{limit}` is 0, so nothing could ever be done; set it to 1 or more in [run.limits]")]
    UnusableLimit {
        /// Its field.
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
    /// The run is over and cannot be taken up.
    #[error("the run has ended as {}; start a new one", .status.as_str())]
    Ended {
        /// How.
        status: EndStatus,
    },
    /// No such feature.
    #[error("there is no feature `{feature}`; `longhaul features` lists them")]
    UnknownFeature {
        /// The id, cut.
        feature: String,
    },
    /// The feature cannot be built as it is written.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Too many edits.
    #[error("the feature list was edited {edits_max} times, which is edits_max; raise it in [run.limits] and resume")]
    TooManyEdits {
        /// The cap.
        edits_max: u32,
    },
    /// The commit is under way.
    #[error("feature `{feature}` has passed and is being committed; try again in a moment")]
    BeingCommitted {
        /// Its id.
        feature: String,
    },
    /// It passes already.
    #[error("feature `{feature}` passes and is committed; to take it back, revert its commit")]
    AlreadyPasses {
        /// Its id.
        feature: String,
    },
    /// Nobody asked.
    #[error("no question is open {}; `longhaul status` shows what the run waits for", .feature.as_ref().map_or("for the run".to_owned(), |id| format!("for feature `{id}`")))]
    NoQuestion {
        /// The feature that the answer was for.
        feature: Option<String>,
    },
}

/// What happens when `input` comes at `at_ms` (milliseconds since 1970-01-01 UTC).
///
/// Pure: equal states, times and inputs give equal states and reactions.
///
/// # Errors
/// A [`Refusal`] of an operator's order; the state is then as it was.
pub fn step(state: &mut State, at_ms: u64, input: Input) -> Result<Reaction, Refusal> {
    let mut turn = Turn { state, at_ms, actions: Vec::new() };
    let ignored = match input {
        Input::Begin { run, goal, context, setup, limits } => turn.begin(run, goal, context, setup, limits)?,
        Input::Done { key, used, report } => turn.done(&key, used, report),
        Input::Parked { key, question, is_effect } => turn.parked(&key, &question, is_effect),
        Input::Answered { feature: Some(feature), answer } => turn.answered_feature(&feature, &answer)?,
        Input::Answered { feature: None, answer } => turn.answered_run(&answer)?,
        Input::Woke => turn.woke(),
        Input::PauseRequested => turn.pause()?,
        Input::Resume { retry_failing, limits } => turn.resume(retry_failing, limits)?,
        Input::FeatureAdded { spec } => turn.add(spec)?,
        Input::FeatureEdited { spec } => turn.edit(spec)?,
        Input::FeatureDropped { feature } => turn.drop_feature(&feature)?,
        Input::Abandon { reason } => turn.abandon(&reason)?,
    };
    Ok(ignored.map_or(Reaction::Acted(turn.actions), Reaction::Ignored))
}

/// The work and the wait that a state stands at: what to do after a crash. Events and endings are not
/// among it, since they were stored with the state.
#[must_use]
pub fn pending(state: &State) -> Vec<Action> {
    match &state.phase {
        Phase::New | Phase::Ended { .. } => Vec::new(),
        Phase::Waiting { park, .. } => vec![Action::Park(park.clone())],
        Phase::Running if state.paused => Vec::new(),
        Phase::Running => state.outstanding.clone().map(Action::Work).into_iter().collect(),
    }
}

/// One call of [`step()`]: the state and what is to be done so far.
struct Turn<'a> {
    state: &'a mut State,
    at_ms: u64,
    actions: Vec<Action>,
}

/// Why a run stops before its work is done: the name of a cap and a line about it.
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

    /// What others wrote, as one line that we can keep.
    fn line(&self, text: &str) -> String {
        texts::line(text, self.state.limits.text_bytes_max)
    }

    /// Moves a feature to a status and tells.
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

    /// Asks for work, unless a pause holds it back or the budget is used up.
    fn start(&mut self, work: Work) {
        let cap = if work.job.asks_models() { self.budget_used_up() } else { None };
        self.state.phase = Phase::Running;
        self.state.outstanding = Some(work.clone());
        match cap {
            Some(cap) => self.end_at_cap(cap),
            None if self.state.paused => {}
            None => self.actions.push(Action::Work(work)),
        }
    }

    /// Calls off the outstanding work, if any. What it used is counted when it is handed in.
    fn cancel(&mut self) {
        // A wait for a service or for the repository holds back a try that was not started.
        let started = match &self.state.phase {
            Phase::Running | Phase::Waiting { wait: WaitFor::Work, .. } => true,
            Phase::Waiting { wait: WaitFor::Outage | WaitFor::Repository | WaitFor::Plan, .. }
            | Phase::New
            | Phase::Ended { .. } => false,
        };
        if let Some(work) = self.state.outstanding.take().filter(|_| started) {
            let key = work.key();
            self.state.cancelled.insert(key.clone());
            self.actions.push(Action::Cancel { key });
        }
    }

    /// Asks for a plan with what is known by now, under the key of `held` if a try was held back.
    fn start_plan(&mut self, held: Option<Work>) {
        let job = Job::Plan { goal: texts::goal(self.state) };
        let work = match held {
            Some(held) => Work { job, ..held },
            None => Work::new("plan".to_owned(), job),
        };
        self.start(work);
    }

    /// Goes on with whatever is next, when nothing is outstanding.
    fn advance(&mut self) {
        self.settle();
        self.state.session = None;
        let Some(next) = select::next(&self.state.features, self.state.limits.feature_attempts_max) else {
            let status = if is_complete(&self.state.features) { EndStatus::Completed } else { EndStatus::Incomplete };
            return self.end(status, texts::summary(self.state));
        };
        match self.cap_before_session() {
            Some(cap) => self.end_at_cap(cap),
            None => self.start_session(next),
        }
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

    fn start_session(&mut self, position: usize) {
        self.state.counts.sessions = self.state.counts.sessions.saturating_add(1);
        let feature = &mut self.state.features[position];
        feature.sessions = feature.sessions.saturating_add(1);
        feature.vacuous.clear();
        let (id, why) = (feature.spec.id.clone(), format!("session {}", feature.sessions));
        self.state.session = Some(Session { feature: id.clone(), round: 1, feedback: Vec::new(), earlier: Vec::new() });
        self.set_status(&id, FeatureStatus::InProgress, &why);
        if self.state.features[position].spec.checks.is_empty() {
            return self.start_generate(&id);
        }
        let feature = &self.state.features[position];
        let job = Job::Pin { feature: id, checks: feature.spec.checks.clone() };
        self.start_feature_work(position, "pin", job);
    }

    /// Asks for a round of the session under way.
    fn start_generate(&mut self, id: &str) {
        let Some((position, feature)) = self.find(id) else { return };
        let Some(session) = &self.state.session else { return };
        let spec = &feature.spec;
        let agent = crate::route::agent_of(spec.agent.as_deref(), &spec.category, &self.state.setup.agents);
        let job = Job::Generate {
            feature: id.to_owned(),
            round: session.round,
            agent: agent.to_owned(),
            task: texts::task(self.state, feature, session),
        };
        let name = format!("{}/generate", session.round);
        self.start_feature_work(position, &name, job);
    }

    /// Has the driver restore the tree; the session is over when it has.
    fn start_discard(&mut self, id: &str) {
        if let Some(discard) = self.discard_of(id) {
            self.start(discard);
        }
    }

    fn discard_of(&self, id: &str) -> Option<Work> {
        let (position, _) = self.find(id)?;
        Some(self.feature_work(position, "discard", Job::Discard { feature: id.to_owned() }))
    }

    fn start_feature_work(&mut self, position: usize, name: &str, job: Job) {
        let work = self.feature_work(position, name, job);
        self.start(work);
    }

    fn feature_work(&self, position: usize, name: &str, job: Job) -> Work {
        Work::new(format!("{}/{name}", self.state.features[position].key_prefix()), job)
    }

    fn find(&self, id: &str) -> Option<(usize, &Feature)> {
        self.state.features.iter().enumerate().find(|(_, feature)| feature.spec.id == id)
    }

    /// Holds the outstanding work back until a time, or until a person acts.
    fn wait(&mut self, wait: WaitFor, reason: String, until_ms: Option<u64>) {
        let park = Park { reason, until_ms };
        self.state.phase = Phase::Waiting { wait, park: park.clone() };
        self.actions.push(Action::Park(park));
    }

    /// Asks a person about the whole run.
    fn ask(&mut self, wait: WaitFor, question: &str, answer_with: &str) {
        let run = self.state.run.as_ref().map_or("RUN", |run| run.as_str());
        let answer_with = answer_with.replace("RUN", run);
        self.emit(Event::Parked { question: question.to_owned(), answer_with });
        self.wait(wait, question.to_owned(), None);
    }

    fn budget_used_up(&self) -> Option<CapReached> {
        let (limits, usage) = (&self.state.limits, self.state.used.usage);
        let tokens = limits.tokens_max.filter(|max| usage.tokens() >= *max);
        let cost = limits.cost_microdollars_max.filter(|max| usage.cost_microdollars >= as_f64(*max));
        let of_tokens = |max| CapReached {
            name: "tokens_max",
            text: format!("the run used {} of {max} tokens; raise tokens_max and resume", usage.tokens()),
        };
        let of_cost = |max| CapReached {
            name: "cost_microdollars_max",
            text: format!(
                "the run cost {} of {max} microdollars; raise cost_microdollars_max and resume",
                usage.cost_microdollars
            ),
        };
        tokens.map(of_tokens).or_else(|| cost.map(of_cost))
    }

    fn cap_before_session(&self) -> Option<CapReached> {
        let (limits, counts) = (&self.state.limits, &self.state.counts);
        if counts.failures_equal >= limits.failures_equal_max {
            let (count, text) = (counts.failures_equal, &counts.failure_last);
            let text = format!("{count} features in a row failed alike: {text}; mend what they share and resume");
            return Some(CapReached { name: "failures_equal_max", text });
        }
        if counts.sessions >= limits.sessions_max {
            let text = format!("the run had {} sessions; resume it for as many more", counts.sessions);
            return Some(CapReached { name: "sessions_max", text });
        }
        self.budget_used_up()
    }

    /// Ends the run with its outstanding work held back, so that a resume goes on where it was.
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

/// Both together, with the cost in whole microdollars: sums of these survive JSON to the last bit, so
/// a run that was loaded again does not differ from one that was not.
fn plus(sum: Used, more: Used) -> Used {
    let mut more = more;
    let cost = more.usage.cost_microdollars.round();
    more.usage.cost_microdollars = if cost.is_finite() { cost.max(0.0) } else { 0.0 };
    sum.plus(more)
}

#[expect(clippy::cast_precision_loss, reason = "money far below 2^53 microdollars, which is nine billion dollars")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
