//! The reason why a job was not run. Errors of the code itself are in its report.

use crate::job::{CONTEXT_NESTING_MAX, SESSION_BYTES_MAX, SOURCE_BYTES_MAX};
use longhaul_core::LimitHit;
use longhaul_engine::LoadError;
use longhaul_sandbox::SandboxError;
use std::path::PathBuf;

/// The reason why a job was not run. Errors of the code are in its [`JobReport`](crate::JobReport).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The language's interpreter is not installed.
    #[error("there is no `{name}.wasm` in {searched}; fetch it with: longhaul runtimes pull {name}")]
    NoRuntime {
        /// `python` or `javascript`.
        name: &'static str,
        /// The searched directories.
        searched: String,
    },
    /// The source is too long.
    #[error(
        "the source has {bytes} bytes, and at most {SOURCE_BYTES_MAX} are run; hand data over as a file or as context"
    )]
    SourceTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The context is not an object.
    #[error("the context is {found}, and must be a JSON object, such as {{\"name\": 1}}")]
    ContextNotObject {
        /// The type that was found.
        found: String,
    },
    /// The context nests too deep.
    #[error("the context nests deeper than {CONTEXT_NESTING_MAX} levels; hand it over flatter, or as text")]
    ContextTooDeep,
    /// Compiling it needs more than [`ExecutorPaths::compile_limits`](crate::ExecutorPaths::compile_limits) allow.
    #[error("the {name} takes too much to compile: {hit}; make it smaller, or raise the limit where it is embedded")]
    CompileLimit {
        /// `program`, or the interpreter.
        name: String,
        /// The limit.
        hit: LimitHit,
    },
    /// The interpreter, or the program, cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// The language does not run natively; Python alone does.
    #[error("only Python runs natively; leave out `--runtime native` for other languages")]
    NotNative,
    /// There is no Python on this machine.
    #[error("there is no `python3` in PATH; install Python, or name a virtual environment with `--venv DIR`")]
    NoPython,
    /// The virtual environment is none.
    #[error("`{}` is no virtual environment; make one with: python3 -m venv {}", .path.display(), .path.display())]
    NoEnvironment {
        /// The directory.
        path: PathBuf,
    },
    /// A native job sees each directory at its own path.
    #[error(
        "a native job sees a directory at its own path, and not at `{guest}`; write `{}:{}`",
        .host.display(), .host.display()
    )]
    DirectoryElsewhere {
        /// The directory.
        host: PathBuf,
        /// The path that was asked for.
        guest: String,
    },
    /// A program has no typed outputs.
    #[error(
        "a WASI program has no typed results; leave out `--rich`, and have it print them, or run Python, JavaScript or \
         TypeScript"
    )]
    RichProgram,
    /// The language has no sessions; Python alone does.
    #[error("only Python has sessions; leave out the session for other languages")]
    SessionOfPython,
    /// A step in WebAssembly has no modules of its job.
    #[error(
        "a session in WebAssembly takes no modules with its code; put them into a directory, and grant it as `/work`"
    )]
    SessionFiles,
    /// There is no data directory to keep a session in.
    #[error("sessions are kept in a data directory, and there is none; name one where the executor is made")]
    NoSessions,
    /// The name of a session.
    #[error(
        "`{name}` is no name of a session; use up to 60 letters of ASCII, digits, `_` and `-`, and begin without `-`"
    )]
    SessionName {
        /// The name.
        name: String,
    },
    /// Another step of the session runs.
    #[error("another step of the session `{name}` runs; wait for its end, or use another session")]
    SessionBusy {
        /// The session.
        name: String,
    },
    /// The session belongs to another interpreter.
    #[error("the session `{name}` began in another interpreter ({began}); run this code there, or in another session")]
    SessionRuntime {
        /// The session.
        name: String,
        /// Its interpreter.
        began: String,
    },
    /// The session had directories or hosts, and the caller may grant none.
    #[error(
        "steps of the session `{name}` had directories or hosts, so only who may grant them goes on with it, over HTTP with \
         the scope `admin`; begin another session"
    )]
    SessionGranted {
        /// The session.
        name: String,
    },
    /// Somebody who may grant nothing ran steps of the session, and this step would load their values with its grants.
    #[error(
        "somebody without the scope `admin` ran steps of the session `{name}`, and their values would be loaded with the \
         directories and hosts of this step; leave those out, or begin another session"
    )]
    SessionShared {
        /// The session.
        name: String,
    },
    /// There are too many sessions.
    #[error("there are {most} sessions, and no more are kept; end one with: longhaul exec --end-session NAME")]
    SessionsFull {
        /// The number.
        most: usize,
    },
    /// The values of a session are too large. The code was run, and the session is as it was.
    #[error(
        "the session `{name}` would have {bytes} bytes of values, and at most {SESSION_BYTES_MAX} are kept, so it is as it \
         was before this code; keep large data in files, or `del` what is not needed"
    )]
    SessionTooLarge {
        /// The session.
        name: String,
        /// Their size.
        bytes: u64,
    },
    /// A session has too many variables. The code was run, and the session is as it was.
    #[error(
        "the session `{name}` would have {variables} variables, whose names take more room than is kept, so it is as it was \
         before this code; keep them in a dict, or `del` what is not needed"
    )]
    SessionCrowded {
        /// The session.
        name: String,
        /// Their number.
        variables: usize,
    },
    /// The name of a module that came with the job.
    #[error("`{name}` is no file name of a module; write a relative path such as helper.py, without `..`")]
    BadFile {
        /// The name.
        name: String,
    },
    /// The sandbox did not start the interpreter.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A fault of the host.
    #[error("{0}")]
    Host(String),
}

impl From<LoadError> for ExecError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Limit { name, hit } => Self::CompileLimit { name, hit },
            error @ LoadError::Host { .. } => Self::Host(error.to_string()),
            other => Self::Load(other),
        }
    }
}
