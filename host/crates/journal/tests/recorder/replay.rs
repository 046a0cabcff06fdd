//! Divergence, and the replay of ended invocations.

use crate::fakes::{Host, asked, began, call, finished, invocation, said};
use expect_test::{Expect, expect};
use longhaul_core::Digest;
use longhaul_core::journal::EffectClass::{Acts, ReadOnly};
use longhaul_core::journal::{Began, Journal as _, JournalError, NewCall};
use longhaul_core::store::Batch;
use longhaul_journal::{Opened, Recorder};

/// A finished invocation of two calls.
async fn ended() -> Host {
    let host = Host::new();
    let recorder = host.run();
    for name in ["a", "b"] {
        let handle = asked(&recorder, ReadOnly, name).await;
        recorder.answer(handle, format!("\"{name}\"")).await.unwrap();
    }
    recorder.finish(finished("\"ok\""), Batch::new()).await.unwrap();
    host.restart()
}

async fn check_call(second: NewCall, expected: Expect) {
    let host = Host::new();
    let recorder = host.run();
    for name in ["a", "files.write notes.md"] {
        let handle = asked(&recorder, ReadOnly, name).await;
        recorder.answer(handle, "1".to_owned()).await.unwrap();
    }
    let before = host.store.commits();
    let recorder = host.run();
    recorder.ask(call(ReadOnly, "a")).await.unwrap();
    let diverged = recorder.ask(second).await.unwrap_err();
    expected.assert_eq(&diverged.to_string());
    assert_eq!(recorder.ask(call(ReadOnly, "files.write notes.md")).await.unwrap_err(), diverged);
    assert_eq!(host.store.commits(), before, "nothing is written after a divergence");
}

#[tokio::test]
async fn another_call_is_a_divergence_that_shows_both() {
    check_call(
        call(ReadOnly, "files.read notes.md"),
        expect!["diverged at entry 2: journal has `tools.call` files.write notes.md (arguments b039dec1336a), plugin asked `tools.call` files.read notes.md (arguments d2be65119524); resume with the plugin's earlier bytes, or start a new run"],
    )
    .await;
    check_call(
        NewCall { arguments: Digest::of(b"other"), ..call(ReadOnly, "files.write notes.md") },
        expect!["diverged at entry 2: journal has `tools.call` files.write notes.md (arguments b039dec1336a), plugin asked `tools.call` files.write notes.md (arguments d9298a10d1b0); resume with the plugin's earlier bytes, or start a new run"],
    )
    .await;
    check_call(NewCall { name: "tools.list", ..call(ReadOnly, "files.write notes.md") }, expect!["diverged at entry 2: journal has `tools.call` files.write notes.md (arguments b039dec1336a), plugin asked `tools.list` files.write notes.md (arguments b039dec1336a); resume with the plugin's earlier bytes, or start a new run"]).await;
}

#[tokio::test]
async fn other_fuel_is_no_divergence_on_a_resume() {
    let host = Host::new();
    let recorder = host.run();
    let handle = asked(&recorder, ReadOnly, "a").await;
    recorder.answer(handle, "1".to_owned()).await.unwrap();
    let next = host.restart().run().ask(NewCall { fuel_used: 1, ..call(ReadOnly, "a") }).await;
    assert_eq!(said(&next), "answered 1");
}

#[tokio::test]
async fn other_bytes_or_another_input_diverge_before_anything_runs() {
    let host = Host::new();
    asked(&host.run(), Acts, "a").await;
    let open = |began: Began| Recorder::open(host.store.clone(), host.clock.clone(), invocation(), began, &host.limits);
    for (now, what) in [
        (Began { component: Digest::of(b"new"), ..began() }, "component"),
        (Began { input: Digest::of(b"new"), ..began() }, "input"),
        (Began { export: "agent.walk".to_owned(), ..began() }, "export"),
    ] {
        let diverged = open(now).err().expect(what);
        assert!(matches!(diverged, JournalError::Diverged { entry: 0, .. }), "{what}: {diverged}");
    }
    let diverged = open(Began { input: Digest::of(b"new"), ..began() }).err().unwrap();
    expect!["diverged at entry 0: journal has `coder` agent.run (component 6985ca1f4daa, input c96c6d5be8d0), plugin asked `coder` agent.run (component 6985ca1f4daa, input 11507a0e2f5e); resume with the plugin's earlier bytes, or start a new run"].assert_eq(&diverged.to_string());
    assert!(matches!(open(Began { plugin: "renamed".into(), ..began() }), Ok(Opened::Running(_))));
}

#[tokio::test]
async fn a_component_that_ends_before_its_journal_has_diverged() {
    let host = ended().await;
    let recorder = host.replay("engine 1");
    recorder.ask(call(ReadOnly, "a")).await.unwrap();
    assert_eq!(recorder.remaining(), 1);
    let early = recorder.check_end().unwrap_err();
    assert!(early.to_string().contains("plugin asked to end"), "{early}");
    recorder.ask(call(ReadOnly, "b")).await.unwrap();
    assert_eq!((recorder.check_end(), recorder.remaining()), (Ok(()), 0));
}

#[tokio::test]
async fn a_replay_executes_and_writes_nothing() {
    let host = ended().await;
    let rows = host.store.rows();
    let recorder = host.replay("engine 1");
    for name in ["a", "b"] {
        assert!(recorder.is_replaying());
        assert_eq!(said(&recorder.ask(call(ReadOnly, name)).await), format!("answered \"{name}\""));
    }
    let beyond = recorder.ask(call(ReadOnly, "c")).await.unwrap_err();
    expect!["diverged at entry 3: journal has its end, plugin asked `tools.call` c (arguments 2e7d2c03a950); resume with the plugin's earlier bytes, or start a new run"].assert_eq(&beyond.to_string());
    let end = recorder.finish(finished("\"ok\""), Batch::new()).await;
    assert_eq!(end, Err(JournalError::ReplayOnly(invocation())));
    assert_eq!((host.store.commits(), host.store.rows()), (0, rows));
}

#[tokio::test]
async fn a_replay_compares_fuel_within_one_engine() {
    let host = ended().await;
    let other = || NewCall { fuel_used: 999, ..call(ReadOnly, "a") };
    assert_eq!(said(&host.replay("engine 2").ask(other()).await), "answered \"a\"");
    let diverged = host.replay("engine 1").ask(other()).await.unwrap_err();
    expect!["diverged at entry 1: journal has `tools.call` a (arguments ca978112ca1b) at 1000 fuel, plugin asked the same at 999 fuel; resume with the plugin's earlier bytes, or start a new run"].assert_eq(&diverged.to_string());
}

#[tokio::test]
async fn a_replay_ends_at_a_call_that_was_cut_off() {
    for class in [ReadOnly, Acts] {
        let host = Host::new();
        let recorder = host.run();
        asked(&recorder, class, "a").await;
        recorder.finish(finished("null"), Batch::new()).await.unwrap();
        let cut = host.replay("engine 1").ask(call(class, "a")).await.unwrap_err();
        assert!(matches!(cut, JournalError::Unanswered { entry: 1, .. }), "{cut}");
    }
}

#[tokio::test]
async fn there_is_no_replay_of_what_never_began() {
    let host = Host::new();
    assert!(Recorder::replay(host.store, invocation(), "engine 1", &host.limits).unwrap().is_none());
}
