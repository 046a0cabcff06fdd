//! Forks that share the beginning of a journal.

use crate::fakes::{Host, START_MS, asked, began, call, finished, go, invocation, said};
use longhaul_core::journal::EffectClass::{Acts, ReadOnly, Verifiable};
use longhaul_core::journal::{Began, EffectClass, Finished, Journal as _, JournalError, NewCall};
use longhaul_core::store::{Batch, Key, Op, Store as _, Table};
use longhaul_core::{Clock as _, Digest, InvocationId};
use longhaul_journal::{
    Opened, Recorder, answered_through, children, delegations, entries, finished as end_of, share, share_at,
    share_with_answer, shared_through, whole,
};

/// The same work in another run.
fn fork(run: &str) -> InvocationId {
    InvocationId::from_text(format!("{run}/f1/1/generate"))
}

async fn answer(recorder: &Recorder, class: EffectClass, name: &str) {
    let handle = asked(recorder, class, name).await;
    recorder.answer(handle, format!("\"{name}\"")).await.unwrap();
}

/// A journal of as many answered calls, a second each, named from 1.
async fn recorded(calls: u32) -> Host {
    let host = Host::new();
    let recorder = host.run();
    for number in 1..=calls {
        host.clock.set(START_MS + u64::from(number) * 1_000);
        answer(&recorder, ReadOnly, &number.to_string()).await;
    }
    host
}

/// Lets a component make these calls again; returns the verdicts, and the time that it sees after each.
async fn calls(recorder: &Recorder, names: &[&str]) -> Vec<(String, u64)> {
    let mut heard = Vec::new();
    for name in names {
        let verdict = recorder.ask(call(ReadOnly, name)).await;
        heard.push((said(&verdict), recorder.time_ms()));
    }
    heard
}

fn names(host: &Host, invocation: &InvocationId) -> Vec<String> {
    let found = entries(&*host.store, invocation, 0, 1_000).unwrap();
    found.into_iter().map(|(number, entry)| format!("{number} {}", entry.asked.summary)).collect()
}

#[tokio::test]
async fn a_replay_over_a_shared_beginning_gives_equal_answers_times_and_fuel() {
    let host = recorded(2).await;
    let long = "x".repeat(5_000);
    let recorder = host.run();
    calls(&recorder, &["1", "2"]).await;
    let handle = asked(&recorder, Acts, "3").await;
    recorder.answer(handle, format!("\"{long}\"")).await.unwrap();
    recorder.finish(finished("\"ok\""), Batch::new()).await.unwrap();
    let rows = share(&*host.store, &invocation(), &fork("r-2"), 3).unwrap();
    assert_eq!(rows.len(), 2, "however long the journal is");
    host.commit(rows).await;

    let of = |invocation| Recorder::replay(host.store.clone(), invocation, "engine 1", &host.limits).unwrap().unwrap();
    let (parent, child) = (of(invocation()), of(fork("r-2")));
    assert_eq!(child.began(), parent.began());
    assert!(child.bytes() > parent.bytes(), "what is shared counts, and the record that says so");
    let again = ["1", "2", "3"];
    assert_eq!(calls(&child, &again).await, calls(&parent, &again).await);
    assert_eq!((child.check_end(), child.remaining()), (Ok(()), 0));
    let other = NewCall { fuel_used: 999, ..call(ReadOnly, "1") };
    assert!(matches!(of(fork("r-2")).ask(other).await, Err(JournalError::Diverged { entry: 1, .. })));

    // It goes on by itself from there, and its parent does not see that.
    let child = host.restart();
    let recorder = child.run_as(&fork("r-2"));
    calls(&recorder, &again).await;
    let theirs = go(recorder.ask(call(Acts, "4")).await.unwrap());
    recorder.answer(theirs, "\"own\"".to_owned()).await.unwrap();
    recorder.finish(finished("\"other\""), Batch::new()).await.unwrap();
    assert_eq!(names(&child, &fork("r-2")), ["1 1", "2 2", "3 3", "4 4"]);
    assert_eq!(names(&child, &invocation()), ["1 1", "2 2", "3 3"]);
    let page = entries(&*child.store, &fork("r-2"), 2, 1).unwrap();
    assert_eq!((page.len(), page[0].0), (1, 3), "a page may begin within what is shared");
    assert_eq!(end_of(&*child.store, &invocation()).unwrap().unwrap().result, "\"ok\"");
    assert_eq!(end_of(&*child.store, &fork("r-2")).unwrap().unwrap().result, "\"other\"");
}

