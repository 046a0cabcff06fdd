//! The client of a command: opened at its first question, and handed over before the command ends.
//!
//! A process that owns the data directory works on the runs of others, too, and keeps a server from starting. So a
//! command that asks once hands over as soon as it is answered. One that asks several times calls
//! [`CommandClient::keep`] first: then one client, with one store and one engine, is asked everything until
//! [`CommandClient::release`].
//!
//! A server elsewhere is asked in the same way. It is waited for a little if it goes away, and never replaced.

use super::owner::{self, Owner};
use longhaul_api::operations::{Handling, Operation, Transport};
use longhaul_client::wire::OwnerGone;
use longhaul_client::{Client, ServerClient, ServerGone, is_server_away};
use longhaul_core::fault::{self, Fault};
use longhaul_home::Home;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard};

/// The most owners of a data directory that may stop one after the other while a command asks.
pub const OWNERS_MAX: u32 = 10;

/// Time for an owner that has just stopped to be gone.
pub const OWNER_PAUSE: Duration = Duration::from_millis(50);

/// Time for a server that went away to be there again. It is waited for as often as for an owner.
pub const SERVER_PAUSE: Duration = Duration::from_secs(1);

/// The time after which the same question may go to the next owner, or to the server once more; none for an error after
/// which it may not.
pub fn pause_after(error: &Fault) -> Option<Duration> {
    let after_owner = error.is::<OwnerGone>().then_some(OWNER_PAUSE);
    after_owner.or_else(|| is_server_away(error).then_some(SERVER_PAUSE))
}

/// True when an operation may be asked for once more after an error. A network breaks more often than an owner ends, so
/// what a server may have done already is asked for again only where it changes nothing.
fn may_repeat<O: Operation>(error: &Fault) -> bool {
    O::HANDLING == Handling::Look || !error.is::<ServerGone>()
}

/// The place of the service that a command asks.
enum Place {
    /// A data directory of this machine. The caps on compiling are those of the project.
    Here { home: Home, project: PathBuf, owner: Arc<dyn Owner> },
    /// A server elsewhere.
    Server(Arc<ServerClient>),
}

/// The client of one command.
pub struct CommandClient {
    place: Place,
    /// True when one client is kept for all questions.
    keeps: AtomicBool,
    /// True when the person was told of an owner with an older program.
    told: AtomicBool,
    /// Questions that are asked at the same time share it.
    kept: RwLock<Option<Client>>,
}

impl CommandClient {
    /// A client of a data directory that nothing is asked yet. The caps on compiling are those of `project`.
    pub fn new(home: &Home, project: &Path, owner: &Arc<dyn Owner>) -> Self {
        let (home, project, owner) = (home.clone(), project.to_owned(), Arc::clone(owner));
        Self::at(Place::Here { home, project, owner })
    }

    /// A client of a server elsewhere.
    pub fn of_server(server: Arc<ServerClient>) -> Self {
        Self::at(Place::Server(server))
    }

    fn at(place: Place) -> Self {
        Self { place, keeps: AtomicBool::new(false), told: AtomicBool::new(false), kept: RwLock::default() }
    }

    /// True when a server elsewhere is asked.
    pub fn is_of_server(&self) -> bool {
        matches!(self.place, Place::Server(_))
    }

    /// From now on one client is asked everything, until [`Self::release`].
    pub fn keep(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Hands over the client that is kept, if there is one. A command calls this before it prints what somebody may
    /// read in a pager, or does something that takes long and asks nothing.
    pub async fn release(&self) {
        self.keeps.store(false, Ordering::Relaxed);
        let kept = self.kept.write().await.take();
        if let Some(client) = kept {
            owner::hand_over(client).await;
        }
    }

    /// As [`Self::release`], but runs that are worked on here are stopped without waiting for long; they are resumed
    /// later.
    pub async fn close(&self) {
        self.keeps.store(false, Ordering::Relaxed);
        let kept = self.kept.write().await.take();
        if let Some(client) = kept {
            client.close().await;
        }
    }

    /// The client itself, which the caller hands over: the one that is kept, or a new one.
    pub async fn take(&self) -> fault::Result<Client> {
        self.let_go_of_other_owner();
        let kept = self.kept.write().await.take();
        match kept {
            Some(own) => Ok(own),
            None => self.open().await,
        }
    }

    /// Keeps a client that was opened elsewhere, or taken from here.
    pub async fn put(&self, client: Client) {
        self.keep();
        *self.kept.write().await = Some(client);
    }

    async fn call_now<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        if self.keeps.load(Ordering::Relaxed) {
            return self.kept().await?.call(request).await;
        }
        let client = self.open().await?;
        let answered = client.call(request).await;
        owner::hand_over(client).await;
        answered
    }

    /// For an operation that may be carried out twice: if the owner stops meanwhile, the next owner is asked again.
    async fn call_again<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        let mut tries = OWNERS_MAX;
        loop {
            let answered = self.call_now(request.clone()).await;
            tries -= 1;
            let pause = answered.as_ref().err().filter(|error| may_repeat::<O>(error)).and_then(pause_after);
            let pause = pause.filter(|_| tries > 0);
            let Some(pause) = pause else { return answered };
            self.let_go_of_other_owner();
            tokio::time::sleep(pause).await;
        }
    }

    /// The client that is kept, opened where there is none yet.
    async fn kept(&self) -> fault::Result<RwLockReadGuard<'_, Client>> {
        loop {
            let kept = self.kept.read().await;
            if let Ok(client) = RwLockReadGuard::try_map(kept, Option::as_ref) {
                return Ok(client);
            }
            let mut kept = self.kept.write().await;
            if kept.is_none() {
                *kept = Some(self.open().await?);
            }
        }
    }

    async fn open(&self) -> fault::Result<Client> {
        match &self.place {
            Place::Here { home, project, owner } => {
                let client = owner.open(home, project).await?;
                if !client.is_owner() {
                    self.tell_of_outdated_owner(home);
                }
                Ok(client)
            }
            Place::Server(server) => Ok(Client::Server(Arc::clone(server))),
        }
    }

    /// Says once that the owner goes on with the program that was here before an update.
    fn tell_of_outdated_owner(&self, home: &Home) {
        if let Some(pid) = home.outdated_owner()
            && !self.told.swap(true, Ordering::Relaxed)
        {
            errln!(
                "note: process {pid} answers, and its program was replaced since it started; nothing is lost; end it with \
                 `kill {pid}` and start it again to use the new one"
            );
        }
    }

    /// Drops the client of an owner elsewhere; the next question finds who owns the data directory then. A client that
    /// another question has in use stays: that question may take long, and drops it itself if its owner is gone.
    fn let_go_of_other_owner(&self) {
        if let Ok(mut kept) = self.kept.try_write() {
            drop(kept.take_if(|client| !client.is_owner()));
        }
    }
}

impl Transport for CommandClient {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        match O::HANDLING {
            Handling::Look | Handling::Repeat => self.call_again(request).await,
            Handling::Once | Handling::Maintain => {
                // Whoever owned the data directory may have stopped since the last question. A server that goes away
                // may have done what it was asked, so it is not asked again.
                self.let_go_of_other_owner();
                self.call_now(request).await
            }
        }
    }
}
