//! Whole comparisons of small runs: the same ones, one difference, further rounds, other features, other orders.

use super::*;
use longhaul_api::comparison::{AlignedStep, StepChange, StepCounts};
use longhaul_api::runs::{RunSummary, Status};
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::journal::{EffectClass, Finished, ImportAnswer, ImportCall, JournalEntry};
use longhaul_core::project::ProjectStatus;
use longhaul_core::supervisor::InvocationUsage;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Judgement, Mark};
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_harness::{Feature, RunStatus};
use serde_json::json;

/// A run as it is written down: works, each with its steps as kind, call and answer, 10 ms apart.
struct Written<'a> {
    run: &'a str,
    trace: RunTrace,
    now_ms: u64,
}

impl<'a> Written<'a> {
    fn new(run: &'a str) -> Self {
        Self { run, trace: RunTrace::default(), now_ms: 1_000 }
    }

    fn work(mut self, work: &str, steps: &[(&str, &str, &str)]) -> Self {
        self.trace.begin(&InvocationId::from_text(format!("{}/{work}", self.run)));
        for (number, (kind, call, answer)) in (1..).zip(steps) {
            self.now_ms += 10;
            self.trace.entry(number, entry(kind, call, answer, self.now_ms));
        }
        self
    }

    fn traced(self, features: &[(&str, FeatureStatus)]) -> TracedRun {
        TracedRun { status: status(self.run, features), trace: self.trace }
    }
}

fn entry(kind: &str, call: &str, answer: &str, at_ms: u64) -> JournalEntry {
    let asked = ImportCall {
        name: kind.into(),
        summary: call.into(),
        arguments: Digest::of(call.as_bytes()),
        class: EffectClass::ReadOnly,
        prepared: None,
        fuel_used: 0,
        at_ms,
        attempt: 1,
    };
    let answer = match kind {
        "tools.call" => json!({ "Ok": { "output": answer, "truncated": false } }).to_string(),
        _ => answer.to_owned(),
    };
    JournalEntry { asked, answered: Some(ImportAnswer { answer, at_ms: at_ms + 5, edited: false }), resolution: None }
}

/// The reply of a model as the journal has it, with what differs from one time to the next.
fn reply(text: &str, id: &str) -> String {
    let reply = longhaul_core::model::ModelReply {
        text: text.into(),
        endpoint: Some(longhaul_core::model::ReplyEndpoint { id: Some(id.into()), ..Default::default() }),
        ..Default::default()
    };
    serde_json::to_string(&Ok::<_, ()>(reply)).unwrap()
}

