//! Forks and the runs that they share with, as handles of one store.

use super::*;
use longhaul_core::journal::{Began, CallVerdict, EffectClass, Journal as _, NewCall};
use longhaul_core::store::StoreError;
use longhaul_core::{Digest, InvocationId, Limits};
use longhaul_journal::{Opened, Recorder, entries, share};
use longhaul_testkit::{HandClock, MemoryStore};
use std::sync::Arc;

fn run(name: &str) -> RunId {
    RunId::from_text(name)
}

fn work(of: &str) -> InvocationId {
    InvocationId::of_action(&run(of), "f-a/1/generate")
}

fn origin(parent: &str) -> ForkedFrom {
    ForkedFrom {
        parent: run(parent),
        event: 7,
        at_ms: 5,
        point: "step:3".to_owned(),
        edited: None,
        inherited: WorkUsage { fuel: 9, ..WorkUsage::default() },
    }
}

/// Makes one call more than the journal has.
async fn work_on(store: &Arc<MemoryStore>, of: &str) {
    let began = Began {
        plugin: "coder".to_owned(),
        table: "agents.coder".to_owned(),
        component: Digest::of(b"component"),
        export: "agent.run".to_owned(),
        input: Digest::of(b"input"),
        seed: [7; 32],
        fingerprint: "engine 1".to_owned(),
        context: None,
        told: None,
        at_ms: 1,
    };
    let (clock, limits) = (Arc::new(HandClock::at(2)), Limits::default());
    let Opened::Running(recorder) = Recorder::open(store.clone(), clock, work(of), began, &limits).unwrap() else {
        panic!("it has finished")
    };
    loop {
        let arguments = Digest::of(b"arguments");
        let class = EffectClass::ReadOnly;
        let call = NewCall { name: "tools.call", summary: String::new(), arguments, class, fuel_used: 1 };
        if let CallVerdict::Go(handle) = recorder.ask(call).await.unwrap() {
            return recorder.answer(handle, format!("\"of {of}\"")).await.unwrap();
        }
    }
}

/// The answers of a run's work.
fn answers(store: &MemoryStore, of: &str) -> Vec<String> {
    let found = entries(store, &work(of), 0, 100).unwrap();
    found.into_iter().map(|(_, entry)| entry.answered.unwrap().answer).collect()
}

async fn begin(store: &MemoryStore, name: &str) {
    let row = Batch::new().put(Table::Runs, RunRecord::key(&run(name)), "{}");
    store.commit(row).await.unwrap();
}

/// The rows of a fork that shares the entries of `of` up to `through`.
fn fork(store: &MemoryStore, of: &str, name: &str, through: u32) -> fault::Result<Batch> {
    let ops = share(store, &work(of), &work(name), through)?;
    let batch = Batch { ops }.insert(Table::Runs, RunRecord::key(&run(name)), "{}");
    put_fork(store, batch, &origin(of), &run(name))
}

/// Deletes a run as a collection does, if its conditions hold.
async fn delete(store: &MemoryStore, name: &str) -> fault::Result<()> {
    hand_over(store, &run(name)).await?;
    store.commit(removal(store, name)?).await?;
    Ok(())
}

fn removal(store: &MemoryStore, name: &str) -> fault::Result<Batch> {
    let mut batch = begin_removal(store, &run(name))?;
    for (table, prefix) in [
        (Table::Runs, RunRecord::key(&run(name))),
        (Table::States, RunRecord::key(&run(name))),
        (Table::Journal, Key::from_bytes(format!("{name}/").into_bytes())),
    ] {
        let rows = store.scan(table, &prefix, None, usize::MAX)?;
        batch.ops.extend(rows.into_iter().map(|(key, _)| Op::Delete(table, Key::from_bytes(key))));
    }
    Ok(batch)
}

/// A run of two calls, and a fork of it after the second with one of its own.
async fn forked_once() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    begin(&store, "r-1").await;
    work_on(&store, "r-1").await;
    work_on(&store, "r-1").await;
    store.commit(fork(&store, "r-1", "r-2", 2).unwrap()).await.unwrap();
    work_on(&store, "r-2").await;
    store
}

#[tokio::test]
async fn a_fork_tells_its_origin_and_a_run_its_forks() {
    let store = forked_once().await;
    assert_eq!(forked(&*store, &run("r-2")).unwrap(), Some(origin("r-1")));
    assert_eq!(forked(&*store, &run("r-1")).unwrap(), None);
    assert_eq!(forks(&*store, &run("r-1")).unwrap(), [run("r-2")]);
    assert_eq!(answers(&store, "r-2"), ["\"of r-1\"", "\"of r-1\"", "\"of r-2\""]);
    let edited = ForkedFrom { edited: Some("f-a/1/generate:2".to_owned()), ..origin("r-1") };
    let batch = Batch::new().insert(Table::Runs, RunRecord::key(&run("r-3")), "{}");
    store.commit(put_fork(&*store, batch, &edited, &run("r-3")).unwrap()).await.unwrap();
    assert_eq!(forked(&*store, &run("r-3")).unwrap(), Some(edited));
    assert_eq!(forks(&*store, &run("r-1")).unwrap(), [run("r-2"), run("r-3")]);
    delete(&store, "r-3").await.unwrap();
    assert_eq!(forks(&*store, &run("r-1")).unwrap(), [run("r-2")]);
    let rows = [forks_key(&run("r-1")).and("r-2"), lent_key(&run("r-1")), lent_key(&run("r-1")).and("r-2")];
    assert!(rows.iter().all(|key| is_of_forks(&run("r-1"), key.as_bytes())));
    assert!(!is_of_forks(&run("r-1"), forked_key(&run("r-1")).as_bytes()), "its origin goes with it");
}

