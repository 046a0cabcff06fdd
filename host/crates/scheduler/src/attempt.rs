//! One attempt at a task: it loads the agent's artifact, executes its code, summarises and saves the result. The end of
//! the task, the new artifact, and the scheduler's new state are one transaction. An attempt that the host interrupts
//! is stored as such, and costs the task no retry.

use crate::interruptions;
use crate::rows::{self, ScheduleTransaction};
use crate::schedules;
use crate::service::{SchedulerService, StateGuard, lock};
use crate::summary;
use crate::work::{AgentExecutor, AgentWork, BY_HAND, NewAttempt, end_by_hand, outcome};
use futures_util::FutureExt as _;
use longhaul_agents::compress::{self, FinishedRun};
use longhaul_agents::{
    AdmissionDecision, AdmissionRequest, ArtifactHead, ArtifactOutcome, ExecutionResult, NewArtifactVersion,
};
use longhaul_api::agents::{AgentExecution, ExecuteAgent};
use longhaul_core::Name;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_schedule::{
    Attempt, INTERRUPTIONS_MAX, RETRIES_MAX, RetryBackoff, ScheduledTask, SchedulerInput, TaskCause, TaskId, TaskStatus,
};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The time for which a task waits while its agent is busy.
const BUSY_WAIT_MS: u64 = 1_000;
/// The shortest wait that an admission may impose on a task.
const ADMISSION_WAIT_MS_MIN: u64 = 100;
/// The longest time that code may continue once the scheduler stops.
const GRACE: Duration = Duration::from_secs(5);
/// Wait before another attempt to store the end of a task.
const STORE_WAIT: Duration = Duration::from_secs(5);
/// Bytes of an error that an attempt keeps.
const ERROR_BYTES_MAX: usize = 2_000;
/// Bytes of the input of an execution by hand.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// The state at the beginning of an attempt.
enum PreparedAttempt {
    Work(Box<AgentWork>),
    Wait { reason: String, for_ms: u64 },
    Over(ExecutionResult),
}

impl SchedulerService {
    /// Makes an attempt at a task of the scheduler, up to its stored end. An ask or a run that continues elsewhere is
    /// left alone; so is everything once `stopping` says that no time is left.
    pub(super) async fn attempt(
        &self,
        start: NewAttempt,
        agent_executor: Arc<dyn AgentExecutor>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let task = start.task;
        let work = match self.prepare(&task) {
            Ok(PreparedAttempt::Work(work)) => work,
            Ok(PreparedAttempt::Wait { reason, for_ms }) => return self.defer(&task, &reason, for_ms, &stopping).await,
            Ok(PreparedAttempt::Over(result)) => return self.ended(&task, None, &result, &stopping).await,
            Err(error) => {
                let result = ExecutionResult::failed(format!("{error:#}"), false);
                return self.ended(&task, None, &result, &stopping).await;
            }
        };
        let is_run = work.record.agent.code.is_run();
        if is_run {
            self.began(&work).await;
        }
        self.crash.reach("agents.before-run");
        let executed = tokio::select! {
            executed = carry_out(&*agent_executor, &work) => executed,
            () = grace(&mut stopping, is_run) => None,
        };
        let result = match executed {
            Some(result) => result,
            // The run continues from its state when a scheduler works again.
            None if is_run && stops_soon(&mut stopping).await => return,
            None if is_run => ExecutionResult::failed("its run was let go of, and goes on with the next attempt", true),
            None => return self.interrupted(&task, &stopping).await,
        };
        self.crash.reach("agents.ran");
        self.ended(&task, Some(&work), &result, &stopping).await;
        self.crash.reach("agents.ended");
    }

