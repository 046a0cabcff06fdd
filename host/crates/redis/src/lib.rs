//! The data that several machines share in a Redis server: memory, and waiting runs.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | `[memory.redis]` and `[checkpoints.redis]` |
//! | `link.rs` | one connection, made again when it breaks |
//! | `memory.rs` | the memory backend |
//! | `shared.rs` | snapshots of runs, and the leases on them |
//!
//! A key never becomes a pattern: names are found by ordered indexes, so `*` and `[` are letters like any other. Redis
//! forgets: everything here has a lifetime, and the journal of a run is never stored only here. Refuses a password in a
//! configuration file, and TLS without a check of the other side's name.

mod config;
mod link;
mod memory;
mod shared;

pub use config::{RedisConfig, RedisError};
pub use memory::RedisMemory;
pub use shared::SharedRuns;
