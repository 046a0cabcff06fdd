//! The artifact that a run passes to the next run of the same agent. Its head has a version that only grows, also over
//! a clearing, so that a writer who names the version that they saw never overwrites a newer one.
//!
//! A run names the version that it began with. Of runs that overlap, the first to end is taken over whole; the others
//! are counted as conflicts and change nothing, so that no version mixes the states of two runs.

use crate::AgentError;
use longhaul_core::Name;
use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a state as compact JSON: 1 MiB.
pub const STATE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a summary.
pub const SUMMARY_BYTES_MAX: usize = 4_000;
/// Versions that are kept of one artifact, the present one among them.
pub const VERSIONS_MAX: u64 = 20;

/// The state that a run passes to the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// The agent.
    pub agent: Name,
    /// Any JSON, kept whole. At most [`STATE_BYTES_MAX`].
    pub state: Value,
    /// Short summary of the last run.
    pub summary: String,
    /// Time of this version, as RFC 3339 in UTC.
    pub created_at: String,
    /// Runs that have ended, since the beginning or the last clearing.
    pub run_count: u64,
    /// Counts the changes from 1 on.
    pub version: u64,
    /// Author of this version: `task t-3f9c02d1a4be`, or `a person`.
    pub made_by: String,
}

/// The stored row: the last version, and the artifact unless it was cleared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactHead {
    /// 0 before the first.
    pub version: u64,
    /// The artifact; none before the first run, and after a clearing.
    pub artifact: Option<Artifact>,
    /// Runs that have ended since this version, and that had begun with an earlier one: they changed nothing.
    #[serde(default)]
    pub conflict_count: u64,
}

impl ArtifactHead {
    /// Reads the stored row; none means a first run.
    ///
    /// # Errors
    /// [`AgentError::Damaged`] for a row that cannot be read, or belongs to another agent.
    pub fn read(agent: &Name, bytes: Option<&[u8]>) -> Result<Self, AgentError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let damaged = |why: String| AgentError::Damaged { name: agent.to_string(), why };
        let head: Self = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        match &head.artifact {
            Some(artifact) if artifact.agent != *agent => Err(damaged(format!("it is that of `{}`", artifact.agent))),
            Some(artifact) if artifact.version != head.version => {
                Err(damaged(format!("it has version {}, and its head says {}", artifact.version, head.version)))
            }
            _ if head.version == 0 => Err(damaged("it has no version".to_owned())),
            _ => Ok(head),
        }
    }

    /// Refuses a writer who saw another version; none accepts any version.
    ///
    /// # Errors
    /// [`AgentError::Changed`].
    pub fn expect(&self, agent: &Name, version: Option<u64>) -> Result<(), AgentError> {
        match version {
            Some(expected) if expected != self.version => Err(AgentError::Changed {
                what: "the artifact",
                name: agent.to_string(),
                found: self.version,
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// Runs that have ended so far, those among them that changed nothing.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.artifact.as_ref().map_or(0, |artifact| artifact.run_count).saturating_add(self.conflict_count)
    }

    /// The head after a run that had begun with another version: only the count of such runs changes.
    #[must_use]
    pub fn conflicted(&self) -> Self {
        Self { conflict_count: self.conflict_count.saturating_add(1), ..self.clone() }
    }

    /// The head with another state, one version on.
    ///
    /// # Errors
    /// [`AgentError::TooLong`] for a state over [`STATE_BYTES_MAX`].
    pub fn with(&self, agent: &Name, next: NewArtifactVersion) -> Result<Self, AgentError> {
        let bytes = serde_json::to_vec(&next.state).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > STATE_BYTES_MAX {
            let remedy = "keep less in it, or keep files in a directory that the agent is granted";
            return Err(AgentError::TooLong { field: "state", bytes, max: STATE_BYTES_MAX, remedy });
        }
        let version = self.version + 1;
        let artifact = Artifact {
            agent: agent.clone(),
            state: next.state,
            summary: truncate(&next.summary, SUMMARY_BYTES_MAX),
            created_at: rfc3339(next.at_ms),
            run_count: next.run_count,
            version,
            made_by: next.made_by,
        };
        Ok(Self { version, artifact: Some(artifact), conflict_count: 0 })
    }

    /// The head without an artifact, one version on.
    #[must_use]
    pub fn cleared(&self) -> Self {
        Self { version: self.version + 1, artifact: None, conflict_count: 0 }
    }
}

/// The content of an artifact's next version.
#[derive(Clone, Debug, PartialEq)]
pub struct NewArtifactVersion {
    /// The state, as any JSON.
    pub state: Value,
    /// Short summary; text over [`SUMMARY_BYTES_MAX`] is cut.
    pub summary: String,
    /// Runs that have ended.
    pub run_count: u64,
    /// Time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Author.
    pub made_by: String,
}

/// A time as RFC 3339 in UTC; a time outside of the calendar is its number.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let timestamp = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    timestamp.map_or_else(|| format!("{ms} ms"), |timestamp| timestamp.to_string())
}
