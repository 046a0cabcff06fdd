//! Points in the past of a run.
//!
//! | file | holds |
//! |---|---|
//! | `points.rs` | a point, found in the events, states and journals of a run |
//!
//! Nothing here opens a store, asks a person, or changes the run that it reads.

pub mod points;
