//! The child that confines itself and starts a program.
//!
//! Two processes of this binary stand between the host and the program, both started from a sealed copy. The outer one
//! makes the namespaces and the file system, and watches the host: when the host dies it ends everything. The inner one
//! is the first process of the new process namespace, so that all processes of the program die with it; it leads a
//! session without a terminal, sets the limits, drops its capabilities, confines itself and starts the program. A level
//! that the system refuses starts nothing, and the host tries a lower one if allowed. Refuses to guess: the first line
//! of standard error reports the level, before the program runs. Refuses to start the program outside its work
//! directory.
//!
//! At a level with a backend, the inner process starts that instead, and a third one, the innermost, is the first
//! process in it and starts the program. No process of a backend outlives the inner process, and that one does not
//! outlive the host.

#[cfg(target_os = "linux")]
mod access;
mod failure;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod syscalls;

use crate::spec::{CROWDED, END, READY, REFUSED, Role, SAID, Spec, VARIABLE};
use crate::{Level, descriptors};
use failure::{Failed, to};
#[cfg(target_os = "linux")]
use linux::{confine, end_all_held, enter, keep_signals, keep_to_descriptors, start_backend};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The priority of the watching processes, above everything that runs inside; see [`inner`] and [`processes`].
const WATCHER_NICE: i32 = -20;

/// Interval of process counting, and the delay of noticing an end on systems without process descriptors.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The exit code when the child itself failed, like that of a shell that cannot start a command.
const FAILED: i32 = 126;

/// The child's whole main function: call it before any thread is started. Returns the exit code.
#[must_use]
pub fn sandbox_child(spec_json: &str) -> i32 {
    let spec: Spec = match serde_json::from_str(spec_json) {
        Ok(spec) => spec,
        Err(error) => return say(REFUSED, &error.to_string()),
    };
    let input = match descriptors::receive(std::io::stdin()) {
        Ok(input) => input,
        Err(error) => return say(REFUSED, &format!("cannot receive standard input: {error}")),
    };
    match spec.role {
        Role::Outer => outer(spec, input),
        Role::Inner | Role::Innermost { .. } => inner(&spec, input),
    }
}

/// Confines this very process to its standard descriptors, by Landlock and seccomp: all others are closed. From now on
/// it opens no file, makes no socket, starts threads and no process, signals no other process if Landlock restricts
/// signals (Linux 6.12), and is no longer root. Call it before any thread is started and any file is opened.
///
/// # Errors
/// When the system refuses it; then a part of it may be in force.
pub fn confine_to_descriptors() -> std::io::Result<()> {
    confine_to(None)
}

/// The same, with one more descriptor, such as that of an untrusted file.
///
/// # Errors
/// As [`confine_to_descriptors`].
pub fn confine_to_descriptors_and(kept: BorrowedFd<'_>) -> std::io::Result<()> {
    confine_to(Some(kept))
}

fn confine_to(kept: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
    keep_to_descriptors(kept).map_err(|(doing, error)| std::io::Error::other(format!("cannot {doing}: {error}")))
}

fn outer(spec: Spec, input: Option<OwnedFd>) -> i32 {
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    // The counting process must have a higher priority than the counted ones. Only root can set one, and only root
    // needs it.
    let _ = rustix::process::setpriority_process(None, WATCHER_NICE);
    if let Err((doing, error)) = enter(&spec) {
        return say(REFUSED, &format!("cannot {doing}: {error}"));
    }
    let inner = Spec { role: Role::Inner, nice, ..spec };
    match start_inner(&inner, input) {
        Ok((child, control)) => wait_or_end_with_the_host(child, &control, &inner),
        Err(error) => say(REFUSED, &format!("cannot start the inner process: {error}")),
    }
}

