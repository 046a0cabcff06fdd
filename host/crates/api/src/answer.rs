//! What a surface is answered: one list, the same for all surfaces.

use crate::checks::{Finding, Overview};
use crate::runs::{CarriedInvocation, FeatureRecheck, ProjectSummary, ReplayResult, RevertOutcome, RunSummary, Status};
use longhaul_core::event::RunEvent;
use longhaul_core::journal::{Finished, JournalEntry};
use longhaul_core::{InvocationId, RunId};
use longhaul_mcp::Definition;
use longhaul_records::proposals::Proposal;
use longhaul_worktree::Logged;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It is done; the run is this one.
    Run {
        /// Its name.
        run: RunId,
    },
    /// The goal is read again.
    Reread {
        /// The run.
        run: RunId,
        /// What changed, one line each.
        changes: Vec<String>,
    },
    /// What is wrong with a project.
    Checked {
        /// All of it; none: nothing is.
        findings: Vec<Finding>,
        /// What would run.
        overview: Box<Overview>,
    },
    /// A revert is done.
    Reverted(Box<RevertOutcome>),
    /// Commits.
    Log {
        /// The branch.
        branch: String,
        /// The commit that the run began at.
        base: String,
        /// Newest first.
        commits: Vec<Logged>,
    },
    /// What the checks said.
    Rechecked {
        /// Its name.
        run: RunId,
        /// The features that pass, or did.
        features: Vec<FeatureRecheck>,
    },
    /// What was kept.
    Kept {
        /// JSON, or whatever was kept.
        text: String,
    },
    /// A project is made.
    Project {
        /// Its name.
        project: String,
        /// Where it is.
        directory: PathBuf,
        /// Whether its git repository was made, too.
        repository_is_new: bool,
    },
    /// Projects.
    Projects {
        /// The one that something happened to last comes first.
        projects: Vec<ProjectSummary>,
    },
    /// Runs in short.
    Runs {
        /// Oldest first.
        runs: Vec<RunSummary>,
    },
    /// A run.
    Status(Box<Status>),
    /// The invocations of a run.
    Invocations {
        /// In the order in which they started; a delegation follows the one that asked for it.
        invocations: Vec<InvocationId>,
    },
    /// The entries of an invocation.
    Entries {
        /// Which.
        invocation: InvocationId,
        /// With their numbers.
        entries: Vec<(u32, JournalEntry)>,
        /// How it ended, if it has.
        finished: Option<Finished>,
    },
    /// What replays gave.
    Replayed {
        /// One for each invocation.
        invocations: Vec<ReplayResult>,
    },
    /// Events.
    Events {
        /// In order.
        events: Vec<RunEvent>,
    },
    /// Proposals.
    Proposals {
        /// Oldest first, the decided ones included.
        proposals: Vec<Proposal>,
    },
    /// Who carried out what.
    Parts {
        /// In the order in which they started; a delegation follows the one that asked for it.
        parts: Vec<CarriedInvocation>,
    },
    /// What an MCP server says of its tools.
    McpTools {
        /// The digest of all of it, by which it is accepted.
        digest: String,
        /// Each tool.
        tools: Vec<Definition>,
    },
    /// It is accepted.
    Accepted {
        /// The digest.
        digest: String,
    },
}
