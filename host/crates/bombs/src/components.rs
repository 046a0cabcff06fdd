//! Components that attack the validator, the builder of adapters between them, and the linker.

use crate::bomb::Make::Bytes;
use crate::bomb::{BombForm, ExpectedEnd, Row};
use crate::bytes::{COMPONENT, MODULE, list, number, program_of, program_then, section};
use std::fmt::Write as _;

pub(crate) const BOMBS: &[Row] = &[
    (
        "modules-past-the-cap",
        "A thousand and one modules side by side.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(1, MODULE).repeat(1_001))),
    ),
    (
        "components-past-the-cap",
        "A thousand and one components side by side.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(4, COMPONENT).repeat(1_001))),
    ),
    (
        "instances-past-the-cap",
        "A thousand and one instances of nothing.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(5, &list(1_001, &[1, 0])))),
    ),
    (
        "lists-nested-by-the-thousand",
        "A list of lists, a thousand within each other.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&chain(1_000, "u8", |inner| format!("(list {inner})")))),
    ),
    (
        "options-nested-by-the-thousand",
        "An option of options, a thousand within each other.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&chain(1_000, "u8", |inner| format!("(option {inner})")))),
    ),
    (
        "tuples-that-double",
        "A type that is twice the one before, sixty times.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&chain(60, "u8", |inner| format!("(tuple {inner} {inner})")))),
    ),
    (
        "results-that-double",
        "A result of twice the one before, sixty times.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&chain(60, "u8", |inner| format!("(result {inner} (error {inner}))")))),
    ),
    (
        "record-past-the-cap",
        "A record of 10 001 fields.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&format!("(type (record{}))", numbered(10_001, |at| format!(" (field \"f{at}\" u8)"))))),
    ),
    (
        "variant-past-the-cap",
        "A variant of 10 001 cases.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&format!("(type (variant{}))", numbered(10_001, |at| format!(" (case \"c{at}\" u8)"))))),
    ),
    (
        "flags-past-the-cap",
        "A set of 33 flags.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&format!("(type (flags{}))", numbered(33, |at| format!(" \"f{at}\""))))),
    ),
    (
        "enum-past-the-cap",
        "An enumeration of 10 001 cases.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&format!("(type (enum{}))", numbered(10_001, |at| format!(" \"c{at}\""))))),
    ),
    (
        "fields-of-one-name",
        "A record of a thousand fields of the same name.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_of(&format!("(type (record{}))", " (field \"same\" u8)".repeat(1_000)))),
    ),
    (
        "types-of-instances-nested-by-the-hundred-thousand",
        "A reader of types that recurses into 100 000 of them.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| {
            program_then(&section(7, &[b"\x01".as_slice(), &b"\x42\x01\x01".repeat(100_000), b"\x42\0"].concat()))
        }),
    ),
    (
        "aliases-by-the-hundred-thousand",
        "A hundred thousand names for one type.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| {
            program_of(&format!(
                "(component (import \"i\" (instance $i (export \"t\" (type (sub resource))))) {})",
                "(alias export $i \"t\" (type))".repeat(100_000)
            ))
        }),
    ),
    (
        "alias-from-far-outside",
        "An alias of what four billion components around hold.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(6, &[b"\x01\x03\x02".as_slice(), &number(u32::MAX as usize), b"\0"].concat()))),
    ),
    (
        "instances-that-multiply",
        "Components of ten of the one before, twelve times.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(instances_that_multiply),
    ),
    (
        "adapters-of-wide-types",
        "Adapters between components for types that are as deep and wide as is let through.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(adapters_of_wide_types),
    ),
    (
        "adapters-by-the-thousand",
        "A thousand adapters between two components.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(adapters_by_the_thousand),
    ),
    (
        "options-of-a-function-past-the-cap",
        "A function that names its encoding a million times.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(8, &[b"\x01\x01\0\0".as_slice(), &list(1_000_000, &[0])].concat()))),
    ),
    (
        "list-of-a-billion-in-place",
        "A list of a billion values that lies in place.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_then(&section(7, &[b"\x01\x67\x7d".as_slice(), &number(1_000_000_000)].concat()))),
    ),
    (
        "imports-that-nobody-has",
        "Nine hundred imports that no host has.",
        BombForm::Program,
        ExpectedEnd::WrongWorld,
        Bytes(|| {
            program_of(&numbered(900, |at| format!("(import \"evil:host/api{at}\" (instance (export \"f\" (func))))")))
        }),
    ),
];

/// Type 0, and `count` types each made of the one before.
fn chain(count: usize, first: &str, make: impl Fn(&str) -> String) -> String {
    let mut text = format!("(type $t0 {})", make(first));
    for at in 1..count {
        let _ = write!(text, "(type $t{at} {})", make(&format!("$t{}", at - 1)));
    }
    text
}

fn numbered(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect()
}

fn instances_that_multiply() -> Vec<u8> {
    let mut inner = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for at in 1..12 {
        inner = format!("(component $c{at} {inner} {})", format!("(instance (instantiate $c{}))", at - 1).repeat(10));
    }
    program_of(&format!("{inner} (instance (instantiate $c11))"))
}

/// Two components: the first exports functions of a type, the second imports them and has a module that does.
fn adapters(types: &str, parameter: &str, functions: usize) -> Vec<u8> {
    let lifted = numbered(functions, |at| {
        format!(
            "(func $f{at} (param \"x\" {parameter}) (canon lift (core func $i \"f\") (memory (core memory $i \"memory\")) (realloc (core func $i \"realloc\"))))
             (export \"f{at}\" (func $f{at}))"
        )
    });
    let imported = numbered(functions, |at| format!("(import \"f{at}\" (func $f{at} (param \"x\" {parameter})))"));
    let lowered = numbered(functions, |at| {
        format!(
            "(core func $l{at} (canon lower (func $f{at}) (memory (core memory $i \"memory\")) (realloc (core func $i \"realloc\"))))"
        )
    });
    let handed = numbered(functions, |at| format!("(with \"f{at}\" (func $f \"f{at}\"))"));
    let module = r#"(core module $m
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
        (func (export "f") (param i32)))
        (core instance $i (instantiate $m))"#;
    program_of(&format!(
        "(component $from {types} {module} {lifted})
         (component $to {types} {imported} {module} {lowered})
         (instance $f (instantiate $from))
         (instance (instantiate $to {handed}))"
    ))
}

fn adapters_of_wide_types() -> Vec<u8> {
    const DEPTH: usize = 12;
    let deeper = |at: usize| format!("(type $r{} (result $r{at} (error (tuple $case $list))))", at + 1);
    let types = format!(
        "(type $case (tuple string u8 (list string) f32 f64 (option u64)))
         (type $list (list $case))
         (type $r0 (result $case (error string)))
         {}
         (type $wide (tuple{}))",
        numbered(DEPTH, deeper),
        format!(" $r{DEPTH} (list $r{DEPTH})").repeat(3)
    );
    adapters(&types, "$wide", 100)
}

fn adapters_by_the_thousand() -> Vec<u8> {
    adapters("(type $t (tuple u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 string))", "$t", 1_000)
}
