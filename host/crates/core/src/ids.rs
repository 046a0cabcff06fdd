//! Names of runs and invocations, and ids of projects.

use crate::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The prefix of drawn project ids. A name may have it too, and then it is no drawn id.
const PREFIX: &str = "p-";

/// Hexadecimal digits of such an id, of 80 random bits.
const DIGITS: usize = 20;

/// One run of a project, for example `r-3f9c02d1a4be`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// The id of a run is derived from its project and the time of the request.
    #[must_use]
    pub fn derive(project: &str, asked_at_ms: u64, salt: &[u8]) -> Self {
        let digest = Digest::of_parts(&[project.as_bytes(), &asked_at_ms.to_le_bytes(), salt]);
        Self(format!("r-{}", digest.short()))
    }

    /// An id that a person typed; only the store knows whether the run exists.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of one call of one export of one plugin, which has a journal of its own.
///
/// The id is derived, so that work which was cut off finds its own journal again: the harness derives it from the run
/// and the action, a delegation from the parent and the entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct InvocationId(String);

impl InvocationId {
    /// The invocation that carries out `action` of `run`, for example `r-3f9c02d1a4be/f1/1/generate`.
    #[must_use]
    pub fn of_action(run: &RunId, action: &str) -> Self {
        Self(format!("{run}/{action}"))
    }

    /// The invocation that entry `entry` of this one started.
    #[must_use]
    pub fn child(&self, entry: u32) -> Self {
        Self(format!("{}#{entry}", self.0))
    }

    /// The key of the action that it works for, even after a delegation.
    #[must_use]
    pub fn action(&self) -> &str {
        let own = self.0.split('#').next().unwrap_or_default();
        own.split_once('/').map_or("", |(_, action)| action)
    }

    /// The number of delegations between the harness's request and it.
    #[must_use]
    pub fn depth(&self) -> u32 {
        u32::try_from(self.0.matches('#').count()).unwrap_or(u32::MAX)
    }

    /// An id that was stored or typed.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The feature that it works for; none for a plan, or without a run.
    #[must_use]
    pub fn feature(&self) -> Option<&str> {
        self.0.split(['/', '#']).nth(1)?.strip_prefix("f-")
    }

    /// The run that the invocation belongs to.
    #[must_use]
    pub fn run(&self) -> RunId {
        RunId(self.0.split('/').next().unwrap_or_default().to_owned())
    }
}

impl fmt::Display for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An id for a project without data, such as one that is only inspected: nothing is stored under it.
#[must_use]
pub fn drawn(seed: &[u8; 32]) -> String {
    let digits: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{}", &digits[..DIGITS])
}

/// True when the id of a project was drawn, and is not a name from an earlier version. A checkout of an earlier version
/// has its name for an id, so a name that looks drawn would be taken for one: it then counts as new, which costs it
/// only an unbound secret.
#[must_use]
pub fn is_drawn(id: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}
