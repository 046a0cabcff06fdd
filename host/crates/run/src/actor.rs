//! The owner of one run. It takes orders and results one after the other, and stores each step before it acts on it.

mod at_once;
mod handle;
mod running;
mod waiting;

pub use handle::RunHandle;

use super::executor::{Closing, EndedWork, WorkEnd, WorkExecutor};
use super::queue::{RunPlace, RunQueue};
use super::step_rows::{put_step, step_attempts};
use super::steps::{EventMarks, NewEvents};
use at_once::AtOnceCap;
use handle::{Order, Waits};
use longhaul_approval::ApprovalStatus;
use longhaul_core::InvocationId;
use longhaul_core::capacity::{Capacity, Need};
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::fault::{self, Fault};
use longhaul_core::journal::EffectQuestion;
use longhaul_core::store::Batch;
use longhaul_engine::Cancel;
use longhaul_harness::state::Phase;
use longhaul_harness::{
    Action, Input, OrderRefusal, PersonRequest, Reaction, RunState, RunStatus, Work, WorkFailure, WorkReport, pending,
    step,
};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::bus::{BusMessage, EventBus};
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_records::stop_condition::StopCondition;
use longhaul_records::{approvals, ledger, project};
use running::{RunningWork, WorkClock, finished};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The owner of one run.
pub struct RunActor {
    host: Arc<PluginHost>,
    /// Called after each stored step.
    wake: Arc<dyn Fn() + Send + Sync>,
    capacity: Arc<dyn Capacity>,
    executor: Arc<WorkExecutor>,
    record: RunRecord,
    state: RunState,
    event_number: u64,
    bus: EventBus,
    orders: mpsc::Receiver<Order>,
    /// The running work by its key.
    running: BTreeMap<String, RunningWork>,
    until: StopCondition,
    /// The stop condition that the store holds.
    until_kept: StopCondition,
    marks: EventMarks,
    worked: WorkClock,
    need: Need,
    /// Its priority among runs that wait for their turn.
    priority: u8,
    /// The most runs of its project that work at once.
    at_once: AtOnceCap,
    /// True when admission control let the run start before.
    let_in: bool,
    waits: Waits,
    queue: RunQueue,
    /// Its place among the runs that work or wait for their turn; none while it needs no turn.
    place: Option<RunPlace>,
    /// The time of its arrival, in milliseconds, until it has a place.
    arrived_ms: Option<u64>,
    /// The stored time from which it waits for its turn.
    queued_ms: Option<u64>,
    /// True when another process continues the run.
    hands_over: bool,
}

/// The interval at which a run that waits for capacity asks again.
const ROOM_MS: u64 = 2_000;

impl RunActor {
    /// An actor of a stored run, and its handle. It does nothing before [`Self::live`].
    ///
    /// `wake` is called after each stored step, which may hold a new notification. `capacity` says whether the machine
    /// has room for the work of the run, and `queue` is that of all runs of this process.
    ///
    /// # Errors
    /// When the store, or the configuration of the run, cannot be read.
    pub fn new(
        executor: WorkExecutor,
        stored: StoredRun,
        bus: EventBus,
        until: StopCondition,
        wake: Arc<dyn Fn() + Send + Sync>,
        capacity: Arc<dyn Capacity>,
        queue: RunQueue,
    ) -> fault::Result<(Self, RunHandle)> {
        let host = Arc::clone(executor.host());
        let (sender, orders) = mpsc::channel(64);
        let event_number = record::last_event(&*host.store, &stored.record.run)?;
        let waits = Waits::default();
        let handle = RunHandle { orders: sender, bus: bus.clone(), waits: waits.clone() };
        let StoredRun { record, state } = stored;
        let executor = Arc::new(executor);
        let worked = WorkClock::new(ledger::wall_ms(&*host.store, &record.run)?);
        let (running, marks, config) = (BTreeMap::new(), EventMarks::default(), record.config_now()?);
        let (need, priority) = (config.run.needs(), config.run.priority());
        let at_once = AtOnceCap::of(&config, host.clock.now_ms());
        let let_in = false;
        let until_kept = record::until(&*host.store, &record.run)?;
        let queued_ms = record::queued_ms(&*host.store, &record.run)?;
        let actor = Self {
            host,
            wake,
            capacity,
            executor,
            record,
            state,
            event_number,
            bus,
            orders,
            running,
            until,
            until_kept,
            marks,
            worked,
            need,
            priority,
            at_once,
            let_in,
            waits,
            queue,
            place: None,
            arrived_ms: None,
            queued_ms,
            hands_over: false,
        };
        Ok((actor, handle))
    }

    /// Runs until the run ends, pauses, or waits for a person. Watchers receive any other reason why it stopped.
    pub async fn live(self, first: Option<Input>) {
        self.live_until(first, async {}).await;
    }

