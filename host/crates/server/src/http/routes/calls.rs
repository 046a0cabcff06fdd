//! Operations of the service, called by their names: what a command line with `--server` asks.
//!
//! Requests and responses are those that commands exchange with the owner of a data directory, so they may change from
//! version to version; programs use the other paths. A call has the effect of the path with the same purpose and needs
//! its scope, see [`super::super::call_scopes`]. A path of the server's machine is named with the scope `admin` alone,
//! but for the directories of projects that the server knows. It refuses what is withheld from HTTP.

use super::super::call_scopes::CallRule;
use super::super::gate::{By, Caller};
use super::super::input::{BodyLimits, PageParams, Query, json_within};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::{Place, SharedState, place};
use super::exec::{MEMORY_BYTES_MAX, TIMEOUT_MS_MAX};
use super::graphs::{changeable, room};
use super::knowledge::expect_no_project;
use super::projects::{self, PageQuery};
use axum::extract::{Path, Request, State};
use http::StatusCode;
use longhaul_api::features::AcceptProposal;
use longhaul_api::forks::ForkRun;
use longhaul_api::operations::{Handler, OTHER_VERSIONS, Operation as _, handler, names};
use longhaul_api::paths::{DIRECTORIES, FILES};
use longhaul_api::tokens::TokenScope;
use longhaul_client::wire::CALL_BYTES_MAX;
use longhaul_core::fault::{Fault, FaultCode};
use longhaul_core::graph::StepEnvironment;
use longhaul_core::text::printable;
use longhaul_service::InProcess;
use serde::Serialize;
use serde_json::Value;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// Bytes of the name of an unknown operation, or of a directory, in a refusal.
const NAME_BYTES_MAX: usize = 200;

/// The one operation whose request is large: the snapshot of a run with its files.
const IMPORT: &str = "import_checkpoint";

/// Longest time for a snapshot to arrive: 513 MiB at 1 MiB/s, and some.
const IMPORT_TIME: Duration = Duration::from_secs(600);

/// The operations that run code while they are answered.
const RUNS_CODE: &[&str] = &["operate_graph", "run_graph", "diagnose_step", "patch_step"];

/// An operation that a command line with `--server` may call.
#[derive(Serialize, ToSchema)]
pub struct CallableOperation {
    /// Its name.
    name: &'static str,
    /// The least scope that it needs; null: it is carried out on the server's machine alone.
    #[schema(required = true)]
    scope: Option<&'static str>,
}

/// List the operations that can be called by name
///
/// Those of a command line, each with the least scope that it needs.
#[utoipa::path(get, path = "/api/v1/operations", tag = "operations", params(PageQuery), responses((status = 200, description = "A page of operations", body = Page<CallableOperation>)))]
pub async fn list(Query(query): Query<PageQuery>) -> ApiResult<Page<CallableOperation>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let callable = |name| CallableOperation { name, scope: CallRule::of(name).scope().map(TokenScope::as_str) };
    Ok(Out(Page::of(names().collect(), window, callable)))
}

/// Carry out an operation by its name
///
/// For `longhaul --server`, of the same version: request and response are those that commands exchange with the owner
/// of a data directory, and may change with each version. Programs use the other paths. Each operation needs the scope
/// that the list of operations names. A path of the server's machine needs `admin`, but for the directories of projects
/// that it knows. An operation that was begun is carried out also if the client goes away.
#[utoipa::path(
    post,
    path = "/api/v1/operations/{operation}",
    tag = "operations",
    params(("operation" = String, Path, description = "Its name")),
    request_body = Value,
    responses((status = 200, description = "Its response", body = Value))
)]
pub async fn call(
    State(state): State<SharedState>,
    By(caller): By,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Value> {
    let Some(handler) = handler::<InProcess>(&name) else {
        let detail = format!("there is no operation `{}`; {OTHER_VERSIONS}", printable(&name, NAME_BYTES_MAX));
        return Err(Problem::unknown(detail));
    };
    // Before the body is read: only whoever may import sends a large one.
    let rule = expect_callable(&caller, &name)?;
    let request: Value = json_within(request, limits(&state, &name)).await?;
    // What is looked at is what is carried out, in the one form in which every field has its name.
    let request = (handler.normal)(request).map_err(not_understood)?;
    expect_paths(&state, &caller, &request).await?;
    if rule == CallRule::Graph {
        expect_graph(&state, &caller, &name, &request).await?;
    }
    if name == AcceptProposal::NAME {
        let AcceptProposal { run, proposal } =
            serde_json::from_value(request.clone()).map_err(|error| not_understood(Fault::msg(error.to_string())))?;
        expect_no_project(&state, run, &proposal).await?;
    }
    if name == ForkRun::NAME && request["repeat_effects"] == true {
        // It stands for a person's answers about calls.
        caller.expect(TokenScope::Approve)?;
    }
    let job = if RUNS_CODE.contains(&name.as_str()) { Some(room(&state)?) } else { None };
    carry_out(&state, handler, request, (call_room(&state)?, job)).await.map(Out)
}

/// Takes a place for a call, which goes on when its client has left.
fn call_room(state: &SharedState) -> Result<Place, Problem> {
    let most = state.settings().connections_max;
    let full = || {
        let detail = format!(
            "{most} operations are carried out, which is connections_max in [server] of server.toml; come again"
        );
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1), detail)
    };
    place(state, most, |state| &state.calls).ok_or_else(full)
}

