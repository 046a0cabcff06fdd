//! The rows by which servers with one database share the work on runs, and the choice of a server for a run.
//!
//! One server leads: it has every row that is nobody else's, and gives runs to the others, the workers. A run is in the
//! hands of one of them as long as a claim says so, and that one alone writes its rows then. The leader asks a worker
//! by calls, which are rows, too: whoever reaches the database is reached, and nothing else has to be open between
//! servers.
//!
//! | file | holds |
//! |---|---|
//! | `worker.rs` | what a worker tells of itself |
//! | `claims.rs` | the claims on runs |
//! | `calls.rs` | the calls of the leader, and the replies of workers |
//! | `choice.rs` | the choice of a server for a run, as a pure function |
//!
//! Nothing here opens a store, waits, or knows who is alive: that is the affair of the store's seats
//! ([`Seats`](longhaul_core::store::Seats)).

pub mod calls;
pub mod choice;
pub mod claims;
pub mod worker;

use longhaul_core::fault;
use longhaul_core::store::{Batch, Key, Op, Store, Table};

/// Removes all of these rows from a copy of a store: the servers that they name do not work on the copy.
///
/// # Errors
/// When the store cannot be read.
pub fn forget_all(batch: &mut Batch, store: &dyn Store) -> fault::Result<()> {
    for kind in ["worker", "claim", "call", "reply"] {
        for (key, _) in store.scan(Table::States, &Key::of(kind), None, usize::MAX)? {
            batch.push(Op::Delete(Table::States, Key::from_bytes(key)));
        }
    }
    Ok(())
}
