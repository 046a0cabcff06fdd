//! The graph of an agent's steps of code: what each step reads and writes, which steps depend on which, what is stale
//! after a change and in which order it is run again.
//!
//! Pure: nothing here runs code, reads a clock or does input and output. Sources are hostile: every analysis has caps,
//! and an answer about a source is a promise only about names, never about what the code does. Running steps is the
//! host's, which tells this crate what it observed.

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
    Analysis, AnalysisMode, NameUse, Python, Reason, Settled, Span, StepLanguage, SyntaxError, VariableName,
};
pub use graph::{Edge, Graph, MissedEdge, Node, NodeState, Observed, StepGraphError, StepId};
pub use replay::{NextStep, Replay, ReplayError, ReplaySettings, ReportOutcome, Skip, StepHistory, StepRun};
pub use step::{Delta, Exception, KeptValues, StepEnd, StepReport, StepRequest, ValueGroup};
