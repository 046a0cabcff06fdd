//! Guests that crash: each crash is told with its cause.

use super::check;
use crate::common::guests::lab::Call;
use expect_test::expect;
use longhaul_core::Limits;

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
