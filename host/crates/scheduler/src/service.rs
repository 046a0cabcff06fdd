//! The scheduler service: the state of the scheduler behind one lock, and its operations. Refuses to hold in memory
//! what is not stored.

use crate::rows::{self, ScheduleTransaction};
use crate::work::{self, NewAttempt};
use longhaul_agents::{Admission, AdmitAll, ExecutionResult};
use longhaul_config::server::{self, SchedulerSettings};
use longhaul_core::fault;
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Store};
use longhaul_core::{Clock, Name};
use longhaul_exec::Executor;
use longhaul_home::Home;
use longhaul_home::crash::CrashPoints;
use longhaul_notify::Notifier;
use longhaul_records::commit_loss;
use longhaul_schedule::{
    RetryBackoff, SchedulerAction, SchedulerInput, SchedulerLimits, SchedulerState, TaskId, edit, step,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OnceCell, mpsc};

/// The service of agents, schedules and tasks.
pub struct SchedulerService {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) home: Home,
    pub(crate) crash: CrashPoints,
    /// Sends notifications about failed tasks.
    pub(crate) notifier: Arc<Notifier>,
    /// The models that summarise outputs.
    pub(crate) models: Arc<dyn ProjectModels>,
    /// The state; the lock is held for each change, and the first holder reads the state from the store.
    state: tokio::sync::Mutex<Option<SchedulerState>>,
    pub(crate) executor: OnceCell<Executor>,
    /// Receives tasks that are to be started, while a scheduler works.
    pub(crate) starts: Mutex<Option<mpsc::UnboundedSender<NewAttempt>>>,
    /// Agents that are running on request.
    pub(crate) by_hand: Mutex<BTreeMap<Name, TaskId>>,
    admission: Mutex<Arc<dyn Admission>>,
    /// Notifies the scheduler of changes that it may wait for.
    pub(crate) changed: Notify,
}

impl SchedulerService {
    /// The service of a data directory. It reads nothing yet, and loads no interpreter.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        home: &Home,
        crash: CrashPoints,
        notifier: Arc<Notifier>,
        models: Arc<dyn ProjectModels>,
    ) -> Self {
        Self {
            store,
            clock,
            home: home.clone(),
            crash,
            notifier,
            models,
            state: tokio::sync::Mutex::default(),
            executor: OnceCell::new(),
            starts: Mutex::default(),
            by_hand: Mutex::default(),
            admission: Mutex::new(Arc::new(AdmitAll)),
            changed: Notify::new(),
        }
    }

    /// Asks `admission` before each attempt from now on. Default: every attempt is admitted.
    pub fn admit_by(&self, admission: Arc<dyn Admission>) {
        *lock(&self.admission) = admission;
    }

    /// Locks the state of the scheduler, for reading or changing.
    pub(crate) async fn turn(&self) -> fault::Result<StateGuard<'_>> {
        let mut held = self.state.lock().await;
        let state = match held.take() {
            Some(state) => state,
            None => self.load().await?,
        };
        *held = Some(state);
        Ok(StateGuard { scheduler_service: self, held })
    }

    /// Reads the state from the store, in the process that owns it: the work of an earlier process was interrupted.
    /// Asks and runs continue from their state; all other attempts are made again. A task by hand has failed, because
    /// nobody waits for it any more. After a loss of commits no task that may have begun goes on by itself.
    async fn load(&self) -> fault::Result<SchedulerState> {
        let (mut state, now_ms) = (rows::load(&*self.store)?, self.clock.now_ms());
        let before = state.clone();
        state.limits = self.limits();
        let mut writing = ScheduleTransaction::new(&*self.store, now_ms);
        let doubt = commit_loss::of_tasks(&*self.store)?;
        match doubt {
            Some(loss) => self.end_in_doubt(&mut state, &mut writing, loss, now_ms)?,
            None => self.interrupt_all(&mut state, &mut writing, now_ms)?,
        }
        for mut task in rows::direct(&*self.store)? {
            let mut ended = ExecutionResult::host_ended();
            if self.is_run(&task.agent)? {
                let run = work::run_id(&task, task.attempts.len());
                ended.error_message = Some(format!("the host ended while it ran; go on with `longhaul resume {run}`"));
                ended.run = Some(run);
            }
            work::end_by_hand(&mut task, &ended, now_ms);
            writing.result(&task, &ended)?;
            writing.ended_by_hand(task)?;
        }
        writing.state(&before, &state)?;
        let mut batch = writing.finish()?;
        if doubt.is_some() {
            commit_loss::forget_tasks(&mut batch);
        }
        self.commit(batch).await?;
        self.notifier.wake();
        Ok(state)
    }

    /// The limits of the data directory. A faulty file leaves the defaults; a server refuses to start with it.
    fn limits(&self) -> SchedulerLimits {
        let settings = server::scheduler(self.home.path()).unwrap_or_else(|error| {
            tracing::warn!("[scheduler] of the data directory is taken as not written: {error:#}");
            SchedulerSettings::default()
        });
        let (ms_first, ms_max) = (settings.interruption_backoff_ms_first, settings.interruption_backoff_ms_max);
        SchedulerLimits {
            queue_max: settings.queue_max,
            interruption_backoff: RetryBackoff { ms_first, ms_max, factor: 2 },
        }
    }

    pub(crate) async fn commit(&self, batch: Batch) -> fault::Result<()> {
        if !batch.is_empty() {
            self.store.commit(batch).await?;
        }
        Ok(())
    }

    pub(crate) fn admission(&self) -> Arc<dyn Admission> {
        Arc::clone(&lock(&self.admission))
    }
}

