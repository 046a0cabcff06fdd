//! Decisions and memory of a project; proposals and trajectories of its agents.

use super::super::input::{Json, MaybeJson, PageParams, Query, limited, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use super::runs::Nothing;
use axum::extract::{Path, State};
use http::StatusCode;
use longhaul_api::decisions::{JudgeDecision, ListDecisions};
use longhaul_api::features::{AcceptProposal, ListProposals, RejectProposal};
use longhaul_api::memory::{ForgetMemory, ListMemory, MemoryScope, SearchMemory};
use longhaul_api::operations::{
    DecisionOperations as _, FeatureOperations as _, MemoryOperations as _, TrajectoryOperations as _,
};
use longhaul_api::runs::{AffectedRun, RunRef};
use longhaul_api::trajectories::TrajectoryFilter;
use longhaul_api::trajectories::{AnnotateTrajectory, InvocationEnding, ListTrajectories, ShowTrajectory};
use longhaul_api::wire::knowledge::{DecisionView, Decisions, Memories, Outcome, ProposalView, TrajectoryView};
use longhaul_records::proposals::{Proposal as InnerProposal, ProposedChange};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// Question and length of the list of decisions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DecisionsQuery {
    /// Those that bear on this question, the best first; without one all, the newest first.
    question: Option<String>,
    /// At most so many. Default 20.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// List the decisions of a run's project
#[utoipa::path(get, path = "/api/v1/runs/{run}/decisions", tag = "knowledge", params(("run" = String, Path, description = "A run of the project, by its name or the beginning of it"), DecisionsQuery), responses((status = 200, description = "Its decisions", body = Decisions)))]
pub async fn decisions(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<DecisionsQuery>,
) -> ApiResult<Decisions> {
    let limit = limited(query.limit, 20)?;
    let question = query.question.filter(|question| !question.trim().is_empty());
    let hits = state.decisions(ListDecisions { run: which(&run)?, question, limit }).await?;
    Ok(Out(hits.into()))
}

/// The judgement of a decision; fields that are null stay as they were.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Judgement)]
pub struct JudgementBody {
    /// The outcome of the decision.
    #[serde(default)]
    outcome: Option<Outcome>,
    /// The quality of the outcome, from -1 to 1; a value beyond is cut.
    #[serde(default)]
    score: Option<f64>,
    /// The lesson for later decisions.
    #[serde(default)]
    lesson: Option<String>,
}

/// Judge a decision by its outcome
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/decisions/{decision}/judge",
    tag = "knowledge",
    params(("run" = String, Path, description = "A run of the project, by its name or the beginning of it"), ("decision" = String, Path, description = "Its id, or the beginning of it")),
    request_body = JudgementBody,
    responses((status = 200, description = "The decision", body = DecisionView))
)]
pub async fn judge(
    State(state): State<SharedState>,
    Path((run, id)): Path<(String, String)>,
    Json(said): Json<JudgementBody>,
) -> ApiResult<DecisionView> {
    let JudgementBody { outcome, score, lesson } = said;
    let run = which(&run)?;
    let request = JudgeDecision { run, id, outcome: outcome.map(Into::into), score, lesson };
    Ok(Out(state.judge_decision(request).await?.into()))
}

/// Filter and length of the list of memories.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MemoryQuery {
    /// A question: the entries that bear on it are listed, the best first.
    query: Option<String>,
    /// Only keys that start so; not with a question.
    prefix: Option<String>,
    /// Only the entries of this scope.
    #[param(inline)]
    #[serde(alias = "shelf")]
    scope: Option<MemoryScope>,
    /// At most so many of each scope. Default 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Show the memory of a run's project
