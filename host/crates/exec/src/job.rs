//! A job: code, its input and grants, and its limits.
//!
//! Data alone. It checks nothing: the executor refuses a job before it starts.

use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_core::output::OutputSink;
use longhaul_sandbox::Level;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a source. A longer one is refused before anything starts; the runtimes have the same cap.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;

/// Bytes of the values of one session, as they are kept. One step gives back at most 48 MiB.
pub const SESSION_BYTES_MAX: u64 = 64 << 20;

/// Nesting of arrays and objects in a context: as deep as JSON is read here. Writing a deeper one needs more stack than
/// a thread may have.
pub(crate) const CONTEXT_NESTING_MAX: usize = 127;

/// The code of a job.
#[derive(Clone, Debug)]
pub enum Code {
    /// Python source.
    Python(String),
    /// JavaScript source.
    JavaScript(String),
    /// TypeScript source, whose types are taken out and not checked.
    TypeScript(String),
    /// The bytes of a program for WASI: a component, or a module for preview 1.
    Wasm(Vec<u8>),
}

/// The languages of [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphLanguage {
    /// CPython, in WebAssembly.
    Python,
    /// QuickJS, in WebAssembly.
    JavaScript,
    /// A program of its own.
    Wasm,
}

impl Code {
    /// Its language.
    #[must_use]
    pub fn language(&self) -> GraphLanguage {
        match self {
            Self::Python(_) => GraphLanguage::Python,
            Self::JavaScript(_) | Self::TypeScript(_) => GraphLanguage::JavaScript,
            Self::Wasm(_) => GraphLanguage::Wasm,
        }
    }
}

/// The limits of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Time on the clock, in milliseconds. Default 300 000 (five minutes).
    pub timeout_ms: u64,
    /// All linear memory, in bytes. Default 256 MiB, of which Python's image takes 20, measured by printing one line.
    /// Of a native job the private memory of all its processes together.
    pub memory_bytes_max: u64,
    /// Fuel, about one unit per instruction. Default 1 000 000 000 000, about ten minutes of computing.
    /// A native job has none.
    pub fuel_max: u64,
    /// Bytes that it may write into its directories. Default 1 GiB. A write beyond that fails as on a full disk.
    /// Of a native job the bytes of one file, and those that the disk of its temporary files may lose meanwhile.
    pub disk_bytes_max: u64,
    /// Bytes that are kept of standard output, and as many of standard error. Default 1 MiB. Output beyond that is
    /// dropped, and the code continues. Of a native job the beginning and the end are kept, with a note between them.
    pub output_bytes_max: usize,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            timeout_ms: 300_000,
            memory_bytes_max: 256 << 20,
            fuel_max: 1_000_000_000_000,
            disk_bytes_max: 1 << 30,
            output_bytes_max: 1 << 20,
        }
    }
}

impl JobLimits {
    /// The limits of a native job: as by default, with 1 GiB of memory, since libraries for arrays take hundreds of
    /// megabytes before the code begins.
    #[must_use]
    pub fn native() -> Self {
        Self { memory_bytes_max: 1 << 30, ..Self::default() }
    }
}

/// The runtime of the code of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// An instance of WebAssembly.
    #[default]
    Wasm,
    /// An interpreter of this machine, in the sandbox of native programs. Python only.
    Native(NativeRuntime),
}

/// The interpreter of a native job, and its sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeRuntime {
    /// A virtual environment with the packages of the code. None: the `python3` of PATH.
    pub venv: Option<PathBuf>,
    /// The lowest accepted level of the sandbox. Default [`Level::Full`]. With hosts it is at least
    /// [`Level::Namespaces`].
    pub sandbox_min: Level,
    /// The directory that the code works in; one that it is granted. Default an empty one.
    pub directory: Option<PathBuf>,
    /// True when the tests that the source defines are run after it. Default false.
    pub is_check: bool,
}

/// Code with its input, grants and limits.
#[derive(Clone, Debug)]
pub struct Job {
    /// The runtime. Default in WebAssembly.
    pub runtime: Runtime,
    /// The code.
    pub code: Code,
    /// The value of `CONTEXT` in the code, an object. Default `{}`. A program reads it as its first argument.
    pub context: Value,
    /// Its standard input. Default empty.
    pub stdin: String,
    /// Modules that it may import, by file name such as `helper.js`. Default none. A program has none, and a session
    /// only natively.
    pub files: BTreeMap<String, String>,
    /// Directories that it sees; a native job sees each at its own path. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts that it may reach by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// True when the report has typed outputs: the last expression, what `display` was given, and of Python figures. A
    /// program has none, and is refused. Default false.
    pub rich: bool,
    /// Its limits.
    pub limits: JobLimits,
    /// Receives its output while it runs, beside the report. Default none. Of a native job it receives the first half
    /// of `output_bytes_max` of each stream; the rest may be cut in the middle, and is in the report alone.
    pub sink: Option<Arc<dyn OutputSink>>,
}

impl Job {
    /// Code without input and grants, within the default limits.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self {
            runtime: Runtime::default(),
            code,
            context: json!({}),
            stdin: String::new(),
            files: BTreeMap::new(),
            directories: Vec::new(),
            hosts: Vec::new(),
            rich: false,
            limits: JobLimits::default(),
            sink: None,
        }
    }
}
