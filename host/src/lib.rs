//! Runs untrusted code, and long-running agents whose effects are journaled, from a Rust program.
//!
//! Untrusted code, with the feature `exec` alone:
//!
//! ```no_run
//! use longhaul::exec::{Code, ExecError, Executor, ExecutorPaths, Job, compile_if_asked};
//!
//! fn main() -> Result<(), ExecError> {
//!     // First of all: this program is also the child that compiles the interpreter.
//!     compile_if_asked();
//!     run()
//! }
//!
//! #[tokio::main]
//! async fn run() -> Result<(), ExecError> {
//!     let executor = Executor::new(ExecutorPaths::usual()?)?;
//!     let report = executor.run(Job::of(Code::Python("print(sum(range(10)))".into()))).await?;
//!     print!("{}", report.stdout);
//!     Ok(())
//! }
//! ```
//!
//! A run of a project, with the feature `runs`:
//!
//! ```no_run
//! use futures_util::StreamExt as _;
//! use longhaul::projects::{ProjectClient, RunOptions};
//! use longhaul::{Home, run_child_if_asked};
//! use std::path::Path;
//!
//! fn main() -> longhaul::Result<()> {
//!     // First of all: this program is also the child that compiles plugins, and the one that runs checks.
//!     run_child_if_asked();
//!     run()
//! }
//!
//! #[tokio::main]
//! async fn run() -> longhaul::Result<()> {
//!     let project = ProjectClient::open(&Home::find(None)?, Path::new("my-project")).await?;
//!     let run = project.begin(RunOptions::default()).await?;
//!     let mut lines = Box::pin(project.events(&run, 1).await?);
//!     while let Some(line) = lines.next().await {
//!         println!("{:?}", line.kind());
//!     }
//!     println!("{}", project.status(&run).await?.reason);
//!     project.close().await;
//!     Ok(())
//! }
//! ```
//!
//! | module | feature | for |
//! |---|---|---|
//! | [`exec`] | `exec` | jobs of untrusted code |
//! | [`projects`] | `runs` | projects and their runs |
//! | [`ask`] | `runs` | questions that agents answer |
//! | [`events`] | `runs` | the stream of a run |
//!
//! The feature `server` adds the command line and the servers of the program `longhaul`. Every error is a [`Fault`]
//! with its code, or an [`exec::ExecError`]; both say what to do. Modules that this page does not show are the
//! program's own and change without notice.

// All output goes through `cli::terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "runs")]
pub mod ask;
#[cfg(feature = "runs")]
mod children;
#[cfg(feature = "runs")]
mod cluster_store;
#[cfg(feature = "server")]
mod database_checks;
#[cfg(feature = "runs")]
mod database_memory;
#[cfg(feature = "runs")]
pub mod events;
#[cfg(feature = "runs")]
mod exportable_store;
#[cfg(feature = "server")]
mod migration;
#[cfg(feature = "runs")]
mod own_service;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod owner;
#[cfg(feature = "runs")]
mod project_models;
#[cfg(feature = "runs")]
pub mod projects;
#[cfg(feature = "runs")]
mod stores;
#[cfg(feature = "runs")]
#[doc(hidden)]
pub mod wiring;

#[cfg(feature = "runs")]
pub use children::run_child_if_asked;
#[cfg(feature = "server")]
#[doc(hidden)]
pub use longhaul_cli as cli;
#[cfg(feature = "server")]
#[doc(hidden)]
pub use longhaul_cli::bombs;
#[cfg(feature = "runs")]
#[doc(hidden)]
pub use longhaul_client as client;
#[cfg(feature = "runs")]
pub use longhaul_core::RunId;
pub use longhaul_core::fault::{Fault, FaultCode, Result};
#[cfg(feature = "exec")]
pub use longhaul_exec as exec;
#[cfg(feature = "runs")]
pub use longhaul_home::Home;
#[cfg(feature = "server")]
#[doc(hidden)]
pub use longhaul_server as server;
#[cfg(feature = "runs")]
#[doc(hidden)]
pub use longhaul_service as service;
