//! Effects over a store that another process may take over: none is announced, and none begins, while it may.

use crate::fakes::{Host, call, go, invocation, said};
use longhaul_core::journal::EffectClass::{Acts, Idempotent, ReadOnly, Verifiable};
use longhaul_core::journal::{Journal as _, JournalError};
use longhaul_core::store::StoreError;
use longhaul_journal::entries;

fn is_refused<T>(asked: &Result<T, JournalError>, left: u64) -> bool {
    matches!(asked, Err(JournalError::Store(StoreError::LeaseEnds { left_ms })) if *left_ms == left)
}

#[tokio::test]
async fn an_effect_is_not_announced_when_the_lease_ends_before_it_could_begin() {
    for class in [Verifiable, Acts] {
        let host = Host::new();
        let recorder = host.run();
        host.store.lease(&[499]);
        let asked = recorder.ask(call(class, "a")).await;
        assert!(is_refused(&asked, 499), "{asked:?}");
        assert!(asked.is_err_and(|why| why.to_string().contains("ends in 499 ms")));
        // The invocation ends with it, whatever becomes of the lease.
        assert!(is_refused(&recorder.ask(call(ReadOnly, "b")).await, 499));
        assert!(entries(&*host.store, &invocation(), 0, 10).unwrap().is_empty(), "{class:?}");
        assert_eq!(said(&host.restart().run().ask(call(class, "a")).await), "go, attempt 1");
    }
    let host = Host::new();
    host.store.lease(&[500, 500]);
    go(host.run().ask(call(Acts, "a")).await.unwrap());
}

#[tokio::test]
async fn an_effect_does_not_begin_when_the_lease_ended_since_it_was_announced() {
    let host = Host::new();
    host.store.lease(&[10_000, 0]);
    assert!(is_refused(&host.run().ask(call(Acts, "a")).await, 0));
    assert_eq!(said(&host.restart().run().ask(call(Acts, "a")).await), "parked at entry 1");

    let host = Host::new();
    let recorder = host.run();
    host.store.lease(&[10_000, 10_000, 0]);
    let handle = go(recorder.ask(call(Verifiable, "a")).await.unwrap());
    assert!(is_refused(&recorder.prepared(&handle, "digests".to_owned()).await, 0));
    assert_eq!(said(&host.restart().run().ask(call(Verifiable, "a")).await), "verify digests, attempt 2, repeated");
}

#[tokio::test]
async fn what_may_be_repeated_and_what_is_answered_already_asks_for_no_lease() {
    let host = Host::new();
    let recorder = host.run();
    let handle = go(recorder.ask(call(Acts, "a")).await.unwrap());
    recorder.answer(handle, "1".to_owned()).await.unwrap();
    let host = host.restart();
    host.store.lease(&[0; 10]);
    let recorder = host.run();
    assert_eq!(said(&recorder.ask(call(Acts, "a")).await), "answered 1");
    for class in [ReadOnly, Idempotent] {
        let asked = recorder.ask(call(class, "b")).await;
        assert!(asked.is_ok(), "{class:?}: {asked:?}");
    }
}
