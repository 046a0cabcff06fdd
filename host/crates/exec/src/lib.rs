//! Runs untrusted code: Python, JavaScript, or a program of WASI, each in an instance of its own that sees nothing of
//! the host except what the job grants.
//!
//! An [`Executor`] is made once; each [`Job`] then costs an instance. It keeps no journal and no state: code that a run
//! should be able to resume belongs in a tool. It never starts the code in a process of the host, and never gives it
//! the host's environment.
//!
//! ```no_run
//! use longhaul_exec::{Code, ExecError, Executor, ExecutorPaths, Job, compile_if_asked};
//!
//! # async fn example() -> Result<(), ExecError> {
//! // First of all in `main`: this program is also the child that compiles.
//! compile_if_asked();
//! let executor = Executor::new(ExecutorPaths::usual()?)?;
//! let report = executor.run(Job::of(Code::Python("print(sum(range(10)))".into()))).await?;
//! assert_eq!(report.stdout, "45\n");
//! # Ok(()) }
//! ```

mod call;
mod error;
mod executor;
mod job;
mod places;
mod program;
mod ready;
mod report;

pub use error::ExecError;
pub use executor::Executor;
pub use job::{Code, GraphLanguage, Job, JobLimits, SOURCE_BYTES_MAX};
pub use longhaul_core::LimitHit;
pub use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
pub use longhaul_engine::{CompileLimits, LoadError};
pub use places::{ExecutorPaths, compile_if_asked};
pub use program::component;
pub use report::JobReport;
