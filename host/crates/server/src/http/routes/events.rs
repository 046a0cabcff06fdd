//! Events of runs: pages of stored events, and streams of new ones.

use super::super::gate::By;
use super::super::input::{Query, limited, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::{Place, SharedState, place};
use super::super::stream;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use longhaul_api::journal::ListEvents;
use longhaul_api::operations::JournalOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::events::{EventLine, Events};
use longhaul_core::RunId;
use longhaul_core::stream::StreamLine;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;

/// Start and length of a page of events.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Those after this number. Default 0.
    after: Option<u64>,
    /// At most so many. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Show events of a run
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", tag = "events", params(("run" = String, Path, description = "The run's name, or the beginning of it"), EventsQuery), responses((status = 200, description = "In order", body = Events)))]
pub async fn page(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<EventsQuery>,
) -> ApiResult<Events> {
    let limit = limited(query.limit, 100)?;
    let (run, after) = (named(&state, &run)?, query.after.unwrap_or(0));
    let events = state.events(ListEvents { run: RunRef::Named(run.to_string()), after }).await?;
    let items: Vec<_> = events.into_iter().take(limit).collect();
    let next_after = items.last().map_or(after, |event| event.number);
    let last = state.service.last_event(&run)?;
    Ok(Out(Events { items: items.into_iter().map(StreamLine::of).collect(), next_after, last }))
}

/// Start and end of a stream.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// Begin after this number; the header `Last-Event-ID` comes first. Default 0.
    after: Option<u64>,
    /// True when the stream stays open while no process works on the run, and goes on when one does. Default true.
    follow: Option<bool>,
}

/// Follow the events of a run
///
/// Server-sent events: `event` with the number as its id, and without ids `token`, `lagged`, `dropped` and `gone`. The
/// data of each is a line. A comment every 15 s says that the stream lives. When the token is removed or expires, a
/// last `problem` says so, whose data is a problem.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/events/stream",
    tag = "events",
    params(
        ("run" = String, Path, description = "The run's name, or the beginning of it"),
        StreamQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last number that the client has"),
    ),
    responses((status = 200, description = "Frames, until the client goes or the server ends", body = EventLine, content_type = "text/event-stream"))
)]
pub async fn stream(
    State(state): State<SharedState>,
    By(caller): By,
    Path(run): Path<String>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = named(&state, &run)?;
    let after = first_after(&headers, query.after)?;
    Ok(stream::of_run(&state, caller, seat(&state)?, run, after, query.follow.unwrap_or(true)))
}

/// Follow what is durable of every run from now on
///
/// Server-sent events without ids: `hello` with the runs that are worked on and their newest numbers; `event`, whose
/// data is a line; `run` when a run was taken up, let go of, or changed while no process worked on it; and `lagged`
/// when such news were lost, after which all runs are to be looked at. It ends with `problem` as that of a run does.
#[utoipa::path(get, path = "/api/v1/events/stream", tag = "events", responses((status = 200, description = "Frames, until the client goes or the server ends", body = EventLine, content_type = "text/event-stream")))]
pub async fn stream_all(State(state): State<SharedState>, By(caller): By) -> Result<Response, Problem> {
    Ok(stream::of_all(&state, caller, seat(&state)?))
}

/// The number after which a stream begins: that of the header `Last-Event-ID`, else that of the query.
pub(super) fn first_after(headers: &HeaderMap, after: Option<u64>) -> Result<u64, Problem> {
    let said = headers.get("last-event-id").filter(|said| !said.is_empty());
    let wrong = || Problem::invalid("Last-Event-ID", "write the number of an event");
    let said = said.map(|said| said.to_str().ok().and_then(|said| said.trim().parse().ok()).ok_or_else(wrong));
    Ok(said.transpose()?.or(after).unwrap_or(0))
}

/// Room for one more stream.
pub(super) fn seat(state: &SharedState) -> Result<Place, Problem> {
    let most = state.settings().streams_max;
    let full = || {
        let detail = format!("{most} streams are open, which is streams_max in [server] of server.toml");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(5), detail)
    };
    place(state, most, |state| &state.streams).ok_or_else(full)
}

fn named(state: &SharedState, run: &str) -> Result<RunId, Problem> {
    Ok(state.service.find(&which(run)?)?.record.run)
}
