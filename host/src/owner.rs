//! The program as the command line needs it: opens and owns data directories, starts the servers and the scheduler over
//! the service, restores backups, and reads files of checkpoints. It prints nothing and decides nothing about a run.

use crate::stores::OnLost;
use crate::{database_checks, migration, own_service, wiring};
use longhaul_api::checkpoints::{CheckpointDescription, CheckpointDocument};
use longhaul_api::upkeep::{MigrationReport, RestoreOptions, RestoreReport, StoreKind};
use longhaul_api::wire::doctor::CheckResult;
use longhaul_checkpoints::Snapshot;
use longhaul_cli::{Exit, Owner, RunningScheduler, RunningServer, ServerStart, StandbyNotice, terminal};
use longhaul_client::Client;
use longhaul_config::ServerUrl;
use longhaul_config::server::ServerSettings;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_home::Home;
use longhaul_maintenance::backup;
use longhaul_models::set::ProgramEnvironment;
use longhaul_scheduler::Scheduler;
use longhaul_security::signing::AcceptedRisks;
use longhaul_server::http::{self, AppState, SharedState, StandbyServer};
use longhaul_server::recovery;
use longhaul_service::Service;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The longest time for telling people that this process ends: whoever reads its output may have stopped, and nothing
/// may go on meanwhile.
const TELL_MAX: Duration = Duration::from_secs(1);

/// This program.
#[derive(Default)]
pub struct ProgramOwner {
    /// The service of this process while it stands by and works for the server that leads.
    worker: Arc<Mutex<Option<Arc<Service>>>>,
}

impl ProgramOwner {
    fn worker(&self) -> Option<Arc<Service>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait::async_trait]
impl Owner for ProgramOwner {
    async fn open(&self, home: &Home, project: &Path) -> fault::Result<Client> {
        wiring::open_or_lose(home, Some(project), end_when_lost()).await
    }

    async fn own_soon(
        &self,
        home: &Home,
        listener: &TcpListener,
        settings: &ServerSettings,
        on_standby: StandbyNotice,
    ) -> fault::Result<Client> {
        let (wait, mut waits) = watch::channel(None);
        let mut notice = Some(on_standby);
        let on_wait = move |waits_for: &str, holder: Option<&ServerUrl>| {
            match notice.take() {
                Some(on_standby) => on_standby(waits_for),
                None => tracing::info!("standing by: {waits_for}"),
            }
            wait.send_replace(holder.cloned());
        };
        let worker = Arc::clone(&self.worker);
        let on_work = move |service: &Arc<Service>| {
            *worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(service));
        };
        let mut owning = std::pin::pin!(wiring::own_soon(home, end_when_lost(), on_wait, on_work));
        tokio::select! {
            owned = &mut owning => return owned,
            Ok(()) = waits.changed() => {}
        }
        let standby = StandbyServer::start(listener, settings.clone(), waits)?;
        let owned = owning.await;
        standby.stop().await;
        owned
    }

    async fn end_work(&self) {
        if let Some(service) = self.worker() {
            service.end_work().await;
        }
    }

    fn set_worker(&self, settings: &ServerSettings) {
        if let Some(service) = self.worker() {
            service.set_worker(settings.worker().cloned());
        }
    }

    async fn serve(&self, client: &Client, start: ServerStart) -> fault::Result<Box<dyn RunningServer>> {
        let Some(service) = own_service::of(client) else { bail!("another longhaul owns the data directory") };
        let ServerStart { home, listener, settings, page } = start;
        let (stop, stopping) = watch::channel(false);
        let state = AppState::new(Arc::clone(service), home, settings, page, stopping.clone());
        let keeping = tokio::spawn(recovery::keep(Arc::clone(service), stopping));
        let serving = tokio::spawn(http::serve(Arc::clone(&state), listener));
        let scheduler = scheduler(service).await?;
        Ok(Box::new(Servers { service: Arc::clone(service), state, stop, serving, keeping, scheduler }))
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

    async fn migrate_store(&self, home: Home, to: StoreKind) -> fault::Result<MigrationReport> {
        tokio::task::spawn_blocking(move || migration::migrate(&home, to, &end_when_lost())).await?
    }

    async fn reopen_store(&self, home: Home) -> fault::Result<String> {
        tokio::task::spawn_blocking(move || migration::reopen(&home, &end_when_lost())).await?
    }

    async fn check_database(&self, home: &Home) -> Vec<CheckResult> {
        let home = home.clone();
        let checked = tokio::task::spawn_blocking(move || database_checks::all(&home)).await;
        checked.unwrap_or_default()
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

/// Ends this process like a kill once another one has taken over the database: what is in flight is the other one's to
/// judge, and nothing that this one still does can be stored.
fn end_when_lost() -> OnLost {
    Arc::new(end_at_once)
}

fn end_at_once(lost: &str) {
    let (telling, told) = mpsc::channel::<()>();
    let lost = lost.to_owned();
    // A thread that cannot be made tells nobody, and drops the sender as one that has ended does.
    drop(std::thread::Builder::new().spawn(move || {
        tracing::error!("{lost}");
        terminal::error(&Fault::msg(lost));
        drop(telling);
    }));
    let _ = told.recv_timeout(TELL_MAX);
    std::process::exit(Exit::LeaseLost.code().into());
}

/// Sends notifications, and runs due schedules, from now on.
async fn scheduler(service: &Arc<Service>) -> fault::Result<Scheduler> {
    service.send_notifications();
    Scheduler::start(service.scheduler_service(), service.agent_executor()).await
}

/// The servers of this process, and the scheduler beside them.
struct Servers {
    service: Arc<Service>,
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
        self.service.set_worker(settings.worker().cloned());
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