fn status(run: &str, features: &[(&str, FeatureStatus)]) -> Status {
    let feature = |(id, status): &(&str, FeatureStatus)| {
        let spec = FeatureSpec {
            id: (*id).into(),
            title: format!("the {id}"),
            instruction: String::new(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        };
        Feature { status: *status, ..Feature::new(spec) }
    };
    let summary = RunSummary {
        run: RunId::from_text(run),
        project: "p".into(),
        directory: "/p".into(),
        status: RunStatus::Completed,
        project_status: ProjectStatus::Completed,
        passing: (1, 1),
        created_ms: 1_000,
        last_ms: 2_000,
        is_ask: false,
        active: false,
        wakes_at_ms: None,
        queue_place: None,
        queued_ms: None,
        archived_ms: None,
        title: "a goal".into(),
        agents: Vec::new(),
        spent: InvocationUsage::default(),
        wall_ms: 900,
        budget_microdollars: None,
        forked_from: None,
    };
    Status {
        summary,
        branch: "longhaul/p".into(),
        fork: None,
        asked: None,
        reason: String::new(),
        question: None,
        synthesis: None,
        ledger: Default::default(),
        features: features.iter().map(feature).collect(),
        resource_usage: WorkUsage::default(),
        questions: Vec::new(),
        answer_with: Vec::new(),
        cost_microdollars_max: None,
        tokens_max: 1,
    }
}

fn compared(runs: Vec<Written<'_>>) -> RunComparison {
    compare(runs.into_iter().map(|run| run.traced(&[])).collect(), Vec::new())
}

/// The steps as `WORK KIND CHANGE` with the calls of the runs that have them.
fn told(steps: &[AlignedStep]) -> Vec<String> {
    let line = |step: &AlignedStep| {
        let sides = step.sides.iter().map(|side| format!("{}:{}={}", side.run, side.call, side.answer));
        format!("{} {:?} {}", step.work, step.change, sides.collect::<Vec<_>>().join(" "))
    };
    steps.iter().map(line).collect()
}

const WORK: [(&str, &str, &str); 3] = [
    ("tools.call", "files.read a", "one"),
    ("tools.call", "files.write b", "ok"),
    ("tools.call", "files.read c", "two"),
];

#[test]
fn runs_that_did_the_same_have_no_difference() {
    let run = |name| Written::new(name).work("plan", &WORK[..1]).work("f-a/1/generate", &WORK);
    let compared = compared(vec![run("r-1"), run("r-2"), run("r-3")]);
    assert_eq!(compared.counts, StepCounts { same: 4, ..StepCounts::default() });
    assert_eq!((compared.first_difference, compared.steps_left_out), (None, 0));
    assert_eq!(compared.runs.iter().map(|run| run.steps).collect::<Vec<_>>(), [4, 4, 4]);
    assert_eq!(told(&compared.steps)[0], "plan Same 0:files.read a=one 1:files.read a=one 2:files.read a=one");
}

#[test]
fn a_difference_in_the_middle_is_named_with_both_sides_and_what_follows_is_aligned() {
    let mut other = WORK;
    other[1] = ("tools.call", "files.write d", "ok");
    let runs =
        vec![Written::new("r-1").work("f-a/1/generate", &WORK), Written::new("r-2").work("f-a/1/generate", &other)];
    let compared = compared(runs);
    let first = compared.first_difference.unwrap();
    assert_eq!((first.number, first.change, first.kind.as_str()), (2, StepChange::Call, "tools.call"));
    assert_eq!(first.feature.as_deref(), Some("a"));
    let calls: Vec<_> = first.sides.iter().map(|side| side.call.as_str()).collect();
    assert_eq!(calls, ["files.write b", "files.write d"]);
    assert_eq!(compared.counts, StepCounts { same: 2, call: 1, ..StepCounts::default() });
}

#[test]
fn another_answer_is_shown_from_the_line_that_differs() {
    let long = |end: &str| format!("{}\nthe end is {end}", "x".repeat(2_000));
    let run = |name, end: &str| Written::new(name).work("plan", &[("tools.call", "files.read a", long(end).as_str())]);
    let first = compared(vec![run("r-1", "one"), run("r-2", "two")]).first_difference.unwrap();
    assert_eq!(first.change, StepChange::Answer);
    let sides: Vec<_> =
        first.sides.iter().map(|side| (side.answer.as_str(), side.skipped_bytes, side.is_cut)).collect();
    assert_eq!(sides, [("the end is one", 2_001, false), ("the end is two", 2_001, false)]);
}

#[test]
fn a_further_round_and_a_further_feature_are_missing_in_the_other_run() {
    let one = Written::new("r-1").work("f-a/1/generate", &WORK).work("f-b/1/generate", &WORK[..1]);
    let two = Written::new("r-2")
        .work("f-a/1/generate", &WORK)
        .work("f-a/2/generate", &WORK[..1])
        .work("f-c/1/judge", &WORK[..1]);
    let compared = compared(vec![one, two]);
    assert_eq!(compared.counts, StepCounts { same: 3, missing: 3, ..StepCounts::default() });
    assert_eq!(
        told(&compared.steps)[3..],
        [
            "f-a/2/generate Missing 1:files.read a=one",
            "f-c/1/judge Missing 1:files.read a=one",
            "f-b/1/generate Missing 0:files.read a=one",
        ]
    );
    assert_eq!(compared.first_difference.map(|step| step.work).as_deref(), Some("f-a/2/generate"));
}

#[test]
fn features_that_ran_in_another_order_are_the_same_and_the_first_difference_is_the_first_in_time() {
    let late = [WORK[0], WORK[1], ("tools.call", "files.read c", "three")];
    let one = Written::new("r-1").work("f-b/1/generate", &WORK).work("f-a/1/generate", &WORK);
    let same = Written::new("r-2").work("f-a/1/generate", &WORK).work("f-b/1/generate", &WORK);
    let other = Written::new("r-3").work("f-a/1/generate", &late).work("f-b/1/generate", &late);
    assert_eq!(compared(vec![one, same]).first_difference, None);
    let mut one = Written::new("r-1").work("f-b/1/generate", &WORK);
    // Both ran at once, and this one had its third step before the other one had its.
    one.now_ms = 500;
    let first = compared(vec![one.work("f-a/1/generate", &WORK), other]).first_difference.unwrap();
    assert_eq!((first.work.as_str(), first.change), ("f-a/1/generate", StepChange::Answer));
}

#[test]
fn a_reply_is_the_same_whatever_it_cost_and_a_request_that_differs_alone_is_told() {
    let of = |name, call, text| {
        let reply = reply(text, name);
        let steps = [("conversation.complete", call, reply.as_str()), ("tools.call", "files.read a", "one")];
        Written::new(name).work("f-a/1/generate", &steps)
    };
    let counts = |runs| compared(runs).counts;
    assert_eq!(counts(vec![of("r-1", "m hi", "so"), of("r-2", "m hi", "so")]).same, 2);
    let other_request = compared(vec![of("r-1", "m hi", "so"), of("r-2", "m ho", "so")]);
    assert_eq!(other_request.counts, StepCounts { same: 1, request: 1, ..StepCounts::default() });
    assert_eq!(other_request.first_difference, None);
    assert_eq!(counts(vec![of("r-1", "m hi", "so"), of("r-2", "m ho", "no")]).answer, 1);
}

#[test]
fn checks_are_the_same_by_their_result_and_what_runs_do_anew_is_no_step() {
    let report = |passed: bool, stdout: &str| {
        let exit_code = i32::from(!passed);
        json!({ "Ok": {
            "name": "c", "passed": passed, "exit_code": exit_code, "stdout": stdout, "stderr": "", "truncated": false,
        } })
        .to_string()
    };
    let run = |name, passed, stdout: &str| {
        let report = report(passed, stdout);
        let steps =
            [("timer.sleep", "until 1", name), ("tools.list", "files", name), ("checks.run", "c", report.as_str())];
        Written::new(name).work("f-a/1/judge", &steps)
    };
    let counts = |runs| compared(runs).counts;
    let same = StepCounts { same: 1, ..StepCounts::default() };
    assert_eq!(counts(vec![run("r-1", true, "in 1 s"), run("r-2", true, "in 2 s")]), same);
    let other = compared(vec![run("r-1", true, "in 1 s"), run("r-2", false, "in 1 s")]);
    assert_eq!(other.counts, StepCounts { answer: 1, ..StepCounts::default() });
    let first = other.first_difference.unwrap();
    assert_eq!(first.sides[1].answer, "failed, exit code 1\nin 1 s");
}

#[test]
fn delegations_are_matched_by_their_place_and_not_by_the_entry_that_made_them() {
    let run = |name, entry: u32| {
        let run = Written::new(name).work("f-a/1/generate", &WORK);
        run.work(&format!("f-a/1/generate#{entry}"), &WORK[..1])
            .work(&format!("f-a/1/generate#{}", entry + 1), &WORK[..2])
    };
    let compared = compared(vec![run("r-1", 4), run("r-2", 9)]);
    assert_eq!(compared.counts, StepCounts { same: 6, ..StepCounts::default() });
    assert_eq!(compared.steps[3].work, "f-a/1/generate > 1");
    assert_eq!(compared.steps[5].work, "f-a/1/generate > 2");
}

#[test]
fn the_result_of_a_work_is_its_last_step() {
    let run = |name, result: &str| {
        let mut run = Written::new(name).work("f-a/1/judge", &[]);
        run.trace.result(Finished { result: result.into(), fuel_used: 1, interrupted: false, at_ms: 1_100 });
        run
    };
    let compared = compared(vec![run("r-1", "yes"), run("r-2", "no")]);
    assert_eq!(told(&compared.steps), ["f-a/1/judge Answer 0:=yes 1:=no"]);
    assert_eq!(compared.steps[0].kind, "result");
}

#[test]
fn three_runs_stand_in_one_row_where_they_did_alike() {
    let only = [("tools.call", "poster.post x", "ok")];
    let one = Written::new("r-1").work("plan", &WORK[..1]);
    let two = Written::new("r-2").work("plan", &[WORK[0], only[0]]);
    let three = Written::new("r-3").work("plan", &[WORK[0], only[0]]);
    let compared = compared(vec![one, two, three]);
    assert_eq!(
        told(&compared.steps),
        [
            "plan Same 0:files.read a=one 1:files.read a=one 2:files.read a=one",
            "plan Missing 1:poster.post x=ok 2:poster.post x=ok",
        ]
    );
}

#[test]
fn long_runs_are_listed_around_their_differences_and_the_rest_is_counted() {
    let run = |name, answer: &str| {
        let calls: Vec<String> = (0..3_000).map(|number| format!("files.read {number}")).collect();
        let mut steps: Vec<(&str, &str, &str)> = calls.iter().map(|call| ("tools.call", call.as_str(), "ok")).collect();
        steps[1_000].2 = answer;
        Written::new(name).work("f-a/1/generate", &steps)
    };
    let compared = compared(vec![run("r-1", "one"), run("r-2", "two")]);
    let numbers: Vec<usize> = compared.steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, (998..=1_004).collect::<Vec<_>>());
    assert_eq!((compared.steps_left_out, compared.counts.same, compared.counts.answer), (2_993, 2_999, 1));
}

