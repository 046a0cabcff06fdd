//! Developer commands of Longhaul, run as `cargo xtask COMMAND`.
//!
//! This file only reads the command line and hands over. No command installs anything for the
//! whole machine, except that `plugins` may add the wasm target to the rustup tool chain in use, and that `test` run by
//! root installs Debian's Chromium where there is no browser.

mod as_user;
mod browser;
mod commands;
mod dist;
mod docs;
mod first_run;
mod gate;
mod guests;
mod timing;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Longhaul")]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the guests into `target/plugins`, as components checked against their world
    Plugins(guests::PluginsArgs),
    /// Build, fetch a small model, run examples/01-first-run with it, kill the run in the middle and resume it
    FirstRun,
    /// Check the format, the lints and the licences, and run every test
    Test,
    /// Build the files of a release into `target/dist`: the program in one file, archives, checksums
    Dist(dist::DistArgs),
    /// Refresh the table of prices and context windows from the newest Python package `genai-prices`
    Prices,
    /// Write the pages of the book that are generated from the program and its sources; `--check` compares them, and
    /// checks links
    Docs(docs::DocsArgs),
}

fn main() -> ExitCode {
    let done = match Xtask::parse().command {
        Command::Plugins(args) => guests::plugins(&workspace_root(), &args),
        Command::FirstRun => first_run::first_run(&workspace_root()),
        Command::Test => gate::test(&workspace_root()),
        Command::Dist(args) => dist::dist(&workspace_root(), &args),
        Command::Prices => gate::prices(&workspace_root()),
        Command::Docs(args) => gate::docs(&workspace_root(), &args),
    };
    if let Err(error) = done {
        // With its causes on one line and without a back trace, which would bury the remedy.
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The repository this command works on.
///
/// Cargo's variable is read when we run, not only when we were built, so that a copied tree with a
/// copied `target` builds its own guests.
fn workspace_root() -> PathBuf {
    let manifest_dir =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir.parent().map_or_else(|| manifest_dir.clone(), PathBuf::from)
}
