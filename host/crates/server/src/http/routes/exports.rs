//! Trajectories as lines of JSON, in the formats that training tools read.
//!
//! The messages of a trajectory are heard by replaying its invocation, so an export is cut into pages, and one that
//! grows too long is refused. Nothing is changed.

use super::super::input::{PageParams, Query, which};
use super::super::problem::Problem;
use super::super::state::SharedState;
use super::knowledge::rating;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use longhaul_api::operations::TrajectoryOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::trajectories::{InvocationEnding, ListTrajectories, ShowTrajectory, TrajectoryFilter};
use longhaul_api::wire::training::TrainingFormat;
use serde::Deserialize;
use utoipa::IntoParams;

/// Most bytes of one export, which is put together in memory.
const EXPORT_BYTES_MAX: usize = 64 << 20;

/// Filter, format and page of an export of trajectories.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TrajectoryExportQuery {
    /// The format of a line. Default `full`.
    #[param(inline)]
    format: Option<TrainingFormat>,
    /// Of every run of the project, and not only of this one. Default no.
    all_runs: Option<bool>,
    /// Only of this agent, by its name under `[agents]`.
    agent: Option<String>,
    /// Only those that ended so.
    #[param(inline)]
    ending: Option<InvocationEnding>,
    /// Yes: only those with a rating or a correction. No: only those with neither.
    annotated: Option<bool>,
    /// Only those with this rating or a better one.
    #[param(minimum = 1, maximum = 5)]
    rating_min: Option<u8>,
    /// Only those with this rating or a worse one.
    #[param(minimum = 1, maximum = 5)]
    rating_max: Option<u8>,
    /// Lines of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Lines before it. Default 0.
    offset: Option<usize>,
}

/// Export trajectories as JSON, one a line
///
/// In the order in which they started, with their messages. `preference` has the corrected ones in TRL's conversational
/// preference format, and `unpaired` the rated ones in its unpaired format. A page behind the last line is empty.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trajectories/export",
    tag = "knowledge",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), TrajectoryExportQuery),
    responses((status = 200, description = "A page of lines", body = String, content_type = "application/x-ndjson"))
)]
pub async fn export_trajectories(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<TrajectoryExportQuery>,
) -> Result<Response, Problem> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    let run = which(&run)?;
    let wanted = TrajectoryFilter {
        all_runs: query.all_runs.unwrap_or(false),
        agent: query.agent,
        ending: query.ending,
        annotated: query.annotated,
        rating_min: rating("rating_min", query.rating_min)?,
        rating_max: rating("rating_max", query.rating_max)?,
    };
    let format = query.format.unwrap_or_default();
    let found = state.trajectories(ListTrajectories { run, wanted }).await?;
    let mut text = String::new();
    for one in found.iter().filter(|one| format.takes(one)).skip(offset).take(limit) {
        let request = ShowTrajectory { run: RunRef::Named(one.run.to_string()), invocation: one.id.to_string() };
        let whole = state.trajectory(request).await?;
        let line = format.line(whole).map_err(|error| Problem::failed(format!("`{}`: {error}", one.id)))?;
        if let Some(line) = line {
            text.push_str(&line);
            text.push('\n');
        }
        if text.len() > EXPORT_BYTES_MAX {
            let detail =
                format!("the lines have more than {EXPORT_BYTES_MAX} bytes; ask for fewer, with limit and offset");
            return Err(Problem::invalid("limit", detail));
        }
    }
    let mut response = text.into_response();
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    // A download, never shown in place: it holds what models wrote.
    let name = HeaderValue::from_static("attachment; filename=\"trajectories.jsonl\"");
    fields.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}