    /// Runs an agent now, on request.
    ///
    /// # Errors
    /// When the input is too large, and when the store fails. A failed execution is a response.
    pub async fn execute(
        &self,
        ExecuteAgent { name, input }: ExecuteAgent,
        agent_executor: &dyn AgentExecutor,
    ) -> fault::Result<AgentExecution> {
        let name = &name;
        if input.as_ref().is_some_and(|input| input.to_string().len() > INPUT_BYTES_MAX) {
            bail!("the input has more than {INPUT_BYTES_MAX} bytes; hand data over as a file in a directory");
        }
        let (task, work) = match self.begin_by_hand(name, input).await? {
            Ok(begun) => begun,
            Err((task, result)) => return Ok(AgentExecution { task, result }),
        };
        let _busy = ByHand { scheduler_service: self, agent: name };
        self.crash.reach("agents.before-run");
        let unfinished = || ExecutionResult::failed("the host stopped before it had ended", true);
        let result = carry_out(agent_executor, &work).await.unwrap_or_else(unfinished);
        self.crash.reach("agents.ran");
        let result = self.finish(&task, Some(&work), &result).await?;
        self.crash.reach("agents.ended");
        Ok(AgentExecution { task: Some(task.id), result })
    }

    /// Begins a task for the request. Without code to run the task exists too, and has failed.
    async fn begin_by_hand(
        &self,
        name: &Name,
        input: Option<Value>,
    ) -> fault::Result<Result<(ScheduledTask, Box<AgentWork>), (Option<TaskId>, ExecutionResult)>> {
        let turn = self.turn().await?;
        if let Some(busy) = self.busy(&turn, name) {
            let error = format!(
                "Agent {name} is at work on task {busy} already; wait for it, or look at it with: longhaul schedule tasks --task {busy}"
            );
            return Ok(Err((None, ExecutionResult::failed(error, true))));
        }
        let mut task = self.task_by_hand(name)?;
        let (work, over) = match self.prepare(&task) {
            Ok(PreparedAttempt::Work(work)) => (Some(Box::new(AgentWork { input, ..*work })), None),
            Ok(PreparedAttempt::Wait { reason, .. }) => {
                let error = format!("Agent {name} cannot start now: it waits for {reason}");
                return Ok(Err((None, ExecutionResult::failed(error, true))));
            }
            Ok(PreparedAttempt::Over(result)) => (None, Some(result)),
            Err(error) => (None, Some(ExecutionResult::failed(format!("{error:#}"), false))),
        };
        let mut writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        match (work, over) {
            (Some(work), _) => {
                if let Some(attempt) = task.attempts.last_mut().filter(|_| work.record.agent.code.is_run()) {
                    attempt.artifact_version = Some(work.head.version);
                }
                writing.begin_by_hand(&task)?;
                self.commit(writing.finish()?).await?;
                lock(&self.by_hand).insert(name.clone(), task.id.clone());
                drop(turn);
                Ok(Ok((task, work)))
            }
            (None, over) => {
                let result = over.unwrap_or_default();
                end_by_hand(&mut task, &result, self.clock.now_ms());
                let id = task.id.clone();
                writing.result(&task, &result)?;
                writing.ended_by_hand(task)?;
                self.commit(writing.finish()?).await?;
                Ok(Err((Some(id), result)))
            }
        }
    }

    fn task_by_hand(&self, agent: &Name) -> fault::Result<ScheduledTask> {
        let (schedule, now_ms) = (by_hand_schedule()?, self.clock.now_ms());
        let cause = TaskCause::Hand { nonce: schedules::nonce() };
        Ok(ScheduledTask {
            id: TaskId::of(&schedule, now_ms, &cause),
            schedule,
            agent: agent.clone(),
            fire_ms: now_ms,
            due_ms: now_ms,
            cause,
            status: TaskStatus::Running,
            attempts: vec![Attempt::begun(now_ms)],
            retries_max: RETRIES_MAX,
            backoff: RetryBackoff::default(),
            interruptions_max: INTERRUPTIONS_MAX,
            interruptions: 0,
            progress: None,
            waits_for: None,
            failure: None,
        })
    }

    /// The task that an agent is working on.
    pub(super) fn busy(&self, turn: &StateGuard<'_>, agent: &Name) -> Option<TaskId> {
        let by_hand = lock(&self.by_hand).get(agent).cloned();
        let is_running = |task: &&ScheduledTask| task.status == TaskStatus::Running && task.agent == *agent;
        by_hand.or_else(|| turn.state().tasks.values().find(is_running).map(|task| task.id.clone()))
    }

