//! Compiling in a child process of the same binary, with a limit on memory and on processor time, and a
//! deadline behind them.
//!
//! Compiling hostile modules is not covered by wasmtime's own promises: a module may be made to take
//! minutes and gigabytes, or to break the compiler. So the host never compiles; it loads only what
//! its own child wrote. The child reads the component from a pipe and writes code into a file that the host opened for
//! it. Before it reads a byte it confines itself to these descriptors: it opens no file and no connection, and from
//! Linux 6.12 on signals no other process. Where Landlock or seccomp is missing it refuses to compile, unless
//! [`CompileLimits::sandbox_min`] is `none`.

use crate::config::compile_config;
use crate::error::LoadError;
use crate::inspect::check_shape;
use longhaul_core::LimitHit;
use longhaul_core::census::{Child as Listing, ChildKind, Listed as _};
use longhaul_core::text::truncate;
use longhaul_sandbox::Level;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// What compiling one plugin may cost. Written in `longhaul.toml` under `[compile]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompileLimits {
    /// Bytes of the file. Default 128 MiB; an interpreter has 20 to 30.
    pub bytes_max: u64,
    /// Functions in all modules. Default 200 000; an interpreter has about 20 000.
    pub functions_max: u64,
    /// Components and modules within each other. Default 20.
    pub nesting_max: u64,
    /// Imports of the component, and exports. Default 10 000; a plugin has some 30. Their names are kept.
    pub interfaces_max: u64,
    /// Memory of the child, in bytes of address space. Default 6 GiB.
    pub memory_bytes_max: u64,
    /// Time of the child on a processor, in milliseconds. Default 180 000; an interpreter takes about
    /// 10 000. Counted in whole seconds, rounded up, so the child ends up to a second late. It holds on a
    /// busy machine as on an idle one.
    pub cpu_ms_max: u64,
    /// Time on the clock, in milliseconds. Default 1 800 000. For a child that stands still: one that
    /// computes ends at `cpu_ms_max`.
    pub wall_ms_max: u64,
    /// The least that holds the child besides these limits. Default `landlock`: it keeps its two pipes and the file of
    /// code, opens no file and no connection, and from Linux 6.12 on signals no other process. Where Landlock or
    /// seccomp is missing it refuses to compile. Any other level asks for the same; `none` asks for nothing more than
    /// the limits, and is the default on systems other than Linux.
    pub sandbox_min: Level,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            bytes_max: 128 << 20,
            functions_max: 200_000,
            nesting_max: 20,
            interfaces_max: 10_000,
            memory_bytes_max: 6 << 30,
            cpu_ms_max: 180_000,
            wall_ms_max: 1_800_000,
            sandbox_min: if cfg!(target_os = "linux") { Level::Landlock } else { Level::None },
        }
    }
}

/// How the child is started: this very binary, with arguments that lead to [`compile_child`].
#[derive(Clone, Debug)]
pub struct Jail {
    /// The binary.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
    /// What it may use.
    pub limits: CompileLimits,
}

impl Jail {
    /// Compiles `bytes` into the file `output`.
    pub(crate) async fn compile(&self, name: &str, bytes: &[u8], output: &Path) -> Result<(), LoadError> {
        let failed = |reason: String| LoadError::Compile { name: name.to_owned(), reason };
        let mut child =
            self.start(output).map_err(|error| failed(format!("the compiler could not be started: {error}")))?;
        let entry = child.id().map(|pid| {
            let mut listed = Listing::new(pid, ChildKind::Compiler, name);
            listed.memory_bytes_max = Some(self.limits.memory_bytes_max);
            listed.enter()
        });
        let hit =
            |limit: &str, max: u64| LoadError::Limit { name: name.to_owned(), hit: LimitHit::new(limit, max, max) };
        let deadline = Duration::from_millis(self.limits.wall_ms_max);
        let done = tokio::time::timeout(deadline, feed(&mut child, bytes)).await;
        let done = done.map_err(|_| hit("wall_ms_max", self.limits.wall_ms_max))?;
        let said = done.map_err(|error| failed(error.to_string()))?;
        if let Some(hit) = entry.as_ref().and_then(|entry| entry.hit()) {
            return Err(LoadError::Limit { name: name.to_owned(), hit: hit.clone() });
        }
        match said.status {
            status if status.success() => Ok(()),
            status if status.signal() == Some(Signal::XCPU.as_raw()) => Err(hit("cpu_ms_max", self.limits.cpu_ms_max)),
            _ => Err(failed(said.reason(self.limits.memory_bytes_max))),
        }
    }

