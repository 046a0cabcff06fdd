//! The tree of a run as content of the store, for the other data directories that share it, and for forks.
//!
//! A row has the tree as it is now, where other data directories share the state; `[run] tree_history` keeps rows of
//! the tree as it was at each time before. After each effect that may have changed the tree it is compared with the commit that it began at. What is new goes
//! into the store: content before, and the row that names it in the transaction of the effect's answer. So whoever has
//! the answer has the files, too. A tree that cannot be read loses its row, since the former one would lack effects
//! that the journal has. Ignored files stay where they are. Refuses to write into a tree.

use crate::commit_carrier::{CommitCarrier, RIDING_BYTES_MAX};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::{Batch, Op, StoreError};
use longhaul_core::tool::EffectRows;
use longhaul_core::{Clock, Digest};
use longhaul_records::record::{self, CarriedTree, TimedTree, UncarriedFile};
use longhaul_worktree::{FileContent, LostFile, Tree, TreeContents, TreeError};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks at a tree that changes meanwhile, because other calls are at work in it.
const LOOKS_MAX: usize = 3;

/// Bytes of all content that is stored in one transaction with the answer of an effect; more goes before it.
const RIDING_TOGETHER_BYTES_MAX: usize = 4 << 20;

/// Bytes of all files by which a tree may differ from its commit, 1 GiB. A tree with more stays on its machine.
const TREE_BYTES_MAX: u64 = 1 << 30;

/// Files that a row names as left out.
const LOST_MAX: usize = 100;

/// One tree of a run. Clones share the order of their rows.
#[derive(Clone)]
pub struct TreeCarrier(Arc<Inner>);

struct Inner {
    commits: CommitCarrier,
    /// The number of the tree among those of the run.
    number: u32,
    tree: Tree,
    /// The clock by which former trees are kept; none: they are not.
    history: Option<Arc<dyn Clock>>,
    /// Held from a look at the tree until its row is stored.
    looking: Arc<tokio::sync::Mutex<()>>,
    stored: Mutex<StoredContent>,
}

/// The content that this process has stored.
#[derive(Default)]
struct StoredContent {
    known: HashSet<Digest>,
    /// Content that was to be stored with the row of this manifest, and is once that row is there.
    riding: Option<(Digest, HashSet<Digest>)>,
}

/// The rows of the tree before a look.
#[derive(Default)]
struct KnownTrees {
    /// The one for other data directories.
    carried: Option<CarriedTree>,
    /// The newest one of its history.
    past: Option<TimedTree>,
}

/// Content on its way into the store.
#[derive(Default)]
struct Pending {
    batch: Batch,
    bytes: usize,
    digests: HashSet<Digest>,
}

impl TreeCarrier {
    /// The carrier of one tree, which shares that of the run's commits. `history`: the clock by which former trees are
    /// kept.
    pub fn new(commits: CommitCarrier, number: u32, tree: Tree, history: Option<Arc<dyn Clock>>) -> Self {
        let (looking, stored) = Default::default();
        Self(Arc::new(Inner { commits, number, tree, history, looking, stored }))
    }

    /// The rows after an effect in the tree, which are stored with its answer. `with_commits`: it may have made a
    /// commit.
    ///
    /// # Errors
    /// When the store cannot be read, or is lost.
    pub async fn after_effect(&self, with_commits: bool) -> Result<EffectRows, StoreError> {
        let guard = Arc::clone(&self.0.looking).lock_owned().await;
        let batch = self.look_until_still(None).await?;
        let mut rows = EffectRows { batch, held: vec![Box::new(guard)] };
        if with_commits && self.is_shared() {
            let commits = self.0.commits.rows().await?;
            rows.batch.ops.extend(commits.batch.ops);
            rows.held.extend(commits.held);
        }
        Ok(rows)
    }

    /// The rows of a tree that no call is at work in, and whose session works from `base`.
    ///
    /// # Errors
    /// As [`TreeCarrier::after_effect`].
    pub async fn rows(&self, base: &str) -> Result<Batch, StoreError> {
        let _guard = self.0.looking.lock().await;
        self.look_until_still(Some(base)).await
    }

    async fn look_until_still(&self, base: Option<&str>) -> Result<Batch, StoreError> {
        let mut looks = 1;
        loop {
            match self.look(base.map(str::to_owned)).await {
                Ok(batch) => return Ok(batch),
                Err(failed) if looks < LOOKS_MAX && is_raced(&failed) => looks += 1,
                Err(failed) => return self.without_row(&failed),
            }
        }
    }

    /// Gives the row up after a look that failed, if that was not for the store.
    fn without_row(&self, failed: &Fault) -> Result<Batch, StoreError> {
        if let Some(error) = failed.downcast_ref::<StoreError>() {
            return Err(error.clone());
        }
        let (run, number) = (self.0.commits.run(), self.0.number);
        tracing::warn!(%run, number, "the tree cannot be kept in the store: {failed:#}");
        let store = &**self.0.commits.store();
        let mut batch = Batch::new();
        // One that cannot be read goes, too.
        if !matches!(record::carried_tree(store, run, number), Ok(None)) {
            record::forget_carried_tree(&mut batch, run, number);
        }
        let Some(clock) = &self.0.history else { return Ok(batch) };
        let at_ms = match record::newest_tree(store, run, number) {
            Ok(None | Some((_, None))) => return Ok(batch),
            Ok(Some((before_ms, Some(_)))) => clock.now_ms().max(before_ms),
            Err(_) => clock.now_ms(),
        };
        // Null is JSON.
        Ok(record::put_tree_past(batch, run, number, at_ms, None).unwrap_or_default())
    }

