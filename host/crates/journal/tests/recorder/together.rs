//! Parallel calls and their shared commits, and changes along with them that other processes overtake.

use crate::fakes::{Host, START_MS, Stop, asked, call, finished, invocation, said};
use longhaul_core::InvocationId;
use longhaul_core::journal::EffectClass::{Acts, Idempotent, ReadOnly};
use longhaul_core::journal::{Journal as _, JournalError};
use longhaul_core::store::{Batch, Key, Store as _, StoreError, Table};
use longhaul_journal::{Opened, Recorder, entries};
use std::future::poll_fn;
use std::task::Poll;

#[tokio::test]
async fn answers_in_any_order_are_found_by_their_calls_and_the_others_go_again() {
    let host = Host::new();
    let recorder = host.run();
    let mut tickets = Vec::new();
    for name in ["a", "b", "c", "d"] {
        tickets.push(asked(&recorder, if name == "d" { Acts } else { ReadOnly }, name).await);
    }
    for index in [2, 0] {
        recorder.answer(tickets[index].clone(), format!("{index}")).await.unwrap();
    }
    let recorder = host.restart().run();
    let mut said_to = Vec::new();
    for name in ["a", "b", "c", "d"] {
        said_to.push(said(&recorder.ask(call(if name == "d" { Acts } else { ReadOnly }, name)).await));
    }
    assert_eq!(said_to, ["answered 0", "go, attempt 2, repeated", "answered 2", "parked at entry 4"]);
}

#[tokio::test]
async fn a_later_entry_never_becomes_durable_before_an_earlier_one() {
    let host = Host::new();
    let recorder = host.run();
    for name in ["a", "b"] {
        asked(&recorder, ReadOnly, name).await;
    }
    assert_eq!(entries(&*host.store, &invocation(), 0, 10).unwrap().len(), 1, "only the first waited for entry 0");
    let later = asked(&recorder, ReadOnly, "c").await;
    recorder.answer(later, "3".to_owned()).await.unwrap();
    let found = entries(&*host.store, &invocation(), 0, 10).unwrap();
    let found: Vec<_> =
        found.iter().map(|(entry, e)| (*entry, e.asked.summary.as_str(), e.answered.is_some())).collect();
    assert_eq!(found, [(1, "a", false), (2, "b", false), (3, "c", true)]);
}

#[tokio::test]
async fn answers_at_once_share_commits() {
    let host = Host::new();
    let recorder = host.run();
    let mut tickets = Vec::new();
    for index in 0..50 {
        tickets.push(asked(&recorder, ReadOnly, &format!("{index}")).await);
    }
    let before = host.store.commits();
    let answers = tickets.into_iter().map(|handle| {
        let recorder = recorder.clone();
        tokio::spawn(async move { recorder.answer(handle, "1".to_owned()).await })
    });
    for answer in answers.collect::<Vec<_>>() {
        answer.await.unwrap().unwrap();
    }
    assert!(host.store.commits() - before <= 3, "{} commits", host.store.commits() - before);
    let found = entries(&*host.store, &invocation(), 0, 100).unwrap();
    assert!(found.len() == 50 && found.iter().all(|(_, entry)| entry.answered.is_some()));
}

#[tokio::test]
async fn the_clock_reads_the_same_when_the_answers_are_read_back() {
    let host = Host::new();
    let recorder = host.run();
    let mut live = vec![recorder.time_ms()];
    let first = asked(&recorder, ReadOnly, "a").await;
    let second = asked(&recorder, ReadOnly, "b").await;
    host.clock.set(START_MS + 10);
    recorder.answer(second, "2".to_owned()).await.unwrap();
    host.clock.set(START_MS + 20);
    recorder.answer(first, "1".to_owned()).await.unwrap();
    live.push(recorder.time_ms());
    // A clock that was set back does not turn back the guest's.
    host.clock.set(START_MS - 1_000);
    let third = asked(&recorder, ReadOnly, "c").await;
    recorder.answer(third, "3".to_owned()).await.unwrap();
    live.push(recorder.time_ms());
    let host = host.restart();
    host.clock.set(START_MS + 99_999);
    let recorder = host.run();
    let mut read_back = vec![recorder.time_ms()];
    for name in ["a", "b", "c"] {
        assert!(recorder.is_replaying());
        recorder.ask(call(ReadOnly, name)).await.unwrap();
        if name != "a" {
            read_back.push(recorder.time_ms());
        }
    }
    assert!(!recorder.is_replaying());
    assert_eq!(live, [START_MS, START_MS + 20, START_MS + 20]);
    assert_eq!(read_back, live);
}

