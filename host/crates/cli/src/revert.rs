//! `longhaul revert`: resets a run to one of its earlier commits.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{RevertOutcome, RevertRun};
use longhaul_client::which;
use longhaul_core::fault;
use longhaul_report::messages;

#[derive(Args, Debug)]
pub struct RevertArgs {
    /// The commit: its name, or at least 4 digits of it, as `longhaul log` prints them.
    #[arg(long, value_name = "COMMIT", allow_hyphen_values = true)]
    to: String,
    /// The run, or the beginning of its name. Default: the newest of this project.
    #[arg(long)]
    run: Option<String>,
    /// Save uncommitted work in the store instead of refusing. `longhaul features kept` prints it.
    #[arg(long)]
    stash: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: RevertArgs) -> fault::Result<Exit> {
    let RevertArgs { to, run, stash } = args;
    let reverted = context.revert_run(RevertRun { run: which(run, &context.project), to, stash }).await?;
    match context.json {
        true => print_json(&reverted)?,
        false => outtext!(told(&reverted)),
    }
    Ok(Exit::Done)
}

fn told(reverted: &RevertOutcome) -> String {
    let RevertOutcome { run, to, left, kept_as, features, stashed, .. } = reverted;
    if reverted.is_nothing() {
        return format!("run {run} is at {} already", messages::short(to));
    }
    let mut text = format!(
        "run {run} is back at {}; {} left the branch",
        messages::short(to),
        messages::count(left.len(), "commit")
    );
    if let Some(kept_as) = kept_as {
        text.push_str(&format!("\n  kept as {kept_as}"));
    }
    for name in stashed {
        text.push_str(&format!("\n  what was in no commit: longhaul features {run} kept {name}"));
    }
    if !features.is_empty() {
        text.push_str(&format!("\n  not started again: {}", features.join(", ")));
    }
    text.push_str(&format!("\ngo on with: longhaul resume {run}"));
    text
}
