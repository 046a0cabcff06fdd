//! Schedules and their tasks. Three paths stand outside of `/api/v1`, where programs have looked for tasks before.

use super::super::input::{Json, MaybeJson, PageParams, Query, limited};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use super::runs::Nothing;
use axum::extract::{Path, State};
use longhaul_api::agents::{
    EnableSchedule, FIRES, FireSchedule, ListSchedules, ListSkipped, ListTasks, PutSchedule, RemoveSchedule, RetryTask,
    SchedulerStatus, ShowSchedule, ShowScheduler, ShowTask, TaskList,
};
use longhaul_api::operations::ScheduleOperations as _;
use longhaul_api::wire::agents::name;
use longhaul_api::wire::schedules::{
    AgentTasks, NewSchedule, Retried, ScheduleDetails, SkippedPage, TaskDetails, TaskStatusView,
};
use longhaul_core::Name;
use serde::Deserialize;
use utoipa::IntoParams;

/// Reads the name of a schedule; text that cannot be a name is an unknown schedule.
fn named(schedule: &str) -> Result<Name, Problem> {
    name("schedule", schedule)
        .map_err(|_| Problem::unknown("there is no such schedule; GET /api/v1/schedules lists them"))
}

/// List the schedules
///
/// By name, with their next fires.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "schedules", params(PageQuery), responses((status = 200, description = "A page of schedules", body = Page<ScheduleDetails>)))]
pub async fn list(
    State(state): State<SharedState>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Page<ScheduleDetails>> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    Ok(Out(state.schedules(ListSchedules { limit, offset }).await?.into()))
}

/// Make a schedule
#[utoipa::path(post, path = "/api/v1/schedules", tag = "schedules", request_body = NewSchedule, responses((status = 201, description = "It is made", body = ScheduleDetails)))]
pub async fn create(
    State(state): State<SharedState>,
    Json(new): Json<NewSchedule>,
) -> Result<CreatedResponse<ScheduleDetails>, Problem> {
    let request = PutSchedule { schedule: new.taken()?, replace: false };
    let told: ScheduleDetails = state.put_schedule(request).await?.into();
    let location = Some(format!("/api/v1/schedules/{}", told.name));
    Ok(CreatedResponse { told, location })
}

/// Show a schedule
#[utoipa::path(get, path = "/api/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), responses((status = 200, description = "The schedule", body = ScheduleDetails)))]
pub async fn show(State(state): State<SharedState>, Path(schedule): Path<String>) -> ApiResult<ScheduleDetails> {
    Ok(Out(state.schedule(ShowSchedule { name: named(&schedule)?, fires: FIRES }).await?.into()))
}

/// Replace a schedule
#[utoipa::path(put, path = "/api/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), request_body = NewSchedule, responses((status = 200, description = "It is replaced", body = ScheduleDetails)))]
pub async fn replace(
    State(state): State<SharedState>,
    Path(schedule): Path<String>,
    Json(new): Json<NewSchedule>,
) -> ApiResult<ScheduleDetails> {
    if new.name != schedule {
        return Err(Problem::invalid("name", "the schedule of the path has another name, which cannot be changed"));
    }
    // A misspelt name must not make a new schedule.
    state.schedule(ShowSchedule { name: named(&schedule)?, fires: 0 }).await?;
    Ok(Out(state.put_schedule(PutSchedule { schedule: new.taken()?, replace: true }).await?.into()))
}

/// Remove a schedule, with what it has waiting
#[utoipa::path(delete, path = "/api/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), responses((status = 200, description = "As it was", body = ScheduleDetails)))]
pub async fn remove(State(state): State<SharedState>, Path(schedule): Path<String>) -> ApiResult<ScheduleDetails> {
    Ok(Out(state.remove_schedule(RemoveSchedule { name: named(&schedule)? }).await?.into()))
}

