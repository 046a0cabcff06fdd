//! Checkpoints: listed, exported, saved, imported.

use super::keyed_lock::{self, KeyedLockGuard};
use super::{Service, ServiceOperations};
use longhaul_api::checkpoints::{
    CheckpointDocument, CheckpointList, ExportCheckpoint, ImportCheckpoint, ImportedRun, ListCheckpoints, ListShared,
    SaveCheckpoint, ShowCheckpoint, ShowSaved, TakeOverRun,
};
use longhaul_api::operations::CheckpointOperations;
use longhaul_api::runs::RunRef;
use longhaul_checkpoints::{self as checkpoint, CheckpointKey, SharedServer, Snapshot, SnapshotStore, restore, take};
use longhaul_config::Config;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context, Fault, FaultCode, bail};
use longhaul_records::record::{self, TreePlace};
use longhaul_run::places::TreesElsewhere;
use longhaul_security::audit::AuditEvent;
use longhaul_security::signing::{self, AcceptedRisks, SigningKey};
use std::path::Path;

#[async_trait::async_trait]
impl CheckpointOperations for ServiceOperations<'_> {
    async fn checkpoints(&self, ListCheckpoints { run, every }: ListCheckpoints) -> fault::Result<CheckpointList> {
        let record = self.0.find(&run)?.record;
        let config = record.config_now()?;
        let every = |table: &str| every.unwrap_or_else(|| config.checkpoint_every(table));
        let checkpoints = checkpoint::list(&*self.0.host.store, &record.run, every)?;
        Ok(CheckpointList { checkpoints, saved: self.0.saved_snapshots().list()?, ..CheckpointList::default() })
    }

    async fn shared_checkpoints(&self, ListShared { directory }: ListShared) -> fault::Result<CheckpointList> {
        let shared = self.0.shared(&directory)?.list().await?;
        Ok(CheckpointList { shared, ..CheckpointList::default() })
    }

    async fn checkpoint(&self, ShowCheckpoint { key }: ShowCheckpoint) -> fault::Result<CheckpointDocument> {
        self.0.snapshot(&key)?.document()
    }

    async fn export_checkpoint(&self, request: ExportCheckpoint) -> fault::Result<CheckpointDocument> {
        let ExportCheckpoint { key } = request;
        self.0.refuse_working(&key)?;
        self.0.signed(&key)?.document()
    }

    async fn save_checkpoint(&self, request: SaveCheckpoint) -> fault::Result<CheckpointList> {
        let SaveCheckpoint { key, name, ttl_s } = request;
        self.0.refuse_working(&key)?;
        let bytes = self.0.signed(&key)?.write()?;
        let saved = self.0.saved_snapshots().save(&name, bytes, ttl_s.saturating_mul(1_000)).await?;
        Ok(CheckpointList { saved: vec![saved], ..CheckpointList::default() })
    }

    async fn saved_checkpoint(&self, ShowSaved { name }: ShowSaved) -> fault::Result<CheckpointDocument> {
        let missing = || format!("nothing is saved as `{name}`; `longhaul checkpoint list` shows what is");
        Snapshot::read(&self.0.saved_snapshots().read(&name)?.or_unknown(missing)?)?.document()
    }

    async fn import_checkpoint(&self, request: ImportCheckpoint) -> fault::Result<ImportedRun> {
        let ImportCheckpoint { snapshot, directory, replace, accepts } = request;
        let service = self.0;
        let snapshot: Snapshot = serde_json::from_value(snapshot).or_invalid(|| "this is no checkpoint of longhaul")?;
        let _alone = service.alone_with(&snapshot.run, &directory).await?;
        let _begins = service.locks.begin(&snapshot.run);
        service.refuse_active(&snapshot.run)?;
        service.admitted(snapshot, &directory, replace, &accepts).await
    }

    async fn take_over_run(&self, request: TakeOverRun) -> fault::Result<ImportedRun> {
        self.0.take_over(request).await
    }
}

impl Service {
    /// The snapshots that are saved in the data directory.
    fn saved_snapshots(&self) -> SnapshotStore<'_> {
        SnapshotStore::new(&*self.host.store, &*self.host.clock)
    }

    async fn take_over(&self, request: TakeOverRun) -> fault::Result<ImportedRun> {
        let TakeOverRun { key, directory, replace, accepts } = request;
        // Held over the lease too: it is given back at the end, and must not be that of work begun meanwhile.
        let run = RunId::from_text(key.clone());
        let _alone = self.alone_with(&run, &directory).await?;
        let _begins = self.locks.begin(&run);
        self.refuse_active(&run)?;
        let import = async |snapshot: Snapshot| self.admitted(snapshot, &directory, replace, &accepts).await;
        self.shared(&directory)?.take_over(&key, import).await
    }

    /// Rows and files that change while they are read would not fit each other.
    fn refuse_working(&self, key: &str) -> fault::Result<()> {
        let run = self.find(&RunRef::Named(CheckpointKey::parse(key).run))?.record.run;
        if self.is_active(&run) {
            bail!(Fault::conflict(format!("run {run} is worked on; pause it first: `longhaul pause {run}`")));
        }
        Ok(())
    }

    fn refuse_active(&self, run: &RunId) -> fault::Result<()> {
        if self.is_active(run) {
            bail!(Fault::conflict(format!("run {run} is worked on; pause it first: `longhaul pause {run}`")));
        }
        Ok(())
    }

    /// A snapshot has the files of the trees, so those have to be here.
    fn snapshot(&self, key: &str) -> fault::Result<Snapshot> {
        let key = CheckpointKey::parse(key);
        let stored = self.find(&RunRef::Named(key.run.clone()))?;
        let run = stored.record.run.clone();
        if let Some(TreePlace { host, directory, .. }) = longhaul_run::places::elsewhere(&self.host, &run)? {
            bail!(Fault::from(TreesElsewhere { run, host, directory, missing: None }).or_code(FaultCode::Conflict));
        }
        take(&self.host, &stored, &key)
    }

    fn signed(&self, key: &str) -> fault::Result<Snapshot> {
        self.snapshot(key)?.sign(&SigningKey::of(&self.host.home)?)
    }

    /// Puts a snapshot here whose signer is known, or was named.
    async fn admitted(
        &self,
        mut snapshot: Snapshot,
        directory: &Path,
        replace: bool,
        accepts: &AcceptedRisks,
    ) -> fault::Result<ImportedRun> {
        let (signed, bytes) = snapshot.take_signature()?;
        let signer = signing::admit(&self.host.home, "the checkpoint", signed.as_ref(), &bytes, accepts)?;
        let claimed = self.claimed(&directory.canonicalize()?, &Config::read(directory)?).await?;
        restore(&self.host, &snapshot, directory, &claimed.id, replace).await?;
        signing::remember(&self.host.home, &signer)?;
        let powers = snapshot.powers()?.iter().filter(|power| !power.is_plain).map(ToString::to_string).collect();
        let (run, directory, signer) = (snapshot.run, directory.to_owned(), signer.to_string());
        self.host.audit.note(AuditEvent::Imported { run: run.clone(), directory, signer: signer.clone() }).await?;
        Ok(ImportedRun { run, signer, powers })
    }

    /// One's turn with a run that comes from elsewhere, with the project that it comes to, and with the one that it is
    /// in here so far.
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
