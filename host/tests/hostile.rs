//! Guests that mean harm: each ends in its typed error, the host lives, and a healthy guest beside it
//! does not notice.
//!
//! The guests are the files of `tests/hostile`; what each does is said in its second line.

mod support;

#[path = "hostile/bombs.rs"]
mod bombs;
#[path = "hostile/fuzz.rs"]
mod fuzz;

use expect_test::{Expect, expect};
use longhaul_core::Limits;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_engine::{CallError, CompileLimits, Engine, EngineOptions, Jail, LoadError, Plugin, inspect};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use support::guest::{guest, guest_of_text, with_instances, with_module, with_nesting};
use support::lab::{Call, Ended, Lab, engine_that_clears_aside, engine_with, pooled_engine, private_directory};
use support::repository;

/// How long one call may take before its test fails instead of hanging. Far above what any needs.
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

/// A guest that does nothing wrong is answered as if nobody else was there.
async fn stays_healthy(lab: &Lab, healthy: &Plugin) {
    let ended = lab.call(healthy, &Call::of("sum", Limits::default())).await;
    assert_eq!(told(&ended), "answered 500500");
    assert_eq!(ended.log.len(), 1, "its line is in its own log: {:?}", ended.log);
}

/// How a call ended, without what differs from one machine to the next.
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

/// What the last line says after its frame of the back trace: why.
fn last_cause(reason: &str) -> &str {
    let line = reason.lines().last().unwrap_or_default();
    let cause = line.rsplit_once('!').and_then(|(_, frame)| frame.split_once(": ")).map_or(line, |(_, cause)| cause);
    cause.find("wasm trap: ").map_or(cause, |at| &cause[at..])
}

fn unlimited() -> Limits {
    Limits { fuel_max: u64::MAX / 2, cpu_ms_max: 3_600_000, wall_ms_max: 3_600_000, ..Limits::default() }
}

// Time.

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
    // One thread, so that who was on it in between can be counted.
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

// Memory, tables, instances, stack.

#[test]
fn memory_grows_to_its_cap_and_no_further() {
    let limits = Limits { memory_bytes_max: 8 << 20, ..Limits::default() };
    let ended = check(
        "grows",
        &Call::of("go", limits.clone()),
        expect!["grows in tool.call: limit memory_bytes_max of 8388608"],
    );
    assert!(ended.used.memory_bytes_peak <= 8 << 20, "{:?}", ended.used);
    // A guest that can live with the answer goes on.
    check("grows", &Call::of("p", limits), expect!["answered 116"]);
}

#[test]
fn memories_of_one_guest_are_summed() {
    let limits = Limits { memory_bytes_max: 300 << 16, ..Limits::default() };
    let ended = check(
        "memories",
        &Call::of("go", limits),
        expect!["memories in tool.call: limit memory_bytes_max of 19660800"],
    );
    assert!(ended.used.memory_bytes_peak <= 300 << 16, "{:?}", ended.used);
}

#[test]
fn memories_that_start_over_the_cap_are_not_given() {
    for (pages, expected) in [
        (103, expect!["memories in tool.call: limit memory_bytes_max of 6750208"]),
        (3, expect!["memories in tool.call: limit memory_bytes_max of 196608"]),
    ] {
        check("memories", &Call::of("go", Limits { memory_bytes_max: pages << 16, ..Limits::default() }), expected);
    }
}

#[test]
fn tables_of_one_guest_are_summed_at_their_start_and_when_they_grow() {
    check(
        "tables",
        &Call::of("go", Limits { table_elements_max: 5_000, ..Limits::default() }),
        expect!["tables in tool.call: limit table_elements_max of 5000"],
    );
    check(
        "tables",
        &Call::of("go", Limits { table_elements_max: 199, ..Limits::default() }),
        expect!["tables in tool.call: limit table_elements_max of 199"],
    );
}

#[test]
fn a_component_of_too_many_instances_does_not_start() {
    let limits = || Limits { instances_max: 20, ..Limits::default() };
    check_bytes("crowd", &with_instances(guest("healthy"), 10), &Call::of("go", limits()), expect!["answered 500500"]);
    check_bytes(
        "crowd",
        &with_instances(guest("healthy"), 20),
        &Call::of("go", limits()),
        expect!["crowd in tool.call: limit instances_max of 20"],
    );
}

#[test]
fn endless_recursion_ends_at_the_end_of_the_stack() {
    check(
        "recursion",
        &Call::of("go", Limits::default()),
        expect!["recursion in tool.call: limit stack_bytes_max of 1048576"],
    );
}

#[test]
fn a_fresh_instance_holds_nothing_of_the_guests_before_it() {
    // Only every second guest is of the same code, so that slots of the pool pass between the two.
    let text = fs::read_to_string(repository().join("host/tests/hostile/residue.wat")).expect("there");
    let other = text.replace("(export \"memory\") 33)", "(export \"memory\") 40)");
    assert_ne!(text, other);
    block_on(async {
        let lab = Lab::new();
        let (one, two) = (lab.load("one", &guest_of_text(&text)).await, lab.load("two", &guest_of_text(&other)).await);
        let again = lab.call(&one, &Call::of("a", Limits::default())).await;
        assert_ne!(told(&again), "answered 0", "what is left behind can be seen");
        let call = Call::of("look", Limits::default());
        for round in 0..150 {
            let (first, second) = tokio::join!(lab.call(&one, &call), lab.call(&two, &call));
            assert_eq!((told(&first), told(&second)), ("answered 0".into(), "answered 0".into()), "round {round}");
        }
    });
}

// What the host does and holds for a guest.

