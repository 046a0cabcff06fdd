//! `longhaul plugin`: makes, builds, installs and lists plugins; inspects a component, and calls its exports.

mod build;
mod check;
mod fetch;
mod inspect;
mod install;
mod list;
mod new;
mod pack;
mod remove;
mod run;
mod schema;
mod source;
mod test;

pub use build::say;
pub(super) use check::{judge_manifest, show as show_findings};
pub(super) use list::tool_components;
pub(super) use run::kit;
pub(super) use schema::schema as manifest_schema;
pub(super) use source::{file_of, stem};

use super::context::Context;
use super::exit::Exit;
use clap::Subcommand;
use longhaul_core::fault;

#[derive(Subcommand, Debug)]
pub enum PluginCommand {
    /// Make a project that builds at once: plugin.toml, source, tests, and the SDK in `vendor`.
    New(new::NewArgs),
    /// Build a project into `target/NAME.wasm`. The tools of its language are fetched into the cache.
    Build(build::BuildArgs),
    /// Put a manifest into a component that another tool chain has built.
    Pack(pack::PackArgs),
    /// Install a plugin for every project. Shows its requests for grants first, and their changes since the installed
    /// version.
    Install(install::InstallArgs),
    /// Remove an installed plugin, or one of its versions.
    Remove(remove::RemoveArgs),
    /// List the plugins that a run of this project would find, and the installed versions.
    List,
    /// Show a component's exports and imports, its manifest and its requests for grants, without running it.
    Inspect {
        /// A `.wasm` file, or a plugin: NAME, NAME@VERSION or NAME@sha256:DIGITS.
        file: String,
    },
    /// Check that a component is a plugin of its world, with a valid manifest and valid functions. Exit code 1 if it is
    /// not. The component gets no grants.
    Check {
        /// A `.wasm` file, or a plugin: NAME, NAME@VERSION or NAME@sha256:DIGITS.
        file: String,
    },
    /// Call one export under limits, and show the result, fuel, memory, host calls and log.
    Run(run::RunArgs),
    /// Run the scenarios of a project's `tests` folder.
    Test(test::TestArgs),
    /// Print the JSON Schema of plugin.toml.
    Schema,
}

/// Runs the command.
pub(super) async fn run(context: &Context, command: PluginCommand) -> fault::Result<Exit> {
    match command {
        PluginCommand::New(args) => new::run(context, &args),
        PluginCommand::Build(args) => build::run(context, &args).await,
        PluginCommand::Pack(args) => pack::run(context, &args),
        PluginCommand::Install(args) => install::run(context, &args).await,
        PluginCommand::Remove(args) => remove::run(context, &args),
        PluginCommand::List => list::run(context),
        PluginCommand::Inspect { file } => inspect::run(context, &file),
        PluginCommand::Check { file } => check::run(context, &file).await,
        PluginCommand::Run(args) => run::run(context, args).await,
        PluginCommand::Test(args) => test::run(context, args).await,
        PluginCommand::Schema => schema::run(),
    }
}
