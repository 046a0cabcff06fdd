//! Agents as records: their settings, the artifact that passes from run to run, and the results of executions.
//!
//! An [`AgentRecord`] holds the code, its limits and its grants. Each run finds the [`Artifact`] of the run before it
//! and leaves one, unless another run left one meanwhile. It is made by [`compress`](compress::compress), and its size
//! is bounded over any number of runs. Every execution has an [`ExecutionResult`], also without anything to execute.
//!
//! It refuses to run anything, to read a clock or a disk, and to treat an unreadable artifact as a missing one.

mod admission;
mod artifact;
pub mod compress;
mod error;
mod record;
mod result;

pub use admission::{Admission, AdmissionDecision, AdmissionRequest, AdmitAll};
pub use artifact::{
    Artifact, ArtifactHead, NewArtifactVersion, STATE_BYTES_MAX, SUMMARY_BYTES_MAX, VERSIONS_MAX, rfc3339,
};
pub use error::AgentError;
pub use record::{
    AgentCode, AgentGrants, AgentLimits, AgentPatch, AgentRecord, CONFIG_BYTES_MAX, NewAgent, SOURCE_BYTES_MAX,
    SummaryBy, WASM_BYTES_MAX,
};
pub use result::{ArtifactOutcome, ExecutionResult};
