//! Notifications to the operator's command, webhook or mailbox: when a run asks, parks, fails or completes, or a task
//! of a schedule has failed for good. The `longhaul.toml` of a run's project configures the recipients for the run;
//! `server.toml` of the data directory configures those for tasks.
//!
//! A notification is written to the store in the transaction of its event, so a kill loses none. It is sent once as far
//! as can be known: an attempt is counted before it is sent, and an attempt that a kill interrupted is repeated under
//! the same id.
//!
//! | module | holds |
//! |---|---|
//! | `notifier` | notifications in the store, and their delivery when they are due |
//! | [`notification`] | the content of a notification |
//! | `send` | the delivery of one notification on one channel: a command, a webhook, a mailbox |
//!
//! A notification names its run or task and the command to type. This crate refuses to include text of agents, which
//! may hold secrets or prompts, unless the operator allows it, and it changes nothing about a run or a task.

pub mod notification;
mod notifier;
mod send;

pub use notifier::{Notifier, put_notification_of, put_notifications};
