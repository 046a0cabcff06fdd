//! Projects: made with the two files that a person then edits, and listed with what became of them.
//!
//! A project's status is that of its newest run; nothing here keeps one. Refuses a name that another project of
//! this data directory has, since progress and decisions are kept by name.

use super::run_table::{CachedRun, DirectoryRuns, RunTable};
use super::{ProjectSummary, Service, ServiceOperations};
use longhaul_api::operations::ProjectOperations;
use longhaul_api::projects::{
    AcceptMcp, AcceptedMcp, CheckProject, CreateProject, CreatedProject, DescribeMcp, ListProjects, McpTools,
    ProjectCheck, ProjectList,
};
use longhaul_config::template::CONFIG;
use longhaul_config::{Config, FILE, plain_name, powers};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::project::ProjectStatus;
use longhaul_core::store::Batch;
use longhaul_records::record::ProjectRecord;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const GOAL: &str = include_str!("projects/GOAL.md");

#[async_trait::async_trait]
impl ProjectOperations for ServiceOperations<'_> {
    async fn create_project(&self, request: CreateProject) -> fault::Result<CreatedProject> {
        self.0.create_project(request).await
    }

    async fn projects(&self, ListProjects {}: ListProjects) -> fault::Result<ProjectList> {
        let known = self.0.known_projects()?;
        let mut projects: Vec<ProjectSummary> = known.into_values().map(Service::project_summary).collect();
        projects.sort_by_key(|project| std::cmp::Reverse(project.last_ms));
        Ok(ProjectList { projects })
    }

    async fn check_project(&self, CheckProject { directory, models }: CheckProject) -> fault::Result<ProjectCheck> {
        self.0.check(&directory, &models).await
    }

    async fn describe_mcp(&self, request: DescribeMcp) -> fault::Result<McpTools> {
        self.0.describe_mcp(request).await
    }

    async fn accept_mcp(&self, request: AcceptMcp) -> fault::Result<AcceptedMcp> {
        self.0.accept_mcp(request).await
    }
}

impl Service {
    async fn create_project(&self, request: CreateProject) -> fault::Result<CreatedProject> {
        let CreateProject { directory, name, fresh } = request;
        // All of them: two must not get one name.
        let _alone = self.locks.take(["projects".to_owned()]).await;
        let project = name.map_or_else(|| plain_name(&directory), Ok)?;
        let config = CONFIG.replace("{{name}}", &project);
        Config::parse(&config)?;
        self.refuse_taken(&project, &directory)?;
        let (place, named) = (directory, project.clone());
        let (directory, repository_is_new) =
            tokio::task::spawn_blocking(move || make(&place, &named, &config, fresh)).await??;
        let config = Config::read(&directory)?;
        // The written files are ours, whatever the template asks for.
        self.trust_powers(&directory, &config, &powers::of_project(&config, &directory)).await?;
        let record = ProjectRecord { project, directory, created_ms: self.host.clock.now_ms() };
        self.host.store.commit(record.put(Batch::new())?).await?;
        let ProjectRecord { project, directory, .. } = record;
        Ok(CreatedProject { project, directory, repository_is_new })
    }

    /// One whose directory is gone leaves its name.
    fn refuse_taken(&self, name: &str, directory: &Path) -> fault::Result<()> {
        let here = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let is_taken =
            |known: &KnownProject| known.record.project == name && known.record.directory.join(FILE).exists();
        let known = self.known_projects()?;
        let taken = known.iter().find(|(other, known)| **other != here && is_taken(known));
        if let Some((other, _)) = taken {
            bail!(Fault::conflict(format!(
                "there is a project `{name}` in `{}`; choose another name with --name",
                other.display()
            )));
        }
        Ok(())
    }

    /// Those that were made here, and those that were run here, by their directory.
    fn known_projects(&self) -> fault::Result<BTreeMap<PathBuf, KnownProject>> {
        let store = &*self.host.store;
        let mut known: BTreeMap<PathBuf, KnownProject> = BTreeMap::new();
        for record in ProjectRecord::list(store)? {
            known.insert(record.directory.clone(), KnownProject { record, newest: None, runs: 0 });
        }
        for DirectoryRuns { directory, oldest, newest, count } in self.of_runs(RunTable::directories)? {
            let entry = known.entry(directory).or_insert_with_key(|directory| KnownProject {
                record: ProjectRecord {
                    project: oldest.summary.project.clone(),
                    directory: directory.clone(),
                    created_ms: oldest.summary.created_ms,
                },
                newest: None,
                runs: 0,
            });
            entry.runs = count;
            entry.newest = Some(newest);
        }
        Ok(known)
    }

    fn project_summary(known: KnownProject) -> ProjectSummary {
        let KnownProject { record, newest, runs } = known;
        let ProjectRecord { project, directory, created_ms } = record;
        let Some(newest) = newest else {
            let (status, passing) = (ProjectStatus::Initializing, (0, 0));
            let (run, last_ms) = (None, created_ms);
            return ProjectSummary { project, directory, status, passing, run, runs, created_ms, last_ms };
        };
        let newest = &newest.summary;
        ProjectSummary {
            // The name may have changed since it was made.
            project: newest.project.clone(),
            directory,
            status: newest.project_status,
            passing: newest.passing,
            last_ms: newest.last_ms,
            run: Some(newest.run.clone()),
            runs,
            created_ms,
        }
    }
}

/// A project of this data directory.
struct KnownProject {
    record: ProjectRecord,
    newest: Option<Arc<CachedRun>>,
    runs: usize,
}

/// Makes what is missing; answers where it is, and whether the repository is among it.
fn make(directory: &Path, name: &str, config: &str, fresh: bool) -> fault::Result<(PathBuf, bool)> {
    if fresh {
        longhaul_worktree::new_project(directory, name)?;
    }
    let directory =
        directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))?;
    let file = directory.join(FILE);
    if file.exists() {
        bail!(Fault::conflict(format!("`{}` is there already; edit it", file.display())));
    }
    let is_new = longhaul_worktree::init_repository(&directory)?;
    std::fs::write(&file, config).or_invalid(|| format!("cannot write `{}`", file.display()))?;
    let goal = directory.join("GOAL.md");
    if !goal.exists() {
        let text = GOAL.replace("{{name}}", name);
        std::fs::write(&goal, text).or_invalid(|| format!("cannot write `{}`", goal.display()))?;
    }
    Ok((directory, is_new))
}
