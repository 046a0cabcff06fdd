//! The operator's configuration: `longhaul.toml` of a project, `server.toml` and `resources.toml` of a data directory.
//!
//! Reading is strict, and a slip is an error with its line. A plugin's grants are decided here and nowhere else: the
//! requested ones, intersected with the operator's. The powers of a configuration itself are listed here, so that a
//! person can agree to them. This crate reads the files that it names and writes none but those of a new project; it
//! refuses to start, to open or to send anything.
//!
//! | file | holds |
//! |---|---|
//! | `tables.rs`, `part.rs` | the tables of `longhaul.toml`, and that of one plugin |
//! | `memory.rs`, `checkpoints.rs`, `notify.rs`, `protect.rs`, `secrets.rs` | tables with checks of their own |
//! | `quarantine.rs` | the schema of the data that a quarantined agent returns |
//! | `tools.rs` | the rules of tables of tools |
//! | `file.rs`, `parse.rs`, `toml_text.rs` | reading, and errors in one line |
//! | `rules.rs` | rules across fields and tables |
//! | `parts.rs`, `limits.rs`, `evidence.rs` | values that several tables determine together |
//! | `schema.rs` | the JSON Schemas of the files |
//! | `asks.rs`, `grant.rs` | the requested grants of a plugin, and its grants |
//! | `powers.rs` | the powers of a configuration |
//! | `template.rs` | the configuration of a new project |
//! | `server.rs`, `resources.rs` | the files of a data directory |
//! | `worker.rs`, `labels.rs` | `[worker]` of a server, and the names of labels |
//! | `server_url.rs` | the address by which servers of one database reach each other |

pub mod asks;
pub mod checkpoints;
mod evidence;
mod file;
mod grant;
mod labels;
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
pub mod schema;
pub mod secrets;
pub mod server;
mod server_url;
mod tables;
pub mod template;
pub mod toml_text;
pub mod tools;
mod worker;

pub use file::{CONFIG_BYTES_MAX, FILE, of_config};
pub use grant::grants;
pub use parse::{Diagnostic, named_plugins};
pub use part::{DirectoryConfig, PluginConfig, ToolRuntime};
pub use server_url::ServerUrl;
pub use tables::{AskConfig, Config, PlanAcceptance, PlanConfig, ProjectConfig, RunConfig};
pub use template::{make_whole, plain_name};
