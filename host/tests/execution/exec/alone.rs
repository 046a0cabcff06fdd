//! An executor for one job, as the command makes it: the results and limits of any other, and room for eight jobs.

use super::wasi::program;
use super::{expect, javascript, places, python, quick, run, within};
use longhaul::exec::{CompileLimits, Executor, Job, JobReport};

/// The report of a job by an executor for one job, which is that of any other executor.
async fn run_alone(job: Job) -> JobReport {
    let executor = Executor::for_one_job(places(CompileLimits::default())).expect("an executor");
    let alone = executor.run(job.clone()).await.unwrap_or_else(|error| panic!("{error}"));
    let shared = run(job).await;
    let of = |report: &JobReport| (report.stdout.clone(), report.exit_code, report.limit.clone());
    assert_eq!(of(&alone), of(&shared), "{alone:#?}");
    alone
}

#[tokio::test]
async fn an_executor_for_one_job_has_the_same_results_and_limits() {
    let ended = run_alone(python("import sys\nprint(sorted(sys.modules), CONTEXT)\nsys.exit(3)")).await;
    assert_eq!(ended.exit_code, Some(3), "{ended:#?}");
    let stopped = run_alone(quick(python("while True: pass"))).await;
    assert_eq!(stopped.limit.as_deref(), Some("timeout_ms"), "{stopped:#?}");
    let hungry = within(python("x = bytearray(1 << 30)"), |limits| limits.memory_bytes_max = 128 << 20);
    let refused = run_alone(hungry).await;
    assert_eq!(refused.limit.as_deref(), Some("memory_bytes_max"), "{refused:#?}");
    let script = run_alone(javascript("console.log([1, 2].map(x => x + 1))")).await;
    assert!(script.success, "{script:#?}");
    expect(&run_alone(program("")).await, "hello\n", Some(0), None);
}

#[tokio::test]
async fn an_executor_for_one_job_has_room_for_eight_and_says_when_there_is_no_more() {
    let executor = Executor::for_one_job(places(CompileLimits::default())).expect("an executor");
    for _ in 0..4 {
        for job in [javascript("console.log(45)"), python("print(45)")] {
            let report = executor.run(job).await.unwrap_or_else(|error| panic!("{error}"));
            expect(&report, "45\n", Some(0), None);
        }
    }
    let report = executor.run(javascript("console.log(45)")).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(!report.success && report.stdout.is_empty(), "{report:#?}");
}
