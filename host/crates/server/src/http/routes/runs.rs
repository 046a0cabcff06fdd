//! Runs: listed, started, shown and steered.

use super::super::gate::{By, Caller};
use super::super::input::{Json, MaybeJson, PageParams, Query, limited, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::SharedState;
use super::projects::{absolute, directory_of};
use axum::extract::{Path, State};
use longhaul_api::features::{RecheckFeatures, RecheckOutcome};
use longhaul_api::operations::{FeatureOperations as _, RunOperations as _};
use longhaul_api::run_lists::{ListRunPage, RunPage};
use longhaul_api::runs::{
    AbandonRun, AffectedRun, AnswerRun, AskRequest, BeginRun, CancelTask, ListCommits, PauseRun, ResumeRun,
    RevertOutcome, RevertRun, ShowRun, Status, SteerRun, TakeBackAnswer,
};
use longhaul_api::tokens::TokenScope;
use longhaul_api::wire::features::PlanView;
use longhaul_api::wire::journal::ResolutionView;
use longhaul_api::wire::runs::{Log, RunDetails, RunStatus, RunView};
use longhaul_api::wire::usage;
use longhaul_harness::{Dispatch as InnerDispatch, RunStatus as InnerStatus};
use longhaul_models::set::ModelOptions;
use serde::Deserialize;
use std::path::PathBuf;
use utoipa::{IntoParams, ToSchema};

/// Filter and page of the list of runs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// Only of this project.
    project: Option<String>,
    /// Only of these statuses, with commas between them.
    status: Option<String>,
    /// Only those that are worked on in this moment, or only the others.
    active: Option<bool>,
    /// True: only those that are archived. Default false: only those that are not.
    archived: Option<bool>,
    /// Only of this agent.
    agent: Option<String>,
    /// Only those with this text in their name, title or project, whatever its case.
    search: Option<String>,
    /// Only those that were requested at this time or later, in milliseconds since 1970-01-01 UTC.
    after_ms: Option<u64>,
    /// Only those that were requested before this time, in milliseconds since 1970-01-01 UTC.
    before_ms: Option<u64>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List runs
///
/// The newest comes first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunsQuery), responses((status = 200, description = "A page of runs", body = Page<RunView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<RunsQuery>) -> ApiResult<Page<RunView>> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    let request = ListRunPage {
        project: query.project,
        statuses: query.status.as_deref().map(statuses).transpose()?,
        active: query.active,
        archived: query.archived.unwrap_or(false),
        agent: query.agent,
        search: query.search,
        after_ms: query.after_ms,
        before_ms: query.before_ms,
        limit,
        offset,
    };
    let RunPage { runs, total_count } = state.run_page(request).await?;
    Ok(Out(Page { items: runs.into_iter().map(RunView::from).collect(), total: total_count, limit, offset }))
}

fn statuses(text: &str) -> Result<Vec<InnerStatus>, Problem> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let read = |word: &str| match serde_json::from_value::<RunStatus>(word.into()) {
        Ok(status) => Ok(status.into()),
        Err(error) => Err(Problem::invalid("status", error.to_string())),
    };
    words.map(read).collect()
}

/// The run that is started: of a project by its name, or with the scope `admin` of one in a directory.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// The project, by its name.
    #[serde(default)]
    project: Option<String>,
    /// The project, by its directory on the server's machine. Needs the scope `admin`.
    #[serde(default)]
    directory: Option<String>,
    /// The plan that it follows; null: a planner is asked.
    #[serde(default)]
    plan: Option<PlanView>,
    /// Pause when the plan is there.
    #[serde(default)]
    plan_only: bool,
    /// Pause after so many sessions: attempts at a feature.
    #[serde(default)]
    #[schema(minimum = 1)]
    sessions: Option<u32>,
    /// Also when the project was given up.
    #[serde(default)]
    again: bool,
    /// Answer every model from this recording on the server's machine. Needs the scope `admin`.
    #[serde(default)]
    recorded: Option<String>,
}

