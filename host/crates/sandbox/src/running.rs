//! A program that lives on between calls, such as a browser or an MCP server.
//!
//! It ends when it is dropped, at a limit, and with the host, however that ends. It does not know the program's
//! purpose: its callers talk to it through its pipes, or through sockets in its scratch directory.

use crate::launch::{Group, Launch, disk_used_up};
use crate::output::Output;
use crate::{Level, Program, ProgramLimits, SandboxError, SandboxHost, ScratchDirectory};
use longhaul_core::process_registry::{Child as Listing, RegistryEntry};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinHandle;

/// A running program. Dropping it kills all its processes.
pub struct Running {
    // In this order: the group is killed while its number is still the child's, and the scratch directory is removed
    // when no process uses it.
    group: Group,
    watch: Watch,
    child: Child,
    /// Its entry in the list of children.
    entry: Option<RegistryEntry<Listing>>,
    /// The child ends when this is dropped.
    _control: UnixStream,
    input: Option<pipe::Sender>,
    output: Option<ChildStdout>,
    stderr: Output,
    /// Its last errors, once they were read to the end.
    said: Option<String>,
    /// Its exit code, once it has ended.
    exit_code: Option<i32>,
    level: Level,
    hit: Arc<Mutex<Option<&'static str>>>,
    room: ScratchDirectory,
}

struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Running {
    /// Its sandbox level.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Its scratch directory.
    #[must_use]
    pub fn room(&self) -> &ScratchDirectory {
        &self.room
    }

    /// Its standard input, once, if it is [`crate::ProgramInput::Pipe`].
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.input.take()
    }

    /// Its standard output, once, if it is [`crate::ProgramOutput::Pipe`].
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.output.take()
    }

    /// Its exit code, once [`Running::ended`] has returned; none if a signal ended it.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Waits until it has ended, and returns the limit that ended it, and its last errors.
    pub async fn ended(&mut self) -> (Option<&'static str>, String) {
        // An error means that it is no child any more, so it has ended.
        if let Ok(status) = self.child.wait().await {
            self.exit_code = status.code();
        }
        let hit = self.let_go();
        if self.said.is_none() {
            self.said = Some(self.stderr.take().await.text().0);
        }
        (hit, self.said.clone().unwrap_or_default())
    }

    /// Unregisters an ended program from its limits: its number may be reused. Returns the limit that ended it.
    fn let_go(&mut self) -> Option<&'static str> {
        self.watch.0.abort();
        self.group.disarm();
        let ended_for = self.entry.take().and_then(|entry| entry.hit().map(|hit| name_of(&hit.name)));
        let mut hit = self.hit.lock().unwrap_or_else(PoisonError::into_inner);
        *hit = hit.or(ended_for);
        *hit
    }
}

/// Starts a program in a scratch directory.
///
/// # Errors
/// When it did not start.
pub async fn start(host: &SandboxHost, room: ScratchDirectory, program: &Program) -> Result<Running, SandboxError> {
    let launched = Launch { host, scratch: room.path(), program }.at_the_best_level().await?;
    let hit = Arc::default();
    let watched = watch(room.path().to_owned(), program.limits.clone(), launched.group.pid(), Arc::clone(&hit));
    let watch = Watch(tokio::spawn(watched));
    Ok(Running {
        group: launched.group,
        watch,
        child: launched.child,
        entry: launched.entry,
        _control: launched.control,
        input: launched.input,
        output: launched.piped_output,
        stderr: launched.stderr,
        said: None,
        exit_code: None,
        level: launched.level,
        hit,
        room,
    })
}

/// The name of a limit that the monitor enforces.
fn name_of(limit: &str) -> &'static str {
    match limit {
        "max_memory_mb" => "max_memory_mb",
        "max_processes" => "max_processes",
        _ => "max_cpu_percent",
    }
}

/// Ends the program at a limit that the kernel does not enforce.
async fn watch(
    room: PathBuf,
    limits: ProgramLimits,
    group: Option<rustix::process::Pid>,
    hit: Arc<Mutex<Option<&'static str>>>,
) {
    let name = tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(limits.wall_ms_max)) => "wall_ms_max",
        _ = disk_used_up(&room, limits.disk_bytes_max) => "disk_bytes_max",
    };
    *hit.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}
