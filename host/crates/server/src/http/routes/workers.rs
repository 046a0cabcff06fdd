//! The servers that work on runs of the same store.

use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::State;
use longhaul_api::operations::WorkerOperations as _;
use longhaul_api::wire::workers::Workers;
use longhaul_api::workers::ListWorkers;

/// List the servers that work on runs, and the runs that wait for one
#[utoipa::path(get, path = "/api/v1/workers", tag = "workers", responses((status = 200, description = "The servers by name; none where this server works alone", body = Workers)))]
pub async fn list(State(state): State<SharedState>) -> ApiResult<Workers> {
    Ok(Out(state.workers(ListWorkers {}).await?.into()))
}
