//! Guests that take time without end, wait for ever, or take all places: each ends, and a neighbour has its turns.

use super::{PATIENCE, block_on, check, stays_healthy, told, unlimited};
use crate::common::guests::guest;
use crate::common::guests::lab::{Call, Lab, engine_that_clears_aside, pooled_engine, private_directory};
use expect_test::expect;
use longhaul_core::Limits;
use longhaul_engine::CallError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

#[test]
fn an_endless_loop_ends_with_its_fuel() {
    let ended = check(
        "endless",
        &Call::of("go", Limits { fuel_max: 20_000_000, ..Limits::default() }),
        expect!["endless in tool.call: limit fuel_max of 20000000"],
    );
    assert!(ended.used.fuel >= 20_000_000, "{:?}", ended.used);
}

#[test]
fn an_endless_loop_with_fuel_ends_with_its_time_on_a_processor() {
    check(
        "endless",
        &Call::of("go", Limits { cpu_ms_max: 30, ..unlimited() }),
        expect!["endless in tool.call: limit cpu_ms_max of 30"],
    );
}

#[test]
fn an_endless_loop_with_fuel_ends_with_its_time_on_the_clock() {
    check(
        "endless",
        &Call::of("go", Limits { wall_ms_max: 30, ..unlimited() }),
        expect!["endless in tool.call: limit wall_ms_max of 30"],
    );
}

#[test]
fn an_endless_loop_ends_when_it_is_cancelled() {
    let call = Call::of("go", unlimited());
    let cancel = call.cancel.clone();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        cancel.cancel();
    });
    check("endless", &call, expect!["cancelled"]);
    canceller.join().expect("cancelled");
}

#[test]
fn a_call_that_was_cancelled_before_it_began_never_runs() {
    let call = Call::of("go", unlimited());
    call.cancel.cancel();
    let ended = check("endless", &call, expect!["cancelled"]);
    assert_eq!(ended.used.fuel, 0);
}

#[test]
fn instructions_that_do_much_at_once_do_not_outrun_the_clock() {
    check(
        "bulk",
        &Call::of("go", Limits { wall_ms_max: 100, ..unlimited() }),
        expect!["bulk in tool.call: limit wall_ms_max of 100"],
    );
}

#[test]
fn a_start_function_without_end_is_bounded_too() {
    check(
        "starts-endless",
        &Call::of("go", Limits { fuel_max: 5_000_000, ..Limits::default() }),
        expect!["starts-endless in tool.call: limit fuel_max of 5000000"],
    );
}

#[test]
fn a_sleep_beyond_the_time_on_the_clock_is_refused_and_many_short_ones_end_there() {
    let limits = Limits { wall_ms_max: 200, ..Limits::default() };
    check("sleeps", &Call::of("l", limits.clone()), expect!["answered 1"]);
    check("sleeps", &Call::of("go", limits), expect!["sleeps in tool.call: limit wall_ms_max of 200"]);
}

#[test]
fn a_wait_that_is_never_over_ends_with_the_time_on_the_clock() {
    let limits = Limits { wall_ms_max: 100, ..Limits::default() };
    check("waits-tool", &Call::of("go", limits.clone()), expect!["waits-tool in tool.call: limit wall_ms_max of 100"]);
    // A pure guest is told at once: its wait could not end otherwise.
    check(
        "waits-agent",
        &Call::of("go", Limits::default()),
        expect!["waits-agent in agent.run: limit wall_ms_max of 1800000"],
    );
}

#[test]
fn waiting_for_nothing_is_a_crash_of_the_guest() {
    check(
        "waits-tool",
        &Call::of("n", Limits::default()),
        expect!["waits-tool in tool.call: trapped: empty poll list"],
    );
    check(
        "waits-agent",
        &Call::of("n", Limits::default()),
        expect!["waits-agent in agent.run: trapped: empty poll list"],
    );
}

#[test]
fn fifty_endless_loops_do_not_starve_a_healthy_guest() {
    block_on(async {
        let lab = Lab::new();
        let (healthy, endless) =
            (lab.load("healthy", &guest("healthy")).await, lab.load("endless", &guest("endless")).await);
        let call = Call::of("go", unlimited());
        let floods = futures(50, || lab.call(&endless, &call));
        let healthy = async {
            for _ in 0..20 {
                stays_healthy(&lab, &healthy).await;
            }
            call.cancel.cancel();
        };
        let both = async { tokio::join!(floods, healthy) };
        let (ended, ()) = tokio::time::timeout(PATIENCE, both).await.expect("the healthy guest gets its turns");
        assert!(ended.iter().all(|ended| told(ended) == "cancelled"));
    });
}

