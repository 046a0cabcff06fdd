//! Guests that mean harm: each ends in its typed error, the host lives, and a healthy guest beside it
//! does not notice.
//!
//! The guests are the files of `tests/hostile/guests`; what each does is said in its second line.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod bombs;
mod cache;
mod compiler;
mod crashes;
mod files;
mod fuzz;
mod host_resources;
mod memory;
mod time;

use crate::common::guests::guest;
use crate::common::guests::lab::{Call, Ended, Lab};
use expect_test::Expect;
use longhaul_core::Limits;
use longhaul_engine::{CallError, LoadError, Plugin};
use std::time::Duration;

/// Longest time for one call before its test fails instead of hanging. It is far above what any call needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls a guest while a healthy one runs beside it, and after it.
#[track_caller]
fn check(name: &str, call: &Call, expected: Expect) -> Ended {
    check_bytes(name, &guest(name), call, expected)
}

#[track_caller]
fn check_bytes(name: &str, bytes: &[u8], call: &Call, expected: Expect) -> Ended {
    let ended = block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        let hostile = lab.load(name, bytes).await;
        let both = async { tokio::join!(lab.call(&hostile, call), stays_healthy(&lab, &healthy)) };
        let (ended, ()) = tokio::time::timeout(PATIENCE, both).await.expect("a bounded call ends");
        stays_healthy(&lab, &healthy).await;
        ended
    });
    expected.assert_eq(&told(&ended));
    ended
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A harmless guest is answered as if it were alone.
async fn stays_healthy(lab: &Lab, healthy: &Plugin) {
    let ended = lab.call(healthy, &Call::of("sum", Limits::default())).await;
    assert_eq!(told(&ended), "answered 500500");
    assert_eq!(ended.log.len(), 1, "its line is in its own log: {:?}", ended.log);
}

/// The end of a call as text, without what differs from one machine to the next.
fn told(ended: &Ended) -> String {
    match &ended.answer {
        Ok(Ok(output)) if output.len() > 100 => format!("answered {} bytes", output.len()),
        Ok(Ok(output)) => format!("answered {output}"),
        Ok(Err(error)) => format!("refused: {error}"),
        Err(CallError::Limit { plugin, export, hit }) => {
            assert!(hit.used >= hit.max, "{hit}");
            format!("{plugin} in {export}: limit {} of {}", hit.name, hit.max)
        }
        Err(CallError::Trapped { plugin, export, reason }) => {
            format!("{plugin} in {export}: trapped: {}", last_cause(reason))
        }
        Err(other) => format!("{other}"),
    }
}

/// The reason, which the last line has after its frame of the back trace.
fn last_cause(reason: &str) -> &str {
    let line = reason.lines().last().unwrap_or_default();
    let cause = line.rsplit_once('!').and_then(|(_, frame)| frame.split_once(": ")).map_or(line, |(_, cause)| cause);
    cause.find("wasm trap: ").map_or(cause, |at| &cause[at..])
}

fn unlimited() -> Limits {
    Limits { fuel_max: u64::MAX / 2, cpu_ms_max: 3_600_000, wall_ms_max: 3_600_000, ..Limits::default() }
}

/// The error of loading bytes that should not load.
#[track_caller]
fn refused(name: &str, bytes: &[u8]) -> LoadError {
    block_on(async {
        Lab::new().engine().load(name, bytes).await.err().unwrap_or_else(|| panic!("`{name}` was loaded"))
    })
}