#[test]
fn a_flood_of_log_lines_is_cut_and_counted() {
    let limits = Limits { log_entries_max: 10, log_entry_bytes_max: 100, ..Limits::default() };
    let ended = check("logs", &Call::of("go", limits), expect!["answered 5000"]);
    assert_eq!((ended.log.len(), ended.log_dropped), (10, 4_990));
    assert!(ended.log.iter().all(|line| line.text.len() < 200), "{:?}", ended.log[0]);
}

#[test]
fn a_log_of_megabytes_does_not_hold_off_the_clock() {
    let limits = Limits { wall_ms_max: 300, ..Limits::default() };
    check("logs-large", &Call::of("go", limits), expect!["logs-large in tool.call: limit wall_ms_max of 300"]);
}

#[test]
fn a_flood_on_standard_output_is_cut_and_counted() {
    let limits = Limits { log_entries_max: 10, log_entry_bytes_max: 100, ..Limits::default() };
    let ended = check("prints", &Call::of("one line", limits.clone()), expect!["answered 3072"]);
    assert_eq!((ended.log.len(), ended.log_dropped), (1, 0));
    assert!(ended.log[0].text.len() < 200, "{:?}", ended.log[0]);
    let ended = check("prints", &Call::of("lines", limits), expect!["answered 3072"]);
    assert_eq!((ended.log.len(), ended.log_dropped), (10, 3_072 * 2_048 - 10));
}

#[test]
fn an_output_over_its_cap_never_reaches_the_caller() {
    let call = |mib: usize| Call { arguments: "x".repeat(mib), ..Call::of("go", Limits::default()) };
    check("outputs", &call(2), expect!["answered 3145728 bytes"]);
    check("outputs", &call(3), expect!["outputs in tool.call: limit output_bytes_max of 4194304"]);
    check("outputs", &call(8), expect!["outputs in tool.call: limit host_bytes_max of 8388608"]);
}

#[test]
fn a_list_that_unfolds_to_gigabytes_is_refused_before_it_is_built() {
    check(
        "describes",
        &Call::of("describe", Limits::default()),
        expect!["describes in tool.describe: limit host_bytes_max of 8388608"],
    );
    check(
        "pushes",
        &Call::of("list", Limits::default()),
        expect!["pushes in agent.run: limit host_bytes_max of 8388608"],
    );
}

#[test]
fn a_flood_of_calls_ends_at_their_cap() {
    let ended = check(
        "calls",
        &Call::of("go", Limits { host_calls_max: 1_000, ..Limits::default() }),
        expect!["calls in tool.call: limit host_calls_max of 1000"],
    );
    assert_eq!(ended.used.host_calls, 1_001);
    // One that calls twice: the cap itself is allowed.
    for (host_calls_max, expected) in [
        (1, expect!["healthy in tool.call: limit host_calls_max of 1"]),
        (2, expect!["answered 500500"]),
        (3, expect!["answered 500500"]),
    ] {
        check("healthy", &Call::of("sum", Limits { host_calls_max, ..Limits::default() }), expected);
    }
}

#[test]
fn yields_growth_and_copies_of_memory_are_no_calls_of_the_host() {
    let few = Limits { host_calls_max: 2, memory_bytes_max: 8 << 20, fuel_max: 20_000_000, ..Limits::default() };
    for (name, argument, expected) in [
        // It yields each million fuel.
        ("endless", "go", expect!["endless in tool.call: limit fuel_max of 20000000"]),
        ("grows", "p", expect!["answered 116"]),
        ("copies", "go", expect!["answered 100"]),
    ] {
        let ended = check(name, &Call::of(argument, few.clone()), expected);
        assert_eq!(ended.used.host_calls, 0, "{name}");
    }
}

#[test]
fn a_text_that_is_too_long_for_one_call_is_refused() {
    check("sends", &Call::of("go", Limits::default()), expect!["sends in tool.call: limit host_bytes_max of 8388608"]);
}

#[test]
fn conversations_are_counted_even_when_they_are_closed() {
    check(
        "conversations",
        &Call::of("go", Limits { handles_max: 50, ..Limits::default() }),
        expect!["conversations in agent.run: limit handles_max of 50"],
    );
}

/// An agent that is told so keeps less; each invocation used to keep as much as its journal held.
#[test]
fn what_agents_of_a_run_keep_is_bounded_over_all_its_invocations() {
    let usual = Limits::default();
    for (what, limits) in [
        ("d", Limits { decisions_max: 3, ..usual.clone() }),
        ("p", Limits { progress_entries_max: 3, ..usual.clone() }),
        ("n", Limits { memories_max: 3, ..usual.clone() }),
    ] {
        let taken = |caps: &[&Limits]| {
            block_on(async {
                let lab = Lab::new();
                let agent = lab.load("keeps-agent", &guest("keeps-agent")).await;
                let mut taken = Vec::new();
                for limits in caps {
                    taken.push(told(&lab.call(&agent, &Call::of(what, (*limits).clone())).await));
                }
                taken.join(", ")
            })
        };
        // A second invocation finds no room for new things; one that is in place of an earlier one needs none.
        let again = if what == "n" { "answered 3" } else { "answered 0" };
        assert_eq!(taken(&[&limits, &limits]), format!("answered 3, {again}"), "{what}");
        let (two, four) = match what {
            "d" => (Limits { decisions_max: 2, ..usual.clone() }, Limits { decisions_max: 4, ..usual.clone() }),
            "p" => (
                Limits { progress_entries_max: 2, ..usual.clone() },
                Limits { progress_entries_max: 4, ..usual.clone() },
            ),
            _ => (Limits { memories_max: 2, ..usual.clone() }, Limits { memories_max: 4, ..usual.clone() }),
        };
        assert_eq!((taken(&[&two]), taken(&[&four])), ("answered 2".into(), "answered 4".into()), "{what}");
        let bytes = match what {
            "d" => Limits { decisions_bytes_max: 1_000, ..usual.clone() },
            "p" => Limits { progress_bytes_max: 1_000, ..usual.clone() },
            _ => Limits { memories_bytes_max: 1_000, ..usual.clone() },
        };
        let few: u32 = taken(&[&bytes]).trim_start_matches("answered ").parse().expect("a number");
        assert!((2..20).contains(&few), "{what}: {few} in 1 000 bytes");
    }
    // The same note again and again is one.
    check("keeps-agent", &Call::of("o", Limits { memories_max: 1, ..usual }), expect!["answered 10"]);
}

