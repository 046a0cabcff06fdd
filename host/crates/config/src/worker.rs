//! `[worker]` of `server.toml`: a server that works on runs while it stands by, and for which runs it is there.
//!
//! Refuses labels that no run could name, and a number of runs at which none could work. Which run goes to which worker
//! is decided elsewhere.

use crate::labels::{self, LABELS_MAX};
use longhaul_core::fault::{self, bail};
use longhaul_resources::admission::RUNS_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

/// `[worker]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerSettings {
    /// The labels of this server, such as `gpu`: runs that need a label with `[run] labels_needed` are worked on by
    /// servers that have it, those that stand by and the leader alike. Each has 1 to 63 of a-z, 0-9, `.`, `_` and `-`,
    /// and a letter or a digit first. Default none, at most 32.
    #[schemars(length(max = LABELS_MAX), inner(length(min = 1, max = 63), regex(pattern = "^[a-z0-9][a-z0-9._-]*$")))]
    pub labels: Vec<String>,
    /// The most runs that this server works on at once while it stands by; it is given no more. Default: `runs_max` of
    /// `resources.toml`, with the default of that. From 1 to 10,000.
    #[schemars(range(min = 1, max = 10_000))]
    pub runs_max: Option<u32>,
}

impl WorkerSettings {
    /// Refuses invalid values.
    pub(crate) fn check(&self) -> fault::Result<()> {
        labels::check("[worker] labels", &self.labels)?;
        match self.runs_max.filter(|max| !(1..=RUNS_MAX).contains(max)) {
            Some(max) => bail!("[worker] runs_max is {max}; write a number from 1 to {RUNS_MAX}"),
            None => Ok(()),
        }
    }
}
