//! A job: code, its input and grants, and its limits.
//!
//! Data alone. It checks nothing: the executor refuses a job before it starts.

use longhaul_core::grant::{DirectoryGrant, HostPattern};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of a source. A longer one is refused before anything starts; the runtimes have the same cap.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;

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
    pub memory_bytes_max: u64,
    /// Fuel, about one unit per instruction. Default 1 000 000 000 000, about ten minutes of computing.
    pub fuel_max: u64,
    /// Bytes that it may write into its directories. Default 1 GiB. A write beyond that fails as on a full disk.
    pub disk_bytes_max: u64,
    /// Bytes that are kept of standard output, and as many of standard error. Default 1 MiB. Output beyond that is
    /// dropped, and the code continues.
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

/// Code with its input, grants and limits.
#[derive(Clone, Debug)]
pub struct Job {
    /// The code.
    pub code: Code,
    /// The value of `CONTEXT` in the code, an object. Default `{}`. A program reads it as its first argument.
    pub context: Value,
    /// Its standard input. Default empty.
    pub stdin: String,
    /// Modules that it may import, by file name such as `helper.js`. Default none. A program has none.
    pub files: BTreeMap<String, String>,
    /// Directories that it sees. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts that it may reach by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// Its limits.
    pub limits: JobLimits,
}

impl Job {
    /// Code without input and grants, within the default limits.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self {
            code,
            context: json!({}),
            stdin: String::new(),
            files: BTreeMap::new(),
            directories: Vec::new(),
            hosts: Vec::new(),
            limits: JobLimits::default(),
        }
    }
}
