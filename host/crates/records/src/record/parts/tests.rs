//! States are stored by the step, and read as they were at each event.

use super::*;
use longhaul_core::event::Event;
use longhaul_core::store::{Key, Op};
use longhaul_core::work::{FeatureSpec, FeatureStatus};
use longhaul_harness::Feature;
use longhaul_testkit::MemoryStore;

fn feature(id: usize) -> Feature {
    Feature::new(FeatureSpec {
        id: format!("f{id}"),
        title: String::new(),
        instruction: "do it ".repeat(100),
        category: "functional".into(),
        priority: 5,
        agent: None,
        criteria: Vec::new(),
        checks: Vec::new(),
        depends_on: Vec::new(),
    })
}

fn state(features: usize) -> RunState {
    RunState { goal: "much ".repeat(1_000), features: (0..features).map(feature).collect(), ..RunState::new() }
}

fn run() -> RunId {
    RunId::from_text("r-1")
}

fn present_row(store: &MemoryStore) -> Vec<u8> {
    store.get(Table::States, &RunRecord::key(&run())).unwrap().unwrap()
}

/// Stores the state with these events; returns how many bytes were written that the store did not have.
async fn step(store: &MemoryStore, state: &RunState, numbers: RangeInclusive<u64>) -> usize {
    let event = |number| RunEvent { run: run(), number, at_ms: number, event: Event::Paused };
    let events: Vec<RunEvent> = numbers.map(event).collect();
    let mut batch = put(store, Batch::new(), &run(), state, &events).unwrap();
    let bytes = batch.ops.iter().map(|op| match op {
        Op::Put(_, _, value) => value.len(),
        Op::Blob(digest, content) if store.blob(digest).unwrap().is_none() => content.len(),
        _ => 0,
    });
    let bytes = bytes.sum();
    for event in &events {
        batch = batch.insert(Table::Events, RunRecord::key(&run()).number(event.number), "{}");
    }
    store.commit(batch).await.unwrap();
    assert_eq!(load(store, &run(), &present_row(store)).unwrap(), *state);
    bytes
}

/// A step without events.
async fn quiet_step(store: &MemoryStore, state: &RunState) -> usize {
    step(store, state, RangeInclusive::new(1, 0)).await
}

#[tokio::test]
async fn a_step_writes_what_changed_and_the_whole_is_read_again() {
    let memory = MemoryStore::new();
    let mut state = state(100);
    assert!(step(&memory, &state, 1..=1).await > 5_000);
    assert_eq!(step(&memory, &state, 2..=2).await, 0);
    state.features[7].become_status(FeatureStatus::InProgress, "session 1");
    let changed = step(&memory, &state, 3..=3).await;
    let row = memory.get(Table::States, &past::key(&run(), 3)).unwrap().unwrap().len();
    assert!(row < 2_500 && changed < 4_000, "{changed} bytes for one of 100 features, {row} of them in the row");
    state.features.push(feature(100));
    state.goal.clear();
    state.paused = true;
    step(&memory, &state, 4..=4).await;
    state.features.truncate(3);
    step(&memory, &state, 5..=5).await;
    state.features.extend((3..40).map(feature));
    step(&memory, &state, 6..=6).await;
}

#[tokio::test]
async fn a_text_is_read_as_it_was_whatever_it_starts_with() {
    let memory = MemoryStore::new();
    let mut state = state(1);
    for text in ["\0content:", "\0", "\0\0x", "\0content:00", &"\0long".repeat(1_000), ""] {
        state.features[0].why = text.to_owned();
        state.goal = text.repeat(300);
        quiet_step(&memory, &state).await;
    }
}

#[tokio::test]
async fn every_state_is_read_as_it_was_at_each_event() {
    let (memory, mut now) = (MemoryStore::new(), state(40));
    assert!(state_at(&memory, &run(), u64::MAX).unwrap().is_none(), "nothing is stored yet");
    let mut states = Vec::new();
    for (number, last) in [2_u64, 5, 7, 30].into_iter().enumerate() {
        now.features[number * 10].become_status(FeatureStatus::InProgress, "session 1");
        now.goal.push_str("more");
        step(&memory, &now, last - 1..=last).await;
        states.push((last, now.clone()));
    }
    for event in 0..40 {
        let expected = states.iter().rev().find(|(last, _)| *last <= event);
        assert_eq!(state_at(&memory, &run(), event).unwrap().as_ref(), expected, "at event {event}");
    }
    assert!(state_at(&memory, &RunId::from_text("r-12"), 9).unwrap().is_none(), "another run has its own");
}

#[tokio::test]
async fn an_event_belongs_to_the_step_that_stored_it_or_to_none_but_itself() {
    let (memory, mut now) = (MemoryStore::new(), state(1));
    step(&memory, &now, 1..=3).await;
    now.paused = true;
    step(&memory, &now, 7..=9).await;
    for (event, step) in [(1, 1..=3), (3, 1..=3), (4, 4..=4), (6, 6..=6), (7, 7..=9), (9, 7..=9), (10, 10..=10)] {
        assert_eq!(step_of(&memory, &run(), event).unwrap(), step, "event {event}");
    }
    assert_eq!(history_begins(&memory, &run()).unwrap(), Some(3));
}

