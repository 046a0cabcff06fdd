//! What a surface can ask for: one list, the same for all surfaces.

use crate::runs::{AskRequest, RunRef};
use longhaul_core::journal::Resolution;
use longhaul_core::work::{FeatureSpec, Plan};
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Something that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Start a run of the project in a directory.
    Run {
        /// The project.
        directory: PathBuf,
        /// What is done to its models.
        models: ModelOptions,
        /// The plan that it follows; none: a planner is asked.
        #[serde(default)]
        plan: Option<Plan>,
        /// Pause when the plan is there.
        plan_only: bool,
        /// Pause after so many sessions.
        #[serde(default)]
        sessions: Option<u32>,
        /// Also when the project was given up.
        #[serde(default)]
        again: bool,
    },
    /// Look for what is wrong with a project, without asking a model.
    Check {
        /// The project.
        directory: PathBuf,
        /// What is done to its models.
        #[serde(default)]
        models: ModelOptions,
    },
    /// Start an ask: a run without a repository.
    Ask {
        /// What is asked.
        question: Box<AskRequest>,
    },
    /// Correct what is worked on; the agent hears it at its next step.
    Steer {
        /// Which.
        run: RunRef,
        /// The task or feature; none: all that is worked on.
        task: Option<String>,
        /// What it is told.
        text: String,
    },
    /// Stop the work on one task or feature; a resume takes it up again.
    CancelTask {
        /// Which.
        run: RunRef,
        /// The task or feature.
        task: String,
    },
    /// Go on with a run.
    Resume {
        /// Which.
        run: RunRef,
        /// Try failing features again.
        retry_failing: bool,
        /// Pause after so many sessions. None: one that broke off goes as far as it was asked to, others to their end.
        #[serde(default)]
        sessions: Option<u32>,
    },
    /// Read the goal's file of a run again: features are added, changed and dropped; what passes stays.
    RereadGoal {
        /// Which.
        run: RunRef,
    },
    /// Start no new work and stop the work under way; it goes on from its journal later.
    Pause {
        /// Which.
        run: RunRef,
    },
    /// Give a run up.
    Abandon {
        /// Which.
        run: RunRef,
        /// Why.
        reason: String,
    },
    /// Answer a question.
    Answer {
        /// Which.
        run: RunRef,
        /// The feature that is blocked; none when the run waits.
        feature: Option<String>,
        /// The question about an effect, by its name.
        #[serde(default)]
        question: Option<String>,
        /// What is known of the effect that is asked about, if one is.
        resolution: Option<Resolution>,
        /// In words.
        text: String,
    },
    /// Take back what was answered about an effect, as long as nobody acted on it.
    TakeBackAnswer {
        /// Which.
        run: RunRef,
        /// The feature whose work asked.
        feature: Option<String>,
        /// The question, by its name.
        question: Option<String>,
    },
    /// Go back to an earlier commit of a run that is not working.
    Revert {
        /// Which.
        run: RunRef,
        /// The commit, or the beginning of its name.
        to: String,
        /// Keep what is in no commit instead of refusing.
        stash: bool,
    },
    /// The commits of a run.
    Log {
        /// Which.
        run: RunRef,
        /// At most so many.
        limit: usize,
        /// Those that reverts took back, in place of those of the branch.
        reverted: bool,
    },
    /// Run the checks of features that pass once more.
    Recheck {
        /// Which.
        run: RunRef,
        /// Only of this one.
        feature: Option<String>,
    },
    /// What a failing feature, or a revert, left.
    Kept {
        /// Which.
        run: RunRef,
        /// The feature, or the name that the revert gave it.
        name: String,
    },
    /// Make a project.
    CreateProject {
        /// Where.
        directory: PathBuf,
        /// Its name. Default: the directory's.
        name: Option<String>,
        /// Whether the directory is to be made, or is empty, or is one that holds files already.
        fresh: bool,
    },
    /// Every project.
    Projects,
    /// Every run.
    Runs,
    /// One run.
    Status {
        /// Which.
        run: RunRef,
    },
    /// The invocations of a run, or the entries of one.
    Journal {
        /// Which.
        run: RunRef,
        /// The invocation, with or without the run's name.
        invocation: Option<String>,
        /// Entries after this one.
        after: u32,
    },
    /// Run finished invocations again from their journals and compare.
    Replay {
        /// Which.
        run: RunRef,
        /// Only this one.
        invocation: Option<String>,
        /// With this component in place of the pinned one.
        with: Option<PathBuf>,
    },
    /// Events of a run.
    Events {
        /// Which.
        run: RunRef,
        /// After this number.
        after: u64,
    },
    /// Add a feature.
    AddFeature {
        /// Which.
        run: RunRef,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Replace what a feature asks for.
    EditFeature {
        /// Which.
        run: RunRef,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Take a feature off the list.
    DropFeature {
        /// Which.
        run: RunRef,
        /// Its id.
        feature: String,
    },
    /// What agents of a run proposed.
    Proposals {
        /// Which.
        run: RunRef,
    },
    /// Do what an agent proposed.
    AcceptProposal {
        /// Which.
        run: RunRef,
        /// Its id.
        proposal: String,
    },
    /// Do not do what an agent proposed.
    RejectProposal {
        /// Which.
        run: RunRef,
        /// Its id.
        proposal: String,
        /// Why.
        why: String,
    },
    /// Who carried out each invocation of a run, by the tables of `longhaul.toml`.
    Parts {
        /// Which.
        run: RunRef,
    },
    /// Start an MCP server and look at what it says of its tools.
    DescribeMcp {
        /// The project.
        directory: PathBuf,
        /// The server, by its name in `longhaul.toml`.
        server: String,
    },
    /// Let an MCP server describe its tools as it does now.
    AcceptMcp {
        /// The project.
        directory: PathBuf,
        /// The server, by its name in `longhaul.toml`.
        server: String,
        /// The digest of what it says now.
        digest: String,
    },
}
