//! One program in one directory: started in the best sandbox that the system gives, watched, and ended at a limit.

use super::output::{Captured, Output};
use super::{CheckHost, NativeError};
use crate::sandbox::{CROWDED, END, REFUSED, SAID, SCRATCH, Sandbox, Spec};
use longhaul_core::LimitHit;
use longhaul_core::census::{Child as Listing, ChildKind, Entry, Listed as _};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// How long output is waited for after the check has ended: somebody else may hold the pipe.
pub(super) const DRAIN: Duration = Duration::from_secs(2);

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(500);

/// Processes of a program that may hold, at once, as much as each of them may.
const PROCESSES_AT_THEIR_MOST: u64 = 4;

/// Processes of our own around a program: the two that confine it, of which one is the root.
const KEEPERS: u64 = 1;

/// What is run, and what it may use.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    /// Besides LANG, HOME and TMPDIR. Without a PATH it has the host's.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) wall_ms_max: u64,
    /// How long it is given to end by itself after that.
    pub(crate) grace_ms: u64,
    pub(crate) cpu_seconds_max: u64,
    pub(crate) memory_bytes_max: u64,
    pub(crate) output_bytes_max: u64,
    pub(crate) processes_max: u64,
    pub(crate) disk_bytes_max: u64,
    pub(crate) file_bytes_max: u64,
}

/// One program in one directory.
pub(crate) struct Run<'a> {
    pub(crate) host: &'a CheckHost,
    pub(crate) name: &'a str,
    pub(crate) program: &'a Program,
    /// Has `work`, `home`, `tmp` and `dev`.
    pub(crate) scratch: &'a Path,
    /// What is worked on in place of `scratch/work`, and where in it the program starts.
    pub(crate) tree: Option<(&'a Path, &'a Path)>,
    /// Besides those of the host, where files are covered: directories that are not seen, and those that are
    /// nevertheless.
    pub(crate) hidden: &'a [PathBuf],
    pub(crate) shown: &'a [PathBuf],
    /// The least that must hold it.
    pub(crate) sandbox_min: Sandbox,
}

/// How it ended, and how it was held.
pub(crate) struct Done {
    /// 128 and the signal where one ended it; -1 at a limit.
    pub(crate) exit_code: i32,
    pub(crate) hit: Option<LimitHit>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) sandbox: Sandbox,
    pub(crate) wall_ms: u64,
}

/// How one start ended.
enum Ended {
    /// Nothing ran; why.
    Refused(String),
    Ran(Done),
}

