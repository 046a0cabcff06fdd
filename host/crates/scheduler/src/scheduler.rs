//! Who waits for what is due, and has it done.
//!
//! One works in the process that owns the data directory. It sleeps until something is due, is changed, or has ended,
//! and never for long, since the clock of a machine may jump. It looks at no clock but the desk's.

use crate::desk::{SchedulerService, lock};
use crate::rows::ScheduleTransaction;
use crate::work::{AgentExecutor, NewAttempt};
use longhaul_core::fault::{self, bail};
use longhaul_schedule::{ScheduledTask, SchedulerInput, TaskStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// The shortest sleep, so that a store that is full is not written to without end.
const SLEEP_MIN: Duration = Duration::from_millis(2);
/// The sleep after an error of the store.
const SLEEP_AFTER_ERROR: Duration = Duration::from_secs(2);

/// A scheduler at work. Dropped without [`Self::stop`], it starts nothing more and waits for nothing.
pub struct Scheduler {
    scheduler_service: Arc<SchedulerService>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Scheduler {
    /// Starts it: what was running when an earlier process ended goes on, or has failed and is tried again. `hands`
    /// execute asks and runs.
    ///
    /// # Errors
    /// When one works in this process already, and when the store cannot be read.
    pub async fn start(
        scheduler_service: Arc<SchedulerService>,
        agent_executor: Arc<dyn AgentExecutor>,
    ) -> fault::Result<Self> {
        // Read now, so that what is wrong with the file is said at once, and what becomes wrong later changes nothing.
        let _ = scheduler_service.notifier.config();
        Self::over(scheduler_service, agent_executor).await
    }

    pub(super) async fn over(
        scheduler_service: Arc<SchedulerService>,
        agent_executor: Arc<dyn AgentExecutor>,
    ) -> fault::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        {
            let turn = scheduler_service.turn().await?;
            let mut starts = lock(&scheduler_service.starts);
            if starts.is_some() {
                bail!("a scheduler works in this process already");
            }
            let running = turn.state().tasks.values().filter(|task| task.status == TaskStatus::Running);
            for task in running.cloned() {
                let _ = sender.send(NewAttempt { task });
            }
            *starts = Some(sender);
        }
        let (stopping, is_stopping) = watch::channel(false);
        let work = SchedulerLoop {
            scheduler_service: Arc::clone(&scheduler_service),
            agent_executor,
            attempts: JoinSet::new(),
            stopping: is_stopping,
        };
        Ok(Self { task: tokio::spawn(work.live(receiver)), scheduler_service, stopping })
    }

    /// Starts nothing more, gives code that runs five seconds to end, and lets go of asks and runs, which the next
    /// scheduler takes up. Returns when nothing is under way any more.
    pub async fn stop(self) {
        *lock(&self.scheduler_service.starts) = None;
        let _ = self.stopping.send(true);
        let _ = self.task.await;
    }
}

struct SchedulerLoop {
    scheduler_service: Arc<SchedulerService>,
    agent_executor: Arc<dyn AgentExecutor>,
    attempts: JoinSet<()>,
    stopping: watch::Receiver<bool>,
}

impl SchedulerLoop {
    async fn live(mut self, mut starts: mpsc::UnboundedReceiver<NewAttempt>) {
        let mut stopping = self.stopping.clone();
        while !*stopping.borrow() {
            let sleep = self.look().await;
            tokio::select! {
                Some(start) = starts.recv() => self.begin(start),
                () = self.scheduler_service.changed.notified() => {}
                Some(_) = self.attempts.join_next() => {}
                () = tokio::time::sleep(sleep) => {}
                _ = stopping.changed() => break,
            }
        }
        *lock(&self.scheduler_service.starts) = None;
        // What was to start and has not begun: it is as if it had never been asked for.
        while let Ok(start) = starts.try_recv() {
            self.put_back(&start.task).await;
        }
        while self.attempts.join_next().await.is_some() {}
    }

    /// Has done what is due, and says how long nothing is.
    async fn look(&self) -> Duration {
        match self.scheduler_service.tick().await {
            Ok(Some(wake_in_ms)) => Duration::from_millis(wake_in_ms).clamp(SLEEP_MIN, SLEEP_MAX),
            Ok(None) => SLEEP_MAX,
            Err(error) => {
                tracing::error!("the scheduler cannot go on for now: {error:#}");
                SLEEP_AFTER_ERROR
            }
        }
    }

    fn begin(&mut self, start: NewAttempt) {
        let (scheduler_service, agent_executor, stopping) =
            (Arc::clone(&self.scheduler_service), Arc::clone(&self.agent_executor), self.stopping.clone());
        self.attempts.spawn(async move { scheduler_service.attempt(start, agent_executor, stopping).await });
    }

    async fn put_back(&self, task: &ScheduledTask) {
        let until_ms = self.scheduler_service.clock.now_ms();
        let reason = "the scheduler, which was stopped".to_owned();
        if let Err(error) =
            self.scheduler_service.take(SchedulerInput::Deferred { task: task.id.clone(), reason, until_ms }).await
        {
            // It is found as running then, and looked after when a scheduler works again.
            tracing::warn!(task = %task.id, "it could not be put back: {error:#}");
        }
    }
}

impl SchedulerService {
    /// Time passed. Answers in how many milliseconds something is due.
    pub(super) async fn tick(&self) -> fault::Result<Option<u64>> {
        let mut turn = self.turn().await?;
        if lock(&self.starts).is_none() {
            return Ok(None);
        }
        let (state, actions) = turn.next(SchedulerInput::Tick)?;
        let wake_in_ms = state.wake_ms().map(|wake_ms| wake_ms.saturating_sub(self.clock.now_ms()));
        if actions.is_empty() && state.tasks == turn.state().tasks && state.schedules == turn.state().schedules {
            return Ok(wake_in_ms);
        }
        let writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        turn.keep(state, &actions, writing).await?;
        Ok(wake_in_ms)
    }
}
