//! One start of a program: at the highest level that the system gives, watched, and ended at a limit.

use crate::backend::Backend;
use crate::error::is_full;
use crate::output::{Captured, DRAIN};
use crate::program::{NODE_MODULES, ProgramInput, ProgramOutput as OutputKind};
use crate::spec::{BackendFiles, CROWDED, END, REFUSED, Role, SAID, Spec, VARIABLE};
use crate::toolchains::ToolChains;
use crate::{
    Level, Program, ProgramLimits, ProgramReport, SandboxError, SandboxHost, ScratchDirectory, descriptors, modules,
    output, remove_all, sealed,
};
use longhaul_core::LimitHit;
use longhaul_core::output::StandardStream;
use longhaul_core::process_registry::{Child as Listing, Registered as _, RegistryEntry};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Component, Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout, Command};

/// The longest time that the keeper processes may take to end a program without a namespace.
const ENDING: Duration = Duration::from_secs(10);

/// The longest time that a child may take to report whether it can confine itself.
const START: Duration = Duration::from_secs(30);

/// Interval of disk checks.
const DISK_INTERVAL: Duration = Duration::from_millis(500);

/// The number of processes of a program that may use the memory limit of a process at the same time.
const PROCESSES_AT_THEIR_MOST: u64 = 4;

/// Runs a program in a scratch directory of its own, and removes the directory afterwards.
///
/// # Errors
/// When it did not run. A program that fails, or reaches a limit, is a report.
pub async fn run(host: &SandboxHost, program: &Program) -> Result<ProgramReport, SandboxError> {
    let room = ScratchDirectory::new(host)?;
    run_in(host, room.path(), program).await
}

/// Runs a program in the scratch directory `scratch`, which has the directories `work`, `home`, `tmp` and `dev`, and
/// leaves the program's files there.
///
/// # Errors
/// When it did not run. A program that fails, or reaches a limit, is a report.
pub async fn run_in(host: &SandboxHost, scratch: &Path, program: &Program) -> Result<ProgramReport, SandboxError> {
    let started = Instant::now();
    let launched = Launch { host, scratch, program }.at_the_best_level().await?;
    let ended = launched.end(scratch, program).await;
    let (report, status) = ended.map_err(|error| failed(program, &error))?;
    tracing::debug!(program = program.name, ?status, "a program ended");
    Ok(ProgramReport { wall_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX), ..report })
}

/// One program in one directory.
pub(crate) struct Launch<'a> {
    pub(crate) host: &'a SandboxHost,
    /// Has `work`, `home`, `tmp` and `dev`.
    pub(crate) scratch: &'a Path,
    pub(crate) program: &'a Program,
}

/// A started program.
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) group: Group,
    /// The child ends when this is dropped.
    pub(crate) control: UnixStream,
    pub(crate) input: Option<pipe::Sender>,
    pub(crate) piped_output: Option<ChildStdout>,
    pub(crate) stdout: output::Output,
    pub(crate) stderr: output::Output,
    /// None: it had already ended.
    pub(crate) entry: Option<RegistryEntry<Listing>>,
    pub(crate) level: Level,
}

/// The result of one start: a running program, or the reason of a child that started none.
type Attempt = Result<Launched, String>;

fn failed(program: &Program, error: &std::io::Error) -> SandboxError {
    SandboxError::Host { name: program.name.clone(), why: error.to_string(), is_full: is_full(error) }
}

