//! The sandbox of native programs: checks, programs that agents start, browsers, MCP servers, the compiler.
//!
//! A program is started by a child of this very binary, which confines itself first ([`sandbox_child`]). It sees the
//! system's directories, its tool chain and its grants, and nothing else; it has no network except its own loopback;
//! limits end it, and it ends with the host. Refuses to run a program below the level that the caller accepts: nothing
//! falls back silently, and [`ProgramReport::level`] reports the level. It does not decide which program may run: the
//! caller does.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has namespaces to start a backend in"))]
mod backend;
mod child;
mod compile_limits;
mod descriptors;
mod error;
mod grant;
mod launch;
mod level;
mod memory;
mod modules;
mod output;
mod program;
mod relay;
mod remove;
mod running;
mod scratch_directory;
mod sealed;
mod spec;
mod toolchains;

pub use child::{confine_to_descriptors, confine_to_descriptors_and, sandbox_child};
pub use compile_limits::CompileLimits;
pub use error::SandboxError;
pub use grant::{LeadsOut, granted};
pub use launch::{run, run_in};
pub use level::Level;
pub use memory::private_bytes;
pub use program::{Program, ProgramInput, ProgramLimits, ProgramOutput, ProgramReport, SandboxHost};
pub use relay::relay_to;
pub use remove::{empty, remove_all};
pub use running::{Running, start};
pub use scratch_directory::ScratchDirectory;

/// The user and group, outside, of programs when the host is root. No file of a usual system belongs to them.
pub const USER_OF_ROOTS_PROGRAMS: u32 = 65_533;
