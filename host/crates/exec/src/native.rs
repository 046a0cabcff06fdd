//! Native jobs: Python of this machine, with the packages of a virtual environment, in the sandbox of native programs.
//!
//! A job sees the system's directories, its interpreter, its environment, and the directories that it is granted, each
//! at its own path. It has no network; the hosts that it is granted are reached through a proxy of this process. It
//! never runs below the sandbox level that it accepts, and never with the host's environment. What it leaves behind is
//! its own words: they are read within bounds, and no link of it is followed.

mod child;
mod left_behind;
mod verdict;

pub use child::native_child;

use crate::error::ExecError;
use crate::job::{Code, Job, JobLimits, NativeRuntime, Runtime, SOURCE_BYTES_MAX};
use crate::outputs::Outputs;
use crate::places::ExecutorPaths;
use crate::report::JobReport;
use crate::step_answer::StepAnswer;
use child::{PROXY_SOCKET, Spec};
use left_behind::FILES;
use longhaul_core::grant::{Access, Grants, HostPattern};
use longhaul_egress::{Guard, Proxy, RequestLimits};
use longhaul_sandbox::{Level, Program, ProgramLimits, SandboxHost, ScratchDirectory, run_in};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinHandle;

/// Names in errors and in the list of children.
const NAME: &str = "the job";

/// The files of a job, beside its outputs.
const REQUEST: &str = "request.json";
const STDIN: &str = "stdin";
const RUNNER: (&str, &str) = ("runner.py", include_str!("native/runner.py"));
const OUTPUTS: (&str, &str) = ("longhaul_outputs.py", include_str!("native/python/longhaul_outputs.py"));

const TESTS: (&str, &str) = ("longhaul_tests.py", include_str!("native/python/longhaul_tests.py"));

/// The arguments of a step of a session, and what runs it.
const STEP: &str = "step.json";
const STEPS: [(&str, &str); 6] = [
    ("longhaul_steps.py", include_str!("native/python/longhaul_steps.py")),
    ("longhaul_session.py", include_str!("native/python/longhaul_session.py")),
    ("longhaul_digest.py", include_str!("native/python/longhaul_digest.py")),
    ("longhaul_files.py", include_str!("native/python/longhaul_files.py")),
    ("longhaul_namespace.py", include_str!("native/python/longhaul_namespace.py")),
    ("longhaul_values.py", include_str!("native/python/longhaul_values.py")),
];

/// The directory, beside these files, of modules that came with the job, and the longest name of one.
const MODULES: &str = "modules";
const NAME_BYTES_MAX: usize = 200;

/// The path of the runner from the working directory of a program.
const RUNNER_PATH: &str = "../tmp/job/runner.py";

/// Processes and threads: libraries for arrays start a thread for each processor.
const PROCESSES_MAX: u64 = 256;

/// Bytes that a job may exchange with its hosts: a bound on a loop.
const TRAFFIC_BYTES_MAX: u64 = 4 << 30;

/// Runs a job of Python to its end, in the sandbox of an executor's paths.
pub(crate) async fn run(places: &ExecutorPaths, job: &Job) -> Result<JobReport, ExecError> {
    run_native(&sandbox_of(places), job).await
}

fn sandbox_of(places: &ExecutorPaths) -> SandboxHost {
    SandboxHost {
        program: places.compiler.clone(),
        prefix_args: vec!["check-child".into()],
        scratch: std::env::temp_dir(),
        cache: None,
        hidden: places.data_directory.iter().cloned().collect(),
        checkout: None,
        level_min: Level::Full,
        redact: None,
    }
}

/// Runs a native job to its end, in a sandbox of the caller. The lowest level is the job's own.
///
/// # Errors
/// [`ExecError::NotNative`] for other jobs, and every [`ExecError`] of a native one; the code was not started then.
pub async fn run_native(host: &SandboxHost, job: &Job) -> Result<JobReport, ExecError> {
    Ok(run_to_its_end(host, job, None).await?.0)
}

