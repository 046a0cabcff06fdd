//! The tree of a run and the branch that it commits to.
//!
//! A commit is an effect with a journal of its own. Its date and its parent are noted before the branch moves, so that
//! after a kill the same commit is found or made again, and never a second one.

use super::ending::{Closing, EndedWork, WorkEnd, stuck};
use super::invocation_context::began;
use super::{protected, survey};
use crate::carried;
use longhaul_config::Config;
use longhaul_config::protect;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Fault};
use longhaul_core::journal::{CallVerdict, EffectClass, EntryHandle, Finished, Journal, JournalError, NewCall};
use longhaul_core::store::{Batch, StoreError};
use longhaul_core::tool::EffectRows;
use longhaul_core::work::CheckReport;
use longhaul_core::{Digest, InvocationId};
use longhaul_harness::{Work, WorkFailure, WorkReport};
use longhaul_journal::{Opened, Recorder};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::approvals;
use longhaul_records::record::{self, RunRecord, put_best_effort};
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_toolbox::commit_carrier::CommitCarrier;
use longhaul_toolbox::discarded_changes::DiscardedChanges;
use longhaul_toolbox::tool_set::TreeWatch;
use longhaul_toolbox::tree_carrier::TreeCarrier;
use longhaul_worktree::{
    Branch, CommitOrder, Committed, ExactCopy, Logged, Merge, NativeCheck, NativeError, Protected, ProtectedChange,
    Tree, TreeCaps, TreeError, UserRepository, runner_file,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a patch of protected files that a person sees.
const PATCH_BYTES_MAX: usize = 16 << 10;

/// Bytes that are kept of a failing feature's best effort.
const BEST_EFFORT_BYTES_MAX: u64 = 16 << 20;

/// The tree, the branch, and the executor of checks on them.
pub struct Repository(Arc<Inner>);

struct Inner {
    host: Arc<PluginHost>,
    run: longhaul_core::RunId,
    project: UserRepository,
    /// The number of the tree among those of the run.
    number: u32,
    tree: Tree,
    branch: Branch,
    base: String,
    /// Stores the commits for other machines; none where no other data directory shares the state.
    commits: Option<CommitCarrier>,
    /// Stores the tree, for those or for forks.
    carrier: Option<TreeCarrier>,
    sandbox: SandboxHost,
    /// Checks that ran with less than the full sandbox since the last query, with their level.
    held_by_less: Mutex<BTreeMap<String, Level>>,
}

/// The facts that are noted before a commit is made.
#[derive(Serialize, Deserialize)]
struct Prepared {
    parent: String,
    time_ms: u64,
}

/// A commit to make.
struct Order<'a> {
    feature: &'a str,
    message: &'a str,
    effect: &'a str,
    base: &'a str,
    judged: Option<Digest>,
    protected: Protected,
}

/// The answer of a commit.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Made {
    commit: Option<String>,
    files: Vec<String>,
    /// The branch had moved since the work started, so there is no commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    moved: bool,
    /// Notes for the feature's people, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The protected files that a person approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<String>,
    /// The reason why a person refused, a sentence for each file. There is no commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

impl Made {
    fn ended(self, feature: &str) -> EndedWork {
        let warning = |note: &String| Event::Warning { text: format!("`{feature}`: {note}") };
        // The branch has moved, so there will be another commit, which reports the notes.
        let heard = if self.moved { Vec::new() } else { self.notes.iter().map(warning).collect() };
        EndedWork { heard, ..EndedWork::of(WorkEnd::Report(self.report())) }
    }

    fn report(self) -> WorkReport {
        match (self.moved, self.refused.is_empty()) {
            (_, false) => WorkReport::Unfit { files: self.refused },
            (true, true) => WorkReport::Moved,
            (false, true) => {
                WorkReport::Committed { commit: self.commit, files: self.files, protected: self.protected }
            }
        }
    }
}

impl Repository {
    /// Opens the repository, and makes the tree of that number if it does not exist.
    pub async fn open(
        host: &Arc<PluginHost>,
        record: &RunRecord,
        sandbox_min: Level,
        number: u32,
        commits: Option<CommitCarrier>,
    ) -> fault::Result<Self> {
        let (host, record) = (Arc::clone(host), record.clone());
        let open = move || Inner::open(host, &record, sandbox_min, number, commits);
        Ok(Self(Arc::new(tokio::task::spawn_blocking(open).await??)))
    }

