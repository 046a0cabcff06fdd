//! Facts that several processes note under one key, as handles of one store: nothing but the store knows of both.

use super::*;
use longhaul_core::memory::{Embedded, Trust};
use longhaul_testkit::{HandClock, MemoryStore, ProcessStore};
use std::collections::BTreeSet;

fn memory_of(store: &Arc<MemoryStore>) -> (Arc<ProcessStore>, Embedded) {
    let process = Arc::new(ProcessStore::of(store));
    let clock = Arc::new(HandClock::at(HandClock::START_MS));
    (Arc::clone(&process), Embedded::new(process, clock))
}

fn due(number: u64) -> Due {
    let run = RunId::from_text(format!("r-{number}"));
    Due { run, at_ms: number, status: "completed".into(), attempts: 0, reply: None }
}

fn fact(value: &str) -> Fact {
    Fact { key: "port".into(), value: value.into(), trust: Trust::OwnWords, step: String::new(), ttl_s: None }
}

/// The values of a key, the present one and those that it replaced.
async fn values(store: &Arc<MemoryStore>) -> BTreeSet<String> {
    let entry = memory_of(store).1.get("episodic/p", "port").await.expect("read").expect("noted");
    let note = MemoryNote::read(&entry);
    let replaced = note.replaced.iter().map(|one| one.value.to_string());
    replaced.chain([note.value.to_string()]).collect()
}

/// Remembers facts of a run as its process does.
async fn note(store: Arc<MemoryStore>, number: u64, values: [&str; 2]) {
    let (process, memory) = memory_of(&store);
    let facts = values.map(fact);
    let facts: Vec<&Fact> = facts.iter().collect();
    let mut attempts = ChangeAttempts::in_table(Table::Memory);
    loop {
        let mut batch = Batch::new();
        note_facts(&memory, &mut batch, "episodic/p", &due(number), &facts).await.expect("staged");
        match process.commit(batch).await {
            Ok(()) => break,
            Err(error) => attempts.again(error.into()).await.expect("it is its turn some time"),
        }
    }
}

/// Each process used to note over what was there before all of them, and a model that named a key twice over itself.
#[tokio::test]
async fn of_facts_that_several_processes_note_under_one_key_none_is_lost() {
    let store = Arc::new(MemoryStore::new());
    let processes = [["1", "2"], ["3", "4"], ["5", "6"]];
    let noting = (1..).zip(processes).map(|(number, values)| tokio::spawn(note(Arc::clone(&store), number, values)));
    // All of them have begun before the first one is waited for.
    for one in noting.collect::<Vec<_>>() {
        one.await.expect("noted");
    }
    let expected: BTreeSet<String> = processes.concat().into_iter().map(|value| format!("{value:?}")).collect();
    assert_eq!(values(&store).await, expected);
}

#[tokio::test]
async fn who_looks_at_a_fact_neither_replaces_nor_forgets_one_that_was_noted_since() {
    let store = Arc::new(MemoryStore::new());
    let noted = |value: &str| MemoryNote::new(json!(value), BY, "r-1", "", Trust::Web, 1).entry("port", vec![], None);
    let ((_, theirs), (_, ours)) = (memory_of(&store), memory_of(&store));
    let space = "episodic/p";
    assert!(ours.replace(space, None, noted("1")).await.expect("noted"));
    let looked_at = ours.get(space, "port").await.expect("read").expect("noted");
    // Both compare before they commit, so that the store alone can tell which one is late.
    let (first, late) = tokio::join!(
        biased;
        theirs.replace(space, Some(&looked_at), noted("2")),
        ours.replace(space, Some(&looked_at), noted("3")),
    );
    assert_eq!((first, late), (Ok(true), Ok(false)));
    assert_eq!(ours.replace(space, None, noted("4")).await, Ok(false), "there is one");
    assert_eq!(ours.remove(space, &looked_at).await, Ok(false));
    let now = ours.get(space, "port").await.expect("read").expect("it is still there");
    let (removed, replaced) =
        tokio::join!(biased; ours.remove(space, &now), theirs.replace(space, Some(&now), noted("5")));
    assert_eq!((removed, replaced), (Ok(true), Ok(false)));
    assert_eq!(ours.get(space, "port").await, Ok(None));
    assert_eq!(ours.replace(space, Some(&now), noted("6")).await, Ok(false), "it is gone");
}

#[tokio::test]
async fn an_expired_row_is_replaced_like_none_and_one_that_expires_at_once_takes_nothing_of_others_along() {
    let store = Arc::new(MemoryStore::new());
    let (_, memory) = memory_of(&store);
    let entry = |value: &str, expires_at_ms| MemoryEntry {
        key: "port".into(),
        value: format!("{value:?}"),
        tags: Vec::new(),
        expires_at_ms,
    };
    let row = serde_json::to_vec(&entry("old", Some(1.0))).expect("a row");
    let place = Key::of("episodic").and("p").and("port");
    store.commit(Batch::new().put(Table::Memory, place.clone(), row)).await.expect("stored");
    assert_eq!(memory.get("episodic/p", "port").await, Ok(None), "it has expired");
    assert_eq!(memory.replace("episodic/p", None, entry("new", None)).await, Ok(true));
    let over = entry("over", Some(1.0));
    assert_eq!(memory.replace("episodic/p", None, over.clone()).await, Ok(false), "there is one");
    assert_eq!(memory.replace("episodic/p", Some(&entry("new", None)), over).await, Ok(true));
    assert_eq!(store.get(Table::Memory, &place), Ok(None));
}
