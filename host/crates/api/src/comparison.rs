//! The comparison of runs: its request, and what the service answers. This module compares nothing.

use crate::runs::{RunRef, RunSummary};
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{FeatureStatus, Judgement, Synthesis};
use longhaul_worktree::TreeDiff;
use serde::{Deserialize, Serialize};

/// Most runs of one comparison.
pub const COMPARED_RUNS_MAX: usize = 8;

/// Compare runs step by step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRuns {
    /// The run that the others are compared with.
    pub run: RunRef,
    /// The others by their ids, or unique beginnings of them: at least one, and at most [`COMPARED_RUNS_MAX`] with the
    /// first.
    pub others: Vec<String>,
}

/// Runs beside each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunComparison {
    /// The runs, as they were asked for. Others name them by their place here, from 0.
    pub runs: Vec<ComparedRun>,
    /// The numbers of steps by what differs, those that are left out included.
    pub counts: StepCounts,
    /// The first step that differs, with more of its text. None: no step differs.
    pub first_difference: Option<AlignedStep>,
    /// The steps beside each other, by work, in the order of the first run.
    pub steps: Vec<AlignedStep>,
    /// Steps that are left out: the same far from a difference, then what is beyond the most that are listed.
    pub steps_left_out: usize,
    /// The features or tasks by id, in the order of the first run.
    pub features: Vec<ComparedFeature>,
    /// Features beyond the most that are listed.
    pub features_left_out: usize,
    /// The files of each other run beside those of the first.
    pub files: Vec<FileComparison>,
}

/// One of the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Its summary, with its cost and its time.
    pub summary: RunSummary,
    /// The resources that it used.
    pub resource_usage: WorkUsage,
    /// Its steps that are compared.
    pub steps: usize,
    /// Its steps beyond the most that are read.
    pub steps_left_out: usize,
    /// Its answer, if it is an ask with one.
    pub answer: Option<Synthesis>,
}

/// What differs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepChange {
    /// Nothing: the same call and the same answer. Checks count as the same by their result, whatever they print.
    Same,
    /// The request to the model alone: its reply is the same.
    Request,
    /// The call.
    Call,
    /// The answer.
    Answer,
    /// Some of the runs do not have the step.
    Missing,
}

impl StepChange {
    /// True when the runs did the same.
    #[must_use]
    pub fn is_same(self) -> bool {
        matches!(self, Self::Same | Self::Request)
    }
}

/// The numbers of steps by what differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepCounts {
    /// Steps that are the same.
    pub same: usize,
    /// Steps in which the request to the model differs alone.
    pub request: usize,
    /// Steps with different calls.
    pub call: usize,
    /// Steps with different answers.
    pub answer: usize,
    /// Steps that some of the runs do not have.
    pub missing: usize,
}

/// A step of the runs: a call that a plugin made, or the result of its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlignedStep {
    /// Its place among all steps, from 1.
    pub number: usize,
    /// The feature or task; null: the work is for no single one.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// The work, with its round: `f-sum/2/generate` is the second round of `sum`, and `f-sum/e1/2/generate` that of
    /// its second session. `f-sum/2/generate > 1` is its first delegation.
    pub work: String,
    /// The capability and verb, for example `tools.call`; `result` is the result of the work.
    pub kind: String,
    /// What differs.
    pub change: StepChange,
    /// The step in each of the runs that have it.
    pub sides: Vec<StepSide>,
}

/// A step in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepSide {
    /// The run, by its place among the runs, from 0.
    pub run: usize,
    /// The number of the journal's entry; 0 for a result.
    pub entry: u32,
    /// Time of the call, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Time until the answer, in milliseconds; null: there is none yet.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub duration_ms: Option<u64>,
    /// The call, in one line.
    pub call: String,
    /// The answer, from the place on at which it differs.
    pub answer: String,
    /// Bytes of the answer before `answer`, which all runs have alike.
    pub skipped_bytes: usize,
    /// True when text is missing behind `answer`.
    pub is_cut: bool,
}

/// A feature or task of the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparedFeature {
    /// The id.
    pub feature: String,
    /// The title, by the first run that has it.
    pub title: String,
    /// True when all runs have it with the same status and the same marks.
    pub is_same: bool,
    /// Its state in each of the runs that have it.
    pub sides: Vec<FeatureSide>,
}

/// A feature in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeatureSide {
    /// The run, by its place among the runs, from 0.
    pub run: usize,
    /// Its status.
    pub status: FeatureStatus,
    /// The reason of its status, in one line.
    pub reason: String,
    /// The number of sessions that have begun.
    pub sessions: u32,
    /// The last verdict on it. None: nobody judged it.
    pub verdict: Option<LastVerdict>,
    /// Its commit. None: it has none.
    pub commit: Option<String>,
    /// The answer of a task of an ask, as JSON text. Empty: there is none.
    pub answer: String,
    /// The resources that its work used.
    pub resource_usage: WorkUsage,
}

/// The last verdict on a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastVerdict {
    /// The round, from 1.
    pub round: u32,
    /// The number of verdicts on the feature, this one included.
    pub verdicts: u32,
    /// True when every criterion passed.
    pub passed: bool,
    /// The judgement of each criterion.
    pub judgements: Vec<Judgement>,
}

/// The files of one run beside those of the first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileComparison {
    /// The run, by its place among the runs.
    pub run: usize,
    /// The changes from the first run's last commit to this run's. None: they are not compared.
    pub diff: Option<TreeDiff>,
    /// The reason why they are not compared, in one line. None: they are.
    pub reason: Option<String>,
}
