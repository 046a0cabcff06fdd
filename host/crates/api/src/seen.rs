//! Notifications to a watcher of a run: durable events, and live parts of models' replies.

use longhaul_core::event::RunEvent;
use longhaul_core::stream::StreamToken;

/// A notification to a watcher of a run.
#[derive(Clone, Debug)]
pub enum RunNotification {
    /// A durable event.
    Event(RunEvent),
    /// A part of a model's reply, while the model writes it.
    Token(StreamToken),
    /// Parts of replies were lost because the watcher read too slowly.
    Lagged,
    /// The watcher did not read for too long and is disconnected. It may watch again from its last event.
    Dropped,
    /// No process works on the run any more. The text is the error that interrupted it, if there was one.
    Gone(Option<String>),
}
