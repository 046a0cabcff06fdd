//! Rehearsals of runs on other bytes of a plugin, and moves of runs to them.
//!
//! A file of the server is named by nobody over this path: the plugin is one that is installed there.

use super::super::input::{Json, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::{Path, State};
use longhaul_api::operations::{JournalOperations as _, RunOperations as _};
use longhaul_api::rehearsals::{MoveRun, MovedRun, RehearsalReport, RehearseRuns};
use longhaul_core::fault::Fault;
use serde::Deserialize;
use utoipa::ToSchema;

/// Runs that one request names at most.
const RUNS_MAX: usize = 100;

/// What is rehearsed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRehearsal)]
pub struct RehearsalBody {
    /// The runs, or the beginnings of their names, at most 100.
    #[serde(default)]
    runs: Vec<String>,
    /// True for all runs that have not ended and have the plugin, at most the newest 100, in place of `runs`.
    #[serde(default)]
    live: bool,
    /// The installed plugin: `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS`; null: the bytes that each run pinned, on
    /// this version of the program.
    #[serde(default)]
    plugin: Option<String>,
    /// True for the settings of plugins that `longhaul.toml` has now.
    #[serde(default)]
    settings: bool,
    /// The time after which no further invocation is replayed, in milliseconds; null: there is no such time.
    #[serde(default)]
    time_ms_max: Option<u64>,
}

/// Replay runs on other bytes of a plugin, other settings or this version, and compare
///
/// Nothing is executed, and runs may be at work meanwhile. The verdict of a run is that it reaches its end, that it
/// differs at an entry, with both requests as a diff, or that it cannot be told.
#[utoipa::path(post, path = "/api/v1/rehearsals", tag = "journal", request_body = inline(RehearsalBody), responses((status = 200, description = "The verdict of each run", body = RehearsalReport)))]
pub async fn rehearse(State(state): State<SharedState>, Json(body): Json<RehearsalBody>) -> ApiResult<RehearsalReport> {
    let RehearsalBody { runs, live, plugin, settings, time_ms_max } = body;
    if runs.len() > RUNS_MAX {
        let text = format!("{} runs are named, and a request may name {RUNS_MAX}", runs.len());
        return Err(Problem::from(Fault::invalid(text).at("runs")));
    }
    let (directory, with) = (None, None);
    let request = RehearseRuns { runs, directory, live, plugin, with, settings, time_ms_max };
    Ok(Out(state.rehearse_runs(request).await?))
}

/// The plugin that a run is moved to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Move)]
pub struct MoveBody {
    /// The installed plugin: `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS`.
    plugin: String,
    /// True to move the run also where its rehearsal differs or cannot be told: what has begun ends on the bytes that
    /// it began with, and what begins later has the new ones.
    #[serde(default)]
    at_boundary: bool,
}

/// Move a run to other bytes of a plugin
///
/// The run is rehearsed on them first. A run that is worked on or has ended is refused with 409, and so is one whose
/// rehearsal does not reach its end, unless `at_boundary` is true.
#[utoipa::path(post, path = "/api/v1/runs/{run}/move", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), request_body = inline(MoveBody), responses((status = 200, description = "It was moved", body = MovedRun)))]
pub async fn move_run(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(MoveBody { plugin, at_boundary }): Json<MoveBody>,
) -> ApiResult<MovedRun> {
    let request = MoveRun { run: which(&run)?, plugin, at_boundary };
    Ok(Out(state.move_run(request).await?))
}