    /// As [`Self::live`], and awaits `rested` when all work is at rest, before watchers are notified of that.
    pub async fn live_until(mut self, first: Option<Input>, rested: impl Future<Output = ()>) {
        let lived = self.live_on(first).await;
        if self.hands_over {
            self.running.values().for_each(|running| running.cancel.hand_over());
            self.end_all().await;
        } else {
            self.stop_all().await;
        }
        self.place = None;
        // Stores the usage so far, and what was interrupted. A failing store has reported its error already.
        let cut_off = self.executor.ledger().ride(Batch::new());
        let kept = self.keep(cut_off, Vec::new()).await;
        let lived = lived.and(kept);
        // From here on every order is refused at once, because the run has stopped.
        self.orders.close();
        while self.orders.try_recv().is_ok() {}
        rested.await;
        let why = lived.err().map(|error| format!("{error:#}"));
        if let Some(why) = &why {
            tracing::error!(run = %self.record.run, "the run stopped: {why}");
        }
        self.bus.tell(BusMessage::Gone { why });
    }

    async fn live_on(&mut self, first: Option<Input>) -> fault::Result<()> {
        match first {
            Some(input) => {
                self.take(input, None).await??;
                // The input does not ask for the work that was under way when an earlier process was killed.
                self.act(pending(&self.state)).await?;
            }
            None => self.go_on().await?,
        }
        while self.is_active() {
            self.release_place();
            let wall_left = self.wall_left_ms();
            let room = self.waits.get().map(|_| ROOM_MS);
            let wake = self.wakes_at_ms().map(|at| at.saturating_sub(self.host.clock.now_ms()));
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::Input(input, also, answer)) => {
                        let taken = match self.may_take(&input) {
                            Ok(()) => self.take_with(*input, None, also, Vec::new()).await?,
                            Err(refusal) => Err(refusal),
                        };
                        let _ = answer.send(taken);
                    }
                    Some(Order::HandOver) => {
                        self.hands_over = true;
                        return Ok(());
                    }
                    Some(Order::Stop) | None => return Ok(()),
                },
                (key, ended) = finished(&mut self.running) => {
                    if self.running.is_empty() {
                        self.worked.rest();
                    }
                    self.work_ended(key, ended).await?;
                }
                () = self.bus.has_steps() => self.keep(Batch::new(), Vec::new()).await?,
                () = sleep_ms(room) => self.act(pending(&self.state)).await?,
                () = queue_moved(&mut self.place) => self.act(pending(&self.state)).await?,
                () = sleep_ms(wake) => self.take(Input::Woke, None).await??,
                () = sleep_ms(wall_left) => {
                    let spent_ms = self.worked.ms();
                    self.take(Input::WallUsedUp { spent_ms }, None).await??;
                }
            }
        }
        Ok(())
    }

    /// Resumes from the stored state after a restart.
    async fn go_on(&mut self) -> fault::Result<()> {
        self.keep(Batch::new(), vec![Event::RunResumed]).await?;
        if self.until.was_reached(&self.state) && self.state.status() == RunStatus::Working {
            self.pause_as_asked().await??;
            return Ok(());
        }
        self.act(pending(&self.state)).await
    }

    /// Pauses at the stop condition. The next work is in the state; a resume starts it.
    async fn pause_as_asked(&mut self) -> fault::Result<Result<(), OrderRefusal>> {
        // Stored with the pause and not before: after a kill in between, the run must not go on to its end.
        self.until = StopCondition::End;
        Box::pin(self.take(Input::PauseRequested, None)).await
    }

    fn is_active(&self) -> bool {
        !self.running.is_empty() || self.wakes_at_ms().is_some() || self.waits.get().is_some()
    }

    /// The end of a timed wait; none while nothing new is to start.
    fn wakes_at_ms(&self) -> Option<u64> {
        let runs = self.state.phase == Phase::Running && !self.state.paused;
        self.state.wakes_at_ms().filter(|_| runs)
    }

    /// Wall time that is left; unlimited while no work is under way, or without a cap.
    fn wall_left_ms(&self) -> Option<u64> {
        let max = self.state.limits.wall_ms_max.filter(|_| !self.running.is_empty())?;
        Some(max.saturating_sub(self.worked.ms()))
    }

    /// Refuses an input that work under way may have read already and acts on.
    fn may_take(&self, input: &Input) -> Result<(), OrderRefusal> {
        match input {
            Input::AnswerTakenBack { key, .. } if self.running.contains_key(key) => Err(OrderRefusal::AnswerUsed),
            _ => Ok(()),
        }
    }

    /// Takes one step of the harness. The step is stored with its events, and with the end of the invocation that led
    /// to it, before any of its work starts.
    async fn take(&mut self, input: Input, closing: Option<Closing>) -> fault::Result<Result<(), OrderRefusal>> {
        self.take_with(input, closing, Batch::new(), Vec::new()).await
    }

    async fn take_with(
        &mut self,
        input: Input,
        closing: Option<Closing>,
        also: Batch,
        before: Vec<Event>,
    ) -> fault::Result<Result<(), OrderRefusal>> {
        let mut next = self.state.clone();
        let reaction = match step(&mut next, self.host.clock.now_ms(), input) {
            Ok(reaction) => reaction,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let actions = match reaction {
            Reaction::Acted(actions) => actions,
            Reaction::Ignored(why) => {
                tracing::debug!(run = %self.record.run, ?why, "ignored");
                return Ok(Ok(()));
            }
        };
        let mut events = before;
        let mut rest = Vec::new();
        for action in actions {
            match action {
                Action::Emit(event) => events.push(event),
                other => rest.push(other),
            }
        }
        events.extend(project::changes_by(&self.record, &self.state, &next));
        let (unheard, also) = ledger::unheard(&*self.host.store, &self.record.run, &next, &events, also)?;
        events.extend(unheard);
        let is_far_enough = self.until.is_reached(&self.state, &next, &events);
        if next.limits != self.state.limits {
            // Calls that wait under the old caps check again.
            self.executor.ledger().set_caps(&next.limits);
        }
        self.state = next;
        self.keep_closing(also, events, closing).await?;
        if is_far_enough && self.state.status() == RunStatus::Working {
            return self.pause_as_asked().await;
        }
        self.act(rest).await?;
        Ok(Ok(()))
    }

    async fn keep(&mut self, batch: Batch, events: Vec<Event>) -> fault::Result<()> {
        self.keep_closing(batch, events, None).await
    }

    /// Stores the state and its events: the steps of work under way first, then `events`.
    async fn keep_closing(&mut self, batch: Batch, events: Vec<Event>, closing: Option<Closing>) -> fault::Result<()> {
        let at_ms = self.host.clock.now_ms();
        let run = &self.record.run;
        // Steps of components change nothing in the state.
        let is_a_step_of_the_run = closing.is_some() || !events.is_empty() || !batch.ops.is_empty();
        let NewEvents { events: mut all, batch, marks } =
            self.marks.fresh(&*self.host.store, run, self.bus.take_steps(), batch)?;
        if !is_a_step_of_the_run && all.is_empty() {
            return Ok(());
        }
        all.extend(events);
        let numbered: Vec<RunEvent> = (self.event_number + 1..)
            .zip(all)
            .map(|(number, event)| RunEvent { run: run.clone(), number, at_ms, event })
            .collect();
        // What the ledger gives along is given once.
        let batch = self.executor.ledger().ride(batch);
        let mut attempts = step_attempts();
        loop {
            let batch = self.step_batch(batch.clone(), is_a_step_of_the_run, &numbered)?;
            let stored = match &closing {
                Some(Closing { recorder, finished }) => {
                    recorder.finish(finished.clone(), batch).await.map_err(Fault::from)
                }
                None => self.host.store.commit(batch).await.map_err(Fault::from),
            };
            match stored {
                Ok(()) => break,
                Err(error) => attempts.again(error).await?,
            }
        }
        self.marks.stored(marks);
        if is_a_step_of_the_run {
            self.until_kept = self.until;
        }
        (self.wake)();
        for event in numbered {
            self.event_number = event.number;
            self.bus.tell(BusMessage::Event(event));
        }
        Ok(())
    }

    /// Adds the events to a batch, and the state and what follows from it where they are a step of the run.
    fn step_batch(&self, mut batch: Batch, is_a_step_of_the_run: bool, events: &[RunEvent]) -> fault::Result<Batch> {
        let run = &self.record.run;
        if !is_a_step_of_the_run {
            record::put_events(&mut batch, run, events)?;
            return Ok(batch);
        }
        put_step(&*self.host.store, &mut batch, &self.record, &self.state, events)?;
        batch = ledger::put_wall(batch, run, self.worked.ms());
        if self.until != self.until_kept {
            batch = record::put_until(batch, run, self.until)?;
        }
        Ok(batch)
    }

    async fn act(&mut self, actions: Vec<Action>) -> fault::Result<()> {
        for action in actions {
            match action {
                Action::Work(work) => self.start(work).await?,
                Action::Cancel { key } => self.call_off(&key).await?,
                Action::Park(_) | Action::Finish { .. } | Action::Emit(_) => {}
            }
        }
        // A run that ends at a cap may still have work under way, which a later process continues from its journals.
        if self.state.paused || matches!(self.state.phase, Phase::Ended { .. }) {
            self.stop_all().await;
            self.waits.set(None);
            if self.queued_ms.take().is_some() {
                let batch = record::forget_queued(Batch::new(), &self.record.run);
                self.keep(batch, Vec::new()).await?;
            }
        }
        Ok(())
    }

    async fn start(&mut self, work: Work) -> fault::Result<()> {
        let key = work.key();
        if self.running.contains_key(&key) || !self.has_room().await? {
            return Ok(());
        }
        let mut batch = Batch::new();
        if self.queued_ms.take().is_some() {
            batch = record::forget_queued(batch, &self.record.run);
        }
        let announced: Vec<Event> = self.executor.announcement(&work).into_iter().collect();
        if !batch.is_empty() || !announced.is_empty() {
            self.keep(batch, announced).await?;
        }
        let cancel = Cancel::default();
        let (executor, state, own) = (Arc::clone(&self.executor), self.state.around(&work), cancel.clone());
        let task = tokio::spawn(async move { executor.perform(&work, &state, &own).await });
        self.running.insert(key, RunningWork { cancel, task });
        self.worked.go();
        Ok(())
    }

    /// Cancels work that is no longer wanted, and counts what it used.
    async fn call_off(&mut self, key: &str) -> fault::Result<()> {
        let running = self.running.remove(key);
        // Work that waits for capacity was requested and has not begun.
        if running.is_some() || self.waits.get().is_some() {
            let used = match running {
                Some(running) => running.stop().await.map(|ended| ended.used).unwrap_or_default(),
                None => WorkUsage::default(),
            };
            if self.running.is_empty() {
                self.worked.rest();
            }
            let report = WorkReport::Failed(WorkFailure::Failed("called off".into()));
            let input = Input::Done { key: key.to_owned(), used, report };
            Box::pin(self.take(input, None)).await??;
        }
        Ok(())
    }

    /// Stops all work at the same time, so that one piece does not wait for the other.
    async fn stop_all(&mut self) {
        self.running.values().for_each(|running| running.cancel.cancel());
        self.end_all().await;
    }

    /// Waits for work that was asked to end.
    async fn end_all(&mut self) {
        for running in std::mem::take(&mut self.running).into_values() {
            let _ = running.task.await;
        }
        self.worked.rest();
    }

    async fn work_ended(&mut self, key: String, ended: Result<EndedWork, String>) -> fault::Result<()> {
        let ended = match ended {
            Ok(ended) => ended,
            // A panic in the host ends one piece of work only.
            Err(panic) => EndedWork::failed(format!("a defect of longhaul: {panic}")),
        };
        let events = ended.events(&self.record.run, &key);
        let EndedWork { used, end, closing, batch, .. } = ended;
        let (input, batch) = match end {
            WorkEnd::Report(report) => (Input::Done { key, used, report }, batch),
            WorkEnd::Outage(outage) => {
                (Input::Done { key, used, report: WorkReport::Failed(WorkFailure::Suspended(outage)) }, batch)
            }
            WorkEnd::Parked(EffectQuestion { approval: Some(id), text, invocation, .. }) => {
                let batch = record::forget_question(batch, &self.record.run, &key);
                let input = Input::Parked { key, question: text, wanted: PersonRequest::Approval(id.clone()) };
                self.take_with(input, closing, batch, events).await??;
                return self.go_on_if_answered(&id, &invocation).await;
            }
            WorkEnd::Parked(question) => {
                let batch = record::put_question(batch, &self.record.run, &key, &question)?;
                let wanted = PersonRequest::Effect(question.answer_with());
                (Input::Parked { key, question: question.text, wanted }, batch)
            }
            WorkEnd::Stuck(reason) => {
                // Drops the question of an earlier effect.
                let batch = record::forget_question(batch, &self.record.run, &key);
                (Input::Parked { key, question: reason, wanted: PersonRequest::Words }, batch)
            }
            WorkEnd::Cancelled => return Ok(()),
        };
        self.take_with(input, closing, batch, events).await??;
        Ok(())
    }

    /// Continues when a person answered before the work that asked had come to rest.
    async fn go_on_if_answered(&mut self, id: &str, asked_by: &InvocationId) -> fault::Result<()> {
        let found = approvals::get(&*self.host.store, &self.record.run, id)?;
        if found.is_none_or(|approval| approval.standing == ApprovalStatus::Open) {
            return Ok(());
        }
        // The work does not wait any more when a person has answered since.
        let _ = self.take(Input::Approved { key: asked_by.action().to_owned() }, None).await?;
        Ok(())
    }
}

/// Returns when a run that waits for its turn may ask again; pending for ever for any other.
async fn queue_moved(place: &mut Option<RunPlace>) {
    match place {
        Some(place) => place.moved().await,
        None => std::future::pending().await,
    }
}

async fn sleep_ms(ms: Option<u64>) {
    match ms {
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
}