#[test]
fn what_the_host_holds_for_a_guest_is_bounded() {
    let limits = Limits { host_bytes_held_max: 1 << 20, ..Limits::default() };
    check(
        "pushes",
        &Call::of("go", limits.clone()),
        expect!["pushes in agent.run: limit host_bytes_held_max of 1048576"],
    );
    // Even what has no content takes room.
    check("pushes", &Call::of("empty", limits), expect!["pushes in agent.run: limit host_bytes_held_max of 1048576"]);
}

#[test]
fn handles_of_wasi_are_counted() {
    let limits = Limits { handles_max: 50, ..Limits::default() };
    check("handles", &Call::of("streams", limits.clone()), expect!["handles in tool.call: limit handles_max of 50"]);
    check("handles", &Call::of("pollables", limits), expect!["handles in tool.call: limit handles_max of 50"]);
}

#[test]
fn headers_without_end_are_refused() {
    check(
        "fields",
        &Call::of("go", Limits::default()),
        expect!["fields in tool.call: trapped: total size of fields exceeds limit"],
    );
}

#[test]
fn randomness_is_given_in_pieces_only() {
    check("random", &Call::of("m", Limits::default()), expect!["answered 1048576"]);
    check(
        "random",
        &Call::of("go", Limits::default()),
        expect!["random in tool.call: trapped: requested len 1099511627776 exceeds limit 1048576"],
    );
}

#[test]
fn keys_are_listed_without_reading_their_values() {
    check("keeps", &Call::of("go", Limits::default()), expect!["answered 40"]);
}

#[test]
fn a_journal_ends_at_its_entries_and_at_its_bytes() {
    check(
        "sleeps-agent",
        &Call::of("go", Limits { journal_entries_max: 20, ..Limits::default() }),
        expect!["sleeps-agent in agent.run: limit journal_entries_max of 20"],
    );
    check(
        "sleeps-agent",
        &Call::of("go", Limits { journal_bytes_max: 4_000, ..Limits::default() }),
        expect!["sleeps-agent in agent.run: limit journal_bytes_max of 4000"],
    );
}

// Crashes.

#[test]
fn every_crash_of_a_guest_is_told_with_its_cause() {
    for (way, expected) in [
        ("unreachable", expect!["traps in tool.call: trapped: wasm trap: wasm `unreachable` instruction executed"]),
        ("division", expect!["traps in tool.call: trapped: wasm trap: integer divide by zero"]),
        ("memory", expect!["traps in tool.call: trapped: wasm trap: out of bounds memory access"]),
        ("indirect call", expect!["traps in tool.call: trapped: wasm trap: uninitialized element"]),
        ("conversion", expect!["traps in tool.call: trapped: wasm trap: invalid conversion to integer"]),
        ("text that is none", expect!["traps in tool.call: trapped: invalid utf-8 sequence of 1 bytes from index 0"]),
        ("beyond its memory", expect!["traps in tool.call: trapped: string pointer/length out of bounds of memory"]),
    ] {
        check("traps", &Call::of(way, Limits::default()), expected);
    }
}

