//! State in PostgreSQL, 15 or later: one owner at a time, workers beside it, fenced commits, content by digest.
//!
//! [`PostgresStore`] is a [`Store`](longhaul_core::store::Store) whose tables are in a schema of a database. One
//! process owns it by a lease; others wait in [`PostgresStore::wait_and_open`] and take over when it ends, sleeps or is
//! cut off. A lease that ran out is taken up again by its owner where nobody took it meanwhile.
//!
//! Other processes may write beside the owner: each joins by [`PostgresStore::join`] on a seat of its own, a row like
//! that of the owner, and is evicted by [`Seats`](longhaul_core::store::Seats) once its lease ran out.
//!
//! Every commit is one statement, which also proves the right to commit: it moves the head of its row only where the
//! nonce and the epoch of the claim, the expected head, the lease and the timeline of the server match. A late one
//! finds no row. So a commit whose outcome is unknown is sent again as it was, until the head says what became of it.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | the table `[store]` |
//! | `schema.rs` | the tables, which it documents, and the steps that make them |
//! | `connect.rs` | connections: TLS, settings of the session, what a server must be |
//! | `error.rs` | the meaning of the client's and the server's errors |
//! | `protocol.rs` | the decisions of an owner, as a machine that tests simulate |
//! | `lease.rs` | the row of the owner or of a worker: claim, renewal, return, loss |
//! | `opening.rs` | attempts to claim that row, and the wait for it |
//! | `fold.rs` | batches as conditions and last values; those that go together |
//! | `append.rs` | the fenced statement, the only one that changes the store |
//! | `writer.rs` | the task that commits, and settles unknown outcomes |
//! | `commits.rs` | the number of commits, for whoever remembers it |
//! | `read.rs` | connections for reads, and evictions |
//! | `blob.rs` | the storage format of content |
//! | `outside.rs` | the rows about objects outside of the database |
//! | `content.rs` | content wherever it is: in its row, or in the object that the row names |
//! | `storing.rs` | content on its way into the store and out of it |
//! | `maintain.rs` | reading everything, removal of unreferenced content |
//! | `counts.rs` | the counts of renewals, commits and refusals, for metrics |
//! | `report.rs` | the state of a server for the doctor |
//! | `clock.rs` | the time of this machine, for the lease and for pauses |
//! | `background.rs` | the thread with a runtime, on which all connections live |
//!
//! Time is the database's. Only the question whether an effect may begin is answered by this machine's clock, from
//! before the claim was sent. This crate keeps no password and never waits without a bound. It needs no session: no named
//! statement, no LISTEN, no lock beyond a transaction. So a pooler may be between, unless it takes no transaction.

mod append;
mod background;
mod blob;
mod clock;
mod commits;
mod config;
mod connect;
mod content;
mod counts;
mod error;
mod fold;
mod lease;
mod maintain;
mod opening;
mod outside;
mod postgres_store;
mod protocol;
mod read;
mod report;
mod schema;
mod storing;
mod writer;

pub use commits::CommitCount;
pub use config::PostgresConfig;
pub use lease::{Holder, LeaseLost, Waiting};
pub use longhaul_core::crash::CrashHook;
pub use longhaul_objects::ContentConfig;
pub use postgres_store::{PostgresOptions, PostgresStore, Promotion};
pub use report::{ServerReport, inspect, probe_content};
pub use schema::{FORMAT, KEY_BYTES_MAX};