/// Start a run of a project
#[utoipa::path(post, path = "/api/v1/runs", tag = "runs", request_body = NewRun, responses((status = 201, description = "It is started", body = AffectedRun)))]
pub async fn start(
    State(state): State<SharedState>,
    By(caller): By,
    Json(new): Json<NewRun>,
) -> Result<CreatedResponse<AffectedRun>, Problem> {
    let sessions = at_least_one(new.sessions)?;
    let request = BeginRun {
        directory: place(&state, &caller, new.project, new.directory).await?,
        models: models(&caller, new.recorded)?,
        plan: new.plan.map(Into::into),
        plan_only: new.plan_only,
        sessions,
        again: new.again,
    };
    Ok(made(state.begin_run(request).await?))
}

/// The agents that answer an ask.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "snake_case")]
#[schema(as = Dispatch)]
pub enum DispatchBody {
    /// One agent if there is one; of several a model says whether the goal is for one of them or for a plan.
    #[default]
    Auto,
    /// This agent.
    Agent(String),
    /// One agent; of several a model says which.
    Route,
    /// Several, as a planner plans.
    Plan,
}

/// The ask that is started.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAsk {
    /// The project, by its name.
    #[serde(default)]
    project: Option<String>,
    /// The project, by its directory on the server's machine. Needs the scope `admin`.
    #[serde(default)]
    directory: Option<String>,
    /// The goal.
    goal: String,
    /// The agents that answer.
    #[serde(default)]
    dispatch: DispatchBody,
    /// The tasks that are to be done; null: a planner says which, if it comes to a plan.
    #[serde(default)]
    plan: Option<PlanView>,
    /// Answer every model from this recording on the server's machine. Needs the scope `admin`.
    #[serde(default)]
    recorded: Option<String>,
}

/// Ask something
///
/// The answer is in the run, once it is completed.
#[utoipa::path(post, path = "/api/v1/asks", tag = "runs", request_body = NewAsk, responses((status = 201, description = "It is asked", body = AffectedRun)))]
pub async fn ask(
    State(state): State<SharedState>,
    By(caller): By,
    Json(new): Json<NewAsk>,
) -> Result<CreatedResponse<AffectedRun>, Problem> {
    let question = AskRequest {
        directory: place(&state, &caller, new.project, new.directory).await?,
        goal: new.goal,
        dispatch: match new.dispatch {
            DispatchBody::Auto => InnerDispatch::Auto,
            DispatchBody::Agent(name) => InnerDispatch::Agent(name),
            DispatchBody::Route => InnerDispatch::Route,
            DispatchBody::Plan => InnerDispatch::Plan,
        },
        plan: new.plan.map(Into::into),
        models: models(&caller, new.recorded)?,
    };
    Ok(made(state.begin_ask(question).await?))
}

fn at_least_one(sessions: Option<u32>) -> Result<Option<u32>, Problem> {
    match sessions {
        Some(0) => Err(Problem::invalid("sessions", "a run of no sessions does nothing; write 1 or more")),
        sessions => Ok(sessions),
    }
}

/// The directory of a project. Without the scope `admin` a caller names a project that the server knows.
async fn place(
    state: &SharedState,
    caller: &Caller,
    project: Option<String>,
    directory: Option<String>,
) -> Result<PathBuf, Problem> {
    match (project, directory) {
        (Some(project), None) => directory_of(state, &project).await,
        (None, Some(directory)) => {
            caller.expect(TokenScope::Admin)?;
            absolute("directory", &directory)
        }
        _ => Err(Problem::invalid("project", "name either the project or its directory")),
    }
}

fn models(caller: &Caller, recorded: Option<String>) -> Result<ModelOptions, Problem> {
    let Some(recorded) = recorded else { return Ok(ModelOptions::default()) };
    caller.expect(TokenScope::Admin)?;
    Ok(ModelOptions { replay_from: Some(absolute("recorded", &recorded)?), record_to: None })
}