#[tokio::test]
async fn a_step_without_events_takes_the_place_of_the_one_before() {
    let (memory, mut now) = (MemoryStore::new(), state(1));
    step(&memory, &now, 1..=3).await;
    now.paused = true;
    quiet_step(&memory, &now).await;
    assert_eq!(state_at(&memory, &run(), 3).unwrap(), Some((3, now.clone())));
    assert_eq!(step_of(&memory, &run(), 2).unwrap(), 1..=3);
    // Events of agents' steps alone follow, and then a change without an event of its own.
    let more = RunRecord::key(&run()).number(4);
    memory.commit(Batch::new().insert(Table::Events, more, "{}")).await.unwrap();
    now.paused = false;
    quiet_step(&memory, &now).await;
    assert_eq!(state_at(&memory, &run(), 4).unwrap(), Some((4, now)));
    assert!(state_at(&memory, &run(), 3).unwrap().is_some_and(|(number, state)| number == 3 && state.paused));
    assert_eq!(step_of(&memory, &run(), 4).unwrap(), 4..=4);
}

#[tokio::test]
async fn a_state_that_was_stored_whole_is_read_and_then_stored_in_parts() {
    let (memory, mut now) = (MemoryStore::new(), state(2));
    let whole = now.to_json().into_bytes();
    memory.commit(Batch::new().put(Table::States, RunRecord::key(&run()), whole.clone())).await.unwrap();
    assert_eq!(load(&memory, &run(), &whole).unwrap(), now);
    assert!(state_at(&memory, &run(), 9).unwrap().is_none(), "an earlier release kept no history");
    assert_eq!(history_begins(&memory, &run()).unwrap(), None);
    now.paused = true;
    step(&memory, &now, 5..=5).await;
    assert!(state_at(&memory, &run(), 4).unwrap().is_none());
    assert_eq!(state_at(&memory, &run(), 5).unwrap(), Some((5, now)));
    assert!(load(&memory, &run(), b"{}").is_err());
}

/// A state as the first form has it: short fields, one long field, one page of features.
fn in_earlier_parts(state: &RunState) -> Batch {
    let Value::Object(mut fields) = serde_json::to_value(state).unwrap() else { panic!("an object") };
    let Some(Value::Array(features)) = fields.remove(FEATURES) else { panic!("a list") };
    let goal = fields.remove("goal").unwrap();
    let key = || RunRecord::key(&run());
    let mut batch = Batch::new();
    let mut long = goal;
    put_away(&mut long, &mut batch);
    batch = batch.put(Table::States, key().and("field").and("goal"), long.to_string());
    let digests: Vec<&str> = features.iter().map(|_| "0123456789abcdef0123456789abcdef").collect();
    let row = serde_json::json!({ "in_parts": 1, "fields": fields, "rows": { "goal": "0123" }, "pages": ["4567"] });
    batch = batch.put(Table::States, key().and("page").number(0), serde_json::to_vec(&digests).unwrap());
    for (at, mut feature) in features.into_iter().enumerate() {
        let spec = batch.blob(serde_json::to_vec(&feature[SPEC]).unwrap());
        feature[SPEC] = spec.to_string().into();
        put_away(&mut feature, &mut batch);
        batch = batch.put(Table::States, key().and("feature").number(at as u64), feature.to_string());
    }
    batch.put(Table::States, key(), row.to_string())
}

#[tokio::test]
async fn the_first_form_in_parts_is_read_and_its_rows_go_with_the_next_step() {
    let (memory, mut now) = (MemoryStore::new(), state(3));
    now.features[1].why = "long ".repeat(500);
    memory.commit(in_earlier_parts(&now)).await.unwrap();
    let other = Key::of("r-12").and("feature").number(0);
    memory.commit(Batch::new().put(Table::States, other.clone(), "of another run")).await.unwrap();
    assert_eq!(load(&memory, &run(), &present_row(&memory)).unwrap(), now);
    assert!(state_at(&memory, &run(), 9).unwrap().is_none());

    step(&memory, &now, 8..=8).await;
    let keys: Vec<Vec<u8>> = memory.rows(Table::States).into_iter().map(|(key, _)| key).collect();
    let expected = [RunRecord::key(&run()), past::key(&run(), 8), other];
    assert_eq!(keys, expected.map(|key| key.as_bytes().to_vec()), "the rows of the first form are deleted");
    assert_eq!(state_at(&memory, &run(), 8).unwrap(), Some((8, now)));
}

#[tokio::test]
async fn a_release_that_cannot_read_a_form_says_that_it_is_newer() {
    let (memory, now) = (MemoryStore::new(), state(1));
    step(&memory, &now, 1..=1).await;
    // What the releases before this form made of a row that is none of theirs.
    let row = String::from_utf8(present_row(&memory)).unwrap();
    let refused = RunState::from_json(&row).unwrap_err().to_string();
    assert!(refused.contains("resume it with the newer longhaul"), "{refused}");

    let newer = row.replace("\"in_parts\":2", "\"in_parts\":3");
    assert_ne!(row, newer);
    let refused = load(&memory, &run(), newer.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("of a newer longhaul"), "{refused}");
    memory.commit(Batch::new().put(Table::States, RunRecord::key(&run()), newer)).await.unwrap();
    assert!(put(&memory, Batch::new(), &run(), &now, &[]).is_err(), "and it is not written over");
}