/// The locked state.
pub(crate) struct StateGuard<'a> {
    scheduler_service: &'a SchedulerService,
    held: tokio::sync::MutexGuard<'a, Option<SchedulerState>>,
}

impl StateGuard<'_> {
    pub(crate) fn state(&self) -> &SchedulerState {
        static EMPTY: std::sync::LazyLock<SchedulerState> = std::sync::LazyLock::new(SchedulerState::default);
        // The state was read before the guard was given out.
        self.held.as_ref().unwrap_or(&EMPTY)
    }

    /// Applies an input: returns the new state, and the actions to take. Nothing is stored yet.
    pub(crate) fn next(&self, input: SchedulerInput) -> fault::Result<(SchedulerState, Vec<SchedulerAction>)> {
        let (mut state, now_ms) = (self.state().clone(), self.scheduler_service.clock.now_ms());
        let works = lock(&self.scheduler_service.starts).is_some();
        let actions = if works { step(&mut state, input, now_ms)? } else { edit(&mut state, input, now_ms)? };
        Ok((state, actions))
    }

    /// Applies an input and stores the changes.
    pub(crate) async fn take(&mut self, input: SchedulerInput) -> fault::Result<()> {
        let (state, actions) = self.next(input)?;
        let writing = ScheduleTransaction::new(&*self.scheduler_service.store, self.scheduler_service.clock.now_ms());
        self.keep(state, &actions, writing).await
    }

    /// Stores a state with the actions that led to it, and dispatches the actions.
    pub(crate) async fn keep(
        &mut self,
        state: SchedulerState,
        actions: &[SchedulerAction],
        mut writing: ScheduleTransaction<'_>,
    ) -> fault::Result<()> {
        writing.take(actions)?;
        writing.state(self.state(), &state)?;
        self.scheduler_service.commit(writing.finish()?).await?;
        *self.held = Some(state);
        self.start(actions);
        self.scheduler_service.changed.notify_one();
        Ok(())
    }

    fn start(&self, actions: &[SchedulerAction]) {
        let starts = lock(&self.scheduler_service.starts);
        for action in actions {
            // Without a receiver the task counts as running, and the next scheduler picks it up.
            if let (SchedulerAction::Start(task), Some(starts)) = (action, &*starts) {
                let _ = starts.send(NewAttempt { task: task.clone() });
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
