//! The rows of workers in a real store: what is put is read back, of the right worker and in the right order.

use longhaul_api::operations::OperationCall;
use longhaul_core::RunId;
use longhaul_core::fault::{Fault, FaultWire};
use longhaul_core::store::{Batch, Store};
use longhaul_store::{RedbStore, StoreOptions};
use longhaul_workers::calls::{self, Reply, WorkerCall};
use longhaul_workers::claims::{self, Claim};
use longhaul_workers::worker::WorkerRecord;
use serde_json::json;
use std::collections::BTreeSet;

fn run(name: &str) -> RunId {
    RunId::from_text(name)
}

fn call(about: &str) -> WorkerCall {
    WorkerCall {
        epoch: 3,
        run: run(about),
        operation: OperationCall { name: "pause_run".into(), request: json!({ "run": about }) },
    }
}

#[tokio::test]
async fn claims_are_those_of_their_worker_and_end_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(place.path(), StoreOptions::default()).expect("a store");
    let claim = Claim { epoch: 3, since_ms: 7 };
    let mut batch = Batch::new();
    for (worker, name) in [("a", "r-1"), ("a", "r-2"), ("ab", "r-3")] {
        batch = claims::put(batch, worker, &run(name), claim).expect("JSON");
    }
    store.commit(batch).await.expect("room");
    let of = |worker: &str| claims::of_worker(&store, worker).expect("rows").into_keys().collect::<Vec<_>>();
    assert_eq!((of("a"), of("ab"), of("b")), (vec![run("r-1"), run("r-2")], vec![run("r-3")], Vec::new()));
    let left = claims::put(Batch::new(), "a", &run("r-1"), Claim { epoch: 4, since_ms: 8 }).expect("JSON");
    store.commit(left).await.expect("a claim that was left is replaced");
    assert_eq!(claims::get(&store, "a", &run("r-1")).expect("rows").map(|claim| claim.epoch), Some(4));
    let mut batch = Batch::new();
    claims::forget(&mut batch, "a", &run("r-1"));
    store.commit(batch).await.expect("room");
    assert_eq!(claims::get(&store, "a", &run("r-1")).expect("rows"), None);
    assert_eq!(claims::get(&store, "a", &run("r-2")).expect("rows"), Some(claim));
}

#[tokio::test]
async fn calls_are_replied_to_in_their_order_and_leave_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(place.path(), StoreOptions::default()).expect("a store");
    let first = calls::next_number(0, 1_000);
    let second = calls::next_number(first, 1_000);
    assert!(second == first + 1 && calls::next_number(second, 1_001) > second);
    let batch = call("r-2").put(Batch::new(), "a", second).expect("JSON");
    store.commit(call("r-1").put(batch, "a", first).expect("JSON")).await.expect("room");
    let asked = WorkerCall::of_worker(&store, "a").expect("rows");
    let asked: Vec<_> = asked.iter().map(|(number, call)| (*number, call.run.as_str(), call.epoch)).collect();
    assert_eq!(asked, [(first, "r-1", 3), (second, "r-2", 3)]);
    let failed = Reply::Failed(FaultWire::from(&Fault::conflict("it is over")));
    let batch = Reply::Done(json!(1)).put(Batch::new(), "a", first).expect("JSON");
    store.commit(failed.put(batch, "a", second).expect("JSON")).await.expect("room");
    assert!(WorkerCall::of_worker(&store, "a").expect("rows").is_empty());
    let replies = Reply::of_worker(&store, "a").expect("rows");
    assert!(matches!(&replies[..], [(_, Reply::Done(one)), (_, Reply::Failed(_))] if *one == json!(1)), "{replies:?}");
    let mut batch = Batch::new();
    [first, second].into_iter().for_each(|number| calls::forget(&mut batch, "a", number));
    store.commit(batch).await.expect("room");
    assert!(Reply::of_worker(&store, "a").expect("rows").is_empty());
}

#[tokio::test]
async fn a_worker_tells_of_itself_and_the_last_word_counts() {
    let place = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(place.path(), StoreOptions::default()).expect("a store");
    let mut record = WorkerRecord {
        epoch: 1,
        host: "one".into(),
        process: 7,
        version: "0.1.0".into(),
        labels: BTreeSet::from(["gpu".to_owned()]),
        runs_max: 2,
        url: None,
    };
    store.commit(record.put(Batch::new(), "w-1").expect("JSON")).await.expect("room");
    record.runs_max = 5;
    store.commit(record.put(Batch::new(), "w-1").expect("JSON")).await.expect("room");
    let all = WorkerRecord::all(&store).expect("rows");
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [("w-1".to_owned(), record)]);
}
