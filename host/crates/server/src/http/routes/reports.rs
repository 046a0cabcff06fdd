//! Reports of runs, and their costs.

use super::super::input::{PageParams, Query, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{CostSum, ListCosts, RunRef};
use longhaul_api::wire::runs::{Costs, NamedCost, RunCost};
use longhaul_api::wire::usage::UsageView;
use longhaul_report::{self as report, ReportFormat};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// The form of a report.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReportFormat)]
pub enum ReportForm {
    /// Markdown.
    #[default]
    Md,
    /// One file that needs nothing else, with plots.
    Html,
    /// For programs.
    Json,
}

/// Format of a report.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportQuery {
    /// The form. Default `md`.
    #[param(inline)]
    format: Option<ReportForm>,
}

/// Report a run, as a file to keep
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/report",
    tag = "runs",
    params(("run" = String, Path, description = "Its name, or the beginning of it"), ReportQuery),
    responses((status = 200, description = "The report", content((String = "text/markdown"), (String = "text/html"), (serde_json::Value = "application/json"))))
)]
pub async fn report(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let (format, kind, end) = match query.format.unwrap_or_default() {
        ReportForm::Md => (ReportFormat::Md, "text/markdown; charset=utf-8", "md"),
        ReportForm::Html => (ReportFormat::Html, "text/html; charset=utf-8", "html"),
        ReportForm::Json => (ReportFormat::Json, "application/json", "json"),
    };
    let run = state.service.find(&which(&run)?)?.record.run;
    let text = report::of(&*state, RunRef::Named(run.to_string()), format).await?;
    let mut response = text.into_response();
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // A download, never shown in place: it holds what models wrote.
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{run}.{end}\"")) {
        fields.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// Filter and page of the list of costs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CostsQuery {
    /// Only of this project.
    project: Option<String>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// Show what runs cost, by their ledgers
///
/// The newest comes first. Sums are over all runs that match, by the ledgers of runs for projects, and by replies of
/// models for models, agents and days.
#[utoipa::path(get, path = "/api/v1/costs", tag = "runs", params(CostsQuery), responses((status = 200, description = "A page of costs, and the sum of all", body = Costs)))]
pub async fn costs(State(state): State<SharedState>, Query(query): Query<CostsQuery>) -> ApiResult<Costs> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    let found = state.costs(ListCosts { project: query.project, limit, offset }).await?;
    Ok(Out(Costs {
        sum: UsageView::from(found.sum),
        by_project: named(found.by_project),
        by_model: named(found.by_model),
        by_agent: named(found.by_agent),
        by_day: named(found.by_day),
        items: found.runs.into_iter().map(RunCost::from).collect(),
        total: found.total_count,
        limit,
        offset,
    }))
}

fn named(sums: Vec<CostSum>) -> Vec<NamedCost> {
    sums.into_iter().map(NamedCost::from).collect()
}
