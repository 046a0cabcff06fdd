//! Graphs of steps of code: made and removed, their steps with sources, output, dependencies and states; runs of them,
//! changes of their steps, and the diagnosis of a failure. Packages are granted on the command line alone.
//!
//! A step sees what its graph was granted when it was made. Whoever may change a step whose graph sees directories or
//! hosts has them, too, so such a graph is made, changed and removed with the scope `admin`, as a job of `exec` with
//! them is run.

use super::super::gate::{By, Caller};
use super::super::graph_stream;
use super::super::input::{Json, MaybeJson, PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::{Place, SharedState, place};
use super::events::{first_after, seat};
use super::exec::{self, Directory};
use super::projects::PageQuery;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use longhaul_api::graphs::{
    CreateGraph, DiagnoseStep, Language, ListGraphs, OperateGraph, RemoveGraph, RunGraph, ShowGraph,
};
use longhaul_api::operations::GraphOperations as _;
use longhaul_api::tokens::TokenScope;
use longhaul_api::wire::graphs::{
    GraphChangesView, GraphDetails, GraphDiagnosisView, GraphOutputLine, GraphRunView, GraphStepChange, GraphView,
};
use longhaul_core::grant::DirectoryGrant;
use longhaul_core::graph::{
    GraphAnswer, GraphChanges, GraphOperation, GraphSummary, StepEnvironment, StepLimits, check_name,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// A request without a token of its own is carried out each time that it arrives.
const NO_TOKEN: String = String::new();

/// The graph of a name.
async fn named(state: &SharedState, name: &str) -> Result<GraphSummary, Problem> {
    let found = state.graphs(ListGraphs {}).await?.into_iter().find(|graph| graph.name == name);
    found.ok_or_else(|| Problem::unknown("there is no such graph; GET /api/v1/graphs lists them"))
}

/// The name of a graph that the caller may change.
pub(super) async fn changeable(state: &SharedState, caller: &Caller, name: &str) -> Result<String, Problem> {
    let GraphSummary { name, directories, hosts, .. } = named(state, name).await?;
    if !directories.is_empty() || !hosts.is_empty() {
        caller.expect(TokenScope::Admin)?;
    }
    Ok(name)
}

/// Room for one more job on this machine.
pub(super) fn room(state: &SharedState) -> Result<Place, Problem> {
    let most = state.settings().exec_max;
    let full = || {
        let detail = format!("{most} jobs run, which is exec_max in [server] of server.toml; come again");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1), detail)
    };
    place(state, most, |state| &state.jobs).ok_or_else(full)
}

/// List the graphs
///
/// They are in the order of their names, and those of agents are among them.
#[utoipa::path(get, path = "/api/v1/graphs", tag = "graphs", params(PageQuery), responses((status = 200, description = "A page of graphs", body = Page<GraphView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<PageQuery>) -> ApiResult<Page<GraphView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    Ok(Out(Page::of(state.graphs(ListGraphs {}).await?, window, GraphView::from)))
}

/// A graph that is made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGraph {
    /// Its name, of at most 200 bytes, which no other graph has.
    name: String,
    /// The language of its steps. Default `python`.
    #[serde(default)]
    language: Language,
    /// Its first steps, in order: all are added, or the graph is not made. Default none.
    #[serde(default)]
    steps: Vec<NewGraphStep>,
    /// Directories that its steps see. Needs the scope `admin`.
    #[serde(default)]
    directories: Vec<Directory>,
    /// Hosts that its steps may ask, such as `https://api.example.com`. Needs the scope `admin`.
    #[serde(default)]
    hosts: Vec<String>,
    /// Longest time of a step on the clock, in milliseconds. Default 300,000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3_600_000)]
    timeout_ms: Option<u64>,
    /// Most memory of a step, in bytes. Default 256 MiB.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4_294_967_296u64)]
    memory_bytes_max: Option<u64>,
    /// Most instructions of a step, in wasmtime's fuel.
    #[serde(default)]
    #[schema(minimum = 1)]
    fuel_max: Option<u64>,
}

impl NewGraph {
    /// The environment of its steps.
    fn environment(&self) -> Result<StepEnvironment, Problem> {
        let usual = StepLimits::default();
        let (time, memory, fuel) = (self.timeout_ms, self.memory_bytes_max, self.fuel_max);
        let limits = StepLimits {
            timeout_ms: exec::within("timeout_ms", time, usual.timeout_ms, exec::TIMEOUT_MS_MAX)?,
            memory_bytes_max: exec::within("memory_bytes_max", memory, usual.memory_bytes_max, exec::MEMORY_BYTES_MAX)?,
            fuel_max: exec::within("fuel_max", fuel, usual.fuel_max, u64::MAX)?,
        };
        Ok(StepEnvironment {
            directories: self.directories.iter().enumerate().map(own_directory).collect::<Result<_, _>>()?,
            hosts: self.hosts.iter().enumerate().map(exec::host).collect::<Result<_, _>>()?,
            limits,
        })
    }
}