fn made(affected: AffectedRun) -> CreatedResponse<AffectedRun> {
    let location = Some(format!("/api/v1/runs/{}", affected.run));
    CreatedResponse { told: affected, location }
}

/// The status of a run, with its features and its ledger.
pub async fn at_length(state: &SharedState, run: &str) -> Result<Status, Problem> {
    Ok(state.run_status(ShowRun { run: which(run)? }).await?)
}

/// Show a run
#[utoipa::path(get, path = "/api/v1/runs/{run}", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), responses((status = 200, description = "The run at length", body = RunDetails)))]
pub async fn status(State(state): State<SharedState>, Path(run): Path<String>) -> ApiResult<RunDetails> {
    Ok(Out(at_length(&state, &run).await?.into()))
}

/// Show the usage and the caps of a run
#[utoipa::path(get, path = "/api/v1/runs/{run}/ledger", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), responses((status = 200, description = "Its ledger", body = usage::LedgerDetails)))]
pub async fn ledger(State(state): State<SharedState>, Path(run): Path<String>) -> ApiResult<usage::LedgerDetails> {
    Ok(Out(at_length(&state, &run).await?.ledger.into()))
}

/// Nothing is to be said beside.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Pause a run
///
/// The work under way is stopped, and goes on from its journal when the run is resumed.
#[utoipa::path(post, path = "/api/v1/runs/{run}/pause", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), responses((status = 200, description = "It is paused", body = AffectedRun)))]
pub async fn pause(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.pause_run(PauseRun { run: which(&run)? }).await?))
}

/// The conditions under which a run goes on.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Try features again whose rounds were used up.
    #[serde(default)]
    retry_failing: bool,
    /// Pause again after so many sessions.
    #[serde(default)]
    #[schema(minimum = 1)]
    sessions: Option<u32>,
}

/// Go on with a run
#[utoipa::path(post, path = "/api/v1/runs/{run}/resume", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = inline(Option<Resume>), responses((status = 200, description = "It goes on", body = AffectedRun)))]
pub async fn resume(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    MaybeJson(how): MaybeJson<Resume>,
) -> ApiResult<AffectedRun> {
    let sessions = at_least_one(how.sessions)?;
    let request = ResumeRun { run: which(&run)?, retry_failing: how.retry_failing, sessions };
    Ok(Out(state.resume_run(request).await?))
}

/// The reason for which a run is given up.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Abandon {
    /// The reason, for the record.
    #[serde(default)]
    reason: Option<String>,
}

/// Give a run up
#[utoipa::path(post, path = "/api/v1/runs/{run}/abandon", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = inline(Option<Abandon>), responses((status = 200, description = "It is given up", body = AffectedRun)))]
pub async fn abandon(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    MaybeJson(why): MaybeJson<Abandon>,
) -> ApiResult<AffectedRun> {
    let reason = why.reason.unwrap_or_else(|| "abandoned by the operator".to_owned());
    Ok(Out(state.abandon_run(AbandonRun { run: which(&run)?, reason }).await?))
}

/// A correction.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// The task or feature; null: all that is worked on.
    #[serde(default)]
    task: Option<String>,
    /// The text that the agent is told at its next step.
    text: String,
}

/// Correct what is worked on
#[utoipa::path(post, path = "/api/v1/runs/{run}/steer", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = Steer, responses((status = 200, description = "The agent hears it at its next step", body = AffectedRun)))]
pub async fn steer(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(said): Json<Steer>,
) -> ApiResult<AffectedRun> {
    if said.text.trim().is_empty() {
        return Err(Problem::invalid("text", "an empty correction says nothing"));
    }
    let request = SteerRun { run: which(&run)?, task: said.task, text: said.text };
    Ok(Out(state.steer_run(request).await?))
}