/// Runs `count` of the same at once.
async fn futures<T, F: Future<Output = T>>(count: usize, one: impl Fn() -> F) -> Vec<T> {
    let mut running: Vec<_> = (0..count).map(|_| Box::pin(one())).collect();
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in running.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn a_loop_among_busy_neighbours_ends_when_it_is_cancelled_and_not_when_its_turn_comes() {
    const NEIGHBOURS: usize = 50;
    const LOOPS: usize = 5;
    // One thread, so that the calls that ran on it in between can be counted.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let lab = Arc::new(Lab::new());
        let endless = Arc::new(lab.load("endless", &guest("endless")).await);
        let (turns, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for _ in 0..NEIGHBOURS {
            let (turns, over) = (Arc::clone(&turns), Arc::clone(&over));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    let_others().await;
                }
            });
        }
        let mut waited = 0;
        for _ in 0..LOOPS {
            let (call, cancelled) = (Call::of("go", unlimited()), Arc::clone(&turns));
            let cancel = call.cancel.clone();
            let (lab, endless, returned) = (Arc::clone(&lab), Arc::clone(&endless), Arc::clone(&turns));
            let call = tokio::spawn(async move {
                let ended = lab.call(&endless, &call).await;
                (told(&ended), returned.load(Ordering::Relaxed))
            });
            let decided = tokio::spawn(async move {
                // Each time all have had a turn.
                for _ in 0..5 {
                    let_others().await;
                }
                cancel.cancel();
                cancelled.load(Ordering::Relaxed)
            });
            let both = async { (decided.await.expect("decided"), call.await.expect("called")) };
            let (decided, (told, returned)) = tokio::time::timeout(PATIENCE, both).await.expect("it ends");
            assert_eq!(told, "cancelled");
            waited += returned - decided;
        }
        over.store(true, Ordering::Relaxed);
        assert!(waited < NEIGHBOURS, "{waited} turns of others in {LOOPS} calls");
    });
}

/// Lets all others have a turn that want one.
async fn let_others() {
    let mut have = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut have, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// More calls than the pool of instances has places.
const MORE_THAN_THE_POOL: usize = 300;

/// Few enough to leave places for the tests beside.
const AT_ONCE: usize = 50;

#[test]
fn calls_that_are_dropped_or_cancelled_while_they_wait_give_back_their_places() {
    block_on(async {
        let lab = Lab::new();
        let (healthy, sleeper) =
            (lab.load("healthy", &guest("healthy")).await, lab.load("sleeps", &guest("sleeps")).await);
        for round in 0..MORE_THAN_THE_POOL / AT_ONCE {
            let call = Call::of("go", unlimited());
            let sleeping = futures(AT_ONCE, || lab.call(&sleeper, &call));
            if round % 2 == 0 {
                // As when the host is told to stop: the futures are dropped where they wait.
                tokio::time::timeout(Duration::from_millis(20), sleeping).await.expect_err("they sleep for ever");
            } else {
                let cancelling = async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    call.cancel.cancel();
                };
                let (ended, ()) = tokio::join!(sleeping, cancelling);
                assert!(ended.iter().all(|ended| told(ended) == "cancelled"));
            }
        }
        stays_healthy(&lab, &healthy).await;
    });
}

#[test]
fn a_host_without_a_free_place_says_so_and_does_not_blame_the_guest() {
    // A pool of its own: the tests beside this one need theirs.
    let directory = private_directory();
    let engine = pooled_engine(directory.path().join("cache")).unwrap_or_else(|error| panic!("{error}"));
    block_on(async {
        let lab = Lab::new();
        let load = async |name: &str| engine.load(name, &guest(name)).await.unwrap_or_else(|error| panic!("{error}"));
        let (healthy, sleeper) = (load("healthy").await, load("sleeps").await);
        let call = Call::of("go", Limits { wall_ms_max: 400, ..Limits::default() });
        for ended in futures(MORE_THAN_THE_POOL, || lab.call(&sleeper, &call)).await {
            match &ended.answer {
                Err(CallError::Limit { hit, .. }) => assert_eq!(hit.name, "wall_ms_max"),
                Err(error @ CallError::Host { .. }) => assert!(error.is_retryable()),
                _ => panic!("{}", told(&ended)),
            }
        }
        stays_healthy(&lab, &healthy).await;
    });
}

#[test]
fn a_host_that_clears_aside_has_its_places_again_when_calls_have_returned() {
    /// As many as the pool promises.
    const PLACES: usize = 256;
    let directory = private_directory();
    let engine = engine_that_clears_aside(directory.path().join("cache")).unwrap_or_else(|error| panic!("{error}"));
    block_on(async {
        let lab = Lab::new();
        let sleeper = engine.load("sleeps", &guest("sleeps")).await.unwrap_or_else(|error| panic!("{error}"));
        let call = Call::of("go", Limits { wall_ms_max: 100, ..Limits::default() });
        for _ in 0..4 {
            for ended in futures(PLACES, || lab.call(&sleeper, &call)).await {
                assert_eq!(told(&ended), "sleeps in tool.call: limit wall_ms_max of 100");
            }
        }
    });
}
