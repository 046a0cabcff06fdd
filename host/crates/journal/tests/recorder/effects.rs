//! Every class of effect, in every state in which a kill may leave it.

use crate::fakes::{Host, asked, call, invocation, resolve, said};
use expect_test::{Expect, expect};
use longhaul_core::journal::EffectClass::{self, Acts, Idempotent, ReadOnly, Verifiable};
use longhaul_core::journal::{Journal as _, JournalError, Resolution};
use longhaul_core::store::{Batch, Store as _};
use longhaul_journal::{ResolveError, entries, unresolved};

const CLASSES: [EffectClass; 4] = [ReadOnly, Idempotent, Verifiable, Acts];

/// Progress of the effect of entry 1 before the kill.
#[derive(Clone, Copy)]
enum Left {
    Asked,
    Prepared,
    Answered,
}

/// Leaves an effect of `class` in flight and returns the host that finds it.
async fn left(class: EffectClass, how: Left) -> Host {
    let host = Host::new();
    let recorder = host.run();
    let handle = asked(&recorder, class, "one").await;
    if matches!(how, Left::Prepared) {
        recorder.prepared(&handle, "digests".to_owned()).await.unwrap();
    }
    if matches!(how, Left::Answered) {
        recorder.answer(handle, "\"done\"".to_owned()).await.unwrap();
    }
    // A change that need not be durable by itself is committed along with the next one.
    let another = asked(&recorder, Acts, "another").await;
    recorder.answer(another, "\"done\"".to_owned()).await.unwrap();
    host.restart()
}

async fn check(how: Left, expected: Expect) {
    let mut table = String::new();
    for class in CLASSES {
        let host = left(class, how).await;
        let next = next(&host, class).await;
        table.push_str(&format!("{class:?}: {next}\n"));
    }
    expected.assert_eq(&table);
}

async fn next(host: &Host, class: EffectClass) -> String {
    match host.open().unwrap() {
        longhaul_journal::Opened::Running(recorder) => said(&recorder.ask(call(class, "one")).await),
        longhaul_journal::Opened::Finished { .. } => "finished".to_owned(),
    }
}

