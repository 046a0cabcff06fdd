//! `longhaul init`, `longhaul new`, `longhaul projects` and `longhaul project`.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Subcommand;
use longhaul_api::operations::{ProjectOperations as _, SecurityOperations as _};
use longhaul_api::projects::{CreateProject, ListProjects};
use longhaul_api::runs::ProjectSummary;
use longhaul_api::security::{IdentifyProject, JoinProject, ProjectIdentity};
use longhaul_api::wire::Page;
use longhaul_api::wire::projects::ProjectIdView;
use longhaul_api::wire::runs::{ProjectMade, ProjectView};
use longhaul_config::FILE;
use longhaul_core::fault::{self, Context as _};
use longhaul_report::messages;
use std::path::Path;

#[derive(Subcommand, Debug)]
pub enum ProjectCommand {
    /// Show the id of the project here. Secrets, memory and decisions belong to this id.
    Id,
    /// Link the checkout here to the project of another checkout. It shares the secrets and the memory of that project.
    SameAs {
        /// The directory of the other checkout, or the id of the project, also from another machine.
        other: String,
    },
}

/// Runs `longhaul project`.
pub async fn run(context: &Context, command: ProjectCommand) -> fault::Result<Exit> {
    let directory = context.project.clone();
    let ProjectIdentity { id, told } = match command {
        ProjectCommand::Id => context.identify_project(IdentifyProject { directory }).await?,
        ProjectCommand::SameAs { other } => context.join_project(JoinProject { directory, other }).await?,
    };
    if context.json {
        print_json(&ProjectIdView { id })?;
    } else {
        outln!("{id}");
    }
    told.iter().for_each(|told| errln!("{told}"));
    Ok(Exit::Done)
}

/// Makes an existing directory a project.
pub async fn init(context: &Context, name: Option<String>) -> fault::Result<Exit> {
    let directory = context
        .project
        .canonicalize()
        .with_context(|| format!("there is no directory `{}`", context.project.display()))?;
    let request = CreateProject { directory, name, fresh: false };
    made(context, request, |_, repository_is_new| {
        let (git, all) = if repository_is_new { ("made a git repository, ", "everything") } else { ("", "both") };
        format!("{git}wrote {FILE} and GOAL.md; write the goal, choose a model, commit {all}, then: longhaul run")
    })
    .await
}

/// Makes a directory with a repository and two files, which the user edits and commits.
pub async fn new(context: &Context, directory: &Path, name: Option<String>) -> fault::Result<Exit> {
    let directory = std::path::absolute(context.project.join(directory))?;
    let shown = context.project.join(&directory).display().to_string();
    let request = CreateProject { directory, name, fresh: true };
    made(context, request, |_, _| {
        format!("made {shown}; write GOAL.md, choose a model in {FILE}, commit both, then: longhaul run")
    })
    .await
}

async fn made(
    context: &Context,
    request: CreateProject,
    messages: impl Fn(&Path, bool) -> String,
) -> fault::Result<Exit> {
    let created = context.create_project(request).await?;
    match context.json {
        true => print_json(&ProjectMade::from(created))?,
        false => outtext!(messages(&created.directory, created.repository_is_new)),
    }
    Ok(Exit::Done)
}

/// Lists projects.
pub async fn list(context: &Context) -> fault::Result<Exit> {
    let list = context.projects(ListProjects {}).await?;
    if context.json {
        print_json(&Page::whole(list.projects, ProjectView::from))?;
        return Ok(Exit::Done);
    }
    if list.projects.is_empty() {
        outln!("no projects yet; make one with `longhaul new DIRECTORY`, or `longhaul init` where there are files");
    }
    for ProjectSummary { project, directory, status, passing, last_ms, .. } in list.projects {
        outln!(
            "{}  {:<12}  {}/{}  {project}  {}",
            messages::moment(last_ms),
            status.as_str(),
            passing.0,
            passing.1,
            directory.display()
        );
    }
    Ok(Exit::Done)
}
