//! What a watcher of a run sees: events, which are durable, and parts of what models say, which are not.

use longhaul_core::event::RunEvent;
use longhaul_core::stream::StreamToken;

/// Something seen of a run.
#[derive(Clone, Debug)]
pub enum RunNotification {
    /// An event.
    Event(RunEvent),
    /// A part of what a model says.
    Token(StreamToken),
    /// Parts of what models say were lost, since they were not read in time.
    Lagged,
    /// The watcher did not read, and is let go. It may watch again, from the last event on.
    Dropped,
    /// Nobody works on the run any more, for a reason of its own or because of an error.
    Gone(Option<String>),
}