/// Runs a job as a step of a session. No answer: it was stopped, or answered something else.
pub(crate) async fn step(
    places: &ExecutorPaths,
    job: &Job,
    arguments: &str,
) -> Result<(JobReport, Option<StepAnswer>), ExecError> {
    let (mut report, text) = run_to_its_end(&sandbox_of(places), job, Some(arguments)).await?;
    // One that was stopped left half an answer, or one of its own making.
    let Some(text) = text.filter(|_| report.exit_code.is_some()) else { return Ok((report, None)) };
    let answer = match StepAnswer::read(&text) {
        Ok(answer) => answer,
        Err(reason) => {
            let error_message = Some(report.error_message.unwrap_or(reason));
            return Ok((JobReport { success: false, error_message, ..report }, None));
        }
    };
    let outputs = Outputs::of(answer.outputs.clone(), answer.outputs_dropped);
    report.truncated |= outputs.dropped > 0;
    report.outputs = outputs.kept;
    Ok((report, Some(answer)))
}

/// Runs a job, or a step of a session with these arguments, which leaves an answer.
async fn run_to_its_end(
    host: &SandboxHost,
    job: &Job,
    step: Option<&str>,
) -> Result<(JobReport, Option<String>), ExecError> {
    let (Code::Python(source), Runtime::Native(native)) = (&job.code, &job.runtime) else {
        return Err(ExecError::NotNative);
    };
    let bytes = job.files.values().map(String::len).sum::<usize>().saturating_add(source.len());
    if bytes > SOURCE_BYTES_MAX {
        return Err(ExecError::SourceTooLong { bytes });
    }
    let program = program(job, native)?;
    let room = ScratchDirectory::new(host)?;
    let files = room.shared().join(FILES);
    place_files(&files, job, native, source, step).map_err(host_fault("write the job's files"))?;
    place_modules(&files.join(MODULES), &job.files)?;
    let _proxy = ProxyTask::start(&job.hosts, &room).map_err(host_fault("start the job's proxy"))?;
    let since = Instant::now();
    let report = run_in(host, room.path(), &program).await?;
    let duration = since.elapsed();
    let left = left_behind::read(room.path());
    let answer = step.and_then(|_| left_behind::read_answer(room.path()));
    Ok((verdict::report(report, left, duration, &job.limits), answer))
}

/// An error of the host, with what it was about to do.
fn host_fault(doing: &'static str) -> impl Fn(std::io::Error) -> ExecError {
    move |error| ExecError::Host(format!("cannot {doing}: {error}"))
}

fn program(job: &Job, native: &NativeRuntime) -> Result<Program, ExecError> {
    let python = interpreter(native)?;
    let JobLimits { timeout_ms, memory_bytes_max, output_bytes_max, disk_bytes_max, fuel_max: _ } = job.limits;
    // Python would hold back what it prints into a pipe without `-u`.
    let unbuffered = job.sink.as_ref().map(|_| "-u");
    let words = [python.as_str(), "-I", "-B", "-X", "utf8"].into_iter().chain(unbuffered).chain([RUNNER_PATH]);
    let spec = Spec { argv: words.map(str::to_owned).collect(), has_proxy: !job.hosts.is_empty(), memory_bytes_max };
    let spec = serde_json::to_string(&spec).map_err(|error| ExecError::Host(error.to_string()))?;
    // The link leads to this very binary even if its directory is hidden.
    let argv = vec!["/proc/self/exe".to_owned(), "native-child".to_owned(), spec];
    let mut program = Program::new(NAME, argv);
    program.starts = Some(python);
    program.sink.clone_from(&job.sink);
    program.level_min = level_min(native.sandbox_min, &job.hosts);
    // Figures are drawn into files, since there is no display.
    program.env.insert("MPLBACKEND".to_owned(), "agg".to_owned());
    for directory in &job.directories {
        let path = plain(&directory.host).map_err(host_fault("tell the path of a directory"))?;
        if Path::new(&directory.guest) != path {
            return Err(ExecError::DirectoryElsewhere { host: path, guest: directory.guest.clone() });
        }
        match directory.access {
            Access::Read => program.read.push(path),
            Access::Write => program.write.push(path),
        }
    }
    program.limits = ProgramLimits {
        wall_ms_max: timeout_ms,
        grace_ms: 0,
        // Bounded by the time on the clock and the number of threads.
        cpu_seconds_max: u64::MAX,
        memory_bytes_max,
        output_bytes_max: u64::try_from(output_bytes_max).unwrap_or(u64::MAX),
        processes_max: PROCESSES_MAX,
        file_bytes_max: disk_bytes_max,
        disk_bytes_max,
    };
    Ok(program)
}