    fn prepare(&self, task: &ScheduledTask) -> fault::Result<PreparedAttempt> {
        let name = &task.agent;
        let Some(record) = rows::agent(&*self.store, name)? else {
            return Ok(PreparedAttempt::Over(ExecutionResult::not_found(name.as_str())));
        };
        if !record.agent.active {
            return Ok(PreparedAttempt::Over(ExecutionResult::not_active(name.as_str())));
        }
        let head = rows::head(&*self.store, name)?;
        if let Some(other) = lock(&self.by_hand).get(name) {
            let reason = format!("task `{other}` of the same agent, which was started by hand");
            return Ok(PreparedAttempt::Wait { reason, for_ms: BUSY_WAIT_MS });
        }
        let wanted = AdmissionRequest {
            agent: name.clone(),
            task: task.id.to_string(),
            kind: record.agent.code.kind(),
            memory_bytes_max: record.agent.limits.memory_bytes_max,
        };
        if let AdmissionDecision::Wait { reason, for_ms } = self.admission().admit(&wanted) {
            return Ok(PreparedAttempt::Wait { reason, for_ms: for_ms.max(ADMISSION_WAIT_MS_MIN) });
        }
        Ok(PreparedAttempt::Work(Box::new(AgentWork { task: task.clone(), record, head, input: None })))
    }

    async fn defer(&self, task: &ScheduledTask, reason: &str, for_ms: u64, stopping: &watch::Receiver<bool>) {
        let until_ms = self.clock.now_ms().saturating_add(for_ms);
        let input = || SchedulerInput::Deferred { task: task.id.clone(), reason: reason.to_owned(), until_ms };
        while let Err(error) = self.take(input()).await {
            tracing::warn!(task = %task.id, "that it waits could not be stored: {error:#}");
            if *stopping.borrow() {
                return;
            }
            tokio::time::sleep(STORE_WAIT).await;
        }
    }

    /// Stores the version of the artifact with which a run begins; a run that goes on keeps its own. Without it, the
    /// run counts as begun with the version of the attempt that ends it.
    async fn began(&self, work: &AgentWork) {
        let (task, artifact_version) = (work.task.id.clone(), work.head.version);
        if let Err(error) = self.take(SchedulerInput::Began { task, artifact_version }).await {
            tracing::warn!(task = %work.task.id, "the version of its artifact could not be stored: {error:#}");
        }
    }

    /// Stores that the host interrupts an attempt, as [`Self::ended`] stores its end.
    async fn interrupted(&self, task: &ScheduledTask, stopping: &watch::Receiver<bool>) {
        while let Err(error) = self.interrupt(task).await {
            tracing::warn!(task = %task.id, "that it is interrupted could not be stored: {error:#}");
            if *stopping.borrow() {
                return;
            }
            tokio::time::sleep(STORE_WAIT).await;
        }
    }

    async fn interrupt(&self, task: &ScheduledTask) -> fault::Result<()> {
        let mut turn = self.turn().await?;
        let (state, actions) = turn.next(SchedulerInput::Interrupted { task: task.id.clone(), progress: None })?;
        let mut writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        interruptions::put(&mut writing, &self.notifier, task, &actions)?;
        turn.keep(state, &actions, writing).await
    }

    pub(super) async fn take(&self, input: SchedulerInput) -> fault::Result<()> {
        self.turn().await?.take(input).await
    }

    /// Stores the end of an attempt, and retries without limit: a task that has ended must not stay running. Once the
    /// scheduler stops, the next one finds the attempt as interrupted.
    async fn ended(
        &self,
        task: &ScheduledTask,
        work: Option<&AgentWork>,
        result: &ExecutionResult,
        stopping: &watch::Receiver<bool>,
    ) {
        while let Err(error) = self.finish(task, work, result).await {
            tracing::warn!(task = %task.id, "its end could not be stored, and is again: {error:#}");
            if *stopping.borrow() {
                return;
            }
            tokio::time::sleep(STORE_WAIT).await;
        }
    }

