//! The scheduler loop: waits for due tasks and starts them.
//!
//! One scheduler works in the process that owns the data directory. It sleeps until something is due, changes, or ends,
//! and never for long, since the clock of a machine may jump. It reads no clock but that of the scheduler service.

use crate::rows::ScheduleTransaction;
use crate::service::{SchedulerService, lock};
use crate::work::{AgentExecutor, NewAttempt};
use longhaul_core::fault::{self, bail};
use longhaul_schedule::{ScheduledTask, SchedulerInput, TaskStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// The shortest sleep, which limits the writes to a full store.
const SLEEP_MIN: Duration = Duration::from_millis(2);
/// The sleep after an error of the store.
const SLEEP_AFTER_ERROR: Duration = Duration::from_secs(2);

/// A running scheduler. Dropped without [`Self::stop`], it starts nothing more and waits for nothing.
pub struct Scheduler {
    scheduler_service: Arc<SchedulerService>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Scheduler {
    /// Starts it: attempts that ran when an earlier process ended continue, or have failed and are retried. The agent
    /// executor runs asks and runs.
    ///
    /// # Errors
    /// When a scheduler works in this process already, and when the store cannot be read.
    pub async fn start(
        scheduler_service: Arc<SchedulerService>,
        agent_executor: Arc<dyn AgentExecutor>,
    ) -> fault::Result<Self> {
        // Reads the file now, so that its faults are reported at once, and later faults change nothing.
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

    /// Starts nothing more, gives running code five seconds to end, and releases asks and runs, which the next
    /// scheduler continues. Returns when no attempt is under way.
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
        // A start that has not begun counts as never requested.
        while let Ok(start) = starts.try_recv() {
            self.put_back(&start.task).await;
        }
        while self.attempts.join_next().await.is_some() {}
    }

    /// Handles everything that is due, and returns how long nothing will be.
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
            // The task then counts as running, and the next scheduler picks it up.
            tracing::warn!(task = %task.id, "it could not be put back: {error:#}");
        }
    }
}

impl SchedulerService {
    /// Applies the passage of time. Returns in how many milliseconds something is due.
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
