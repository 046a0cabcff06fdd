//! The end of work: the report to the harness, the entry in its journal, and the events for people.

use longhaul_capabilities::LogLine;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::journal::{EffectQuestion, Finished, JournalError};
use longhaul_core::store::Batch;
use longhaul_core::text::{count, truncate};
use longhaul_core::work::{Outcome, Plan, RoleError, Synthesis, Verdict};
use longhaul_core::{InvocationId, Outage, RunId};
use longhaul_engine::{CallError, Called};
use longhaul_harness::{WorkFailure, WorkReport};
use longhaul_journal::Recorder;
use longhaul_records::invocation::JournaledResult;
use serde::Serialize;

/// The end of an invocation, stored with the step that it leads to.
pub struct Closing {
    /// The journal of the invocation.
    pub recorder: Recorder,
    /// The end of the invocation.
    pub finished: Finished,
}

/// The way in which work ended.
pub enum WorkEnd {
    /// The harness receives a report.
    Report(WorkReport),
    /// A person is asked about an effect.
    Parked(EffectQuestion),
    /// A person has to look, for example at a divergence.
    Stuck(String),
    /// A service is unavailable; the same work continues later.
    Outage(Outage),
    /// It was cancelled.
    Cancelled,
}

/// Work that ended.
pub struct EndedWork {
    /// The usage of the work.
    pub used: WorkUsage,
    /// The end of the work.
    pub end: WorkEnd,
    /// The end of its invocation, if that has ended.
    pub closing: Option<Closing>,
    /// The rows to store with it.
    pub batch: Batch,
    pub(super) announced: bool,
    /// The limit that ended the invocation: plugin, export, used and max as text.
    pub(super) limit: Option<(String, String)>,
    pub(super) outcome: String,
    pub(super) log: Vec<LogLine>,
    /// Events about its conversations and proposals.
    pub(super) heard: Vec<Event>,
}

