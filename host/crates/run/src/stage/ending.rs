//! How work ends: what the harness hears of it, what its journal keeps, and what people read.

use longhaul_capabilities::LogLine;
use longhaul_core::event::{Event, Used};
use longhaul_core::journal::{Finished, JournalError, Question};
use longhaul_core::store::Batch;
use longhaul_core::text::{count, truncate};
use longhaul_core::work::{Outcome, Plan, RoleError, Synthesis, Verdict};
use longhaul_core::{InvocationId, Outage, RunId};
use longhaul_engine::{CallError, Called};
use longhaul_harness::{Failure, Report};
use longhaul_journal::Recorder;
use longhaul_records::invocation::Kept;
use serde::Serialize;

/// The end of an invocation, to be stored with the step that it leads to.
pub struct Closing {
    /// Its journal.
    pub recorder: Recorder,
    /// How it ended.
    pub finished: Finished,
}

/// How work ended.
pub enum End {
    /// The harness hears of it.
    Report(Report),
    /// A person is asked about an effect.
    Parked(Question),
    /// A person has to look, for example at a divergence.
    Stuck(String),
    /// A service is not there; the same work goes on later.
    Outage(Outage),
    /// It was called off.
    Cancelled,
}

/// Work that ended.
pub struct Ended {
    /// What it used.
    pub used: Used,
    /// How it ended.
    pub end: End,
    /// The end of its invocation, if that has ended.
    pub closing: Option<Closing>,
    /// What is stored with it.
    pub batch: Batch,
    pub(super) announced: bool,
    /// The limit that ended the invocation, with plugin, export, used and max in words.
    pub(super) limit: Option<(String, String)>,
    pub(super) outcome: String,
    pub(super) log: Vec<LogLine>,
    /// What people hear of its conversations, and of what it proposed.
    pub(super) heard: Vec<Event>,
}

impl Ended {
    pub(super) fn of(end: End) -> Self {
        Self {
            used: Used::default(),
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
        Self::of(End::Report(Report::Failed(Failure::Failed(text))))
    }

    /// What people hear of it.
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
                ok: matches!(self.end, End::Report(ref report) if !matches!(report, Report::Failed(_))),
                used: self.used,
                agent: self.closing.as_ref().map(|closing| closing.recorder.began().table.clone()).unwrap_or_default(),
            });
        }
        events
    }
}

pub(super) fn ended<T: Serialize + Words>(
    recorder: Recorder,
    called: Called<Result<T, RoleError>>,
    report: impl FnOnce(T) -> Report,
    heard: Vec<Event>,
    at_ms: u64,
) -> Ended {
    let log = called.log.clone();
    let used = called.used.plus(called.delegated);
    let (finished, concluded) = match finish(&recorder, called, at_ms) {
        Ok(finish) => finish,
        Err(error) => return Ended { log, ..Ended::of(unfinished(error)) },
    };
    let Concluded { kept, limit } = concluded;
    let outcome = words(&kept);
    Ended {
        used,
        end: End::Report(reported(kept, report)),
        closing: Some(Closing { recorder, finished }),
        batch: Batch::new(),
        announced: true,
        limit,
        outcome,
        log,
        heard,
    }
}

/// How an invocation came to its end.
pub(super) struct Concluded<T> {
    pub(super) kept: Kept<T>,
    /// The limit that ended it, with plugin, export, used and max in words.
    pub(super) limit: Option<(String, String)>,
}

/// What the journal keeps as the end of a call, or why it broke off without one.
pub(super) fn finish<T: Serialize>(
    recorder: &Recorder,
    called: Called<Result<T, RoleError>>,
    at_ms: u64,
) -> Result<(Finished, Concluded<T>), CallError> {
    let Called { result, used, .. } = called;
    let interrupted = matches!(&result, Err(CallError::Limit { hit, .. }) if matches!(hit.name.as_str(), "cpu_ms_max" | "wall_ms_max"));
    // Returning while the journal still holds calls is a divergence like any other.
    if let (Ok(_), Err(error)) = (&result, recorder.check_end()) {
        return Err(CallError::Journal(error));
    }
    let limit = match &result {
        Err(error @ CallError::Limit { hit, .. }) => Some((hit.name.clone(), error.to_string())),
        _ => None,
    };
    let kept = match result {
        Ok(Ok(value)) => Kept::Returned(value),
        Ok(Err(error)) => Kept::Refused(error),
        Err(CallError::Limit { hit, .. }) => Kept::Limited(hit),
        Err(error @ (CallError::Trapped { .. } | CallError::Contract { .. })) => Kept::Trapped(error.to_string()),
        Err(error) => return Err(error),
    };
    let result = serde_json::to_string(&kept).unwrap_or_default();
    let finished = Finished { result, fuel_used: used.fuel, interrupted, at_ms };
    Ok((finished, Concluded { kept, limit }))
}

/// How an invocation that has not ended broke off.
fn unfinished(error: CallError) -> End {
    match error {
        CallError::Parked(question) => End::Parked(question),
        CallError::Unavailable(outage) => End::Outage(outage),
        CallError::Budget(hit) => End::Report(Report::Failed(Failure::Budget(hit))),
        CallError::Rejected(denial) => End::Report(Report::Failed(Failure::Rejected(denial))),
        CallError::Cancelled => End::Cancelled,
        CallError::Journal(error) => stuck(error),
        other => End::Outage(Outage { reason: other.to_string(), retry_after_ms: None }),
    }
}

pub(super) fn stuck(error: JournalError) -> End {
    match error {
        JournalError::Parked(question) => End::Parked(question),
        JournalError::Store(error) => End::Outage(Outage { reason: error.to_string(), retry_after_ms: None }),
        other => End::Stuck(other.to_string()),
    }
}

pub(super) fn reported<T>(kept: Kept<T>, report: impl FnOnce(T) -> Report) -> Report {
    Report::Failed(match kept {
        Kept::Returned(value) => return report(value),
        Kept::Refused(RoleError::Impossible(text)) => Failure::Impossible(text),
        Kept::Refused(RoleError::Blocked(question)) => Failure::Blocked(question),
        Kept::Refused(RoleError::Denied(denial)) => Failure::Denied(denial),
        Kept::Refused(RoleError::Limit(hit)) | Kept::Limited(hit) => Failure::Limit(hit),
        Kept::Refused(RoleError::Unavailable(outage)) => Failure::Unavailable(outage),
        Kept::Refused(RoleError::Failed(text)) | Kept::Trapped(text) => Failure::Failed(text),
    })
}

/// What people read of a result, in one line.
pub trait Words {
    /// The line.
    fn words(&self) -> String;
}

impl Words for Plan {
    fn words(&self) -> String {
        count(self.steps.len(), "feature")
    }
}

impl Words for Synthesis {
    fn words(&self) -> String {
        self.answer.clone()
    }
}

impl Words for Outcome {
    fn words(&self) -> String {
        self.summary.clone()
    }
}

impl Words for Verdict {
    fn words(&self) -> String {
        let passed = self.judgements.iter().filter(|one| one.mark == longhaul_core::work::Mark::Pass).count();
        match self.judgements.len() {
            1 => format!("{passed} of 1 criterion passes"),
            all => format!("{passed} of {all} criteria pass"),
        }
    }
}

pub(super) fn words<T: Words>(kept: &Kept<T>) -> String {
    match kept {
        Kept::Returned(value) => value.words(),
        Kept::Refused(error) => error.to_string(),
        Kept::Limited(hit) => hit.to_string(),
        Kept::Trapped(text) => text.clone(),
    }
}
