//! Each form of a point in a run of two features, and each point that it does not have.

use super::*;
use longhaul_core::journal::{Began, CallVerdict, EffectClass, Journal as _, NewCall};
use longhaul_core::store::{Batch, Table};
use longhaul_core::work::{FeatureSpec, FeatureStatus};
use longhaul_core::{Clock, Digest, Limits};
use longhaul_harness::{Feature, Lane, Work, WorkKind};
use longhaul_journal::{Opened, Recorder};
use longhaul_testkit::{HandClock, MemoryStore};
use serde_json::{Value, json};
use std::sync::Arc;

const BASE: &str = "b0b0000000000000000000000000000000000000";
const FIRST: &str = "c1c1000000000000000000000000000000000000";
const SECOND: &str = "c1c2000000000000000000000000000000000000";

const GENERATE_ONE: &str = "f-one/1/generate";

fn run() -> RunId {
    RunId::from_text("r-1")
}

fn run_record() -> RunRecord {
    RunRecord {
        run: run(),
        project: "p".into(),
        id: String::new(),
        directory: "/p".into(),
        branch: "longhaul/p".into(),
        base: BASE.into(),
        config: String::new(),
        goal: String::new(),
        pins: Default::default(),
        models: Default::default(),
        model: None,
        plan: None,
        ask: None,
        passed_before: Default::default(),
        created_ms: 1_000,
    }
}

fn feature(id: &str) -> Feature {
    Feature::new(FeatureSpec {
        id: id.into(),
        title: String::new(),
        instruction: "do it".into(),
        category: "functional".into(),
        priority: 5,
        agent: None,
        criteria: Vec::new(),
        checks: Vec::new(),
        depends_on: Vec::new(),
    })
}

/// A state with the features of the run, in which one feature is worked on.
fn state(worked_on: Option<&str>) -> RunState {
    let lane = |id: &str| Lane {
        session: None,
        work: Work {
            name: format!("f-{id}/1/generate"),
            attempt: 1,
            job: WorkKind::Discard { feature: id.to_owned() },
        },
        wait: None,
    };
    let mut features: Vec<Feature> = ["one", "two", "late"].map(feature).into();
    features.iter_mut().filter(|feature| Some(&*feature.spec.id) == worked_on).for_each(|feature| {
        feature.become_status(FeatureStatus::InProgress, "session 1");
    });
    RunState { run: Some(run()), features, lanes: worked_on.map(lane).into_iter().collect(), ..RunState::new() }
}

fn event(number: u64, at_ms: u64, of: Value) -> RunEvent {
    let mut event = json!({ "run": "r-1", "number": number, "at_ms": at_ms });
    event.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    serde_json::from_value(event).unwrap()
}

fn starting(feature: &str) -> Value {
    json!({ "type": "session_starting", "feature": feature, "session": 1 })
}

fn committed(feature: &str, commit: &str) -> Value {
    json!({ "type": "committed", "feature": feature, "commit": commit, "files": [] })
}

fn invoked(key: &str) -> Value {
    json!({
        "type": "invocation_started", "invocation": format!("r-1/{key}"), "plugin": "p", "export": "agent.run",
        "feature": null, "round": 1,
    })
}

/// A step of an agent.
fn agent_step(tag: &str) -> Value {
    json!({
        "type": tag, "invocation": format!("r-1/{GENERATE_ONE}"), "agent": "agents.code", "step": 1, "of": 1,
        "text": "", "model": "m", "provider_model": "m", "tool": "t", "function": "f", "arguments": "", "ok": true,
        "output": "", "usage": longhaul_core::model::Usage::default(),
    })
}

async fn put(store: &MemoryStore, state: Option<&RunState>, events: &[RunEvent]) {
    let mut batch = Batch::new();
    if let Some(state) = state {
        batch = record::put_state(store, batch, &run(), state, events).unwrap();
    }
    record::put_events(&mut batch, &run(), events).unwrap();
    store.commit(batch).await.unwrap();
}

