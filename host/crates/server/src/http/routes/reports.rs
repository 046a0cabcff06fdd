//! Reports of runs, and their costs.

use super::super::input::{PageParams, Query, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use super::runs::all;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use longhaul_api::runs::{RunRef, RunSummary};
use longhaul_api::wire::runs::{CostGroup, Costs, RunCost};
use longhaul_api::wire::usage::UsageView;
use longhaul_core::model::Usage as InnerUsage;
use longhaul_report::{self as report, ReportFormat};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// How a report is written.
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
    /// How it is written. Default `md`.
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
/// The newest comes first.
#[utoipa::path(get, path = "/api/v1/costs", tag = "runs", params(CostsQuery), responses((status = 200, description = "A page of costs, and the sum of all", body = Costs)))]
pub async fn costs(State(state): State<SharedState>, Query(query): Query<CostsQuery>) -> ApiResult<Costs> {
    let PageParams { limit, offset } = PageParams::of(query.limit, query.offset)?;
    let takes = |run: &RunSummary| query.project.as_ref().is_none_or(|project| *project == run.project);
    let runs: Vec<RunSummary> = all(&state).await?.into_iter().rev().filter(takes).collect();
    let sum = runs.iter().fold(InnerUsage::default(), |sum, run| sum.plus(run.spent.usage));
    let (by_project, by_agent) =
        (grouped(&runs, |run| run.project.clone()), grouped(&runs, |run| run.agents.join(", ")));
    let (by_day, total) = (grouped(&runs, |run| day_of(run.created_ms)), runs.len());
    let items = runs.into_iter().skip(offset).take(limit).map(RunCost::from).collect();
    Ok(Out(Costs { sum: UsageView::from(sum), by_project, by_agent, by_day, items, total, limit, offset }))
}

/// The sums of runs by something that they have in common, in its order.
fn grouped(runs: &[RunSummary], name: impl Fn(&RunSummary) -> String) -> Vec<CostGroup> {
    let mut groups: BTreeMap<String, (usize, InnerUsage)> = BTreeMap::new();
    for run in runs {
        let (count, usage) = groups.entry(name(run)).or_default();
        *count += 1;
        *usage = usage.plus(run.spent.usage);
    }
    let view = |(name, (runs, usage)): (String, (usize, InnerUsage))| CostGroup { name, runs, usage: usage.into() };
    groups.into_iter().map(view).collect()
}

/// The day of a time, in UTC.
fn day_of(at_ms: u64) -> String {
    let moment = report::messages::moment(at_ms);
    moment.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        assert_eq!(day_of(0), "1970-01-01");
        assert_eq!((day_of(86_399_999), day_of(86_400_000)), ("1970-01-01".to_owned(), "1970-01-02".to_owned()));
    }
}
