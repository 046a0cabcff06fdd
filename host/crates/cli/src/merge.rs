//! `longhaul merge`: merges the commits of a run into the checked-out branch.
//!
//! No other command writes the user's checkout. The crate of worktrees looks for obstacles; this file only prints the
//! outcome.

use super::arguments::RunArg;
use super::context::Context;
use super::diff::{RunCommits, protected};
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::wire::changes::MergeView;
use longhaul_core::fault;
use longhaul_report::messages;
use longhaul_worktree::{Branch, MergeKind, MergedIn, UserRepository};

/// The most files that are named.
const FILES_MAX: usize = 20;

#[derive(Args, Debug)]
pub struct MergeArgs {
    #[command(flatten)]
    run: RunArg,
    /// Print what would be merged, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: MergeArgs) -> fault::Result<Exit> {
    let MergeArgs { run, dry_run } = args;
    let found = RunCommits::ask(context, run).await?;
    let (directory, branch) = (found.directory.clone(), Branch::new(&found.branch)?);
    let project = directory.clone();
    let merged = tokio::task::spawn_blocking(move || {
        UserRepository::open(&directory)?.merge_into_checkout(&branch, dry_run, &longhaul_worktree::no_hook)
    })
    .await??;
    let protected = protected(&project, &merged.files);
    if context.json {
        print_json(&MergeView { run: found.run.to_string(), dry_run, merged: merged.into(), protected })?;
    } else {
        outtext!(told(&merged, dry_run));
        if !protected.is_empty() {
            outtext!(format!("protected files come with it: {}", protected.join(", ")));
        }
    }
    Ok(Exit::Done)
}

fn told(merged: &MergedIn, dry_run: bool) -> String {
    let MergedIn { into, branch, kind, to, commits, files, .. } = merged;
    let commits = messages::count(*commits, "commit");
    let at = to.as_deref().map(|to| format!(", now at {}", messages::short(to))).unwrap_or_default();
    let mut text = match (kind, dry_run) {
        (MergeKind::AlreadyThere, _) => return format!("`{into}` has all of `{branch}` already"),
        (MergeKind::FastForward, true) => format!("`{into}` would move along to `{branch}`: {commits}"),
        (MergeKind::FastForward, false) => format!("`{into}` moved along to `{branch}`: {commits}{at}"),
        (MergeKind::MergeCommit, true) => format!("a merge commit would bring {commits} of `{branch}` into `{into}`"),
        (MergeKind::MergeCommit, false) => format!("merged {commits} of `{branch}` into `{into}`{at}"),
    };
    for file in files.iter().take(FILES_MAX) {
        text.push_str(&format!("\n  {file}"));
    }
    if files.len() > FILES_MAX {
        text.push_str(&format!("\n  and {}", messages::count(files.len() - FILES_MAX, "more file")));
    }
    text
}