    /// The end of an attempt, in one transaction. Returns the stored result, which may be worse than the real one: a
    /// state that is too large is a failure.
    async fn finish(
        &self,
        task: &ScheduledTask,
        work: Option<&AgentWork>,
        result: &ExecutionResult,
    ) -> fault::Result<ExecutionResult> {
        let mut result = result.clone();
        if let Some(error) = &mut result.error_message {
            *error = longhaul_core::text::printable(error, ERROR_BYTES_MAX);
        }
        let handed = match work {
            Some(work) => Some(self.sum_up(work, &result).await),
            None => None,
        };
        let mut turn = self.turn().await?;
        let now_ms = self.clock.now_ms();
        let mut writing = ScheduleTransaction::new(&*self.store, now_ms);
        let mut next = None;
        if let (Some(work), Some(handed)) = (work, &handed) {
            next = self.next_head(work, handed, &mut result, now_ms);
        }
        let (state, actions) = match task.schedule.as_str() == BY_HAND && !turn.state().tasks.contains_key(&task.id) {
            true => {
                let mut task = task.clone();
                end_by_hand(&mut task, &result, now_ms);
                writing.ended_by_hand(task)?;
                (turn.state().clone(), Vec::new())
            }
            false => turn.next(SchedulerInput::Ended(task.id.clone(), outcome(&result)))?,
        };
        let is_over = !turn.state().tasks.contains_key(&task.id) || !state.tasks.contains_key(&task.id);
        if let (true, Some((head, outcome))) = (is_over, &next) {
            writing.head(&task.agent, head)?;
            result.artifact = Some(*outcome);
            if !outcome.saved {
                let note = conflict_note(head, outcome);
                tracing::warn!(agent = %task.agent, task = %task.id, "{note}");
                result.notes.push(note);
            }
        }
        writing.result(task, &result)?;
        writing.tell(&self.notifier, &actions, &result)?;
        self.crash.reach("agents.before-end");
        turn.keep(state, &actions, writing).await?;
        self.notifier.wake();
        Ok(result)
    }

    /// The printed output, split by stream, with its summary.
    async fn sum_up(&self, work: &AgentWork, result: &ExecutionResult) -> PrintedResult {
        let printed = compress::printed(&result.stdout);
        let error = result.error_message.as_deref();
        let summary = match (&printed.summary, &work.record.agent.summary_by) {
            (Some(summary), _) => summary.clone(),
            (None, Some(by)) if result.success => match summary::of(&*self.models, by, &printed.output).await {
                Ok(summary) => summary,
                Err(why) => {
                    tracing::warn!(agent = %work.task.agent, "no model summed its output up: {why:#}");
                    compress::summary(&printed.output, error)
                }
            },
            (None, _) => compress::summary(&printed.output, error),
        };
        PrintedResult { printed, summary }
    }

