//! The forms of a report.

use super::gather::{RequestHandler, gather};
use super::{RunReport, html, markdown};
use crate::service::RunRef;
use longhaul_api::operations::DecisionOperations;
use longhaul_core::fault;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Markdown.
    Md,
    /// One file that needs nothing else, with plots.
    Html,
    /// For programs.
    Json,
}

/// The report of a run, of which `handler` is asked.
pub async fn of(
    handler: &(impl RequestHandler + DecisionOperations),
    which: RunRef,
    format: ReportFormat,
) -> fault::Result<String> {
    write(&gather(handler, which).await?, format)
}

fn write(report: &RunReport, format: ReportFormat) -> fault::Result<String> {
    Ok(match format {
        ReportFormat::Md => markdown::write(report),
        ReportFormat::Html => html::write(report),
        ReportFormat::Json => serde_json::to_string_pretty(report)?,
    })
}