/// Starts the inner process with a socket of its own as standard input, and returns this process's end of it.
fn start_inner(spec: &Spec, input: Option<OwnedFd>) -> std::io::Result<(Child, UnixStream)> {
    let json = serde_json::to_string(spec)?;
    // The link, not its target: the sealed copy has no path.
    let program = if cfg!(target_os = "linux") { PathBuf::from("/proc/self/exe") } else { std::env::current_exe()? };
    let (ours, theirs) = control(input)?;
    let mut command = Command::new(program);
    command.arg0("longhaul-sandbox").args(&spec.prefix_args).arg(json).stdin(theirs);
    Ok((command.spawn()?, ours))
}

/// A socket to the next process, which carries the program's standard input, and its other end.
fn control(input: Option<OwnedFd>) -> std::io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    descriptors::send(&ours, input.as_ref().map(|input| input.as_fd()))?;
    Ok((ours, theirs.into()))
}

fn inner(spec: &Spec, input: Option<OwnedFd>) -> i32 {
    // A program with a terminal could type into it. This process leads no group, so that this cannot fail, except if a
    // backend has made a session already.
    let leads_session = || rustix::process::getsid(None).is_ok_and(|session| session == rustix::process::getpid());
    if let Err(error) = rustix::process::setsid()
        && !leads_session()
    {
        return say(REFUSED, &format!("cannot lead a session: {error}"));
    }
    if let Err((doing, error)) = confine(spec) {
        return say(REFUSED, &format!("cannot {doing}: {error}"));
    }
    if spec.backend.is_some() {
        return match hold(spec, input) {
            Ok((child, control)) => wait_or_end_with_the_host(child, &control, spec),
            Err((doing, error)) => say(REFUSED, &format!("cannot {doing}: {error}")),
        };
    }
    // Only the started process gets the host's priority, which is set for a thread. This process keeps its own:
    // everything inside dies with it, and among thousands of processes it would have to wait for its turn to die.
    let started = std::thread::scope(|scope| {
        let starter = std::thread::Builder::new().spawn_scoped(scope, || start(spec, input));
        starter.map(|starter| starter.join().unwrap_or(Err(FAILED)))
    });
    match started {
        Ok(Ok(child)) => wait_or_ask_to_end(child, spec.level),
        Ok(Err(code)) => code,
        Err(error) => say(REFUSED, &format!("cannot start a thread: {error}")),
    }
}

/// Starts the backend, which starts the innermost process.
fn hold(spec: &Spec, input: Option<OwnedFd>) -> Result<(Child, UnixStream), Failed> {
    let (ours, theirs) = control(input).map_err(to("make a socket"))?;
    Ok((start_backend(spec, theirs)?, ours))
}

/// Starts the requested program, or returns the exit code.
fn start(spec: &Spec, input: Option<OwnedFd>) -> Result<Child, i32> {
    let _ = rustix::process::setpriority_process(None, spec.nice);
    limit(spec).map_err(|error| say(REFUSED, &format!("cannot set a limit: {error}")))?;
    keep_signals(spec.level).map_err(|(doing, error)| say(REFUSED, &format!("cannot {doing}: {error}")))?;
    say(READY, "");
    let (program, arguments) = spec.argv.split_first().ok_or(FAILED)?;
    if let Err(error) = go_to(&spec.work(), &spec.cwd) {
        eprintln!("cannot start in `{}`: {error}", spec.cwd.display());
        return Err(FAILED);
    }
    let mut command = Command::new(program);
    command.env_clear().envs(variables());
    if spec.level.has_namespaces() {
        // It dies with this process, so that it can have a group of its own, which is asked to end as one.
        command.process_group(0);
    }
    command.args(arguments).stdin(input.map_or_else(Stdio::null, Stdio::from)).spawn().map_err(|error| {
        eprintln!("cannot start `{program}`: {error}");
        127
    })
}

/// The variables of the program, under their own names from here on.
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let named = |(name, value): (OsString, OsString)| {
        let name = name.as_bytes().strip_prefix(VARIABLE.as_bytes())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    };
    std::env::vars_os().filter_map(named)
}

