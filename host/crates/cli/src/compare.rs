//! `longhaul compare`: runs beside each other, as text, as JSON or as one HTML file. It changes nothing.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::comparison::CompareRuns;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::comparison::ComparisonView;
use longhaul_core::fault::{self, Context as _};
use longhaul_report::{comparison, comparison_html};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The run that the others are compared with, or the beginning of its name.
    run: String,
    /// The other runs: one to seven.
    others: Vec<String>,
    /// Write one HTML file with a column for each run.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
pub(super) async fn run(context: &Context, args: CompareArgs) -> fault::Result<Exit> {
    let CompareArgs { run, others, html } = args;
    let compared = context.compare_runs(CompareRuns { run: RunRef::Named(run), others }).await?;
    if let Some(path) = &html {
        let page = comparison_html::html(&compared);
        std::fs::write(path, page).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    match html {
        _ if context.json => print_json(&ComparisonView::from(compared))?,
        Some(path) => outln!("{}", path.display()),
        None => outtext!(comparison::text(&compared)),
    }
    Ok(Exit::Done)
}