#[utoipa::path(get, path = "/api/v1/runs/{run}/memory", tag = "knowledge", params(("run" = String, Path, description = "A run of the project, by its name or the beginning of it"), MemoryQuery), responses((status = 200, description = "The entries of the memory", body = Memories)))]
pub async fn memory(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(asked): Query<MemoryQuery>,
) -> ApiResult<Memories> {
    let limit = limited(asked.limit, 50)?;
    let run = which(&run)?;
    let found = match asked.query.filter(|query| !query.trim().is_empty()) {
        Some(query) => {
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            state.search_memory(SearchMemory { run, query, limit }).await?
        }
        None => state.memories(ListMemory { run, prefix: asked.prefix.unwrap_or_default(), limit }).await?,
    };
    let mut found = Memories::from(found);
    found.items.retain(|one| asked.scope.is_none_or(|scope| scope == one.scope));
    Ok(Out(found))
}

/// The memory that is forgotten.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForgetQuery {
    /// Its key.
    key: String,
    /// Its scope; null: each scope that has the key.
    #[param(inline)]
    #[serde(alias = "shelf")]
    scope: Option<MemoryScope>,
}

/// Forget something
#[utoipa::path(delete, path = "/api/v1/runs/{run}/memory", tag = "knowledge", params(("run" = String, Path, description = "A run of the project, by its name or the beginning of it"), ForgetQuery), responses((status = 200, description = "The entries that were deleted", body = Memories)))]
pub async fn forget(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(asked): Query<ForgetQuery>,
) -> ApiResult<Memories> {
    let request = ForgetMemory { run: which(&run)?, key: asked.key, shelf: asked.scope };
    Ok(Out(state.forget_memory(request).await?.into()))
}

/// List what agents of a run proposed
///
/// Oldest first, the decided ones included.
#[utoipa::path(get, path = "/api/v1/runs/{run}/proposals", tag = "knowledge", params(("run" = String, Path, description = "The run's name, or the beginning of it"), PageQuery), responses((status = 200, description = "A page of proposals", body = Page<ProposalView>)))]
pub async fn proposals(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Page<ProposalView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    Ok(Out(Page::of(proposed(&state, which(&run)?).await?, window, ProposalView::from)))
}

async fn proposed(state: &SharedState, run: RunRef) -> Result<Vec<InnerProposal>, Problem> {
    Ok(state.proposals(ListProposals { run }).await?)
}

/// Do what an agent proposed
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/proposals/{proposal}/accept",
    tag = "knowledge",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("proposal" = String, Path, description = "Its id")),
    responses((status = 200, description = "It is done", body = AffectedRun))
)]
pub async fn accept(
    State(state): State<SharedState>,
    Path((run, proposal)): Path<(String, String)>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AffectedRun> {
    let run = which(&run)?;
    expect_no_project(&state, run.clone(), &proposal).await?;
    Ok(Out(state.accept_proposal(AcceptProposal { run, proposal }).await?))
}

/// Refuses the proposal of a project: neither an agent nor a caller with the scope `run` alone decides where one is
/// made.
pub(super) async fn expect_no_project(state: &SharedState, run: RunRef, proposal: &str) -> Result<(), Problem> {
    let is_project =
        |one: &InnerProposal| one.id == proposal && matches!(one.change, ProposedChange::NewProject { .. });
    if !proposed(state, run).await?.iter().any(is_project) {
        return Ok(());
    }
    let detail = "a project needs a place: accept it with `longhaul features accept`, or make one with POST /api/v1/projects and reject this";
    Err(Problem::new(StatusCode::CONFLICT, detail))
}

/// The rejection of a proposal.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The reason, for the agents.
    #[serde(default, alias = "why")]
    reason: String,
}

/// Do not do what an agent proposed
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/proposals/{proposal}/reject",
    tag = "knowledge",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("proposal" = String, Path, description = "Its id")),
    request_body = inline(Option<Rejection>),
    responses((status = 200, description = "It is rejected", body = AffectedRun))
)]
pub async fn reject(
    State(state): State<SharedState>,
    Path((run, proposal)): Path<(String, String)>,
    MaybeJson(said): MaybeJson<Rejection>,
) -> ApiResult<AffectedRun> {
    let request = RejectProposal { run: which(&run)?, proposal, reason: said.reason };
    Ok(Out(state.reject_proposal(request).await?))
}

