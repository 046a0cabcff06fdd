//! The command line: reads arguments, asks the service and prints its answers.
//!
//! It makes no decision about a run, and knows no store, no service and no server: the program does what needs one, as
//! an [`Owner`].

// What is printed goes through `terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
pub mod terminal;

// The line itself: its definition, its help, and the way to the command that it names.
mod arguments;
mod command_line;
mod commands;
mod dispatch;
mod everywhere;
mod exec_line;
mod exit;
mod grant_args;
mod help;
mod manual;
mod package_args;

// Commands for work: runs and their features, agents, code.
mod agent;
mod answer;
mod approvals;
mod ask;
mod check;
mod checkpoint;
mod compare;
mod decisions;
mod detect;
mod diff;
mod do_prompt;
mod exec;
mod features;
mod fork;
mod graph;
mod log;
mod memory;
mod merge;
mod rehearse;
mod report;
mod revert;
mod runs;
mod schedule;
mod show;
mod trajectories;

// Commands for what work needs: projects, plugins, models, permissions, servers, this machine.
mod audit;
mod backup;
pub mod bombs;
mod children;
mod conform;
mod crashtest;
mod doctor;
mod gc;
mod mcp;
mod models;
mod onboard;
mod packages;
mod plugin;
mod project;
mod ps;
mod runtimes;
mod scenario;
mod schema;
mod secrets;
mod serve;
mod skill;
mod store;
mod token;
mod trust;
mod welcome;
mod workers;

// Parts that several commands share.
mod code_file;
mod command_client;
mod confirm;
mod context;
mod follow;
mod machine;
mod order;
mod owner;
mod progress;
mod prompt;
mod remote;
mod speech;
mod task_status;

use command_client::CommandClient;
use command_line::Subcommands;
use commands::Command;
use context::Context;
use everywhere::EverywhereArgs;
use longhaul_core::fault::{self, Context as _};
use longhaul_home::logs::{self, LogSettings};
use longhaul_home::{Home, variable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

pub use command_line::{Cli, command, parse};
pub use exit::Exit;
pub use owner::{Owner, RunningScheduler, RunningServer, ServerStart, StandbyNotice};

/// Carries out a command. `owner` does what needs the store, the service or the servers.
///
/// # Errors
/// With a text that says what to do.
pub fn main(cli: Cli, owner: Arc<dyn Owner>) -> fault::Result<Exit> {
    let command = match cli.command {
        Some(Subcommands::Command(command)) => Some(command),
        Some(Subcommands::Manual(command)) => return manual::run(command, command_line::command()),
        Some(Subcommands::Child(child)) => children::run(child),
        None => None,
    };
    logs::start(&LogSettings::from_environment(&variable)?)?;
    let server = remote::client(&cli.everywhere)?;
    if server.is_some() {
        remote::expect_of_service(command.as_deref())?;
    }
    let runtime = runtime(command.as_deref().is_some_and(Command::needs_one_thread))?;
    // A stream is for programs, too: no other text is printed between its lines.
    let EverywhereArgs { home, project, json, trust, .. } = cli.everywhere;
    let json = json || command.as_ref().is_some_and(|command| command.prints_events());
    let names_project = project.is_some();
    let home = Home::find(home)?;
    let (project, client) = match server {
        Some(server) => (remote::project(project)?, CommandClient::of_server(server)),
        None => {
            let project = whole(project.as_deref().unwrap_or(Path::new(".")))?;
            let client = CommandClient::new(&home, &project, &owner);
            (project, client)
        }
    };
    let context = Context { home, project, names_project, json, trust, client, owner };
    let exit = runtime.block_on(async {
        let exit = match command {
            Some(command) => dispatch::run(*command, &context).await,
            None => welcome::run(&context).await,
        };
        context.client.release().await;
        exit
    });
    // A guest that does not yield must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    exit
}

/// The runtime of a command.
fn runtime(one_thread: bool) -> std::io::Result<Runtime> {
    let mut builder = if one_thread { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    // A guest that yields counts as one poll; without this, timers and sockets wait for 61 of them.
    builder.event_interval(1).enable_all().build()
}

/// The directory of a project as an absolute path, since the owner of the data directory may have another working
/// directory. A directory that a command is about to make has an absolute path, too.
fn whole(project: &Path) -> fault::Result<PathBuf> {
    project
        .canonicalize()
        .or_else(|_| std::path::absolute(project))
        .with_context(|| format!("`{}` is no path", project.display()))
}