#[test]
fn steps_beyond_the_most_that_are_read_are_counted() {
    let steps = vec![("tools.call", "files.read a", "one"); 10_001];
    let traced = Written::new("r-1").work("plan", &steps).traced(&[]);
    assert_eq!((traced.trace.steps(), traced.trace.left_out()), (10_000, 1));
}

#[test]
fn listed_answers_are_bounded_together() {
    let long = "x".repeat(4 << 10);
    let run = |name, begin: &str| {
        let answer = format!("{begin}{long}");
        Written::new(name).work("plan", &vec![("tools.call", "files.read a", answer.as_str()); 600])
    };
    let compared = compared(vec![run("r-1", "1"), run("r-2", "2")]);
    let bytes: usize = compared.steps.iter().flat_map(|step| &step.sides).map(|side| side.answer.len()).sum();
    assert!(bytes <= 1 << 20 && bytes > 1 << 19, "{bytes}");
    assert_eq!((compared.steps.len(), compared.counts.answer), (600, 600));
    assert!(compared.steps.iter().all(|step| step.sides.iter().all(|side| side.is_cut)));
}

#[test]
fn a_difference_behind_the_text_that_is_kept_is_found_all_the_same() {
    let long = "x".repeat(100 << 10);
    let run = |name, end: &str| {
        let answer = format!("{long}{end}");
        Written::new(name).work("plan", &[("tools.call", "files.read a", answer.as_str())])
    };
    let compared = compared(vec![run("r-1", "1"), run("r-2", "2")]);
    assert_eq!(compared.counts.answer, 1);
    let first = compared.first_difference.unwrap();
    let sides: Vec<_> = first.sides.iter().map(|side| (side.skipped_bytes + side.answer.len(), side.is_cut)).collect();
    assert_eq!(sides, [(64 << 10, true), (64 << 10, true)]);
}

