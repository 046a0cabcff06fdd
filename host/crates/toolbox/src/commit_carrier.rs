//! The commits of a run as packs in the store, for the other data directories that share it.
//!
//! The first pack has the commit that the run began from, with a part of the history before it, as far as that is not
//! too much; each later one has what a commit, a checkpoint or a revert of the run added. A pack that is too large is
//! left out: whoever goes on with the run then needs a clone that has its commits. Refuses to move a ref.

use longhaul_core::fault::{self, Fault};
use longhaul_core::store::{Batch, Store, StoreError};
use longhaul_core::tool::EffectRows;
use longhaul_core::{Digest, RunId};
use longhaul_records::record::{self, CarriedCommits, RunRecord};
use longhaul_worktree::{Branch, TreeError, UserRepository};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Commits before the one that a run began from, in its first pack: a clone may be so far behind.
const HISTORY_MAX: usize = 100;

/// Bytes of the objects of one pack before their compression, 64 MiB. They are in memory while the pack is made.
const PACK_BYTES_MAX: u64 = 64 << 20;

/// Bytes of content that is stored in one transaction with the row that names it, 256 KiB; larger content goes before
/// it, so that a store which does not take it does not refuse the answer of an effect, too.
pub(crate) const RIDING_BYTES_MAX: usize = 256 << 10;

/// The commits of one run. Clones share the order of their rows.
#[derive(Clone)]
pub struct CommitCarrier(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    run: RunId,
    base: String,
    project: UserRepository,
    branch: Branch,
    /// Held from a look at the refs until their row is stored.
    looking: Arc<Mutex<()>>,
}

impl CommitCarrier {
    /// The carrier of a run that has a branch.
    ///
    /// # Errors
    /// When its repository cannot be opened.
    pub fn open(store: Arc<dyn Store>, record: &RunRecord) -> fault::Result<Self> {
        let (project, branch) = (UserRepository::open(&record.directory)?, Branch::new(&record.branch)?);
        let (run, base) = (record.run.clone(), record.base.clone());
        Ok(Self(Arc::new(Inner { store, run, base, project, branch, looking: Arc::default() })))
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(crate) fn project(&self) -> &UserRepository {
        &self.0.project
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.0.run
    }

    /// The rows of the commits and refs as they are; none where the stored ones tell the same. Commits that cannot be
    /// packed, or whose pack the store does not take, lose their row, since the former one would lack some that the
    /// journal has.
    ///
    /// # Errors
    /// When the store cannot be read, or is lost.
    pub async fn rows(&self) -> Result<EffectRows, StoreError> {
        let guard = Arc::clone(&self.0.looking).lock_owned().await;
        let batch = match self.look().await {
            Ok(batch) => batch,
            Err(failed) => self.without_row(&failed)?,
        };
        Ok(EffectRows { batch, held: vec![Box::new(guard)] })
    }

    async fn look(&self) -> fault::Result<Batch> {
        let Inner { store, run, .. } = &*self.0;
        let kept = record::carried_commits(&**store, run)?;
        let inner = Arc::clone(&self.0);
        let newer = tokio::task::spawn_blocking(move || inner.newer(kept)).await??;
        let Some((mut row, pack)) = newer else { return Ok(Batch::new()) };
        let mut batch = Batch::new();
        if let Some(pack) = pack {
            row.packs.push(self.keep(&mut batch, pack).await?);
        }
        record::put_carried_commits(batch, run, &row)
    }

    /// Gives the row up after a look that failed, if that was not for the store.
    fn without_row(&self, failed: &Fault) -> Result<Batch, StoreError> {
        if let Some(error) = failed.downcast_ref::<StoreError>() {
            return Err(error.clone());
        }
        let Inner { store, run, .. } = &*self.0;
        tracing::warn!(%run, "the commits cannot be carried to another machine: {failed:#}");
        let mut batch = Batch::new();
        // One that cannot be read goes, too.
        if !matches!(record::carried_commits(&**store, run), Ok(None)) {
            record::forget_carried_commits(&mut batch, run);
        }
        Ok(batch)
    }

    async fn keep(&self, batch: &mut Batch, pack: Vec<u8>) -> fault::Result<Digest> {
        if pack.len() <= RIDING_BYTES_MAX {
            return Ok(batch.blob(pack));
        }
        let mut before = Batch::new();
        let digest = before.blob(pack);
        self.store_before(before).await?;
        Ok(digest)
    }

    /// Stores content before the row that names it. Content that the store does not take gives up the row, never the
    /// answer of the effect; an error of the store is returned only if the store is lost.
    pub(crate) async fn store_before(&self, content: Batch) -> fault::Result<()> {
        match self.0.store.commit(content).await {
            Err(error @ StoreError::Fenced { .. }) => Err(error.into()),
            Err(error) => Err(Fault::msg(format!("the store does not take what it has: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}

/// A row, and the pack that has to be added to it.
type NewerCommits = (CarriedCommits, Option<Vec<u8>>);

impl Inner {
    /// The row with the present refs, if it differs from the stored one, and the pack of what they have more.
    fn newer(&self, kept: Option<CarriedCommits>) -> Result<Option<NewerCommits>, TreeError> {
        let refs = self.project.refs_of_run(&self.branch, self.run.as_str())?;
        let Some(mut kept) = kept else {
            let pack = self.first_pack(&refs)?;
            return Ok(Some((CarriedCommits::new(self.base.clone(), refs), pack)));
        };
        if kept.refs == refs {
            return Ok(None);
        }
        let known: Vec<String> = kept.refs.values().chain([&kept.base]).cloned().collect();
        let tips: Vec<String> = refs.values().filter(|tip| !known.contains(tip)).cloned().collect();
        let hidden: Vec<String> = known.into_iter().filter(|commit| self.project.has_commit(commit)).collect();
        let pack = if tips.is_empty() { None } else { self.pack(&tips, &hidden)? };
        kept.refs = refs;
        Ok(Some((kept, pack)))
    }

    /// The base with the history before it and the commits after it; where that is too much, the commits after it.
    fn first_pack(&self, refs: &BTreeMap<String, String>) -> Result<Option<Vec<u8>>, TreeError> {
        let tips: Vec<String> = refs.values().chain([&self.base]).cloned().collect();
        let history = self.project.log_from(&self.branch, &self.base, HISTORY_MAX + 1)?;
        let beyond = history.get(HISTORY_MAX).map(|logged| logged.commit.clone());
        if let Some(pack) = self.pack(&tips, beyond.as_slice())? {
            return Ok(Some(pack));
        }
        let after: Vec<String> = tips.into_iter().filter(|tip| *tip != self.base).collect();
        if after.is_empty() { Ok(None) } else { self.pack(&after, std::slice::from_ref(&self.base)) }
    }

    fn pack(&self, tips: &[String], hidden: &[String]) -> Result<Option<Vec<u8>>, TreeError> {
        if !self.project.fits(tips, hidden, PACK_BYTES_MAX)? {
            let run = &self.run;
            tracing::info!(%run, "commits of more than {PACK_BYTES_MAX} bytes stay in the repository of this machine");
            return Ok(None);
        }
        self.project.pack(tips, hidden).map(Some)
    }
}
