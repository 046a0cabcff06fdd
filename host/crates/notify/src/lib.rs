//! Notifications: when a run asks, parks, fails or completes, or a task of a schedule has failed for good, a command, an
//! address or a mailbox of the operator's is told. The `longhaul.toml` of a run's project says who is told of the run;
//! `server.toml` of the data directory says who is told of a task.
//!
//! A notification is a letter in the store, written in the transaction of the event that it is about, so a kill loses
//! none. A letter is sent once as far as can be known: an attempt is counted before it leaves, and an attempt that a kill
//! cut off is made again under the same id.
//!
//! | module | holds |
//! |---|---|
//! | `notifier` | letters in the store, and their delivery when they are due |
//! | [`letter`] | what a letter says |
//! | `send` | one letter on one way: a command, an address, a mailbox |
//!
//! A letter says which run or task it is about and what to type. This crate refuses to put in what agents wrote, which may
//! hold secrets or prompts, unless the operator says so, and it changes nothing about a run or a task.

pub mod letter;
mod notifier;
mod send;

pub use notifier::{Notifier, put_notification_of, put_notifications};
