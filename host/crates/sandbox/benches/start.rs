//! Compares the start of a program in the full sandbox with a bare start, in the same run: `cargo bench -p
//! longhaul-sandbox --bench start`. The goal is at most 10 ms over. A machine that gives less than the full sandbox
//! measures nothing.

use longhaul_sandbox::{Level, Program, SandboxHost, run};
use std::time::{Duration, Instant};

const STARTS: usize = 200;

fn main() {
    if let [_, spec] = &std::env::args().collect::<Vec<_>>()[..]
        && spec.starts_with('{')
    {
        std::process::exit(longhaul_sandbox::sandbox_child(spec));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let scratch = tempfile::tempdir().expect("a directory");
    let host = SandboxHost {
        program: std::env::current_exe().expect("this program"),
        prefix_args: Vec::new(),
        scratch: scratch.path().to_owned(),
        cache: None,
        hidden: Vec::new(),
        checkout: None,
        redact: None,
        level_min: Level::None,
    };
    let program = Program::new("/bin/true", vec!["/bin/true".to_owned()]);
    let mut bare = Vec::new();
    let mut full = Vec::new();
    for _ in 0..STARTS {
        bare.push(timed(|| runtime.block_on(start_bare())));
        full.push(timed(|| {
            let report = runtime.block_on(run(&host, &program)).expect("it runs");
            assert_eq!((report.level, report.exit_code), (Level::Full, 0), "{}", report.stderr);
        }));
    }
    let (bare, full) = (median(bare), median(full));
    let times = full.as_secs_f64() / bare.as_secs_f64();
    println!("bare {bare:?}, full {full:?}, over {:?}, {times:.1} times", full.saturating_sub(bare));
}

async fn start_bare() {
    let output = tokio::process::Command::new("/bin/true").output().await.expect("it runs");
    assert!(output.status.success());
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
