//! Links WASI to the state of an invocation.

use crate::ctx::Ctx;
use wasmtime::component::Linker;

/// Links the interfaces that languages' run times need, and those that a granted world may use. In a pure world,
/// waiting for the clock is a durable sleep; in every world, what is written to a directory is charged.
///
/// # Errors
/// When the linker has it already.
pub fn add_to_linker(linker: &mut Linker<Ctx>, pure: bool) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    crate::disk::shadow(linker)?;
    if pure { crate::poll::shadow(linker) } else { Ok(()) }
}
