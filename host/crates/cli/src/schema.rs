//! `longhaul schema`: the JSON Schemas of the configuration files, for editors.
//!
//! Reads no file and needs no project: a schema is that of this program. `longhaul check` finds what a schema cannot
//! say.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::plugin::manifest_schema;
use clap::{Args, ValueEnum};
use longhaul_config::schema::{of_project, of_resources, of_server};
use longhaul_core::fault;
use serde_json::Value;

#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// The file. Without it the files are listed.
    #[arg(value_name = "NAME")]
    file: Option<ConfigurationFile>,
}

/// A file with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConfigurationFile {
    /// The operator's file of a project.
    #[value(name = "longhaul.toml")]
    Project,
    /// The settings of a server, in the data directory.
    #[value(name = "server.toml")]
    Server,
    /// The limits of child processes, in the data directory.
    #[value(name = "resources.toml")]
    Resources,
    /// The manifest of a plugin.
    #[value(name = "plugin.toml")]
    Plugin,
}

impl ConfigurationFile {
    /// All of them, in the order of the list.
    const ALL: [Self; 4] = [Self::Project, Self::Server, Self::Resources, Self::Plugin];

    fn name(self) -> &'static str {
        match self {
            Self::Project => "longhaul.toml",
            Self::Server => "server.toml",
            Self::Resources => "resources.toml",
            Self::Plugin => "plugin.toml",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Project => "the operator's file of a project",
            Self::Server => "the settings of a server, in the data directory",
            Self::Resources => "the limits of child processes, in the data directory",
            Self::Plugin => "the manifest of a plugin",
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Project => of_project(),
            Self::Server => of_server(),
            Self::Resources => of_resources(),
            Self::Plugin => manifest_schema(),
        }
    }
}

/// Runs the command.
pub fn run(context: &Context, args: &SchemaArgs) -> fault::Result<Exit> {
    match args.file {
        Some(file) => outtext!(serde_json::to_string_pretty(&file.schema())?),
        None if context.json => print_json(&ConfigurationFile::ALL.map(ConfigurationFile::name))?,
        None => {
            let line = |file: ConfigurationFile| format!("{:<16}{}", file.name(), file.about());
            outtext!(ConfigurationFile::ALL.map(line).join("\n"));
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests;
