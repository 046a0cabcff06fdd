//! The log entries of events, their cost, and decisions that a run and people change at once.

use super::*;
use crate::contended::{ChangeAttempts, change};
use longhaul_core::Digest;
use longhaul_core::event::WorkUsage;
use longhaul_core::store::{Key, Row, StoreError, Table};
use longhaul_testkit::{MemoryStore, ProcessStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn step(events: Vec<Event>) -> Vec<RunEvent> {
    let run = longhaul_core::RunId::from_text("r-1");
    (1..).zip(events).map(|(number, event)| RunEvent { run: run.clone(), number, at_ms: 5, event }).collect()
}

fn record() -> RunRecord {
    RunRecord {
        run: longhaul_core::RunId::from_text("r-1"),
        project: "p".into(),
        id: String::new(),
        directory: "/p".into(),
        branch: "longhaul/p".into(),
        base: String::new(),
        config: String::new(),
        goal: "\n# A goal".into(),
        pins: BTreeMap::new(),
        plan: None,
        ask: None,
        passed_before: Default::default(),
        models: longhaul_models::set::ModelOptions::default(),
        model: None,
        created_ms: 1,
    }
}

#[track_caller]
fn check(events: Vec<Event>, expected: &[&str]) {
    let (store, record, state) = (MemoryStore::new(), record(), RunState::new());
    let events = step(events);
    let taken = events.iter().flat_map(|event| taken(&store, &record, &state, &events, event).unwrap());
    let told: Vec<String> = taken.map(|taken| format!("{} because {}", taken.decision, taken.reasoning)).collect();
    assert_eq!(told, expected);
}

fn judged(passed: bool) -> Event {
    let mark = if passed { Mark::Pass } else { Mark::Fail };
    let judgement = longhaul_core::work::Judgement { criterion: "c1".into(), mark, why: "no fox".into() };
    Event::Judged { feature: "a".into(), round: 1, passed, judgements: vec![judgement], evidence: Default::default() }
}

fn status(status: FeatureStatus) -> Event {
    Event::Feature { feature: "a".into(), status, why: String::new() }
}

#[test]
fn a_round_that_is_followed_by_another_is_a_decision_to_retry() {
    check(vec![judged(false)], &["try a again, in round 2 because c1: no fox"]);
    check(vec![judged(false), status(FeatureStatus::Failing)], &[]);
    check(vec![judged(true)], &[]);
    let ended = |ok, key: &str| Event::InvocationEnded {
        invocation: InvocationId::from_text(format!("r-1/{key}")),
        outcome: "it trapped".into(),
        ok,
        used: WorkUsage::default(),
        agent: "agents.code".into(),
    };
    check(vec![ended(false, "f-a/e1/2/generate")], &["try a again, in round 3 because it trapped"]);
    check(vec![ended(true, "f-a/2/generate")], &[]);
    check(vec![ended(false, "f-a/2/judge")], &[]);
    check(vec![ended(false, "f-a/2/generate#7")], &[]);
    check(vec![ended(false, "f-a/2/generate"), status(FeatureStatus::Blocked)], &[]);
}

/// A store that counts the rows that are read.
#[derive(Default)]
struct Counting {
    memory: MemoryStore,
    rows: AtomicUsize,
}

impl Counting {
    fn count(&self, rows: usize) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows that were read since the last query.
    fn rows_read(&self) -> usize {
        self.rows.swap(0, Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Store for Counting {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.count(1);
        self.memory.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let found = self.memory.scan(table, prefix, after, limit)?;
        self.count(found.len());
        Ok(found)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.memory.commit(batch).await
    }
}

/// A decision for a feature, or for none; the higher its number, the newer it is.
fn decision(number: u64, feature: Option<&str>) -> Decision {
    Decision {
        // So that the order by id differs from the order by time.
        id: format!("{:05}", 99_999 - number),
        at_ms: number,
        run: "r-1".into(),
        feature: feature.map(str::to_owned),
        ..Decision::default()
    }
}

/// A project with a decision each for so many features, `a` the last of them.
async fn kept(count: u64) -> Counting {
    let store = Counting::default();
    for number in 1..=count {
        let feature = if number == count { "a".to_owned() } else { format!("f{number}") };
        let batch = decision::put(&store, Batch::new(), "p", &decision(number, Some(&feature))).unwrap();
        store.commit(batch).await.unwrap();
    }
    store.rows_read();
    store
}

#[tokio::test]
async fn the_end_of_a_feature_reads_its_own_decisions_and_no_others() {
    for count in [1, 300] {
        let store = kept(count).await;
        let (record, state, events) = (record(), RunState::new(), step(vec![status(FeatureStatus::Passing)]));
        let batch = put_of_events(Batch::new(), &store, &record, &state, &events).unwrap();
        assert!(store.rows_read() <= 5, "of {count} decisions");
        store.commit(batch).await.unwrap();
        let outcomes = all(&store, "p").unwrap().into_iter().map(|one| one.outcome);
        assert_eq!(outcomes.filter(|outcome| *outcome == DecisionOutcome::Success).count(), 1);
    }
}

#[tokio::test]
async fn decisions_come_the_newest_first_however_many_there_are() {
    let store = kept(300).await;
    let numbers = |limit| {
        let found = newest(&store, "p", limit).unwrap();
        found.into_iter().map(|one| one.at_ms).collect::<Vec<_>>()
    };
    assert_eq!(numbers(3), [300, 299, 298]);
    assert!(store.rows_read() <= 6);
    // Recorded again by another attempt: it is newer now, and still one.
    let batch = decision::put(&store, Batch::new(), "p", &Decision { at_ms: 400, ..decision(1, None) }).unwrap();
    store.commit(batch).await.unwrap();
    assert_eq!(numbers(2), [400, 300]);
    assert_eq!(numbers(1_000).len(), 300);
    assert!(decision::of_feature(&store, "p", "r-1", "f1", 10).unwrap().is_empty(), "it is of no feature any more");
    assert!(newest(&store, "other", 10).unwrap().is_empty());
}

#[tokio::test]
async fn decisions_of_a_version_without_an_order_are_found_and_get_one() {
    let store = Counting::default();
    let unordered = |number| (Key::of("p").and(&decision(number, None).id), decision(number, Some("a")));
    for (key, decision) in [unordered(1), unordered(2)] {
        let bytes = serde_json::to_vec(&decision).unwrap();
        store.commit(Batch::new().put(Table::Decisions, key, bytes)).await.unwrap();
    }
    let times = |found: Vec<Decision>| found.into_iter().map(|one| one.at_ms).collect::<Vec<_>>();
    assert_eq!(times(newest(&store, "p", 10).unwrap()), [2, 1]);
    let batch = decision::put(&store, Batch::new(), "p", &decision(3, None)).unwrap();
    store.commit(batch).await.unwrap();
    assert_eq!(times(newest(&store, "p", 10).unwrap()), [3, 2, 1]);
    assert_eq!(times(decision::of_feature(&store, "p", "r-1", "a", 10).unwrap()), [2, 1]);
}

/// The run used to write the decision as it had read it, and people as they had: one of the two was lost.
#[tokio::test]
async fn what_a_person_says_of_a_decision_and_what_its_run_fills_in_are_both_kept() {
    let store = Arc::new(MemoryStore::new());
    let first = decision(1, Some("a"));
    let batch = decision::put(&*store, Batch::new(), "p", &first).unwrap();
    store.commit(batch).await.unwrap();
    let (run, person) = (ProcessStore::of(&store), ProcessStore::of(&store));
    let judge = change(&person, || {
        let before = decision::get(&person, "p", &first.id)?.unwrap();
        let judged = Decision { lesson: Some("test first".into()), score: Some(0.5), ..before.clone() };
        Ok((decision::replace(&person, Batch::new(), "p", &before, &judged)?, ()))
    });
    let fill_in = async {
        let (record, state, events) = (record(), RunState::new(), step(vec![status(FeatureStatus::Passing)]));
        let mut attempts = ChangeAttempts::in_table(Table::Decisions);
        loop {
            let batch = put_of_events(Batch::new(), &run, &record, &state, &events).unwrap();
            match run.commit(batch).await {
                Ok(()) => break,
                Err(error) => attempts.again(error.into()).await.unwrap(),
            }
        }
    };
    let (judged, ()) = tokio::join!(judge, fill_in);
    judged.unwrap();
    let stored = all(&run, "p").unwrap().remove(0);
    assert_eq!((stored.outcome, stored.score), (DecisionOutcome::Success, Some(0.5)));
    assert_eq!(stored.lesson.as_deref(), Some("test first"));
}

#[tokio::test]
async fn a_decision_of_an_earlier_version_is_replaced_and_one_that_was_changed_since_it_was_read_is_not() {
    let store = MemoryStore::new();
    let row = r#"{"id":"d","at_ms":1,"run":"r-1","decision":"x","came_out":"Open"}"#;
    store.commit(Batch::new().put(Table::Decisions, Key::of("p").and("d"), row)).await.unwrap();
    let before = decision::get(&store, "p", "d").unwrap().unwrap();
    let scored = |score| Decision { score: Some(score), ..before.clone() };
    let batch = |score| decision::replace(&store, Batch::new(), "p", &before, &scored(score)).unwrap();
    let late = batch(0.1);
    store.commit(batch(1.0)).await.unwrap();
    for late in [late, batch(0.2)] {
        assert!(matches!(store.commit(late).await, Err(StoreError::Conflict { table: Table::Decisions, .. })));
    }
    assert_eq!(decision::get(&store, "p", "d").unwrap(), Some(scored(1.0)));
}