    /// Checks that ran with less than the full sandbox since the last query, with their level.
    pub fn held_by_less(&self) -> BTreeMap<String, Level> {
        std::mem::take(&mut *self.0.held_by_less())
    }

    /// The native checks on this tree, whose work started from `base`.
    pub fn native(&self, base: Option<&str>) -> Arc<NativeChecks> {
        Arc::new(NativeChecks { inner: Arc::clone(&self.0), base: base.map(str::to_owned) })
    }

    /// Brings the tree to the branch's tip. Returns the tip, and the files that both a person changed in the tree and
    /// the branch changed: they now have the branch's content.
    pub async fn prepare(&self) -> fault::Result<(String, Vec<String>)> {
        self.blocking(|inner| {
            let tip = inner.tip()?;
            let lost = inner.tree.bring_to(&inner.project, &tip, &|point| inner.host.crash.reach(point))?;
            Ok((tip, lost))
        })
        .await
    }

    /// Merges the branch's commits since `base` into the tree.
    pub async fn merge(&self, base: &str) -> fault::Result<EndedWork> {
        let from = base.to_owned();
        let report = self
            .blocking(move |inner| {
                let tip = inner.tip()?;
                let hook = |point| inner.host.crash.reach(point);
                Ok(match inner.tree.merge(&inner.project, &from, &tip, &hook)? {
                    Merge::Done => WorkReport::Merged { base: tip },
                    Merge::Conflict { files } => WorkReport::Conflicted { files },
                })
            })
            .await?;
        let batch = match &report {
            WorkReport::Merged { base } => self.carried(base).await?,
            // The tree is as it was.
            _ => Batch::new(),
        };
        Ok(EndedWork { batch, ..EndedWork::of(WorkEnd::Report(report)) })
    }

    /// The rows of the tree, whose session works from `base`; none where neither another machine nor a fork needs it.
    pub async fn carried(&self, base: &str) -> fault::Result<Batch> {
        match &self.0.carrier {
            Some(carrier) => Ok(carrier.rows(base).await?),
            None => Ok(Batch::new()),
        }
    }

    /// Deletes the row of the tree with the end of its session, after which all that it has is in a commit.
    fn without_row(&self, mut ended: EndedWork) -> EndedWork {
        use WorkReport::{Committed, Discarded};
        let is_over = matches!(ended.end, WorkEnd::Report(Committed { .. } | Discarded));
        if is_over && self.0.commits.is_some() {
            record::forget_carried_tree(&mut ended.batch, &self.0.run, self.0.number);
        }
        ended
    }

    /// The files that changed since `base`, as an evaluator sees them.
    pub async fn evidence(&self, base: &str, bytes_max: usize) -> fault::Result<Vec<(String, String)>> {
        let base = base.to_owned();
        self.blocking(move |inner| {
            let changes = inner.tree.changes(&inner.project, &base)?;
            inner.tree.evidence(&changes, bytes_max as u64)
        })
        .await
    }

    /// Changed files of a test runner since `base`, each with its possible effect on a verdict.
    pub async fn runner_files(&self, base: &str) -> fault::Result<Vec<(String, &'static str)>> {
        let base = base.to_owned();
        self.blocking(move |inner| {
            let changes = inner.tree.changes(&inner.project, &base)?;
            let of_runner = |path: String| runner_file(&path).map(|file| file.why).map(|why| (path, why));
            Ok(changes.into_iter().filter_map(|change| of_runner(change.path)).collect())
        })
        .await
    }

    /// True when a commit on `base` would hold anything, or there are changes that no commit could hold.
    pub async fn is_changed(&self, base: &str) -> fault::Result<bool> {
        let base = base.to_owned();
        self.blocking(move |inner| match inner.tree.scan(&inner.project, &base) {
            Ok(scan) => Ok(!scan.changes.is_empty() || !scan.left_out.is_empty()),
            Err(error) if error.is_of_the_work() => Ok(true),
            Err(error) => Err(error),
        })
        .await
    }

    /// The digest of exactly what would be committed on `base` now, or a remedy for each file that no commit could
    /// hold.
    pub async fn subject(&self, base: &str) -> fault::Result<Result<Digest, Vec<String>>> {
        let base = base.to_owned();
        self.blocking(move |inner| match inner.tree.scan(&inner.project, &base) {
            Ok(scan) if scan.left_out.is_empty() => Ok(Ok(scan.digest)),
            Ok(scan) => Ok(Err(scan.left_out.iter().map(ToString::to_string).collect())),
            Err(error) if error.is_of_the_work() => Ok(Err(vec![error.to_string()])),
            Err(error) => Err(error),
        })
        .await
    }

