//! Who waits for what is due, and has it done.
//!
//! One works in the process that owns the data directory. It sleeps until something is due, is changed, or has ended,
//! and never for long, since the clock of a machine may jump. It looks at no clock but the desk's.

use crate::desk::{Desk, lock};
use crate::rows::Writing;
use crate::work::{Hands, Start};
use longhaul_core::fault::{self, bail};
use longhaul_schedule::{Input, Task, TaskStatus};
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
    desk: Arc<Desk>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Scheduler {
    /// Starts it: what was running when an earlier process ended goes on, or has failed and is tried again. `hands`
    /// execute asks and runs.
    ///
    /// # Errors
    /// When one works in this process already, and when the store cannot be read.
    pub async fn start(desk: Arc<Desk>, hands: Arc<dyn Hands>) -> fault::Result<Self> {
        // Read now, so that what is wrong with the file is said at once, and what becomes wrong later changes nothing.
        let _ = desk.notifier.config();
        Self::over(desk, hands).await
    }

    pub(super) async fn over(desk: Arc<Desk>, hands: Arc<dyn Hands>) -> fault::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        {
            let turn = desk.turn().await?;
            let mut starts = lock(&desk.starts);
            if starts.is_some() {
                bail!("a scheduler works in this process already");
            }
            let running = turn.state().tasks.values().filter(|task| task.status == TaskStatus::Running);
            for task in running.cloned() {
                let _ = sender.send(Start { task });
            }
            *starts = Some(sender);
        }
        let (stopping, is_stopping) = watch::channel(false);
        let work = Work { desk: Arc::clone(&desk), hands, attempts: JoinSet::new(), stopping: is_stopping };
        Ok(Self { task: tokio::spawn(work.live(receiver)), desk, stopping })
    }

    /// Starts nothing more, gives code that runs five seconds to end, and lets go of asks and runs, which the next
    /// scheduler takes up. Returns when nothing is under way any more.
    pub async fn stop(self) {
        *lock(&self.desk.starts) = None;
        let _ = self.stopping.send(true);
        let _ = self.task.await;
    }
}

struct Work {
    desk: Arc<Desk>,
    hands: Arc<dyn Hands>,
    attempts: JoinSet<()>,
    stopping: watch::Receiver<bool>,
}

impl Work {
    async fn live(mut self, mut starts: mpsc::UnboundedReceiver<Start>) {
        let mut stopping = self.stopping.clone();
        while !*stopping.borrow() {
            let sleep = self.look().await;
            tokio::select! {
                Some(start) = starts.recv() => self.begin(start),
                () = self.desk.changed.notified() => {}
                Some(_) = self.attempts.join_next() => {}
                () = tokio::time::sleep(sleep) => {}
                _ = stopping.changed() => break,
            }
        }
        *lock(&self.desk.starts) = None;
        // What was to start and has not begun: it is as if it had never been asked for.
        while let Ok(start) = starts.try_recv() {
            self.put_back(&start.task).await;
        }
        while self.attempts.join_next().await.is_some() {}
    }

    /// Has done what is due, and says how long nothing is.
    async fn look(&self) -> Duration {
        match self.desk.tick().await {
            Ok(Some(wake_in_ms)) => Duration::from_millis(wake_in_ms).clamp(SLEEP_MIN, SLEEP_MAX),
            Ok(None) => SLEEP_MAX,
            Err(error) => {
                tracing::error!("the scheduler cannot go on for now: {error:#}");
                SLEEP_AFTER_ERROR
            }
        }
    }

    fn begin(&mut self, start: Start) {
        let (desk, hands, stopping) = (Arc::clone(&self.desk), Arc::clone(&self.hands), self.stopping.clone());
        self.attempts.spawn(async move { desk.attempt(start, hands, stopping).await });
    }

    async fn put_back(&self, task: &Task) {
        let until_ms = self.desk.clock.now_ms();
        let reason = "the scheduler, which was stopped".to_owned();
        if let Err(error) = self.desk.take(Input::Deferred { task: task.id.clone(), reason, until_ms }).await {
            // It is found as running then, and looked after when a scheduler works again.
            tracing::warn!(task = %task.id, "it could not be put back: {error:#}");
        }
    }
}

impl Desk {
    /// Time passed. Answers in how many milliseconds something is due.
    pub(super) async fn tick(&self) -> fault::Result<Option<u64>> {
        let mut turn = self.turn().await?;
        if lock(&self.starts).is_none() {
            return Ok(None);
        }
        let (state, actions) = turn.next(Input::Tick)?;
        let wake_in_ms = state.wake_ms().map(|wake_ms| wake_ms.saturating_sub(self.clock.now_ms()));
        if actions.is_empty() && state.tasks == turn.state().tasks && state.schedules == turn.state().schedules {
            return Ok(wake_in_ms);
        }
        let writing = Writing::new(&*self.store, self.clock.now_ms());
        turn.keep(state, &actions, writing).await?;
        Ok(wake_in_ms)
    }
}
