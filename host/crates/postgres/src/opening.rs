//! The way to a store: attempts to claim its row, of the owner or of a worker, until one succeeds or the caller gives
//! up.
//!
//! Only the owner makes tables and takes the steps that older ones lack. A worker finds them as they are, and waits
//! where they are not those of this version. Neither waits without asking its caller first.

use crate::background::Background;
use crate::clock::jitter;
use crate::config::PostgresConfig;
use crate::connect::{Connection, Facts, Server};
use crate::content::Objects;
use crate::error::Trouble;
use crate::lease::{Claim, Claimed, Holder, Lease, OnLost, Waiting};
use crate::schema::{FORMAT, Names, SeatRow, newer};
use longhaul_core::store::StoreError;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// The pause of a standby between two attempts. With what is added at random it asks about once a second.
const POLL: Duration = Duration::from_millis(500);

/// The parts that every attempt to open a store shares.
pub(crate) struct Opening {
    server: Arc<Server>,
    names: Names,
    seat: SeatRow,
    lease: Arc<Lease>,
    holder: Holder,
    connections_max: u32,
    objects: Option<Objects>,
    background: Background,
}

/// A store whose row is claimed, as the parts that it is made of.
pub(crate) struct Opened {
    pub(crate) server: Arc<Server>,
    pub(crate) names: Names,
    pub(crate) seat: SeatRow,
    pub(crate) lease: Arc<Lease>,
    pub(crate) claim: Claim,
    /// The connection of the claim, for commits.
    pub(crate) connection: Connection,
    pub(crate) connections_max: u32,
    /// Objects outside of the database, where settings name a place for them.
    pub(crate) objects: Option<Objects>,
    pub(crate) background: Background,
}

/// A claim, and the connection it was made over.
type Owned = (Claim, Connection);

impl Opening {
    /// Opens the store on the row of its owner.
    pub(crate) fn of_owner(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        (holder, on_lost): (&Holder, &OnLost),
    ) -> Result<Self, StoreError> {
        let names = Names::of(&config.schema);
        let seat = names.owner_seat();
        Self::new(config, variable, (holder, on_lost), (names, seat))
    }

    /// Opens the store on the seat of a worker.
    pub(crate) fn of_worker(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        (holder, on_lost): (&Holder, &OnLost),
        name: &str,
    ) -> Result<Self, StoreError> {
        let names = Names::of(&config.schema);
        let seat = names.worker_seat(name)?;
        Self::new(config, variable, (holder, on_lost), (names, seat))
    }

    /// Claims the row as soon as nobody has it. Before each pause `waiting` is called with its reason, and may end the
    /// wait.
    pub(crate) fn wait(self, waiting: &mut dyn FnMut(&Waiting) -> ControlFlow<()>) -> Result<Opened, StoreError> {
        let of_server = |error: StoreError| (Waiting::Server { detail: error.to_string() }, error);
        let (mut has_waited, mut was_held) = (false, false);
        loop {
            let (reason, error) = match self.attempt(was_held) {
                Ok(Claimed::Ours(owned)) => return Ok(self.opened(owned)),
                Ok(Claimed::Others(reason)) => {
                    was_held = true;
                    (reason, self.server.place.held())
                }
                // In the middle of a failover a server is a replica for a moment, or takes nobody: whoever stands by
                // outlives that.
                Err(Trouble::Final(error @ StoreError::Refused { .. })) if has_waited => of_server(error),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again(error) | Trouble::Overtaken(error) | Trouble::Unknown(error)) => of_server(error),
            };
            has_waited = true;
            if waiting(&reason).is_break() {
                return Err(error);
            }
            std::thread::sleep(pause(&reason));
        }
    }

    fn new(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        (holder, on_lost): (&Holder, &OnLost),
        (names, seat): (Names, SeatRow),
    ) -> Result<Self, StoreError> {
        let server = Arc::new(Server::of(config, variable)?);
        let lease = Arc::new(Lease::new(&server, &seat, Arc::clone(on_lost))?);
        let background = Background::start().map_err(|why| server.place.failed(format!("no thread: {why}")))?;
        let objects = config.content.as_ref().map(|content| Objects::open(content, variable)).transpose()?;
        let (holder, connections_max) = (holder.clone(), config.connections_max);
        Ok(Self { server, names, seat, lease, holder, connections_max, objects, background })
    }

    /// Tries to claim the row. `was_held`: there was a store, so that none is made.
    fn attempt(&self, was_held: bool) -> Result<Claimed<Owned>, Trouble> {
        let (server, names, lease) = (Arc::clone(&self.server), self.names.clone(), Arc::clone(&self.lease));
        let (holder, is_worker) = (self.holder.clone(), self.seat.worker.is_some());
        let claimed = self.background.wait(async move {
            if is_worker {
                join(&server, &names, &lease, &holder).await
            } else {
                claim(&server, &names, &lease, &holder, was_held).await
            }
        });
        claimed.unwrap_or_else(|| Err(Trouble::Final(self.server.place.failed("its thread ended"))))
    }

    fn opened(self, (claim, connection): Owned) -> Opened {
        let Self { server, names, seat, lease, holder: _, connections_max, objects, background } = self;
        Opened { server, names, seat, lease, claim, connection, connections_max, objects, background }
    }
}

