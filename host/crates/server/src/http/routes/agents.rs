//! Agents: registered, changed, activated and run; the artifacts that they pass to their next run.
//!
//! Only the scope `admin` makes, changes and removes agents. A change that names a version overwrites no change that
//! its author has not seen.

use super::super::input::{Json, MaybeJson, PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::SharedState;
use super::runs::Nothing;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use longhaul_api::agents::{
    ActivateAgent, AgentSummary, ClearArtifact, ExecuteAgent, HandedArtifact, ListAgents, ListArtifacts, RegisterAgent,
    RemoveAgent, SetArtifact, ShowAgent, ShowArtifact, UpdateAgent,
};
use longhaul_api::operations::AgentOperations as _;
use longhaul_api::wire::agents::{
    AgentChange, AgentDetails, ArtifactVersions, Executed, NewAgentBody, PassedArtifact, name,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A reply with the version as its `ETag`.
fn tagged<T: serde::Serialize>(told: T, version: u64) -> Response {
    let mut response = Out(told).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The version that the header `If-Match` names.
enum Expected {
    /// This one.
    Version(u64),
    /// Any version.
    Any,
    /// There is no such header.
    Unsaid,
}

impl Expected {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(said) = headers.get(header::IF_MATCH) else { return Ok(Self::Unsaid) };
        let wrong = || Problem::invalid("If-Match", "write the version in quotes, as `ETag` has it, or `*`");
        match said.to_str().map_err(|_| wrong())?.trim() {
            "*" => Ok(Self::Any),
            said => {
                let digits = said.strip_prefix('"').and_then(|said| said.strip_suffix('"')).unwrap_or(said);
                digits.parse().map(Self::Version).map_err(|_| wrong())
            }
        }
    }

    fn version(&self) -> Option<u64> {
        if let Self::Version(version) = self { Some(*version) } else { None }
    }

    /// The version of a change that must name one, since it could overwrite an unseen change.
    fn needed(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
        match Self::of(headers)? {
            Self::Unsaid => {
                let detail = "say which version is meant: `If-Match` with the `ETag` of what you saw, or `*`";
                Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, detail))
            }
            said => Ok(said.version()),
        }
    }
}

/// Filter and page of the list of agents.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentsQuery {
    /// Only those that may be run, or only the others.
    active: Option<bool>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List the agents
///
/// By name.
#[utoipa::path(get, path = "/api/v1/agents", tag = "agents", params(AgentsQuery), responses((status = 200, description = "A page of agents", body = Page<AgentSummary>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<AgentsQuery>) -> ApiResult<Page<AgentSummary>> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    Ok(Out(state.agents(ListAgents { active: query.active, limit, offset }).await?.into()))
}

/// Make an agent
#[utoipa::path(post, path = "/api/v1/agents", tag = "agents", request_body = NewAgentBody, responses((status = 201, description = "It is made", body = AgentDetails)))]
pub async fn register(
    State(state): State<SharedState>,
    Json(new): Json<NewAgentBody>,
) -> Result<CreatedResponse<AgentDetails>, Problem> {
    let (agent, wasm) = new.taken()?;
    let told: AgentDetails = state.register_agent(RegisterAgent { agent, wasm }).await?.into();
    let location = Some(format!("/api/v1/agents/{}", told.short.name));
    Ok(CreatedResponse { told, location })
}

/// Show an agent
#[utoipa::path(get, path = "/api/v1/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Its name")), responses((status = 200, description = "The agent; its version is the `ETag`", body = AgentDetails)))]
pub async fn show(State(state): State<SharedState>, Path(agent): Path<String>) -> Result<Response, Problem> {
    let told: AgentDetails = state.agent(ShowAgent { name: named(&agent)? }).await?.into();
    let version = told.short.version;
    Ok(tagged(told, version))
}

/// Reads the name of an agent; text that cannot be a name is an unknown agent.
fn named(agent: &str) -> Result<longhaul_core::Name, Problem> {
    name("agent", agent).map_err(|_| Problem::unknown("there is no such agent; GET /api/v1/agents lists them"))
}

/// Change an agent
///
/// Fields that are left out stay as they were.
#[utoipa::path(
    put,
    path = "/api/v1/agents/{agent}",
    tag = "agents",
    params(("agent" = String, Path, description = "Its name"), ("If-Match" = Option<String>, Header, description = "Only if it has this version")),
    request_body = AgentChange,
    responses((status = 200, description = "It is changed", body = AgentDetails))
)]
pub async fn update(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    headers: HeaderMap,
    Json(change): Json<AgentChange>,
) -> Result<Response, Problem> {
    let (name, version) = (named(&agent)?, Expected::of(&headers)?.version());
    let (patch, wasm) = change.taken()?;
    let told: AgentDetails = state.update_agent(UpdateAgent { name, patch, wasm, version }).await?.into();
    let version = told.short.version;
    Ok(tagged(told, version))
}

