//! Journals of runs: their invocations, the entries of one, runs at points of their past, and replays that compare the
//! outcomes.

use super::super::input::{MaybeJson, PageParams, Query, limited, which};
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use axum::extract::{Path, State};
use longhaul_api::journal::{InvocationEntries, ListCarried, ListEntries, RecordInvocation, ReplayInvocations};
use longhaul_api::operations::JournalOperations as _;
use longhaul_api::points::{Point, ShowPoint};
use longhaul_api::wire::journal::{Entries, Invocation, RecordingView, Replays};
use longhaul_api::wire::points::RunAtPointView;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// List the invocations of a run
///
/// In the order in which they started; a delegation follows the one that asked for it.
#[utoipa::path(get, path = "/api/v1/runs/{run}/journal", tag = "journal", params(("run" = String, Path, description = "The run's name, or the beginning of it"), PageQuery), responses((status = 200, description = "A page of invocations", body = Page<Invocation>)))]
pub async fn list(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Page<Invocation>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let carried = state.carried_invocations(ListCarried { run: which(&run)? }).await?;
    Ok(Out(Page::of(carried, window, Invocation::from)))
}

/// The invocation whose entries are shown, and how many of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EntriesQuery {
    /// The invocation, with or without the run's name.
    invocation: String,
    /// Those after this number. Default 0.
    after: Option<u32>,
    /// At most so many. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Show the entries of an invocation's journal
#[utoipa::path(get, path = "/api/v1/runs/{run}/journal/entries", tag = "journal", params(("run" = String, Path, description = "The run's name, or the beginning of it"), EntriesQuery), responses((status = 200, description = "Its entries", body = Entries)))]
pub async fn entries(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<EntriesQuery>,
) -> ApiResult<Entries> {
    let limit = limited(query.limit, 100)?;
    let after = query.after.unwrap_or(0);
    let request = ListEntries { run: which(&run)?, invocation: query.invocation, after };
    let InvocationEntries { invocation, entries, finished } = state.journal_entries(request).await?;
    Ok(Out(Entries::of(&invocation, entries, finished, limit)))
}

/// The invocation that is recorded.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RecordingQuery {
    /// The invocation, with or without the run's name.
    invocation: String,
}

/// Record an invocation for a test: its input, and its calls with their arguments and answers
///
/// The invocation is replayed, which executes nothing. Values of known secrets are replaced by `[secret]`;
/// `longhaul scenario record` replaces more and writes the files of a test.
#[utoipa::path(get, path = "/api/v1/runs/{run}/journal/recording", tag = "journal", params(("run" = String, Path, description = "The run's name, or the beginning of it"), RecordingQuery), responses((status = 200, description = "The recording", body = RecordingView)))]
pub async fn recording(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<RecordingQuery>,
) -> ApiResult<RecordingView> {
    let request = RecordInvocation { run: which(&run)?, invocation: query.invocation };
    Ok(Out(state.record_invocation(request).await?.into()))
}

/// The point at which a run is shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PointQuery {
    /// `entry:N` or `entry:KEY:N` of an invocation, `step:N` of its agents, `feature:ID`, `commit:HEX`,
    /// `time:2026-11-22T01:00:00Z`, or `event:N`.
    #[param(value_type = String)]
    point: Point,
}

/// Show a run as it was at a point of its past
#[utoipa::path(get, path = "/api/v1/runs/{run}/at", tag = "journal", params(("run" = String, Path, description = "The run's name, or the beginning of it"), PointQuery), responses((status = 200, description = "The run at the point", body = RunAtPointView)))]
pub async fn at(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<PointQuery>,
) -> ApiResult<RunAtPointView> {
    let request = ShowPoint { run: which(&run)?, point: query.point };
    Ok(Out(state.run_at_point(request).await?.into()))
}

/// The scope of a replay.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Replay)]
pub struct ReplayBody {
    /// Only this invocation, with or without the run's name; null: all that have finished.
    #[serde(default)]
    invocation: Option<String>,
}

/// Run finished invocations again from their journals and compare
///
/// Nothing is executed.
#[utoipa::path(post, path = "/api/v1/runs/{run}/replay", tag = "journal", params(("run" = String, Path, description = "The run's name, or the beginning of it")), request_body = inline(Option<ReplayBody>), responses((status = 200, description = "The comparison of each invocation", body = Replays)))]
pub async fn replay(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    MaybeJson(wanted): MaybeJson<ReplayBody>,
) -> ApiResult<Replays> {
    let request = ReplayInvocations { run: which(&run)?, invocation: wanted.invocation, with: None };
    Ok(Out(state.replay(request).await?.invocations.into()))
}
