//! Values that guests hand over: a real component of each role answers with a record whose bytes, pointers and lengths
//! are the input's, and the host lifts it, holds it against the contract and takes it for what it says.

use longhaul_core::Limits;
use longhaul_core::work::Plan;
use longhaul_harness::{HarnessLimits, HarnessSetup, plan as plans};
use longhaul_testkit::{Call, Ending, Kit, Scene};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tokio::runtime::Runtime;
use wit_parser::abi::{AbiVariant, WasmType};

/// Bytes of an input that a guest has room for.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// A guest takes the longest text that it is handed for its input, so that is longer than any other.
const INPUT_BYTES_MIN: usize = 512;

/// The called exports with their roles: the first byte of an input chooses one.
const EXPORTS: [(&str, &str); 11] = [
    ("tool", "call"),
    ("tool", "prepare"),
    ("tool", "verify"),
    ("agent", "run"),
    ("planner", "plan"),
    ("planner", "replan"),
    ("planner", "synthesize"),
    ("evaluator", "judge"),
    ("memory", "get"),
    ("memory", "search"),
    ("memory", "list"),
];

/// Hands the rest of the bytes to a guest, which answers with them.
///
/// # Panics
/// With a finding, and where the program that compiles is not found.
pub(crate) fn wit_values(bytes: &[u8]) {
    let [which, image @ ..] = bytes else { return };
    if image.len() > INPUT_BYTES_MAX {
        return;
    }
    let (role, export) = EXPORTS[usize::from(*which) % EXPORTS.len()];
    let bench = BENCH.get_or_init(Bench::new);
    let scene = bench.scene(role).clone().fresh();
    let call = Call::from_json(export, input(export, &spelt(image))).expect("an input of ours");
    let done = bench.runtime.block_on(scene.call(call)).expect("a call of ours");
    if let (Ending::Returned(value), "plan" | "replan") = (&done.ending, export)
        && let Ok(plan) = serde_json::from_value::<Plan>(value.clone())
    {
        let _ = plans::accept(plan, &HarnessSetup::default(), &HarnessLimits::default());
    }
}

static BENCH: OnceLock<Bench> = OnceLock::new();

/// The program that compiles the guests, where it is not found beside the one that runs.
pub static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// A guest of each role.
struct Bench {
    runtime: Runtime,
    scenes: Vec<(&'static str, Scene)>,
    _cache: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let cache = tempfile::tempdir().expect("a folder");
        let program = PROGRAM.get().cloned().unwrap_or_else(|| longhaul_home::own_program().expect("a program"));
        let kit = Kit::with_program(program, cache.path().join("compiled")).expect("an engine");
        let limits = Limits { fuel_max: 20_000_000, host_bytes_max: 1 << 20, ..Limits::default() };
        let load = |role: &'static str| {
            let scene = runtime.block_on(kit.load_bytes(role, &guest(role))).expect("a guest of ours");
            (role, scene.limits(limits.clone()))
        };
        let scenes = ["tool", "agent", "planner", "evaluator", "memory"].map(load).into();
        Self { runtime, scenes, _cache: cache }
    }

    fn scene(&self, role: &str) -> &Scene {
        &self.scenes.iter().find(|(of, _)| *of == role).expect("a role").1
    }
}

/// An input as a text: two characters a byte, whose lowest four bits count.
fn spelt(image: &[u8]) -> String {
    let mut text = String::new();
    for byte in image.iter().copied().chain(std::iter::repeat(0)).take(image.len().max(INPUT_BYTES_MIN)) {
        text.extend([byte >> 4, byte & 15].map(|half| char::from(0x40 + half)));
    }
    text
}

fn input(export: &str, text: &str) -> serde_json::Value {
    match export {
        "call" | "prepare" | "verify" => json!({ "function": text }),
        "run" => json!({ "instruction": text }),
        "plan" => json!({ "text": text }),
        "replan" => json!({ "goal": { "text": text }, "plan": { "steps": [] }, "results": [] }),
        "synthesize" => json!({ "goal": { "text": text }, "results": [] }),
        "judge" => json!({ "subject": { "instruction": text }, "rubric": {} }),
        "search" => json!({ "namespace": "n", "query": text, "limit": 10 }),
        "list" => json!({ "namespace": text, "limit": 10 }),
        _ => json!({ "namespace": "n", "key": text }),
    }
}

/// A component of a role, each function of which answers with the input: a record at 0x10000, so that a pointer into it
/// is `xx xx 01 00`.
fn guest(role: &str) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::new();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/v0.1");
    resolve.push_dir(contract).expect("the contract");
    let world = format!("package test:guest; world guest {{ include longhaul:plugin/{role}-plugin@0.1.0; }}");
    let package = resolve.push_str("guest.wit", &world).expect("a world");
    let world = resolve.select_world(&[package], Some("guest")).expect("a world");
    let mut module = wat::parse_str(module(&resolve, role)).expect("a text of ours");
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8)
        .expect("a module of ours");
    let encoder = wit_component::ComponentEncoder::default().module(&module).expect("a module of ours");
    encoder.validate(true).encode().expect("a component of ours")
}

/// A module with every function that the contract asks of the role.
fn module(resolve: &wit_parser::Resolve, role: &str) -> String {
    let interface = resolve.interfaces.iter().find(|(_, interface)| interface.name.as_deref() == Some(role));
    let functions = &interface.expect("an interface of each role").1.functions;
    let mut text = format!("(module {COMMON}");
    for (export, function) in functions {
        let name = format!("longhaul:plugin/{role}@0.1.0#{export}");
        let parameters = flat(&resolve.wasm_signature(AbiVariant::GuestExport, function).params);
        write!(text, "(func (export {name:?}) (param {parameters}) (result i32) (call $answer))").expect("memory");
    }
    text.push(')');
    text
}

/// The types of parameters as the text format writes them.
fn flat(types: &[WasmType]) -> String {
    let name = |one: &WasmType| match one {
        WasmType::I64 | WasmType::PointerOrI64 => "i64 ",
        WasmType::F32 => "f32 ",
        WasmType::F64 => "f64 ",
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32 ",
    };
    types.iter().map(name).collect()
}

/// Keeps where the longest text is, and spells it out at 0x10000.
const COMMON: &str = r#"
    (memory (export "memory") 64)
    (global $heap (mut i32) (i32.const 0x100000))
    (global $at (mut i32) (i32.const 0))
    (global $length (mut i32) (i32.const 0))
    (func (export "cabi_realloc") (param i32 i32 i32) (param $length i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
        (global.set $heap (i32.add (local.get $at) (local.get $length)))
        (if (i32.gt_u (global.get $heap) (i32.const 0x400000)) (then unreachable))
        (if (i32.gt_u (local.get $length) (global.get $length))
            (then (global.set $at (local.get $at)) (global.set $length (local.get $length))))
        (local.get $at))
    (func $half (param $at i32) (result i32) (i32.and (i32.load8_u (local.get $at)) (i32.const 15)))
    (func $answer (result i32)
        (local $from i32) (local $to i32)
        (local.set $from (global.get $at))
        (local.set $to (i32.const 0x10000))
        (loop $again
            (i32.store8 (local.get $to)
                (i32.or (i32.shl (call $half (local.get $from)) (i32.const 4))
                    (call $half (i32.add (local.get $from) (i32.const 1)))))
            (local.set $from (i32.add (local.get $from) (i32.const 2)))
            (local.set $to (i32.add (local.get $to) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $from) (i32.add (global.get $at) (global.get $length)))))
        (i32.const 0x10000))
"#;
