//! Compiling in a child process of the same binary, with a limit on memory and on processor time, and a
//! deadline behind them.
//!
//! wasmtime's own promises do not cover the compilation of hostile modules: a module may be made to take minutes and
//! gigabytes, or to break the compiler. So the host never compiles; it loads only code that its own child wrote. The
//! child reads the component from a pipe and writes code into a file that the host opened for it. Before it reads a
//! byte it confines itself to these descriptors: it opens no file and no connection, and from Linux 6.12 on signals no
//! other process. Without Landlock or seccomp it refuses to compile, unless [`CompileLimits::sandbox_min`] is `none`.
//! It leads a process group, which ends with it, and it ends with the host.

use crate::config::compile_config;
use crate::error::LoadError;
use crate::inspect::check_shape;
use longhaul_core::LimitHit;
use longhaul_core::process_registry::{Child as Listing, ChildKind, Registered as _};
use longhaul_core::text::{printable, truncate};
use longhaul_sandbox::{CompileLimits, Level};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// The start of the child: this very binary, with arguments that lead to [`compile_child`].
#[derive(Clone, Debug)]
pub struct Jail {
    /// The binary. An empty path stands for none: then nothing is compiled, and what the cache holds can be loaded.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
    /// Its limits.
    pub limits: CompileLimits,
}

impl Jail {
    /// Compiles `bytes` into the file `output`.
    pub(crate) async fn compile(&self, name: &str, bytes: &[u8], output: &Path) -> Result<(), LoadError> {
        let host = |reason: String| LoadError::Host { name: name.to_owned(), reason };
        let mut child =
            self.start(output).map_err(|error| host(format!("the compiler could not be started: {error}")))?;
        let entry = child.id().map(|pid| {
            let mut listed = Listing::new(pid, ChildKind::Compiler, name);
            listed.memory_bytes_max = Some(self.limits.memory_bytes_max);
            listed.enter()
        });
        let deadline = Duration::from_millis(self.limits.wall_ms_max);
        let ended = tokio::time::timeout(deadline, feed(&mut child, bytes)).await;
        let ended = ended.map_err(|_| reached(name, "wall_ms_max", self.limits.wall_ms_max))?;
        let ended = ended.map_err(|error| host(format!("what became of the compiler is not known: {error}")))?;
        if let Some(hit) = entry.as_ref().and_then(|entry| entry.hit()) {
            return Err(LoadError::Limit { name: name.to_owned(), hit: hit.clone() });
        }
        ended.result(name, &self.limits)
    }