#[tokio::test]
async fn a_completed_effect_is_answered_and_never_done_again() {
    check(
        Left::Answered,
        expect![[r#"
            ReadOnly: answered "done"
            Idempotent: answered "done"
            Verifiable: answered "done"
            Acts: answered "done"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_effect_in_flight_is_repeated_asked_or_parked_by_its_class() {
    check(
        Left::Asked,
        expect![[r#"
            ReadOnly: go, attempt 2, repeated
            Idempotent: go, attempt 2, repeated
            Verifiable: go, attempt 1
            Acts: parked at entry 1
        "#]],
    )
    .await;
    check(
        Left::Prepared,
        expect![[r#"
            ReadOnly: go, attempt 2, repeated
            Idempotent: go, attempt 2, repeated
            Verifiable: verify digests, attempt 2, repeated
            Acts: parked at entry 1
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_a_person_said_decides_and_holds_for_one_attempt() {
    for (resolution, expected) in [
        (Resolution::Happened("{\"id\":1}".to_owned()), "happened {\"id\":1}, attempt 1, repeated"),
        (Resolution::DidNotHappen, "go, attempt 2, repeated"),
        (Resolution::Skip, "skipped, attempt 1, repeated"),
    ] {
        for (class, how) in [(Acts, Left::Asked), (Verifiable, Left::Prepared)] {
            let host = left(class, how).await;
            resolve(&*host.store, 1, resolution.clone()).await.unwrap();
            assert_eq!(next(&host, class).await, expected, "{class:?}");
            // Another attempt uses the resolution up; a known answer does not change.
            if resolution == Resolution::DidNotHappen {
                let again = if class == Acts { "parked at entry 1" } else { "verify digests, attempt 3, repeated" };
                assert_eq!(next(&host.restart(), class).await, again, "{class:?}");
            } else {
                assert_eq!(next(&host.restart(), class).await, expected, "{class:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_after_a_resolution_completes_the_effect() {
    let host = left(Acts, Left::Asked).await;
    resolve(&*host.store, 1, Resolution::Happened("1".to_owned())).await.unwrap();
    let recorder = host.run();
    let next = recorder.ask(call(Acts, "one")).await.unwrap();
    let longhaul_core::journal::CallVerdict::Happened(handle, output) = next else {
        panic!("{next:?}");
    };
    recorder.answer(handle, output).await.unwrap();
    assert_eq!(self::next(&host.restart(), Acts).await, "answered 1");
}

#[tokio::test]
async fn a_verified_effect_that_did_not_happen_is_prepared_again() {
    let host = left(Verifiable, Left::Prepared).await;
    let recorder = host.run();
    let next = recorder.ask(call(Verifiable, "one")).await.unwrap();
    let longhaul_core::journal::CallVerdict::Verify(handle, _) = next else {
        panic!("{next:?}");
    };
    // Killed before it prepared anything: the first preparation still counts.
    assert_eq!(self::next(&host.restart(), Verifiable).await, "verify digests, attempt 2, repeated");
    recorder.prepared(&handle, "new digests".to_owned()).await.unwrap();
    assert_eq!(self::next(&host.restart(), Verifiable).await, "verify new digests, attempt 3, repeated");
    recorder.answer(handle, "2".to_owned()).await.unwrap();
    assert_eq!(self::next(&host.restart(), Verifiable).await, "answered 2");
}

#[tokio::test]
async fn a_claim_that_changed_since_is_not_used_to_repeat_an_effect() {
    for (then, how, now, expected) in [
        (Acts, Left::Asked, ReadOnly, "parked at entry 1"),
        (Acts, Left::Asked, Idempotent, "parked at entry 1"),
        (Acts, Left::Asked, Verifiable, "parked at entry 1"),
        (ReadOnly, Left::Asked, Acts, "parked at entry 1"),
        (Idempotent, Left::Asked, Verifiable, "parked at entry 1"),
        (Verifiable, Left::Prepared, ReadOnly, "verify digests, attempt 2, repeated"),
        (ReadOnly, Left::Asked, Idempotent, "go, attempt 2, repeated"),
        (Idempotent, Left::Asked, ReadOnly, "go, attempt 2, repeated"),
    ] {
        let host = left(then, how).await;
        assert_eq!(next(&host, now).await, expected, "{then:?} then, {now:?} now");
    }
}

#[tokio::test]
async fn a_call_that_left_no_trace_may_have_been_made_unless_it_had_to_announce_itself() {
    for (class, expected) in [
        (ReadOnly, "go, attempt 2, repeated"),
        (Idempotent, "go, attempt 2, repeated"),
        (Verifiable, "go, attempt 1"),
        (Acts, "go, attempt 1"),
    ] {
        let host = Host::new();
        let first = host.run();
        let handle = asked(&first, ReadOnly, "zero").await;
        first.answer(handle, "0".to_owned()).await.unwrap();
        let host = host.restart();
        let recorder = host.run();
        recorder.ask(call(ReadOnly, "zero")).await.unwrap();
        assert_eq!(said(&recorder.ask(call(class, "one")).await), expected, "{class:?}");
    }
}

#[tokio::test]
async fn nothing_beyond_an_answer_of_this_process_was_made_before() {
    let host = Host::new();
    asked(&host.run(), ReadOnly, "one").await;
    let host = host.restart();
    let recorder = host.run();
    assert!(recorder.resumed());
    let handle = asked(&recorder, ReadOnly, "one").await;
    assert!(handle.repeated);
    recorder.answer(handle, "1".to_owned()).await.unwrap();
    assert!(!asked(&recorder, ReadOnly, "two").await.repeated);
}

#[tokio::test]
async fn a_class_pays_only_for_the_commits_that_it_needs() {
    for (class, expected) in
        [(ReadOnly, [0, 0, 1]), (Idempotent, [0, 0, 1]), (Verifiable, [1, 2, 3]), (Acts, [1, 1, 2])]
    {
        let host = Host::new();
        let recorder = host.run();
        let zero = asked(&recorder, ReadOnly, "zero").await;
        recorder.answer(zero, "0".to_owned()).await.unwrap();
        let before = host.store.commits();
        let handle = asked(&recorder, class, "one").await;
        let mut commits = vec![host.store.commits() - before];
        if class == Verifiable {
            recorder.prepared(&handle, "digests".to_owned()).await.unwrap();
        }
        commits.push(host.store.commits() - before);
        recorder.answer(handle, "1".to_owned()).await.unwrap();
        commits.push(host.store.commits() - before);
        assert_eq!(commits, expected, "{class:?}");
    }
}

#[tokio::test]
async fn a_key_is_the_same_for_every_attempt_and_another_for_every_call() {
    let host = Host::new();
    let recorder = host.run();
    let one = asked(&recorder, Idempotent, "same").await;
    let two = asked(&recorder, Idempotent, "same").await;
    assert_ne!(one.key, two.key);
    let recorder = host.restart().run();
    assert_eq!(asked(&recorder, Idempotent, "same").await.key, one.key);
    assert_eq!(asked(&recorder, Idempotent, "same").await.key, two.key);
    assert_eq!(one.key.len(), 32);
}

#[tokio::test]
async fn a_question_names_the_plugin_the_call_the_time_and_the_answers() {
    let host = left(Acts, Left::Asked).await;
    let parked = host.run().ask(call(Acts, "one")).await.unwrap_err();
    expect![[r#"plugin `coder` was cut off in `tools.call` one, started 2026-11-22T01:00:00Z, and it is unknown whether it happened; answer entry 1 of r-3f9c02d1a4be/f1/1/generate with one of: `happened` and its output, `did-not-happen` to do it now, `skip` to go on without it"#]]
        .assert_eq(&parked.to_string());
    let host = left(Verifiable, Left::Prepared).await;
    let recorder = host.run();
    let next = recorder.ask(call(Verifiable, "one")).await.unwrap();
    let longhaul_core::journal::CallVerdict::Verify(handle, _) = next else {
        panic!("{next:?}");
    };
    host.clock.set(crate::fakes::START_MS + 3_600_000);
    let question = recorder.question(&handle, "the file has neither digest");
    expect![[r#"plugin `coder` was cut off in `tools.call` one, started 2026-11-22T01:00:00Z, and it is unknown whether it happened (the file has neither digest); answer entry 1 of r-3f9c02d1a4be/f1/1/generate with one of: `happened` and its output, `did-not-happen` to do it now, `skip` to go on without it"#]]
        .assert_eq(&question.text);
}

#[tokio::test]
async fn a_parked_invocation_asks_nothing_more() {
    let host = left(Acts, Left::Asked).await;
    let recorder = host.run();
    assert!(matches!(recorder.ask(call(Acts, "one")).await, Err(JournalError::Parked(_))));
    assert!(matches!(recorder.ask(call(ReadOnly, "other")).await, Err(JournalError::Parked(_))));
}

#[tokio::test]
async fn only_an_open_question_is_resolved_and_only_once() {
    let host = left(Acts, Left::Asked).await;
    let store = &*host.store;
    let refused = |entry, resolution| async move { resolve(store, entry, resolution).await.unwrap_err().to_string() };
    let not_json = refused(1, Resolution::Happened("no json".to_owned())).await;
    assert!(not_json.contains("not JSON"), "{not_json}");
    for entry in [0, 3, u32::MAX] {
        let unknown = resolve(store, entry, Resolution::Skip).await.unwrap_err();
        assert!(matches!(unknown, ResolveError::Unknown { .. }), "{unknown}");
    }
    resolve(store, 1, Resolution::Skip).await.unwrap();
    assert!(refused(1, Resolution::DidNotHappen).await.ends_with("it was resolved before"));
    let answered = left(Acts, Left::Answered).await;
    let refused = resolve(&*answered.store, 1, Resolution::Skip).await.unwrap_err();
    assert!(refused.to_string().ends_with("it was answered"), "{refused}");
    let repeatable = left(ReadOnly, Left::Asked).await;
    let refused = resolve(&*repeatable.store, 1, Resolution::Skip).await.unwrap_err();
    assert!(refused.to_string().ends_with("it may be repeated without a person"), "{refused}");
}

#[tokio::test]
async fn a_resolution_is_used_up_by_the_attempt_that_it_allowed() {
    let host = left(Acts, Left::Asked).await;
    resolve(&*host.store, 1, Resolution::DidNotHappen).await.unwrap();
    asked(&host.run(), Acts, "one").await;
    let host = host.restart();
    assert_eq!(next(&host, Acts).await, "parked at entry 1");
    let (_, entry) = &entries(&*host.store, &invocation(), 0, 10).unwrap()[0];
    assert_eq!((entry.asked.attempt, &entry.resolution), (2, &None));
    resolve(&*host.store, 1, Resolution::Skip).await.unwrap();
    assert_eq!(next(&host, Acts).await, "skipped, attempt 2, repeated");
}

#[tokio::test]
async fn what_a_person_said_can_be_taken_back_until_somebody_acts_on_it() {
    let host = left(Acts, Left::Asked).await;
    let take_back = async |host: &Host| {
        let op = unresolved(&*host.store, &invocation(), 1)?;
        host.store.commit(Batch { ops: vec![op] }).await.unwrap();
        Ok::<(), ResolveError>(())
    };
    let nothing = take_back(&host).await.unwrap_err().to_string();
    assert!(nothing.ends_with("nothing was said about it that is still to be used"), "{nothing}");
    resolve(&*host.store, 1, Resolution::DidNotHappen).await.unwrap();
    take_back(&host).await.unwrap();
    assert_eq!(next(&host, Acts).await, "parked at entry 1");
    resolve(&*host.store, 1, Resolution::DidNotHappen).await.unwrap();
    asked(&host.run(), Acts, "one").await;
    let used = take_back(&host.restart()).await.unwrap_err().to_string();
    assert_eq!(used, nothing, "a further attempt has begun");
}

#[tokio::test]
async fn of_calls_made_at_once_all_are_asked_about_before_one_is_done_again() {
    let host = Host::new();
    let recorder = host.run();
    for name in ["one", "two", "three"] {
        asked(&recorder, Acts, name).await;
    }
    let host = host.restart();
    let mut asked_about = Vec::new();
    // Like a guest that is killed and resumed, with a person who answers each time.
    loop {
        let recorder = host.run();
        let mut parked = None;
        for name in ["one", "two", "three"] {
            match recorder.ask(call(Acts, name)).await {
                Err(JournalError::Parked(question)) => parked = Some(question.entry),
                other => drop(other.unwrap()),
            }
            if parked.is_some() {
                break;
            }
        }
        let Some(entry) = parked else { break };
        asked_about.push(entry);
        resolve(&*host.store, entry, Resolution::DidNotHappen).await.unwrap();
    }
    assert_eq!(asked_about, [1, 2, 3], "each once");
}
