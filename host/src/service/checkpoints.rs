//! Checkpoints: listed, exported, saved, imported.

use super::Service;
use super::keyed_lock::{self, KeyedLockGuard};
use crate::audit::AuditEvent;
use crate::checkpoint::{self, CheckpointKey, SharedServer, Snapshot, SnapshotStore, restore, take};
use crate::config::Config;
use crate::signing::{self, AcceptedRisks, SigningKey};
use longhaul_api::answer::Answer;
use longhaul_api::checkpoints::{Checkpoint, CheckpointRequest, SavedSnapshot};
use longhaul_api::runs::RunRef;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_records::record;
use serde_json::Value;
use std::path::Path;

impl Service {
    pub(super) async fn checkpoints(&self, wanted: CheckpointRequest) -> fault::Result<Answer> {
        let shelf = SnapshotStore::new(&*self.host.store, &*self.host.clock);
        match wanted {
            CheckpointRequest::List { run, every } => {
                let record = self.find(&run)?.record;
                let config = record.config_now()?;
                let every = |table: &str| every.unwrap_or_else(|| config.checkpoint_every(table));
                let checkpoints = checkpoint::list(&*self.host.store, &record.run, every)?;
                listed(checkpoints, shelf.list()?, Vec::new())
            }
            CheckpointRequest::ListShared { directory } => {
                listed(Vec::new(), Vec::new(), self.shared(&directory)?.list().await?)
            }
            CheckpointRequest::Show { key } => document(&self.snapshot(&key)?),
            CheckpointRequest::Export { key } => {
                self.refuse_working(&key)?;
                document(&self.signed(&key)?)
            }
            CheckpointRequest::Save { key, name, ttl_s } => {
                self.refuse_working(&key)?;
                let bytes = self.signed(&key)?.write()?;
                let saved = shelf.save(&name, bytes, ttl_s.saturating_mul(1_000)).await?;
                listed(Vec::new(), vec![saved], Vec::new())
            }
            CheckpointRequest::Saved { name } => {
                let missing = || format!("nothing is saved as `{name}`; `longhaul checkpoint list` shows what is");
                document(&Snapshot::read(&shelf.read(&name)?.or_unknown(missing)?)?)
            }
            CheckpointRequest::Import { snapshot, directory, replace, accepts } => {
                self.import(snapshot, &directory, replace, &accepts).await
            }
            CheckpointRequest::TakeOver { key, directory, replace, accepts } => {
                // Held over the lease too: it is given back at the end, and must not be that of work begun meanwhile.
                let run = RunId::from_text(key.clone());
                let _alone = self.alone_with(&run, &directory).await?;
                let _begins = self.locks.begin(&run);
                self.refuse_active(&run)?;
                let import = async |snapshot: Snapshot| self.admitted(snapshot, &directory, replace, &accepts).await;
                self.shared(&directory)?.take_over(&key, import).await
            }
        }
    }

    /// Rows and files that change while they are read would not fit each other.
    fn refuse_working(&self, key: &str) -> fault::Result<()> {
        let run = self.find(&RunRef::Named(CheckpointKey::parse(key).run))?.record.run;
        if self.handle(&run).is_some() {
            bail!(Fault::conflict(format!("run {run} is worked on; pause it first: `longhaul pause {run}`")));
        }
        Ok(())
    }

    fn refuse_active(&self, run: &RunId) -> fault::Result<()> {
        if self.handle(run).is_some() {
            bail!(Fault::conflict(format!("run {run} is worked on here; pause it first: `longhaul pause {run}`")));
        }
        Ok(())
    }

    fn snapshot(&self, key: &str) -> fault::Result<Snapshot> {
        let key = CheckpointKey::parse(key);
        let stored = self.find(&RunRef::Named(key.run.clone()))?;
        take(&self.host, &stored, &key)
    }

    fn signed(&self, key: &str) -> fault::Result<Snapshot> {
        self.snapshot(key)?.sign(&SigningKey::of(&self.host.home)?)
    }

    async fn import(
        &self,
        document: Value,
        directory: &Path,
        replace: bool,
        accepts: &AcceptedRisks,
    ) -> fault::Result<Answer> {
        let snapshot: Snapshot = serde_json::from_value(document).or_invalid(|| "this is no checkpoint of longhaul")?;
        let _alone = self.alone_with(&snapshot.run, directory).await?;
        let _begins = self.locks.begin(&snapshot.run);
        self.refuse_active(&snapshot.run)?;
        self.admitted(snapshot, directory, replace, accepts).await
    }

    /// Puts a snapshot here whose signer is known, or was named.
    async fn admitted(
        &self,
        mut snapshot: Snapshot,
        directory: &Path,
        replace: bool,
        accepts: &AcceptedRisks,
    ) -> fault::Result<Answer> {
        let (signed, bytes) = snapshot.take_signature()?;
        let signer = signing::admit(&self.host.home, "the checkpoint", signed.as_ref(), &bytes, accepts)?;
        let claimed = self.claimed(&directory.canonicalize()?, &Config::read(directory)?).await?;
        restore(&self.host, &snapshot, directory, &claimed.id, replace).await?;
        signing::remember(&self.host.home, &signer)?;
        let powers = snapshot.powers()?.iter().filter(|power| !power.is_plain).map(ToString::to_string).collect();
        let (run, directory, signer) = (snapshot.run, directory.to_owned(), signer.to_string());
        self.host.audit.note(AuditEvent::Imported { run: run.clone(), directory, signer: signer.clone() }).await?;
        Ok(Answer::Imported { run, signer, powers })
    }

    /// One's turn with a run that comes from elsewhere, with the project that it comes to, and with the one that it is in
    /// here so far.
    async fn alone_with(&self, run: &RunId, directory: &Path) -> fault::Result<KeyedLockGuard> {
        let missing = || format!("there is no directory `{}`", directory.display());
        let mut names =
            vec![keyed_lock::of(run), keyed_lock::of_directory(&directory.canonicalize().or_invalid(missing)?)];
        names.extend(record::record(&*self.host.store, run)?.iter().flat_map(keyed_lock::of_run));
        Ok(self.locks.take(names).await)
    }

    fn shared(&self, directory: &Path) -> fault::Result<SharedServer> {
        let config = Config::read(directory)?;
        self.expect_trust(&directory.canonicalize()?, &config)?;
        let shared = SharedServer::open(&self.host.home, &*self.shares, &config.checkpoints, directory)?;
        shared.or_invalid(
            || "no server is configured; add to longhaul.toml: [checkpoints.redis] url = \"redis://HOST:PORT/0\"",
        )
    }
}

/// A snapshot as surfaces pass it on.
fn document(snapshot: &Snapshot) -> fault::Result<Answer> {
    Ok(Answer::Snapshot { snapshot: serde_json::to_value(snapshot)? })
}

fn listed(checkpoints: Vec<Checkpoint>, saved: Vec<SavedSnapshot>, shared: Vec<String>) -> fault::Result<Answer> {
    Ok(Answer::Checkpoints { checkpoints, saved, shared })
}
