//! The audit log: what it holds, and how a change of it shows.

use crate::common::lab::Lab;
use crate::common::{self, gated};
use crate::passing;
use longhaul_core::store::{Batch, Key, Op, Store as _, Table};
use longhaul_store::{RedbStore, StoreOptions};
use serde_json::{Value, json};

/// The rows of a data directory, changed by a writer of its file.
fn change_rows(lab: &Lab, change: impl FnOnce(&RedbStore) -> Vec<Op>) {
    let store = RedbStore::open(&lab.home(), StoreOptions::default()).expect("nobody has it");
    let ops = change(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(store.commit(Batch { ops })).expect("written");
}

#[test]
fn an_audit_log_that_was_changed_or_cut_off_is_told_by_its_record() {
    let lab = passing();
    for name in ["one", "two", "three"] {
        lab.run(&["token", "add", name, "--scope", "admin"]).expect(0);
    }
    let verify = |more: &[&str]| lab.run(&[&["audit", "verify"], more].concat());
    let whole = lab.json(&["audit", "verify"]);
    let last = whole["last"].as_str().expect("a digest").to_owned();
    assert_eq!(whole["records"], 3, "{whole}");
    assert!(verify(&["--expect", &last]).expect(0).stdout.contains(&last));
    common::refused(&verify(&["--expect", &"0".repeat(64)]), &["no record with that digest", "or it is another log"]);
    let row = |number: u64| Key::of("audit").number(number);
    let get = |store: &RedbStore, number| store.get(Table::States, &row(number)).expect("read").expect("there");
    change_rows(&lab, |store| {
        let changed = String::from_utf8(get(store, 2)).expect("text").replace("\"two\"", "\"six\"");
        vec![Op::Put(Table::States, row(2), changed.into_bytes())]
    });
    let how = "the audit log breaks at record 3: it does not follow record 2: one of the two was changed";
    common::refused(&verify(&[]), &[how]);
    common::refused(&verify(&["--expect", &last]), &[how]);
    let broken: Value = serde_json::from_str(&lab.run(&["--json", "audit", "verify"]).stdout).expect("JSON");
    assert_eq!((&broken["records"], &broken["broken"][0]), (&json!(2), &json!(3)), "{broken}");
    change_rows(&lab, |store| {
        let changed = String::from_utf8(get(store, 2)).expect("text").replace("\"six\"", "\"two\"");
        vec![Op::Put(Table::States, row(2), changed.into_bytes())]
    });
    verify(&["--expect", &last]).expect(0);
    // A tail that is missing shows only against a digest that was kept.
    change_rows(&lab, |_| vec![Op::Delete(Table::States, row(3))]);
    assert!(verify(&[]).expect(0).stdout.starts_with("2 records"));
    common::refused(&verify(&["--expect", &last]), &["no record with that digest: records were cut off"]);
}

#[test]
fn a_rule_is_in_the_audit_log_with_what_it_allows() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    gated::answer(&lab, &gated::the_open(&lab), "a").expect(0);
    let log = lab.run(&["audit", "log"]).expect(0).stdout;
    let made = log.lines().find(|line| line.contains("rule made")).unwrap_or_else(|| panic!("{log}"));
    assert!(made.contains("text `poster.post` may be called with any arguments that are no command"), "{made}");
}
