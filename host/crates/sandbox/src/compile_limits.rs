//! The limits of compiling one plugin: caps on its input, and on the child that compiles.
//!
//! They do not bound calls: an invocation has limits of its own.

use crate::level::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of compiling one plugin. Written in `longhaul.toml` under `[compile]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompileLimits {
    /// Bytes of the file. Default 128 MiB; an interpreter has 20 to 30.
    pub bytes_max: u64,
    /// Functions in all modules. Default 200 000; an interpreter has about 20 000.
    pub functions_max: u64,
    /// Nesting of components and modules. Default 20.
    pub nesting_max: u64,
    /// Imports of the component, and exports. Default 10 000; a plugin has some 30. Their names are kept.
    pub interfaces_max: u64,
    /// Memory of the child, in bytes of address space. Default 6 GiB.
    pub memory_bytes_max: u64,
    /// Processor time of the child, in milliseconds. Default 180 000; an interpreter takes about 10 000. Counted in
    /// whole seconds, rounded up, so the child ends up to a second late. It is the same on a busy machine and on an
    /// idle one.
    pub cpu_ms_max: u64,
    /// Wall time, in milliseconds. Default 1 800 000. For a child that hangs: one that computes ends at `cpu_ms_max`.
    pub wall_ms_max: u64,
    /// Bytes of compiled code, which stay on the disk. Default 1 GiB. CPython's has some 100 MB; two bytes far from
    /// each other in the memory of a module become an image of everything between them. The child's files end at this
    /// size.
    pub code_bytes_max: u64,
    // One schema is for all systems, so it has the default of Linux.
    /// The lowest confinement of the child besides these limits. Default `landlock`: it keeps its two pipes and the
    /// file of code, opens no file and no connection, and from Linux 6.12 on signals no other process. Without Landlock
    /// or seccomp it refuses to compile. Any other level asks for the same; `none` asks for nothing more than the
    /// limits, and is the default on systems other than Linux.
    #[schemars(extend("default" = "landlock"))]
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