#[test]
fn a_crash_before_the_first_instruction_of_a_call_is_told_too() {
    check(
        "starts",
        &Call::of("go", Limits::default()),
        expect!["starts in tool.call: trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    check(
        "reallocs",
        &Call::of("go", Limits::default()),
        expect!["reallocs in tool.call: trapped: realloc return: beyond end of memory"],
    );
}

#[test]
fn the_last_words_of_a_panic_are_in_the_log() {
    let ended = check(
        "panics",
        &Call::of("go", Limits::default()),
        expect!["panics in tool.call: trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    let said: Vec<_> = ended.log.iter().map(|line| (line.level.as_str(), line.text.as_str())).collect();
    assert_eq!(said, [("stderr", "thread 'main' panicked at src/lib.rs:7:5: no cheese")]);
}

#[test]
fn a_guest_that_exits_ends_only_itself() {
    check(
        "exits",
        &Call::of("successfully", Limits::default()),
        expect!["exits in tool.call: trapped: Exited with i32 exit status 0"],
    );
    check(
        "exits",
        &Call::of("failed", Limits::default()),
        expect!["exits in tool.call: trapped: Exited with i32 exit status 1"],
    );
}

// What a world does not offer, and what was not granted.

/// The error of loading bytes that should not load.
#[track_caller]
fn refused(name: &str, bytes: &[u8]) -> LoadError {
    block_on(async {
        Lab::new().engine().load(name, bytes).await.err().unwrap_or_else(|| panic!("`{name}` was loaded"))
    })
}

#[test]
fn an_import_that_its_world_does_not_have_is_named() {
    for (name, import) in [
        ("calls-tools", "longhaul:plugin/tools@0.1.0"),
        ("calls-http", "wasi:http/"),
        ("calls-keyvalue", "longhaul:plugin/keyvalue@0.1.0"),
    ] {
        let error = refused(name, &guest(name));
        assert!(matches!(&error, LoadError::WrongWorld { reason, .. } if reason.contains(import)), "{error}");
    }
}

#[test]
fn a_tool_has_no_network_but_http() {
    check("connects", &Call::of("go", Limits::default()), expect!["answered 1001"]);
}

/// A directory that a tool is granted, beside things that it is not.
///
/// `granted` has a file, a directory and links: to the file, out of it, and to the file `secret` beside
/// it; `rest` is empty.
fn place() -> tempfile::TempDir {
    let place = private_directory();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("granted/folder/inner")).expect("made");
    fs::create_dir(at("rest")).expect("made");
    fs::write(at("secret"), "nobody reads this").expect("made");
    fs::write(at("granted/file"), "content").expect("made");
    fs::write(at("granted/folder/inner/file"), "content").expect("made");
    for (link, to) in [
        ("inside", "file".as_ref()),
        ("outside", "../secret".as_ref()),
        ("up", "..".as_ref()),
        ("absolute", at("secret").as_path()),
        ("root", Path::new("/")),
        ("twice", "outside".as_ref()),
        ("loop", "loop".as_ref()),
        ("folder/back", "../../secret".as_ref()),
    ] {
        symlink::<&Path, _>(to, at("granted").join(link)).expect("made");
    }
    place
}

fn grant(place: &Path, guest: &str, name: &str, access: Access) -> DirectoryGrant {
    DirectoryGrant { guest: guest.into(), host: place.join(name), access }
}

/// What a guest gets for each (operation, path), with the first grant as its directory. Nothing may change.
fn try_paths(place: &Path, directories: &[DirectoryGrant], asked: &[(&str, &str)]) -> Vec<String> {
    let before = snapshot(place);
    let said = block_on(async {
        let lab = Lab::new();
        let plugin = lab.load("paths", &guest("paths")).await;
        let mut said = Vec::new();
        for (operation, path) in asked {
            let limits = Limits::default();
            let call =
                Call { arguments: (*path).into(), directories: directories.into(), ..Call::of(operation, limits) };
            let ended = tokio::time::timeout(PATIENCE, lab.call(&plugin, &call)).await.expect("a bounded call ends");
            said.push(format!("{operation} {}: {}", path.escape_debug(), wasi(&ended)));
        }
        said
    });
    assert_eq!(snapshot(place), before, "nothing was changed");
    said
}

/// The errors of wasi:filesystem that come up here, by their numbers.
fn wasi(ended: &Ended) -> String {
    let Ok(Ok(number)) = &ended.answer else { return told(ended) };
    match number.as_str() {
        "0" => "done",
        "1" => "access",
        "8" => "exist",
        "13" => "invalid",
        "15" => "is-directory",
        "16" => "loop",
        "21" => "no-entry",
        "25" => "not-directory",
        "26" => "not-empty",
        "32" => "not-permitted",
        "37" => "cross-device",
        "999" => "no directory at all",
        other => other,
    }
    .to_owned()
}

/// Every file and link in a directory, with content and times of change.
fn snapshot(place: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            let meta = fs::symlink_metadata(&path).expect("there");
            let content = match meta.file_type() {
                kind if kind.is_dir() => {
                    folders.push(path.clone());
                    String::new()
                }
                kind if kind.is_symlink() => fs::read_link(&path).expect("a link").display().to_string(),
                _ => fs::read_to_string(&path).expect("a text"),
            };
            found.push(format!("{} {content} {:?}", path.display(), meta.modified().expect("a time")));
        }
    }
    found.sort();
    found
}

