//! `longhaul report`: the report of a run, printed or written into a file.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::terminal;
use clap::Args;
use longhaul_core::fault::{self, Context as _};
use longhaul_report::{self as report, ReportFormat};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    run: RunArg,
    /// The form of the report.
    #[arg(long, value_enum, default_value = "md")]
    format: FormatArg,
    /// The file of the report. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The forms, as they are typed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatArg {
    /// Markdown.
    Md,
    /// One file that needs nothing else, with plots.
    Html,
    /// For programs.
    Json,
}

impl From<FormatArg> for ReportFormat {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Md => Self::Md,
            FormatArg::Html => Self::Html,
            FormatArg::Json => Self::Json,
        }
    }
}

/// Carries it out.
pub(super) async fn run(context: &Context, args: ReportArgs) -> fault::Result<Exit> {
    let format = if context.json { ReportFormat::Json } else { args.format.into() };
    context.client.keep();
    let text = report::of(&context.client, context.which(args.run), format).await?;
    context.client.release().await;
    match args.output {
        Some(path) => {
            std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
            outln!("{}", path.display());
        }
        None => terminal::document(text.trim_end()),
    }
    Ok(Exit::Done)
}
