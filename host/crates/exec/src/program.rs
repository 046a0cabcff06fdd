//! Converts programs for WASI preview 1 to components; components stay unchanged.
//!
//! The adapter reports an exit only as zero or not. So `proc_exit` bypasses it, to the function of WASI 0.2 that takes
//! the code.

use longhaul_engine::LoadError;
use std::borrow::Cow;
use std::fmt::Display;
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// The module that the tool chains of C, Rust and others import for `wasm32-wasip1`.
const PREVIEW1: &str = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;

/// The interface and the function of WASI 0.2 that exit with a code.
const EXIT: (&str, &str) = ("wasi:cli/exit@0.2.12", "exit-with-code");

/// Nesting of types of components and instances. The encoder recurses into them; a world of all of WASI has three
/// levels, and some hundred bytes that could begin one.
const TYPES_NESTED_MAX: usize = 10_000;

/// Stack for that many levels, of which one takes up to 4 KiB in a build without optimisation.
const STACK_BYTES: usize = 64 << 20;

/// The import of a module that exits with its code. The adapter imports the other function.
const EXIT_WORLD: &str = "
    package longhaul:program;
    world exits { import wasi:cli/exit@0.2.12; }
    package wasi:cli@0.2.12 {
        interface exit {
            exit: func(status: result);
            exit-with-code: func(status-code: u8);
        }
    }";

/// The component of a program in either form.
///
/// # Errors
/// [`LoadError::NotAComponent`].
pub async fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    let refused = |reason| LoadError::NotAComponent { name: "program".into(), reason };
    adapted(bytes).await.map_err(refused)
}

/// The component of a program, or why it has none.
async fn adapted(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !is_core_module(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let types = types_nested_most(bytes);
    if types > TYPES_NESTED_MAX {
        return Err(format!("its world may have {types} types within each other, more than {TYPES_NESTED_MAX}"));
    }
    let module = bytes.to_owned();
    // The encoder reads untrusted bytes: its panic ends this job alone.
    let encoded = tokio::task::spawn_blocking(move || on_a_deep_stack(move || encode(&module))).await;
    encoded.map_err(|stopped| format!("the adapter stopped: {stopped}"))?.map(Cow::Owned)
}

/// Runs `work`, which recurses, on a thread of its own.
fn on_a_deep_stack<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
    thread.join().unwrap_or_else(|_| Err("the adapter panicked".to_owned()))
}

/// The highest possible nesting of types in a module's world: types of components and of instances begin with a byte of
/// their own, and text may contain that byte too.
fn types_nested_most(module: &[u8]) -> usize {
    let sections = Parser::new(0).parse_all(module).filter_map(Result::ok);
    let of_world = sections.filter_map(|payload| match payload {
        Payload::CustomSection(section) if section.name().starts_with("component-type") => Some(section.data()),
        _ => None,
    });
    of_world.map(|data| data.iter().filter(|byte| matches!(byte, 0x41 | 0x42)).count()).max().unwrap_or(0)
}

/// The magic number and version 1 of a core module; a component has another version.
fn is_core_module(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x01\0\0\0")
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let adapter = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER;
    let encode = || {
        let module = exiting_with_code(module)?;
        let encoder = ComponentEncoder::default().validate(true).module(&module).map_err(whole)?;
        encoder.adapter(PREVIEW1, adapter).and_then(|mut encoder| encoder.encode()).map_err(whole)
    };
    encode().map_err(|error: String| format!("it is no program for WASI preview 1: {error}"))
}

/// The module with its import of `proc_exit` renamed; both functions take one `i32`. A module that does not
/// import it, or is no module, stays as it is.
fn exiting_with_code(module: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    // The next section starts at the end of the one before, with its number and its size.
    let mut start = 8;
    for payload in Parser::new(0).parse_all(module) {
        let Ok(payload) = payload else { break };
        let Some((id, range)) = payload.as_section() else { continue };
        if matches!(payload, Payload::ImportSection(_)) {
            let Some(imports) = renamed(&module[range.clone()]) else { break };
            let mut made = [&module[..start], &[id]].concat();
            write_u32(&mut made, imports.len());
            made.extend([imports.as_slice(), &module[range.end..]].concat());
            let mut resolve = Resolve::default();
            let package = resolve.push_str("exits.wit", EXIT_WORLD).map_err(whole)?;
            let world = resolve.select_world(&[package], None).map_err(whole)?;
            let encoding = StringEncoding::UTF8;
            wit_component::embed_component_metadata(&mut made, &resolve, world, encoding).map_err(whole)?;
            return Ok(Cow::Owned(made));
        }
        start = range.end;
    }
    Ok(Cow::Borrowed(module))
}

/// An error of the encoder with all its causes.
fn whole(error: impl Display) -> String {
    format!("{error:#}")
}

/// The imports with `proc_exit` under its other name; none when it is not among them. Bytes that only look like it, in
/// another name, make a module that the encoder refuses.
fn renamed(imports: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = (named((PREVIEW1, "proc_exit")), named(EXIT));
    let at = imports.windows(old.len()).position(|window| window == old)?;
    Some([&imports[..at], &new, &imports[at + old.len()..]].concat())
}

/// The encoded names of an import.
fn named((module, function): (&str, &str)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in [module, function] {
        write_u32(&mut bytes, name.len());
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

/// Encodes a number as WebAssembly does: seven bits a byte, the lowest first.
fn write_u32(bytes: &mut Vec<u8>, number: usize) {
    let mut left = number;
    loop {
        let low = u8::try_from(left & 0x7f).unwrap_or(0);
        left >>= 7;
        bytes.push(if left == 0 { low } else { low | 0x80 });
        if left == 0 {
            return;
        }
    }
}