/// The lowest sandbox level of a job. One with hosts has its proxy at a port of loopback, which asks for no password:
/// that must not be the machine's loopback.
fn level_min(accepted: Level, hosts: &[HostPattern]) -> Level {
    if hosts.is_empty() { accepted } else { accepted.max(Level::Namespaces) }
}

/// The interpreter: that of the virtual environment, or the machine's.
fn interpreter(native: &NativeRuntime) -> Result<String, ExecError> {
    let Some(venv) = &native.venv else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|directory| directory.join("python3").is_file());
        return if is_there { Ok("python3".to_owned()) } else { Err(ExecError::NoPython) };
    };
    let venv = plain(venv).map_err(host_fault("tell the path of the virtual environment"))?;
    let python = venv.join("bin/python3");
    let is_one = venv.join("pyvenv.cfg").is_file() && python.is_file();
    match python.into_os_string().into_string() {
        Ok(python) if is_one => Ok(python),
        _ => Err(ExecError::NoEnvironment { path: venv }),
    }
}

/// The full path, resolved by its words: the sandbox shows nothing by a path with `..`, which may lead elsewhere there.
fn plain(path: &Path) -> std::io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Ok(plain)
}

fn place_files(
    files: &Path,
    job: &Job,
    native: &NativeRuntime,
    source: &str,
    step: Option<&str>,
) -> std::io::Result<()> {
    let request = json!({
        "source": source,
        "context": job.context,
        "rich": job.rich,
        "is_check": native.is_check,
        "is_step": step.is_some(),
        "directory": native.directory.as_deref().map(Path::to_string_lossy),
    });
    std::fs::create_dir(files)?;
    std::fs::write(files.join(REQUEST), request.to_string())?;
    if let Some(arguments) = step {
        std::fs::write(files.join(STEP), arguments)?;
        std::fs::write(files.join(left_behind::ANSWER), "")?;
        STEPS.iter().try_for_each(|(name, text)| std::fs::write(files.join(name), text))?;
    }
    for (name, text) in [RUNNER, OUTPUTS, TESTS, (STDIN, job.stdin.as_str()), (left_behind::FILE, "")] {
        std::fs::write(files.join(name), text)?;
    }
    Ok(())
}

/// Writes the modules that came with the job. Their names are its caller's: each stays below the directory.
fn place_modules(directory: &Path, modules: &BTreeMap<String, String>) -> Result<(), ExecError> {
    std::fs::create_dir(directory).map_err(host_fault("make a directory for modules"))?;
    for (name, text) in modules {
        let is_plain = |part| matches!(part, Component::Normal(_));
        if name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || name.contains('\0')
            || !Path::new(name).components().all(is_plain)
        {
            return Err(ExecError::BadFile { name: longhaul_core::text::truncate(name, 80) });
        }
        let path = directory.join(name);
        let parent = path.parent().unwrap_or(directory);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|_| ExecError::BadFile { name: name.clone() })?;
    }
    Ok(())
}

/// Serves the hosts of a job at a socket in its scratch directory; ends with the job.
struct ProxyTask(Option<JoinHandle<()>>);

