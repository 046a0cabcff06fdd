//! The capabilities of a guest: one file for each.
//!
//! Each host function is a gate, a call and a conversion: it checks the grant, asks the journal, has a trait of `core`
//! do the work, and records the answer in the journal before the guest sees it. A refusal is data for the guest; a
//! [`Stop`] ends the invocation. Nothing here compiles, links or limits instances, and nothing reads the machine's
//! clock in a pure world.

mod approval;
mod artifact;
mod checks;
mod console;
mod conversation;
mod counted;
mod ctx;
mod decisions;
mod delegate;
mod disk;
mod disk_quota;
mod gate;
mod graph;
pub mod http;
mod in_flight;
mod keyvalue;
mod leased_effect;
mod log;
mod meter;
mod noting;
pub mod null;
mod pipe;
mod poll;
mod progress;
mod recall;
mod remembered;
mod setup;
mod steps;
mod stop;
mod supervised;
mod time;
mod tools;
pub mod wasi;

pub use console::{Captured, Console};
pub use ctx::Ctx;
pub use disk_quota::DISK_BYTES_MAX;
pub use in_flight::InFlight;
pub use log::{LogBook, LogLine};
pub use meter::Meter;
pub use noting::turns;
pub use pipe::PipeEnd;
pub use setup::{ConversationUpdate, Exchange, InvocationScope, InvocationSetup, Models, Services, Watch};
pub use stop::Stop;

use longhaul_bindings::imports;
use wasmtime::component::{HasSelf, Linker};

/// The capabilities that a world may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Conversations with a model.
    Conversation,
    /// Calls of tools.
    Tools,
    /// Runs of pinned checks.
    Checks,
    /// Delegation to sub-agents.
    Delegate,
    /// Working and episodic memory.
    Recall,
    /// The log of decisions.
    Decisions,
    /// The log of progress.
    Progress,
    /// The artifact of an agent's runs.
    Artifact,
    /// Graphs of code steps, of which only affected ones run again.
    Graph,
    /// A private key-value space.
    Keyvalue,
    /// The time.
    Clock,
    /// Durable sleep.
    Timer,
    /// The plugin's log.
    Log,
}

impl Capability {
    /// The name of its interface.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Tools => "tools",
            Self::Checks => "checks",
            Self::Delegate => "delegate",
            Self::Recall => "recall",
            Self::Decisions => "decisions",
            Self::Progress => "progress",
            Self::Artifact => "artifact",
            Self::Graph => "graph",
            Self::Keyvalue => "keyvalue",
            Self::Clock => "clock",
            Self::Timer => "timer",
            Self::Log => "log",
        }
    }

    /// Links the host's implementation.
    ///
    /// # Errors
    /// When the linker has it already.
    pub fn add_to_linker(self, linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
        type Own = HasSelf<Ctx>;
        match self {
            Self::Conversation => imports::conversation::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Tools => imports::tools::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Checks => imports::checks::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Delegate => imports::delegate::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Recall => imports::recall::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Decisions => imports::decisions::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Progress => imports::progress::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Artifact => imports::artifact::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Graph => imports::graph::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Keyvalue => imports::keyvalue::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Clock => imports::clock::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Timer => imports::timer::add_to_linker::<_, Own>(linker, Ctx::called),
            Self::Log => imports::log::add_to_linker::<_, Own>(linker, Ctx::called),
        }
    }
}
