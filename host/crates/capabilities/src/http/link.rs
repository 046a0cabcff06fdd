//! Links `wasi:http` to the state of an invocation. Nothing here decides on a request.

use crate::ctx::Ctx;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

/// Links `wasi:http`, for acting worlds.
///
/// # Errors
/// When the linker has it already.
pub fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

impl WasiHttpView for Ctx {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let Self { http, table, .. } = self.called();
        http.view(table)
    }
}