/// The service gives each error a code, so one without did not come to it: the request is not understood.
fn not_understood(fault: Fault) -> Problem {
    Problem::for_command(fault.or_code(FaultCode::Invalid))
}

/// Refuses an operation that is withheld, and a caller without its scope.
fn expect_callable(caller: &Caller, name: &str) -> Result<CallRule, Problem> {
    let rule = CallRule::of(name);
    match rule {
        CallRule::Withheld(why) => return Err(Problem::new(StatusCode::FORBIDDEN, why)),
        CallRule::Needs(scope) => caller.expect(scope)?,
        CallRule::Graph => caller.expect(TokenScope::Run)?,
    }
    Ok(rule)
}

fn limits(state: &SharedState, name: &str) -> BodyLimits {
    if name != IMPORT {
        return BodyLimits::of(state);
    }
    let bytes_max = usize::try_from(CALL_BYTES_MAX).unwrap_or(usize::MAX);
    BodyLimits { bytes_max, setting: ", and no checkpoint is larger", time: IMPORT_TIME }
}

/// Refuses paths of the server's machine that the caller may not name.
async fn expect_paths(state: &SharedState, caller: &Caller, request: &Value) -> Result<(), Problem> {
    if caller.expect(TokenScope::Admin).is_ok() {
        return Ok(());
    }
    if FILES.iter().any(|at| request.pointer(at).is_some_and(|named| !named.is_null())) {
        return caller.expect(TokenScope::Admin);
    }
    let named: Vec<&str> = DIRECTORIES.iter().filter_map(|at| request.pointer(at)).filter_map(Value::as_str).collect();
    if named.is_empty() {
        return Ok(());
    }
    let known = projects::all(state).await?;
    for directory in named {
        if !known.iter().any(|project| project.directory == FilePath::new(directory)) {
            let detail = format!(
                "`{}` is no directory of a project that this server knows, and only a token with the scope `admin` names \
                 others; `longhaul projects` lists them",
                printable(directory, NAME_BYTES_MAX)
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
    }
    Ok(())
}

/// Refuses a graph whose steps see more, or use more, than the scope of the caller allows. One that cannot be read
/// takes all scopes.
async fn expect_graph(state: &SharedState, caller: &Caller, name: &str, request: &Value) -> Result<(), Problem> {
    if name == "create_graph" {
        let environment = request.get("surroundings").cloned().map(serde_json::from_value::<StepEnvironment>);
        let Some(Ok(StepEnvironment { directories, hosts, limits })) = environment else {
            return caller.expect(TokenScope::Admin);
        };
        let is_large = limits.timeout_ms > TIMEOUT_MS_MAX || limits.memory_bytes_max > MEMORY_BYTES_MAX;
        let is_plain = directories.is_empty() && hosts.is_empty() && !is_large;
        return if is_plain { Ok(()) } else { caller.expect(TokenScope::Admin) };
    }
    match request.get("name").and_then(Value::as_str) {
        Some(graph) => changeable(state, caller, graph).await.map(drop),
        None => caller.expect(TokenScope::Admin),
    }
}

/// Carries an operation out, in a task of its own: a client that goes away stops it no more than one of the socket.
async fn carry_out(
    state: &SharedState,
    handler: Handler<InProcess>,
    request: Value,
    places: (Place, Option<Place>),
) -> Result<Value, Problem> {
    let service = InProcess(Arc::clone(&state.service));
    let answered = tokio::spawn(async move {
        let _places = places;
        (handler.carry_out)(&service, request).await
    });
    let answered = answered.await.map_err(|_| Problem::internal())?;
    answered.map_err(not_understood)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_of_fields_is_looked_at_as_the_fields_that_it_names() {
        let normal = |name: &str, request| (handler::<InProcess>(name).expect("known").normal)(request);
        let as_list = normal("trust_status", json!(["/somewhere"])).expect("it is read");
        assert_eq!(as_list.pointer("/directory"), Some(&json!("/somewhere")));
        let nested = json!({
            "directory": "/project", "models": ["/read", "/written"], "plan": null, "plan_only": false, "sessions": null,
            "again": false,
        });
        let nested = normal("begin_run", nested).expect("it is read");
        assert_eq!(FILES.iter().filter(|at| nested.pointer(at).is_some_and(Value::is_string)).count(), 2, "{nested}");
        assert!(normal("trust_status", json!({ "elsewhere": "/somewhere" })).is_err());
    }
}