/// Switch a schedule off
///
/// Its waiting tasks are noted as skipped.
#[utoipa::path(post, path = "/api/v1/schedules/{schedule}/pause", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), responses((status = 200, description = "It fires only by hand", body = ScheduleDetails)))]
pub async fn pause(
    State(state): State<SharedState>,
    Path(schedule): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<ScheduleDetails> {
    Ok(Out(state.enable_schedule(EnableSchedule { name: named(&schedule)?, enabled: false }).await?.into()))
}

/// Switch a schedule on
#[utoipa::path(post, path = "/api/v1/schedules/{schedule}/resume", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), responses((status = 200, description = "It fires", body = ScheduleDetails)))]
pub async fn resume(
    State(state): State<SharedState>,
    Path(schedule): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<ScheduleDetails> {
    Ok(Out(state.enable_schedule(EnableSchedule { name: named(&schedule)?, enabled: true }).await?.into()))
}

/// Have a schedule fire now
#[utoipa::path(post, path = "/api/v1/schedules/{schedule}/run-now", tag = "schedules", params(("schedule" = String, Path, description = "Its name")), responses((status = 200, description = "The task that came of it", body = TaskDetails)))]
pub async fn run_now(
    State(state): State<SharedState>,
    Path(schedule): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<TaskDetails> {
    Ok(Out(state.fire_schedule(FireSchedule { name: named(&schedule)? }).await?.into()))
}

/// Length of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LimitQuery {
    /// At most so many. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Show fires of a schedule that became no task
#[utoipa::path(get, path = "/api/v1/schedules/{schedule}/skipped", tag = "schedules", params(("schedule" = String, Path, description = "Its name"), LimitQuery), responses((status = 200, description = "The newest first", body = SkippedPage)))]
pub async fn skipped(
    State(state): State<SharedState>,
    Path(schedule): Path<String>,
    Query(query): Query<LimitQuery>,
) -> ApiResult<SkippedPage> {
    let limit = limited(query.limit, 100)?;
    Ok(Out(state.skipped_fires(ListSkipped { name: named(&schedule)?, limit }).await?.into()))
}

/// Show how the scheduler stands
#[utoipa::path(get, path = "/api/v1/scheduler", tag = "schedules", responses((status = 200, description = "How it stands", body = SchedulerStatus)))]
pub async fn status(State(state): State<SharedState>) -> ApiResult<SchedulerStatus> {
    Ok(Out(state.scheduler_status(ShowScheduler {}).await?))
}

/// Filter and page of the list of tasks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TasksQuery {
    /// Only those of this agent.
    agent: Option<String>,
    /// Only those with this status.
    #[param(inline)]
    status: Option<TaskStatusView>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List tasks
///
/// Those that have not ended come first, then the others, the newest first.
#[utoipa::path(get, path = "/api/v1/tasks", tag = "schedules", params(TasksQuery), responses((status = 200, description = "A page of tasks", body = Page<TaskDetails>)))]
pub async fn tasks(State(state): State<SharedState>, Query(query): Query<TasksQuery>) -> ApiResult<Page<TaskDetails>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let agent = query.agent.map(|agent| name("agent", &agent)).transpose()?;
    Ok(Out(listed(&state, agent, query.status, window).await?.into()))
}

async fn listed(
    state: &SharedState,
    agent: Option<Name>,
    status: Option<TaskStatusView>,
    window: PageParams,
) -> Result<TaskList, Problem> {
    let PageParams { limit, offset } = window;
    Ok(state.tasks(ListTasks { agent, status: status.map(Into::into), limit, offset }).await?)
}

/// Filter and page of the list of an agent's tasks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentTasksQuery {
    /// Only those with this status.
    #[param(inline)]
    status: Option<TaskStatusView>,
    /// Tasks of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Tasks before it. Default 0.
    offset: Option<usize>,
}

/// List the tasks of an agent
#[utoipa::path(get, path = "/api/tasks/agents/{agent}/tasks", tag = "schedules", params(("agent" = String, Path, description = "The agent's name"), AgentTasksQuery), responses((status = 200, description = "A page of its tasks", body = AgentTasks)))]
pub async fn of_agent(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    Query(query): Query<AgentTasksQuery>,
) -> ApiResult<AgentTasks> {
    let window = PageParams::of(query.limit, query.offset)?;
    let agent =
        name("agent", &agent).map_err(|_| Problem::unknown("there is no such agent; GET /api/v1/agents lists them"))?;
    Ok(Out(listed(&state, Some(agent), query.status, window).await?.into()))
}

/// Show a task with what its attempts gave
#[utoipa::path(get, path = "/api/tasks/{task}", tag = "schedules", params(("task" = String, Path, description = "Its name")), responses((status = 200, description = "The task", body = TaskDetails)))]
pub async fn task(State(state): State<SharedState>, Path(task): Path<String>) -> ApiResult<TaskDetails> {
    Ok(Out(state.task(ShowTask { id: task }).await?.into()))
}

/// Try a task again that failed: the same one, also when its retries are used up
#[utoipa::path(post, path = "/api/tasks/{task}/retry", tag = "schedules", params(("task" = String, Path, description = "Its name")), responses((status = 200, description = "It is tried again", body = Retried)))]
pub async fn retry(
    State(state): State<SharedState>,
    Path(task): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<Retried> {
    let task: TaskDetails = state.retry_task(RetryTask { id: task }).await?.into();
    // The attempt that it waits for is not among its attempts yet.
    let waits = u32::from(task.status == TaskStatusView::Pending);
    let (retry_count, max_retries) = (task.retry_count.saturating_add(waits), task.max_retries);
    let message =
        format!("task {} is retried by hand: retry {retry_count}; up to {max_retries} are automatic", task.id);
    Ok(Out(Retried { message, retry_count, max_retries }))
}
