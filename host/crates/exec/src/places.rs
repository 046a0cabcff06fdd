//! The paths that an executor needs: a cache, the interpreters, and a program that compiles.
//!
//! It looks for them and makes none: a missing runtime is an error of the job that needs it.

use crate::error::ExecError;
use longhaul_core::fault::Fault;
use longhaul_engine::CompileLimits;
use longhaul_home::{Home, ServedChildren, own_compiler, plugin_directories, serve_children};
use std::path::PathBuf;

/// The paths of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorPaths {
    /// The cache of compiled code; a private directory of this user.
    pub cache: PathBuf,
    /// Directories with `python.wasm` and `javascript.wasm`.
    pub runtimes: Vec<PathBuf>,
    /// The program whose hidden commands compile, and confine native code: `longhaul`, or one whose `main` begins with
    /// [`compile_if_asked`].
    pub compiler: PathBuf,
    /// The limits of compiling a program, or an interpreter for the first time.
    pub compile_limits: CompileLimits,
    /// The data directory, which native code never sees. None: there is none.
    pub data_directory: Option<PathBuf>,
}

impl ExecutorPaths {
    /// The paths of the command line: the user's cache, installed and shipped plugins, this very program.
    ///
    /// # Errors
    /// When there is no home directory, or `main` did not begin with [`compile_if_asked`] and `LONGHAUL_PROGRAM` names
    /// no `longhaul` either.
    pub fn usual() -> Result<Self, ExecError> {
        Self::of_home(&Home::find(None).map_err(unknown)?)
    }

    /// The same with the plugins that are installed in this data directory.
    ///
    /// # Errors
    /// As [`ExecutorPaths::usual`].
    pub fn of_home(home: &Home) -> Result<Self, ExecError> {
        Ok(Self {
            cache: longhaul_home::cache().map_err(unknown)?.join("compiled"),
            runtimes: plugin_directories(home),
            compiler: own_compiler().map_err(unknown)?,
            compile_limits: CompileLimits::default(),
            data_directory: Some(home.path().to_owned()),
        })
    }
}

/// Does the work of a compiler, or of the sandbox of a native job, and ends the process, if it was started as one. An
/// embedder's `main` begins with this call, so that hostile modules are compiled in a bounded child, and not in the
/// embedder itself.
pub fn compile_if_asked() {
    serve_children(ServedChildren::Compiler);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let code = match arguments.as_slice() {
        ["compile-child", "--limits", limits] => longhaul_engine::compile_child(limits),
        ["check-child", spec] => longhaul_sandbox::sandbox_child(spec),
        ["native-child", spec] => crate::native_child(spec),
        _ => return,
    };
    std::process::exit(code);
}

fn unknown(error: Fault) -> ExecError {
    ExecError::Host(format!("{error:#}"))
}
