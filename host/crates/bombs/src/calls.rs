//! Programs that load and are a bomb when they are instantiated or run.

use crate::bomb::Make::Bytes;
use crate::bomb::{BombForm, ExpectedEnd, Row};
use crate::bytes::program_of;

pub(crate) const BOMBS: &[Row] = &[
    (
        "instances-past-the-limit",
        "Forty instances of one empty module.",
        BombForm::Program,
        ExpectedEnd::CallCap("instances_max"),
        Bytes(|| program_of(&format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(40)))),
    ),
    (
        "handles-over-instances",
        "Handles in the tables of many instances, each of which holds few.",
        BombForm::Program,
        ExpectedEnd::CallCap("handles_max"),
        Bytes(handles_over_instances),
    ),
    (
        "memories-over-instances",
        "Memories of many instances, each of which is small.",
        BombForm::Program,
        ExpectedEnd::CallCap("memory_bytes_max"),
        Bytes(|| program_of(&format!("(core module $m (memory 40)) {}", "(core instance (instantiate $m))".repeat(7)))),
    ),
    (
        "tables-over-instances",
        "Tables of many instances, each of which is small.",
        BombForm::Program,
        ExpectedEnd::CallCap("table_elements_max"),
        Bytes(|| {
            program_of(&format!(
                "(core module $m (table 3000 funcref)) {}",
                "(core instance (instantiate $m))".repeat(8)
            ))
        }),
    ),
    (
        "start-with-a-thousand-million-steps",
        "A start function that counts for ever in nested loops.",
        BombForm::Program,
        ExpectedEnd::CallCap("fuel_max"),
        Bytes(nested_loops),
    ),
];

/// Ten components, each of which makes twenty handles of a resource of its own at its start.
fn handles_over_instances() -> Vec<u8> {
    let one = r#"
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m (import "" "new" (func $new (param i32) (result i32)))
            (func $start (local i32)
                (loop $again
                    (drop (call $new (i32.const 1)))
                    (local.set 0 (i32.add (local.get 0) (i32.const 1)))
                    (br_if $again (i32.lt_u (local.get 0) (i32.const 50)))))
            (start $start))
        (core instance (instantiate $m (with "" (instance (export "new" (func $new))))))"#;
    program_of(&format!("(component $c {one}) {}", "(instance (instantiate $c))".repeat(10)))
}

/// Loops within each other, each of which goes on for ever.
fn nested_loops() -> Vec<u8> {
    const DEPTH: usize = 1_000;
    let (start, end) = ("(loop ".repeat(DEPTH), "(br 0))".repeat(DEPTH));
    program_of(&format!("(core module $m (func $start {start} {end}) (start $start)) (core instance (instantiate $m))"))
}