/// A directory by the path that no link leads over, since a graph keeps it.
fn own_directory((at, said): (usize, &Directory)) -> Result<DirectoryGrant, Problem> {
    let grant = exec::directory((at, said))?;
    let unreadable = |error| Problem::invalid(format!("directories[{at}].host"), format!("it cannot be read: {error}"));
    Ok(DirectoryGrant { host: std::fs::canonicalize(&grant.host).map_err(unreadable)?, ..grant })
}

/// Make a graph
///
/// Its steps see nothing of the server's machine unless directories or hosts are named, which needs the scope `admin`.
/// They are stale, and run in the next run.
#[utoipa::path(post, path = "/api/v1/graphs", tag = "graphs", request_body = NewGraph, responses((status = 201, description = "It is made", body = GraphView)))]
pub async fn create(
    State(state): State<SharedState>,
    By(caller): By,
    Json(new): Json<NewGraph>,
) -> Result<CreatedResponse<GraphView>, Problem> {
    if !new.directories.is_empty() || !new.hosts.is_empty() {
        caller.expect(TokenScope::Admin)?;
    }
    let surroundings = new.environment()?;
    let NewGraph { name, language, steps, .. } = new;
    let steps = steps.into_iter().map(|NewGraphStep { step, source }| (step, source)).collect();
    let told = state.create_graph(CreateGraph { name, language, surroundings, steps, token: NO_TOKEN }).await?;
    let location = Some(format!("/api/v1/graphs/{}", utf8_percent_encode(&told.name, NON_ALPHANUMERIC)));
    Ok(CreatedResponse { told: told.into(), location })
}

/// Remove a graph
///
/// Its steps, their values and its history are removed with it. A graph whose steps see directories or hosts needs the
/// scope `admin`.
#[utoipa::path(delete, path = "/api/v1/graphs/{graph}", tag = "graphs", params(("graph" = String, Path, description = "Its name")), responses((status = 200, description = "Its last state", body = GraphView)))]
pub async fn remove_graph(
    State(state): State<SharedState>,
    By(caller): By,
    Path(graph): Path<String>,
) -> ApiResult<GraphView> {
    let name = changeable(&state, &caller, &graph).await?;
    Ok(Out(state.remove_graph(RemoveGraph { name }).await?.into()))
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

/// The steps that a run of a graph includes.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphRunOrder {
    /// A step that is run again although nothing changed, with the steps that its new values affect. Default: only
    /// stale steps are run.
    #[serde(default)]
    from: Option<String>,
    /// A step that acts and was interrupted: it is run again, although its effects may have happened.
    #[serde(default)]
    again: Option<String>,
    /// True when steps that need a failed step are run, too.
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

/// Start and end of a stream of output.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    /// Begin after this number; the header `Last-Event-ID` comes first. Default 0, which is before all that is kept.
    after: Option<u64>,
    /// True when the stream stays open while nothing of the graph runs, and goes on with the next run. Default true.
    follow: Option<bool>,
}

/// Follow the output of the steps of a graph
///
/// Server-sent events, while steps run and from any number on: `begin`, `output` and `end` of a step with the number as
/// their id, whose data is a line; and without ids `lagged` with how many events were `dropped` from the 1 MiB that is
/// kept of a graph, and `idle` when nothing runs and all was sent. A comment every 15 s says that the stream lives. It
/// ends with `problem` when the token or the graph is removed.
#[utoipa::path(
    get,
    path = "/api/v1/graphs/{graph}/output",
    tag = "graphs",
    params(
        ("graph" = String, Path, description = "Its name"),
        OutputQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last number that the client has"),
    ),
    responses((status = 200, description = "Frames, until the client goes or the server ends", body = GraphOutputLine, content_type = "text/event-stream"))
)]
pub async fn output(
    State(state): State<SharedState>,
    By(caller): By,
    Path(graph): Path<String>,
    Query(query): Query<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let GraphSummary { name, .. } = named(&state, &graph).await?;
    let after = first_after(&headers, query.after)?;
    Ok(graph_stream::of_graph(&state, caller, seat(&state)?, name, after, query.follow.unwrap_or(true)))
}

/// The new source of a step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStepSource {
    /// The source, of at most 1,000,000 bytes.
    source: String,
    /// True when the stale steps are run then, this one among them.
    #[serde(default)]
    run: bool,
    /// True when steps that need a failed step are run, too.
    #[serde(default)]
    keep_going: bool,
}