    /// The artifact after the task: a new version on that with which it began, or else the present one as it is. None
    /// when it cannot be kept, which the result then reports.
    fn next_head(
        &self,
        work: &AgentWork,
        handed: &PrintedResult,
        result: &mut ExecutionResult,
        now_ms: u64,
    ) -> Option<(ArtifactHead, ArtifactOutcome)> {
        let name = &work.task.agent;
        let now = match rows::head(&*self.store, name) {
            Ok(now) => now,
            Err(error) => {
                result.notes.push(format!("the artifact was not kept: {error:#}"));
                return None;
            }
        };
        let base_version = work.base_version(result.run.as_ref());
        let outcome = |version, saved| ArtifactOutcome { base_version, version, saved };
        // Another run, or a person who meant the next run, changed the artifact meanwhile. This run did not see that,
        // so whatever it would add belongs to an earlier state.
        if now.version != base_version {
            return Some((now.conflicted(), outcome(now.version, false)));
        }
        let printed = handed.printed.state.clone().filter(|_| result.success);
        if result.truncated && result.success && printed.is_none() {
            let note = "some output was dropped; if it ended in a state, that was not seen: raise `output_bytes_max`";
            result.notes.push(note.to_owned());
        }
        let before = now.artifact.as_ref().map(|artifact| artifact.state.clone());
        let config = &work.record.agent.config;
        let state = match printed {
            Some(state) => Some(compress::without_laid_over(state, before.as_ref(), config, work.input.as_ref())),
            None => before.clone(),
        };
        let next = |state: Option<Value>, result: &ExecutionResult, summary: String| {
            let error = result.error_message.as_deref().filter(|_| !result.success);
            let run_count = now.run_count() + 1;
            let ran = FinishedRun { output: &handed.printed.output, run_count, at_ms: now_ms, error };
            let state = compress::compress(state, &ran);
            let made_by = format!("task {}", work.task.id);
            now.with(name, NewArtifactVersion { state, summary, run_count, at_ms: now_ms, made_by })
        };
        let made = match next(state, result, handed.summary.clone()) {
            Ok(head) => Some(head),
            Err(error) => {
                let error = error.to_string();
                (result.success, result.retryable) = (false, false);
                result.error_message = Some(error.clone());
                next(before, result, compress::summary("", Some(&error)))
                    .map_err(|error| result.notes.push(format!("the artifact was not kept: {error}")))
                    .ok()
            }
        };
        made.map(|head| {
            let version = head.version;
            (head, outcome(version, true))
        })
    }

    pub(super) fn is_run(&self, agent: &Name) -> fault::Result<bool> {
        // A record that is gone, or cannot be read, runs nothing.
        Ok(rows::agent(&*self.store, agent).ok().flatten().is_some_and(|record| record.agent.code.is_run()))
    }
}

/// The reason why an execution left the artifact as it is.
fn conflict_note(head: &ArtifactHead, outcome: &ArtifactOutcome) -> String {
    let ArtifactOutcome { base_version, version, .. } = outcome;
    let by = head.artifact.as_ref().map_or("a person, who cleared it", |artifact| artifact.made_by.as_str());
    format!(
        "the artifact of this execution was not kept: it began with version {base_version}, and version {version} was made while it ran, by {by}; that one stays whole"
    )
}

/// The printed output, split by stream, with its summary.
struct PrintedResult {
    printed: compress::PrintedOutput,
    summary: String,
}

/// Marks an agent as run by hand until it has ended, even if its caller does not wait for it.
struct ByHand<'a> {
    scheduler_service: &'a SchedulerService,
    agent: &'a Name,
}

impl Drop for ByHand<'_> {
    fn drop(&mut self) {
        lock(&self.scheduler_service.by_hand).remove(self.agent);
        self.scheduler_service.changed.notify_one();
    }
}

pub(super) fn by_hand_schedule() -> fault::Result<Name> {
    BY_HAND.parse().or_internal(|| "a name of our own")
}

/// Executes the work; a defect of the host becomes a result as well.
async fn carry_out(agent_executor: &dyn AgentExecutor, work: &AgentWork) -> Option<ExecutionResult> {
    match AssertUnwindSafe(agent_executor.run(work)).catch_unwind().await {
        Ok(result) => result,
        Err(_) => Some(ExecutionResult::failed("a defect of longhaul; its log says more", false)),
    }
}

/// True when the scheduler stops, or is about to: a run is released when its service stops, which may come first.
async fn stops_soon(stopping: &mut watch::Receiver<bool>) -> bool {
    matches!(tokio::time::timeout(GRACE, stopping.wait_for(|stopping| *stopping)).await, Ok(Ok(_)))
}

/// Waits until no time is left: a run continues elsewhere and is released at once.
async fn grace(stopping: &mut watch::Receiver<bool>, is_run: bool) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // The sender is gone, so no stop can come.
        std::future::pending::<()>().await;
    }
    if !is_run {
        tokio::time::sleep(GRACE).await;
    }
}
