//! Runs untrusted Python: a job that ends, one that never would, and one that looks for a file of the host.
//!
//! It needs no server, no data directory and no `longhaul` beside it: the child that compiles the interpreter is this
//! program.

use longhaul_exec::{Code, ExecError, Executor, ExecutorPaths, Job, JobLimits, JobReport, compile_if_asked};
use serde_json::json;
use std::process::ExitCode;

const SOURCES: [&str; 3] = ["print(sum(range(CONTEXT['n'])))", "while True: pass", "print(open('/etc/passwd').read())"];

/// Fuel of a job, about one unit per instruction: about a second of computing.
const FUEL_MAX: u64 = 1_000_000_000;

fn main() -> ExitCode {
    // First of all, before there are other threads.
    compile_if_asked();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed-exec: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<(), ExecError> {
    let executor = Executor::new(ExecutorPaths::usual()?)?;
    for source in SOURCES {
        let limits = JobLimits { fuel_max: FUEL_MAX, ..JobLimits::default() };
        let job = Job { context: json!({ "n": 10 }), limits, ..Job::of(Code::Python(source.into())) };
        let report = executor.run(job).await?;
        println!(">>> {source}\n{}", outcome(&report));
    }
    Ok(())
}

/// The output of the code, or the reason of its failure: the last line of its traceback, or the limit that stopped it.
fn outcome(report: &JobReport) -> &str {
    if report.success {
        return report.stdout.trim_end();
    }
    report.stderr.lines().next_back().or(report.error_message.as_deref()).unwrap_or_default()
}