/// Writes a journal whose entries are answered at these times, and a last one that is in flight.
async fn journal(store: &Arc<MemoryStore>, key: &str, answered_ms: &[u64]) {
    let clock = Arc::new(HandClock::at(2_000));
    let began = Began {
        plugin: "p".into(),
        table: String::new(),
        component: Digest::of(b"p"),
        export: "agent.run".into(),
        input: Digest::of(b""),
        seed: [0; 32],
        fingerprint: "f".into(),
        context: None,
        told: None,
        at_ms: 2_000,
    };
    let invocation = InvocationId::of_action(&run(), key);
    let (shared, time) = (Arc::clone(store) as Arc<dyn Store>, Arc::clone(&clock) as Arc<dyn Clock>);
    let opened = Recorder::open(shared, time, invocation, began, &Limits::default()).unwrap();
    let Opened::Running(recorder) = opened else { panic!("it is new") };
    let call = || NewCall {
        name: "tools.call",
        summary: String::new(),
        arguments: Digest::of(b"a"),
        class: EffectClass::Acts,
        fuel_used: 0,
    };
    for at_ms in answered_ms {
        let CallVerdict::Go(handle) = recorder.ask(call()).await.unwrap() else { panic!("it is new") };
        clock.advance_ms(at_ms - clock.now_ms());
        recorder.answer(handle, "1".to_owned()).await.unwrap();
    }
    recorder.ask(call()).await.unwrap();
}

/// A run of two features: the first is committed, the second is worked on.
async fn store() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.commit(run_record().insert(Batch::new()).unwrap()).await.unwrap();
    let started = json!({ "type": "run_started", "project": "p", "branch": "longhaul/p" });
    put(&store, Some(&state(None)), &[event(1, 1_000, started), event(2, 1_000, json!({ "type": "paused" }))]).await;
    let began = [event(3, 2_000, starting("one")), event(4, 2_000, invoked(GENERATE_ONE))];
    put(&store, Some(&state(Some("one"))), &began).await;
    put(&store, None, &[event(5, 2_200, agent_step("thought"))]).await;
    put(&store, None, &[event(6, 2_300, agent_step("action"))]).await;
    // The last answer and the end of the work are of one millisecond.
    let ended = [
        event(7, 3_000, agent_step("observation")),
        event(8, 3_000, committed("one", FIRST)),
        event(9, 3_000, starting("two")),
        event(10, 3_000, json!({ "type": "paused" })),
    ];
    put(&store, Some(&state(Some("two"))), &ended).await;
    put(&store, None, &[event(11, 4_000, committed("two", SECOND))]).await;
    journal(&store, GENERATE_ONE, &[2_200, 3_000]).await;
    store
}

#[track_caller]
fn check(store: &MemoryStore, point: &str, event: u64, at_ms: u64, worked_on: Option<&str>) -> PointInRun {
    let found = resolve(store, &run(), &point.parse().unwrap()).unwrap();
    assert_eq!((found.event, found.at_ms), (event, at_ms), "{point}");
    assert_eq!(found.state, state(worked_on), "{point}");
    found
}

#[track_caller]
fn refused(store: &MemoryStore, point: &str, expected: &str) {
    let refused = resolve(store, &run(), &point.parse().unwrap()).unwrap_err().to_string();
    assert!(refused.contains(expected) && !refused.contains('\n'), "{point}: {refused}");
}

#[tokio::test]
async fn a_point_is_at_the_end_of_the_step_that_it_is_in() {
    let store = store().await;
    for (point, event, at_ms, worked_on) in [
        ("event:1", 2, 1_000, None),
        ("event:2", 2, 1_000, None),
        ("event:5", 5, 2_200, Some("one")),
        ("event:8", 10, 3_000, Some("two")),
        ("event:11", 11, 4_000, Some("two")),
        ("step:1", 5, 2_200, Some("one")),
        ("step:2", 6, 2_300, Some("one")),
        ("step:3", 10, 3_000, Some("two")),
        ("feature:one", 4, 2_000, Some("one")),
        ("feature:two", 10, 3_000, Some("two")),
        ("commit:c1c1", 10, 3_000, Some("two")),
        ("commit:c1c2", 11, 4_000, Some("two")),
        ("commit:b0b0", 2, 1_000, None),
        ("time:1970-01-01T00:00:01Z", 2, 1_000, None),
        ("time:1970-01-01T00:00:02.250Z", 5, 2_250, Some("one")),
        ("time:1970-01-01T00:00:03Z", 10, 3_000, Some("two")),
        ("time:1970-01-02", 11, 86_400_000, Some("two")),
    ] {
        let found = check(&store, point, event, at_ms, worked_on);
        assert_eq!(found.invocation, None, "{point}");
    }
}