#[tokio::test]
async fn a_call_in_flight_is_made_again_by_the_fork_and_is_another_effect() {
    let host = recorded(1).await;
    let recorder = host.run();
    calls(&recorder, &["1"]).await;
    let theirs = asked(&recorder, Acts, "2").await;
    assert_eq!(answered_through(&*host.store, &invocation(), u64::MAX).unwrap(), 1);
    let refused = share(&*host.store, &invocation(), &fork("r-2"), 2).unwrap_err();
    assert_eq!(refused, JournalError::NotAnswered { invocation: invocation(), entry: 2 });
    assert!(refused.to_string().contains("longhaul journal r-3f9c02d1a4be"), "{refused}");
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 1).unwrap()).await;
    let recorder = host.run_as(&fork("r-2"));
    assert_eq!(calls(&recorder, &["1"]).await, [("answered \"1\"".to_owned(), START_MS + 1_000)]);
    let ours = go(recorder.ask(call(Acts, "2")).await.unwrap());
    assert_eq!((ours.entry, ours.attempt, ours.repeated), (2, 1, false));
    assert_ne!(ours.key, theirs.key);
}

#[tokio::test]
async fn a_call_of_the_fork_that_is_cut_off_is_a_question_about_the_fork() {
    let host = recorded(2).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 2).unwrap()).await;
    let recorder = host.run_as(&fork("r-2"));
    calls(&recorder, &["1", "2"]).await;
    asked(&recorder, Acts, "3").await;
    let recorder = host.restart().run_as(&fork("r-2"));
    calls(&recorder, &["1", "2"]).await;
    let question = match recorder.ask(call(Acts, "3")).await.unwrap_err() {
        JournalError::Parked(question) => question,
        other => panic!("{other}"),
    };
    assert_eq!((question.invocation, question.entry), (fork("r-2"), 3));
}

#[tokio::test]
async fn a_time_ends_a_beginning_at_the_first_entry_that_was_answered_later() {
    let host = recorded(3).await;
    let through = |ms: u64| answered_through(&*host.store, &invocation(), START_MS + ms).unwrap();
    assert_eq!([0, 999, 1_000, 2_999, 3_000].map(through), [0, 0, 1, 2, 3]);
    let at = |ms: u64| share_at(&*host.store, &invocation(), &fork("r-2"), START_MS + ms).unwrap().len();
    assert_eq!([0, 1_000].map(at), [1, 2], "without an answer there is nothing to refer to");
    assert!(share_at(&*host.store, &invocation(), &fork("r-2"), START_MS - 1).unwrap().is_empty());
    assert!(share_at(&*host.store, &fork("r-9"), &fork("r-2"), START_MS).unwrap().is_empty(), "it never began");
    assert!(share(&*host.store, &fork("r-9"), &fork("r-2"), 0).is_err());
}

#[tokio::test]
async fn parallel_calls_that_were_answered_out_of_order_end_a_beginning_before_the_open_one() {
    let host = recorded(1).await;
    let recorder = host.run();
    calls(&recorder, &["1"]).await;
    let (_open, answered) = (asked(&recorder, Acts, "2").await, asked(&recorder, Acts, "3").await);
    recorder.answer(answered, "\"3\"".to_owned()).await.unwrap();
    assert_eq!(answered_through(&*host.store, &invocation(), u64::MAX).unwrap(), 1);
    assert!(share(&*host.store, &invocation(), &fork("r-2"), 3).is_err());
}

#[tokio::test]
async fn a_fork_of_a_fork_refers_to_the_oldest_journal_that_has_all() {
    let host = recorded(3).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 2).unwrap()).await;
    let recorder = host.run_as(&fork("r-2"));
    calls(&recorder, &["1", "2"]).await;
    answer(&recorder, ReadOnly, "own").await;
    let holder = |ops: &[Op]| longhaul_journal::holders(ops).into_iter().map(|(of, _)| of.to_string()).next().unwrap();
    for (through, expected) in [(1, "r-3f9c02d1a4be"), (2, "r-3f9c02d1a4be"), (3, "r-2")] {
        let host = host.restart();
        let ops = share(&*host.store, &fork("r-2"), &fork("r-3"), through).unwrap();
        assert_eq!(holder(&ops), expected);
        host.commit(ops).await;
        let expected = ["1 1", "2 2", "3 own"];
        assert_eq!(names(&host, &fork("r-3")), expected[..through as usize]);
    }
}