/// Checks the directory after entering it: it may become a link between a check and a step.
fn go_to(work: &Path, cwd: &Path) -> std::io::Result<()> {
    std::env::set_current_dir(work)?;
    let top = std::env::current_dir()?;
    std::env::set_current_dir(cwd)?;
    if std::env::current_dir()?.starts_with(&top) {
        return Ok(());
    }
    Err(std::io::Error::other("it leads out of the tree"))
}

/// Reports one line to the host, and returns the exit code for it.
fn say(word: &str, why: &str) -> i32 {
    let line = format!("{SAID}{word} {}\n", why.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
    FAILED
}

/// As shells do: 128 plus the signal.
fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Standard input is a socket whose other end the host holds: it ends with the host, however the host ends. A parent
/// death signal would not do, since it depends on the host's thread; and a waiting thread is impossible, since a
/// process that made a process namespace may start none.
fn wait_or_end_with_the_host(mut child: Child, control: &UnixStream, spec: &Spec) -> i32 {
    let end = end_of(&child);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return ended(code_of(status), spec.level),
            Ok(None) => {}
            Err(_) => return ended(FAILED, spec.level),
        }
        if processes().is_some_and(|count| count > spec.processes_max.saturating_add(spec.level.keepers())) {
            let _ = child.kill();
            let _ = child.wait();
            let _ = rustix::process::kill_process(rustix::process::getpid(), CROWDED);
        }
        match heard(end.as_ref()) {
            Heard::Nothing => {}
            Heard::End => {
                // If the child has exited, the next turn notices it.
                let _ = (&*control).write_all(&[END]);
            }
            Heard::HostIsGone => {
                let _ = child.kill();
                if spec.level.has_namespaces() {
                    let _ = rustix::process::kill_current_process_group(Signal::KILL);
                }
            }
        }
    }
}

/// The inner process: messages of the host come through the outer one.
fn wait_or_ask_to_end(mut child: Child, level: Level) -> i32 {
    let (pid, end) = (pid_of(&child), end_of(&child));
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return ended(code_of(status), level),
            Ok(None) => {}
            Err(_) => return ended(FAILED, level),
        }
        match (heard(end.as_ref()), pid) {
            (Heard::End, Some(pid)) if level.has_namespaces() => {
                let _ = rustix::process::kill_process_group(pid, Signal::TERM);
            }
            (Heard::End, Some(pid)) => {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
            (Heard::HostIsGone, _) => {
                let _ = child.kill();
                return ended(FAILED, level);
            }
            _ => {}
        }
    }
}

/// The program's remaining processes end with this process if there are namespaces; otherwise they are ended here.
fn ended(code: i32, level: Level) -> i32 {
    if level == Level::Landlock {
        end_all_held();
    }
    if !level.has_namespaces() {
        end_children();
    }
    code
}

/// Orphans become children of this process; see [`linux::enter`] and [`linux::confine`]. A process that repeatedly
/// starts another one and ends is never caught by this alone.
fn end_children() {
    const ROUNDS_MAX: usize = 1_000;
    for _ in 0..ROUNDS_MAX {
        let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children: Vec<Pid> = list.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect();
        for child in &children {
            let _ = rustix::process::kill_process(*child, Signal::KILL);
            let _ = rustix::process::waitpid(Some(*child), rustix::process::WaitOptions::empty());
        }
        if children.is_empty() {
            return;
        }
    }
}

/// A message on standard input.
enum Heard {
    Nothing,
    /// [`END`].
    End,
    HostIsGone,
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// A descriptor that is ready once the process has ended.
#[cfg(target_os = "linux")]
fn end_of(child: &Child) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid_of(child)?, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_child: &Child) -> Option<OwnedFd> {
    None
}

