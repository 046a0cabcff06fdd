//! One check on one copy: started in the best sandbox that the system gives, watched, and killed at a limit.

use super::output::{Captured, Output};
use super::{CheckHost, NativeCheck, NativeError};
use crate::sandbox::{REFUSED, SAID, SCRATCH, Sandbox, Spec};
use longhaul_core::LimitHit;
use longhaul_core::work::CheckReport;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Bytes of one file that a check writes. A debug build's archives have hundreds of megabytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// How long output is waited for after the check has ended: somebody else may hold the pipe.
pub(super) const DRAIN: Duration = Duration::from_secs(2);

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(500);

/// One check on one copy.
pub(super) struct Run<'a> {
    pub(super) host: &'a CheckHost,
    pub(super) name: &'a str,
    pub(super) check: &'a NativeCheck,
    pub(super) scratch: &'a Path,
}

/// How one start ended.
enum Ended {
    /// Nothing ran; why.
    Refused(String),
    Ran(CheckReport, u64),
}

impl Run<'_> {
    /// Asks for the strongest sandbox first. A child that is refused has started nothing.
    pub(super) async fn in_the_best_sandbox(&self) -> Result<(CheckReport, Sandbox, u64), NativeError> {
        self.check_program()?;
        let mut why = String::new();
        for sandbox in [Sandbox::Full, Sandbox::Namespaces, Sandbox::None] {
            match self.once(sandbox).await? {
                Ended::Ran(report, wall_ms) => return Ok((report, sandbox, wall_ms)),
                Ended::Refused(reason) => {
                    let reason = if reason.is_empty() { "the child said nothing".to_owned() } else { reason };
                    tracing::debug!(check = self.name, ?sandbox, reason, "sandbox refused");
                    why = reason;
                }
            }
        }
        Err(self.failed(why))
    }

    fn failed(&self, why: impl ToString) -> NativeError {
        NativeError::Host { name: self.name.to_owned(), why: why.to_string() }
    }

    /// Looked for here and not left to the child, whose words a check could imitate.
    fn check_program(&self) -> Result<(), NativeError> {
        let program = self.check.argv.first().map_or("", String::as_str);
        let is_there = if program.contains('/') {
            let path = self.scratch.join("work").join(program);
            // A link may lead into the sandbox's own directories.
            path.is_file() || path.is_symlink()
        } else {
            std::env::split_paths(&self.path()).any(|dir| dir.join(program).is_file())
        };
        let absent = || NativeError::NoProgram { name: self.name.to_owned(), program: program.to_owned() };
        if is_there { Ok(()) } else { Err(absent()) }
    }

    fn path(&self) -> String {
        let set = self.check.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
        set.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
    }

    async fn once(&self, sandbox: Sandbox) -> Result<Ended, NativeError> {
        let started = Instant::now();
        let mut child = self.start(sandbox).map_err(|error| self.failed(error))?;
        let group = Group::of(&child);
        // The child ends when this does (see `sandbox.rs`); left in `child`, waiting would close it.
        let lifeline = child.stdin.take();
        let (said, first_line) = tokio::sync::oneshot::channel();
        let stdout = Output::read(child.stdout.take(), None, self.check.output_bytes_max);
        let stderr = Output::read(child.stderr.take(), Some(said), self.check.output_bytes_max);
        let (status, hit) = self.wait(&mut child).await.map_err(|error| self.failed(error))?;
        // What the check left running, where there is no namespace to take it along.
        drop((group, lifeline));
        let said = tokio::time::timeout(DRAIN, first_line).await.ok().and_then(Result::ok).unwrap_or_default();
        if hit.is_none() && !said.starts_with(&format!("{SAID}ready")) {
            return Ok(Ended::Refused(said.trim_start_matches(SAID).trim_start_matches(REFUSED).trim().to_owned()));
        }
        let (stdout, stderr) = (stdout.end().await, stderr.end().await);
        let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Ended::Ran(self.report(status, hit, stdout, stderr), wall_ms))
    }

    fn start(&self, sandbox: Sandbox) -> std::io::Result<Child> {
        let inside = if sandbox == Sandbox::Full { Path::new(SCRATCH) } else { self.scratch };
        let mut command = Command::new(&self.host.program);
        command.args(&self.host.prefix_args).arg(serde_json::to_string(&self.spec(sandbox))?);
        command.env_clear().env("LANG", "C.UTF-8").env("PATH", self.path());
        command.env("HOME", inside.join("home")).env("TMPDIR", inside.join("tmp"));
        if let Some(rustup) = rustup_home() {
            command.env("RUSTUP_HOME", rustup);
        }
        command.envs(&self.check.env).current_dir(self.scratch.join("work"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    }

    fn spec(&self, sandbox: Sandbox) -> Spec {
        let cores = std::thread::available_parallelism().map_or(1, |cores| u64::try_from(cores.get()).unwrap_or(1));
        Spec {
            sandbox,
            is_inner: false,
            prefix_args: self.host.prefix_args.clone(),
            argv: self.check.argv.clone(),
            scratch: self.scratch.to_owned(),
            hidden: self.host.hidden.iter().cloned().chain(secrets_in_home()).collect(),
            memory_bytes_max: self.check.memory_bytes_max,
            cpu_seconds_max: self.check.wall_ms_max.div_ceil(1_000).saturating_mul(cores),
            processes_max: self.check.processes_max,
            file_bytes_max: FILE_BYTES_MAX.min(self.check.disk_bytes_max),
        }
    }

    /// Waits for the child, and kills all of it at a limit.
    async fn wait(&self, child: &mut Child) -> std::io::Result<(std::process::ExitStatus, Option<LimitHit>)> {
        let deadline = tokio::time::sleep(Duration::from_millis(self.check.wall_ms_max));
        let hit = tokio::select! {
            status = child.wait() => return Ok((status?, None)),
            () = deadline => LimitHit::new("wall_ms_max", self.check.wall_ms_max, self.check.wall_ms_max),
            used = self.disk_used_up() => LimitHit::new("disk_bytes_max", used, self.check.disk_bytes_max),
        };
        Group::of(child).kill();
        Ok((child.wait().await?, Some(hit)))
    }

    /// Ends only when the disk has lost too much; answers how much.
    async fn disk_used_up(&self) -> u64 {
        let free = || rustix::fs::statvfs(self.scratch).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let before = free();
        loop {
            tokio::time::sleep(DISK_INTERVAL).await;
            let used = before.zip(free()).map_or(0, |(before, now)| before.saturating_sub(now));
            if used > self.check.disk_bytes_max {
                return used;
            }
        }
    }

    fn report(
        &self,
        status: std::process::ExitStatus,
        hit: Option<LimitHit>,
        stdout: Captured,
        stderr: Captured,
    ) -> CheckReport {
        use std::os::unix::process::ExitStatusExt;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let hit = hit.or_else(|| self.signalled(code));
        let (stdout, out_cut) = stdout.text();
        let (mut stderr, err_cut) = stderr.text();
        if let Some(hit) = &hit {
            let line_end = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
            stderr.push_str(&format!(
                "{line_end}{hit}; raise it in [checks.{}], or make the check use less\n",
                self.name
            ));
        }
        CheckReport {
            name: self.name.to_owned(),
            passed: hit.is_none() && code == 0,
            exit_code: if hit.is_some() { -1 } else { code },
            stdout,
            stderr,
            truncated: out_cut || err_cut,
        }
    }

    /// The two signals by which the kernel tells a limit.
    fn signalled(&self, code: i32) -> Option<LimitHit> {
        let spec = self.spec(Sandbox::None);
        let hit = |name, max| Some(LimitHit::new(name, max, max));
        match code.checked_sub(128)? {
            24 => hit("cpu_seconds_max", spec.cpu_seconds_max),
            25 => hit("file_bytes_max", spec.file_bytes_max),
            _ => None,
        }
    }
}

/// A process group, killed when it is dropped: nothing of a check outlives it.
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // Its number is the child's, which the kernel gives to nobody while the group has a member.
        Self(child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)))
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

/// Toolchains that rustup installed are found by HOME, which a check does not have.
fn rustup_home() -> Option<PathBuf> {
    let set = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup"));
    set.or_else(usual).filter(|dir| dir.is_dir())
}

/// Where people keep keys. A check has no network, but what it prints goes to a model.
fn secrets_in_home() -> impl Iterator<Item = PathBuf> {
    const NAMES: &[&str] = &[
        ".aws",
        ".azure",
        ".cargo/credentials.toml",
        ".config/gcloud",
        ".config/gh",
        ".docker",
        ".git-credentials",
        ".gnupg",
        ".kube",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".ssh",
    ];
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.into_iter().flat_map(|home| NAMES.iter().map(move |name| home.join(name)))
}
