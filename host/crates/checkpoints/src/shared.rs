//! Runs that several machines share: the machine that works on a run holds its lease, and leaves a snapshot when the
//! run rests.
//!
//! The server knows the holder of a run. A run whose last holder is another machine may have progressed there: it is
//! refused until that machine's snapshot is imported, and a failed import does not change that. While a run is worked
//! on it has no snapshot, so a machine that dies at work has to continue the run itself: its work since then would be
//! repeated elsewhere. A lease has a fencing number, and the server rejects a snapshot under an old one. A holder that
//! cannot renew its lease stops its work before the lease expires. The server is never the source of truth: that is the
//! store of the lease's holder.

use super::positions::CheckpointKey as Named;
use super::snapshot::{Snapshot, take};
use longhaul_config::checkpoints::CheckpointConfig;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::shared::{Lease, RunShare, SharedError};
use longhaul_core::{Digest, RunId};
use longhaul_harness::RunStatus;
use longhaul_home::Home;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::{self, RunRecord};
use longhaul_run::RunHandle;
use longhaul_security::signing::SigningKey;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Makes the client of a server that several machines share. The program that opens the data directory provides it.
pub trait RunShareFactory: Send + Sync {
    /// The server that `[checkpoints.redis]` names; none without such a table. Relative paths of the table are below
    /// `directory`. The server itself is not contacted.
    ///
    /// # Errors
    /// When the table names something missing, such as a variable.
    fn open(&self, config: &CheckpointConfig, directory: &Path) -> fault::Result<Option<Box<dyn RunShare>>>;
}

/// The shared server of a project.
pub struct SharedServer {
    runs: Box<dyn RunShare>,
    holder: String,
    lease_ms: u64,
}

impl SharedServer {
    /// The shared server of a project, if it has one.
    pub fn open(
        home: &Home,
        factory: &dyn RunShareFactory,
        config: &CheckpointConfig,
        directory: &Path,
    ) -> fault::Result<Option<Self>> {
        let Some(runs) = factory.open(config, directory).context("[checkpoints.redis]")? else { return Ok(None) };
        // One process owns a data directory, so the directory's path identifies the holder.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let home = Digest::of(home.path().as_os_str().as_encoded_bytes()).short();
        Ok(Some(Self { runs, holder: format!("{}/{home}", host.trim()), lease_ms: config.lease_ms }))
    }

    /// Acquires the lease of a run before work on it.
    ///
    /// # Errors
    /// When another machine holds the lease, or has continued the run since this one worked on it.
    pub async fn begin(&self, run: &RunId) -> fault::Result<Lease> {
        match self.runs.acquire(run.as_str(), &self.holder, self.lease_ms, false).await {
            Err(SharedError::Moved { .. }) => bail!(Fault::conflict(format!(
                "another machine has gone on with run {run}; take up where it is with \
                 `longhaul checkpoint import --shared {run} --replace`"
            ))),
            taken => {
                let lease = taken?;
                // The snapshot on the server is out of date from here on: a resume from it would repeat effects.
                self.runs.delete(&lease.key).await?;
                Ok(lease)
            }
        }
    }

    /// Renews a lease until it is dropped, and stops the run when renewal fails for too long.
    pub async fn hold(self: Arc<Self>, lease: Lease, handle: RunHandle) {
        let patience = Duration::from_millis(self.lease_ms / 4 * 3);
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(self.lease_ms / 4)).await;
            // Measured from before the request: the server counts from when it receives it.
            let asked = Instant::now();
            let renewing = self.runs.acquire(&lease.key, &self.holder, self.lease_ms, false);
            // A server that does not answer gets no more time than one that is away.
            match tokio::time::timeout(patience.saturating_sub(renewed.elapsed()), renewing).await {
                Ok(Ok(now)) if now.fence == lease.fence => renewed = asked,
                Ok(Err(SharedError::Unavailable(_))) if renewed.elapsed() < patience => {}
                // Another machine holds the lease, or it is another lease, or the server was away for too long.
                Ok(_) | Err(_) => break,
            }
        }
        tracing::warn!(run = lease.key, "the lease could not be renewed, so the work stops here");
        handle.stop().await;
    }

    /// Leaves the snapshot of a resting run on the server, and releases its lease. A finished run leaves none.
    pub async fn leave(&self, host: &PluginHost, lease: &Lease) -> fault::Result<()> {
        let run = RunId::from_text(lease.key.clone());
        let stored = record::load(&*host.store, &run)?.with_context(|| format!("run {run} is gone"))?;
        match stored.state.status() {
            RunStatus::Completed | RunStatus::Failed | RunStatus::Abandoned => self.runs.delete(&lease.key).await?,
            _ => {
                let named = Named { run: lease.key.clone(), part: None };
                let snapshot = take(host, &stored, &named)?.sign(&SigningKey::of(&host.home)?)?;
                self.runs.put(lease, &snapshot.write()?).await?;
            }
        }
        Ok(self.runs.release(lease).await?)
    }

    /// The runs with a snapshot on the server.
    pub async fn list(&self) -> fault::Result<Vec<String>> {
        Ok(self.runs.list().await?)
    }

    /// Takes over a run: acquires its lease first, so that no other machine continues it meanwhile, then reads its
    /// snapshot. Returns the result of `restore`.
    pub async fn take_over<T>(
        &self,
        key: &str,
        restore: impl AsyncFnOnce(Snapshot) -> fault::Result<T>,
    ) -> fault::Result<T> {
        let lease = self.runs.acquire(key, &self.holder, self.lease_ms, true).await?;
        let taken = match self.restored(key, restore).await {
            // Only after the restore: a partly restored run here is not the state that others reached.
            Ok(restored) => self.runs.claim(&lease).await.map(|()| restored).map_err(Fault::from),
            Err(error) => Err(error),
        };
        self.runs.release(&lease).await?;
        taken
    }

    async fn restored<T>(
        &self,
        key: &str,
        restore: impl AsyncFnOnce(Snapshot) -> fault::Result<T>,
    ) -> fault::Result<T> {
        let bytes = self.runs.get(key).await?;
        let missing = || format!("`{key}` is not on the server; `longhaul checkpoint list --shared` shows what is");
        let snapshot = Snapshot::read(&bytes.or_unknown(missing)?)?;
        if snapshot.run.as_str() != key {
            bail!(
                "what is on the server as `{key}` is run {}; it is not taken over; whoever has {key} leaves it there again \
                 with `longhaul resume {key}` and `longhaul pause {key}`",
                snapshot.run
            );
        }
        restore(snapshot).await
    }
}

/// The shared server of a run's project.
pub fn of_record(
    home: &Home,
    factory: &dyn RunShareFactory,
    record: &RunRecord,
) -> fault::Result<Option<Arc<SharedServer>>> {
    let shared = SharedServer::open(home, factory, &record.config_now()?.checkpoints, &record.directory)?;
    Ok(shared.map(Arc::new))
}
