//! Small linked components, made by the linker that the tool for Python uses.

use super::*;
use wasmparser::{Operator, Parser, Payload};

const WORLD: &str = "
    package test:linked;
    interface numbers { twice: func(n: u32) -> u32; }
    world library { import clock: interface { now: func() -> u32; } export numbers; }
";

/// The items that each shared library has from the linker.
const SHARED: &str = r#"
    (import "env" "memory" (memory 1))
    (import "env" "__indirect_function_table" (table 1 funcref))
    (import "env" "__memory_base" (global $memory_base i32))
    (import "env" "__table_base" (global $table_base i32))
"#;

/// A library that calls its neighbour, which comes after it and so is called through the table, and calls the host.
const FRONT: &str = r#"
    (@dylink.0 (mem-info (memory 4 2) (table 1 0)) (needed "back.so"))
    (import "env" "back" (func $back (param i32) (result i32)))
    (import "clock" "now" (func $now (result i32)))
    (func $front (param i32) (result i32) (i32.add (call $now) (call $back (local.get 0))))
    (export "front" (func $front))
    (export "test:linked/numbers#twice" (func $front))
    (elem (global.get $table_base) func $front)
"#;

/// A library that calls back to the first, and has one global that it changes and one that it does not.
const BACK: &str = r#"
    (@dylink.0 (mem-info (memory 4 2) (table 0 0)) (needed "front.so"))
    (import "env" "front" (func $front (param i32) (result i32)))
    (global $calls (mut i32) (i32.const 0))
    (global $place (mut i32) (i32.const 7))
    (func (export "back") (param i32) (result i32)
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (if (result i32) (i32.gt_u (global.get $calls) (global.get $place))
            (then (local.get 0))
            (else (call $front (i32.add (local.get 0) (global.get $memory_base))))))
"#;

fn library(text: &str) -> Vec<u8> {
    let (section, rest) = text.trim().split_once('\n').unwrap();
    wat::parse_str(format!("(module {section} {SHARED} {rest})")).unwrap()
}

/// The library with the component's exports.
fn main_library(text: &str) -> Vec<u8> {
    let mut module = library(text);
    let mut resolve = Resolve::default();
    let package = resolve.push_str("linked.wit", WORLD).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

fn linked(front: &str, back: &str) -> Vec<u8> {
    let linker = wit_component::Linker::default().validate(true);
    let linker = linker.library("front.so", &main_library(front), false).unwrap();
    linker.library("back.so", &library(back), false).unwrap().encode().unwrap()
}

/// The core modules with a memory, a table, or functions that do more than call another one, by those counts.
fn modules(component: &[u8]) -> Vec<[u32; 3]> {
    let mut modules = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } => modules.push([0; 3]),
            Payload::MemorySection(section) => modules.last_mut().unwrap()[0] = section.count(),
            Payload::TableSection(section) => modules.last_mut().unwrap()[1] = section.count(),
            Payload::CodeSectionStart { count, .. } => modules.last_mut().unwrap()[2] = count,
            _ => {}
        }
    }
    modules
}

fn operators(component: &[u8]) -> Vec<Operator<'_>> {
    let bodies = Parser::new(0).parse_all(component).filter_map(|payload| match payload.unwrap() {
        Payload::CodeSectionEntry(body) => Some(body),
        _ => None,
    });
    bodies.flat_map(|body| body.get_operators_reader().unwrap().into_iter().map(Result::unwrap)).collect()
}

type Result<T> = std::result::Result<T, wasmparser::BinaryReaderError>;

#[test]
fn libraries_become_one_module_that_calls_itself_directly() {
    let before = linked(FRONT, BACK);
    assert!(modules(&before).len() > 3, "{:?}", modules(&before));
    let after = into_one_module("test", &before).unwrap();
    let with_memory = modules(&after).iter().filter(|[memories, _, _]| *memories > 0).count();
    assert_eq!(with_memory, 1, "{:?}", modules(&after));
    // Each call skips the indirect function; that function stays, unused.
    let indirect = |component: &[u8]| {
        operators(component).iter().filter(|operator| matches!(operator, Operator::CallIndirect { .. })).count()
    };
    assert!(indirect(&after) <= indirect(&before));
    let calls = operators(&after).iter().filter(|operator| matches!(operator, Operator::Call { .. })).count();
    assert_eq!(calls, 3);
}

#[test]
fn the_types_stay_and_the_merged_component_is_valid() {
    let before = linked(FRONT, BACK);
    let after = into_one_module("test", &before).unwrap();
    wasmparser::Validator::new().validate_all(&after).unwrap();
    let names = |component: &[u8]| {
        let DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap() else { panic!() };
        let world = &resolve.worlds[world];
        let names = |keys: Vec<&WorldKey>| keys.iter().map(|key| resolve.name_world_key(key)).collect::<Vec<_>>();
        (names(world.imports.keys().collect()), names(world.exports.keys().collect()))
    };
    assert_eq!(names(&after), names(&before));
}

#[test]
fn a_library_that_does_what_is_not_known_is_refused() {
    let passive = format!("{BACK} (data \"never copied\")");
    let linked = linked(FRONT, &passive);
    let refused = into_one_module("test", &linked).unwrap_err().to_string();
    assert!(refused.contains("plugin `test`") && refused.contains("passive data"), "{refused}");
}

#[test]
fn what_is_no_component_of_libraries_is_refused() {
    for bytes in [&b"not wasm"[..], b"\0asm\x01\0\0\0", b""] {
        assert!(into_one_module("test", bytes).is_err());
    }
    let component = wat::parse_str("(component)").unwrap();
    let refused = into_one_module("test", &component).unwrap_err().to_string();
    assert!(refused.contains("0 tables"), "{refused}");
}

#[test]
fn a_component_that_is_cut_anywhere_is_refused_or_still_one() {
    let whole = linked(FRONT, BACK);
    for length in 0..whole.len() {
        // A component can end between two sections.
        if let Ok(after) = merged(&whole[..length]) {
            wasmparser::Validator::new().validate_all(&after).unwrap();
        }
    }
}
