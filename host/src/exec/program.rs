//! Programs for WASI preview 1 become components; components stay what they are.

use std::borrow::Cow;
use wit_component::ComponentEncoder;

/// What the tool chains of C, Rust and others make for `wasm32-wasip1` imports.
const PREVIEW1: &str = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;

/// The component of a program, or why it is none.
pub(super) async fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !is_core_module(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let module = bytes.to_owned();
    // The encoder reads bytes that nobody trusts: a panic of it ends this job alone.
    let encoded = tokio::task::spawn_blocking(move || encode(&module)).await;
    encoded.map_err(|stopped| format!("the adapter stopped: {stopped}"))?.map(Cow::Owned)
}

/// The magic number and version 1 of a core module; a component has another version.
fn is_core_module(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x01\0\0\0")
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let adapter = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER;
    let encode = || ComponentEncoder::default().validate(true).module(module)?.adapter(PREVIEW1, adapter)?.encode();
    encode().map_err(|error| format!("it is no program for WASI preview 1: {error:#}"))
}
