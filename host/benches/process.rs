//! The steps of `longhaul exec` as a new process, beside `python3` as one.
//!
//! `cargo xtask plugins && cargo bench -p longhaul --bench process` (about 60 s after the build, most of it to compile
//! the interpreters). The processes take turns, and each row prints the median and p90 of its own and the ratio to
//! `python3 -I -S -c`:
//!
//! - loaded: the program is mapped and relocated, and ends before it reads a command line;
//! - all commands: the same, and it reads the whole command line with every command, as `longhaul --version` does;
//! - no job: `longhaul exec` of a file that does not exist: loaded, with the log and the runtime, without an engine;
//! - a job in JavaScript, and one in Python.
//!
//! Then the executor within a warm process: making it, its first job, which loads and links the interpreter, its second
//! job, and its end; one for many jobs, and one for one job.
//! Goal: a job in Python takes no longer than `python3`.

#[path = "../tests/common/built_plugins.rs"]
mod built_plugins;

use longhaul::exec::{Code, CompileLimits, ExecError, Executor, ExecutorPaths, Job};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Starts of each process; the first tenth is not counted.
const STARTS: usize = 100;

/// Executors of each kind.
const EXECUTORS: usize = 20;

/// Time in which a compiled file must not change before its check is noted, and a little more.
const RESTS: Duration = Duration::from_millis(3_500);

const PYTHON: &str = "print(sum(range(10)))";
const JAVASCRIPT: &str = "console.log(45)";

fn main() -> Outcome<()> {
    built_plugins::expect(&["javascript", "python"]);
    let bench = Bench::new()?;
    bench.settle()?;
    bench.processes()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).event_interval(1).enable_all().build()?;
    runtime.block_on(bench.executors())
}

/// A directory with the jobs, a cache and no data directory.
struct Bench {
    place: TempDir,
    interpreter: String,
}

impl Bench {
    fn new() -> Outcome<Self> {
        let place = tempfile::tempdir()?;
        std::fs::write(place.path().join("job.py"), PYTHON)?;
        std::fs::write(place.path().join("job.js"), JAVASCRIPT)?;
        // The interpreter itself: a version manager's shim on PATH is a shell script, and slower.
        let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
        Ok(Self { place, interpreter: String::from_utf8(found.stdout)?.trim().to_owned() })
    }

    /// Has the interpreters compiled, and their compiled files checked once they have rested.
    fn settle(&self) -> Outcome<()> {
        for rests in [RESTS, Duration::ZERO] {
            for file in ["job.js", "job.py"] {
                let done = self.longhaul(&["exec", file]).output()?;
                assert!(done.status.success() && done.stdout == b"45\n", "{done:?}");
            }
            std::thread::sleep(rests);
        }
        Ok(())
    }

    fn processes(&self) -> Outcome<()> {
        let mut starts = [
            ("python3 -I -S -c", self.python()),
            ("loaded", self.longhaul(&["compile-child", "--limits", "none"])),
            ("all commands", self.longhaul(&["--version"])),
            ("no job", self.longhaul(&["exec", "missing.py"])),
            ("a job in JavaScript", self.longhaul(&["exec", "job.js"])),
            ("a job in Python", self.longhaul(&["exec", "job.py"])),
        ];
        let mut took = starts.each_ref().map(|_| Vec::new());
        for _ in 0..STARTS {
            for ((_, command), took) in starts.iter_mut().zip(&mut took) {
                let start = Instant::now();
                command.output()?;
                took.push(start.elapsed());
            }
        }
        let floor = at(&took[0], 50);
        for ((what, _), took) in starts.iter().zip(&took) {
            let (median, p90) = (at(took, 50), at(took, 90));
            let ratio = median.as_secs_f64() / floor.as_secs_f64();
            println!("{what}: {:.2} ms (p90 {:.2}); {ratio:.2} of python3", ms(median), ms(p90));
        }
        Ok(())
    }

    fn python(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(["-I", "-S", "-c", PYTHON]).stdin(Stdio::null());
        command
    }

    fn longhaul(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(longhaul());
        command.args(arguments).current_dir(self.place.path()).stdin(Stdio::null());
        command.env("LONGHAUL_PLUGINS", plugins()).env("LONGHAUL_CACHE", self.place.path().join("cache"));
        command.env("LONGHAUL_HOME", self.place.path().join("home"));
        command
    }

    async fn executors(&self) -> Outcome<()> {
        self.executor("an executor for many jobs", Executor::new).await?;
        self.executor("an executor for one job", Executor::for_one_job).await
    }

    async fn executor(&self, what: &str, make: impl Fn(ExecutorPaths) -> Result<Executor, ExecError>) -> Outcome<()> {
        let mut steps = ["made", "first job", "second job", "dropped"].map(|step| (step, Vec::new()));
        for _ in 0..EXECUTORS {
            let mut since = Instant::now();
            let executor = make(self.paths())?;
            let mut ended = vec![lap(&mut since)];
            for _ in 0..2 {
                let report = executor.run(Job::of(Code::Python(PYTHON.into()))).await?;
                ended.push(lap(&mut since));
                assert_eq!(report.stdout, "45\n", "{report:?}");
            }
            let mut since = Instant::now();
            drop(executor);
            ended.push(lap(&mut since));
            for ((_, took), time) in steps.iter_mut().zip(ended) {
                took.push(time);
            }
        }
        let told: Vec<String> = steps.iter().map(|(step, took)| format!("{step} {:.3} ms", ms(at(took, 50)))).collect();
        println!("{what}: {}", told.join(", "));
        Ok(())
    }

    fn paths(&self) -> ExecutorPaths {
        ExecutorPaths {
            cache: self.place.path().join("cache/compiled"),
            runtimes: vec![plugins()],
            compiler: longhaul(),
            compile_limits: CompileLimits::default(),
            data_directory: None,
        }
    }
}

/// The time since the last one, from which the next is counted.
fn lap(since: &mut Instant) -> Duration {
    let now = Instant::now();
    now - std::mem::replace(since, now)
}

/// The time that `percent` of the starts took at most, without the first tenth.
fn at(times: &[Duration], percent: usize) -> Duration {
    let mut counted = times[times.len() / 10..].to_vec();
    counted.sort();
    counted[(counted.len() * percent / 100).min(counted.len() - 1)]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn longhaul() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_longhaul"))
}

fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins")
}