#[test]
fn no_path_leads_out_of_a_granted_directory() {
    let place = place();
    let absolute = place.path().join("secret").display().to_string();
    let mut asked = Vec::new();
    for path in [
        "../secret",
        "folder/../../secret",
        "folder/inner/../../../secret",
        "./../secret",
        &absolute,
        "/etc/passwd",
        "//etc/passwd",
        "outside",
        "absolute",
        "twice",
        "folder/back",
        "up/secret",
        "root/etc/passwd",
        "loop",
        "..",
        "/",
        "",
        "file\0../../secret",
    ] {
        asked.extend([("read", path), ("write", path), ("Truncate", path)]);
    }
    for path in ["..", "up", "root", "/", "folder/../.."] {
        asked.push(("Directory", path));
    }
    for path in ["../secret", "outside", "absolute", "up/secret"] {
        asked.push(("?", path));
    }
    for path in ["../secret", &absolute, "up/secret"] {
        asked.extend([("link", path), ("name", path), ("unlink", path), ("@", path), ("x", path), ("d", path)]);
    }
    // A link that leads outside is not made.
    asked.extend([("symlink", "/etc/passwd"), ("symlink", absolute.as_str())]);
    let said = try_paths(place.path(), &[grant(place.path(), "/work", "granted", Access::Write)], &asked);
    let otherwise: Vec<_> = said.iter().filter(|line| !line.ends_with(": not-permitted")).map(String::as_str).collect();
    expect![[r#"
        read loop: loop
        write loop: loop
        Truncate loop: loop
        read : no-entry
        write : no-entry
        Truncate : no-entry
        read file\0../../secret: invalid
        write file\0../../secret: invalid
        Truncate file\0../../secret: invalid"#]]
    .assert_eq(&otherwise.join("\n"));
}

#[test]
fn what_was_granted_to_be_read_is_only_read() {
    let place = place();
    let asked = [
        ("read", "file"),
        ("read", "inside"),
        ("?", "file"),
        ("Directory", "folder"),
        ("write", "file"),
        ("write", "fresh"),
        ("truncate", "file"),
        ("Truncate", "file"),
        ("Mutate", "folder"),
        ("zero size", "file"),
        ("keep times", "file"),
        ("link", "file"),
        ("name", "file"),
        ("symlink", "file"),
        ("unlink", "file"),
        ("d", "fresh"),
        ("x", "folder/inner"),
    ];
    let read = || grant(place.path(), "/work", "granted", Access::Read);
    let alone = try_paths(place.path(), &[read()], &asked);
    expect![[r#"
        read file: done
        read inside: done
        ? file: done
        Directory folder: done
        write file: not-permitted
        write fresh: not-permitted
        truncate file: not-permitted
        Truncate file: not-permitted
        Mutate folder: done
        zero size file: not-permitted
        keep times file: not-permitted
        link file: not-permitted
        name file: not-permitted
        symlink file: not-permitted
        unlink file: not-permitted
        d fresh: not-permitted
        x folder/inner: not-permitted"#]]
    .assert_eq(&alone.join("\n"));
    // A second directory that may be written is no way to change the first.
    let both = [read(), grant(place.path(), "/rest", "rest", Access::Write)];
    assert_eq!(try_paths(place.path(), &both, &asked), alone);
}

#[test]
fn a_tool_without_a_grant_sees_no_directory() {
    let place = place();
    for told in try_paths(place.path(), &[], &[("read", "file"), ("read", "/etc/passwd"), ("write", "file")]) {
        assert!(told.ends_with(": no directory at all"), "{told}");
    }
}

#[test]
fn a_granted_directory_that_is_gone_ends_the_call_and_not_the_host() {
    let place = place();
    let call = Call {
        directories: vec![grant(place.path(), "/work", "nowhere", Access::Read)],
        ..Call::of("read", Limits::default())
    };
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        let told = told(&lab.call(&healthy, &call).await);
        assert!(told.contains("nowhere`: No such file or directory"), "{told}");
        stays_healthy(&lab, &healthy).await;
    });
}

#[test]
fn the_files_tool_refuses_every_way_out_of_its_directory() {
    let Some(bytes) = shipped("files") else { return };
    let place = place();
    let before = snapshot(place.path());
    block_on(async {
        let lab = Lab::new();
        let plugin = lab.load("files", &bytes).await;
        let absolute = place.path().join("secret").display().to_string();
        for path in
            ["../secret", "folder/../../secret", &absolute, "outside", "absolute", "twice", "folder/back", "up/secret"]
        {
            for function in ["read", "write", "edit", "list", "search", "multi_edit", "patch", "delete", "move"] {
                let arguments = match function {
                    "multi_edit" => {
                        serde_json::json!({ "path": path, "edits": [{ "old": "nobody", "new": "anybody" }] })
                    }
                    "patch" => serde_json::json!({
                        "patch": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-nobody\n+anybody\n")
                    }),
                    "move" => serde_json::json!({ "from": path, "to": "taken.txt" }),
                    "write" => serde_json::json!({ "path": path, "content": "changed" }),
                    "edit" => serde_json::json!({ "path": path, "old": "nobody", "new": "anybody" }),
                    "search" => serde_json::json!({ "path": path, "query": "nobody" }),
                    _ => serde_json::json!({ "path": path }),
                };
                let call = Call {
                    arguments: arguments.to_string(),
                    directories: vec![grant(place.path(), "/work", "granted", Access::Write)],
                    ..Call::of(function, Limits::default())
                };
                let ended = lab.call(&plugin, &call).await;
                assert!(matches!(ended.answer, Ok(Err(_))), "{function} {path}: {}", told(&ended));
            }
        }
    });
    assert_eq!(snapshot(place.path()), before);
}

/// A shipped plugin, where `cargo xtask plugins` was run.
fn shipped(name: &str) -> Option<Vec<u8>> {
    let path = repository().join("target/plugins").join(name).with_extension("wasm");
    let bytes = fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("skipped: there is no `{}`; run: cargo xtask plugins", path.display());
    }
    bytes
}

// Files that are no plugins.

#[test]
fn a_file_that_is_cut_off_is_never_taken_and_never_breaks_the_host() {
    let whole = guest("healthy");
    let limits = CompileLimits::default();
    for end in 0..whole.len() {
        // Without the names at its end a plugin is whole, and another one.
        match inspect("cut", &whole[..end], &limits) {
            Ok(cut) => assert_eq!(cut.exports, ["longhaul:plugin/tool@0.1.0"], "cut at {end}"),
            Err(error) => assert!(error.to_string().contains("plugin `cut`"), "cut at {end}: {error}"),
        }
    }
    let accepted = (0..whole.len()).filter(|&end| inspect("cut", &whole[..end], &limits).is_ok()).count();
    assert!(accepted < 5, "{accepted} of {}", whole.len());
}

#[test]
fn a_file_with_any_byte_changed_is_refused_or_is_another_plugin() {
    let whole = guest("healthy");
    let limits = CompileLimits::default();
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            // No panic, and nothing that is taken for the plugin that it was.
            if let Ok(inspection) = inspect("changed", &changed, &limits) {
                assert_ne!(inspection.digest, longhaul_core::Digest::of(&whole));
            }
        }
    }
}

#[test]
fn code_that_is_damaged_inside_is_refused_by_the_compiler() {
    let whole = guest("healthy");
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &whole).await;
        // Within the first module, where a look at the sections alone sees nothing. What hits the words of its data is
        // no damage that a compiler could see.
        let mut refused = 0;
        for at in (1..8).map(|part| whole.len() * part / 12) {
            let mut changed = whole.clone();
            changed[at..at + 8].fill(0xff);
            if let Some(error) = lab.engine().load("changed", &changed).await.err() {
                assert!(error.to_string().contains("plugin `changed`"), "at {at}: {error}");
                refused += 1;
            }
        }
        assert!(refused >= 4, "{refused} of 7");
        stays_healthy(&lab, &healthy).await;
    });
}

/// The start of what is said to bytes that are no plugin.
#[track_caller]
fn check_refused(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&refused("it", bytes).to_string());
}

