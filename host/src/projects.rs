//! Projects and their runs from a Rust program, as with `longhaul run`.
//!
//! A [`ProjectClient`] opens a data directory or finds its owner, and begins, watches and resumes the runs of one
//! project there. A run survives its process: the next process that opens the data directory can resume it. The client
//! decides nothing about a run, and agrees to no permission by itself.
//!
//! The program that begins a run is its own child processes, if its `main` begins with [`run_child_if_asked`].
//!
//! [`run_child_if_asked`]: crate::run_child_if_asked

use crate::children::expect_program;
use crate::events::{self, StreamLine};
use crate::wiring;
use futures_util::Stream;
use longhaul_api::operations::{ProjectOperations as _, RunOperations as _, SecurityOperations as _};
use longhaul_api::projects::{CreateProject, ListProjects};
use longhaul_api::runs::{AnswerRun, BeginRun, PauseRun, ResumeRun, RunRef, ShowRun};
use longhaul_api::security::{ShowTrust, TrustProject};
use longhaul_client::Client;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_home::Home;
use std::path::{Path, PathBuf};

pub use longhaul_api::projects::CreatedProject;
pub use longhaul_api::runs::{OpenQuestion, ProjectSummary, RunSummary, Status};
pub use longhaul_config::powers::Power;
pub use longhaul_core::Digest;
pub use longhaul_core::event::WorkUsage;
pub use longhaul_core::project::ProjectStatus;
pub use longhaul_core::work::{FeatureStatus, Plan};
pub use longhaul_harness::{Feature, RunStatus};
pub use longhaul_models::set::ModelOptions;
pub use longhaul_records::ledger::LedgerView;
pub use longhaul_security::trust::TrustStatus;

/// Options of a run, beside the configuration of its project.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Options of its models: they can be recorded, or answered from a recording.
    pub models: ModelOptions,
    /// The plan that the run follows; none: a planner is asked.
    pub plan: Option<Plan>,
    /// Pause when the plan is there.
    pub plan_only: bool,
    /// Pause after this number of sessions, attempts at a feature.
    pub sessions_max: Option<u32>,
    /// Begin also when the project was abandoned.
    pub again: bool,
}

/// One project in one data directory.
pub struct ProjectClient {
    client: Client,
    directory: PathBuf,
}

impl ProjectClient {
    /// Becomes the owner of the data directory, or finds the present owner. The project need not exist yet.
    ///
    /// # Errors
    /// When the data directory can neither be opened nor its owner be reached.
    pub async fn open(home: &Home, project: &Path) -> fault::Result<Self> {
        let directory = std::path::absolute(project).with_context(|| format!("`{}` is no path", project.display()))?;
        Ok(Self { client: wiring::open(home, Some(&directory)).await?, directory })
    }

    /// Makes the project: writes `longhaul.toml` and `GOAL.md`, and makes the directory and a git repository, if they
    /// do not exist. The name is the directory's by default.
    ///
    /// # Errors
    /// When the directory has a `longhaul.toml`, or another project has the name.
    pub async fn create(&self, name: Option<String>) -> fault::Result<CreatedProject> {
        let fresh = !self.directory.exists();
        self.client.create_project(CreateProject { directory: self.directory.clone(), name, fresh }).await
    }

    /// Every project of the data directory. The one whose last event is the newest comes first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self) -> fault::Result<Vec<ProjectSummary>> {
        Ok(self.client.projects(ListProjects {}).await?.projects)
    }

    /// The permissions that `longhaul.toml` asks for, and whether they are agreed to. A run is refused before they are.
    ///
    /// # Errors
    /// When `longhaul.toml` cannot be read.
    pub async fn trust_status(&self) -> fault::Result<TrustStatus> {
        self.client.trust_status(ShowTrust { directory: self.directory.clone() }).await
    }

    /// Agrees to the permissions that were shown.
    ///
    /// # Errors
    /// When `longhaul.toml` was changed since.
    pub async fn trust(&self, shown: &TrustStatus) -> fault::Result<()> {
        let request = TrustProject { directory: self.directory.clone(), digest: Some(shown.digest) };
        self.client.trust_project(request).await.map(drop)
    }

    /// Begins a run. It goes on while this client is open.
    ///
    /// # Errors
    /// When the run is refused, with the remedy.
    pub async fn begin(&self, options: RunOptions) -> fault::Result<RunId> {
        expect_program(&self.client)?;
        let RunOptions { models, plan, plan_only, sessions_max, again } = options;
        let directory = self.directory.clone();
        let request = BeginRun { directory, models, plan, plan_only, sessions: sessions_max, again };
        Ok(self.client.begin_run(request).await?.run)
    }

    /// Continues a run that was paused or killed, or that ended with features that do not pass. `retry_failing` retries
    /// those.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be continued, with the reason.
    pub async fn resume(&self, run: &RunId, retry_failing: bool) -> fault::Result<()> {
        expect_program(&self.client)?;
        let request = ResumeRun { run: named(run), retry_failing, sessions: None };
        self.client.resume_run(request).await.map(drop)
    }

    /// Pauses a run once its effects in flight have finished.
    ///
    /// # Errors
    /// When there is no such run, or it has ended.
    pub async fn pause(&self, run: &RunId) -> fault::Result<()> {
        self.client.pause_run(PauseRun { run: named(run) }).await.map(drop)
    }

    /// Answers what a run waits for: the run itself, or one of its features.
    ///
    /// # Errors
    /// When it waits for nothing, or for a decision that is not a text.
    pub async fn answer(&self, run: &RunId, feature: Option<String>, text: String) -> fault::Result<()> {
        let request = AnswerRun { run: named(run), feature, question: None, resolution: None, text };
        self.client.answer_run(request).await.map(drop)
    }

    /// The events of a run from the number `from` on, counted from 1, and then new ones, until no process works on the
    /// run. The last line is [`Content::End`], or [`Content::Dropped`] for a reader that did not read, which may ask
    /// again from the number after that. The run never waits for its readers.
    ///
    /// # Errors
    /// When the owner of the data directory is gone.
    ///
    /// [`Content::End`]: crate::events::Content::End
    /// [`Content::Dropped`]: crate::events::Content::Dropped
    pub async fn events(&self, run: &RunId, from: u64) -> fault::Result<impl Stream<Item = StreamLine> + use<>> {
        events::stream(&self.client, run, from).await
    }

    /// Waits until no process works on a run: it has ended, waits for a person or was paused. Returns its status.
    ///
    /// # Errors
    /// The error that interrupted the run.
    pub async fn wait(&self, run: &RunId) -> fault::Result<Status> {
        events::wait(&self.client, run).await?;
        self.status(run).await
    }

    /// The status of a run with its features.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn status(&self, run: &RunId) -> fault::Result<Status> {
        self.client.run_status(ShowRun { run: named(run) }).await
    }

    /// Releases the data directory. Runs that have not ended are continued by [`Self::resume`].
    pub async fn close(self) {
        self.client.close().await;
    }
}

fn named(run: &RunId) -> RunRef {
    RunRef::Named(run.to_string())
}