    fn start(&self, output: &Path) -> std::io::Result<Child> {
        let limits = serde_json::to_string(&self.limits)?;
        Command::new(&self.program)
            .args(&self.arguments)
            .arg("--limits")
            .arg(limits)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(File::create(output)?)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// How the child ended.
struct Said {
    status: ExitStatus,
    text: String,
}

impl Said {
    fn reason(&self, memory_bytes_max: u64) -> String {
        match self.status.code() {
            Some(REFUSED) => truncate(self.text.trim(), 2_000),
            _ => format!(
                "the compiler died ({}), {}",
                truncate(self.text.lines().last().unwrap_or("killed"), 300),
                self.cause(memory_bytes_max)
            ),
        }
    }

    /// Why a child that said nothing itself ended, by what its runtime said.
    fn cause(&self, memory_bytes_max: u64) -> String {
        if self.text.contains("has overflowed its stack") {
            return "for want of stack: the component nests too deep".to_owned();
        }
        format!("most likely at its memory limit of {memory_bytes_max} bytes")
    }
}

async fn feed(child: &mut Child, bytes: &[u8]) -> std::io::Result<Said> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // The child may refuse before it has read all; its own words say why.
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
    let ((), text) = tokio::join!(write, read);
    let status = child.wait().await?;
    Ok(Said { status, text: text? })
}

/// Bytes of compiled code, which stay on the disk. CPython's has some 100 MB; two bytes far from each other in the memory
/// of a module become an image of all between them.
const CODE_BYTES_MAX: usize = 1 << 30;

/// The child's exit code when it says on standard error what is wrong with the module.
const REFUSED: i32 = 3;

/// The child: reads a component from standard input and writes compiled code to standard output.
///
/// Answers the process's exit code.
#[must_use]
pub fn compile_child(limits: &str) -> i32 {
    match compile_within(limits) {
        Ok(()) => 0,
        Err(reason) => {
            eprintln!("{reason}");
            REFUSED
        }
    }
}

fn compile_within(limits: &str) -> Result<(), String> {
    let limits: CompileLimits = serde_json::from_str(limits).map_err(|error| error.to_string())?;
    if limits.sandbox_min != Level::None {
        longhaul_sandbox::confine_to_descriptors().map_err(|error| {
            format!(
                "the compiler could not be confined: {error}; allow Landlock and seccomp (kernel 5.13 or newer, booted \
                 with lsm=landlock,...), or compile without them: [compile] sandbox_min = \"none\""
            )
        })?;
    }
    confine(&limits).map_err(|error| format!("the limits could not be set: {error}"))?;
    let mut bytes = Vec::new();
    std::io::stdin().take(limits.bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    check_shape("child", &bytes, &limits).map_err(|error| error.to_string())?;
    let engine = wasmtime::Engine::new(&compile_config()).map_err(|error| error.to_string())?;
    let code = engine.precompile_component(&bytes).map_err(|error| format!("{error:#}"))?;
    if code.len() > CODE_BYTES_MAX {
        return Err(format!("its compiled code has {} bytes, more than {CODE_BYTES_MAX}", code.len()));
    }
    // Not through the buffer of standard output, which looks for the ends of lines.
    let file = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let written = file.and_then(|mut file| file.write_all(&code));
    written.map_err(|error| format!("cannot write the compiled code: {error}"))
}

fn confine(limits: &CompileLimits) -> std::io::Result<()> {
    let only = |max: u64| Rlimit { current: Some(max), maximum: Some(max) };
    setrlimit(Resource::As, only(limits.memory_bytes_max))?;
    setrlimit(Resource::Core, only(0))?;
    let seconds = limits.cpu_ms_max.div_ceil(1_000);
    // The second limit kills without saying why, so it stands behind the first.
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) })?;
    Ok(())
}
