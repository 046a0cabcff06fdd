//! The graph of an agent's steps of code: the names that each step reads and writes, the dependencies between steps,
//! the stale steps after a change, and their replay order.
//!
//! Pure: nothing here runs code, reads a clock or does input and output. Sources are hostile: every analysis has caps,
//! and its result is reliable only for names, never for the code's behaviour. The host runs steps, and reports its
//! observations to this crate.

pub mod analysis;
pub mod diagnose;
pub mod draw;
pub mod export;
pub mod graph;
pub mod patch;
pub mod record;
pub mod replay;
mod similar_names;
pub mod step;

pub use analysis::{
    Analysis, AnalysisMode, DottedName, NameUse, Obligation, Python, Reason, Settled, Span, StepLanguage, SyntaxError,
    ValueKind, VariableName,
};
pub use graph::{Edge, Graph, MissedEdge, Node, NodeState, Observed, StepGraphError, StepId};
pub use replay::{NextStep, Replay, ReplayError, ReplaySettings, ReportOutcome, Skip, StepHistory, StepRun};
pub use step::{Delta, Exception, KeptValues, StepEnd, StepReport, StepRequest, ValueGroup};