impl Launch<'_> {
    /// Tries the highest level first, and none below the lowest accepted one. A child that refuses has started nothing.
    pub(crate) async fn at_the_best_level(&self) -> Result<Launched, SandboxError> {
        self.check_program()?;
        self.check_granted()?;
        let level_min = self.program.level_min;
        let tools = ToolChains::find(self.program, &self.path(), self.host);
        let mut reason = String::new();
        for level in level_min.tried() {
            match self.at(level, &tools).await.map_err(|error| failed(self.program, &error))? {
                Ok(launched) => return Ok(launched),
                Err(why) => {
                    tracing::debug!(program = self.program.name, %level, why, "sandbox level refused");
                    reason = why;
                }
            }
        }
        if reason.is_empty() {
            return Err(failed(self.program, &std::io::Error::other("the child said nothing")));
        }
        Err(SandboxError::Refused { name: self.program.name.clone(), level_min, why: reason })
    }

    /// Checked here and not in the child, whose messages a program could imitate.
    fn check_program(&self) -> Result<(), SandboxError> {
        let program = self.program.argv.first().map_or("", String::as_str);
        let is_there = if program.contains('/') {
            let path = self.work().join(program);
            // A link may lead into the sandbox's own directories.
            path.is_file() || path.is_symlink()
        } else {
            std::env::split_paths(&self.path()).any(|dir| dir.join(program).is_file())
        };
        let absent = || SandboxError::NoProgram { name: self.program.name.clone(), program: program.to_owned() };
        if is_there { Ok(()) } else { Err(absent()) }
    }

    /// Checked before any level is tried: one level would be refused for it, and a lower one would start without the
    /// file.
    fn check_granted(&self) -> Result<(), SandboxError> {
        let Program { name, read, write, .. } = self.program;
        let granted = read.iter().map(|path| ("read", path)).chain(write.iter().map(|path| ("write", path)));
        for (setting, path) in granted {
            let is_absent =
                |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            if without_dots(path).metadata().is_err_and(is_absent) {
                return Err(SandboxError::Absent { name: name.clone(), setting, path: path.clone() });
            }
        }
        Ok(())
    }

    fn path(&self) -> String {
        let set = self.program.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
        set.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
    }

    fn work(&self) -> PathBuf {
        self.program.tree.clone().unwrap_or_else(|| self.scratch.join("work"))
    }

    async fn at(&self, level: Level, tools: &ToolChains) -> std::io::Result<Attempt> {
        let backend = match level.backend().map(Backend::find) {
            Some(Err(why)) => return Ok(Err(why)),
            found => found.and_then(Result::ok),
        };
        let (ours, theirs) = StdUnixStream::pair()?;
        let (read, write) = self.input()?;
        descriptors::send(&ours, read.as_ref().map(|read| read.as_fd()))?;
        let spec = self.spec(level, backend, tools, self.place_modules()?);
        let mut child = self.start(spec, tools, theirs.into())?;
        // The child owns the passed descriptor: a program must see the end of its input.
        drop(read);
        let group = Group::of(&child);
        let entry = self.listed(&child, level);
        let (said, first_line) = tokio::sync::oneshot::channel();
        let bytes_max = self.program.limits.output_bytes_max;
        let is_piped = self.program.output == OutputKind::Pipe;
        let piped_output = child.stdout.take_if(|_| is_piped);
        let redaction = || self.host.redact.as_ref()?.stream();
        let sink = |stream| self.program.sink.clone().map(|sink| (stream, sink));
        let (of_output, of_error) = (sink(StandardStream::Output), sink(StandardStream::Error));
        let stdout = output::Output::read(child.stdout.take(), None, bytes_max, redaction(), of_output);
        let stderr = output::Output::read(child.stderr.take(), Some(said), bytes_max, redaction(), of_error);
        let said = tokio::time::timeout(START, first_line).await.ok().and_then(Result::ok).unwrap_or_default();
        if !output::is_ready(&said) {
            return Ok(Err(said.trim_start_matches(SAID).trim_start_matches(REFUSED).trim().to_owned()));
        }
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        let input = write.map(pipe::Sender::from_owned_fd).transpose()?;
        Ok(Ok(Launched { child, group, control, input, piped_output, stdout, stderr, entry, level }))
    }

    /// Places links to the dependencies of the program in its work directory, and returns their directory.
    fn place_modules(&self) -> std::io::Result<Option<&Path>> {
        let modules = self.program.node_modules.as_deref().filter(|_| self.program.tree.is_none());
        let Some(modules) = modules else { return Ok(None) };
        let place = self.work().join(NODE_MODULES);
        let failed = |error: std::io::Error| {
            let why = format!("cannot show the dependencies in `{}`: {error}", modules.display());
            std::io::Error::new(error.kind(), why)
        };
        // Left from a refused level.
        if place.symlink_metadata().is_ok() {
            remove_all(&place).map_err(failed)?;
        }
        modules::link(modules, &place).map_err(failed)?;
        Ok(Some(modules))
    }

    /// Both ends of the program's standard input, if it is a pipe.
    fn input(&self) -> std::io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
        if self.program.input == ProgramInput::Null {
            return Ok((None, None));
        }
        let (read, write) = std::io::pipe()?;
        Ok((Some(read.into()), Some(write.into())))
    }

    fn start(&self, spec: Spec, tools: &ToolChains, control: OwnedFd) -> std::io::Result<Child> {
        let mut command = Command::new(sealed::copy_of(&self.host.program)?);
        command.arg0(&self.host.program).args(&self.host.prefix_args).arg(serde_json::to_string(&spec)?);
        command.env_clear().envs(self.variables(&spec, tools)).current_dir(self.scratch);
        command.stdin(Stdio::from(control)).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    }

    /// The program's variables, under names that only [`crate::child`] reads: the processes that start it are not
    /// confined yet, and must not obey `LD_PRELOAD` or any other variable.
    fn variables(&self, spec: &Spec, tools: &ToolChains) -> impl Iterator<Item = (String, OsString)> {
        let inside = spec.scratch_inside();
        let usual = [
            ("LANG", OsString::from("C.UTF-8")),
            ("PATH", self.path().into()),
            ("HOME", inside.join("home").into()),
            ("TMPDIR", inside.join("tmp").into()),
        ];
        let set = tools.env.iter().chain(&self.program.env).map(|(name, value)| (name.as_str(), value.into()));
        let all: BTreeMap<&str, OsString> = usual.into_iter().chain(set).collect();
        let hidden: Vec<_> = all.into_iter().map(|(name, value)| (format!("{VARIABLE}{name}"), value)).collect();
        hidden.into_iter()
    }

    fn spec(&self, level: Level, backend: Option<PathBuf>, tools: &ToolChains, modules: Option<&Path>) -> Spec {
        let Program { argv, tree, cwd, read, write, limits, .. } = self.program;
        let write: Vec<PathBuf> = write.iter().map(|path| without_dots(path)).collect();
        let shown = read.iter().chain(&tools.read).map(PathBuf::as_path).chain(modules);
        Spec {
            level,
            role: Role::Outer,
            nice: 0,
            prefix_args: self.host.prefix_args.clone(),
            argv: argv.clone(),
            backend: backend.map(|program| BackendFiles { program, binary: self.host.program.clone() }),
            // The real path, under which the kernel lists its mounts.
            scratch: self.scratch.canonicalize().unwrap_or_else(|_| self.scratch.to_owned()),
            tree: tree.clone(),
            cwd: Path::new(".").join(cwd),
            // A writable path is readable; granted as both it would be neither.
            read: shown.map(without_dots).filter(|path| !write.contains(path)).collect(),
            write,
            memory_bytes_max: limits.memory_bytes_max,
            cpu_seconds_max: limits.cpu_seconds_max,
            processes_max: limits.processes_max,
            file_bytes_max: limits.file_bytes_max,
        }
    }

    /// Registers the program with its limits in the list of the host's children.
    fn listed(&self, child: &Child, level: Level) -> Option<RegistryEntry<Listing>> {
        let ProgramLimits { memory_bytes_max, processes_max, .. } = self.program.limits;
        // Lists add quotes.
        let mut listed = Listing::new(child.id()?, self.program.kind, self.program.name.replace('`', ""));
        listed.place = self.program.tree.clone();
        listed.memory_bytes_max = memory_bytes_max.checked_mul(PROCESSES_AT_THEIR_MOST);
        // A backend enforces the program's own number, and has dozens of threads and processes itself.
        listed.processes_max = processes_max.checked_add(level.keepers()).filter(|_| level.backend().is_none());
        Some(listed.enter())
    }
}