#[tokio::test]
async fn a_fork_stays_whole_when_its_parent_is_deleted() {
    let store = forked_once().await;
    store.commit(fork(&store, "r-2", "r-3", 3).unwrap()).await.unwrap();
    work_on(&store, "r-3").await;
    store.commit(fork(&store, "r-2", "r-4", 1).unwrap()).await.unwrap();
    let told = ["r-2", "r-3", "r-4"].map(|name| answers(&store, name));
    delete(&store, "r-1").await.unwrap();
    assert_eq!(["r-2", "r-3", "r-4"].map(|name| answers(&store, name)), told);
    assert_eq!(forked(&*store, &run("r-2")).unwrap().unwrap().parent, run("r-1"), "it still says where it is from");
    delete(&store, "r-2").await.unwrap();
    assert_eq!(["r-3", "r-4"].map(|name| answers(&store, name)), told[1..]);
    delete(&store, "r-4").await.unwrap();
    assert_eq!(answers(&store, "r-3"), told[1]);
    delete(&store, "r-3").await.unwrap();
    for table in [Table::Runs, Table::States, Table::Journal] {
        assert!(store.rows(table).is_empty(), "{table:?}: {:?}", store.rows(table));
    }
}

#[tokio::test]
async fn a_run_that_is_forked_while_it_is_deleted_stays() {
    let store = forked_once().await;
    // Nothing was handed over.
    let refused = begin_removal(&*store, &run("r-1")).unwrap_err();
    assert!(refused.to_string().contains("forked at this moment"), "{refused}");
    // A fork between the last look and the commit.
    hand_over(&*store, &run("r-1")).await.unwrap();
    let outdated = removal(&store, "r-1").unwrap();
    store.commit(fork(&store, "r-1", "r-3", 1).unwrap()).await.unwrap();
    let refused = store.commit(outdated).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(answers(&store, "r-3"), ["\"of r-1\""]);
    delete(&store, "r-1").await.unwrap();
    assert_eq!(answers(&store, "r-3"), ["\"of r-1\""]);
}

#[tokio::test]
async fn a_fork_of_a_run_that_is_deleted_meanwhile_is_not_stored() {
    let store = forked_once().await;
    let outdated = fork(&store, "r-1", "r-3", 1).unwrap();
    let without_work = put_fork(&*store, Batch::new(), &origin("r-1"), &run("r-4")).unwrap();
    delete(&store, "r-1").await.unwrap();
    for batch in [outdated, without_work] {
        assert!(matches!(store.commit(batch).await, Err(StoreError::Conflict { .. })));
    }
    let refused = put_fork(&*store, Batch::new(), &origin("r-1"), &run("r-4")).unwrap_err();
    assert!(refused.to_string().contains("run r-1"), "{refused}");
    assert_eq!(forked(&*store, &run("r-3")).unwrap(), None);
}

#[tokio::test]
async fn of_two_forks_at_once_one_is_made_anew() {
    let store = forked_once().await;
    let (first, second) = (fork(&store, "r-1", "r-3", 1).unwrap(), fork(&store, "r-1", "r-4", 1).unwrap());
    store.commit(first).await.unwrap();
    assert!(matches!(store.commit(second).await, Err(StoreError::Conflict { .. })));
    let again = change(&*store, || Ok((fork(&store, "r-1", "r-4", 1)?, ())));
    again.await.unwrap();
    assert_eq!(forks(&*store, &run("r-1")).unwrap(), ["r-2", "r-3", "r-4"].map(run));
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_whole_keeps_its_run() {
    let store = forked_once().await;
    let key = Key::of(work("r-1").as_str()).number(2).and("answered");
    store.commit(Batch { ops: vec![Op::Delete(Table::Journal, key)] }).await.unwrap();
    let refused = format!("{:#}", delete(&store, "r-1").await.unwrap_err());
    assert!(refused.contains("run r-1 stays") && refused.contains("r-2"), "{refused}");
}

#[tokio::test]
async fn an_origin_of_a_newer_version_is_refused_and_not_guessed_at() {
    let store = forked_once().await;
    let row = serde_json::to_vec(&StoredOrigin { version: VERSION + 1, from: origin("r-1") }).unwrap();
    store.commit(Batch::new().put(Table::States, forked_key(&run("r-2")), row)).await.unwrap();
    assert!(forked(&*store, &run("r-2")).unwrap_err().to_string().contains("newer longhaul"));
    store.commit(Batch::new().put(Table::States, forked_key(&run("r-2")), "{}")).await.unwrap();
    assert!(forked(&*store, &run("r-2")).unwrap_err().to_string().contains("damaged"));
}