#[tokio::test]
async fn an_invocation_begins_with_its_first_call_and_keeps_its_seed() {
    let host = Host::new();
    drop(host.run());
    assert_eq!(host.store.commits(), 0);
    let recorder = host.run();
    asked(&recorder, Idempotent, "a").await;
    assert_eq!(host.store.commits(), 1, "seed and time are durable before anything leaves");
    let other = longhaul_core::journal::Began {
        seed: [9; 32],
        at_ms: 1,
        fingerprint: "engine 2".into(),
        ..crate::fakes::began()
    };
    let host = host.restart();
    let opened = Recorder::open(host.store.clone(), host.clock.clone(), invocation(), other, &host.limits).unwrap();
    let Opened::Running(recorder) = opened else {
        panic!("it has not finished");
    };
    assert_eq!(recorder.began(), &crate::fakes::began());
}

#[tokio::test]
async fn the_end_and_the_state_of_the_harness_are_one_commit() {
    let host = Host::new();
    let recorder = host.run();
    let also = || Batch::new().insert(Table::States, Key::of("r-1"), "state");
    recorder.finish(finished("\"ok\""), also()).await.unwrap();
    assert_eq!(host.store.commits(), 1);
    assert!(matches!(recorder.ask(call(ReadOnly, "a")).await, Err(JournalError::ReplayOnly(_))));
    let host = host.restart();
    let Opened::Finished { finished, .. } = host.open().unwrap() else {
        panic!("it has finished");
    };
    assert_eq!(finished, crate::fakes::finished("\"ok\""));
    // A second host that believes to own the run cannot write its end too.
    let late = Host { store: Host::new().store, ..host.clone() };
    late.store.commit(also()).await.unwrap();
    assert!(late.run().finish(crate::fakes::finished("1"), also()).await.is_err());
    assert!(matches!(late.open().unwrap(), Opened::Running(_)), "nothing of it was written");
}

#[tokio::test]
async fn the_end_of_a_child_and_the_answer_of_its_parent_are_one_commit() {
    let host = Host::new();
    let parent = host.run();
    let handle = asked(&parent, Acts, "delegate").await;
    let name = invocation().child(handle.entry);
    let open = |name: &InvocationId| {
        Recorder::open(host.store.clone(), host.clock.clone(), name.clone(), crate::fakes::began(), &host.limits)
            .unwrap()
    };
    let Opened::Running(child) = open(&name) else {
        panic!("it has not finished");
    };
    let theirs = asked(&child, ReadOnly, "a").await;
    child.answer(theirs, "1".to_owned()).await.unwrap();
    let before = host.store.commits();
    let end = child.finish_batch(finished("\"child\"")).await.unwrap();
    assert_eq!(host.store.commits(), before);
    parent.answer_with(handle, "\"child\"".to_owned(), end).await.unwrap();
    assert_eq!(host.store.commits(), before + 1);
    assert!(matches!(open(&name), Opened::Finished { .. }));
    assert_eq!(said(&host.restart().run().ask(call(Acts, "delegate")).await), "answered \"child\"");
}

#[tokio::test]
async fn an_invocation_that_is_cancelled_within_a_commit_can_still_be_finished() {
    let mut announced = Vec::new();
    for steps in 0..5 {
        let host = Host::new();
        let recorder = host.run();
        let asking = recorder.clone();
        let asking = tokio::spawn(async move { asking.ask(call(Acts, "a")).await });
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        asking.abort();
        recorder.finish(finished("null"), Batch::new()).await.unwrap();
        let answered = asking.await.is_ok();
        announced.push((answered, entries(&*host.store, &invocation(), 0, 10).unwrap().len()));
    }
    assert!(announced.contains(&(false, 1)), "no cancel fell into the commit: {announced:?}");
}

#[tokio::test]
async fn a_host_that_lost_the_run_cannot_go_on_with_it() {
    let host = Host::new();
    let (one, two) = (host.run(), host.run());
    asked(&one, Acts, "a").await;
    assert!(matches!(two.ask(call(Acts, "a")).await, Err(JournalError::Store(_))));
    assert!(matches!(two.ask(call(Acts, "b")).await, Err(JournalError::Store(_))));
}

