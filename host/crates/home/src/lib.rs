//! The data directory of a user, and the machine's environment: the time, the cache, the program itself, the
//! directories with plugins, the log.
//!
//! Every crate above reads the environment through this crate. It opens no store, reads no configuration and starts no
//! program, and it knows the content of the data directory only by its path.

pub mod crash;
mod directory;
pub mod logs;
mod machine;
mod place;
mod plugin_directories;
pub mod text_file;

pub use directory::{Home, LockHolder, Owned, SocketAddress, VARIABLE, is_ours_alone};
pub use machine::{MachineClock, ServedChildren, cache, own_compiler, own_program, serve_children, variable};
pub use place::{HomePlace, host_name, random_id};
pub use plugin_directories::{PLUGINS_VARIABLE, carried_plugins, plugin_directories};