/// A path resolved by its words: mounted below another root, one with `..` would lead out of that.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

impl Launched {
    /// Waits for its end, or ends it at a limit.
    async fn end(mut self, scratch: &Path, program: &Program) -> std::io::Result<(ProgramReport, Option<ExitStatus>)> {
        let (status, hit) = self.wait(scratch, &program.limits).await?;
        let ended_for = self.entry.as_ref().and_then(|entry| entry.hit().cloned());
        let hit = hit.or(ended_for);
        if status.is_some() {
            self.group.disarm();
        }
        // Ends remaining processes.
        drop((self.group, self.control));
        let (stdout, stderr) = (self.stdout.end().await, self.stderr.end().await);
        let code = status.map_or(-1, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        let hit = hit.or_else(|| signalled(&program.limits, status?, code));
        Ok((report(if hit.is_some() { -1 } else { code }, hit, stdout, stderr, self.level), status))
    }

    /// Ends all processes at a limit: asked first if there is a grace period. No status: it was killed, and has still
    /// not exited.
    async fn wait(
        &mut self,
        scratch: &Path,
        limits: &ProgramLimits,
    ) -> std::io::Result<(Option<ExitStatus>, Option<LimitHit>)> {
        let ProgramLimits { wall_ms_max, grace_ms, disk_bytes_max, .. } = *limits;
        let deadline = tokio::time::sleep(Duration::from_millis(wall_ms_max));
        let hit = tokio::select! {
            status = self.child.wait() => return Ok((Some(status?), None)),
            () = deadline => LimitHit::new("wall_ms_max", wall_ms_max, wall_ms_max),
            used = disk_used_up(scratch, disk_bytes_max) => LimitHit::new("disk_bytes_max", used, disk_bytes_max),
        };
        if grace_ms > 0 {
            self.control.write_all(&[END]).await?;
            let grace = Duration::from_millis(grace_ms);
            if let Ok(status) = tokio::time::timeout(grace, self.child.wait()).await {
                return Ok((Some(status?), Some(hit)));
            }
        }
        if !self.level.has_namespaces() {
            // Only its keepers can end the program; this tells them that the host waits no more.
            let _ = self.control.shutdown().await;
            if let Ok(status) = tokio::time::timeout(ENDING, self.child.wait()).await {
                return Ok((Some(status?), Some(hit)));
            }
        }
        self.group.kill();
        match tokio::time::timeout(DRAIN, self.child.wait()).await {
            Ok(status) => Ok((Some(status?), Some(hit))),
            Err(_) => Ok((None, Some(hit))),
        }
    }
}

fn report(exit_code: i32, hit: Option<LimitHit>, stdout: Captured, stderr: Captured, level: Level) -> ProgramReport {
    let ((stdout, out_cut), (stderr, err_cut)) = (stdout.text(), stderr.text());
    ProgramReport { exit_code, hit, stdout, stderr, truncated: out_cut || err_cut, level, wall_ms: 0 }
}

/// The limit behind a signal by which the kernel or the child ended the program.
fn signalled(limits: &ProgramLimits, status: ExitStatus, code: i32) -> Option<LimitHit> {
    let hit = |name, max| Some(LimitHit::new(name, max, max));
    if status.signal() == Some(CROWDED.as_raw()) {
        return hit("processes_max", limits.processes_max);
    }
    match code.checked_sub(128)? {
        24 => hit("cpu_seconds_max", limits.cpu_seconds_max),
        25 => hit("file_bytes_max", limits.file_bytes_max),
        _ => None,
    }
}

/// Returns only when the disk below `scratch` has lost too much space; returns how much.
pub(crate) async fn disk_used_up(scratch: &Path, bytes_max: u64) -> u64 {
    let free = || rustix::fs::statvfs(scratch).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let before = free();
    loop {
        tokio::time::sleep(DISK_INTERVAL).await;
        let used = before.zip(free()).map_or(0, |(before, now)| before.saturating_sub(now));
        if used > bytes_max {
            return used;
        }
    }
}

/// A process group, killed when it is dropped: no process of a program outlives it.
pub(crate) struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // The kernel does not reuse the child's number while the group has a member.
        Self(child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)))
    }

    pub(crate) fn pid(&self) -> Option<rustix::process::Pid> {
        self.0
    }

    /// The child has ended: the group is empty, and its number may be reused.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }

    fn kill(&self) {
        if let Some(group) = self.0 {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
