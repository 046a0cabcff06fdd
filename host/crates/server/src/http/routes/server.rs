//! The server itself: its health, its readiness, the token of the caller, and metrics for Prometheus.

use super::super::gate::{By, Caller};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};
use longhaul_api::operations::{ResourceOperations as _, RunOperations as _};
use longhaul_api::resources::{MetricsText, ReadMetrics};
use longhaul_api::run_lists::{CountRuns, RunCounts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;
use utoipa::ToSchema;

/// The liveness of a server.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `standby` while another server has the state.
    status: &'static str,
    /// The version of the program.
    version: &'static str,
}

impl Health {
    /// The answer of a server that stands by.
    pub fn of_standby() -> Out<Self> {
        Out(Self { status: "standby", version: env!("CARGO_PKG_VERSION") })
    }
}

/// Show that the process answers
#[utoipa::path(get, path = "/health", tag = "server", responses((status = 200, description = "It does", body = Health)))]
pub async fn health() -> Out<Health> {
    Out(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// The answer of a server that takes requests.
#[derive(Serialize, ToSchema)]
pub struct Ready {
    /// `ready`.
    status: &'static str,
}

/// Show that the server takes requests
///
/// 503 once it is to end.
#[utoipa::path(get, path = "/ready", tag = "server", responses((status = 200, description = "It can", body = Ready)))]
pub async fn ready(State(state): State<SharedState>) -> ApiResult<Ready> {
    if state.ends() {
        let detail = "the server is about to end; runs go on when it is started again";
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(5), detail));
    }
    Ok(Out(Ready { status: "ready" }))
}

/// Figures for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses((status = 200, description = "In Prometheus' text format", body = String, content_type = "text/plain; version=0.0.4"))
)]
pub async fn metrics(State(state): State<SharedState>) -> Result<Response, Problem> {
    let MetricsText { mut text } = state.metrics(ReadMetrics {}).await?;
    text.push_str(&now(&state).await?);
    text.push_str(&state.latencies.text());
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The gauges of this moment.
async fn now(state: &SharedState) -> Result<String, Problem> {
    let RunCounts { by_status: counted, active, queued, approvals_open } = state.run_counts(CountRuns {}).await?;
    let mut by_status: BTreeMap<String, usize> = STATUSES.iter().map(|status| ((*status).to_owned(), 0)).collect();
    for (status, count) in counted {
        let status = serde_json::to_value(status).unwrap_or_default();
        *by_status.entry(status.as_str().unwrap_or_default().to_owned()).or_default() += count;
    }
    let mut text = String::new();
    family(&mut text, "longhaul_runs", "Runs, by status.");
    for (status, count) in by_status {
        let _ = writeln!(text, "longhaul_runs{{status=\"{status}\"}} {count}");
    }
    let streams = state.streams.load(Ordering::Relaxed);
    for (name, help, value) in [
        ("longhaul_runs_active", "Runs that are worked on in this moment, or wait for their turn.", active),
        ("longhaul_runs_queued", "Runs that wait until fewer work at once.", queued),
        ("longhaul_approvals_open", "Calls of tools that wait for a person.", approvals_open),
        ("longhaul_http_streams", "Streams of events that are open.", streams),
    ] {
        family(&mut text, name, help);
        let _ = writeln!(text, "{name} {value}");
    }
    Ok(text)
}

/// Statuses with a gauge of their own even while no run has them, so that an alert rule is never without data.
const STATUSES: &[&str] =
    &["new", "planning", "working", "parked", "paused", "completed", "incomplete", "failed", "abandoned"];

fn family(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// The caller of a request, by its token.
#[derive(Serialize, ToSchema)]
pub struct Whoami {
    /// The name of the token; null where none is needed.
    #[schema(required = true)]
    name: Option<String>,
    /// The scopes of the token.
    scopes: Vec<&'static str>,
    /// Until when it lets in, in milliseconds since 1970-01-01 UTC; null: until it is removed.
    #[schema(required = true)]
    expires_ms: Option<u64>,
    /// True when clients need a token.
    required: bool,
}

/// Show the caller's token
#[utoipa::path(get, path = "/api/v1/whoami", tag = "server", responses((status = 200, description = "The token, without its secret", body = Whoami)))]
pub async fn whoami(State(state): State<SharedState>, By(caller): By) -> ApiResult<Whoami> {
    let required = state.settings().tokens;
    Ok(Out(match caller {
        Caller::Holder { token, .. } => Whoami {
            name: Some(token.name),
            scopes: token.scopes.iter().map(|scope| scope.as_str()).collect(),
            expires_ms: token.expires_ms,
            required,
        },
        Caller::Local | Caller::Anybody => Whoami { name: None, scopes: vec!["admin"], expires_ms: None, required },
    }))
}
