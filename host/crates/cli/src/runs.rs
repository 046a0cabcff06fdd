//! `longhaul runs`: lists runs, and puts them into the archive and takes them out again.
//!
//! The list leaves archived runs out unless it is asked for them alone. The service decides which runs may be archived.

use super::context::Context;
use super::exit::Exit;
use super::order::{print_done, print_json};
use super::show::word_of;
use clap::{Args, Subcommand};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{ArchiveRun, ListRuns, RunRef, RunSummary};
use longhaul_api::wire::Page;
use longhaul_api::wire::runs::RunView;
use longhaul_core::fault;

#[derive(Args, Debug)]
pub struct RunsArgs {
    /// List the archived runs instead of the others.
    #[arg(long)]
    archived: bool,
    #[command(subcommand)]
    command: Option<RunsCommand>,
}

#[derive(Subcommand, Debug)]
pub enum RunsCommand {
    /// Archive runs that have ended or are paused: the list leaves them out, and nothing of them is deleted. `resume`
    /// takes a run out of the archive.
    Archive {
        /// The runs, or the beginnings of their names.
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
    },
    /// Take runs back from the archive.
    Unarchive {
        /// The runs, or the beginnings of their names.
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
    },
}

/// Runs the command.
pub async fn run(context: &Context, args: RunsArgs) -> fault::Result<Exit> {
    match args.command {
        None => list(context, args.archived).await,
        Some(RunsCommand::Archive { runs }) => archive(context, runs, true).await,
        Some(RunsCommand::Unarchive { runs }) => archive(context, runs, false).await,
    }
}

async fn list(context: &Context, archived: bool) -> fault::Result<Exit> {
    let all = context.runs(ListRuns {}).await?.runs;
    let has_none = all.is_empty();
    let (inside, outside): (Vec<RunSummary>, Vec<RunSummary>) =
        all.into_iter().partition(|run| run.archived_ms.is_some());
    let listed = if archived { inside } else { outside };
    if context.json {
        // As over HTTP, the newest first.
        let runs: Vec<RunSummary> = listed.into_iter().rev().collect();
        print_json(&Page::whole(runs, RunView::from))?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        outln!("{}", nothing(has_none, archived));
    }
    for RunSummary { run, project, directory, status, passing, active, queue_place, forked_from, .. } in listed {
        let forked = forked_from.map(|parent| format!("  forked from {parent}")).unwrap_or_default();
        outln!(
            "{run}  {:<11} {}/{}  {project}  {}{forked}",
            word_of(status, active, queue_place),
            passing.0,
            passing.1,
            directory.display()
        );
    }
    Ok(Exit::Done)
}

/// The line in the place of an empty list.
fn nothing(has_none: bool, archived: bool) -> &'static str {
    match (has_none, archived) {
        (true, _) => "no runs yet; start one with `longhaul run` in a project",
        (false, true) => "no run is archived; `longhaul runs archive RUN` archives one",
        (false, false) => "every run is archived; `longhaul runs --archived` lists them",
    }
}

/// Archives each run, or takes it back. A refusal of one stops no other; the command ends with the last refusal.
async fn archive(context: &Context, runs: Vec<String>, archived: bool) -> fault::Result<Exit> {
    let done = if archived { "archived" } else { "taken back from the archive" };
    let mut refusal = None;
    context.client.keep();
    for run in runs {
        match context.archive_run(ArchiveRun { run: RunRef::Named(run), archived }).await {
            Ok(affected) => {
                print_done(context, &affected, done)?;
            }
            Err(fault) => {
                if let Some(earlier) = refusal.replace(fault) {
                    errln!("{earlier:#}");
                }
            }
        }
    }
    context.client.release().await;
    refusal.map_or(Ok(Exit::Done), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_says_what_there_is_instead() {
        assert!(nothing(true, false).starts_with("no runs yet") && nothing(true, true).starts_with("no runs yet"));
        assert!(nothing(false, true).contains("`longhaul runs archive RUN`"));
        assert!(nothing(false, false).contains("`longhaul runs --archived`"));
    }
}
