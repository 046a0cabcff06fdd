//! Runs a project of two features with a recorded model, and prints the events of the run as they come.
//!
//! It needs no server and no `longhaul` beside it: the children that compile plugins and run checks are this program.

use futures_util::StreamExt as _;
use longhaul::events::{Content, Event};
use longhaul::projects::{ModelOptions, ProjectClient, RunOptions};
use longhaul::{Fault, Home, Result, run_child_if_asked};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, ExitCode};

/// The files of the project, which lie beside this program's source.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/project");

fn main() -> ExitCode {
    // First of all, before there are other threads.
    run_child_if_asked();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed-run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<()> {
    let place = tempfile::tempdir()?;
    let directory = repository(&place.path().join("project"))?;
    let home = Home::find(Some(place.path().join("data")))?;
    let project = ProjectClient::open(&home, &directory).await?;
    let followed = follow(&project, &directory).await;
    // Also after an error: the next process that opens the data directory can resume runs that have not ended.
    project.close().await;
    followed
}

/// Begins a run and prints its events until it has ended, and then its outcome.
async fn follow(project: &ProjectClient, directory: &Path) -> Result<()> {
    let models = ModelOptions { replay_from: Some(directory.join("recording.jsonl")), ..ModelOptions::default() };
    let run = project.begin(RunOptions { models, ..RunOptions::default() }).await?;
    let mut lines = pin!(project.events(&run, 1).await?);
    while let Some(line) = lines.next().await {
        match line.content {
            Content::Event { event, .. } => {
                if let Some(text) = told(&event) {
                    println!("{text}");
                }
            }
            Content::End { error: Some(error), .. } => return Err(Fault::msg(error)),
            // This program reads at once, and shows no reply while it is being written.
            Content::Token(_) | Content::Lagged { .. } | Content::Dropped { .. } | Content::End { error: None, .. } => {
            }
        }
    }
    let status = project.status(&run).await?;
    let (passing, all) = status.summary.passing;
    println!("the branch {} has {passing} of {all} features", status.branch);
    Ok(())
}

/// The line for an event; none for those that this program does not show.
fn told(event: &Event) -> Option<String> {
    match event {
        Event::Planned { features, .. } => {
            let ids: Vec<&str> = features.iter().map(|(id, _)| id.as_str()).collect();
            Some(format!("planned: {}", ids.join(", ")))
        }
        Event::Judged { feature, passed: true, .. } => Some(format!("judged: {feature} passes")),
        Event::Judged { feature, passed: false, .. } => Some(format!("judged: {feature} does not pass")),
        Event::Committed { files, .. } => Some(format!("committed: {}", files.join(", "))),
        Event::RunEnded { status, summary, .. } => Some(format!("ended: {status}, {summary}")),
        _ => None,
    }
}

/// A git repository with the project as its first commit: the agents of a run work on a branch of it.
fn repository(directory: &Path) -> Result<PathBuf> {
    std::fs::create_dir(directory)?;
    for name in ["longhaul.toml", "GOAL.md", "recording.jsonl"] {
        std::fs::copy(Path::new(PROJECT).join(name), directory.join(name))?;
    }
    let author = ["-c", "user.name=embed-run", "-c", "user.email=embed-run@localhost"];
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "Begin"]] {
        let ended = Command::new("git").current_dir(directory).args(author).args(arguments).status()?;
        if !ended.success() {
            return Err(Fault::msg(format!("`git {}` failed in `{}`", arguments[0], directory.display())));
        }
    }
    Ok(directory.to_owned())
}
