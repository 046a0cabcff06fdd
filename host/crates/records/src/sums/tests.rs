//! Tests of the sums of runs.

use super::*;
use crate::index::ChangeTrackingStore;
use crate::record::RunRecord;
use longhaul_core::InvocationId;
use longhaul_testkit::MemoryStore;
use std::sync::Arc;

fn run() -> RunId {
    RunId::from_text("r-1")
}

fn thought(number: u64, at_ms: u64, model: &str) -> RunEvent {
    let usage = Usage { input_tokens: 10, output_tokens: 1, cost_microdollars: 2.0, ..Usage::default() };
    let event = Event::Thought {
        invocation: InvocationId::from_text("r-1/plan"),
        agent: "agents.code".into(),
        step: 1,
        text: String::new(),
        model: model.into(),
        provider_model: "openai/x".into(),
        usage,
        took_ms: None,
        route: None,
        details: None,
    };
    RunEvent { run: run(), number, at_ms, event }
}

fn events(numbers: std::ops::RangeInclusive<u64>) -> Batch {
    let mut batch = Batch::new();
    let events: Vec<RunEvent> = numbers.map(|number| thought(number, 5, "m")).collect();
    record::put_events(&mut batch, &run(), &events).unwrap();
    batch
}

fn replies(sums: &RunSums) -> u64 {
    sums.spent.iter().map(|one| one.replies).sum()
}

#[tokio::test]
async fn sums_are_stored_with_their_events_and_each_event_counts_once() {
    let memory = Arc::new(MemoryStore::new());
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(1..=3)).await.unwrap();
    store.commit(events(4..=4)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums), repair.is_none()), (4, 4, true));
    assert_eq!(sums.spent[0].usage.input_tokens, 40);
    // The same events once more are refused, and then nothing is counted either.
    assert!(store.commit(events(4..=4)).await.is_err());
    assert_eq!(read(&*memory, &run()).unwrap().sums.last, 4);
}

#[tokio::test]
async fn sums_of_an_earlier_version_are_made_of_its_events_and_stored() {
    let memory = Arc::new(MemoryStore::new());
    // Without the wrapper, as before there were sums.
    memory.commit(events(1..=1_500)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums)), (1_500, 1_500));
    assert_eq!(
        [0, 700, 1_500, 9_000].map(|event| replies(&until(&*memory, &run(), event).unwrap())),
        [0, 700, 1_500, 1_500]
    );
    super::repair(&*memory, repair.into_iter().collect()).await;
    assert!(read(&*memory, &run()).unwrap().repair.is_none());
    // A run that goes on has its earlier events counted, too.
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    memory.commit(events(1_501..=1_502)).await.unwrap();
    store.commit(events(1_503..=1_503)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums), repair.is_none()), (1_503, 1_503, true));
}

#[tokio::test]
async fn a_damaged_row_is_made_anew_and_a_newer_one_is_not_overwritten() {
    let memory = Arc::new(MemoryStore::new());
    memory.commit(events(1..=2)).await.unwrap();
    memory.commit(Batch::new().put(Table::States, key(&run()), "{")).await.unwrap();
    let old = read(&*memory, &run()).unwrap();
    assert_eq!(replies(&old.sums), 2);
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(3..=3)).await.unwrap();
    repair(&*memory, old.repair.into_iter().collect()).await;
    assert_eq!(read(&*memory, &run()).unwrap().sums.last, 3);
}

#[tokio::test]
async fn the_sums_of_a_run_are_deleted_with_its_record() {
    let memory = Arc::new(MemoryStore::new());
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(1..=1)).await.unwrap();
    assert!(memory.get(Table::States, &key(&run())).unwrap().is_some());
    let mut gone = Batch::new();
    gone.push(Op::Delete(Table::Runs, RunRecord::key(&run())));
    store.commit(gone).await.unwrap();
    assert_eq!(memory.get(Table::States, &key(&run())).unwrap(), None);
}

/// An import in the place of a run left the sums of the run that it replaced, and its next events were not counted.
#[tokio::test]
async fn the_sums_of_a_run_that_was_replaced_are_those_of_its_present_events() {
    let memory = Arc::new(MemoryStore::new());
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(1..=5)).await.unwrap();
    let (mut batch, record) = (Batch::new(), RunRecord::key(&run()));
    batch.push(Op::Delete(Table::Runs, record.clone()));
    (1..=5).for_each(|number| batch.push(Op::Delete(Table::Events, record.clone().number(number))));
    batch = batch.put(Table::Runs, record.clone(), "{}");
    for number in 1..=2 {
        let event = serde_json::to_vec(&thought(number, 5, "m")).unwrap();
        batch = batch.put(Table::Events, record.clone().number(number), event);
    }
    store.commit(batch).await.unwrap();
    let FreshSums { sums, .. } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums)), (2, 2));
    store.commit(events(3..=3)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums), repair.is_none()), (3, 3, true));
    // A row of an earlier version, which such an import left.
    let left = serde_json::to_vec(&RunSums { last: 500, ..RunSums::default() }).unwrap();
    memory.commit(Batch::new().put(Table::States, key(&run()), left)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums), repair.is_some()), (3, 3, true));
}

#[tokio::test]
async fn an_event_that_is_not_stored_yet_is_not_passed_over_by_a_later_one() {
    let memory = Arc::new(MemoryStore::new());
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(1..=1)).await.unwrap();
    store.commit(events(3..=3)).await.unwrap();
    memory.commit(events(2..=2)).await.unwrap();
    let FreshSums { sums, .. } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums)), (3, 3));
}

#[tokio::test]
async fn an_event_under_the_key_of_a_run_counts_for_no_other_one_whatever_it_says() {
    let memory = Arc::new(MemoryStore::new());
    let (store, _) = ChangeTrackingStore::new(Arc::clone(&memory) as Arc<dyn Store>);
    store.commit(events(1..=1)).await.unwrap();
    let (other, lie) = (RunId::from_text("r-2"), serde_json::to_vec(&thought(1_000, 5, "m")).unwrap());
    let at = |number| RunRecord::key(&other).number(number);
    store.commit(Batch::new().insert(Table::Events, at(1), lie.clone())).await.unwrap();
    store.commit(Batch::new().put(Table::Events, at(2), lie)).await.unwrap();
    let FreshSums { sums, repair } = read(&*memory, &run()).unwrap();
    assert_eq!((sums.last, replies(&sums), repair.is_none()), (1, 1, true));
    assert_eq!(read(&*memory, &other).unwrap().sums.last, 0, "its own events have no numbers that lead on");
}

#[test]
fn usage_is_kept_by_day_model_and_agent_and_has_an_end() {
    let mut sums = RunSums::default();
    sums.add(&thought(1, DAY_MS - 1, "a"));
    sums.add(&thought(2, DAY_MS, "a"));
    sums.add(&thought(3, DAY_MS, "b"));
    sums.add(&thought(4, DAY_MS, "b"));
    let found: Vec<_> = sums.spent.iter().map(|one| (one.day, one.model.as_str(), one.replies)).collect();
    assert_eq!(found, [(0, "a", 1), (1, "a", 1), (1, "b", 2)]);
    for number in 5..2_000 {
        sums.add(&thought(number, DAY_MS, &format!("m{number}")));
    }
    assert_eq!((sums.spent.len(), replies(&sums)), (SPENT_MAX + 1, 1_999));
    assert_eq!(sums.spent[SPENT_MAX].model, OTHER);
}
