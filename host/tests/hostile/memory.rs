//! Guests that take memory, tables, instances and stack without end, or look for what others left there.

use super::{block_on, check, check_bytes, told};
use crate::common::guests::lab::{Call, Lab};
use crate::common::guests::{guest, guest_of_text, with_instances};
use crate::common::repository;
use expect_test::expect;
use longhaul_core::Limits;
use std::fs;

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
        expect!["recursion in tool.call: limit stack_bytes_max of 6291456"],
    );
}

#[test]
fn a_fresh_instance_holds_nothing_of_the_guests_before_it() {
    // Only every second guest is of the same code, so that slots of the pool pass between the two.
    let text = fs::read_to_string(repository().join("host/tests/hostile/guests/residue.wat")).expect("there");
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
