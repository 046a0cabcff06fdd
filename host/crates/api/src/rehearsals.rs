//! Requests and responses about rehearsals, and about moves of runs to other bytes of a plugin. This module replays
//! nothing.
//!
//! The responses are their own published form.

use crate::runs::RunRef;
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Replay runs on other bytes of a plugin, on other settings or on this version of the program. Nothing is executed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RehearseRuns {
    /// The runs, or the beginnings of their names.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The directory of a project whose newest run is meant, where `runs` is empty.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// True for all runs that have not ended, in place of `runs`. Those that have not used the plugin are left out.
    #[serde(default)]
    pub live: bool,
    /// The plugin: `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS` of those that are installed. With `with`, the name
    /// that the runs have for the plugin in that file. None: each invocation has the bytes that its run pinned.
    #[serde(default)]
    pub plugin: Option<String>,
    /// The path of a component.
    #[serde(default)]
    pub with: Option<PathBuf>,
    /// True for the settings of plugins that `longhaul.toml` has now, in place of those that a run began with.
    #[serde(default)]
    pub settings: bool,
    /// The time after which no further invocation is replayed, in milliseconds. None: there is no such time.
    #[serde(default)]
    pub time_ms_max: Option<u64>,
}

impl RehearseRuns {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.with.iter().chain(&self.directory).map(PathBuf::as_path).collect()
    }
}

/// Move a run to other bytes of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MoveRun {
    /// The run.
    pub run: RunRef,
    /// The plugin: `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS` of those that are installed.
    pub plugin: String,
    /// True to move the run also where its rehearsal differs or cannot be told: what has begun ends on the bytes that
    /// it began with, and what begins later has the new ones.
    pub at_boundary: bool,
}

/// The results of rehearsals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RehearsalReport {
    /// The plugin whose bytes took the place of the pinned ones; null: each run had those that it pinned.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub plugin: Option<RehearsedPlugin>,
    /// The runs, in the order of the request.
    pub runs: Vec<RunRehearsal>,
    /// The number of journal entries that were answered in all of them.
    pub entries: u64,
    /// The time that it took, in milliseconds.
    pub duration_ms: u64,
    /// The number of live runs beyond the most that are rehearsed at once.
    pub runs_left_out: usize,
}

/// The bytes that runs were rehearsed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RehearsedPlugin {
    /// The name of the plugin in the runs.
    pub name: String,
    /// The version in its manifest; empty: it has none.
    pub version: String,
    /// The digest of its bytes.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub digest: Digest,
}

/// The result of the rehearsal of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunRehearsal {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The verdict.
    pub verdict: RehearsalVerdict,
    /// The number of its invocations that reached their ends, or the end of what their journals hold so far.
    pub invocations: u32,
    /// The number of journal entries that were answered.
    pub entries: u64,
    /// The first difference; null: there is none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub difference: Option<RequestDifference>,
    /// The reason why it cannot be told; null: it can.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub reason: Option<String>,
}

/// The verdict of a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RehearsalVerdict {
    /// Every invocation asked what its journal holds, and ended alike if it had ended.
    ReachesEnd,
    /// An invocation asked something else, or ended otherwise.
    Differs,
    /// What would be compared is not there, or is not kept.
    CannotTell,
}

/// The first entry at which a rehearsal differs from the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestDifference {
    /// The invocation.
    pub invocation: String,
    /// The number of the entry; one more than the journal has where the end differs.
    pub entry: u32,
    /// What the journal has there, in one line.
    pub recorded: String,
    /// What the rehearsal asked there, in one line.
    pub asked: String,
    /// Both requests as a diff, cut to a readable length: lines with `-` are of the journal, those with `+` new.
    pub lines: Vec<String>,
}

/// A run that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MovedRun {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The plugin that it has now.
    pub plugin: RehearsedPlugin,
    /// The tables of `longhaul.toml` whose plugin it is.
    pub tables: Vec<String>,
    /// The result of its rehearsal.
    pub rehearsal: RunRehearsal,
    /// The unfinished invocations that go on with the new bytes, each with the number of entries that were proved.
    pub proved: BTreeMap<String, u32>,
    /// The unfinished invocations that end on the bytes that they began with.
    pub unmoved: Vec<String>,
}
