//! Guests made of a few lines of WebAssembly text.
//!
//! A file of `tests/hostile/guests` holds fields of a core module, imports first, and the function `$body`: of
//! the function's (or the task's) name and its arguments (or instruction), both as address and length,
//! it makes the address and length of the output. Its first line says the role, and after a `+` what it
//! imports beside the role's world. The rest of a plugin, as the canonical ABI has it, is added here.
//! A tool may have `$describe`, which gives the address of its description.
//! A memory backend has `$got` instead, which gives the address of what `get` answers; all its other
//! answers are what zeros mean: kept, nothing found, nothing deleted, no keys.
//! Addresses from 2 048 to 32 768 are the file's own, and the memory from its second page on.

pub mod lab;

use super::repository;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;
use wasmparser::{Encoding, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, WorldId};

/// The component of `tests/hostile/guests/NAME.wat`.
pub fn guest(name: &str) -> Vec<u8> {
    let path = repository().join("host/tests/hostile/guests").join(name).with_extension("wat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    guest_of_text(&text)
}

/// The component of a text like those files.
pub fn guest_of_text(text: &str) -> Vec<u8> {
    let first = text.lines().next().and_then(|line| line.strip_prefix(";; ")).expect("the first line says the role");
    let (role, beside) = first.split_once(" + ").unwrap_or((first, ""));
    let module = wat::parse_str(module(role, text)).unwrap_or_else(|error| panic!("{error}"));
    encode(module, role, beside)
}

/// `component`, and in it `count` instances of an empty core module.
pub fn with_instances(mut component: Vec<u8>, count: u32) -> Vec<u8> {
    let module = modules(&component);
    section(&mut component, 1, b"\0asm\x01\0\0\0");
    let mut instances = number(count);
    for _ in 0..count {
        // Instantiate a module, with no arguments.
        instances.push(0);
        instances.extend(number(module));
        instances.push(0);
    }
    section(&mut component, 2, &instances);
    component
}

/// `component`, and in it components within each other, `depth` of them.
pub fn with_nesting(mut component: Vec<u8>, depth: u32) -> Vec<u8> {
    let mut inner = b"\0asm\x0d\0\x01\0".to_vec();
    for _ in 1..depth {
        let mut outer = b"\0asm\x0d\0\x01\0".to_vec();
        section(&mut outer, 4, &inner);
        inner = outer;
    }
    section(&mut component, 4, &inner);
    component
}

/// `component`, and in it a core module of this text.
pub fn with_module(mut component: Vec<u8>, text: &str) -> Vec<u8> {
    let module = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    section(&mut component, 1, &module);
    component
}

fn modules(component: &[u8]) -> u32 {
    let mut depth = 0;
    let mut modules = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload.expect("made here") {
            Payload::Version { encoding, .. } => {
                modules += u32::from(depth == 1 && encoding == Encoding::Module);
                depth += 1;
            }
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    modules
}

fn section(component: &mut Vec<u8>, id: u8, content: &[u8]) {
    component.push(id);
    component.extend(number(u32::try_from(content.len()).expect("small")));
    component.extend(content);
}

/// LEB128.
fn number(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).expect("7 bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("7 bits"));
    bytes
}

static CONTRACT: LazyLock<(Resolve, PackageId)> = LazyLock::new(|| {
    let mut resolve = Resolve::new();
    let (package, _) = resolve.push_dir(repository().join("wit/v0.1")).unwrap_or_else(|error| panic!("{error:?}"));
    (resolve, package)
});

fn encode(module: Vec<u8>, role: &str, beside: &str) -> Vec<u8> {
    let mut resolve = CONTRACT.0.clone();
    let mut world = format!("package test:guest; world guest {{ include longhaul:plugin/{role}-plugin@0.1.0;");
    for import in beside.split(", ").filter(|import| !import.is_empty()) {
        write!(world, "import {import};").expect("a string takes it");
    }
    let package = resolve.push_str("guest.wit", &format!("{world} }}")).unwrap_or_else(|error| panic!("{error:?}"));
    let world = resolve.select_world(&[package], Some("guest")).unwrap_or_else(|error| panic!("{error:?}"));
    component(module, &resolve, world)
}

/// The component of a core module that has the functions of a world.
pub fn component(mut module: Vec<u8>, resolve: &Resolve, world: WorldId) -> Vec<u8> {
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8)
        .unwrap_or_else(|error| panic!("{error:?}"));
    let encoder = ComponentEncoder::default().module(&module).unwrap_or_else(|error| panic!("{error:?}"));
    encoder.validate(true).encode().unwrap_or_else(|error| panic!("{error:?}"))
}

fn module(role: &str, body: &str) -> String {
    let mut text = format!("(module {body}\n");
    for (defined_by, part) in PARTS {
        if !body.contains(defined_by) {
            text.push_str(part);
        }
    }
    let export: Cow<'_, str> = match role {
        "tool" => {
            let describe = if body.contains("$describe") { "(call $describe)" } else { "(unreachable)" };
            TOOL.replace("DESCRIBE", describe).into()
        }
        "agent" => {
            let finish = if body.contains("(func $finish") { "(call $finish)" } else { "" };
            AGENT.replace("FINISH", finish).into()
        }
        "memory" => MEMORY.into(),
        other => panic!("no guest of role `{other}` is made here"),
    };
    text.push_str(&export);
    text.push(')');
    text
}