    /// The tracker of what tool calls write into the tree.
    pub fn unkept(&self) -> DiscardedChanges {
        let Inner { host, run, project, tree, .. } = &*self.0;
        DiscardedChanges::new(Arc::clone(&host.store), run, project.clone(), tree.clone())
    }

    /// The watch over the tree.
    pub fn watch(&self) -> TreeWatch {
        TreeWatch { unkept: self.unkept(), carrier: self.0.carrier.clone() }
    }

    /// The last commit of the branch, or where the run started.
    pub async fn tip(&self) -> fault::Result<String> {
        self.blocking(Inner::tip).await
    }

    /// The newest commits of the run's branch, newest first.
    pub async fn log(&self, limit: usize) -> fault::Result<Vec<Logged>> {
        self.blocking(move |inner| inner.project.log(&inner.branch, &inner.base, limit)).await
    }

    /// The map of the tree for a planner or an agent; see [`survey`].
    pub async fn survey(&self, words: String, window_tokens: Option<u32>) -> fault::Result<serde_json::Value> {
        self.blocking(move |inner| {
            let recent = inner.project.changed_lately(&inner.tip()?, survey::RECENT_MAX)?;
            survey::survey(
                &inner.project,
                &inner.tree,
                &survey::SurveyPurpose { words: &words, recent: &recent, window_tokens },
            )
        })
        .await
    }

    /// Keeps the changes since `base` as a blob, then restores the tree to the branch's tip.
    pub async fn discard(&self, feature: &str, base: &str) -> fault::Result<EndedWork> {
        let base = base.to_owned();
        let kept =
            self.blocking(move |inner| inner.tree.best_effort(&inner.project, &base, BEST_EFFORT_BYTES_MAX)).await?;
        let (batch, _) = put_best_effort(Batch::new(), &self.0.run, feature, kept);
        // The blob is durable before the tree loses the changes.
        self.0.host.store.commit(batch).await?;
        self.blocking(|inner| {
            inner.tree.discard(&inner.project, &inner.tip()?, &|point| inner.host.crash.reach(point))
        })
        .await?;
        Ok(self.without_row(EndedWork::of(WorkEnd::Report(WorkReport::Discarded))))
    }

    /// Commits exactly the files that changed since `base`.
    pub async fn commit(&self, config: &Config, work: &Work, message: &str, base: &str) -> fault::Result<EndedWork> {
        let input = serde_json::to_vec(message)?;
        let began = began(&self.0.host, "longhaul", "", Digest::of(b"longhaul"), protected::COMMIT, &input);
        let invocation = InvocationId::of_action(&self.0.run, &work.key());
        let opened = Recorder::open(
            Arc::clone(&self.0.host.store),
            Arc::clone(&self.0.host.clock),
            invocation.clone(),
            began,
            &config.limits,
        )?;
        let recorder = match opened {
            Opened::Running(recorder) => recorder,
            Opened::Finished { finished, .. } => {
                let made: Made = serde_json::from_str(&finished.result)?;
                return Ok(self.without_row(made.ended(work.feature().unwrap_or_default())));
            }
        };
        // The name without the attempt: a second attempt at the same commit is the same effect.
        let effect = format!("{}/{}", self.0.run, work.name);
        let judged = record::judged(&*self.0.host.store, &self.0.run, work.feature().unwrap_or_default())?;
        let feature = work.feature().unwrap_or_default();
        let protected = protect::protected(config, self.0.project.root());
        let order = Order { feature, message, effect: &effect, base, judged, protected };
        let ended = match self.commit_once(&recorder, &order).await {
            Ok(made) => self.without_row(committed(recorder, made, feature, self.0.host.clock.now_ms())),
            // After an error of the store the commit may be made: done again, the work finds it.
            Err(NotMade::Journal(error @ (JournalError::Parked(_) | JournalError::Store(_)))) => {
                EndedWork::of(stuck(error))
            }
            Err(other) => EndedWork::of(WorkEnd::Report(WorkReport::Failed(WorkFailure::Failed(other.to_string())))),
        };
        let (asked, batch) = approvals::tell(&*self.0.host.store, &invocation, ended.batch)?;
        Ok(EndedWork { heard: [ended.heard, asked].concat(), batch, ..ended })
    }

