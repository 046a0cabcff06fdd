//! The owner of the data directory, when this process is it: it hands its runs over before it ends.
//!
//! A run that another terminal follows goes on there, once effects in flight have finished. A run that no terminal
//! follows keeps this process until it ends or somebody presses Ctrl-C.
//!
//! The command line knows no store, no service and no server. Work that needs one of them is done by the program, which
//! the command line knows as [`Owner`]; the commands that ask for it, and what they print, are in the files below.

pub mod serve;
mod supervisor;
pub mod work;

use longhaul_api::checkpoints::{CheckpointDescription, CheckpointDocument};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{RunRef, ShowRun};
use longhaul_api::upkeep::{MigrationReport, RestoreOptions, RestoreReport, StoreKind};
use longhaul_api::wire::doctor::CheckResult;
use longhaul_client::Client;
use longhaul_config::server::ServerSettings;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_engine::HAND_OVER_MS_MAX;
use longhaul_home::Home;
use longhaul_models::set::ProgramEnvironment;
use longhaul_security::signing::AcceptedRisks;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Interval between two looks for followers of runs.
const LOOK: Duration = Duration::from_millis(500);

/// Exit code after a second Ctrl-C: 128 + SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// Called with a clause about the process that works with the database, such as `the database is held by ...`.
pub type StandbyNotice = Box<dyn FnOnce(&str) + Send>;

/// The program that the command line is a part of: it does the work that needs the store, the service or the servers.
#[async_trait::async_trait]
pub trait Owner: Send + Sync {
    /// Opens the client of a data directory for a command in a project. This process becomes the owner, with all that
    /// an owner has, unless another process is; then the client asks that one.
    async fn open(&self, home: &Home, project: &Path) -> fault::Result<Client>;

    /// Opens the client of a data directory as its owner and a server, once a command that is about to end has. Where
    /// the state is in a database that another process works with, it waits until that one ends, and calls `on_standby`
    /// once with a clause about it; requests to `listener` are answered meanwhile, by the server that works where its
    /// address is known.
    async fn own_soon(
        &self,
        home: &Home,
        listener: &TcpListener,
        settings: &ServerSettings,
        on_standby: StandbyNotice,
    ) -> fault::Result<Client>;

    /// Ends the work of a server that stands by: its runs stop once what is on its way has ended, and others go on with
    /// them at once.
    async fn end_work(&self);

    /// Takes over `[worker]` of changed settings, while this server stands by.
    fn set_worker(&self, settings: &ServerSettings);

    /// Starts the HTTP server, the recovery of interrupted runs and the scheduler, over a client of this process.
    async fn serve(&self, client: &Client, start: ServerStart) -> fault::Result<Box<dyn RunningServer>>;

    /// Starts the scheduler, over a client of this process.
    async fn schedule(&self, client: &Client) -> fault::Result<Box<dyn RunningScheduler>>;

    /// Makes a data directory of a backup. The store is opened here, since the directory has no owner to ask yet.
    async fn restore(
        &self,
        file: PathBuf,
        home: Home,
        accepts: AcceptedRisks,
        keeps: RestoreOptions,
    ) -> fault::Result<RestoreReport>;

    /// Moves all state of a data directory that nobody owns into the other kind of store.
    async fn migrate_store(&self, home: Home, to: StoreKind) -> fault::Result<MigrationReport>;

    /// Takes a database into use again whose state was moved away, as it was then. Returns its address.
    async fn reopen_store(&self, home: Home) -> fault::Result<String>;

    /// The findings about the database that holds the state, for the doctor; none where files hold it.
    async fn check_database(&self, home: &Home) -> Vec<CheckResult>;

    /// Reads the bytes of an exported checkpoint. Refuses a document that is not what its signer signed.
    fn read_checkpoint(&self, bytes: &[u8]) -> fault::Result<CheckpointDocument>;

    /// The facts about a checkpoint. `signers` is the data directory whose keys tell who signed it; none: the signature
    /// is not looked at.
    fn describe_checkpoint(
        &self,
        document: CheckpointDocument,
        signers: Option<&Home>,
    ) -> fault::Result<CheckpointDescription>;

    /// The environment of the models that the program asks.
    fn model_environment(&self) -> fault::Result<ProgramEnvironment>;

    /// True when the program was built with a small language model.
    fn has_local_model(&self) -> bool;
}

/// The parameters of a server that is started.
pub struct ServerStart {
    /// The data directory.
    pub home: Home,
    /// Accepts the connections of HTTP.
    pub listener: TcpListener,
    /// The settings, with the address that the listener has.
    pub settings: ServerSettings,
    /// Directory of the files of the web page, in place of those in the program.
    pub page: Option<PathBuf>,
}

/// A server that was started.
#[async_trait::async_trait]
pub trait RunningServer: Send + Sync {
    /// The settings as they are now.
    fn settings(&self) -> Arc<ServerSettings>;

    /// Replaces the settings; requests that come from now on see the new ones.
    fn set(&self, settings: ServerSettings);

    /// Stops it, once requests under way have ended.
    async fn stop(self: Box<Self>);
}

/// A scheduler that was started.
#[async_trait::async_trait]
pub trait RunningScheduler: Send {
    /// Stops it.
    async fn stop(self: Box<Self>);
}

/// Waits as long as this process works on runs that no other terminal follows, then hands over.
pub async fn stay(client: Client) {
    let (mut told, mut seen) = (Vec::new(), Vec::new());
    loop {
        let alone = client.unfollowed();
        if alone.is_empty() {
            break;
        }
        // A run that has just ended is at work for another moment.
        if alone != seen {
            seen = alone;
        } else if told != alone {
            let runs = named(&client, &alone).await;
            errln!("this process stays: it works on {runs}, which no other terminal follows; Ctrl-C hands over");
            told = alone;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    hand_over(client).await;
}

/// Stops serving once effects in flight have finished. Ctrl-C stops at once.
pub async fn hand_over(client: Client) {
    let active = client.active();
    if !active.is_empty() {
        let alone = client.unfollowed();
        let (runs, minutes) = (named(&client, &active).await, HAND_OVER_MS_MAX / 60_000);
        errln!("finishing what is on its way of {runs}, for at most {minutes} minutes; Ctrl-C ends at once");
        alone.iter().for_each(|run| errln!("go on with: longhaul resume {run}"));
    }
    tokio::select! {
        () = client.leave() => {}
        _ = tokio::signal::ctrl_c(), if !active.is_empty() => end_at_once(&active),
    }
}

/// Ends this process like a kill.
pub fn end_at_once(active: &[RunId]) -> ! {
    errln!("ended at once; what was on its way may have happened, and is asked about");
    active.iter().for_each(|run| errln!("go on with: longhaul resume {run}"));
    std::process::exit(INTERRUPTED);
}

/// The runs with their projects, as a person knows them.
async fn named(client: &Client, runs: &[RunId]) -> String {
    let mut named = Vec::new();
    for run in runs {
        named.push(match client.run_status(ShowRun { run: RunRef::Named(run.to_string()) }).await {
            Ok(status) => format!("run {run} of {}", status.summary.project),
            Err(_) => format!("run {run}"),
        });
    }
    named.join(", ")
}
