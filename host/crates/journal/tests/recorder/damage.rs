//! Invalid stored bytes end in an error, whatever they are.

use crate::fakes::{Host, asked, call, finished, invocation, resolve};
use longhaul_core::journal::EffectClass::{Acts, ReadOnly, Verifiable};
use longhaul_core::journal::{Journal as _, JournalError, Resolution};
use longhaul_core::store::{Batch, Key, Table};
use longhaul_journal::{Opened, entries};

/// A journal that holds every kind of record.
async fn full() -> Host {
    let host = Host::new();
    let recorder = host.run();
    let handle = asked(&recorder, ReadOnly, "a").await;
    recorder.answer(handle, "x".repeat(5_000)).await.unwrap();
    let handle = asked(&recorder, Verifiable, "b").await;
    recorder.prepared(&handle, "digests".to_owned()).await.unwrap();
    recorder.answer(handle, "1".to_owned()).await.unwrap();
    asked(&recorder, Acts, "c").await;
    resolve(&*host.store, 3, Resolution::Skip).await.unwrap();
    host
}

/// Reads everything; returns whether any damage was reported.
async fn read(host: &Host) -> bool {
    let damaged = |why: &JournalError| {
        assert!(
            matches!(why, JournalError::Damaged { .. } | JournalError::Diverged { .. } | JournalError::Limit(_)),
            "{why}"
        );
    };
    let mut found = entries(&*host.store, &invocation(), 0, 10).inspect_err(damaged).is_err();
    match host.open().inspect_err(damaged) {
        Ok(Opened::Running(recorder)) => {
            for (class, name) in [(ReadOnly, "a"), (Verifiable, "b"), (Acts, "c")] {
                found |= recorder.ask(call(class, name)).await.is_err();
            }
        }
        Ok(Opened::Finished { .. }) => {}
        Err(_) => found = true,
    }
    found
}

#[tokio::test]
async fn a_record_that_is_cut_or_replaced_is_damaged_and_nothing_else() {
    let host = full().await;
    assert!(!read(&host.restart()).await);
    let rows = host.store.rows();
    assert_eq!(rows.len(), 1 + 2 + 3 + 2);
    for (key, value) in &rows {
        let cuts = (0..value.len()).map(|end| value[..end].to_vec());
        let others =
            ["null", "{}", "[]", "-1", "\"x\"", "{\"attempt\":99999999999}"].map(|text| text.as_bytes().to_vec());
        for bytes in cuts.chain(others) {
            let host = host.restart();
            let what = String::from_utf8_lossy(&bytes).into_owned();
            host.store.overwrite(Table::Journal, key, bytes);
            let readable_text = what.starts_with('"') && key.windows(8).any(|part| part == b"prepared");
            assert!(read(&host).await || readable_text, "{what} at {}", String::from_utf8_lossy(key));
        }
    }
}

#[tokio::test]
async fn keys_that_nobody_writes_are_damaged_or_above_a_cap() {
    let strange = [
        Key::of("generate").and("x"),
        Key::default().number(u64::MAX - 1).and("asked").number(1),
        Key::default().number(1 << 40).and("answered"),
        Key::default().number(5).and("answered"),
        Key::default().number(4).and("began"),
        Key::default().number(4).and("asked").number(u64::MAX),
        Key::default().number(4).and("unheard of"),
    ];
    for key in strange {
        let host = full().await;
        let stored = [Key::of(invocation().as_str()).as_bytes(), key.as_bytes()].concat();
        host.store.overwrite(Table::Journal, &stored, b"{\"content\":{\"inline\":\"1\"},\"at_ms\":1}".to_vec());
        let opened = host.restart().open();
        let late = matches!(&opened, Ok(Opened::Running(_)));
        assert!(opened.is_err() || late && key == Key::default().number(5).and("answered"), "{key:?}");
        if let Ok(Opened::Running(recorder)) = opened {
            for (class, name) in [(ReadOnly, "a"), (Verifiable, "b"), (Acts, "c"), (Acts, "d")] {
                recorder.ask(call(class, name)).await.unwrap();
            }
            assert!(matches!(recorder.ask(call(Acts, "e")).await, Err(JournalError::Damaged { .. })));
        }
    }
}

#[tokio::test]
async fn a_long_answer_whose_content_is_gone_is_damaged() {
    let host = Host::new();
    let recorder = host.run();
    recorder.finish(finished(&"x".repeat(5_000)), Batch::new()).await.unwrap();
    let bare = Host::new();
    for (key, value) in host.store.rows() {
        bare.store.overwrite(Table::Journal, &key, value);
    }
    assert!(matches!(bare.open(), Err(JournalError::Damaged { .. })));
}
