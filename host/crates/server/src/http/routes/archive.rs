//! The archive of runs: in and out. Which runs are listed is a filter of the list of runs.

use super::super::input::{MaybeJson, which};
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use super::runs::Nothing;
use axum::extract::{Path, State};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{AffectedRun, ArchiveRun};

/// Archive a run that has ended or is paused
///
/// Lists leave it out, and nothing of it is deleted: costs and metrics count it, and it is shown by its name. A resume
/// takes it out of the archive. A run that works or waits is refused with 409.
#[utoipa::path(post, path = "/api/v1/runs/{run}/archive", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), responses((status = 200, description = "It is archived", body = AffectedRun)))]
pub async fn archive(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.archive_run(ArchiveRun { run: which(&run)?, archived: true }).await?))
}

/// Take a run back from the archive
#[utoipa::path(post, path = "/api/v1/runs/{run}/unarchive", tag = "runs", params(("run" = String, Path, description = "Its name, or the beginning of it")), responses((status = 200, description = "It is not archived", body = AffectedRun)))]
pub async fn unarchive(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    _: MaybeJson<Nothing>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.archive_run(ArchiveRun { run: which(&run)?, archived: false }).await?))
}
