//! Projects: listed, made and found by name.

use super::super::input::{Json, PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, CreatedResponse, Out, Page};
use super::super::state::SharedState;
use axum::extract::State;
use http::StatusCode;
use longhaul_api::operations::ProjectOperations as _;
use longhaul_api::projects::{CreateProject, ListProjects};
use longhaul_api::runs::ProjectSummary;
use longhaul_api::wire::runs::{ProjectMade, ProjectView};
use serde::Deserialize;
use std::path::PathBuf;
use utoipa::{IntoParams, ToSchema};

/// Page of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Items before it. Default 0.
    pub offset: Option<usize>,
}

/// List the projects
///
/// The one that something happened to last comes first.
#[utoipa::path(get, path = "/api/v1/projects", tag = "projects", params(PageQuery), responses((status = 200, description = "A page of projects", body = Page<ProjectView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<PageQuery>) -> ApiResult<Page<ProjectView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    Ok(Out(Page::of(all(&state).await?, window, ProjectView::from)))
}

/// The project that is made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Where, an absolute path on the server's machine.
    directory: String,
    /// Its name. Default: the directory's.
    #[serde(default)]
    name: Option<String>,
    /// True when the directory is to be made, or is empty; otherwise it holds files already.
    #[serde(default)]
    fresh: bool,
}

/// Make a project
///
/// Writes `longhaul.toml` and `GOAL.md`, and makes a git repository, where they are missing.
#[utoipa::path(post, path = "/api/v1/projects", tag = "projects", request_body = NewProject, responses((status = 201, description = "It is made", body = ProjectMade)))]
pub async fn create(
    State(state): State<SharedState>,
    Json(new): Json<NewProject>,
) -> Result<CreatedResponse<ProjectMade>, Problem> {
    let directory = absolute("directory", &new.directory)?;
    let request = CreateProject { directory, name: new.name, fresh: new.fresh };
    Ok(CreatedResponse { told: state.create_project(request).await?.into(), location: None })
}

/// All projects, the most recent first.
pub async fn all(state: &SharedState) -> Result<Vec<ProjectSummary>, Problem> {
    Ok(state.projects(ListProjects {}).await?.projects)
}

/// The directory of the project of that name.
pub async fn directory_of(state: &SharedState, name: &str) -> Result<PathBuf, Problem> {
    let mut found = all(state).await?.into_iter().filter(|known| known.project == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.directory),
        (None, _) => Err(Problem::invalid("project", "there is no such project; GET /api/v1/projects lists them")),
        (Some(_), Some(_)) => {
            Err(Problem::new(StatusCode::CONFLICT, "several projects have this name; name the directory"))
        }
    }
}

/// Reads an absolute path on the server's machine.
pub fn absolute(field: &str, path: &str) -> Result<PathBuf, Problem> {
    let found = PathBuf::from(path);
    if !found.is_absolute() || path.contains('\0') {
        return Err(Problem::invalid(field, "write an absolute path"));
    }
    Ok(found)
}
