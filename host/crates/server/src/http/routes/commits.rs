//! One commit of a run, with its changes. The list of commits is with the runs.

use super::super::input::which;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::{Path, State};
use longhaul_api::commits::ShowCommit;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::wire::commits::CommitChanges;

/// Show what a commit of a run changed
///
/// Only commits of the run itself are shown: those of its log, those that reverts removed, and the one that it began
/// at. The texts are bounded; `is_cut`, `files_left_out` and `counts` tell what is missing.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/commits/{commit}",
    tag = "runs",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("commit" = String, Path, description = "The commit's name, or the beginning of it: 4 to 40 hexadecimal digits")),
    responses((status = 200, description = "The commit with its changes", body = CommitChanges))
)]
pub async fn commit(
    State(state): State<SharedState>,
    Path((run, commit)): Path<(String, String)>,
) -> ApiResult<CommitChanges> {
    Ok(Out(state.commit_diff(ShowCommit { run: which(&run)?, commit }).await?.into()))
}