/// Change the source of a step, and run from there
///
/// The steps that depend on it become stale. With `run`, the stale steps are run, unless the source does not parse. A
/// graph whose steps see directories or hosts needs the scope `admin`.
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
    let name = changeable(&state, &caller, &graph).await?;
    let NewStepSource { source, run, keep_going } = new;
    let _place = if run { Some(room(&state)?) } else { None };
    let operation = GraphOperation::Change { step, source };
    let changes = changed(state.operate_graph(OperateGraph { name: name.clone(), operation, token: NO_TOKEN }).await?)?;
    let run = match run && changes.failure.is_none() {
        true => {
            let order = RunGraph { name, keep_going, again: None, token: NO_TOKEN };
            Some(ran(state.run_graph(order).await?)?)
        }
        false => None,
    };
    Ok(Out(GraphStepChange { changes: changes.into(), run }))
}

/// A step that is added after the last one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGraphStep {
    /// The name of the step, of at most 200 bytes.
    step: String,
    /// The source, of at most 1,000,000 bytes.
    source: String,
}

/// Add a step after the last one
///
/// It is stale, and runs in the next run. A graph whose steps see directories or hosts needs the scope `admin`.
#[utoipa::path(post, path = "/api/v1/graphs/{graph}/steps", tag = "graphs", params(("graph" = String, Path, description = "The name of the graph")), request_body = NewGraphStep, responses((status = 200, description = "The steps that run next", body = GraphChangesView)))]
pub async fn add(
    State(state): State<SharedState>,
    By(caller): By,
    Path(graph): Path<String>,
    Json(new): Json<NewGraphStep>,
) -> ApiResult<GraphChangesView> {
    let name = changeable(&state, &caller, &graph).await?;
    let NewGraphStep { step, source } = new;
    check_name("step", &step).map_err(|error| Problem::invalid("step", error))?;
    let operation = GraphOperation::Add { step, source };
    let answer = state.operate_graph(OperateGraph { name, operation, token: NO_TOKEN }).await?;
    Ok(Out(changed(answer)?.into()))
}

/// Remove a step
///
/// The steps that depend on it become stale. A graph whose steps see directories or hosts needs the scope `admin`.
#[utoipa::path(
    delete,
    path = "/api/v1/graphs/{graph}/steps/{step}",
    tag = "graphs",
    params(("graph" = String, Path, description = "The name of the graph"), ("step" = String, Path, description = "The name of the step")),
    responses((status = 200, description = "The steps that run next", body = GraphChangesView))
)]
pub async fn remove(
    State(state): State<SharedState>,
    By(caller): By,
    Path((graph, step)): Path<(String, String)>,
) -> ApiResult<GraphChangesView> {
    let name = changeable(&state, &caller, &graph).await?;
    let operation = GraphOperation::Remove { step };
    let answer = state.operate_graph(OperateGraph { name, operation, token: NO_TOKEN }).await?;
    Ok(Out(changed(answer)?.into()))
}

/// The step whose failure is diagnosed.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphDiagnosisOrder {
    /// The name of the step. Default: the first step that failed.
    #[serde(default)]
    step: Option<String>,
}

/// Diagnose the failure of a step
///
/// Names the innermost place of the failure, values that it may depend on, and the step that is likely at fault. Runs
/// no step and asks no model.
#[utoipa::path(post, path = "/api/v1/graphs/{graph}/diagnose", tag = "graphs", params(("graph" = String, Path, description = "Its name")), request_body = GraphDiagnosisOrder, responses((status = 200, description = "The diagnosis", body = GraphDiagnosisView)))]
pub async fn diagnose(
    State(state): State<SharedState>,
    Path(graph): Path<String>,
    MaybeJson(order): MaybeJson<GraphDiagnosisOrder>,
) -> ApiResult<GraphDiagnosisView> {
    let GraphSummary { name, .. } = named(&state, &graph).await?;
    let GraphDiagnosisOrder { step } = order;
    match state.diagnose_step(DiagnoseStep { name, step, model: None, token: NO_TOKEN }).await? {
        GraphAnswer::Diagnosed(diagnosis) => Ok(Out(diagnosis.into())),
        _ => Err(Problem::internal()),
    }
}

fn changed(answer: GraphAnswer) -> Result<GraphChanges, Problem> {
    match answer {
        GraphAnswer::Changed(changes) => Ok(changes),
        _ => Err(Problem::internal()),
    }
}

fn ran(answer: GraphAnswer) -> Result<GraphRunView, Problem> {
    match answer {
        GraphAnswer::Replayed(did) => Ok(did.into()),
        _ => Err(Problem::internal()),
    }
}
