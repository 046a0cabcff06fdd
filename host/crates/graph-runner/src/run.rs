//! Runs steps and stores each result as the step ends: its rows and its values are one transaction. The start of a step
//! that acts is a transaction before it, so that a kill in between is known. Readers of the output get it meanwhile,
//! and none of it is stored before the step ends.

use crate::errors::{broken, replay_refused};
use crate::output_log::StepSink;
use crate::runner::StepValues;
use crate::views;
use crate::work::GraphChange;
use longhaul_api::graph_output::StepOutcome;
use longhaul_core::graph::{GraphError, ReplaySummary, StepDependency, StepOutput, StepState};
use longhaul_core::output::OutputSink;
use longhaul_core::store::{Batch, Op};
use longhaul_core::text;
use longhaul_graph::graph::{MissedEdge, StepId};
use longhaul_graph::replay::{NextStep, Replay, ReportOutcome, Skip};
use longhaul_graph::step::{StepEnd, StepReport, StepRequest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Warnings, and dependencies that it found, that one run reports.
const WARNINGS_MAX: usize = 50;
const DISCOVERED_MAX: usize = 50;

/// Steps whose output one run reports, and bytes of the output of one step and of all of them.
const OUTPUTS_MAX: usize = 200;
const OUTPUT_BYTES_MAX: usize = 64 << 10;
const OUTPUTS_BYTES_MAX: usize = 256 << 10;
const VALUE_BYTES_MAX: usize = 10_000;

/// Pending changes that are written on their own if no step ends before.
const WAITING_OPS_MAX: usize = 1_000;

/// The progress of a walk over the stale steps.
#[derive(Default)]
pub(super) struct ReplayTally {
    ran: Vec<StepId>,
    answered: Vec<StepId>,
    blocked: Vec<StepId>,
    unknown: Vec<StepId>,
    outputs: Vec<StepOutput>,
    output_bytes: usize,
    discovered: Vec<StepDependency>,
    discovered_count: u32,
    warnings: Vec<String>,
    more_warnings: usize,
}

impl ReplayTally {
    /// Takes a report, which the replay keeps or asks for again. Returns the steps whose rows change, this one among
    /// them; none if the step runs again.
    pub(super) fn ran(&mut self, replay: &mut Replay, report: StepReport) -> Result<Vec<StepId>, GraphError> {
        let (step, unkept) = (report.step.clone(), report.unkept.clone());
        let output = output(&report);
        let ReportOutcome::Kept { missed, mut stale, .. } = replay.ran(report).map_err(replay_refused)? else {
            return Ok(Vec::new());
        };
        self.print(output);
        for MissedEdge { from, to, variable } in missed {
            self.discovered_count = self.discovered_count.saturating_add(1);
            if self.discovered.len() < DISCOVERED_MAX {
                let (from, to, variable) = (from.to_string(), to.to_string(), variable.to_string());
                self.discovered.push(StepDependency { from, to, variable });
            }
        }
        for name in unkept {
            self.warn(format!("`{step}` changed `{name}`, which no other step sees"));
        }
        stale.push(step.clone());
        self.ran.push(step);
        Ok(stale)
    }

    pub(super) fn answered(&mut self, step: StepId) {
        self.answered.push(step);
    }

    pub(super) fn skipped(&mut self, step: StepId, why: Skip) {
        match why {
            // It is counted among the failed steps.
            Skip::Broken => {}
            Skip::Blocked { .. } => self.blocked.push(step),
            Skip::Unknown => self.unknown.push(step),
            Skip::LiveActs { producer } => {
                self.warn(format!(
                    "`{step}` needs what `{producer}` made and nobody can keep, and `{producer}` acts, so that it does \
                     not run a second time; have both in one step"
                ));
                self.blocked.push(step);
            }
        }
    }

    fn print(&mut self, output: StepOutput) {
        let bytes = output.stdout.len() + output.value.as_ref().map_or(0, String::len);
        let fits = self.outputs.len() < OUTPUTS_MAX && self.output_bytes + bytes <= OUTPUTS_BYTES_MAX;
        if bytes > 0 && fits {
            self.output_bytes += bytes;
            self.outputs.push(output);
        }
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    /// The summary for callers.
    pub(super) fn replayed(mut self, replay: &Replay) -> ReplaySummary {
        if self.more_warnings > 0 {
            self.warnings.push(format!("and {} more of these", self.more_warnings));
        }
        let states = views::states(replay);
        let failed: Vec<StepId> =
            replay.graph().steps().map(|node| node.id.clone()).filter(|id| has_failed(states.get(id))).collect();
        let touched: BTreeSet<&StepId> =
            [&self.ran, &self.answered, &self.blocked, &self.unknown, &failed].into_iter().flatten().collect();
        let untouched = replay.graph().len().saturating_sub(touched.len());
        ReplaySummary {
            untouched: u32::try_from(untouched).unwrap_or(u32::MAX),
            ran: names(&self.ran),
            answered: names(&self.answered),
            failed: names(&failed),
            blocked: names(&self.blocked),
            unknown: names(&self.unknown),
            outputs: self.outputs,
            discovered: self.discovered,
            discovered_count: self.discovered_count,
            warnings: self.warnings,
        }
    }
}

/// The end of a step, for the readers of its output.
struct EndedStep {
    has_failed: bool,
    duration_ms: u64,
    value: Option<String>,
}

impl EndedStep {
    fn of(report: &StepReport) -> Self {
        Self {
            has_failed: report.ended != StepEnd::Well,
            duration_ms: report.duration_us.div_ceil(1_000),
            value: output(report).value,
        }
    }

    fn tell(self, sink: &StepSink, is_kept: bool) {
        let outcome = match (is_kept, self.has_failed) {
            (false, _) => StepOutcome::Again,
            (true, true) => StepOutcome::Failed,
            (true, false) => StepOutcome::Done,
        };
        sink.end(outcome, self.duration_ms, self.value);
    }
}

/// The output of a step, and the value of its last expression.
fn output(report: &StepReport) -> StepOutput {
    StepOutput {
        step: report.step.to_string(),
        stdout: text::truncate(&report.stdout, OUTPUT_BYTES_MAX),
        value: report.result.as_deref().map(|value| text::truncate(value, VALUE_BYTES_MAX)),
    }
}

pub(super) fn has_failed(state: Option<&StepState>) -> bool {
    matches!(state, Some(StepState::Failed | StepState::Broken))
}

fn names(steps: &[StepId]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

impl GraphChange<'_> {
    /// Runs the stale steps; with `from`, that step and all that its new values affect as well.
    pub(super) async fn run(
        &mut self,
        from: Option<String>,
        again: Option<String>,
        keep_going: bool,
    ) -> Result<ReplaySummary, GraphError> {
        for step in from.into_iter().chain(again) {
            self.opened.replay.again(&StepId::new(step)).map_err(replay_refused)?;
        }
        self.services.look_at_files(self.opened)?;
        self.opened.start(keep_going)?;
        let (mut tally, mut waiting) = (ReplayTally::default(), Batch::new());
        let stale = self.opened.graph().stale().len();
        let mut output = self.services.outputs.begin(&self.opened.head.name, self.token, stale);
        let values = self.services.runner.values();
        loop {
            match self.opened.replay.next().map_err(replay_refused)? {
                NextStep::Done => break,
                NextStep::Skipped { step, why } => {
                    output.pass();
                    tally.skipped(step, why);
                }
                NextStep::Answered { step, is_same } => {
                    output.pass();
                    tally.answered(step.clone());
                    self.opened.write_steps([&step].into_iter(), &mut waiting)?;
                    if !is_same {
                        self.opened.write_staleness(&mut waiting)?;
                    }
                    if waiting.ops.len() >= WAITING_OPS_MAX {
                        self.commit(&mut waiting).await?;
                    }
                }
                NextStep::Run(request) => {
                    if request.acts {
                        self.commit(&mut waiting).await?;
                    }
                    let sink = output.begin_step(request.step.as_str(), request.attempt);
                    let report = self.report_of(&request, &values, &sink).await?;
                    let ended = EndedStep::of(&report);
                    let changed = self.take_report(report, &mut tally, &mut waiting)?;
                    self.commit(&mut waiting).await?;
                    // A reader is told the end once it is stored: after a kill before that, the step runs again.
                    ended.tell(&sink, !changed.is_empty());
                }
            }
        }
        self.opened.write_changed(&mut self.batch)?;
        self.batch.ops.append(&mut waiting.ops);
        let did = tally.replayed(&self.opened.replay);
        if !self.batch.is_empty() {
            self.changed(what(&did), None)?;
        }
        Ok(did)
    }

    /// Runs a step, whose output goes to the sink meanwhile.
    async fn report_of(
        &self,
        request: &StepRequest,
        values: &StepValues,
        sink: &Arc<StepSink>,
    ) -> Result<StepReport, GraphError> {
        let passed: Arc<dyn OutputSink> = Arc::<StepSink>::clone(sink);
        self.services.runner.run(request, &self.opened.head.surroundings, values, Some(passed)).await
    }

    /// Takes the report of a step, and writes its values and the rows that change. Returns the steps of these rows;
    /// none if the step runs again.
    fn take_report(
        &mut self,
        report: StepReport,
        tally: &mut ReplayTally,
        waiting: &mut Batch,
    ) -> Result<Vec<StepId>, GraphError> {
        waiting.ops.extend(report.blobs.iter().map(|(digest, bytes)| Op::Blob(*digest, bytes.to_vec())));
        let has_written = !report.written.is_empty();
        let changed = tally.ran(&mut self.opened.replay, report)?;
        if has_written {
            self.services.look_at_files(self.opened)?;
        }
        self.opened.write_steps(changed.iter(), waiting)?;
        Ok(changed)
    }

    /// Writes the pending changes, and the rows of everything that changed, in one transaction.
    async fn commit(&mut self, waiting: &mut Batch) -> Result<(), GraphError> {
        self.opened.write_changed(waiting)?;
        self.opened.write_head(self.services.clock.now_ms(), waiting)?;
        self.services.store.commit(std::mem::take(waiting)).await.map_err(broken)
    }
}

/// A run in one line of the history.
fn what(did: &ReplaySummary) -> String {
    let mut parts = vec![format!("ran {}", text::count(did.ran.len(), "step"))];
    for (count, word) in
        [(did.answered.len(), "from the store"), (did.failed.len(), "failed"), (did.blocked.len(), "blocked")]
    {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}
