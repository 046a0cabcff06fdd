//! The forms of a report.

use super::gather::gather;
use super::{RunReport, html, markdown};
use longhaul_api::operations::Api;
use longhaul_api::runs::RunRef;
use longhaul_core::fault;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Markdown.
    Md,
    /// One file that needs nothing else, with plots.
    Html,
    /// For programs.
    Json,
}

/// The report of a run, as `api` tells of it.
pub async fn of(api: &impl Api, which: RunRef, format: ReportFormat) -> fault::Result<String> {
    write(&gather(api, which).await?, format)
}

fn write(report: &RunReport, format: ReportFormat) -> fault::Result<String> {
    Ok(match format {
        ReportFormat::Md => markdown::write(report),
        ReportFormat::Html => html::write(report),
        ReportFormat::Json => serde_json::to_string_pretty(report)?,
    })
}
