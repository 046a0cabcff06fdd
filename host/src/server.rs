//! Ways in from other processes.

pub mod socket;