    async fn commit_once(&self, recorder: &Recorder, order: &Order<'_>) -> Result<Made, NotMade> {
        let message = order.message;
        let (protected, refused) = self.protected(recorder, order).await?;
        if !refused.is_empty() {
            return Ok(Made { refused, ..Made::default() });
        }
        let call = NewCall {
            name: protected::COMMIT,
            summary: message.lines().next().unwrap_or_default().to_owned(),
            arguments: Digest::of(message.as_bytes()),
            class: EffectClass::Verifiable,
            fuel_used: 0,
        };
        let (handle, prepared) = match recorder.ask(call).await? {
            CallVerdict::Answered(answer) => return Ok(serde_json::from_str(&answer)?),
            CallVerdict::Verify(handle, prepared) => (handle, serde_json::from_str(&prepared)?),
            CallVerdict::Go(handle) | CallVerdict::Happened(handle, _) | CallVerdict::Skipped(handle) => {
                self.note_commit(recorder, handle, order.base).await?
            }
        };
        let mut made = Made { protected, ..self.make(order, prepared).await? };
        made.notes.extend(self.unkept().still().await?.iter().map(|file| format!("not in the commit: {file}")));
        let EffectRows { batch, held: _until_stored } = self.commit_rows().await?;
        recorder.answer_with(handle, serde_json::to_string(&made)?, batch).await?;
        Ok(made)
    }

    async fn commit_rows(&self) -> fault::Result<EffectRows> {
        match &self.0.commits {
            Some(commits) => Ok(commits.rows().await?),
            None => Ok(EffectRows::default()),
        }
    }

    /// The protected files in the commit that a person approved, and the text for the agent after a refusal.
    async fn protected(&self, recorder: &Recorder, order: &Order<'_>) -> Result<(Vec<String>, Vec<String>), NotMade> {
        let (files, tree, patch) = self.protected_changes(order).await?;
        let paths = files.iter().map(|file| file.path.clone()).collect();
        if files.is_empty() || protected::is_past(recorder) {
            return Ok((paths, Vec::new()));
        }
        let change = protected::ProtectedCommit { feature: order.feature, files: &files, patch, tree };
        Ok((paths, protected::refusals(&self.0.host, recorder, &change).await??))
    }

    async fn protected_changes(&self, order: &Order<'_>) -> fault::Result<(Vec<ProtectedChange>, Digest, String)> {
        let inner = Arc::clone(&self.0);
        let (base, rules) = (order.base.to_owned(), order.protected.clone());
        let look = move || -> Result<_, TreeError> {
            let (scan, files) = inner.tree.protected(&inner.project, &base, &rules)?;
            let mut patch = String::new();
            for file in &files {
                let left = PATCH_BYTES_MAX.saturating_sub(patch.len());
                let shown = inner.tree.patch(&inner.project, &base, &file.path, left)?;
                patch.push_str(&shown.text);
                if shown.files_left_out > 0 {
                    patch.push_str(&format!(
                        "{} is too long to be shown; it is in {}\n",
                        file.path,
                        inner.tree.dir().display()
                    ));
                }
            }
            Ok((files, scan.digest, patch))
        };
        Ok(tokio::task::spawn_blocking(look).await??)
    }

    async fn note_commit(
        &self,
        recorder: &Recorder,
        handle: EntryHandle,
        base: &str,
    ) -> Result<(EntryHandle, Prepared), NotMade> {
        let prepared = Prepared { parent: base.to_owned(), time_ms: self.0.host.clock.now_ms() };
        recorder.prepared(&handle, serde_json::to_string(&prepared)?).await?;
        Ok((handle, prepared))
    }