#[tokio::test]
async fn a_point_at_an_entry_has_the_work_of_its_invocation_in_flight() {
    let store = store().await;
    let invocation = InvocationId::of_action(&run(), GENERATE_ONE);
    for (point, event, at_ms, entry) in [
        ("entry:1", 5, 2_200, 1),
        ("entry:f-one/1/generate:1", 5, 2_200, 1),
        ("entry:r-1/f-one/1/generate:1", 5, 2_200, 1),
        ("entry:f-one/1/generate:2", 6, 3_000, 2),
    ] {
        let found = check(&store, point, event, at_ms, Some("one"));
        assert_eq!(found.invocation, Some((invocation.clone(), entry)), "{point}");
    }
    put(&store, None, &[event(12, 5_000, invoked("f-two/1/generate"))]).await;
    refused(&store, "entry:1", "write entry:KEY:N");
}

#[tokio::test]
async fn a_point_that_a_run_does_not_have_is_refused_in_a_line_that_says_what_it_has() {
    let store = store().await;
    for (point, expected) in [
        ("event:12", "has 11 events"),
        ("step:4", "made 3 steps"),
        ("feature:three", "it has one, two, late"),
        ("feature:late", "no work on feature `late`"),
        ("commit:dddd", "made no commit `dddd`"),
        ("time:1970-01-01T00:00:00Z", "began later, at time:1970-01-01T00:00:01Z"),
        ("entry:3", "was not answered"),
        ("entry:9", "was not answered"),
        ("entry:f-two/1/generate:1", "no invocation `f-two/1/generate`"),
        ("entry:r-12/f-one/1/generate:1", "no invocation `r-12/f-one/1/generate`"),
    ] {
        refused(&store, point, expected);
    }
    let several = resolve(&*store, &run(), &Point::Commit("c1".into())).unwrap_err().to_string();
    assert!(several.contains("several commits"), "{several}");
    let absent = resolve(&*store, &RunId::from_text("r-2"), &Point::Event(1)).unwrap_err().to_string();
    assert_eq!(absent, "there is no run r-2");
}

#[tokio::test]
async fn a_point_before_the_kept_history_is_refused() {
    let store = MemoryStore::new();
    let whole = Batch::new().put(Table::States, RunRecord::key(&run()), state(None).to_json());
    store.commit(run_record().insert(whole).unwrap()).await.unwrap();
    put(&store, None, &[event(1, 1_000, json!({ "type": "paused" })), event(2, 1_000, starting("one"))]).await;
    refused(&store, "event:2", "has no kept history");
    put(&store, Some(&state(Some("one"))), &[event(3, 2_000, json!({ "type": "paused" }))]).await;
    refused(&store, "event:2", "begins at event 3");
    check(&store, "event:3", 3, 2_000, Some("one"));
}

#[tokio::test]
async fn the_newest_commit_is_the_one_that_the_branch_was_at() {
    let store = store().await;
    let reverted = json!({ "type": "reverted", "to": FIRST, "kept_as": null, "left": [SECOND], "features": ["two"] });
    put(&store, None, &[event(12, 5_000, reverted)]).await;
    for (event, expected) in [(0, BASE), (7, BASE), (8, FIRST), (10, FIRST), (11, SECOND), (12, FIRST), (99, FIRST)] {
        assert_eq!(newest_commit(&*store, &run_record(), event).unwrap(), expected, "at event {event}");
    }
    // More events than are read at once.
    let many: Vec<RunEvent> = (13..=2_600).map(|number| event(number, 6_000, json!({ "type": "paused" }))).collect();
    put(&store, None, &many).await;
    assert_eq!(newest_commit(&*store, &run_record(), 2_600).unwrap(), FIRST);
}

#[tokio::test]
async fn the_answered_entries_at_a_time_are_those_without_a_gap() {
    let store = store().await;
    let invocation = InvocationId::of_action(&run(), GENERATE_ONE);
    for (at_ms, expected) in [(0, 0), (2_199, 0), (2_200, 1), (2_999, 1), (3_000, 2), (u64::MAX, 2)] {
        assert_eq!(answered_until(&*store, &invocation, at_ms).unwrap(), expected, "at {at_ms}");
    }
    let absent = InvocationId::of_action(&run(), "plan");
    assert_eq!(answered_until(&*store, &absent, u64::MAX).unwrap(), 0);
}