/// Remove an agent with its artifacts
///
/// Its tasks stay.
#[utoipa::path(delete, path = "/api/v1/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Its name")), responses((status = 200, description = "As it was", body = AgentDetails)))]
pub async fn remove(State(state): State<SharedState>, Path(agent): Path<String>) -> ApiResult<AgentDetails> {
    Ok(Out(state.remove_agent(RemoveAgent { name: named(&agent)? }).await?.into()))
}

/// Switch an agent on
#[utoipa::path(post, path = "/api/v1/agents/{agent}/activate", tag = "agents", params(("agent" = String, Path, description = "Its name")), responses((status = 200, description = "It may be run", body = AgentDetails)))]
pub async fn activate(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AgentDetails> {
    Ok(Out(state.activate_agent(ActivateAgent { name: named(&agent)?, active: true }).await?.into()))
}

/// Switch an agent off
///
/// The waiting tasks of its schedules are noted as skipped.
#[utoipa::path(post, path = "/api/v1/agents/{agent}/deactivate", tag = "agents", params(("agent" = String, Path, description = "Its name")), responses((status = 200, description = "It is not run any more", body = AgentDetails)))]
pub async fn deactivate(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AgentDetails> {
    Ok(Out(state.activate_agent(ActivateAgent { name: named(&agent)?, active: false }).await?.into()))
}

/// The input of an execution.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// The value of `CONTEXT["input"]` in its code, any JSON.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    input: Option<Value>,
}

/// Run an agent now, and wait for it
///
/// One that is missing or switched off is a result as well.
#[utoipa::path(post, path = "/api/v1/agents/{agent}/execute", tag = "agents", params(("agent" = String, Path, description = "Its name")), request_body = inline(Option<Execution>), responses((status = 200, description = "The result of the execution", body = Executed)))]
pub async fn execute(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    MaybeJson(with): MaybeJson<Execution>,
) -> ApiResult<Executed> {
    let request = ExecuteAgent { name: named(&agent)?, input: with.input };
    Ok(Out(state.execute_agent(request).await?.into()))
}

/// The version of an artifact that is shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ArtifactQuery {
    /// An earlier version that is kept; without one the present.
    version: Option<u64>,
}

/// Show the artifact of an agent
#[utoipa::path(get, path = "/api/v1/agents/{agent}/artifact", tag = "agents", params(("agent" = String, Path, description = "Its name"), ArtifactQuery), responses((status = 200, description = "The artifact; its version is the `ETag`", body = PassedArtifact)))]
pub async fn artifact(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    Query(query): Query<ArtifactQuery>,
) -> Result<Response, Problem> {
    Ok(handed_on(state.artifact(ShowArtifact { name: named(&agent)?, version: query.version }).await?))
}

fn handed_on(handed: HandedArtifact) -> Response {
    let version = handed.version;
    tagged(PassedArtifact::from(handed), version)
}

/// The new state of an artifact.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// Any JSON.
    #[schema(value_type = Value)]
    state: Value,
    /// In words; null: as it was.
    #[serde(default)]
    summary: Option<String>,
}

/// Replace the artifact of an agent
#[utoipa::path(
    put,
    path = "/api/v1/agents/{agent}/artifact",
    tag = "agents",
    params(("agent" = String, Path, description = "Its name"), ("If-Match" = Option<String>, Header, description = "The version that it takes the place of; `\"0\"` where there never was any, `*` for whichever")),
    request_body = NewState,
    responses((status = 200, description = "It is handed on", body = PassedArtifact))
)]
pub async fn set_artifact(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewState>,
) -> Result<Response, Problem> {
    let (name, version) = (named(&agent)?, Expected::needed(&headers)?);
    let request = SetArtifact { name, state: new.state, summary: new.summary, version };
    Ok(handed_on(state.set_artifact(request).await?))
}

/// Clear the artifact of an agent
#[utoipa::path(
    delete,
    path = "/api/v1/agents/{agent}/artifact",
    tag = "agents",
    params(("agent" = String, Path, description = "Its name"), ("If-Match" = Option<String>, Header, description = "The version that is meant, or `*`")),
    responses((status = 200, description = "Nothing is handed on", body = PassedArtifact))
)]
pub async fn clear_artifact(
    State(state): State<SharedState>,
    Path(agent): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, version) = (named(&agent)?, Expected::needed(&headers)?);
    Ok(handed_on(state.clear_artifact(ClearArtifact { name, version }).await?))
}

/// Show the versions of what an agent handed on that are kept
#[utoipa::path(get, path = "/api/v1/agents/{agent}/artifact/history", tag = "agents", params(("agent" = String, Path, description = "Its name")), responses((status = 200, description = "The newest first", body = ArtifactVersions)))]
pub async fn history(State(state): State<SharedState>, Path(agent): Path<String>) -> ApiResult<ArtifactVersions> {
    Ok(Out(state.artifacts(ListArtifacts { name: named(&agent)? }).await?.into()))
}
