//! Ways in from other processes, and what a process does that stays.

pub(crate) mod http;
pub mod socket;
pub(crate) mod supervisor;
pub(crate) mod upkeep;
