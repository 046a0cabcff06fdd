//! Who watches a run live. Events are in the store; this only says that there are new ones, and what a
//! model is saying right now. A slow watcher loses the live view, never an event.

use longhaul_capabilities::Watch;
use longhaul_core::InvocationId;
use longhaul_core::event::RunEvent;
use tokio::sync::broadcast;

/// Things that a watcher may lag behind before it has to read the store again.
const BACKLOG: usize = 1_024;

/// Something that a watcher hears.
#[derive(Clone, Debug)]
pub enum Heard {
    /// An event, which is durable.
    Event(RunEvent),
    /// A part of what a model says, which is not.
    Token {
        /// Who asked.
        invocation: InvocationId,
        /// The text.
        text: String,
    },
    /// The run's actor is gone: it ended, was paused, or its process stops.
    Gone {
        /// What ended it, if it was not the run itself.
        why: Option<String>,
    },
}

/// The watchers of one run.
#[derive(Clone)]
pub struct Bus(broadcast::Sender<Heard>);

impl Default for Bus {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Bus {
    /// Tells everyone who watches.
    pub fn tell(&self, heard: Heard) {
        // Nobody watching is no error.
        let _ = self.0.send(heard);
    }

    /// Hears everything from now on.
    pub fn watch(&self) -> broadcast::Receiver<Heard> {
        self.0.subscribe()
    }
}

impl Watch for Bus {
    fn heard(&self, invocation: &InvocationId, text: &str) {
        self.tell(Heard::Token { invocation: invocation.clone(), text: text.to_owned() });
    }
}