#[tokio::test]
async fn forks_may_follow_each_other_without_end() {
    let host = recorded(1).await;
    let (mut last, mut made) = (invocation(), vec!["1".to_owned()]);
    for number in 2..60 {
        let next = fork(&format!("r-{number}"));
        let through = answered_through(&*host.store, &last, u64::MAX).unwrap();
        host.commit(share(&*host.store, &last, &next, through).unwrap()).await;
        let recorder = host.run_as(&next);
        let heard = calls(&recorder, &made.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert!(heard.iter().zip(&made).all(|(heard, name)| heard.0 == format!("answered \"{name}\"")), "{heard:?}");
        answer(&recorder, ReadOnly, &number.to_string()).await;
        (last, made) = (next, [made, vec![number.to_string()]].concat());
    }
    assert_eq!(names(&host, &last).len(), 59);
}

#[tokio::test]
async fn an_edited_answer_takes_the_place_of_the_recorded_one_and_is_shown_as_edited() {
    let host = recorded(3).await;
    let long = format!("\"{}\"", "y".repeat(5_000));
    for (entry, text) in [(1, "\"other\""), (2, "\"other\""), (3, long.as_str())] {
        let host = host.restart();
        let ops = share_with_answer(&*host.store, &invocation(), &fork("r-2"), entry, text).unwrap();
        host.commit(ops).await;
        let found = entries(&*host.store, &fork("r-2"), 0, 10).unwrap();
        let edited: Vec<bool> = found.iter().map(|(_, found)| found.answered.as_ref().unwrap().edited).collect();
        let expected: Vec<bool> = (1..=entry).map(|number| number == entry).collect();
        assert_eq!(edited, expected);
        let recorder = host.run_as(&fork("r-2"));
        let again: Vec<String> = (1..=entry).map(|number| number.to_string()).collect();
        let heard = calls(&recorder, &again.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(heard.last().unwrap(), &(format!("answered {text}"), START_MS + u64::from(entry) * 1_000));
        answer(&recorder, ReadOnly, "another way").await;
        assert_eq!(names(&host, &invocation()), ["1 1", "2 2", "3 3"]);
        let parents = entries(&*host.store, &invocation(), 0, 10).unwrap();
        assert!(parents.iter().all(|(_, found)| !found.answered.as_ref().unwrap().edited));
    }
    for entry in [0, 4] {
        assert!(share_with_answer(&*host.store, &invocation(), &fork("r-2"), entry, "1").is_err());
    }
}

/// The journal of a delegation.
async fn delegated(host: &Host, child: &InvocationId, names: &[&str], ends: bool) {
    let began = Began { at_ms: host.clock.now_ms(), ..began() };
    let opened = Recorder::open(host.store.clone(), host.clock.clone(), child.clone(), began, &host.limits).unwrap();
    let Opened::Running(recorder) = opened else { panic!("it has finished") };
    for name in names {
        host.clock.set(host.clock.now_ms() + 100);
        answer(&recorder, ReadOnly, name).await;
    }
    if ends {
        recorder.finish(Finished { at_ms: host.clock.now_ms(), ..finished("\"done\"") }, Batch::new()).await.unwrap();
    }
}

fn delegate(name: &str) -> NewCall {
    NewCall { name: "delegate.run", ..call(Verifiable, name) }
}

/// A journal of a call, a delegation that ended, and one that is at work with one of its own.
async fn with_delegations() -> Host {
    let host = recorded(1).await;
    let recorder = host.run();
    calls(&recorder, &["1"]).await;
    let ended = go(recorder.ask(delegate("a")).await.unwrap());
    delegated(&host, &invocation().child(2), &["a1", "a2"], true).await;
    recorder.answer(ended, "\"a\"".to_owned()).await.unwrap();
    go(recorder.ask(delegate("b")).await.unwrap());
    delegated(&host, &invocation().child(3), &["b1"], false).await;
    delegated(&host, &invocation().child(3).child(2), &["c1", "c2"], false).await;
    host
}

#[tokio::test]
async fn delegations_come_along_as_far_as_they_had_come() {
    let host = with_delegations().await;
    let now = host.clock.now_ms();
    host.commit(share_at(&*host.store, &invocation(), &fork("r-2"), now).unwrap()).await;
    assert_eq!(names(&host, &fork("r-2")), ["1 1", "2 a"]);
    assert_eq!(children(&*host.store, &fork("r-2")).unwrap(), [fork("r-2").child(2)]);
    assert_eq!(names(&host, &fork("r-2").child(2)), ["1 a1", "2 a2"]);
    let end = |invocation: InvocationId| end_of(&*host.store, &invocation).unwrap().map(|end| end.result);
    assert_eq!(end(fork("r-2").child(2)).as_deref(), Some("\"done\""));
    assert_eq!(names(&host, &fork("r-2").child(3)), ["1 b1"]);
    assert_eq!(end(fork("r-2").child(3)), None);
    assert_eq!(names(&host, &fork("r-2").child(3).child(2)), ["1 c1", "2 c2"]);

    // The last answer but one was 100 ms before.
    let host = host.restart();
    host.commit(share_at(&*host.store, &invocation(), &fork("r-4"), now - 100).unwrap()).await;
    assert_eq!(names(&host, &fork("r-4").child(3).child(2)), ["1 c1"]);
    // Before the second delegation began.
    host.commit(share(&*host.store, &invocation(), &fork("r-5"), 1).unwrap()).await;
    assert_eq!(names(&host, &fork("r-5").child(3)), Vec::<String>::new());
    let whole = whole(&*host.store, rows_of(&host, "r-2/")).unwrap();
    assert!(whole.iter().all(|(key, _)| !key.windows(6).any(|part| part == b"shared")), "it refers to nothing");
    assert!(whole.len() > rows_of(&host, "r-2/").len());
}

#[tokio::test]
async fn rows_tell_how_far_they_share_each_journal() {
    let host = with_delegations().await;
    let (own, now) = (invocation(), host.clock.now_ms());
    let below = [own.child(2), own.child(3), own.child(3).child(2)];
    assert_eq!(delegations(&*host.store, &own).unwrap(), below, "also where the caller does not have the call yet");
    let told = |rows: Vec<Op>| shared_through(&rows).into_iter().collect::<Vec<_>>();
    let [ended, second, third] =
        below.map(|of| InvocationId::from_text(of.as_str().replacen(own.as_str(), fork("r-2").as_str(), 1)));
    let rows = share_at(&*host.store, &own, &fork("r-2"), now).unwrap();
    let all = [(fork("r-2"), 2), (ended.clone(), u32::MAX), (second.clone(), 1), (third.clone(), 2)];
    assert_eq!(told(rows), all);
    let rows = share_with_answer(&*host.store, &own.child(3).child(2), &third, 1, "1").unwrap();
    assert_eq!(told(rows), [(fork("r-2"), 2), (ended, u32::MAX), (second, 1), (third, 1)]);
}

/// The rows of journals of a run.
fn rows_of(host: &Host, prefix: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let prefix = Key::from_bytes(prefix.as_bytes().to_vec());
    host.store.scan(Table::Journal, &prefix, None, usize::MAX).unwrap()
}

#[tokio::test]
async fn a_cut_within_a_delegation_leaves_the_calls_that_lead_to_it_open() {
    let host = with_delegations().await;
    let (of, into) = (invocation().child(3).child(2), fork("r-2").child(3).child(2));
    host.commit(share(&*host.store, &of, &into, 1).unwrap()).await;
    assert_eq!(names(&host, &fork("r-2")), ["1 1", "2 a"]);
    assert_eq!(names(&host, &fork("r-2").child(3)), ["1 b1"]);
    assert_eq!(names(&host, &into), ["1 c1"]);
    host.commit(share_with_answer(&*host.store, &of, &fork("r-4").child(3).child(2), 2, "\"other\"").unwrap()).await;
    assert_eq!(names(&host, &fork("r-4").child(3).child(2)), ["1 c1", "2 c2"]);

    // Of a delegation with another answer nothing is shared, and nothing of what was called after it.
    host.commit(share_with_answer(&*host.store, &invocation(), &fork("r-5"), 2, "\"other\"").unwrap()).await;
    assert_eq!(names(&host, &fork("r-5")), ["1 1", "2 a"]);
    assert!(rows_of(&host, "r-5/f1/1/generate#").is_empty());
}

/// Writes what a journal says about its beginning, and reads it in every way; each must end, in an error.
#[track_caller]
fn check_hostile(host: &Host, of: &InvocationId, record: &str) {
    let key = Key::of(of.as_str()).number(0).and("shared");
    host.store.overwrite(Table::Journal, key.as_bytes(), record.as_bytes().to_vec());
    let opened = Recorder::open(host.store.clone(), host.clock.clone(), of.clone(), began(), &host.limits);
    let replayed = Recorder::replay(host.store.clone(), of.clone(), "engine 1", &host.limits);
    let failures = [
        opened.err(),
        replayed.err(),
        entries(&*host.store, of, 0, 10).err(),
        children(&*host.store, of).err(),
        answered_through(&*host.store, of, u64::MAX).err(),
        share(&*host.store, of, &fork("r-9"), 1).err(),
    ];
    for failed in failures {
        assert!(matches!(failed, Some(JournalError::Damaged { .. })), "{record}: {failed:?}");
    }
}

#[tokio::test]
async fn a_hostile_record_of_a_shared_beginning_is_damaged_and_nothing_else() {
    let host = recorded(3).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 2).unwrap()).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-3"), 2).unwrap()).await;
    let (parent, child, other) = (invocation(), fork("r-2"), fork("r-3"));
    let record = |of: &InvocationId, through: u64| format!("{{\"version\":1,\"of\":\"{of}\",\"through\":{through}}}");
    let hostile = [
        record(&child, 2),
        record(&parent, 4),
        record(&parent, 0),
        record(&parent, u32::MAX.into()),
        record(&parent, u64::from(u32::MAX) - 1),
        record(&parent, u64::MAX),
        record(&fork("r-9"), 2),
        record(&parent, 2).replace(":1,", ":2,"),
        "{}".to_owned(),
        String::new(),
        "\0".to_owned(),
    ];
    for record in hostile {
        check_hostile(&host.restart(), &child, &record);
    }
    // In a circle of two.
    let circle = host.restart();
    let key = Key::of(other.as_str()).number(0).and("shared");
    circle.store.overwrite(Table::Journal, key.as_bytes(), record(&child, 2).into_bytes());
    check_hostile(&circle, &child, &record(&other, 2));

    // An entry between that has no answer.
    let gap = host.restart();
    let mut batch = Batch::new();
    batch.push(Op::Delete(Table::Journal, Key::of(parent.as_str()).number(1).and("answered")));
    gap.store.commit(batch).await.unwrap();
    let opened = Recorder::open(gap.store.clone(), gap.clock.clone(), child, began(), &gap.limits);
    assert!(matches!(opened.err(), Some(JournalError::Damaged { entry: 1, .. })));
}

#[tokio::test]
async fn a_shared_beginning_counts_within_the_caps_of_the_fork() {
    let mut host = recorded(3).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 3).unwrap()).await;
    host.limits.journal_entries_max = 3;
    let recorder = host.run_as(&fork("r-2"));
    calls(&recorder, &["1", "2", "3"]).await;
    assert!(matches!(recorder.ask(call(ReadOnly, "4")).await, Err(JournalError::Limit(_))));
    host.limits.journal_entries_max = 2;
    let opened = Recorder::open(host.store.clone(), host.clock.clone(), fork("r-2"), began(), &host.limits);
    assert!(matches!(opened.err(), Some(JournalError::Limit(_))));
}

#[tokio::test]
async fn a_fork_with_another_input_diverges_before_anything_runs() {
    let host = recorded(1).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 1).unwrap()).await;
    let other = Began { input: Digest::of(b"another"), ..began() };
    let opened = Recorder::open(host.store.clone(), host.clock.clone(), fork("r-2"), other, &host.limits);
    assert!(matches!(opened.err(), Some(JournalError::Diverged { entry: 0, .. })));
}
