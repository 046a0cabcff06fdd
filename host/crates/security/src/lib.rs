//! Permissions: trust in the file of a project, identities of projects, secrets, signatures, and the audit log.
//!
//! | module | holds |
//! |---|---|
//! | [`identity`] | the project of a checkout |
//! | [`trust`] | the powers of a `longhaul.toml` that a person agreed to |
//! | [`secrets`] | the values of secrets, and the tools and hosts that they are bound to |
//! | [`signing`] | the signatures of checkpoints and backups, and the accepted signers |
//! | [`audit`] | granted permissions and who granted them, as a chain of records |
//!
//! This crate decides and records. It asks no person, which surfaces do. It reaches no network, and hands no secret to
//! a tool or a host that it is not bound to.

pub mod audit;
pub mod identity;
pub mod secrets;
pub mod signing;
pub mod trust;
