//! Looks at the run in a data directory: its state, journals, events and commits.
//!
//! The directory is opened in this process, which resumes nothing and sends nothing. A directory that a kill left is
//! looked at in a copy, so that the resume finds what the kill left.

use super::lab::Stage;
use crate::command_client::CommandClient;
use longhaul_api::journal::{InvocationEntries, ListEntries, ListEvents, ListInvocations};
use longhaul_api::operations::{JournalOperations as _, RunOperations as _};
use longhaul_api::runs::{AnswerRun, RunRef, ShowRun, Status};
use longhaul_core::InvocationId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, FaultCode};
use longhaul_core::journal::Resolution;
use longhaul_crashtest::RunObservation;
use longhaul_harness::RunStatus;
use longhaul_home::Home;
use longhaul_worktree::{Branch, UserRepository};
use std::path::Path;

/// The run of a project; none before there is one.
pub async fn observe(stage: &Stage<'_>, home: &Path, project: &Path) -> fault::Result<Option<RunObservation>> {
    let _alone = stage.looking().lock().await;
    let client = client(stage, home, project)?;
    let observed = read(&client, project, stage.base()).await;
    client.close().await;
    observed
}

/// Answers questions of a run about effects.
pub async fn answer(
    stage: &Stage<'_>,
    home: &Path,
    project: &Path,
    answers: Vec<(String, Resolution)>,
) -> fault::Result<()> {
    let _alone = stage.looking().lock().await;
    let client = client(stage, home, project)?;
    let answered = send(&client, project, answers).await;
    client.close().await;
    answered
}

/// True when a run has ended.
pub fn is_over(status: &Status) -> bool {
    match status.summary.status {
        RunStatus::Completed | RunStatus::Incomplete | RunStatus::Failed | RunStatus::Abandoned => true,
        RunStatus::New | RunStatus::Planning | RunStatus::Working | RunStatus::Parked | RunStatus::Paused => false,
    }
}

fn client(stage: &Stage<'_>, home: &Path, project: &Path) -> fault::Result<CommandClient> {
    let client = CommandClient::new(&Home::find(Some(home.to_owned()))?, project, stage.owner());
    client.keep();
    Ok(client)
}

async fn send(client: &CommandClient, project: &Path, answers: Vec<(String, Resolution)>) -> fault::Result<()> {
    for (question, resolution) in answers {
        let run = RunRef::NewestIn(project.to_owned());
        let (question, resolution) = (Some(question), Some(resolution));
        client.answer_run(AnswerRun { run, feature: None, question, resolution, text: String::new() }).await?;
    }
    Ok(())
}

async fn read(client: &CommandClient, project: &Path, base: &str) -> fault::Result<Option<RunObservation>> {
    let newest = RunRef::NewestIn(project.to_owned());
    let status = match client.run_status(ShowRun { run: newest }).await {
        Err(error) if error.code() == Some(FaultCode::Unknown) => return Ok(None),
        status => status?,
    };
    let run = RunRef::Named(status.summary.run.to_string());
    let mut journals = Vec::new();
    for invocation in client.invocations(ListInvocations { run: run.clone() }).await?.invocations {
        journals.push(journal(client, &run, invocation).await?);
    }
    let events = events(client, &run).await?;
    let commits = UserRepository::open(project)?.contents_of(&Branch::new(&status.branch)?, base)?;
    Ok(Some(RunObservation { status, journals, events, commits }))
}

/// The whole journal of an invocation, which comes in pages. One that was killed before its first entry has none.
async fn journal(client: &CommandClient, run: &RunRef, invocation: InvocationId) -> fault::Result<InvocationEntries> {
    let mut whole = InvocationEntries { invocation, entries: Vec::new(), finished: None };
    loop {
        let after = whole.entries.last().map_or(0, |(number, _)| *number);
        let request = ListEntries { run: run.clone(), invocation: whole.invocation.as_str().to_owned(), after };
        let page = match client.journal_entries(request).await {
            Err(error) if error.code() == Some(FaultCode::Unknown) => return Ok(whole),
            page => page?,
        };
        whole.finished = page.finished;
        if page.entries.is_empty() {
            return Ok(whole);
        }
        whole.entries.extend(page.entries);
    }
}

async fn events(client: &CommandClient, run: &RunRef) -> fault::Result<Vec<RunEvent>> {
    let mut whole: Vec<RunEvent> = Vec::new();
    loop {
        let after = whole.last().map_or(0, |event| event.number);
        let page = client.events(ListEvents { run: run.clone(), after }).await?;
        if page.is_empty() {
            return Ok(whole);
        }
        whole.extend(page);
    }
}
