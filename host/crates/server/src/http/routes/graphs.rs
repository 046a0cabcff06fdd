//! Graphs of steps of code: their steps with sources, output, dependencies and states; runs of them, and changes of a step.
//!
//! A step sees what its graph was granted when a person made it. Whoever may change a step whose graph sees directories or
//! hosts has them, too, so such a change needs the scope `admin`, as a job of `exec` with them does.

use super::super::gate::By;
use super::super::input::{Json, MaybeJson, PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::{Place, SharedState, place};
use super::projects::PageQuery;
use axum::extract::{Path, State};
use http::StatusCode;
use longhaul_api::graphs::{ListGraphs, OperateGraph, RunGraph, ShowGraph};
use longhaul_api::operations::GraphOperations as _;
use longhaul_api::tokens::TokenScope;
use longhaul_api::wire::graphs::{GraphDetails, GraphRunView, GraphStepChange, GraphView};
use longhaul_core::graph::{GraphAnswer, GraphOperation, GraphSummary};
use serde::Deserialize;
use std::time::Duration;
use utoipa::ToSchema;

/// A request without a token of its own is carried out each time that it arrives.
const NO_TOKEN: String = String::new();

/// The graph of a name.
async fn named(state: &SharedState, name: &str) -> Result<GraphSummary, Problem> {
    let found = state.graphs(ListGraphs {}).await?.into_iter().find(|graph| graph.name == name);
    found.ok_or_else(|| Problem::unknown("there is no such graph; GET /api/v1/graphs lists them"))
}

/// Room for one more job on this machine.
fn room(state: &SharedState) -> Result<Place, Problem> {
    let most = state.settings().exec_max;
    let full = || {
        let detail = format!("{most} jobs run, which is exec_max in [server] of server.toml; come again");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1), detail)
    };
    place(state, most, |state| &state.jobs).ok_or_else(full)
}

/// List the graphs
///
/// By name, those of agents included.
#[utoipa::path(get, path = "/api/v1/graphs", tag = "graphs", params(PageQuery), responses((status = 200, description = "A page of graphs", body = Page<GraphView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<PageQuery>) -> ApiResult<Page<GraphView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    Ok(Out(Page::of(state.graphs(ListGraphs {}).await?, window, GraphView::from)))
}

/// Show a graph with its steps
///
/// Each step has its source, the output of its last run, the steps that it needs, and its state: `stale` if it is to be
/// run again, also since a file that it read has changed.
#[utoipa::path(get, path = "/api/v1/graphs/{graph}", tag = "graphs", params(("graph" = String, Path, description = "Its name"), PageQuery), responses((status = 200, description = "The graph, and a page of its steps", body = GraphDetails)))]
pub async fn show(
    State(state): State<SharedState>,
    Path(graph): Path<String>,
    Query(query): Query<PageQuery>,
) -> ApiResult<GraphDetails> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    let GraphSummary { name, .. } = named(&state, &graph).await?;
    Ok(Out(state.graph_page(ShowGraph { name, limit, offset }).await?.into()))
}

/// Which steps are run.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphRunOrder {
    /// A step that is run again although nothing changed, with the steps that its new values affect. Default: only stale
    /// steps are run.
    #[serde(default)]
    from: Option<String>,
    /// A step that acts and was interrupted: it is run again, although its effects may have happened.
    #[serde(default)]
    again: Option<String>,
    /// Whether steps that need a failed step are run, too.
    #[serde(default)]
    keep_going: bool,
}

/// Run the stale steps of a graph
///
/// A step that fails is in the response, and is no error of the request.
#[utoipa::path(post, path = "/api/v1/graphs/{graph}/run", tag = "graphs", params(("graph" = String, Path, description = "Its name")), request_body = GraphRunOrder, responses((status = 200, description = "The steps that ran, and their output", body = GraphRunView)))]
pub async fn run(
    State(state): State<SharedState>,
    Path(graph): Path<String>,
    MaybeJson(order): MaybeJson<GraphRunOrder>,
) -> ApiResult<GraphRunView> {
    let GraphSummary { name, .. } = named(&state, &graph).await?;
    let GraphRunOrder { from, again, keep_going } = order;
    let _place = room(&state)?;
    let answer = match (from, again) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("again", "name a step in `from` or in `again`, not in both"));
        }
        (Some(step), None) => {
            let operation = GraphOperation::Replay { step, keep_going };
            state.operate_graph(OperateGraph { name, operation, token: NO_TOKEN }).await?
        }
        (None, again) => state.run_graph(RunGraph { name, keep_going, again, token: NO_TOKEN }).await?,
    };
    Ok(Out(ran(answer)?))
}

/// The new source of a step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStepSource {
    /// The source, of at most 1,000,000 bytes.
    source: String,
    /// Whether the stale steps are run then, this one among them.
    #[serde(default)]
    run: bool,
    /// Whether steps that need a failed step are run, too.
    #[serde(default)]
    keep_going: bool,
}

/// Change the source of a step, and run from there
///
/// The steps that depend on it become stale. With `run`, the stale steps are run, unless the source does not parse. A graph
/// whose steps see directories or hosts needs the scope `admin`.
#[utoipa::path(
    put,
    path = "/api/v1/graphs/{graph}/steps/{step}",
    tag = "graphs",
    params(("graph" = String, Path, description = "The name of the graph"), ("step" = String, Path, description = "The name of the step")),
    request_body = NewStepSource,
    responses((status = 200, description = "The steps that became stale, and the run", body = GraphStepChange))
)]
pub async fn change(
    State(state): State<SharedState>,
    By(caller): By,
    Path((graph, step)): Path<(String, String)>,
    Json(new): Json<NewStepSource>,
) -> ApiResult<GraphStepChange> {
    let GraphSummary { name, directories, hosts, .. } = named(&state, &graph).await?;
    if !directories.is_empty() || !hosts.is_empty() {
        caller.expect(TokenScope::Admin)?;
    }
    let NewStepSource { source, run, keep_going } = new;
    let _place = if run { Some(room(&state)?) } else { None };
    let operation = GraphOperation::Change { step, source };
    let changed = state.operate_graph(OperateGraph { name: name.clone(), operation, token: NO_TOKEN }).await?;
    let GraphAnswer::Changed(changes) = changed else { return Err(Problem::internal()) };
    let run = match run && changes.failure.is_none() {
        true => {
            let order = RunGraph { name, keep_going, again: None, token: NO_TOKEN };
            Some(ran(state.run_graph(order).await?)?)
        }
        false => None,
    };
    Ok(Out(GraphStepChange { changes: changes.into(), run }))
}

fn ran(answer: GraphAnswer) -> Result<GraphRunView, Problem> {
    match answer {
        GraphAnswer::Replayed(did) => Ok(did.into()),
        _ => Err(Problem::internal()),
    }
}
