//! The link from WASI to the state of an invocation.

use crate::ctx::Ctx;
use wasmtime::component::Linker;

/// Links what the run times of languages ask for, and what a granted world may use of it. In a pure
/// world, waiting for the clock is a durable sleep.
///
/// # Errors
/// When the linker has it already.
pub fn add_to_linker(linker: &mut Linker<Ctx>, pure: bool) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    if pure { crate::poll::shadow(linker) } else { Ok(()) }
}
