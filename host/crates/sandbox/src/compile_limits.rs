//! The limits of compiling one plugin: what is refused before it, and what the child that compiles may use.
//!
//! They do not bound calls: an invocation has limits of its own.

use crate::level::Level;
use serde::{Deserialize, Serialize};

/// What compiling one plugin may cost. Written in `longhaul.toml` under `[compile]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompileLimits {
    /// Bytes of the file. Default 128 MiB; an interpreter has 20 to 30.
    pub bytes_max: u64,
    /// Functions in all modules. Default 200 000; an interpreter has about 20 000.
    pub functions_max: u64,
    /// Components and modules within each other. Default 20.
    pub nesting_max: u64,
    /// Imports of the component, and exports. Default 10 000; a plugin has some 30. Their names are kept.
    pub interfaces_max: u64,
    /// Memory of the child, in bytes of address space. Default 6 GiB.
    pub memory_bytes_max: u64,
    /// Time of the child on a processor, in milliseconds. Default 180 000; an interpreter takes about
    /// 10 000. Counted in whole seconds, rounded up, so the child ends up to a second late. It holds on a
    /// busy machine as on an idle one.
    pub cpu_ms_max: u64,
    /// Time on the clock, in milliseconds. Default 1 800 000. For a child that stands still: one that
    /// computes ends at `cpu_ms_max`.
    pub wall_ms_max: u64,
    /// Bytes of compiled code, which stay on the disk. Default 1 GiB. CPython's has some 100 MB; two bytes far from each
    /// other in the memory of a module become an image of all between them. The child's files end there, whatever
    /// writes them.
    pub code_bytes_max: u64,
    /// The least that holds the child besides these limits. Default `landlock`: it keeps its two pipes and the file of
    /// code, opens no file and no connection, and from Linux 6.12 on signals no other process. Where Landlock or
    /// seccomp is missing it refuses to compile. Any other level asks for the same; `none` asks for nothing more than
    /// the limits, and is the default on systems other than Linux.
    pub sandbox_min: Level,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            bytes_max: 128 << 20,
            functions_max: 200_000,
            nesting_max: 20,
            interfaces_max: 10_000,
            memory_bytes_max: 6 << 30,
            cpu_ms_max: 180_000,
            wall_ms_max: 1_800_000,
            code_bytes_max: 1 << 30,
            sandbox_min: if cfg!(target_os = "linux") { Level::Landlock } else { Level::None },
        }
    }
}
