//! The tree of a run and the branch that it commits to.
//!
//! A commit is an effect with a journal of its own: its date and its parent are noted before the branch
//! moves, so that the same commit is found or made again after a kill, never a second one.

use super::{Closing, End, Ended, Stage};
use crate::run::record::{RunRecord, put_best_effort};
use crate::wiring::{World, own_program};
use longhaul_core::Digest;
use longhaul_core::journal::{EffectClass, Finished, Journal, JournalError, NewCall, Next, Ticket};
use longhaul_core::store::Batch;
use longhaul_core::work::CheckReport;
use longhaul_harness::{Failure, Report, Work};
use longhaul_journal::{Opened, Recorder};
use longhaul_worktree::{
    Branch, CheckHost, CommitOrder, Committed, ExactCopy, NativeCheck, NativeError, Project, Tree, TreeCaps, TreeError,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes of the best effort that is kept of a failing feature.
const BEST_EFFORT_BYTES_MAX: u64 = 16 << 20;

/// The tree, the branch, and what runs checks on them.
pub struct Repository(Arc<Inner>);

struct Inner {
    world: Arc<World>,
    run: longhaul_core::RunId,
    project: Project,
    tree: Tree,
    branch: Branch,
    base: String,
    host: CheckHost,
}

/// What is noted before a commit leaves.
#[derive(Serialize, Deserialize)]
struct Prepared {
    parent: String,
    time_ms: u64,
}

/// What a commit answers.
#[derive(Clone, Serialize, Deserialize)]
struct Made {
    commit: Option<String>,
    files: Vec<String>,
}

impl Repository {
    /// Opens the repository, and makes the tree if it is not there.
    pub async fn open(world: &Arc<World>, record: &RunRecord) -> anyhow::Result<Self> {
        let (world, record) = (Arc::clone(world), record.clone());
        let inner = tokio::task::spawn_blocking(move || Inner::open(world, &record)).await??;
        Ok(Self(Arc::new(inner)))
    }

    /// How native checks are run on this tree.
    pub fn native(&self) -> Arc<Native> {
        Arc::new(Native(Arc::clone(&self.0)))
    }

    /// The files that changed, as an evaluator sees them.
    pub async fn evidence(&self, bytes_max: usize) -> anyhow::Result<Vec<(String, String)>> {
        self.blocking(move |inner| {
            let changes = inner.tree.changes(&inner.project, &inner.tip()?)?;
            inner.tree.evidence(&changes, bytes_max as u64)
        })
        .await
    }

    /// Names exactly what would be committed now.
    pub async fn subject(&self) -> anyhow::Result<Digest> {
        self.blocking(|inner| Ok(inner.tree.scan(&inner.project, &inner.tip()?)?.digest)).await
    }

    /// Keeps what there is as a blob, then restores the tree to the last commit.
    pub async fn discard(&self, feature: &str) -> anyhow::Result<Ended> {
        let kept =
            self.blocking(|inner| inner.tree.best_effort(&inner.project, &inner.tip()?, BEST_EFFORT_BYTES_MAX)).await?;
        let (batch, _) = put_best_effort(Batch::new(), &self.0.run, feature, kept);
        // Durable before the tree forgets it.
        self.0.world.store.commit(batch).await?;
        self.blocking(|inner| {
            inner.tree.discard(&inner.project, &inner.tip()?, &|point| inner.world.crash.reach(point))
        })
        .await?;
        Ok(Ended::of(End::Report(Report::Discarded)))
    }

    /// Commits exactly the files that changed.
    pub async fn commit(&self, stage: &Stage, work: &Work, message: &str) -> anyhow::Result<Ended> {
        let input = serde_json::to_vec(message)?;
        let began = stage.troupe.began("longhaul", "", Digest::of(b"longhaul"), "git.commit", &input);
        let limits = stage.config.limits.clone();
        let opened = Recorder::open(
            Arc::clone(&self.0.world.store),
            Arc::clone(&self.0.world.clock),
            stage.invocation(work),
            began,
            &limits,
        )?;
        let recorder = match opened {
            Opened::Running(recorder) => recorder,
            Opened::Finished { finished, .. } => {
                let made: Made = serde_json::from_str(&finished.result)?;
                return Ok(Ended::of(End::Report(Report::Committed { commit: made.commit, files: made.files })));
            }
        };
        // The name without the try: a second try of the same commit is the same effect.
        let effect = format!("{}/{}", self.0.run, work.name);
        let judged = crate::run::record::judged(&*self.0.world.store, &self.0.run, work.feature().unwrap_or_default())?;
        match self.commit_once(&recorder, message, &effect, judged).await {
            Ok(made) => Ok(committed(recorder, made, self.0.world.clock.now_ms())),
            Err(NotMade::Journal(JournalError::Parked(question))) => Ok(Ended::of(End::Parked(question))),
            Err(other) => Ok(Ended::of(End::Report(Report::Failed(Failure::Failed(other.to_string()))))),
        }
    }

    async fn commit_once(
        &self,
        recorder: &Recorder,
        message: &str,
        effect: &str,
        judged: Option<Digest>,
    ) -> Result<Made, NotMade> {
        let call = NewCall {
            name: "git.commit",
            summary: message.lines().next().unwrap_or_default().to_owned(),
            arguments: Digest::of(message.as_bytes()),
            class: EffectClass::Verifiable,
            fuel_used: 0,
        };
        let (ticket, prepared) = match recorder.ask(call).await? {
            Next::Answered(answer) => return Ok(serde_json::from_str(&answer)?),
            Next::Verify(ticket, prepared) => (ticket, serde_json::from_str(&prepared)?),
            Next::Go(ticket) => self.prepare(recorder, ticket).await?,
            Next::Happened(ticket, _) | Next::Skipped(ticket) => self.prepare(recorder, ticket).await?,
        };
        let made = self.make(message.to_owned(), effect.to_owned(), prepared, judged).await?;
        recorder.answer(ticket, serde_json::to_string(&made)?).await?;
        Ok(made)
    }

    async fn prepare(&self, recorder: &Recorder, ticket: Ticket) -> Result<(Ticket, Prepared), NotMade> {
        let parent = self.blocking(Inner::tip).await?;
        let prepared = Prepared { parent, time_ms: self.0.world.clock.now_ms() };
        recorder.prepared(&ticket, serde_json::to_string(&prepared)?).await?;
        Ok((ticket, prepared))
    }

    /// Makes the commit; one that was made before, by its trailer, is found instead, and tidied up after.
    async fn make(
        &self,
        message: String,
        effect: String,
        prepared: Prepared,
        judged: Option<Digest>,
    ) -> anyhow::Result<Made> {
        self.blocking(move |inner| {
            let order = CommitOrder {
                branch: &inner.branch,
                parent: &prepared.parent,
                message: &message,
                effect_id: &effect,
                time_ms: prepared.time_ms,
                expected: judged,
            };
            let made = inner.tree.commit(&inner.project, &order, &|point| inner.world.crash.reach(point))?;
            Ok(Made::from(made))
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, TreeError> + Send + 'static,
    ) -> anyhow::Result<T> {
        let inner = Arc::clone(&self.0);
        Ok(tokio::task::spawn_blocking(move || work(&inner)).await??)
    }
}

impl Inner {
    fn open(world: Arc<World>, record: &RunRecord) -> anyhow::Result<Self> {
        let project = Project::open(&record.directory)?;
        let branch = Branch::new(&record.branch)?;
        let start = project.tip(&branch)?.unwrap_or_else(|| record.base.clone());
        let directory = world.home.tree(&record.run);
        if let Some(trees) = directory.parent() {
            std::fs::create_dir_all(trees)?;
        }
        let hook = |point: &'static str| world.crash.reach(point);
        let checkout = Tree::checkout(&project, &directory, &start, &TreeCaps::default(), &hook)?;
        for note in &checkout.notes {
            tracing::info!("{note}");
        }
        let scratch = world.home.scratch();
        std::fs::create_dir_all(&scratch)?;
        let host = CheckHost {
            program: own_program()?,
            prefix_args: vec!["check-child".into()],
            scratch,
            hidden: vec![world.home.path().to_owned()],
        };
        let (run, base) = (record.run.clone(), record.base.clone());
        Ok(Self { world, run, project, tree: checkout.tree, branch, base, host })
    }

    /// The last commit of the branch, or where the run started.
    fn tip(&self) -> Result<String, TreeError> {
        Ok(self.project.tip(&self.branch)?.unwrap_or_else(|| self.base.clone()))
    }
}

/// Native checks on the tree of a run.
pub struct Native(Arc<Inner>);

impl Native {
    /// Runs one, with its test files as they were when the run started.
    pub async fn run(&self, name: &str, check: &NativeCheck) -> Result<CheckReport, NativeError> {
        let Inner { host, project, tree, base, .. } = &*self.0;
        let tip = self.0.tip().unwrap_or_else(|_| base.clone());
        let pins = longhaul_worktree::pins(project, base, name, check)?;
        Ok(longhaul_worktree::run_native(host, project, tree, &tip, name, check, &pins).await?.report)
    }
}

impl Native {
    /// A copy of exactly what would be committed: what is ignored, and what is too large, is not in it.
    pub async fn exact_copy(&self) -> Result<ExactCopy, NativeError> {
        let inner = Arc::clone(&self.0);
        let made = tokio::task::spawn_blocking(move || {
            let Inner { host, project, tree, base, .. } = &*inner;
            let tip = inner.tip().unwrap_or_else(|_| base.clone());
            ExactCopy::make(host, project, tree, &tip)
        });
        made.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }
}

/// Why a commit was not made.
#[derive(Debug, thiserror::Error)]
enum NotMade {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<Option<Committed>> for Made {
    fn from(made: Option<Committed>) -> Self {
        match made {
            Some(Committed { id, files, .. }) => Self { commit: Some(id), files },
            None => Self { commit: None, files: Vec::new() },
        }
    }
}

fn committed(recorder: Recorder, made: Made, at_ms: u64) -> Ended {
    let result = serde_json::to_string(&made).unwrap_or_default();
    let finished = Finished { result, fuel_used: 0, interrupted: false, at_ms };
    let report = Report::Committed { commit: made.commit, files: made.files };
    Ended { closing: Some(Closing { recorder, finished }), ..Ended::of(End::Report(report)) }
}