/// Waits for at most [`POLL`], and not beyond `end`.
fn heard(end: Option<&OwnedFd>) -> Heard {
    let mut stdin = std::io::stdin();
    let said = PollFd::new(&stdin, PollFlags::IN);
    let mut waited: Vec<PollFd<'_>> =
        std::iter::once(said).chain(end.map(|end| PollFd::new(end, PollFlags::IN))).collect();
    let ready = rustix::event::poll(&mut waited, Some(&POLL));
    let is_said = waited.first().is_some_and(|said| !said.revents().is_empty());
    drop(waited);
    if !matches!(ready, Ok(1..)) || !is_said {
        return Heard::Nothing;
    }
    match stdin.read(&mut [0]) {
        Ok(1..) => Heard::End,
        _ => Heard::HostIsGone,
    }
}

/// The number of processes inside, if it can be found: the kernel's limit does not apply to root.
fn processes() -> Option<u64> {
    // The `/proc` of a foreign namespace does not contain this process.
    if std::fs::symlink_metadata("/proc/self").is_err() || std::fs::read_link("/proc/self").is_ok() {
        return None;
    }
    let names = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
    let count = names.filter(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)).count();
    u64::try_from(count).ok()
}

/// Address space that a process may reserve beyond its memory. Node reserves 10 GiB for each memory of WebAssembly, so
/// that this is enough for two dozen; the page tables of all of it take half a GiB at most.
const RESERVED_BYTES_MAX: u64 = 256 << 30;

fn limit(spec: &Spec) -> std::io::Result<()> {
    // Data is a process's private writable memory, without merely reserved space. gVisor counts only that of `brk`.
    let reserved = if spec.level.backend().is_some() { 0 } else { RESERVED_BYTES_MAX };
    only(Resource::Data, spec.memory_bytes_max)?;
    only(Resource::As, spec.memory_bytes_max.saturating_add(reserved))?;
    only(Resource::Core, 0)?;
    only(Resource::Fsize, spec.file_bytes_max)?;
    // The signal comes at the first limit and can be told apart, the kill at the second.
    let kill = within(Resource::Cpu, spec.cpu_seconds_max.saturating_add(5));
    setrlimit(Resource::Cpu, Rlimit { current: Some(spec.cpu_seconds_max.min(kill)), maximum: Some(kill) })?;
    if spec.level.has_namespaces() {
        // Counted within the user namespace. Without one it would count all processes of the user. Included are the
        // inner and the innermost process, and, while the program starts, the thread that starts it.
        only(Resource::Nproc, spec.processes_max.max(2).saturating_add(2))?;
    }
    Ok(())
}

fn only(resource: Resource, max: u64) -> std::io::Result<()> {
    let max = Some(within(resource, max));
    Ok(setrlimit(resource, Rlimit { current: max, maximum: max })?)
}

/// A limit of the host itself cannot be raised, and need not be.
fn within(resource: Resource, max: u64) -> u64 {
    getrlimit(resource).maximum.map_or(max, |hard| max.min(hard))
}

#[cfg(not(target_os = "linux"))]
fn enter(spec: &Spec) -> Result<(), Failed> {
    match spec.level {
        Level::None => Ok(()),
        _ => Err(("confine a program", std::io::Error::other("this system has no walls that longhaul knows"))),
    }
}

#[cfg(not(target_os = "linux"))]
fn confine(_spec: &Spec) -> Result<(), Failed> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn keep_signals(_level: Level) -> Result<(), Failed> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn end_all_held() {}

#[cfg(not(target_os = "linux"))]
fn start_backend(_spec: &Spec, _control: OwnedFd) -> Result<Child, Failed> {
    Err(("start the backend", std::io::Error::other("this system has no walls that longhaul knows")))
}

#[cfg(not(target_os = "linux"))]
fn keep_to_descriptors(_kept: Option<BorrowedFd<'_>>) -> Result<(), Failed> {
    Err(("confine this process", std::io::Error::other("this system has no walls that longhaul knows")))
}
