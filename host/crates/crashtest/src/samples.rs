//! Runs for the tests of this crate.

use crate::observation::RunObservation;
use crate::receivers::ReceivedRequest;
use longhaul_api::journal::InvocationEntries;
use longhaul_api::runs::{RunSummary, Status};
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::journal::{EffectClass, Finished, ImportAnswer, ImportCall, JournalEntry};
use longhaul_core::project::ProjectStatus;
use longhaul_core::supervisor::InvocationUsage;
use longhaul_core::work::{FeatureSpec, Judgement};
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_harness::{Feature, RunStatus};
use longhaul_records::ledger::LedgerView;
use longhaul_worktree::BranchCommit;
use std::collections::BTreeMap;

/// An entry of the class `acts` that was answered a little later.
pub(crate) fn answered(number: u32, name: &str, at_ms: u64, answer: &str) -> (u32, JournalEntry) {
    let (number, entry) = in_flight(number, name, at_ms);
    let answered = Some(ImportAnswer { answer: answer.to_owned(), at_ms: at_ms + 5, edited: false });
    (number, JournalEntry { answered, ..entry })
}

/// An entry whose answer is not known.
pub(crate) fn in_flight(number: u32, name: &str, at_ms: u64) -> (u32, JournalEntry) {
    let asked = ImportCall {
        name: name.to_owned(),
        summary: "once".to_owned(),
        arguments: Digest::of(b"{}"),
        class: EffectClass::Acts,
        prepared: None,
        fuel_used: 10,
        at_ms,
        attempt: 1,
    };
    (number, JournalEntry { asked, answered: None, resolution: None })
}

/// A commit whose tree is named after it.
pub(crate) fn commit(id: &str, effect: &str) -> BranchCommit {
    BranchCommit {
        id: id.to_owned(),
        tree: format!("tree-{id}"),
        message: format!("Feature\n\nLonghaul-Effect: {effect}\n"),
    }
}

/// A request at the receiver.
pub(crate) fn request(at_ms: u64, method: &str, url: &str, body: &str, key: Option<&str>) -> ReceivedRequest {
    let (method, url) = (method.to_owned(), url.to_owned());
    ReceivedRequest { at_ms, method, url, body: Digest::of(body.as_bytes()), key: key.map(str::to_owned) }
}

/// A run that ended, with one feature, one invocation of these entries, and these commits.
pub(crate) fn observation(entries: Vec<(u32, JournalEntry)>, commits: &[&str]) -> RunObservation {
    let invocation = InvocationId::from_text("r-1/f-a/1/generate");
    let finished = Finished { result: "\"done\"".to_owned(), fuel_used: 90, interrupted: false, at_ms: 900 };
    let judgements = Vec::<Judgement>::new();
    let judged =
        Event::Judged { feature: "a".to_owned(), round: 1, passed: true, judgements, evidence: BTreeMap::new() };
    RunObservation {
        status: status(),
        journals: vec![InvocationEntries { invocation, entries, finished: Some(finished) }],
        events: vec![RunEvent { run: RunId::from_text("r-1"), number: 1, at_ms: 800, event: judged }],
        commits: commits.iter().map(|id| commit(id, &format!("r-1/f-{id}/commit"))).collect(),
    }
}

/// The state of a run with one feature.
fn status() -> Status {
    let spec = FeatureSpec {
        id: "a".to_owned(),
        title: "A".to_owned(),
        instruction: String::new(),
        category: "functional".to_owned(),
        priority: 5,
        agent: None,
        criteria: Vec::new(),
        checks: Vec::new(),
        depends_on: Vec::new(),
    };
    let summary = RunSummary {
        run: RunId::from_text("r-1"),
        project: "p".to_owned(),
        directory: "/p".into(),
        status: RunStatus::Completed,
        project_status: ProjectStatus::Completed,
        passing: (1, 1),
        created_ms: 1,
        last_ms: 900,
        is_ask: false,
        active: false,
        wakes_at_ms: None,
        queue_place: None,
        queued_ms: None,
        archived_ms: None,
        title: "the end".to_owned(),
        agents: Vec::new(),
        spent: InvocationUsage::default(),
        wall_ms: 0,
        budget_microdollars: None,
        forked_from: None,
    };
    Status {
        summary,
        branch: "longhaul/p".to_owned(),
        fork: None,
        asked: None,
        synthesis: None,
        ledger: LedgerView::default(),
        reason: String::new(),
        question: None,
        questions: Vec::new(),
        answer_with: Vec::new(),
        features: vec![Feature::new(spec)],
        resource_usage: WorkUsage::default(),
        cost_microdollars_max: None,
        tokens_max: 1,
    }
}