/// Makes the tables if there are none, and claims the store. Steps that older tables lack are taken by their owner.
/// Tables that were there and are gone are not made: they are about to be restored.
async fn claim(
    server: &Server,
    names: &Names,
    lease: &Lease,
    holder: &Holder,
    was_held: bool,
) -> Result<Claimed<Owned>, Trouble> {
    let (mut connection, facts, found) = reach(server, names).await?;
    if found.is_none() {
        if was_held {
            return Err(Trouble::Again(server.place.unreachable("its tables are gone, as during a restore")));
        }
        server.bounded(server.statement_max, names.migrate(&connection.client, 0)).await?;
    }
    let claim = match lease.claim(&connection.client, holder).await? {
        Claimed::Ours(claim) => claim,
        Claimed::Others(waiting) => return Ok(Claimed::Others(waiting)),
    };
    if let Some(older) = found.filter(|found| *found < FORMAT) {
        server.bounded(server.statement_max, names.migrate(&connection.client, older)).await?;
    }
    lease.announce(&connection.client, holder).await?;
    server.prepare_commits(&mut connection, &facts).await?;
    Ok(Claimed::Ours((claim, connection)))
}

/// Claims the seat of a worker in the tables of this version.
async fn join(server: &Server, names: &Names, lease: &Lease, holder: &Holder) -> Result<Claimed<Owned>, Trouble> {
    let (mut connection, facts, found) = reach(server, names).await?;
    let wait = |detail: &str| Err(Trouble::Again(server.place.unreachable(detail)));
    match found {
        None => return wait("no server has made its tables yet"),
        Some(older) if older < FORMAT => return wait("no server has updated its tables to this version yet"),
        Some(_) => {}
    }
    let claim = match lease.claim(&connection.client, holder).await? {
        Claimed::Ours(claim) => claim,
        Claimed::Others(waiting) => return Ok(Claimed::Others(waiting)),
    };
    lease.announce(&connection.client, holder).await?;
    server.prepare_commits(&mut connection, &facts).await?;
    Ok(Claimed::Ours((claim, connection)))
}

/// A connection to a server that is fit for a store, and the format of the tables there, which is not a newer one.
async fn reach(server: &Server, names: &Names) -> Result<(Connection, Facts, Option<u64>), Trouble> {
    let connection = server.connect_to_any().await.map_err(Trouble::of_connection)?;
    let facts = server.facts(&connection).await.map_err(Trouble::of_connection)?;
    facts.check(&server.place).map_err(Trouble::Final)?;
    server.check_pooler(&connection, &facts).await?;
    let found = server.bounded(server.statement_max, names.format(&connection.client)).await?;
    match found.and_then(|found| newer(&server.place, found)) {
        Some(refused) => Err(Trouble::Final(refused)),
        None => Ok((connection, facts, found)),
    }
}

/// The time until a standby asks again.
fn pause(reason: &Waiting) -> Duration {
    let soon = match reason {
        Waiting::Holder { left_ms, .. } => POLL.min(Duration::from_millis(*left_ms)),
        Waiting::Server { .. } => POLL,
    };
    soon + jitter(POLL)
}