    /// Makes the commit. A commit that was made before is found by its trailer instead, and its leftovers are removed.
    /// A branch that has moved meanwhile stays where it is.
    async fn make(&self, order: &Order<'_>, prepared: Prepared) -> fault::Result<Made> {
        let (message, effect, expected) = (order.message.to_owned(), order.effect.to_owned(), order.judged);
        self.blocking(move |inner| {
            let order = CommitOrder {
                branch: &inner.branch,
                parent: &prepared.parent,
                message: &message,
                effect_id: &effect,
                time_ms: prepared.time_ms,
                expected,
            };
            match inner.tree.commit(&inner.project, &order, &|point| inner.host.crash.reach(point)) {
                Err(TreeError::BranchMoved { .. }) => Ok(Made { moved: true, ..Made::default() }),
                made => Ok(Made::from(made?)),
            }
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, TreeError> + Send + 'static,
    ) -> fault::Result<T> {
        let inner = Arc::clone(&self.0);
        Ok(tokio::task::spawn_blocking(move || work(&inner)).await??)
    }
}

impl Inner {
    fn open(
        host: Arc<PluginHost>,
        record: &RunRecord,
        sandbox_min: Level,
        number: u32,
        commits: Option<CommitCarrier>,
    ) -> fault::Result<Self> {
        let directory = host.home.tree_of(&record.run, number);
        let project = UserRepository::open(&record.directory)?;
        let branch = Branch::new(&record.branch)?;
        let start = project.end_of(&branch, &record.base)?;
        if let Some(trees) = directory.parent() {
            std::fs::create_dir_all(trees)?;
        }
        let hook = |point: &'static str| host.crash.reach(point);
        let checkout = Tree::checkout(&project, &directory, &start, &TreeCaps::default(), &hook)?;
        for note in &checkout.notes {
            tracing::info!("{note}");
        }
        let sandbox = host.check_host(sandbox_min, project.root())?;
        let (run, base) = (record.run.clone(), record.base.clone());
        let (tree, held_by_less) = (checkout.tree, Mutex::default());
        let carrier = carried::tree_carrier(&host, record, commits.as_ref(), number, tree.clone())?;
        Ok(Self { host, run, project, number, tree, branch, base, commits, carrier, sandbox, held_by_less })
    }

    fn held_by_less(&self) -> MutexGuard<'_, BTreeMap<String, Level>> {
        self.held_by_less.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the sandbox level of a check; of several runs the lowest counts.
    fn note_level(&self, check: &str, level: Level) {
        if level < Level::Full {
            let mut held = self.held_by_less();
            let least = held.entry(check.to_owned()).or_insert(level);
            *least = level.min(*least);
        }
    }

    /// The last commit of the branch, or where the run started.
    fn tip(&self) -> Result<String, TreeError> {
        self.project.end_of(&self.branch, &self.base)
    }
}

/// Native checks on one tree of a run.
pub struct NativeChecks {
    inner: Arc<Inner>,
    /// The commit where the work in the tree started; none: the branch's tip.
    base: Option<String>,
}

impl NativeChecks {
    /// Runs one check, with its test files as of the start of the run.
    pub async fn run(&self, name: &str, check: &NativeCheck) -> Result<CheckReport, NativeError> {
        let Inner { sandbox, project, tree, base, .. } = &*self.inner;
        let parent = self.parent();
        let pins = longhaul_worktree::pins(project, base, name, check)?;
        let done = longhaul_worktree::run_native(sandbox, project, tree, &parent, name, check, &pins).await?;
        self.inner.note_level(name, done.sandbox);
        Ok(done.report)
    }
}

impl NativeChecks {
    /// A copy of exactly what would be committed: without ignored files, and without files that are too large.
    pub async fn exact_copy(&self) -> Result<ExactCopy, NativeError> {
        let (inner, parent) = (Arc::clone(&self.inner), self.parent());
        let made = tokio::task::spawn_blocking(move || {
            let Inner { sandbox, project, tree, .. } = &*inner;
            ExactCopy::make(sandbox, project, tree, &parent)
        });
        made.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    fn parent(&self) -> String {
        let tip = || self.inner.tip().unwrap_or_else(|_| self.inner.base.clone());
        self.base.clone().unwrap_or_else(tip)
    }
}

/// The reason why a commit was not made.
#[derive(Debug, thiserror::Error)]
enum NotMade {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0:#}")]
    Other(Fault),
}

impl From<Fault> for NotMade {
    fn from(fault: Fault) -> Self {
        match fault.downcast_ref::<StoreError>().cloned() {
            Some(error) => Self::Journal(JournalError::Store(error)),
            None => Self::Other(fault),
        }
    }
}

impl From<Option<Committed>> for Made {
    fn from(made: Option<Committed>) -> Self {
        match made {
            Some(Committed { id, files, notes }) => Self { commit: Some(id), files, notes, ..Self::default() },
            None => Self::default(),
        }
    }
}

fn committed(recorder: Recorder, made: Made, feature: &str, at_ms: u64) -> EndedWork {
    let result = serde_json::to_string(&made).unwrap_or_default();
    let finished = Finished { result, fuel_used: 0, interrupted: false, at_ms };
    EndedWork { closing: Some(Closing { recorder, finished }), ..made.ended(feature) }
}