#[test]
fn what_is_no_plugin_is_told_what_it_is() {
    check_refused(
        b"",
        expect![
            "plugin `it` is not a component: it does not start as WebAssembly does; the file is corrupt or something else"
        ],
    );
    check_refused(
        b"#!/bin/sh\necho hello\n",
        expect![
            "plugin `it` is not a component: it does not start as WebAssembly does; the file is corrupt or something else"
        ],
    );
    check_refused(
        &wat::parse_str("(module)").expect("a module"),
        expect![
            "plugin `it` is not a component: it is a core module; make a component of it with `wasm-tools component new`, or build it with a tool chain that does"
        ],
    );
    check_refused(
        &wat::parse_str("(component)").expect("a component"),
        expect![
            "plugin `it` is no plugin of Longhaul: it exports none of planner, agent, evaluator, tool or memory of longhaul:plugin@0.1.0; see wit/v0.1/worlds.wit"
        ],
    );
    let command = r#"(component (component $run) (instance $run (instantiate $run)) (export "wasi:cli/run@0.2.12" (instance $run)))"#;
    check_refused(
        &wat::parse_str(command).expect("a component"),
        expect![
            "plugin `it` is no plugin of Longhaul: it exports none of planner, agent, evaluator, tool or memory of longhaul:plugin@0.1.0; see wit/v0.1/worlds.wit"
        ],
    );
}

#[test]
fn a_plugin_of_another_contract_is_told_which_one_is_spoken_here() {
    let mut other = guest("healthy");
    replace(&mut other, b"longhaul:plugin/tool@0.1.0", b"longhaul:plugin/tool@0.2.0");
    check_refused(
        &other,
        expect![
            "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@0.2.0`, and this host speaks longhaul:plugin 0.1.0; build it for that version, or update longhaul"
        ],
    );
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

#[test]
fn a_file_is_refused_by_its_size_before_it_is_read() {
    let directory = private_directory();
    let path = directory.path().join("huge.wasm");
    fs::File::create(&path).and_then(|file| file.set_len(500 << 20)).expect("a sparse file");
    let read = |path: &Path| Lab::new().engine().read("huge", path).map(|bytes| bytes.len());
    let error = read(&path).expect_err("500 MiB");
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "bytes_max"), "{error}");
    // What has no size, and no end.
    let error = read(Path::new("/dev/zero")).expect_err("no file");
    assert!(matches!(error, LoadError::Unreadable { .. } | LoadError::Limit { .. }), "{error}");
    let error = read(directory.path()).expect_err("a directory");
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let limits = CompileLimits::default();
    assert_eq!(limits.nesting_max, 20);
    inspect("edge", &with_nesting(guest("healthy"), 19), &limits).unwrap_or_else(|error| panic!("{error}"));
    for depth in [20, 500] {
        let error = inspect("deep", &with_nesting(guest("healthy"), depth), &limits).expect_err("too deep");
        assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "nesting_max"), "{error}");
    }
}

#[test]
fn what_has_too_many_functions_is_refused() {
    let many = with_module(guest("healthy"), &format!("(module {})", "(func)".repeat(2_000)));
    let limits = CompileLimits { functions_max: 1_000, ..CompileLimits::default() };
    let error = inspect("many", &many, &limits).expect_err("too many");
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "functions_max"), "{error}");
}

/// A plugin with a function of `statements` statements that depend on each other, which is slow to compile.
fn slow_to_compile(statements: usize) -> Vec<u8> {
    let mut body = String::new();
    for at in 0..statements {
        write!(
            body,
            "(local.set {} (i64.rotl (i64.xor (local.get {}) (i64.const {at})) (local.get {})))",
            at % 40,
            (at + 13) % 40,
            (at + 7) % 40
        )
        .expect("a string takes it");
    }
    let text =
        format!("(module (func (export \"f\") (result i64) (local {}) {body} (local.get 0)))", "i64 ".repeat(40));
    with_module(guest("healthy"), &text)
}

/// The error of compiling within `limits`, in a cache of its own, which is then empty.
#[track_caller]
fn not_compiled(bytes: &[u8], limits: CompileLimits) -> LoadError {
    let directory = private_directory();
    let engine = engine_with(directory.path().join("cache"), limits).unwrap_or_else(|error| panic!("{error}"));
    let error = block_on(async { engine.load("slow", bytes).await }).err().expect("it is stopped");
    let names =
        fs::read_dir(engine.cache_directory()).expect("readable").map(|entry| entry.expect("there").file_name());
    let left: Vec<_> = names.filter(|name| name != "key").collect();
    assert!(left.is_empty(), "an unfinished file was left: {left:?}");
    error
}

#[test]
fn a_compilation_past_its_time_on_a_processor_or_on_the_clock_is_killed() {
    for (limits, name, statements) in [
        (CompileLimits { cpu_ms_max: 1_000, ..CompileLimits::default() }, "cpu_ms_max", 300_000),
        (CompileLimits { wall_ms_max: 200, ..CompileLimits::default() }, "wall_ms_max", 60_000),
    ] {
        let error = not_compiled(&slow_to_compile(statements), limits);
        assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == name), "{error}");
    }
}

/// It waits for its component meanwhile: whatever that does to the compiler, it comes too late.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_has_given_up_its_powers_before_it_reads_a_byte() {
    let limits = serde_json::to_string(&CompileLimits::default()).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let field = |name: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // Of its limits, which it sets last, the one on time on a processor.
    let has_limits = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
        limits.lines().any(|line| line.starts_with("Max cpu time") && line.contains(" 180 "))
    };
    while !has_limits() {
        assert!(!field("Pid:").is_empty(), "it ended");
        std::thread::yield_now();
    }
    assert_eq!(field("Seccomp:"), ["2"]);
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    for rights in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(rights), ["0000000000000000"], "{rights}");
    }
    assert!(!field("Uid:").contains(&"0".to_owned()), "{:?}", field("Uid:"));
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ours").code(), Some(3), "nothing is no component");
}

