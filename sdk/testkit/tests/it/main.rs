//! The kit on shipped plugins.

mod context;
mod kit;
