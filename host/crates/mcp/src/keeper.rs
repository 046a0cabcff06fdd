//! The child between the host and a server: it starts the server and ends it with the host, however the host ends.
//!
//! A killed host runs no code any more, and a parent death signal depends on the thread that started the child and not
//! on the host. So this process waits for both, the host and the server, and when either ends it ends the other. It
//! reads and writes nothing: the server has the host's pipes. A server that leaves its process group cannot be ended.

use rustix::process::{Pid, Signal, getppid, kill_current_process_group};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};

/// The exit code when there is nothing to start, like that of a shell that finds no command.
const NOT_STARTED: i32 = 127;

/// The child's whole main function: starts the command of `argv`, and ends it when `host` is not its parent any more.
/// Returns the exit code.
#[must_use]
pub fn keep_child(host: i32, argv: &[OsString]) -> i32 {
    let (Some(host), Some((program, arguments))) = (Pid::from_raw(host), argv.split_first()) else {
        return NOT_STARTED;
    };
    let server = match Command::new(program).args(arguments).spawn() {
        Ok(server) => server,
        Err(error) => {
            eprintln!("`{}` cannot be started: {error}", program.to_string_lossy());
            return NOT_STARTED;
        }
    };
    match wait(host, server) {
        Some(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        None => {
            // Including this process, and before any process could start more.
            let _ = kill_current_process_group(Signal::KILL);
            NOT_STARTED
        }
    }
}

/// The server's exit status; none when the host ended.
fn wait(host: Pid, mut server: Child) -> Option<ExitStatus> {
    let server_pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    loop {
        if getppid() != Some(host) {
            return None;
        }
        if let Ok(Some(status)) = server.try_wait() {
            return Some(status);
        }
        sleep_until_one_ends(host, server_pid);
    }
}

/// Sleeps without waking up, if the system can report both ends.
#[cfg(target_os = "linux")]
fn sleep_until_one_ends(host: Pid, server: Option<Pid>) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let opened = |pid: Pid| pidfd_open(pid, PidfdFlags::empty()).ok();
    let (Some(host_ends), Some(server_ends)) = (opened(host), server.and_then(opened)) else { return look_again() };
    // The number may have been reused before it was opened.
    if getppid() == Some(host) {
        let mut ends = [PollFd::new(&host_ends, PollFlags::IN), PollFd::new(&server_ends, PollFlags::IN)];
        let _ = poll(&mut ends, None);
    }
}

#[cfg(not(target_os = "linux"))]
fn sleep_until_one_ends(_host: Pid, _server: Option<Pid>) {
    look_again();
}

/// For systems without notifications.
fn look_again() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}
