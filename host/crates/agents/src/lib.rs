//! Agents as records: what an agent is, what it hands on from run to run, and what an execution of it comes to.
//!
//! An [`AgentRecord`] says whose code is run, within which limits and with which grants. Each run finds the
//! [`Artifact`] of the run before it and leaves one, made by [`compress`](compress::compress): bounded, however often it
//! is repeated. What an execution comes to is always an [`ExecutionResult`], also where there is nothing to execute.
//!
//! It refuses to run anything, to read a clock or a disk, and to take an artifact that cannot be read for none.

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
pub use result::ExecutionResult;
