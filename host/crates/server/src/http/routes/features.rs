//! The features of a run: listed, added, edited and dropped.

use super::super::input::{Json, PageParams, Query, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use super::runs::at_length;
use axum::extract::{Path, State};
use longhaul_api::features::{AddFeature, DropFeature, EditFeature};
use longhaul_api::operations::FeatureOperations as _;
use longhaul_api::runs::AffectedRun;
use longhaul_api::wire::features::{FeatureSpecView, FeatureView};

/// List the features of a run
///
/// In the planner's order; with `depends_on` they are its plan.
#[utoipa::path(get, path = "/api/v1/runs/{run}/features", tag = "features", params(("run" = String, Path, description = "The run's name, or the beginning of it"), PageQuery), responses((status = 200, description = "A page of features", body = Page<FeatureView>)))]
pub async fn list(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Page<FeatureView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    Ok(Out(Page::of(at_length(&state, &run).await?.features, window, FeatureView::from)))
}

/// Add a feature to a run, also while it goes on
#[utoipa::path(post, path = "/api/v1/runs/{run}/features", tag = "features", params(("run" = String, Path, description = "The run's name, or the beginning of it")), request_body = FeatureSpecView, responses((status = 201, description = "It is added", body = AffectedRun)))]
pub async fn add(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Json(spec): Json<FeatureSpecView>,
) -> Result<CreatedResponse<AffectedRun>, Problem> {
    let request = AddFeature { run: which(&run)?, spec: spec.into() };
    let told = state.add_feature(request).await?;
    let location = Some(format!("/api/v1/runs/{}/features", told.run));
    Ok(CreatedResponse { told, location })
}

/// Replace what a feature asks for
#[utoipa::path(
    put,
    path = "/api/v1/runs/{run}/features/{feature}",
    tag = "features",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("feature" = String, Path, description = "Its id")),
    request_body = FeatureSpecView,
    responses((status = 200, description = "It is replaced", body = AffectedRun))
)]
pub async fn edit(
    State(state): State<SharedState>,
    Path((run, feature)): Path<(String, String)>,
    Json(spec): Json<FeatureSpecView>,
) -> ApiResult<AffectedRun> {
    if spec.id != feature {
        return Err(Problem::invalid("id", "the feature of the path has another id, which cannot be changed"));
    }
    let request = EditFeature { run: which(&run)?, spec: spec.into() };
    Ok(Out(state.edit_feature(request).await?))
}

/// Take a feature off the list
#[utoipa::path(
    delete,
    path = "/api/v1/runs/{run}/features/{feature}",
    tag = "features",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("feature" = String, Path, description = "Its id")),
    responses((status = 200, description = "It is off the list", body = AffectedRun))
)]
pub async fn drop(
    State(state): State<SharedState>,
    Path((run, feature)): Path<(String, String)>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.drop_feature(DropFeature { run: which(&run)?, feature }).await?))
}