/// A model's file is a stranger's as a component is. The process has ended, and what it was is still to be read.
#[test]
#[cfg(all(target_os = "linux", feature = "local-model"))]
fn the_process_of_a_local_model_has_given_up_its_powers_before_it_reads_a_byte() {
    let directory = private_directory();
    let file = directory.path().join("model.gguf");
    fs::write(&file, "no model").expect("ours");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["model-child", "--context-tokens-max", "512", "--memory-bytes-max", "1073741824", "--file"])
        .arg(&file)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = std::io::read_to_string(child.stdout.take().expect("piped")).expect("text");
    assert!(said.contains("bad_model"), "{said}");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("nobody has waited for it");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    assert_eq!(child.wait().expect("ours").code(), Some(1));
}

#[test]
fn a_compilation_past_its_memory_dies_and_says_so() {
    let limits = CompileLimits { memory_bytes_max: 64 << 20, ..CompileLimits::default() };
    let error = not_compiled(&slow_to_compile(60_000), limits);
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "memory_bytes_max"), "{error}");
}

/// An engine whose compiler is a line for the shell.
fn engine_of(cache: &Path, line: &str, limits: CompileLimits) -> Engine {
    let jail = Jail { program: "/bin/sh".into(), arguments: vec!["-c".into(), line.into()], limits };
    let options = EngineOptions { on_demand: true, ..EngineOptions::default() };
    Engine::new(cache.to_owned(), jail, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// What is wrong with the host was once told as a fault of the plugin, and every death as one for want of memory.
#[test]
fn the_end_of_the_compiler_tells_a_fault_of_the_plugin_from_one_of_the_host() {
    let told = |line: &str| {
        let directory = private_directory();
        let line = format!("ulimit -c 0; {line}");
        let engine = engine_of(&directory.path().join("cache"), &line, CompileLimits::default());
        match block_on(async { engine.load("plugin", &guest("healthy")).await }).err().expect("nothing is compiled") {
            LoadError::Limit { hit, .. } => hit.name,
            LoadError::Compile { reason, .. } => format!("plugin: {reason}"),
            LoadError::TooDeep { .. } => "too deep".to_owned(),
            LoadError::Died { .. } => "died".to_owned(),
            LoadError::Host { reason, .. } if reason.contains("cannot be used") => "host: no code".to_owned(),
            LoadError::Host { reason, .. } => format!("host: {reason}"),
            other => other.to_string(),
        }
    };
    for (line, expected) in [
        ("echo why >&2; exit 3", "plugin: why"),
        ("echo why >&2; exit 4", "host: why"),
        ("exit 0", "host: no code"),
        ("kill -XCPU $$", "cpu_ms_max"),
        ("kill -XFSZ $$", "code_bytes_max"),
        ("exit 5", "memory_bytes_max"),
        ("exit 6", "code_bytes_max"),
        ("echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$", "memory_bytes_max"),
        ("echo \"thread 'main' has overflowed its stack\" >&2; kill -ABRT $$", "too deep"),
        ("kill -SEGV $$", "died"),
        ("kill -KILL $$", "died"),
        ("echo \"thread 'main' panicked\" >&2; exit 101", "died"),
    ] {
        assert_eq!(told(line), expected, "{line}");
    }
}

#[test]
fn compiled_code_is_no_longer_than_it_may_be() {
    let limits = CompileLimits { code_bytes_max: 4_096, ..CompileLimits::default() };
    let error = not_compiled(&guest("healthy"), limits);
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "code_bytes_max"), "{error}");
}

/// Code that has taken the compiler over does not ask how much it may write.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_can_fill_no_disk() {
    let limits = CompileLimits { code_bytes_max: 12_345_678, ..CompileLimits::default() };
    let limits = serde_json::to_string(&limits).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let held = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
        let line = limits.lines().find(|line| line.starts_with("Max file size")).map(str::to_owned);
        line.map(|line| line.split_whitespace().skip(3).take(2).all(|max| max == "12345678"))
    };
    while !held().expect("it waits for a component") {
        std::thread::yield_now();
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ours").code(), Some(3), "nothing is no component");
}

/// One that was left running held the pipe of the compiler's words, and was waited for as long as a compiler may take.
#[test]
#[cfg(target_os = "linux")]
fn nothing_that_the_compiler_starts_outlives_it() {
    let directory = private_directory();
    let started = directory.path().join("started");
    let background = format!("sleep 1000 & echo $! >'{}'", started.display());
    for (line, wall_ms_max, ends) in [("exit 3", 1_800_000, "cannot be compiled"), ("sleep 1000", 3_000, "wall_ms_max")]
    {
        let limits = CompileLimits { wall_ms_max, ..CompileLimits::default() };
        let engine = engine_of(&directory.path().join("cache"), &format!("{background}; {line}"), limits);
        let load = async { tokio::time::timeout(PATIENCE, engine.load("plugin", &guest("healthy"))).await };
        let error = block_on(load).expect("it ends").err().expect("nothing is compiled").to_string();
        assert!(error.contains(ends), "{line}: {error}");
        let pid = fs::read_to_string(&started).expect("written before the end");
        // Where nobody collects orphans its number stays.
        let lives = || {
            let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
        };
        while lives() {
            std::thread::yield_now();
        }
        fs::remove_file(&started).expect("ours");
    }
}

/// It is of another process group than the host, so what ends the host at a terminal does not reach it.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_ends_with_its_host() {
    let limits = serde_json::to_string(&CompileLimits::default()).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    // A component that never comes, and nobody who would hear what is wrong with it.
    let _stdin = child.stdin.take();
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("ours").code(), Some(4));
}