impl EndedWork {
    pub(super) fn of(end: WorkEnd) -> Self {
        Self {
            used: WorkUsage::default(),
            end,
            closing: None,
            batch: Batch::new(),
            announced: false,
            limit: None,
            outcome: String::new(),
            log: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Work that a defect or the machine ended.
    pub fn failed(text: String) -> Self {
        Self::of(WorkEnd::Report(WorkReport::Failed(WorkFailure::Failed(text))))
    }

    /// The events to report.
    pub fn events(&self, run: &RunId, key: &str) -> Vec<Event> {
        let mut events = self.heard.clone();
        for line in self.log.iter().filter(|line| matches!(line.level.as_str(), "warn" | "error" | "stderr")).take(20) {
            events.push(Event::Warning { text: truncate(&format!("{key}: {}", line.text), 500) });
        }
        if let Some((name, text)) = &self.limit {
            events.push(Event::Limit { name: name.clone(), text: text.clone() });
        }
        if self.announced {
            events.push(Event::InvocationEnded {
                invocation: InvocationId::of_action(run, key),
                outcome: truncate(&self.outcome, 300),
                ok: matches!(self.end, WorkEnd::Report(ref report) if !matches!(report, WorkReport::Failed(_))),
                used: self.used,
                agent: self.closing.as_ref().map(|closing| closing.recorder.began().table.clone()).unwrap_or_default(),
            });
        }
        events
    }
}

pub(super) fn ended<T: Serialize + ResultLine>(
    recorder: Recorder,
    called: Called<Result<T, RoleError>>,
    report: impl FnOnce(T) -> WorkReport,
    heard: Vec<Event>,
    at_ms: u64,
) -> EndedWork {
    let log = called.log.clone();
    let used = called.used.plus(called.delegated);
    let (finished, concluded) = match finish(&recorder, called, at_ms) {
        Ok(finish) => finish,
        Err(error) => return EndedWork { log, ..EndedWork::of(unfinished(error)) },
    };
    let Conclusion { kept, limit } = concluded;
    let outcome = words(&kept);
    EndedWork {
        used,
        end: WorkEnd::Report(reported(kept, report)),
        closing: Some(Closing { recorder, finished }),
        batch: Batch::new(),
        announced: true,
        limit,
        outcome,
        log,
        heard,
    }
}

/// The result of an invocation, and why it ended.
pub(super) struct Conclusion<T> {
    pub(super) kept: JournaledResult<T>,
    /// The limit that ended it: plugin, export, used and max as text.
    pub(super) limit: Option<(String, String)>,
}

/// The end of a call as its journal records it, or why the call broke off without one.
pub(super) fn finish<T: Serialize>(
    recorder: &Recorder,
    called: Called<Result<T, RoleError>>,
    at_ms: u64,
) -> Result<(Finished, Conclusion<T>), CallError> {
    let Called { result, used, .. } = called;
    let interrupted = matches!(&result, Err(CallError::Limit { hit, .. }) if matches!(hit.name.as_str(), "cpu_ms_max" | "wall_ms_max"));
    // A return while the journal still holds calls is a divergence like any other.
    if let (Ok(_), Err(error)) = (&result, recorder.check_end()) {
        return Err(CallError::Journal(error));
    }
    let limit = match &result {
        Err(error @ CallError::Limit { hit, .. }) => Some((hit.name.clone(), error.to_string())),
        _ => None,
    };
    let kept = match result {
        Ok(Ok(value)) => JournaledResult::Returned(value),
        Ok(Err(error)) => JournaledResult::Refused(error),
        Err(CallError::Limit { hit, .. }) => JournaledResult::Limited(hit),
        Err(error @ (CallError::Trapped { .. } | CallError::Contract { .. })) => {
            JournaledResult::Trapped(error.to_string())
        }
        Err(error) => return Err(error),
    };
    let result = serde_json::to_string(&kept).unwrap_or_default();
    let finished = Finished { result, fuel_used: used.fuel, interrupted, at_ms };
    Ok((finished, Conclusion { kept, limit }))
}

/// The end of work whose invocation broke off before it ended.
fn unfinished(error: CallError) -> WorkEnd {
    match error {
        CallError::Parked(question) => WorkEnd::Parked(question),
        CallError::Unavailable(outage) => WorkEnd::Outage(outage),
        CallError::Budget(hit) => WorkEnd::Report(WorkReport::Failed(WorkFailure::Budget(hit))),
        CallError::Rejected(denial) => WorkEnd::Report(WorkReport::Failed(WorkFailure::Rejected(denial))),
        CallError::Cancelled => WorkEnd::Cancelled,
        CallError::Journal(error) => stuck(error),
        other => WorkEnd::Outage(Outage { reason: other.to_string(), retry_after_ms: None }),
    }
}

pub(super) fn stuck(error: JournalError) -> WorkEnd {
    match error {
        JournalError::Parked(question) => WorkEnd::Parked(question),
        JournalError::Store(error) => WorkEnd::Outage(Outage { reason: error.to_string(), retry_after_ms: None }),
        other => WorkEnd::Stuck(other.to_string()),
    }
}

pub(super) fn reported<T>(kept: JournaledResult<T>, report: impl FnOnce(T) -> WorkReport) -> WorkReport {
    WorkReport::Failed(match kept {
        JournaledResult::Returned(value) => return report(value),
        JournaledResult::Refused(RoleError::Impossible(text)) => WorkFailure::Impossible(text),
        JournaledResult::Refused(RoleError::Blocked(question)) => WorkFailure::Blocked(question),
        JournaledResult::Refused(RoleError::Denied(denial)) => WorkFailure::Denied(denial),
        JournaledResult::Refused(RoleError::Limit(hit)) | JournaledResult::Limited(hit) => WorkFailure::Limit(hit),
        JournaledResult::Refused(RoleError::Unavailable(outage)) => WorkFailure::Unavailable(outage),
        JournaledResult::Refused(RoleError::Failed(text)) | JournaledResult::Trapped(text) => WorkFailure::Failed(text),
    })
}

/// The text of a result for people, in one line.
pub trait ResultLine {
    /// The line.
    fn words(&self) -> String;
}

impl ResultLine for Plan {
    fn words(&self) -> String {
        count(self.steps.len(), "feature")
    }
}

impl ResultLine for Synthesis {
    fn words(&self) -> String {
        self.answer.clone()
    }
}

impl ResultLine for Outcome {
    fn words(&self) -> String {
        self.summary.clone()
    }
}

impl ResultLine for Verdict {
    fn words(&self) -> String {
        let passed = self.judgements.iter().filter(|one| one.mark == longhaul_core::work::Mark::Pass).count();
        match self.judgements.len() {
            1 => format!("{passed} of 1 criterion passes"),
            all => format!("{passed} of {all} criteria pass"),
        }
    }
}

pub(super) fn words<T: ResultLine>(kept: &JournaledResult<T>) -> String {
    match kept {
        JournaledResult::Returned(value) => value.words(),
        JournaledResult::Refused(error) => error.to_string(),
        JournaledResult::Limited(hit) => hit.to_string(),
        JournaledResult::Trapped(text) => text.clone(),
    }
}
