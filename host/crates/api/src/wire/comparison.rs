//! The comparison of runs.

use super::commits::{CommitCountsView, CommitFileView};
use super::features::FeatureStatus;
use super::runs::{AnswerView, RunView};
use super::usage::WorkUsageView;
use super::words;
use crate::comparison::{
    AlignedStep, ComparedFeature, ComparedRun, FeatureSide, FileComparison, LastVerdict, RunComparison, StepCounts,
};
use longhaul_core::work::Judgement;
use longhaul_worktree::TreeDiff;
use serde::Serialize;

words! {
    /// The mark of a criterion.
    CriterionMark of longhaul_core::work::Mark as InnerMark {
        /// It holds.
        Pass,
        /// It does not hold.
        Fail,
        /// The evaluator cannot tell, which counts as not passed.
        Unknown,
    }
}

/// One of the compared runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ComparedRun))]
pub struct ComparedRunView {
    /// Its summary, with its cost and its working time.
    #[serde(flatten)]
    pub summary: RunView,
    /// Its usage.
    pub resource_usage: WorkUsageView,
    /// Number of its steps that are compared.
    pub steps: usize,
    /// Number of its steps beyond the most that are read.
    pub steps_left_out: usize,
    /// Its answer, if it is an ask with one.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<AnswerView>,
}

impl From<ComparedRun> for ComparedRunView {
    fn from(inner: ComparedRun) -> Self {
        let ComparedRun { summary, resource_usage, steps, steps_left_out, answer } = inner;
        Self {
            summary: summary.into(),
            resource_usage: resource_usage.into(),
            steps,
            steps_left_out,
            answer: answer.map(Into::into),
        }
    }
}

/// The judgement of a criterion.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CriterionJudgement))]
pub struct JudgementView {
    /// The criterion.
    pub criterion: String,
    /// Its mark.
    pub mark: CriterionMark,
    /// The reason, in one line.
    pub reason: String,
}

impl From<Judgement> for JudgementView {
    fn from(Judgement { criterion, mark, why }: Judgement) -> Self {
        Self { criterion, mark: mark.into(), reason: why }
    }
}

/// The last verdict on a feature.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = LastVerdict))]
pub struct LastVerdictView {
    /// The round, from 1.
    pub round: u32,
    /// Number of verdicts on the feature, this one included.
    pub verdicts: u32,
    /// True when every criterion passed.
    pub passed: bool,
    /// The judgement of each criterion.
    pub judgements: Vec<JudgementView>,
}

impl From<LastVerdict> for LastVerdictView {
    fn from(inner: LastVerdict) -> Self {
        let LastVerdict { round, verdicts, passed, judgements } = inner;
        Self { round, verdicts, passed, judgements: judgements.into_iter().map(Into::into).collect() }
    }
}

/// A feature in one of the compared runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = FeatureSide))]
pub struct FeatureSideView {
    /// The run, by its place among the runs, from 0.
    pub run: usize,
    /// Its status.
    pub status: FeatureStatus,
    /// The reason of its status, in one line.
    pub reason: String,
    /// Number of sessions that have begun.
    pub sessions: u32,
    /// The last verdict on it; null: nobody judged it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub verdict: Option<LastVerdictView>,
    /// Its commit; null: it has none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub commit: Option<String>,
    /// The answer of a task of an ask: JSON as text, or its beginning. Empty: there is none.
    pub answer: String,
    /// The usage of its work.
    pub resource_usage: WorkUsageView,
}

impl From<FeatureSide> for FeatureSideView {
    fn from(inner: FeatureSide) -> Self {
        let FeatureSide { run, status, reason, sessions, verdict, commit, answer, resource_usage } = inner;
        Self {
            run,
            status: status.into(),
            reason,
            sessions,
            verdict: verdict.map(Into::into),
            commit,
            answer,
            resource_usage: resource_usage.into(),
        }
    }
}

/// A feature or task of the compared runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ComparedFeature))]
pub struct ComparedFeatureView {
    /// Its id.
    pub feature: String,
    /// Its title, by the first run that has it.
    pub title: String,
    /// True when all runs have it with the same status and the same marks.
    pub is_same: bool,
    /// Its state in each of the runs that have it.
    pub sides: Vec<FeatureSideView>,
}

impl From<ComparedFeature> for ComparedFeatureView {
    fn from(inner: ComparedFeature) -> Self {
        let ComparedFeature { feature, title, is_same, sides } = inner;
        Self { feature, title, is_same, sides: sides.into_iter().map(Into::into).collect() }
    }
}

/// The changes from one commit to another.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TreeDiff))]
pub struct TreeDiffView {
    /// The commit before: 40 hexadecimal digits.
    pub from: String,
    /// The commit after: 40 hexadecimal digits.
    pub to: String,
    /// The changed files by path, at most 1,000. Their texts have at most 1 MiB together.
    pub files: Vec<CommitFileView>,
    /// Number of changed files beyond those.
    pub files_left_out: usize,
    /// The counts of all changed files.
    pub counts: CommitCountsView,
}

impl From<TreeDiff> for TreeDiffView {
    fn from(inner: TreeDiff) -> Self {
        let TreeDiff { from, to, files, files_left_out, counts } = inner;
        Self { from, to, files: files.into_iter().map(Into::into).collect(), files_left_out, counts: counts.into() }
    }
}

/// The files of one run beside those of the first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = FileComparison))]
pub struct FileComparisonView {
    /// The run, by its place among the runs.
    pub run: usize,
    /// The changes from the first run's last commit to this run's; null: they are not compared.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub diff: Option<TreeDiffView>,
    /// The reason why they are not compared, in one line; null: they are.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub reason: Option<String>,
}

impl From<FileComparison> for FileComparisonView {
    fn from(FileComparison { run, diff, reason }: FileComparison) -> Self {
        Self { run, diff: diff.map(Into::into), reason }
    }
}

/// Runs beside each other.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Comparison))]
pub struct ComparisonView {
    /// The runs, as they were asked for. `run` of other fields is a place in this list, from 0.
    pub runs: Vec<ComparedRunView>,
    /// The numbers of steps by what differs, those that are left out included.
    pub counts: StepCounts,
    /// The first step that differs, with more of its text; null: no step differs.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub first_difference: Option<AlignedStep>,
    /// The steps beside each other, by work, in the order of the first run.
    pub steps: Vec<AlignedStep>,
    /// Number of steps that are left out: first the same ones far from a difference.
    pub steps_left_out: usize,
    /// The features or tasks by id, in the order of the first run.
    pub features: Vec<ComparedFeatureView>,
    /// Number of features beyond the most that are listed.
    pub features_left_out: usize,
    /// The files of each other run beside those of the first.
    pub files: Vec<FileComparisonView>,
}

impl From<RunComparison> for ComparisonView {
    fn from(inner: RunComparison) -> Self {
        Self {
            runs: inner.runs.into_iter().map(Into::into).collect(),
            counts: inner.counts,
            first_difference: inner.first_difference,
            steps: inner.steps,
            steps_left_out: inner.steps_left_out,
            features: inner.features.into_iter().map(Into::into).collect(),
            features_left_out: inner.features_left_out,
            files: inner.files.into_iter().map(Into::into).collect(),
        }
    }
}
