//! `longhaul init`, `longhaul new` and `longhaul projects`.

use super::{Context, Exit, words};
use crate::config::FILE;
use crate::service::{Answer, ProjectSummary, Request};
use anyhow::{Context as _, bail};
use std::path::Path;

/// Makes a directory that is there a project.
pub async fn init(context: &Context, name: Option<String>) -> anyhow::Result<Exit> {
    let directory = context
        .project
        .canonicalize()
        .with_context(|| format!("there is no directory `{}`", context.project.display()))?;
    let request = Request::CreateProject { directory, name, fresh: false };
    made(context, request, |_, repository_is_new| {
        let (git, all) = if repository_is_new { ("made a git repository, ", "everything") } else { ("", "both") };
        format!("{git}wrote {FILE} and GOAL.md; write the goal, choose a model, commit {all}, then: longhaul run")
    })
    .await
}

/// Makes a directory with a repository, and the two files in it for the user to edit and commit.
pub async fn new(context: &Context, directory: &Path, name: Option<String>) -> anyhow::Result<Exit> {
    let directory = std::path::absolute(context.project.join(directory))?;
    let shown = context.project.join(&directory).display().to_string();
    let request = Request::CreateProject { directory, name, fresh: true };
    made(context, request, |_, _| {
        format!("made {shown}; write GOAL.md, choose a model in {FILE}, commit both, then: longhaul run")
    })
    .await
}

async fn made(context: &Context, request: Request, words: impl Fn(&Path, bool) -> String) -> anyhow::Result<Exit> {
    let answer = context.ask(request).await?;
    let Answer::Project { directory, repository_is_new, .. } = &answer else {
        bail!("the service answered something else")
    };
    match context.json {
        true => outln!("{}", serde_json::to_string(&answer)?),
        false => outtext!(words(directory, *repository_is_new)),
    }
    Ok(Exit::Done)
}

/// Lists projects.
pub async fn list(context: &Context) -> anyhow::Result<Exit> {
    let answer = context.ask(Request::Projects).await?;
    if context.json {
        outln!("{}", serde_json::to_string(&answer)?);
        return Ok(Exit::Done);
    }
    let Answer::Projects { projects } = answer else { bail!("the service answered something else") };
    if projects.is_empty() {
        outln!("no projects yet; make one with `longhaul new DIRECTORY`, or `longhaul init` where there are files");
    }
    for ProjectSummary { project, directory, status, passing, last_ms, .. } in projects {
        outln!(
            "{}  {:<12}  {}/{}  {project}  {}",
            words::moment(last_ms),
            status.as_str(),
            passing.0,
            passing.1,
            directory.display()
        );
    }
    Ok(Exit::Done)
}