#[test]
fn features_stand_beside_each_other_with_their_last_verdicts() {
    let judged = |trace: &mut RunTrace, round, mark| {
        let judgements = vec![Judgement { criterion: "c".into(), mark, why: "so".into() }];
        let passed = mark == Mark::Pass;
        trace.event(Event::Judged { feature: "a".into(), round, passed, judgements, evidence: Default::default() });
    };
    let (mut one, mut two) = (Written::new("r-1"), Written::new("r-2"));
    judged(&mut one.trace, 1, Mark::Pass);
    judged(&mut two.trace, 1, Mark::Fail);
    judged(&mut two.trace, 2, Mark::Pass);
    let passing = FeatureStatus::Passing;
    let one = one.traced(&[("a", passing), ("b", passing), ("c", passing)]);
    let two = two.traced(&[("d", passing), ("a", passing), ("b", FeatureStatus::Failing)]);
    let compared = compare(vec![one, two], Vec::new());
    let told: Vec<_> =
        compared.features.iter().map(|one| (one.feature.as_str(), one.is_same, one.sides.len())).collect();
    assert_eq!(told, [("a", true, 2), ("b", false, 2), ("c", false, 1), ("d", false, 1)]);
    let verdicts: Vec<_> = compared.features[0].sides.iter().filter_map(|side| side.verdict.as_ref()).collect();
    assert_eq!(verdicts.iter().map(|one| (one.round, one.verdicts)).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
}
