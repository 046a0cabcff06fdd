//! `longhaul plugin`: make, build and install plugins; which are found, what a file is, and what it does when
//! it is called.

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
pub(super) use check::judge_manifest;
pub(super) use list::tool_components;
pub(super) use run::kit;
pub(super) use source::{file_of, stem};

use super::context::Context;
use super::exit::Exit;
use clap::Subcommand;
use longhaul_core::fault;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a project that builds at once: plugin.toml, source, tests, and the SDK in `vendor`.
    New(new::NewArgs),
    /// Build a project into `target/NAME.wasm`; what its language needs is fetched into the cache.
    Build(build::BuildArgs),
    /// Put a manifest into a component that another tool chain has built.
    Pack(pack::PackArgs),
    /// Install a plugin for every project; shows what it asks for, and what changed since the version before.
    Install(install::InstallArgs),
    /// Remove an installed plugin, or one of its versions.
    Remove(remove::RemoveArgs),
    /// List the plugins that a run of this project would find, and the versions that are installed.
    List,
    /// Show what a component is and what it asks for, without running it.
    Inspect {
        /// A `.wasm` file, or a plugin: NAME, NAME@VERSION or NAME@sha256:DIGITS.
        file: String,
    },
    /// Say whether a component is a plugin of its world, and what its manifest and its functions are; exit code 1 when
    /// something is wrong. Nothing is granted to it.
    Check {
        /// A `.wasm` file, or a plugin: NAME, NAME@VERSION or NAME@sha256:DIGITS.
        file: String,
    },
    /// Call one export under limits; shows result, fuel, memory, calls of the host and log.
    Run(run::RunArgs),
    /// Run the scenarios of a project's `tests` folder.
    Test(test::TestArgs),
    /// Print the JSON Schema of plugin.toml.
    Schema,
}

/// Carries it out.
pub(super) async fn run(context: &Context, command: Command) -> fault::Result<Exit> {
    match command {
        Command::New(args) => new::run(context, &args),
        Command::Build(args) => build::run(context, &args).await,
        Command::Pack(args) => pack::run(context, &args),
        Command::Install(args) => install::run(context, &args).await,
        Command::Remove(args) => remove::run(context, &args),
        Command::List => list::run(context),
        Command::Inspect { file } => inspect::run(context, &file),
        Command::Check { file } => check::run(context, &file).await,
        Command::Run(args) => run::run(context, args).await,
        Command::Test(args) => test::run(context, args).await,
        Command::Schema => schema::run(),
    }
}
