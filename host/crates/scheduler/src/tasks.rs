//! Tasks: listed, inspected and retried.

use crate::rows::{self, ScheduleTransaction};
use crate::service::{SchedulerService, StateGuard};
use crate::work::{self, BY_HAND};
use longhaul_api::agents::{AttemptView, ListTasks, PAGE_MAX, TaskList, TaskView};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_schedule::{ScheduleError, ScheduledTask, SchedulerInput, TaskId, TaskStatus};

impl SchedulerService {
    /// A page of tasks: those that have not ended, then the others, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn tasks(&self, request: ListTasks) -> fault::Result<TaskList> {
        let ListTasks { agent, status, limit, offset } = request;
        let agent = agent.as_ref();
        let limit = limit.min(PAGE_MAX);
        let turn = self.turn().await?;
        let mut open: Vec<ScheduledTask> = turn.state().tasks.values().cloned().collect();
        open.extend(rows::direct(&*self.store)?);
        let is_meant = |task: &ScheduledTask| {
            agent.is_none_or(|agent| task.agent == *agent) && status.is_none_or(|status| status.is(task.status))
        };
        open.retain(is_meant);
        open.sort_by_key(|task| (std::cmp::Reverse(task.fire_ms), task.id.clone()));
        let counted = rows::counts(&*self.store, agent)?.of(status);
        let total_count = open.len() + usize::try_from(counted).unwrap_or(usize::MAX);
        let first = open.iter().skip(offset).take(limit).map(|task| view(task, None));
        let mut tasks: Vec<TaskView> = first.collect();
        let left = limit - tasks.len();
        if left > 0 {
            let offset = offset.saturating_sub(open.len());
            let ended = rows::ended_tasks(&*self.store, agent, status, left, offset)?;
            tasks.extend(ended.iter().map(|row| view(&row.task, Some(row.ended_ms))));
        }
        Ok(TaskList { tasks, total_count, limit, offset })
    }

    /// One task with what its attempts gave.
    ///
    /// # Errors
    /// When there is no such task, and when the store fails.
    pub async fn task(&self, id: &str) -> fault::Result<TaskView> {
        let turn = self.turn().await?;
        self.task_in(&turn, &TaskId::from_text(id))
    }

    /// A task with the results of its attempts.
    pub(super) fn task_in(&self, turn: &StateGuard<'_>, id: &TaskId) -> fault::Result<TaskView> {
        let by_hand = || Ok::<_, Fault>(rows::direct(&*self.store)?.into_iter().find(|task| task.id == *id));
        let open = match turn.state().tasks.get(id) {
            Some(task) => Some(task.clone()),
            None => by_hand()?,
        };
        let (task, ended_ms) = match (open, rows::ended(&*self.store, id)?) {
            (Some(task), _) => (task, None),
            (None, Some(row)) => (row.task, Some(row.ended_ms)),
            (None, None) => bail!(no_task(id)),
        };
        let mut view = view(&task, ended_ms);
        let (mut results, is_run) = (rows::results(&*self.store, id)?, self.is_run(&task.agent)?);
        for (number, attempt) in (1..).zip(&mut view.attempts) {
            attempt.result = results.remove(&number);
            let own = usize::try_from(number).ok().filter(|_| is_run).map(|number| work::run_id(&task, number));
            attempt.run = attempt.result.as_ref().and_then(|result| result.run.clone()).or(own);
        }
        Ok(view)
    }

    /// Retries the same task: its earlier attempts stay with it. It is retried however often that was done before, and
    /// however many tasks wait.
    ///
    /// # Errors
    /// When it is no failed task, when it was withdrawn before it began, and when the store fails.
    pub async fn retry(&self, id: &str) -> fault::Result<TaskView> {
        let id = TaskId::from_text(id);
        let mut turn = self.turn().await?;
        let open = turn.state().tasks.get(&id).map(|task| task.status);
        let by_hand = rows::direct(&*self.store)?.into_iter().find(|task| task.id == id).map(|task| task.status);
        if let Some(status) = open.or(by_hand) {
            return Err(ScheduleError::NotFailed { task: id.to_string(), status: status.word() }.into());
        }
        let Some(row) = rows::ended(&*self.store, &id)? else {
            bail!(no_task(&id));
        };
        if row.task.status == TaskStatus::Failed && row.task.attempts.is_empty() {
            bail!(Fault::conflict(format!(
                "task {id} was withdrawn before it began; have its schedule fire with `longhaul schedule run-now`"
            )));
        }
        let (state, actions) = turn.next(SchedulerInput::Retry(Box::new(row.task.clone())))?;
        let mut writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        writing.revive(&row)?;
        turn.keep(state, &actions, writing).await?;
        self.task_in(&turn, &id)
    }
}

fn view(task: &ScheduledTask, ended_ms: Option<u64>) -> TaskView {
    let attempts = task.attempts.iter().cloned();
    TaskView {
        id: task.id.clone(),
        schedule: Some(task.schedule.clone()).filter(|schedule| schedule.as_str() != BY_HAND),
        agent: task.agent.clone(),
        fire_ms: task.fire_ms,
        due_ms: task.due_ms,
        cause: task.cause.clone(),
        status: task.status,
        waits_for: task.waits_for.clone(),
        retry_count: task.retry_count(),
        retries_max: task.retries_max,
        interruption_count: task.interruptions,
        interruptions_max: task.interruptions_max,
        failure: task.failure,
        attempts: attempts.map(|attempt| AttemptView { attempt, result: None, run: None }).collect(),
        ended_ms,
    }
}

fn no_task(id: &TaskId) -> Fault {
    Fault::unknown(format!("there is no task `{}`; `longhaul schedule tasks` lists them", short(id)))
}

/// The id as a person typed it.
fn short(id: &TaskId) -> String {
    longhaul_core::text::printable(id.as_str(), 80)
}
