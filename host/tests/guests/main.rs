//! Plugins and their authors: the contract and its versions, building, conformance, installing, and the READMEs of the
//! SDKs. Guests that mean harm are in `hostile`.

#[path = "../common/mod.rs"]
mod common;

mod authors;
mod built;
mod conform;
mod contract;
mod install;
mod readmes;
mod upgrade;