/// An answer to what a run waits with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAnswer {
    /// The feature that is blocked; null when the run waits.
    #[serde(default)]
    feature: Option<String>,
    /// In words.
    #[serde(default)]
    text: String,
    /// The question about an effect, by its `id` in the run; null when `feature`, or that only one is open, says it.
    #[serde(default)]
    question: Option<String>,
    /// The person's knowledge of the effect, where the question is about one.
    #[serde(default)]
    resolution: Option<ResolutionView>,
    /// Retract the answer about an effect; possible until the run has used it.
    #[serde(default, alias = "take_back")]
    retract: bool,
}

/// Answer the question that a run, or a feature, waits with
#[utoipa::path(post, path = "/api/v1/runs/{run}/answer", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = NewAnswer, responses((status = 200, description = "It is answered, and the run goes on", body = AffectedRun)))]
pub async fn answer(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(said): Json<NewAnswer>,
) -> ApiResult<AffectedRun> {
    let NewAnswer { feature, text, question, resolution, retract } = said;
    let run = which(&run)?;
    if retract && (resolution.is_some() || !text.is_empty()) {
        return Err(Problem::invalid("retract", "an answer is either given or retracted"));
    }
    let affected = match retract {
        true => state.take_back_answer(TakeBackAnswer { run, feature, question }).await?,
        false => {
            let resolution = resolution.map(Into::into);
            state.answer_run(AnswerRun { run, feature, question, resolution, text }).await?
        }
    };
    Ok(Out(affected))
}

/// The features whose checks are run once more.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Recheck {
    /// Only those of this feature.
    #[serde(default)]
    feature: Option<String>,
}

/// Run the checks of features that pass once more
#[utoipa::path(post, path = "/api/v1/runs/{run}/recheck", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = inline(Option<Recheck>), responses((status = 200, description = "The results of the checks", body = RecheckOutcome)))]
pub async fn recheck(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    MaybeJson(wanted): MaybeJson<Recheck>,
) -> ApiResult<RecheckOutcome> {
    let request = RecheckFeatures { run: which(&run)?, feature: wanted.feature };
    Ok(Out(state.recheck_features(request).await?))
}

/// The commit to which a run goes back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// The commit, or the beginning of its name.
    to: String,
    /// Keep what is in no commit instead of refusing.
    #[serde(default)]
    stash: bool,
}

/// Go back to an earlier commit of a run that is not working
#[utoipa::path(post, path = "/api/v1/runs/{run}/revert", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = Revert, responses((status = 200, description = "It is done", body = RevertOutcome)))]
pub async fn revert(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(back): Json<Revert>,
) -> ApiResult<RevertOutcome> {
    let request = RevertRun { run: which(&run)?, to: back.to, stash: back.stash };
    Ok(Out(state.revert_run(request).await?))
}

/// Stop the work on one task or feature
///
/// A resume takes it up again.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/tasks/{task}/cancel",
    tag = "runs",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("task" = String, Path, description = "The task or feature")),
    responses((status = 200, description = "It is stopped", body = AffectedRun))
)]
pub async fn cancel(
    State(state): State<SharedState>,
    Path((run, task)): Path<(String, String)>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.cancel_task(CancelTask { run: which(&run)?, task }).await?))
}

/// Filter and length of the list of commits.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// At most so many. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Those that reverts took back, in place of those of the branch.
    reverted: Option<bool>,
}

/// List the commits of a run
///
/// The newest comes first.
#[utoipa::path(get, path = "/api/v1/runs/{run}/log", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it"), LogQuery), responses((status = 200, description = "Its commits", body = Log)))]
pub async fn log(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<LogQuery>,
) -> ApiResult<Log> {
    let limit = limited(query.limit, 100)?;
    let request = ListCommits { run: which(&run)?, limit, reverted: query.reverted.unwrap_or(false) };
    Ok(Out(state.commit_log(request).await?.into()))
}
