//! Rules of batches: all of one or nothing, alone and among those of many callers.

use crate::backend::Backend;
use crate::support::{CALLERS, all, commit_at_once, give_up, insert, is_conflict, key, put, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use std::sync::Arc;

/// More callers than the queue of a store may hold; that of redb holds a third of them.
const CROWD: u64 = 3_000;

/// A batch without changes is committed, and changes nothing.
pub async fn a_batch_without_changes_is_committed(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(Batch::new()).await.unwrap();
    assert_eq!(store.read_all().unwrap().rows, 0);
}

/// A thousand changes of several tables are one batch: of one that conflicts there is nothing, of one that does not
/// there is all.
pub async fn a_thousand_changes_are_one_batch(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(Batch::new().put(Table::Progress, key(0), "there")).await.unwrap();
    let mut batch = Batch::new();
    for number in 0..1_000 {
        let table = if number % 2 == 0 { Table::Events } else { Table::Journal };
        batch = batch.insert(table, key(number), number.to_string());
    }
    let refused = batch.clone().insert(Table::Progress, key(0), "new");
    assert!(is_conflict(&store.commit(refused).await));
    let rows = |store: &dyn Store| (all(store, Table::Events).len(), all(store, Table::Journal).len());
    assert_eq!(rows(&*store), (0, 0));
    store.commit(batch).await.unwrap();
    assert_eq!(rows(&*store), (500, 500));
    let store = backend.reopen(store).await;
    assert_eq!(rows(&*store), (500, 500));
}

/// Sixty-four callers at once all commit where they change different keys.
pub async fn sixty_four_callers_at_once_all_commit(backend: &dyn Backend) {
    let store = backend.open().await;
    let batches = (0..CALLERS).map(|number| insert(number, "x").insert(Table::Events, key(number), "y"));
    let verdicts = commit_at_once(&store, batches.collect()).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    let expected: Vec<_> = (0..CALLERS).map(|number| key(number).as_bytes().to_vec()).collect();
    for table in [Table::States, Table::Events] {
        assert!(all(&*store, table).into_iter().map(|(key, _)| key).eq(expected.clone()), "{table:?}");
    }
}

/// One of sixty-four callers that insert one key commits, and its value stays.
pub async fn of_sixty_four_callers_that_insert_one_key_one_commits(backend: &dyn Backend) {
    let store = backend.open().await;
    for round in 0..4 {
        let batch =
            |caller: u64| insert(round, &caller.to_string()).put(Table::Events, Key::of("e").number(caller), "");
        let verdicts = commit_at_once(&store, (0..CALLERS).map(batch).collect()).await;
        let winners: Vec<_> = (0..).zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).collect();
        let [(winner, _)] = winners[..] else {
            panic!("round {round}: {verdicts:?}");
        };
        assert_eq!(verdicts.iter().filter(|verdict| is_conflict(verdict)).count() as u64, CALLERS - 1);
        let winner: u64 = winner;
        assert_eq!(value(&*store, round), Some(winner.to_string()));
        let event = Key::of("e").number(winner).as_bytes().to_vec();
        assert_eq!(all(&*store, Table::Events), [(event, Vec::new())], "round {round}: a loser left an event");
        let clear = Batch { ops: vec![Op::Delete(Table::Events, Key::of("e").number(winner))] };
        store.commit(clear).await.unwrap();
    }
}

/// A batch that conflicts undoes nothing of those beside it, and nothing of it is left.
pub async fn a_batch_that_conflicts_undoes_nothing_of_those_beside_it(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(Batch::new().put(Table::Runs, key(0), "taken")).await.unwrap();
    let batch = |number: u64| match number % 2 {
        0 => put(number, "kept"),
        _ => put(number, "lost").insert(Table::Runs, key(0), "lost"),
    };
    let verdicts = commit_at_once(&store, (0..CALLERS).map(batch).collect()).await;
    for (number, verdict) in (0..).zip(&verdicts) {
        let passes = number % 2 == 0;
        assert_eq!((verdict.is_ok(), is_conflict(verdict)), (passes, !passes), "{number}: {verdict:?}");
        assert_eq!(value(&*store, number).as_deref(), passes.then_some("kept"));
    }
    assert_eq!(store.get(Table::Runs, &key(0)).unwrap().as_deref(), Some(&b"taken"[..]));
}

/// Sixty-four callers that swap one value, and read it again after a conflict, lose no step of any.
pub async fn sixty_four_callers_count_to_sixty_four_by_swaps(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(insert(0, "0")).await.unwrap();
    let count = || {
        let store = Arc::clone(&store);
        tokio::spawn(async move { count_one(&*store).await })
    };
    let callers: Vec<_> = (0..CALLERS).map(|_| count()).collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(value(&*store, 0), Some(CALLERS.to_string()));
}

/// More callers than a queue holds all get their turn.
pub async fn more_callers_than_a_queue_holds_all_get_their_turn(backend: &dyn Backend) {
    let store = backend.open().await;
    let verdicts = commit_at_once(&store, (0..CROWD).map(|number| insert(number, "x")).collect()).await;
    let refused = verdicts.iter().find(|verdict| verdict.is_err());
    assert_eq!(refused, None);
    let all = store.scan(Table::States, &Key::of("k"), None, usize::MAX).unwrap();
    assert_eq!(all.len() as u64, CROWD);
}

/// A caller that gives up leaves all of its batch or nothing, and what comes later is committed.
pub async fn a_caller_that_gives_up_leaves_all_of_its_batch_or_nothing(backend: &dyn Backend) {
    let store = backend.open().await;
    for number in 0..CALLERS {
        let mut batch = insert(number, "x").insert(Table::Events, key(number), "y");
        let digest = batch.blob(number.to_be_bytes().to_vec());
        give_up(store.commit(batch)).await;
        // It may be written at any moment, also between two reads: what is read first implies the rest.
        if number % 2 == 0 && value(&*store, number).is_some() {
            assert!(store.get(Table::Events, &key(number)).unwrap().is_some(), "batch {number}");
        } else if store.get(Table::Events, &key(number)).unwrap().is_some() {
            assert!(value(&*store, number).is_some(), "batch {number}");
            assert!(store.blob(&digest).unwrap().is_some(), "batch {number}");
        }
    }
    store.commit(insert(CALLERS, "last")).await.unwrap();
    let store = backend.reopen(store).await;
    for number in 0..CALLERS {
        let event = store.get(Table::Events, &key(number)).unwrap();
        let content = store.blob(&Digest::of(&number.to_be_bytes())).unwrap();
        let row = value(&*store, number).is_some();
        assert_eq!((event.is_some(), content.is_some()), (row, row), "batch {number} is there in part");
    }
    assert_eq!(value(&*store, CALLERS).as_deref(), Some("last"));
}

async fn count_one(store: &dyn Store) {
    loop {
        let before = value(store, 0).unwrap();
        let after = (before.parse::<u64>().unwrap() + 1).to_string();
        let swap = Op::Swap(Table::States, key(0), Digest::of(before.as_bytes()), after.into_bytes());
        match store.commit(Batch { ops: vec![swap] }).await {
            Ok(()) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(why) => panic!("{why}"),
        }
    }
}