    fn start(&self, output: &Path) -> std::io::Result<Child> {
        if self.program.as_os_str().is_empty() {
            return Err(std::io::Error::other("this process has no program for it; name one with LONGHAUL_PROGRAM"));
        }
        let limits = serde_json::to_string(&self.limits)?;
        Command::new(&self.program)
            .args(&self.arguments)
            .arg("--limits")
            .arg(limits)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(File::create(output)?)
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

/// The process group of the child, killed when it is dropped: no descendant of the child outlives it.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // The kernel does not reuse the child's number while the group has a member.
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn reached(name: &str, limit: &str, max: u64) -> LoadError {
    LoadError::Limit { name: name.to_owned(), hit: LimitHit::new(limit, max, max) }
}

/// The end of the child.
struct Ended {
    status: ExitStatus,
    text: String,
}

impl Ended {
    /// The result of the compilation.
    fn result(self, name: &str, limits: &CompileLimits) -> Result<(), LoadError> {
        let (name, reason) = (name.to_owned(), truncate(self.text.trim(), 2_000));
        match self.status.code() {
            Some(0) => return Ok(()),
            Some(REFUSED) => return Err(LoadError::Compile { name, reason }),
            Some(FAILED) => return Err(LoadError::Host { name, reason }),
            _ => {}
        }
        if self.status.signal() == Some(Signal::XCPU.as_raw()) {
            return Err(reached(&name, "cpu_ms_max", limits.cpu_ms_max));
        }
        if self.status.code() == Some(CODE_TOO_LONG) || self.status.signal() == Some(Signal::XFSZ.as_raw()) {
            return Err(reached(&name, "code_bytes_max", limits.code_bytes_max));
        }
        // Only Rust's runtime reports a death by its stack or its memory, in its last output.
        if reason.contains("has overflowed its stack") {
            let stack_bytes_max = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
            return Err(LoadError::TooDeep { name, stack_bytes_max });
        }
        if self.status.code() == Some(OUT_OF_MEMORY) || reason.contains("memory allocation of ") {
            return Err(reached(&name, "memory_bytes_max", limits.memory_bytes_max));
        }
        Err(LoadError::Died { name, said: printable(&format!("{} {reason}", self.status), 500).trim().to_owned() })
    }
}

async fn feed(child: &mut Child, bytes: &[u8]) -> std::io::Result<Ended> {
    let (group, stdin, stderr) = (Group::of(child), child.stdin.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // The child may refuse before it has read all; its own output gives the reason.
            let _ = stdin.write_all(bytes).await;
        }
    };
    let read = async {
        let mut text = Vec::new();
        if let Some(stderr) = stderr {
            let mut bounded = tokio::io::AsyncReadExt::take(stderr, 64 << 10);
            tokio::io::AsyncReadExt::read_to_end(&mut bounded, &mut text).await?;
        }
        std::io::Result::Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let wait = async {
        let status = child.wait().await;
        // Otherwise a process that still holds the child's pipes would be awaited.
        drop(group);
        status
    };
    let ((), text, status) = tokio::join!(write, read, wait);
    Ok(Ended { status: status?, text: text? })
}

/// The child's exit code when standard error names a fault of the module.
const REFUSED: i32 = 3;

/// The exit code when it names a fault of the host.
const FAILED: i32 = 4;

/// The exit code when it has no more memory and could still report it; otherwise it aborts.
const OUT_OF_MEMORY: i32 = 5;

/// The exit code when its code would be longer than the limit.
const CODE_TOO_LONG: i32 = 6;

/// The reason why the child did not compile: its exit code and its output.
type Fault = (i32, String);

/// The child: reads a component from standard input and writes compiled code to standard output.
///
/// Returns the process's exit code.
#[must_use]
pub fn compile_child(limits: &str) -> i32 {
    match compile_within(limits) {
        Ok(()) => 0,
        Err((code, reason)) => {
            eprintln!("{reason}");
            code
        }
    }
}

fn compile_within(limits: &str) -> Result<(), Fault> {
    let limits: CompileLimits =
        serde_json::from_str(limits).map_err(|error| (FAILED, format!("the limits cannot be read: {error}")))?;
    if limits.sandbox_min != Level::None {
        longhaul_sandbox::confine_to_descriptors().map_err(|error| {
            let reason = format!(
                "the compiler could not be confined: {error}; allow Landlock and seccomp (kernel 5.13 or newer, booted \
                 with lsm=landlock,...), or compile without them: [compile] sandbox_min = \"none\""
            );
            (FAILED, reason)
        })?;
    }
    confine(&limits).map_err(|error| (FAILED, format!("the limits could not be set: {error}")))?;
    end_with_the_host();
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(limits.bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|error| of_system("cannot read the component", &error))?;
    check_shape("child", &bytes, &limits).map_err(|error| (REFUSED, error.to_string()))?;
    let engine = wasmtime::Engine::new(&compile_config()).map_err(|error| of_wasmtime(FAILED, &error))?;
    let code = engine.precompile_component(&bytes).map_err(|error| of_wasmtime(REFUSED, &error))?;
    if code.len() as u64 > limits.code_bytes_max {
        return Err((CODE_TOO_LONG, format!("its compiled code has {} bytes", code.len())));
    }
    // Bypasses the buffer of standard output, which looks for the ends of lines.
    let file = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let written = file.and_then(|mut file| file.write_all(&code));
    written.map_err(|error| of_system("cannot write the compiled code", &error))
}

fn of_system(doing: &str, error: &std::io::Error) -> Fault {
    let code = if error.kind() == ErrorKind::OutOfMemory { OUT_OF_MEMORY } else { FAILED };
    (code, format!("{doing}: {error}"))
}

fn of_wasmtime(code: i32, error: &wasmtime::Error) -> Fault {
    (if error.is::<wasmtime::OutOfMemory>() { OUT_OF_MEMORY } else { code }, format!("{error:#}"))
}

fn confine(limits: &CompileLimits) -> std::io::Result<()> {
    only(Resource::As, limits.memory_bytes_max)?;
    only(Resource::Core, 0)?;
    // A compromised compiler could fill the disk.
    only(Resource::Fsize, limits.code_bytes_max)?;
    let seconds = limits.cpu_ms_max.div_ceil(1_000);
    // The second limit kills without a reason, so it is higher than the first.
    let kill = within(Resource::Cpu, seconds.saturating_add(1));
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds.min(kill)), maximum: Some(kill) })?;
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

/// Ends this process once the reader of its standard error is gone: then the host is gone, and nothing bounds its wall
/// time. A terminal that ends the host does not end this process, which is in another process group.
fn end_with_the_host() {
    let wait = || {
        let stderr = std::io::stderr();
        let mut waited = [PollFd::new(&stderr, PollFlags::empty())];
        if matches!(rustix::event::poll(&mut waited, None), Ok(1..)) {
            std::process::exit(FAILED);
        }
    };
    // Without the thread the limits of this process end it.
    let _ = std::thread::Builder::new().name("host".into()).spawn(wait);
}