/// The definitions of every guest, except those that its text defines itself.
const PARTS: [(&str, &str); 3] = [
    ("(export \"memory\")", r#"(memory (export "memory") 4)"#),
    (
        "cabi_realloc",
        r#"
(global $heap (mut i32) (i32.const 32768))
(func (export "cabi_realloc") (param i32 i32 i32) (param $len i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
  (global.set $heap (i32.add (local.get $at) (local.get $len)))
  (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))) (then unreachable))
  (local.get $at))"#,
    ),
    (
        "(func $say",
        r"
(func $say (param $n i64) (result i32 i32)
  (local $at i32)
  (local.set $at (i32.const 1056))
  (loop $again
    (local.set $at (i32.sub (local.get $at) (i32.const 1)))
    (i64.store8 (local.get $at) (i64.add (i64.const 48) (i64.rem_u (local.get $n) (i64.const 10))))
    (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
    (br_if $again (i64.ne (local.get $n) (i64.const 0))))
  (local.get $at)
  (i32.sub (i32.const 1056) (local.get $at)))",
    ),
];

/// `call` hands name and arguments to the body, and its output back as the answer of a tool; `describe` hands back what
/// `$describe` made.
const TOOL: &str = r#"
(func (export "longhaul:plugin/tool@0.1.0#describe") (param i32 i32) (result i32)
  (memory.copy (i32.const 488) DESCRIBE (i32.const 24))
  (i32.store (i32.const 480) (i32.const 0))
  (i32.const 480))
(func (export "longhaul:plugin/tool@0.1.0#prepare") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
(func (export "longhaul:plugin/tool@0.1.0#verify") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
(func (export "longhaul:plugin/tool@0.1.0#call") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
  (local $at i32) (local $len i32)
  (call $body (local.get 0) (local.get 1) (local.get 2) (local.get 3))
  (local.set $len)
  (local.set $at)
  (i32.store (i32.const 512) (i32.const 0))
  (i32.store (i32.const 520) (local.get $at))
  (i32.store (i32.const 524) (local.get $len))
  (i32.store (i32.const 528) (i32.const 0))
  (i32.const 512))
"#;

/// `run` hands id and instruction to the body, and its output back as the outcome of an agent; `$finish`, where there
/// is one, changes what it answers.
const AGENT: &str = r#"
(func (export "longhaul:plugin/agent@0.1.0#run")
  (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
  (local $at i32) (local $len i32)
  (call $body (local.get 0) (local.get 1) (local.get 2) (local.get 3))
  (local.set $len)
  (local.set $at)
  (memory.fill (i32.const 512) (i32.const 0) (i32.const 64))
  (i32.store (i32.const 520) (local.get $at))
  (i32.store (i32.const 524) (local.get $len))
  FINISH
  (i32.const 512))
"#;

/// All but `get` answer zeros.
const MEMORY: &str = r#"
(func (export "longhaul:plugin/memory@0.1.0#put")
  (param i32 i32 i32 i32 i32 i32 i32 i32 i32 f64 i32 i32) (result i32) (i32.const 512))
(func (export "longhaul:plugin/memory@0.1.0#get") (param i32 i32 i32 i32 i32 i32) (result i32) (call $got))
(func (export "longhaul:plugin/memory@0.1.0#search") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 512))
(func (export "longhaul:plugin/memory@0.1.0#delete") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 512))
(func (export "longhaul:plugin/memory@0.1.0#list")
  (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 512))
"#;
