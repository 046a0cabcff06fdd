//! Between the words of the interface `graph` and those of the host. Nothing is decided here.

use crate::imports::graph as bound;
use longhaul_core::graph::{
    DiagnosisView, GraphChanges, GraphError, GraphFormat, PatchView, ReplaySummary, StepFailure, StepState, StepView,
    ValueView,
};

impl From<StepState> for bound::GraphState {
    fn from(state: StepState) -> Self {
        match state {
            StepState::Fresh => Self::Fresh,
            StepState::Stale => Self::Stale,
            StepState::Blocked => Self::Blocked,
            StepState::Failed => Self::Failed,
            StepState::Broken => Self::Broken,
            StepState::Unknown => Self::Unknown,
        }
    }
}

impl From<bound::GraphFormat> for GraphFormat {
    fn from(format: bound::GraphFormat) -> Self {
        match format {
            bound::GraphFormat::Json => Self::Json,
            bound::GraphFormat::Dot => Self::Dot,
        }
    }
}

impl From<StepFailure> for bound::GraphFailure {
    fn from(failure: StepFailure) -> Self {
        let StepFailure { kind, message, line, column, traceback } = failure;
        Self { kind, message, line, column, traceback }
    }
}

impl From<StepView> for bound::GraphStep {
    fn from(step: StepView) -> Self {
        Self {
            id: step.id,
            source: step.source,
            state: step.state.into(),
            reads: step.reads,
            writes: step.writes,
            needs: step.needs,
            unstorable: step.live_only,
            stdout: step.stdout,
            stderr: step.stderr,
            value: step.value,
            failure: step.failure.map(Into::into),
            duration_ms: step.duration_ms,
        }
    }
}

impl From<GraphChanges> for bound::GraphChanges {
    fn from(changes: GraphChanges) -> Self {
        Self { stale: changes.stale, failure: changes.failure.map(Into::into) }
    }
}

impl From<ReplaySummary> for bound::GraphReplay {
    fn from(replayed: ReplaySummary) -> Self {
        let ReplaySummary { ran, answered, mut failed, blocked, unknown, untouched, warnings, .. } = replayed;
        failed.extend(unknown);
        Self { ran, reused: answered, failed, blocked, untouched, warnings }
    }
}

impl From<ValueView> for bound::GraphValue {
    fn from(value: ValueView) -> Self {
        Self { name: value.name, text: value.shown, producer: value.made_by }
    }
}

impl From<DiagnosisView> for bound::GraphDiagnosis {
    fn from(found: DiagnosisView) -> Self {
        Self {
            step: found.step,
            failure: found.failure.into(),
            values: found.values.into_iter().map(Into::into).collect(),
            cause: found.culprit,
            reason: found.why,
        }
    }
}

impl From<PatchView> for bound::GraphPatch {
    fn from(kept: PatchView) -> Self {
        let PatchView { step, source, why, tries, replay } = kept;
        Self { step, source, reason: why, tries, replay: replay.into() }
    }
}

impl From<GraphError> for bound::GraphError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::UnknownStep(step) => Self::UnknownStep(step),
            GraphError::Denied(denial) => Self::Denied(denial.into()),
            GraphError::Limit(hit) => Self::Limit(hit.into()),
            GraphError::Invalid(text) => Self::Invalid(text),
            GraphError::Failed(text) => Self::Failed(text),
        }
    }
}