    async fn look(&self, base: Option<String>) -> fault::Result<Batch> {
        let (run, number) = (self.0.commits.run(), self.0.number);
        let TreeContents { base, root, files, bytes, manifests, contents, lost } = self.contents(base).await?;
        let mut row = CarriedTree::new(base, root, files, bytes);
        row.lost = named(lost);
        let known = self.known()?;
        self.stored().settle(known.newest());
        let carries = self.is_shared() && known.carried.as_ref() != Some(&row);
        let keeps = self.0.history.as_ref().filter(|_| known.past_tree() != Some(&row));
        if !carries && keeps.is_none() {
            return Ok(Batch::new());
        }
        let mut pending = Pending::default();
        for (digest, manifest) in manifests {
            self.add(&mut pending, digest, manifest).await?;
        }
        for file in contents {
            if self.stored().known.contains(&file.digest) {
                continue;
            }
            let (digest, content) = self.read(file).await?;
            self.add(&mut pending, digest, content).await?;
        }
        self.stored().riding = Some((root, pending.digests));
        let mut batch = pending.batch;
        if carries {
            batch = record::put_carried_tree(batch, run, number, &row)?;
        }
        if let Some(clock) = keeps {
            // A clock that was set back does not put a tree before an older one.
            let at_ms = clock.now_ms().max(known.past.as_ref().map_or(0, |(at_ms, _)| *at_ms));
            batch = record::put_tree_past(batch, run, number, at_ms, Some(&row))?;
        }
        Ok(batch)
    }

    /// The rows that are stored, as far as this tree has them.
    fn known(&self) -> fault::Result<KnownTrees> {
        let (store, run, number) = (&**self.0.commits.store(), self.0.commits.run(), self.0.number);
        let mut known = KnownTrees::default();
        if self.is_shared() {
            known.carried = record::carried_tree(store, run, number)?;
        }
        if self.0.history.is_some() {
            known.past = record::newest_tree(store, run, number)?;
        }
        Ok(known)
    }

    /// True where other data directories share the state.
    fn is_shared(&self) -> bool {
        self.0.commits.store().is_shared()
    }

    async fn contents(&self, base: Option<String>) -> fault::Result<TreeContents> {
        let (tree, project) = (self.0.tree.clone(), self.0.commits.project().clone());
        let look = move || -> fault::Result<TreeContents> {
            let Some(base) = base.or_else(|| tree.at()) else { bail!("nothing tells which commit it began at") };
            Ok(tree.contents(&project, &base)?)
        };
        let found = tokio::task::spawn_blocking(look).await??;
        if found.bytes > TREE_BYTES_MAX {
            bail!("it differs from its commit by {} bytes, and {TREE_BYTES_MAX} are carried at most", found.bytes);
        }
        Ok(found)
    }

    async fn read(&self, file: FileContent) -> fault::Result<(Digest, Vec<u8>)> {
        let tree = self.0.tree.clone();
        let digest = file.digest;
        let content = tokio::task::spawn_blocking(move || tree.read_content(&file)).await??;
        Ok((digest, content))
    }

    /// Adds content that is not stored yet. What does not ride with the answer is committed at once.
    async fn add(&self, pending: &mut Pending, digest: Digest, content: Vec<u8>) -> fault::Result<()> {
        if self.stored().known.contains(&digest) || pending.digests.contains(&digest) {
            return Ok(());
        }
        if content.len() > RIDING_BYTES_MAX {
            let mut before = Batch::new();
            before.push(Op::Blob(digest, content));
            self.0.commits.store_before(before).await?;
            self.stored().known.insert(digest);
            return Ok(());
        }
        pending.bytes = pending.bytes.saturating_add(content.len());
        pending.digests.insert(digest);
        pending.batch.push(Op::Blob(digest, content));
        if pending.bytes > RIDING_TOGETHER_BYTES_MAX {
            let Pending { batch, digests, .. } = std::mem::take(pending);
            self.0.commits.store_before(batch).await?;
            self.stored().known.extend(digests);
        }
        Ok(())
    }

    fn stored(&self) -> MutexGuard<'_, StoredContent> {
        self.0.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTrees {
    fn past_tree(&self) -> Option<&CarriedTree> {
        self.past.as_ref().and_then(|(_, tree)| tree.as_ref())
    }

    /// The row that was stored last.
    fn newest(&self) -> Option<&CarriedTree> {
        self.carried.as_ref().or_else(|| self.past_tree())
    }
}

impl StoredContent {
    /// Counts content as stored whose row was stored.
    fn settle(&mut self, kept: Option<&CarriedTree>) {
        if let Some((root, digests)) = self.riding.take()
            && kept.is_some_and(|kept| kept.root == root)
        {
            self.known.extend(digests);
        }
    }
}

/// True when a file changed or went while it was read, because another call is at work.
fn is_raced(failed: &Fault) -> bool {
    failed.downcast_ref::<TreeError>().is_some_and(|error| match error {
        TreeError::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        error => error.is_retryable(),
    })
}

/// The files that are left out, as far as a row names them.
fn named(lost: Vec<LostFile>) -> Vec<UncarriedFile> {
    let more = lost.len().saturating_sub(LOST_MAX);
    let files = lost.into_iter().take(LOST_MAX).map(|LostFile { path, why }| UncarriedFile { path, why });
    let rest = (more > 0).then(|| UncarriedFile { path: "...".to_owned(), why: format!("{more} more files") });
    files.chain(rest).collect()
}

#[cfg(test)]
mod tests;