#[test]
fn a_function_that_is_nested_very_deep_is_compiled_or_refused() {
    let depth = 50_000;
    let text = format!("(module (func {} {}))", "block ".repeat(depth), "end ".repeat(depth));
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        let deep = with_module(guest("healthy"), &text);
        if let Ok(plugin) = lab.engine().load("deep", &deep).await {
            stays_healthy(&lab, &plugin).await;
        }
        stays_healthy(&lab, &healthy).await;
    });
}

// The cache of compiled code.

#[test]
fn compiled_code_that_is_cut_off_or_damaged_is_compiled_anew() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let cache = directory.path().join("cache");
    block_on(async {
        let fresh = || engine_with(cache.clone(), CompileLimits::default()).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new();
        drop(fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}")));
        let path = only_file(&cache);
        let whole = fs::read(&path).expect("readable");
        for length in [0, 1, 64, 4_096, whole.len() / 2, whole.len() - 1] {
            renew(&path, &whole[..length]);
            let plugin =
                fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("cut at {length}: {error}"));
            stays_healthy(&lab, &plugin).await;
            assert_eq!(fs::read(&path).expect("readable").len(), whole.len(), "cut at {length}");
        }
        // Of other bytes, of another machine.
        let mut other = whole.clone();
        other[..32].fill(0);
        renew(&path, &other);
        let plugin = fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}"));
        stays_healthy(&lab, &plugin).await;
    });
}

/// To load compiled code is to run it, and what was in the cache was loaded, whoever had written it.
#[test]
fn compiled_code_that_was_not_compiled_here_is_not_run() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let (cache, elsewhere) = (directory.path().join("cache"), directory.path().join("elsewhere"));
    block_on(async {
        let open = |cache: &Path| engine_with(cache.to_owned(), CompileLimits::default());
        let fresh = |cache: &Path| open(cache).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new();
        for (cache, name) in [(&cache, "healthy"), (&elsewhere, "logs")] {
            drop(fresh(cache).load(name, &guest(name)).await.unwrap_or_else(|error| panic!("{error}")));
        }
        let path = only_file(&cache);
        let (whole, seal) = (fs::read(&path).expect("ours"), path.with_extension("seal"));
        let own_seal = fs::read(&seal).expect("ours");
        let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("ours");
        let other = only_file(&elsewhere);
        let (other, other_seal) =
            (fs::read(&other).expect("ours"), fs::read(other.with_extension("seal")).expect("ours"));
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        // Code that wasmtime takes, of another component; and a letter of the own one. With the seal as it was, with that
        // of the other cache, with none, and with one that says nothing.
        for code in [&other, &flipped] {
            for planted in [&own_seal[..], &other_seal, b"", b"{}"] {
                renew(&path, code);
                fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(modified)).expect("ours");
                fs::write(&seal, planted).expect("ours");
                let plugin = fresh(&cache).load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}"));
                stays_healthy(&lab, &plugin).await;
                assert!(fs::read(&path).expect("ours") == whole, "it was compiled anew");
            }
        }
        // A whole cache with its seals, and the key that is here.
        renew(&path, &other);
        fs::write(&seal, &other_seal).expect("ours");
        let file = directory.path().join("healthy.wasm");
        fs::write(&file, &bytes).expect("ours");
        let plugin = fresh(&cache).load_file("healthy", &file).await.unwrap_or_else(|error| panic!("{error}"));
        stays_healthy(&lab, &plugin).await;
        // The key is for us alone.
        let key = cache.join("key");
        assert_eq!(fs::metadata(&key).expect("made").permissions().mode() & 0o777, 0o600);
        let readable: fn(&Path) -> std::io::Result<()> =
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o644));
        for spoil in [readable, |key| fs::write(key, "short")] {
            spoil(&key).expect("ours");
            let refused = open(&cache).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("that we alone can read; remove it"), "{refused}");
        }
    });
}

/// A new file in the place of one: the old may be mapped.
fn renew(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).and_then(|()| fs::write(path, bytes)).expect("writable");
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "cwasm")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().expect("one")
}

#[test]
fn a_cache_that_others_can_reach_is_refused_with_its_remedy() {
    let directory = private_directory();
    let open =
        |path: &Path| engine_with(path.to_owned(), CompileLimits::default()).err().map(|error| error.to_string());
    for (mode, refused) in [(0o777, true), (0o750, true), (0o701, true), (0o700, false)] {
        let cache = directory.path().join(format!("mode-{mode:o}"));
        fs::create_dir(&cache).expect("made");
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).expect("ours");
        let told = open(&cache);
        assert_eq!(told.as_ref().is_some_and(|told| told.contains("chmod 700")), refused, "{mode:o}: {told:?}");
    }
    symlink(directory.path().join("mode-700"), directory.path().join("link")).expect("made");
    assert!(open(&directory.path().join("link")).is_some_and(|told| told.contains("no directory")));
    fs::write(directory.path().join("file"), "").expect("made");
    assert!(open(&directory.path().join("file")).is_some());
}

#[test]
fn many_that_compile_the_same_plugin_at_once_all_get_it() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let cache = directory.path().join("cache");
    block_on(async {
        let lab = Lab::new();
        let engines: Vec<_> = (0..6)
            .map(|_| engine_with(cache.clone(), CompileLimits::default()).unwrap_or_else(|error| panic!("{error}")))
            .collect();
        let mut loads = tokio::task::JoinSet::new();
        for engine in engines {
            let bytes = bytes.clone();
            loads.spawn(async move { engine.load("healthy", &bytes).await });
        }
        for plugin in loads.join_all().await {
            stays_healthy(&lab, &plugin.unwrap_or_else(|error| panic!("{error}"))).await;
        }
    });
    only_file(&cache);
}
