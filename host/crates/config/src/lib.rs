//! What operators configure: `longhaul.toml` of a project, `server.toml` and `resources.toml` of a data directory.
//!
//! Reading is strict, and a slip is an error with its line. What a plugin may do is decided here and nowhere else: what it
//! asks for, intersected with what the operator gives. What a configuration asks for itself is listed here, so that a
//! person can agree to it. This crate reads the files that it names and writes none but those of a new project; it
//! refuses to start, to open or to send anything.
//!
//! | file | holds |
//! |---|---|
//! | `tables.rs`, `part.rs` | the tables of `longhaul.toml`, and that of one plugin |
//! | `memory.rs`, `checkpoints.rs`, `notify.rs`, `protect.rs`, `secrets.rs` | tables with checks of their own |
//! | `quarantine.rs` | the data that an agent in quarantine hands back |
//! | `tools.rs` | the rules of tables of tools |
//! | `file.rs`, `parse.rs`, `toml_text.rs` | reading, and saying what is wrong in one line |
//! | `rules.rs` | what has to hold across fields and tables |
//! | `parts.rs`, `limits.rs`, `evidence.rs` | what the tables say together |
//! | `asks.rs`, `grant.rs` | what a plugin asks for, and what it may do |
//! | `powers.rs` | what a configuration asks for |
//! | `template.rs` | the configuration of a new project |
//! | `server.rs`, `resources.rs` | the files of a data directory |

pub mod asks;
pub mod checkpoints;
mod evidence;
mod file;
mod grant;
mod limits;
pub mod memory;
pub mod notify;
mod parse;
mod part;
mod parts;
pub mod powers;
pub mod protect;
pub mod quarantine;
pub mod resources;
mod rules;
pub mod secrets;
pub mod server;
mod tables;
pub mod template;
pub mod toml_text;
pub mod tools;

pub use file::{CONFIG_BYTES_MAX, FILE, of_config};
pub use grant::grants;
pub use parse::Diagnostic;
pub use part::{DirectoryConfig, PluginConfig};
pub use tables::{AskConfig, Config, PlanAcceptance, PlanConfig, ProjectConfig, RunConfig};
pub use template::{make_whole, plain_name};
