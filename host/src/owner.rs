//! The program as the command line needs it: opens and owns data directories, starts the servers and the scheduler over
//! the service, restores backups, and reads files of checkpoints. It prints nothing and decides nothing about a run.

use crate::own_service;
use crate::wiring;
use longhaul_api::checkpoints::{CheckpointDescription, CheckpointDocument};
use longhaul_api::upkeep::{RestoreOptions, RestoreReport};
use longhaul_checkpoints::Snapshot;
use longhaul_cli::{Owner, RunningScheduler, RunningServer, ServerStart};
use longhaul_client::Client;
use longhaul_config::server::ServerSettings;
use longhaul_core::fault::{self, bail};
use longhaul_home::Home;
use longhaul_maintenance::backup;
use longhaul_models::set::ProgramEnvironment;
use longhaul_scheduler::Scheduler;
use longhaul_security::signing::AcceptedRisks;
use longhaul_server::http::{self, AppState, SharedState};
use longhaul_server::recovery;
use longhaul_service::Service;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// This program.
pub struct ProgramOwner;

#[async_trait::async_trait]
impl Owner for ProgramOwner {
    async fn open(&self, home: &Home, project: &Path) -> fault::Result<Client> {
        wiring::open(home, Some(project)).await
    }

    async fn own_soon(&self, home: &Home) -> fault::Result<Client> {
        wiring::own_soon(home).await
    }

    async fn serve(&self, client: &Client, start: ServerStart) -> fault::Result<Box<dyn RunningServer>> {
        let Some(service) = own_service::of(client) else { bail!("another longhaul owns the data directory") };
        let ServerStart { home, listener, settings, page } = start;
        let (stop, stopping) = watch::channel(false);
        let state = AppState::new(Arc::clone(service), home, settings, page, stopping.clone());
        let keeping = tokio::spawn(recovery::keep(Arc::clone(service), stopping));
        let serving = tokio::spawn(http::serve(Arc::clone(&state), listener));
        let scheduler = scheduler(service).await?;
        Ok(Box::new(Servers { state, stop, serving, keeping, scheduler }))
    }

    async fn schedule(&self, client: &Client) -> fault::Result<Box<dyn RunningScheduler>> {
        let Some(service) = own_service::of(client) else { bail!("the data directory is not ours") };
        Ok(Box::new(Schedules(scheduler(service).await?)))
    }

    async fn restore(
        &self,
        file: PathBuf,
        home: Home,
        accepts: AcceptedRisks,
        keeps: RestoreOptions,
    ) -> fault::Result<RestoreReport> {
        // The whole backup is unpacked and read, on a thread that may block.
        tokio::task::spawn_blocking(move || backup::restore(&file, &home, &accepts, keeps, wiring::prepare_store))
            .await?
    }

    fn read_checkpoint(&self, bytes: &[u8]) -> fault::Result<CheckpointDocument> {
        Snapshot::read(bytes)?.document()
    }

    fn describe_checkpoint(
        &self,
        document: CheckpointDocument,
        signers: Option<&Home>,
    ) -> fault::Result<CheckpointDescription> {
        Snapshot::describe(document, signers)
    }

    fn model_environment(&self) -> fault::Result<ProgramEnvironment> {
        wiring::model_environment()
    }

    fn has_local_model(&self) -> bool {
        cfg!(feature = "local-model")
    }
}

/// Sends notifications, and runs due schedules, from now on.
async fn scheduler(service: &Arc<Service>) -> fault::Result<Scheduler> {
    service.send_notifications();
    Scheduler::start(service.scheduler_service(), service.agent_executor()).await
}

/// The servers of this process, and the scheduler beside them.
struct Servers {
    state: SharedState,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    keeping: JoinHandle<()>,
    scheduler: Scheduler,
}

#[async_trait::async_trait]
impl RunningServer for Servers {
    fn settings(&self) -> Arc<ServerSettings> {
        self.state.settings()
    }

    fn set(&self, settings: ServerSettings) {
        self.state.set(settings);
    }

    async fn stop(self: Box<Self>) {
        let Self { stop, serving, keeping, scheduler, .. } = *self;
        let _ = stop.send(true);
        let _ = serving.await;
        let _ = keeping.await;
        scheduler.stop().await;
    }
}

/// The scheduler of a process that serves nothing over HTTP.
struct Schedules(Scheduler);

#[async_trait::async_trait]
impl RunningScheduler for Schedules {
    async fn stop(self: Box<Self>) {
        self.0.stop().await;
    }
}
