//! The child inside of the sandbox before the interpreter: it relays the host's proxy, which is a socket, to a port,
//! since programs address proxies by a port, and ends a job whose processes use too much memory together.
//!
//! It is confined like the interpreter itself, and decides nothing else.

use rustix::fs::{Mode, OFlags};
use rustix::process::DumpableBehavior;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// The proxy's socket in the directory that host and sandbox share.
pub(super) const PROXY_SOCKET: &str = "proxy";

/// The path of that socket, relative to the child's directory. Short, since the path of a socket has 107 bytes.
const PROXY: &str = "../tmp/proxy";

/// The variables that name a proxy for programs.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Interval of checks of the memory; the interpreter's end is looked for more often.
const LOOK: Duration = Duration::from_millis(250);
const POLL_MIN: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(20);

/// The path of the job's outputs, relative to the child's directory.
const OUTPUTS: &str = "../tmp/job/outputs";

/// The line of the outputs of a job whose processes used too much memory together.
const TOO_MUCH_MEMORY: &[u8] = b"\n{\"end\": {\"memory\": true}}\n";

/// The exit code of such a job.
pub(super) const ENDED_FOR_MEMORY: i32 = 137;

/// The exit code when nothing was started.
const FAILED: i32 = 126;

/// The specification of the child, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) argv: Vec<String>,
    pub(super) has_proxy: bool,
    /// Private memory of all processes together, in bytes.
    pub(super) memory_bytes_max: u64,
}

/// The child's whole main function. Returns the exit code.
#[must_use]
pub fn native_child(spec_json: &str) -> i32 {
    let ended = serde_json::from_str(spec_json).map_err(io::Error::from).and_then(|spec| run(&spec));
    ended.unwrap_or_else(|error| {
        eprintln!("the interpreter cannot be started: {error}");
        FAILED
    })
}

fn run(spec: &Spec) -> io::Result<i32> {
    let (program, arguments) = spec.argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    // The interpreter is of the same user, and has no business in this process.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut command = Command::new(program);
    command.args(arguments);
    if spec.has_proxy {
        let port = longhaul_sandbox::relay_to(Path::new(PROXY))?;
        command.envs(PROXY_VARIABLES.map(|name| (name, format!("http://127.0.0.1:{port}"))));
    }
    watch(command.spawn()?, spec.memory_bytes_max)
}

fn watch(mut interpreter: Child, memory_bytes_max: u64) -> io::Result<i32> {
    let sees_only_the_job = is_in_its_own_namespace();
    let (mut wait, mut looked) = (POLL_MIN, Instant::now());
    loop {
        if let Some(status) = interpreter.try_wait()? {
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        if sees_only_the_job && looked.elapsed() >= LOOK {
            if longhaul_sandbox::private_bytes(Path::new("/proc")) > memory_bytes_max {
                // A job that put something else in the place of its outputs is told its exit code alone.
                let _ = note(Path::new(OUTPUTS), TOO_MUCH_MEMORY);
                // The processes of the job end with this one.
                return Ok(ENDED_FOR_MEMORY);
            }
            looked = Instant::now();
        }
        thread::sleep(wait);
        wait = (2 * wait).min(POLL_MAX);
    }
}

/// Appends a line. The file is the job's, which may have put a pipe or a link in its place: it is neither waited for
/// nor followed.
fn note(file: &Path, line: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::from(rustix::fs::open(file, flags, Mode::empty())?).write_all(line)
}

/// True when `/proc` shows the processes of this job alone: the first process of their namespace started this one, or
/// is this one. Without a namespace it would show those of the whole machine.
fn is_in_its_own_namespace() -> bool {
    let first = Some(rustix::process::Pid::INIT);
    Some(rustix::process::getpid()) == first || rustix::process::getppid() == first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_the_outputs_holds_nothing_up() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("plain"), "a\n").expect("written");
        note(&at("plain"), b"b\n").expect("appended");
        assert_eq!(std::fs::read_to_string(at("plain")).expect("there"), "a\nb\n");
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RUSR | Mode::WUSR).expect("a pipe");
        std::os::unix::fs::symlink(at("plain"), at("link")).expect("a link");
        for name in ["pipe", "link", "nothing"] {
            assert!(note(&at(name), b"c\n").is_err(), "{name}");
        }
    }

    #[test]
    fn a_child_without_a_command_says_so_and_starts_nothing() {
        for spec in ["", "{}", r#"{"argv": [], "has_proxy": false, "memory_bytes_max": 1}"#] {
            assert_eq!(native_child(spec), FAILED, "{spec}");
        }
    }
}