#[tokio::test]
async fn after_a_commit_that_failed_nothing_later_becomes_durable() {
    let host = Host::new();
    let recorder = host.run();
    let first = asked(&recorder, ReadOnly, "a").await;
    let second = asked(&recorder, ReadOnly, "b").await;
    host.store.stop(Stop::Once);
    assert!(matches!(recorder.answer(first, "1".to_owned()).await, Err(JournalError::Store(_))));
    assert!(matches!(recorder.answer(second, "2".to_owned()).await, Err(JournalError::Store(_))));
    assert!(matches!(recorder.finish(finished("1"), Batch::new()).await, Err(JournalError::Store(_))));
    // The changes that the store took before are complete, and the next process continues from there.
    let recorder = host.restart().run();
    assert_eq!(said(&recorder.ask(call(ReadOnly, "a")).await), "go, attempt 2, repeated");
    assert_eq!(said(&recorder.ask(call(ReadOnly, "b")).await), "go, attempt 2, repeated");
}

/// The changes that a commit had taken along were lost with its panic, and the next one left a hole.
#[tokio::test]
async fn after_a_commit_that_panicked_nothing_later_becomes_durable() {
    for also in [Batch::new(), number(None, "1")] {
        let host = Host::new();
        let recorder = host.run();
        let first = asked(&recorder, ReadOnly, "a").await;
        let second = asked(&recorder, ReadOnly, "b").await;
        host.store.stop(Stop::Panic);
        let before = host.store.rows();
        assert!(matches!(recorder.answer_with(first, "1".to_owned(), also).await, Err(JournalError::Store(_))));
        assert!(matches!(recorder.answer(second, "2".to_owned()).await, Err(JournalError::Store(_))));
        assert!(matches!(recorder.finish(finished("1"), Batch::new()).await, Err(JournalError::Store(_))));
        assert_eq!(host.store.rows(), before);
        let recorder = host.restart().run();
        assert_eq!(said(&recorder.ask(call(ReadOnly, "a")).await), "go, attempt 2, repeated");
        assert_eq!(said(&recorder.ask(call(ReadOnly, "b")).await), "go, attempt 2, repeated");
    }
}

#[tokio::test]
async fn a_ticket_is_used_once() {
    let host = Host::new();
    let recorder = host.run();
    let handle = asked(&recorder, ReadOnly, "a").await;
    recorder.answer(handle.clone(), "1".to_owned()).await.unwrap();
    assert!(recorder.answer(handle.clone(), "2".to_owned()).await.is_err());
    assert!(recorder.prepared(&handle, "late".to_owned()).await.is_err());
}

/// The number of a row that other processes write too.
fn shared() -> Key {
    Key::of("shared")
}

/// A change of that row, on the condition that it has the number that was read.
fn number(before: Option<&str>, now: &str) -> Batch {
    Batch::new().replace(Table::Memory, shared(), before.map(str::as_bytes), now)
}

fn is_conflict(kept: &Result<(), JournalError>) -> bool {
    matches!(kept, Err(JournalError::Store(StoreError::Conflict { table: Table::Memory, .. })))
}

/// A change that another process overtook used to end the invocation.
#[tokio::test]
async fn an_answer_whose_change_was_overtaken_is_given_again_with_another_one() {
    let host = Host::new();
    let recorder = host.run();
    let [handle, other] = [asked(&recorder, Idempotent, "a").await, asked(&recorder, ReadOnly, "b").await];
    host.store.commit(number(None, "1")).await.unwrap();
    let (bytes, before) = (recorder.bytes(), host.store.rows());
    assert!(is_conflict(&recorder.answer_with(handle.clone(), "0".to_owned(), number(None, "2")).await));
    assert_eq!((recorder.bytes(), host.store.rows()), (bytes, before), "nothing of it was kept");
    // Others go on meanwhile, and the journal is as if the first attempt had not been.
    recorder.answer(other, "1".to_owned()).await.unwrap();
    recorder.answer_with(handle.clone(), "2".to_owned(), number(Some("1"), "2")).await.unwrap();
    assert!(recorder.answer_with(handle, "3".to_owned(), number(Some("2"), "3")).await.is_err(), "it is answered");
    assert_eq!(host.store.get(Table::Memory, &shared()).unwrap().as_deref(), Some(&b"2"[..]));
    let read_back = host.restart().run();
    assert_eq!(said(&read_back.ask(call(Idempotent, "a")).await), "answered 2");
    assert_eq!(said(&read_back.ask(call(ReadOnly, "b")).await), "answered 1");
    assert_eq!(read_back.bytes(), recorder.bytes());
}