impl Run<'_> {
    /// Asks for the strongest sandbox first. A child that is refused has started nothing.
    pub(crate) async fn in_the_best_sandbox(&self) -> Result<Done, NativeError> {
        self.check_program()?;
        let mut why = String::new();
        for sandbox in [Sandbox::Full, Sandbox::Namespaces, Sandbox::None] {
            match self.once(sandbox).await? {
                Ended::Ran(done) => return Ok(done),
                Ended::Refused(reason) => {
                    let reason = if reason.is_empty() { "the child said nothing".to_owned() } else { reason };
                    tracing::debug!(check = self.name, ?sandbox, reason, "sandbox refused");
                    why = reason;
                }
            }
            if sandbox == self.sandbox_min {
                break;
            }
        }
        if self.sandbox_min == Sandbox::None {
            return Err(self.failed(why));
        }
        Err(NativeError::NoSandbox { name: self.name.to_owned(), why })
    }

    fn failed(&self, why: impl ToString) -> NativeError {
        NativeError::Host { name: self.name.to_owned(), why: why.to_string() }
    }

    /// Looked for here and not left to the child, whose words a check could imitate.
    fn check_program(&self) -> Result<(), NativeError> {
        let program = self.program.argv.first().map_or("", String::as_str);
        let is_there = if program.contains('/') {
            let path = self.work().join(program);
            // A link may lead into the sandbox's own directories.
            path.is_file() || path.is_symlink()
        } else {
            std::env::split_paths(&self.path()).any(|dir| dir.join(program).is_file())
        };
        let absent = || NativeError::NoProgram { name: self.name.to_owned(), program: program.to_owned() };
        if is_there { Ok(()) } else { Err(absent()) }
    }

    fn path(&self) -> String {
        let set = self.program.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
        set.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
    }

    fn work(&self) -> PathBuf {
        self.tree.map_or_else(|| self.scratch.join("work"), |(tree, _)| tree.to_owned())
    }

    /// The same for a program that is not waited for: what is given has begun.
    pub(crate) async fn started_in_the_best_sandbox(&self) -> Result<(Started, Sandbox), NativeError> {
        self.check_program()?;
        let mut why = String::new();
        for sandbox in [Sandbox::Full, Sandbox::Namespaces, Sandbox::None] {
            match self.begun(sandbox).await? {
                Ok(started) => return Ok((started, sandbox)),
                Err(reason) => why = reason,
            }
            if sandbox == self.sandbox_min {
                break;
            }
        }
        Err(NativeError::NoSandbox { name: self.name.to_owned(), why })
    }

    /// One start; or why nothing was started.
    async fn begun(&self, sandbox: Sandbox) -> Result<Result<Started, String>, NativeError> {
        let mut child = self.start(sandbox).map_err(|error| self.failed(error))?;
        let group = Group::of(&child);
        let entry = self.listed(&child, ChildKind::Kept);
        let lifeline = child.stdin.take();
        let (said, first_line) = tokio::sync::oneshot::channel();
        // Nobody asks what it says to people, and it must not wait for a reader.
        drop(Output::read(child.stdout.take(), None, 0));
        let stderr = Output::read(child.stderr.take(), Some(said), self.program.output_bytes_max);
        let said = first_line.await.unwrap_or_default();
        Ok(match said.strip_prefix(SAID) {
            Some(word) if word.starts_with("ready") => Ok(Started { child, group, lifeline, stderr, entry }),
            _ => Err(said.trim_start_matches(SAID).trim_start_matches(REFUSED).trim().to_owned()),
        })
    }

    async fn once(&self, sandbox: Sandbox) -> Result<Ended, NativeError> {
        let started = Instant::now();
        let mut child = self.start(sandbox).map_err(|error| self.failed(error))?;
        let group = Group::of(&child);
        let entry = self.listed(&child, ChildKind::Program);
        // The child ends when this does (see `sandbox.rs`); left in `child`, waiting would close it.
        let mut lifeline = child.stdin.take();
        let (said, first_line) = tokio::sync::oneshot::channel();
        let stdout = Output::read(child.stdout.take(), None, self.program.output_bytes_max);
        let stderr = Output::read(child.stderr.take(), Some(said), self.program.output_bytes_max);
        let (status, hit) = self.wait(&mut child, lifeline.as_mut()).await.map_err(|error| self.failed(error))?;
        let ended_for = entry.as_ref().and_then(|entry| entry.hit().cloned());
        let hit = hit.or(ended_for);
        // What the program left running, where there is no namespace to take it along.
        drop((group, lifeline));
        let said = tokio::time::timeout(DRAIN, first_line).await.ok().and_then(Result::ok).unwrap_or_default();
        if hit.is_none() && !said.starts_with(&format!("{SAID}ready")) {
            return Ok(Ended::Refused(said.trim_start_matches(SAID).trim_start_matches(REFUSED).trim().to_owned()));
        }
        let (stdout, stderr) = (stdout.end().await, stderr.end().await);
        let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let hit = hit.or_else(|| self.signalled(status, code));
        let exit_code = if hit.is_some() { -1 } else { code };
        Ok(Ended::Ran(Done { exit_code, hit, stdout, stderr, sandbox, wall_ms }))
    }

    /// Shown to whoever watches what the host's children use, which is told what they may.
    fn listed(&self, child: &Child, kind: ChildKind) -> Option<Entry<Listing>> {
        let mut listed = Listing::new(child.id()?, kind, self.name);
        listed.place = self.tree.map(|(tree, _)| tree.to_owned());
        listed.memory_bytes_max = self.program.memory_bytes_max.checked_mul(PROCESSES_AT_THEIR_MOST);
        listed.processes_max = self.program.processes_max.checked_add(KEEPERS);
        Some(listed.enter())
    }

    fn start(&self, sandbox: Sandbox) -> std::io::Result<Child> {
        let inside = if sandbox == Sandbox::Full { Path::new(SCRATCH) } else { self.scratch };
        let mut command = Command::new(&self.host.program);
        command.args(&self.host.prefix_args).arg(serde_json::to_string(&self.spec(sandbox))?);
        command.env_clear().env("LANG", "C.UTF-8").env("PATH", self.path());
        command.env("HOME", inside.join("home")).env("TMPDIR", inside.join("tmp"));
        command.envs(&self.program.env).current_dir(self.scratch);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    }

    fn spec(&self, sandbox: Sandbox) -> Spec {
        Spec {
            sandbox,
            is_inner: false,
            nice: 0,
            prefix_args: self.host.prefix_args.clone(),
            argv: self.program.argv.clone(),
            scratch: self.scratch.to_owned(),
            tree: self.tree.map(|(tree, _)| tree.to_owned()),
            cwd: self.tree.map_or_else(|| PathBuf::from("."), |(_, cwd)| Path::new(".").join(cwd)),
            hidden: self.host.hidden.iter().chain(self.hidden).cloned().chain(secrets_in_home()).collect(),
            shown: self.shown.to_vec(),
            memory_bytes_max: self.program.memory_bytes_max,
            cpu_seconds_max: self.program.cpu_seconds_max,
            processes_max: self.program.processes_max,
            file_bytes_max: self.program.file_bytes_max,
        }
    }

    /// Waits for the child, and ends all of it at a limit: asked first where it is given time for that.
    async fn wait(
        &self,
        child: &mut Child,
        lifeline: Option<&mut tokio::process::ChildStdin>,
    ) -> std::io::Result<(ExitStatus, Option<LimitHit>)> {
        let Program { wall_ms_max, grace_ms, disk_bytes_max, .. } = *self.program;
        let deadline = tokio::time::sleep(Duration::from_millis(wall_ms_max));
        let hit = tokio::select! {
            status = child.wait() => return Ok((status?, None)),
            () = deadline => LimitHit::new("wall_ms_max", wall_ms_max, wall_ms_max),
            used = disk_used_up(self.scratch, disk_bytes_max) => LimitHit::new("disk_bytes_max", used, disk_bytes_max),
        };
        if let Some(lifeline) = lifeline.filter(|_| grace_ms > 0) {
            lifeline.write_all(&[END]).await?;
            if let Ok(status) = tokio::time::timeout(Duration::from_millis(grace_ms), child.wait()).await {
                return Ok((status?, Some(hit)));
            }
        }
        Group::of(child).kill();
        Ok((child.wait().await?, Some(hit)))
    }

    /// The signals by which the kernel, and the child, tell a limit.
    fn signalled(&self, status: ExitStatus, code: i32) -> Option<LimitHit> {
        let hit = |name, max| Some(LimitHit::new(name, max, max));
        if status.signal() == Some(CROWDED.as_raw()) {
            return hit("processes_max", self.program.processes_max);
        }
        match code.checked_sub(128)? {
            24 => hit("cpu_seconds_max", self.program.cpu_seconds_max),
            25 => hit("file_bytes_max", self.program.file_bytes_max),
            _ => None,
        }
    }
}

/// Ends only when the disk below `scratch` has lost too much; answers how much.
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

/// A program that has begun.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) group: Group,
    pub(crate) lifeline: Option<tokio::process::ChildStdin>,
    pub(crate) stderr: Output,
    /// None: it had ended by then.
    pub(crate) entry: Option<Entry<Listing>>,
}

/// A process group, killed when it is dropped: nothing of a check outlives it.
pub(crate) struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // Its number is the child's, which the kernel gives to nobody while the group has a member.
        Self(child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)))
    }

    pub(crate) fn pid(&self) -> Option<rustix::process::Pid> {
        self.0
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
pub(super) fn rustup_home() -> Option<PathBuf> {
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
