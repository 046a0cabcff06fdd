//! Maintenance of a data directory: backup into a file, verification of the store, and deletion of expired data.

use super::{Service, ServiceOperations};
use longhaul_api::operations::MaintenanceOperations;
use longhaul_api::upkeep::{AuditHead, CheckStore, GcOptions, GcReport, WriteBackup, WrittenArchive};
use longhaul_checkpoints::{self as checkpoint, SnapshotStore};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::memory::Embedded;
use longhaul_core::store::ReadTotals;
use longhaul_core::text::count;
use longhaul_maintenance::backup;
use longhaul_maintenance::gc;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

#[async_trait::async_trait]
impl MaintenanceOperations for ServiceOperations<'_> {
    async fn write_backup(&self, WriteBackup { file, with_secrets }: WriteBackup) -> fault::Result<WrittenArchive> {
        self.0.back_up(file, with_secrets).await
    }

    async fn check_store(&self, CheckStore {}: CheckStore) -> fault::Result<ReadTotals> {
        let store = Arc::clone(&self.0.host.store);
        Ok(tokio::task::spawn_blocking(move || store.read_all()).await??)
    }

    async fn collect_garbage(&self, wanted: GcOptions) -> fault::Result<GcReport> {
        self.0.collect(&wanted).await
    }
}

impl Service {
    async fn back_up(&self, file: PathBuf, with_secrets: bool) -> fault::Result<WrittenArchive> {
        if !file.is_absolute() {
            bail!("`{}` is no full path", file.display());
        }
        // A copy is of one moment, and only the commits of this process can be made to wait for it. No run is given
        // away meanwhile.
        let _naming = match &self.cluster {
            Some(_) => Some(self.naming.write().await),
            None => None,
        };
        let remote = self.remote().names().count();
        if remote > 0 {
            bail!(Fault::conflict(format!(
                "{} on other servers; pause them first, or back the database up with its own tools, as pg_dump",
                count(remote, "run")
            )));
        }
        let (host, active) = (Arc::clone(&self.host), self.active());
        let written = tokio::task::spawn_blocking(move || {
            let now_ms = host.clock.now_ms();
            let audit = AuditHead::of(&host.audit.verify(None)?);
            let parts =
                backup::ArchiveParts { home: &host.home, store: &*host.store, active, with_secrets, audit, now_ms };
            backup::write(&file, &parts)
        });
        written.await?
    }

    async fn collect(&self, wanted: &GcOptions) -> fault::Result<GcReport> {
        let PluginHost { store, clock, .. } = &*self.host;
        let shelf = SnapshotStore::new(&**store, &**clock);
        let mut swept = GcReport { dry_run: wanted.dry_run, ..GcReport::default() };
        if wanted.dry_run {
            swept.checkpoints = shelf.old(wanted.checkpoints_older_ms)?;
        } else {
            swept.checkpoints = shelf.purge(wanted.checkpoints_older_ms).await?;
            let memory = Embedded::new(Arc::clone(store), Arc::clone(clock));
            swept.memories = Some(memory.purge().await?);
        }
        if let Some(older_ms) = wanted.runs_older_ms {
            self.collect_runs(older_ms, &mut swept).await?;
        }
        self.collect_trees(&mut swept)?;
        self.collect_content(&mut swept).await?;
        if let Some(max) = wanted.cache_bytes_max {
            let directory = longhaul_home::cache()?.join("compiled");
            let shrunk = tokio::task::spawn_blocking(move || gc::shrink(&directory, max, swept.dry_run)).await?;
            (swept.compiled, swept.compiled_bytes) = shrunk;
        }
        Ok(swept)
    }

    async fn collect_runs(&self, older_ms: u64, swept: &mut GcReport) -> fault::Result<()> {
        for run in gc::old_runs(&*self.host.store, self.host.clock.now_ms(), &self.active(), older_ms)? {
            let record = record::record(&*self.host.store, &run)?.or_unknown(|| format!("run {run} is gone"))?;
            let _alone = self.locks.take(super::keyed_lock::of_run(&record)).await;
            if self.is_active(&run) {
                continue;
            }
            let (rows, bytes) = gc::remove_run(&self.host.home, &*self.host.store, &run, swept.dry_run).await?;
            swept.rows += rows;
            swept.tree_bytes += bytes;
            swept.runs.push(run);
        }
        Ok(())
    }

    fn collect_trees(&self, swept: &mut GcReport) -> fault::Result<()> {
        // Those that are being made first: one that is seen is among them, or among the records by then.
        let mut known: BTreeSet<String> = self.locks.begun().iter().map(ToString::to_string).collect();
        known.extend(record::heads(&*self.host.store)?.into_iter().map(|head| head.run.to_string()));
        let (trees, bytes) = gc::sweep_trees(&self.host.home, &known, swept.dry_run);
        swept.trees = trees;
        swept.tree_bytes += bytes;
        Ok(())
    }

    /// Content is stored before the rows that reference it, so it is deleted only while no operation stores any.
    async fn collect_content(&self, swept: &mut GcReport) -> fault::Result<()> {
        let busy = || {
            let active = self.active().len();
            let begun = self.locks.begun().len();
            let are = if active == 1 { "is" } else { "are" };
            let runs = count(active, "run");
            (active + begun > 0).then(|| format!("{runs} {are} worked on, and {begun} begin; pause them first"))
        };
        let Ok(_alone) = self.naming.try_write() else {
            swept.content_kept_for = Some("something else is being answered; try again".to_owned());
            return Ok(());
        };
        swept.content_kept_for = busy();
        if swept.content_kept_for.is_none() {
            swept.content = Some(self.host.store.collect(&checkpoint::digests, swept.dry_run).await?);
        }
        Ok(())
    }
}