/// The answer became durable without its call, which was in the parent's batch: after a kill, the journal was damaged.
#[tokio::test]
async fn an_answer_that_waits_while_a_child_ends_is_not_stored_without_its_call() {
    let host = Host::new();
    let child = host.run();
    asked(&child, ReadOnly, "a").await;
    let handle = asked(&child, ReadOnly, "b").await;
    let before = host.store.rows();
    // On this runtime the task of the commit begins only when the test waits.
    let mut answering = child.answer_with(handle, "2".to_owned(), number(None, "1"));
    let waits = poll_fn(|context| Poll::Ready(answering.as_mut().poll(context).is_pending())).await;
    assert!(waits, "the commit was queued");
    drop(answering);
    let end = child.finish_batch(finished("\"child\"")).await.unwrap();
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(host.store.rows(), before, "a kill here finds the journal as it was");
    let killed = host.restart().run();
    assert_eq!(said(&killed.ask(call(ReadOnly, "a")).await), "go, attempt 2, repeated");
    assert_eq!(said(&killed.ask(call(ReadOnly, "b")).await), "go, attempt 2, repeated");
    host.store.commit(end).await.unwrap();
    let found = entries(&*host.store, &invocation(), 0, 10).unwrap();
    let found: Vec<_> =
        found.iter().map(|(_, entry)| (entry.asked.summary.as_str(), entry.answered.is_some())).collect();
    assert_eq!(found, [("a", false), ("b", false)]);
    assert!(matches!(host.open().unwrap(), Opened::Finished { .. }));
}

#[tokio::test]
async fn what_waited_for_a_commit_that_was_overtaken_is_in_the_next_one() {
    let host = Host::new();
    let recorder = host.run();
    let handle = asked(&recorder, Idempotent, "a").await;
    host.store.commit(number(None, "1")).await.unwrap();
    assert!(is_conflict(&recorder.answer_with(handle, "0".to_owned(), number(None, "2")).await));
    asked(&recorder, Acts, "b").await;
    // The announcement of a call that acts is durable, and so is everything before it.
    let read_back = host.restart().run();
    assert_eq!(said(&read_back.ask(call(Idempotent, "a")).await), "go, attempt 2, repeated");
    assert_eq!(said(&read_back.ask(call(Acts, "b")).await), "parked at entry 2");
}

#[tokio::test]
async fn an_end_whose_change_was_overtaken_comes_again_with_another_one() {
    let host = Host::new();
    let recorder = host.run();
    host.store.commit(number(None, "1")).await.unwrap();
    assert!(is_conflict(&recorder.finish(finished("1"), number(None, "2")).await));
    assert!(matches!(host.open().unwrap(), Opened::Running(_)), "nothing of it was kept");
    recorder.finish(finished("2"), number(Some("1"), "2")).await.unwrap();
    assert!(matches!(recorder.ask(call(ReadOnly, "a")).await, Err(JournalError::ReplayOnly(_))));
    let Opened::Finished { finished, .. } = host.restart().open().unwrap() else { panic!("it has finished") };
    assert_eq!(finished.result, "2");
}

#[tokio::test]
async fn of_invocations_that_change_one_row_at_once_none_is_lost() {
    let host = Host::new();
    let raise = |index: u32| {
        let (store, name) = (host.store.clone(), invocation().child(index));
        let opened = Recorder::open(store.clone(), host.clock.clone(), name, crate::fakes::began(), &host.limits);
        async move {
            let Ok(Opened::Running(recorder)) = opened else { panic!("it has not begun") };
            let handle = asked(&recorder, Idempotent, "raise").await;
            loop {
                let row = store.get(Table::Memory, &shared()).unwrap();
                let before = row.map(|row| String::from_utf8(row).unwrap());
                let next = before.as_deref().map_or(0, |before| before.parse::<u32>().unwrap()) + 1;
                let also = number(before.as_deref(), &next.to_string());
                let kept = recorder.answer_with(handle.clone(), next.to_string(), also).await;
                if !is_conflict(&kept) {
                    return kept.unwrap();
                }
            }
        }
    };
    let raising: Vec<_> = (1..=8).map(|index| tokio::spawn(raise(index))).collect();
    for one in raising {
        one.await.unwrap();
    }
    assert_eq!(host.store.get(Table::Memory, &shared()).unwrap().as_deref(), Some(&b"8"[..]));
}
