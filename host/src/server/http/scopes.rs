//! What each route asks for: one table. A route that is not in it lets nobody in.

use super::gate::{self, needs_token};
use super::problem::Problem;
use crate::service::Scope::{self, Admin, Approve, Read, Run};
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};

/// Method, path and scope. Some ask for more by what the body names; that is said where it is looked at.
#[rustfmt::skip]
pub const TABLE: &[(&str, &str, Scope)] = &[
    ("GET", "/metrics", Read),
    ("GET", "/api/v1/whoami", Read),
    ("GET", "/api/v1/openapi.json", Read),

    ("GET", "/api/v1/projects", Read),
    ("POST", "/api/v1/projects", Admin),
    ("GET", "/api/v1/runs", Read),
    ("POST", "/api/v1/runs", Run),
    ("POST", "/api/v1/asks", Run),
    ("GET", "/api/v1/runs/{run}", Read),
    ("POST", "/api/v1/runs/{run}/pause", Run),
    ("POST", "/api/v1/runs/{run}/resume", Run),
    ("POST", "/api/v1/runs/{run}/abandon", Run),
    ("POST", "/api/v1/runs/{run}/steer", Run),
    ("POST", "/api/v1/runs/{run}/answer", Run),
    ("POST", "/api/v1/runs/{run}/recheck", Run),
    ("POST", "/api/v1/runs/{run}/revert", Run),
    ("POST", "/api/v1/runs/{run}/tasks/{task}/cancel", Run),
    ("GET", "/api/v1/runs/{run}/features", Read),
    ("POST", "/api/v1/runs/{run}/features", Run),
    ("PUT", "/api/v1/runs/{run}/features/{feature}", Run),
    ("DELETE", "/api/v1/runs/{run}/features/{feature}", Run),
    ("GET", "/api/v1/runs/{run}/log", Read),
    ("GET", "/api/v1/runs/{run}/ledger", Read),
    ("GET", "/api/v1/runs/{run}/report", Read),

    ("GET", "/api/v1/runs/{run}/journal", Read),
    ("GET", "/api/v1/runs/{run}/journal/entries", Read),
    ("POST", "/api/v1/runs/{run}/replay", Run),

    ("GET", "/api/v1/runs/{run}/events", Read),
    ("GET", "/api/v1/runs/{run}/events/stream", Read),
    ("GET", "/api/v1/events/stream", Read),

    ("GET", "/api/v1/approvals", Read),
    ("GET", "/api/v1/approvals/{approval}", Read),
    ("POST", "/api/v1/approvals/{approval}/answer", Approve),
    ("GET", "/api/v1/rules", Read),
    ("DELETE", "/api/v1/runs/{run}/rules/{rule}", Approve),

    ("GET", "/api/v1/runs/{run}/decisions", Read),
    ("POST", "/api/v1/runs/{run}/decisions/{decision}/judge", Run),
    ("GET", "/api/v1/runs/{run}/memory", Read),
    ("DELETE", "/api/v1/runs/{run}/memory", Run),
    ("GET", "/api/v1/runs/{run}/proposals", Read),
    ("POST", "/api/v1/runs/{run}/proposals/{proposal}/accept", Run),
    ("POST", "/api/v1/runs/{run}/proposals/{proposal}/reject", Run),
    ("GET", "/api/v1/runs/{run}/trajectories", Read),
    ("GET", "/api/v1/runs/{run}/trajectory", Read),
    ("POST", "/api/v1/runs/{run}/trajectory/annotate", Run),

    ("GET", "/api/v1/agents", Read),
    ("POST", "/api/v1/agents", Admin),
    ("GET", "/api/v1/agents/{agent}", Read),
    ("PUT", "/api/v1/agents/{agent}", Admin),
    ("DELETE", "/api/v1/agents/{agent}", Admin),
    ("POST", "/api/v1/agents/{agent}/activate", Run),
    ("POST", "/api/v1/agents/{agent}/deactivate", Run),
    ("POST", "/api/v1/agents/{agent}/execute", Run),
    ("GET", "/api/v1/agents/{agent}/artifact", Read),
    ("PUT", "/api/v1/agents/{agent}/artifact", Run),
    ("DELETE", "/api/v1/agents/{agent}/artifact", Run),
    ("GET", "/api/v1/agents/{agent}/artifact/history", Read),
    ("GET", "/api/v1/schedules", Read),
    ("POST", "/api/v1/schedules", Run),
    ("GET", "/api/v1/schedules/{schedule}", Read),
    ("PUT", "/api/v1/schedules/{schedule}", Run),
    ("DELETE", "/api/v1/schedules/{schedule}", Run),
    ("POST", "/api/v1/schedules/{schedule}/pause", Run),
    ("POST", "/api/v1/schedules/{schedule}/resume", Run),
    ("POST", "/api/v1/schedules/{schedule}/run-now", Run),
    ("GET", "/api/v1/schedules/{schedule}/skipped", Read),
    ("GET", "/api/v1/scheduler", Read),
    ("GET", "/api/v1/tasks", Read),
    ("GET", "/api/tasks/agents/{agent}/tasks", Read),
    ("GET", "/api/tasks/{task}", Read),
    ("POST", "/api/tasks/{task}/retry", Run),

    ("GET", "/api/v1/costs", Read),
    ("GET", "/api/v1/resources", Read),
    ("GET", "/api/v1/plugins", Read),
    ("POST", "/api/v1/exec", Run),
];

/// What a route asks for.
pub fn of(method: &Method, path: &str) -> Option<Scope> {
    // To be told of a thing without its body is to look at it.
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    TABLE.iter().find(|(of, at, _)| *of == method && *at == path).map(|(_, _, scope)| *scope)
}

/// Lets a request go on that its caller may make.
pub async fn check(path: MatchedPath, request: Request, next: Next) -> Response {
    let caller = gate::of(request.extensions());
    let allowed = match of(request.method(), path.as_str()) {
        Some(scope) => caller.expect(scope),
        // The router says which methods there are.
        None if TABLE.iter().any(|(_, at, _)| *at == path.as_str()) => caller.expect(Read),
        None if !needs_token(path.as_str()) => Ok(()),
        None => Err(Problem::new(StatusCode::FORBIDDEN, "nobody may")),
    };
    match allowed {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
