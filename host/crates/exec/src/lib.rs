//! Runs untrusted code: Python, JavaScript, or a program of WASI, each in an instance of its own that sees nothing of
//! the host except what the job grants.
//!
//! An [`Executor`] is made once; each [`Job`] then costs an instance. It keeps no journal: code that a run should be
//! able to resume belongs in a tool. It never gives code the host's environment, and starts it in a process of the host
//! only if the job asks for [`Runtime::Native`]: Python with packages of this machine, in the sandbox of native
//! programs.
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
mod native;
mod outputs;
mod places;
mod program;
mod ready;
mod report;
mod session;
mod step_answer;

pub use error::ExecError;
pub use executor::Executor;
pub use job::{Code, GraphLanguage, Job, JobLimits, NativeRuntime, Runtime, SESSION_BYTES_MAX, SOURCE_BYTES_MAX};
pub use longhaul_core::LimitHit;
pub use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
pub use longhaul_core::output::{LossyDecoder, OutputSink, StandardStream};
pub use longhaul_engine::{CompileLimits, LoadError};
pub use longhaul_sandbox::{Level, SandboxError};
pub use native::{native_child, run_native};
pub use outputs::{JobOutput, OUTPUTS_BYTES_MAX, OUTPUTS_MAX};
pub use places::{ExecutorPaths, compile_if_asked};
pub use program::component;
pub use report::{JobReport, SessionReport, UnkeptVariable};
pub use session::{ExecSessions, SessionSummary};
