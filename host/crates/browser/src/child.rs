//! The child inside of the sandbox: a relay between the browser and the two sockets of the host.
//!
//! The browser addresses proxies by a port and not by a socket's path, so the relay listens on the loopback of the
//! sandbox's own network, which nothing outside can reach. It decides nothing: each connection is passed to the host
//! unchanged. It ends, and everything with it, when the browser ends or uses too much memory.

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The directory of the two sockets, relative to the child's. Short, since the path of a socket has 107 bytes.
pub(crate) const WAY: &str = "../tmp/way";
pub(crate) const PIPE: &str = "../tmp/pipe";

/// Interval of checks of the browser's memory.
const LOOK: Duration = Duration::from_millis(250);

/// The exit code when the browser used too much memory. A message might be left out of its standard error.
pub(crate) const TOO_MUCH_MEMORY: i32 = 75;

/// The specification of the child, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) argv: Vec<String>,
    pub(crate) memory_bytes_max: u64,
}

/// The child's whole main function. Returns the exit code.
#[must_use]
pub fn browser_child(spec_json: &str) -> i32 {
    let spec: Spec = match serde_json::from_str(spec_json) {
        Ok(spec) => spec,
        Err(error) => return failed("read what to start", &error.into()),
    };
    let browser = match start(&spec) {
        Ok(browser) => browser,
        Err(error) => return failed("start the browser", &error),
    };
    match watch(browser, spec.memory_bytes_max) {
        Ok(code) => code,
        Err(error) => failed("watch the browser", &error),
    }
}

fn failed(doing: &str, error: &io::Error) -> i32 {
    eprintln!("cannot {doing}: {error}");
    126
}

fn start(spec: &Spec) -> io::Result<Child> {
    let port = longhaul_sandbox::relay_to(Path::new(WAY))?;
    let max = Some(spec.memory_bytes_max);
    setrlimit(Resource::Data, Rlimit { current: max, maximum: max })?;
    let pipe = UnixStream::connect(PIPE)?;
    let home = std::env::var("HOME").unwrap_or_else(|_| "..".to_owned());
    let mut command = Command::new("/bin/sh");
    // It reads at 3 and writes at 4. The shell moves them there, which would need unsafe code otherwise.
    command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >&2", "sh"]).args(&spec.argv);
    command.arg(format!("--user-data-dir={home}/profile")).arg(format!("--proxy-server=http://127.0.0.1:{port}"));
    command.arg("about:blank");
    command.stdin(OwnedFd::from(pipe.try_clone()?)).stdout(OwnedFd::from(pipe)).stderr(Stdio::inherit());
    command.spawn()
}

fn watch(mut browser: Child, memory_bytes_max: u64) -> io::Result<i32> {
    loop {
        if let Some(status) = browser.try_wait()? {
            return Ok(status.code().unwrap_or(1));
        }
        if visible_bytes(Path::new("/proc")) > memory_bytes_max {
            return Ok(TOO_MUCH_MEMORY);
        }
        thread::sleep(LOOK);
    }
}

/// The private memory of all visible processes. The `/proc` of another namespace shows none of these, and then only the
/// limit of each process applies.
fn visible_bytes(proc: &Path) -> u64 {
    let is_ours =
        std::fs::read_link(proc.join("self")).is_ok_and(|id| id == Path::new(&std::process::id().to_string()));
    if is_ours { longhaul_sandbox::private_bytes(proc) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_where_proc_shows_this_process() {
        assert!(visible_bytes(Path::new("/proc")) > 0, "this test has some");
        // Its entries have a status, and none is a link to this process.
        assert_eq!(visible_bytes(Path::new("/proc/self/task")), 0);
    }
}
