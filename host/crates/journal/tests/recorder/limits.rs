//! The caps of a journal: at the edge, one below, one above.

use crate::fakes::{Host, asked, call, said};
use longhaul_core::journal::EffectClass::{self, Acts, Idempotent, ReadOnly, Verifiable};
use longhaul_core::journal::{Journal as _, JournalError};
use longhaul_core::{LimitHit, Limits};

fn host(limits: Limits) -> Host {
    Host { limits, ..Host::new() }
}

#[tokio::test]
async fn entries_end_at_their_cap() {
    let host = host(Limits { journal_entries_max: 3, ..Limits::default() });
    let recorder = host.run();
    for entry in 1..=3 {
        assert_eq!(asked(&recorder, ReadOnly, "a").await.entry, entry);
    }
    let reached = recorder.ask(call(ReadOnly, "a")).await.unwrap_err();
    assert_eq!(reached, JournalError::Limit(LimitHit::new("journal_entries_max", 4, 3)));
    assert_eq!(recorder.asked(), 3);
}

#[tokio::test]
async fn a_journal_with_more_entries_than_allowed_is_not_read() {
    let host = Host::new();
    let recorder = host.run();
    for _ in 0..3 {
        asked(&recorder, Acts, "a").await;
    }
    for (max, fits) in [(2, false), (3, true), (4, true)] {
        let host = Host { limits: Limits { journal_entries_max: max, ..Limits::default() }, ..host.restart() };
        assert_eq!(host.open().is_ok(), fits, "{max}");
    }
}

/// Bytes of a journal with one call and its answer.
async fn bytes_of_one(class: EffectClass, answer: &str) -> (u64, u64) {
    let recorder = Host::new().run();
    let handle = asked(&recorder, class, "a").await;
    let before = recorder.bytes();
    recorder.answer(handle, answer.to_owned()).await.unwrap();
    (before, recorder.bytes())
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_not_made() {
    let (announced, _) = bytes_of_one(Acts, "1").await;
    for (max, fits) in [(announced - 1, false), (announced, true), (announced + 1, true)] {
        let host = host(Limits { journal_bytes_max: max, ..Limits::default() });
        let next = host.run().ask(call(Acts, "a")).await;
        assert_eq!(next.is_ok(), fits, "{max}: {}", said(&next));
        if let Err(why) = next {
            assert_eq!(why, JournalError::Limit(LimitHit::new("journal_bytes_max", announced, max)));
        }
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_ends_the_invocation() {
    for answer in ["1".to_owned(), "x".repeat(2_048), "x".repeat(2_049), "x".repeat(100_000)] {
        let (_, whole) = bytes_of_one(ReadOnly, &answer).await;
        for (max, fits) in [(whole - 1, false), (whole, true), (whole + 1, true)] {
            let host = host(Limits { journal_bytes_max: max, ..Limits::default() });
            let recorder = host.run();
            let handle = asked(&recorder, ReadOnly, "a").await;
            let kept = recorder.answer(handle, answer.clone()).await;
            assert_eq!(kept.is_ok(), fits, "{} bytes in {max}", answer.len());
            if let Err(why) = kept {
                assert_eq!(why, JournalError::Limit(LimitHit::new("journal_bytes_max", whole, max)));
            }
            assert!(recorder.ask(call(ReadOnly, "b")).await.is_err(), "no room for a further call");
        }
    }
}

#[tokio::test]
async fn an_effect_that_happened_is_kept_although_its_answer_does_not_fit() {
    for class in [Idempotent, Verifiable, Acts] {
        let answer = "x".repeat(5_000);
        let host = host(Limits { journal_bytes_max: 2_000, ..Limits::default() });
        let recorder = host.run();
        let handle = asked(&recorder, class, "a").await;
        let reached = recorder.answer(handle, answer.clone()).await.unwrap_err();
        assert!(matches!(reached, JournalError::Limit(_)), "{reached}");
        // A resume with the same caps repeats nothing and reaches the cap again.
        let recorder = host.restart().run();
        assert_eq!(said(&recorder.ask(call(class, "a")).await), format!("answered {answer}"));
        assert!(matches!(recorder.ask(call(class, "b")).await, Err(JournalError::Limit(_))));
    }
}

#[tokio::test]
async fn the_bytes_of_a_journal_are_the_same_when_it_is_read_back() {
    let host = Host::new();
    let recorder = host.run();
    for (class, length) in [(ReadOnly, 10), (Acts, 5_000), (Idempotent, 5_000)] {
        let handle = asked(&recorder, class, "a").await;
        recorder.answer(handle, "x".repeat(length)).await.unwrap();
    }
    assert_eq!(host.restart().run().bytes(), recorder.bytes());
}

#[tokio::test]
async fn long_answers_are_stored_once_and_short_ones_in_their_record() {
    for (length, blobs) in [(2_048, 0), (2_049, 1)] {
        let host = Host::new();
        let recorder = host.run();
        for _ in 0..3 {
            let handle = asked(&recorder, ReadOnly, "a").await;
            recorder.answer(handle, "y".repeat(length)).await.unwrap();
        }
        assert_eq!(host.store.blobs_written(), blobs, "{length} bytes");
        let recorder = host.restart().run();
        for _ in 0..3 {
            assert_eq!(said(&recorder.ask(call(ReadOnly, "a")).await), format!("answered {}", "y".repeat(length)));
        }
    }
}

#[tokio::test]
async fn a_summary_is_cut_to_two_hundred_bytes() {
    let host = Host::new();
    asked(&host.run(), Acts, &"日".repeat(10_000)).await;
    let found = longhaul_journal::entries(&*host.store, &crate::fakes::invocation(), 0, 1).unwrap();
    assert!((150..=200).contains(&found[0].1.asked.summary.len()), "{}", found[0].1.asked.summary);
}
