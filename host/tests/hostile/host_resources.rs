//! Guests that have the host work and keep things for them: log lines, outputs, calls, handles, journals.

use super::{block_on, check, told};
use crate::common::guests::guest;
use crate::common::guests::lab::{Call, Lab};
use expect_test::expect;
use longhaul_core::Limits;

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
        // A second invocation has no capacity left for new things; a thing that replaces an earlier one needs none.
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
