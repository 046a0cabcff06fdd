//! Programs of WASI: a component that exports `wasi:cli/run`, called as a plugin is, with the same limits.
//!
//! Such a program is not a plugin. It has no journal and no capability of the host, only its granted directories and
//! hosts, and its output is captured.

use crate::callee::{Called, Callee};
use crate::error::LoadError;
use crate::governor::Cancel;
use crate::inspect::inspect_command;
use crate::plugin::Engine;
use longhaul_capabilities::{Ctx, InvocationSetup};
use longhaul_core::Digest;
use wasmtime::Store;
use wasmtime::component::Instance;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandIndices;

/// A program that can be run.
pub struct CommandComponent {
    digest: Digest,
    callee: Callee,
    indices: CommandIndices,
}

impl Engine {
    /// Makes a program of a component's bytes: compiled at most once for each engine and digest.
    ///
    /// # Errors
    /// Every [`LoadError`].
    pub async fn load_command(&self, name: &str, bytes: &[u8]) -> Result<CommandComponent, LoadError> {
        let digest = inspect_command(name, bytes, self.compile_limits())?;
        let component = self.component(name, &digest, bytes).await?;
        let wrong = |error: wasmtime::Error| LoadError::WrongWorld {
            name: name.to_owned(),
            reason: format!("it is no program of WASI 0.2: {error:#}"),
        };
        let linker = self.linkers().of_command(self.wasmtime()).map_err(wrong)?;
        let pre = linker.instantiate_pre(&component).map_err(wrong)?;
        let indices = CommandIndices::new(&pre).map_err(wrong)?;
        let callee = self.callee(name, pre);
        Ok(CommandComponent { digest, callee, indices })
    }
}

impl CommandComponent {
    /// Its bytes' digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Runs it to its end; returns its exit code.
    pub async fn run(&self, setup: InvocationSetup, cancel: &Cancel) -> Called<i32> {
        let body = async |store: &mut Store<Ctx>, instance: &Instance| {
            let command = self.indices.load(&mut *store, instance)?;
            match command.wasi_cli_run().call_run(&mut *store).await {
                Ok(Ok(())) => Ok(0),
                Ok(Err(())) => Ok(1),
                Err(error) => error.downcast_ref::<I32Exit>().map(|exit| exit.0).ok_or(error),
            }
        };
        self.callee.call("run", setup.into(), cancel, body).await
    }
}
