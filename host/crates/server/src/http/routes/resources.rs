//! Resource use of the machine, now and over the last hours.

use super::super::input::Query;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::State;
use longhaul_api::operations::ResourceOperations as _;
use longhaul_api::resources::{ListSamples, ReadResources};
use longhaul_api::wire::resources::Resources;
use serde::Deserialize;
use utoipa::IntoParams;

/// Most samples that are shown: those of one hour.
const SAMPLES: usize = 720;

/// Start of the samples that are shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ResourcesQuery {
    /// Only samples after this time, in milliseconds since 1970-01-01 UTC. Default: those of the last hour.
    after_ms: Option<u64>,
}

/// Show what is used of the machine, and was
#[utoipa::path(get, path = "/api/v1/resources", tag = "server", params(ResourcesQuery), responses((status = 200, description = "Now, and before", body = Resources)))]
pub async fn show(State(state): State<SharedState>, Query(query): Query<ResourcesQuery>) -> ApiResult<Resources> {
    let resources = state.resources(ReadResources {}).await?;
    let wanted = ListSamples { after_ms: query.after_ms.unwrap_or(0), limit: SAMPLES };
    Ok(Out(Resources::of(resources, state.resource_history(wanted).await?)))
}