/// Filter and page of the list of trajectories.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TrajectoriesQuery {
    /// Of every run of the project, and not only of this one. Default no.
    all_runs: Option<bool>,
    /// Only of this agent, by its name under `[agents]`.
    agent: Option<String>,
    /// Only those that ended so.
    #[param(inline)]
    ending: Option<InvocationEnding>,
    /// Yes: only those with a rating or a correction. No: only those with neither.
    annotated: Option<bool>,
    /// Only those with this rating or a better one.
    #[param(minimum = 1, maximum = 5)]
    rating_min: Option<u8>,
    /// Only those with this rating or a worse one.
    #[param(minimum = 1, maximum = 5)]
    rating_max: Option<u8>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List what agents were told, said and did
///
/// In the order in which they started, without the messages.
#[utoipa::path(get, path = "/api/v1/runs/{run}/trajectories", tag = "knowledge", params(("run" = String, Path, description = "The run's name, or the beginning of it"), TrajectoriesQuery), responses((status = 200, description = "A page of trajectories", body = Page<TrajectoryView>)))]
pub async fn trajectories(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<TrajectoriesQuery>,
) -> ApiResult<Page<TrajectoryView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let wanted = TrajectoryFilter {
        all_runs: query.all_runs.unwrap_or(false),
        agent: query.agent,
        ending: query.ending,
        annotated: query.annotated,
        rating_min: rating("rating_min", query.rating_min)?,
        rating_max: rating("rating_max", query.rating_max)?,
    };
    let trajectories = state.trajectories(ListTrajectories { run: which(&run)?, wanted }).await?;
    Ok(Out(Page::of(trajectories, window, TrajectoryView::from)))
}

/// Refuses a rating that nothing has.
pub(super) fn rating(field: &str, said: Option<u8>) -> Result<Option<u8>, Problem> {
    match said {
        Some(said) if !(1..=5).contains(&said) => {
            Err(Problem::invalid(field, format!("{field} is {said}; write a number from 1 to 5")))
        }
        said => Ok(said),
    }
}

/// The trajectory that is shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TrajectoryQuery {
    /// The invocation, with or without the run's name.
    invocation: String,
}

/// Show what one agent was told, said and did, with the messages
#[utoipa::path(get, path = "/api/v1/runs/{run}/trajectory", tag = "knowledge", params(("run" = String, Path, description = "The run's name, or the beginning of it"), TrajectoryQuery), responses((status = 200, description = "The trajectory", body = TrajectoryView)))]
pub async fn trajectory(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<TrajectoryQuery>,
) -> ApiResult<TrajectoryView> {
    let request = ShowTrajectory { run: which(&run)?, invocation: query.invocation };
    Ok(Out(state.trajectory(request).await?.into()))
}

/// The annotation of a trajectory; fields that are null stay as they were.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Annotation)]
pub struct AnnotationBody {
    /// The invocation, with or without the run's name.
    invocation: String,
    /// From 1, bad, to 5, good.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 5)]
    rating: Option<u8>,
    /// The answer that would have been right.
    #[serde(default)]
    correction: Option<String>,
}

/// Annotate a trajectory
#[utoipa::path(post, path = "/api/v1/runs/{run}/trajectory/annotate", tag = "knowledge", params(("run" = String, Path, description = "The run's name, or the beginning of it")), request_body = AnnotationBody, responses((status = 200, description = "The trajectory", body = TrajectoryView)))]
pub async fn annotate(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(said): Json<AnnotationBody>,
) -> ApiResult<TrajectoryView> {
    let AnnotationBody { invocation, rating, correction } = said;
    let request = AnnotateTrajectory { run: which(&run)?, invocation, rating, correction };
    Ok(Out(state.annotate_trajectory(request).await?.into()))
}