impl ProxyTask {
    fn start(hosts: &[HostPattern], room: &ScratchDirectory) -> std::io::Result<Self> {
        if hosts.is_empty() {
            return Ok(Self(None));
        }
        // The table is empty, so that a refusal names the command-line option.
        let grants = Grants { hosts: hosts.to_vec(), ..Grants::default() };
        let proxy = Arc::new(Proxy::new(Guard::new(grants, RequestLimits::default()), TRAFFIC_BYTES_MAX));
        let listener = longhaul_egress::listen_in(&room.shared(), PROXY_SOCKET)?;
        Ok(Self(Some(tokio::spawn(proxy.serve_all(listener)))))
    }
}

impl Drop for ProxyTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::grant::DirectoryGrant;

    fn job() -> Job {
        Job::of(Code::Python("1".into()))
    }

    #[test]
    fn a_job_with_hosts_has_a_network_of_its_own_whatever_is_accepted() {
        let host = HostPattern::try_from("https://a.example".to_owned()).expect("a host");
        for (accepted, without, with) in [
            (Level::None, Level::None, Level::Namespaces),
            (Level::Landlock, Level::Landlock, Level::Namespaces),
            (Level::Full, Level::Full, Level::Full),
            (Level::Runsc, Level::Runsc, Level::Runsc),
        ] {
            assert_eq!(level_min(accepted, &[]), without);
            assert_eq!(level_min(accepted, std::slice::from_ref(&host)), with);
        }
    }

    #[test]
    fn a_directory_is_granted_at_its_own_path_alone() {
        let grant = |guest: &str, access| {
            let directories = vec![DirectoryGrant { guest: guest.into(), host: "/usr".into(), access }];
            program(&Job { directories, ..job() }, &NativeRuntime::default())
        };
        let read = grant("/usr", Access::Read).expect("a program");
        assert_eq!((read.read, read.write), (vec![PathBuf::from("/usr")], vec![]));
        let write = grant("/usr", Access::Write).expect("a program");
        assert_eq!((write.read, write.write), (vec![], vec![PathBuf::from("/usr")]));
        let refused = grant("/work", Access::Read).expect_err("it is elsewhere").to_string();
        assert!(refused.contains("/usr:/usr"), "{refused}");
    }

    #[test]
    fn modules_of_a_job_stay_below_their_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let placed = |number: usize, name: &str| {
            let modules = BTreeMap::from([(name.to_owned(), "x = 1".to_owned())]);
            place_modules(&place.path().join(number.to_string()), &modules)
        };
        for (number, name) in ["helper.py", "package/inner.py"].into_iter().enumerate() {
            placed(number, name).expect("written");
            assert!(place.path().join(number.to_string()).join(name).is_file());
        }
        for (number, name) in ["", "/etc/x.py", "../x.py", "a/../../x.py", "a\0b"].into_iter().enumerate() {
            let refused = placed(10 + number, name).expect_err(name);
            assert!(matches!(refused, ExecError::BadFile { .. }), "{name:?}: {refused}");
        }
    }

    #[test]
    fn an_environment_beside_the_directory_is_taken_by_its_full_path() {
        let place = tempfile::tempdir().expect("a directory");
        let venv = place.path().join("venv");
        std::fs::create_dir_all(venv.join("bin")).expect("made");
        for file in ["pyvenv.cfg", "bin/python3"] {
            std::fs::write(venv.join(file), "").expect("written");
        }
        let native = NativeRuntime { venv: Some(place.path().join("work/../venv")), ..NativeRuntime::default() };
        let python = program(&job(), &native).expect("a program").starts;
        assert_eq!(python.as_deref(), venv.join("bin/python3").to_str());
    }

    #[test]
    fn an_environment_that_is_none_is_refused_by_its_path() {
        let native = NativeRuntime { venv: Some("/usr".into()), ..NativeRuntime::default() };
        let refused = program(&job(), &native).expect_err("it is none").to_string();
        assert!(refused.contains("`/usr`") && refused.contains("python3 -m venv /usr"), "{refused}");
    }
}
