//! The five roles: the interface that each exports, and the capabilities that its world imports.

use longhaul_capabilities::Capability;

/// The role of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Plans and replans.
    Planner,
    /// Does a task.
    Agent,
    /// Judges an output.
    Evaluator,
    /// Executes calls that a model cannot.
    Tool,
    /// Stores and searches memory.
    Memory,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Planner, Self::Agent, Self::Evaluator, Self::Tool, Self::Memory];

    /// The name of its interface.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Agent => "agent",
            Self::Evaluator => "evaluator",
            Self::Tool => "tool",
            Self::Memory => "memory",
        }
    }

    /// The imports of its world. The same as in `wit/v0.1/worlds.wit`; a test compares them.
    #[must_use]
    pub fn capabilities(self) -> &'static [Capability] {
        use Capability::{
            Artifact, Checks, Clock, Conversation, Decisions, Delegate, Graph, Keyvalue, Log, Progress, Recall, Timer,
            Tools,
        };
        match self {
            Self::Planner => &[Conversation, Recall, Decisions, Clock, Timer, Log],
            Self::Agent => &[
                Conversation,
                Tools,
                Checks,
                Delegate,
                Recall,
                Decisions,
                Progress,
                Artifact,
                Graph,
                Clock,
                Timer,
                Log,
            ],
            Self::Evaluator => &[Conversation, Checks, Clock, Log],
            Self::Tool | Self::Memory => &[Keyvalue, Clock, Timer, Log],
        }
    }

    /// True when it learns about the world only through its journal.
    #[must_use]
    pub fn is_pure(self) -> bool {
        matches!(self, Self::Planner | Self::Agent | Self::Evaluator)
    }
}
