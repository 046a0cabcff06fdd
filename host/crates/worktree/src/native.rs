//! Running the operator's checks.
//!
//! A check runs on a fresh copy of exactly what would be committed, with the files that decide it taken
//! from the base commit. Refuses a shell, the host's environment and, where the system can, the network
//! and every file but the copy. A check that fails or reaches a limit is a report and no error.

use crate::at::{Root, remove_all};
use crate::git::Project;
use crate::glob::Glob;
use crate::sandbox::{REFUSED, SAID, SCRATCH, Sandbox, Spec};
use crate::scan::{Base, Entry, Mode, Seen, content, join, shown};
use crate::tree::{Tree, TreeCaps, put};
use crate::{Scan, TreeError};
use git2::{ObjectType, Oid, Repository};
use longhaul_core::work::CheckReport;
use longhaul_core::{Digest, LimitHit};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// A check of `[checks]` in `longhaul.toml`: a table, or just the list of words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NativeCheck {
    /// The program and its arguments; no shell.
    pub argv: Vec<String>,
    /// Globs of the files that decide, such as `tests/**`: they are taken from the base commit.
    ///
    /// `*` and `?` stay within a name, `**` stands for any directories, and a directory stands for all
    /// that is below it. A file that matches and that the base does not have is absent from the copy, so
    /// that nothing can be put beside the tests to change them. A glob that matches nothing in the base
    /// pins nothing.
    pub files: Vec<String>,
    /// Variables that are set for it besides PATH, HOME, LANG and TMPDIR.
    pub env: BTreeMap<String, String>,
    /// Time on the clock, in milliseconds. Default 600 000.
    pub wall_ms_max: u64,
    /// Address space of each process, in bytes. Default 2 GiB. Node, Go and Java reserve more.
    pub memory_bytes_max: u64,
    /// Bytes kept of each output; the middle is left out. Default 200 000.
    pub output_bytes_max: u64,
    /// Processes and threads. Default 256. Holds where there are namespaces, and not for root.
    pub processes_max: u64,
    /// Bytes that the disk may lose meanwhile, to whomever. Default 10 GiB. Looked at each half second.
    pub disk_bytes_max: u64,
}

/// How checks are run on this machine.
#[derive(Clone, Debug)]
pub struct CheckHost {
    /// This very binary.
    pub program: PathBuf,
    /// Arguments that lead to [`crate::check_child`]; the specification comes after them.
    pub prefix_args: Vec<String>,
    /// Where temporary copies are made; it must exist. It may lie in a hidden directory.
    pub scratch: PathBuf,
    /// Directories and files that a check must not see in a full sandbox: the data directory, keys.
    pub hidden: Vec<PathBuf>,
}

/// How a check ended, and how it was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeReport {
    /// What everybody sees.
    pub report: CheckReport,
    /// What held it.
    pub sandbox: Sandbox,
    /// How long it took.
    pub wall_ms: u64,
    /// [`Scan::digest`] of the tree that it ran on.
    pub subject: Digest,
}

/// Why a check did not run. A check that fails is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// The program is not there.
    #[error("check `{name}` cannot find the program `{program}`; install it, or give its full path in [checks]")]
    NoProgram {
        /// The check.
        name: String,
        /// `argv[0]`.
        program: String,
    },
    /// What is written in `[checks]` cannot be run.
    #[error("check `{name}` {why}")]
    Invalid {
        /// The check.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The check is not what was pinned when work started.
    #[error(
        "check `{name}` was pinned as {expected} and is {found} now; restore it in longhaul.toml, or start a new run"
    )]
    NotPinned {
        /// The check.
        name: String,
        /// The digest of the pins.
        expected: String,
        /// The digest now.
        found: String,
    },
    /// The copy could not be made.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The child could not be started or watched.
    #[error("check `{name}` could not be run: {why}; this is the host's fault and not the check's")]
    Host {
        /// The check.
        name: String,
        /// What the system said.
        why: String,
    },
}

/// The files that decide a check, as the base commit has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// The commit.
    pub base: String,
    /// Of the command, its settings and every file with its content.
    pub digest: Digest,
    /// Sorted.
    pub files: Vec<String>,
    /// For the operator: globs that pin nothing.
    pub notes: Vec<String>,
}

/// Pins `check` to the commit `base`.
///
/// # Errors
/// When the check is not valid or the commit is not there.
pub fn pins(project: &Project, base: &str, name: &str, check: &NativeCheck) -> Result<Pins, NativeError> {
    check.validate(name)?;
    let base = Base::read(&project.repo()?, base, &TreeCaps::default())?;
    let pinned = Pinned::of(&base, check);
    let mut notes = Vec::new();
    for glob in check.files.iter().filter(|glob| !pinned.globs.contains(glob.as_str())) {
        notes.push(format!("check `{name}`: `{glob}` matches no file of commit {}, so it pins nothing", base.commit));
    }
    let files = pinned.files.keys().map(|path| shown(path)).collect();
    Ok(Pins { base: base.commit.to_string(), digest: pinned.digest(check), files, notes })
}

/// Runs `check` on a fresh copy of what would be committed on `parent`, with the pinned files of
/// `pins.base` over it. The copy is removed afterwards.
///
/// # Errors
/// When it did not run. A check that fails, or reaches a limit, is a report.
pub async fn run_native(
    host: &CheckHost,
    project: &Project,
    tree: &Tree,
    parent: &str,
    name: &str,
    check: &NativeCheck,
    pins: &Pins,
) -> Result<NativeReport, NativeError> {
    check.validate(name)?;
    let failed = |why: String| NativeError::Host { name: name.to_owned(), why };
    let copy = {
        let (project, tree, parent) = (project.clone(), tree.clone(), parent.to_owned());
        let (host, name, check, pins) = (host.clone(), name.to_owned(), check.clone(), pins.clone());
        let make = move || Copy::make(&host, &project, &tree, &parent, &name, &check, &pins);
        tokio::task::spawn_blocking(make).await.map_err(|error| failed(error.to_string()))??
    };
    let run = Run { host, name, check, scratch: copy.scratch.path() };
    let done = run.in_the_best_sandbox().await;
    let subject = copy.scan.digest;
    // Deleting a build takes a while, and is nobody's concern.
    tokio::task::spawn_blocking(move || copy.remove());
    let (report, sandbox, wall_ms) = done?;
    Ok(NativeReport { report, sandbox, wall_ms, subject })
}

/// Bytes of one file that a check writes. A debug build's archives have hundreds of megabytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// How long output is waited for after the check has ended: somebody else may hold the pipe.
const DRAIN: Duration = Duration::from_secs(2);

/// How often the disk is looked at.
const DISK_INTERVAL: Duration = Duration::from_millis(500);

impl NativeCheck {
    /// `argv` with every default.
    #[must_use]
    pub fn of_argv(argv: Vec<String>) -> Self {
        let table = Table { argv, ..Table::default() };
        Self::from(table)
    }

    fn validate(&self, name: &str) -> Result<(), NativeError> {
        let invalid = |why: &str| Err(NativeError::Invalid { name: name.to_owned(), why: why.to_owned() });
        let words = self.argv.iter().chain(self.env.keys()).chain(self.env.values());
        if self.argv.first().is_none_or(String::is_empty) {
            return invalid("has no program; write for example: argv = [\"cargo\", \"test\"]");
        }
        if words.clone().any(|word| word.contains('\0'))
            || self.env.keys().any(|key| key.is_empty() || key.contains('='))
        {
            return invalid("has a word or variable that no program can be given; remove NUL, and `=` from names");
        }
        if words.map(String::len).sum::<usize>() > 64 << 10 {
            return invalid("has over 65536 bytes of words and variables; put them into a script");
        }
        if self.wall_ms_max == 0 || self.memory_bytes_max == 0 {
            return invalid("may use no time or no memory; remove the limit or set it above 0");
        }
        Ok(())
    }
}

/// A check as it is written, with its defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    argv: Vec<String>,
    files: Vec<String>,
    env: BTreeMap<String, String>,
    wall_ms_max: u64,
    memory_bytes_max: u64,
    output_bytes_max: u64,
    processes_max: u64,
    disk_bytes_max: u64,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            argv: Vec::new(),
            files: Vec::new(),
            env: BTreeMap::new(),
            wall_ms_max: 600_000,
            memory_bytes_max: 2 << 30,
            output_bytes_max: 200_000,
            processes_max: 256,
            disk_bytes_max: 10 << 30,
        }
    }
}

impl From<Table> for NativeCheck {
    fn from(table: Table) -> Self {
        let Table { argv, files, env, wall_ms_max, memory_bytes_max, output_bytes_max, processes_max, disk_bytes_max } =
            table;
        Self { argv, files, env, wall_ms_max, memory_bytes_max, output_bytes_max, processes_max, disk_bytes_max }
    }
}

/// By hand, so that a mistake in a table is told as such and not as `no variant matched`.
impl<'de> Deserialize<'de> for NativeCheck {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = NativeCheck;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of words, such as [\"cargo\", \"test\"], or a table with `argv`")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut words: A) -> Result<NativeCheck, A::Error> {
                let mut argv = Vec::new();
                while let Some(word) = words.next_element()? {
                    argv.push(word);
                }
                Ok(NativeCheck::of_argv(argv))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<NativeCheck, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(NativeCheck::from)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// What the globs of a check take from a commit.
struct Pinned<'a> {
    /// Those that match something.
    globs: BTreeSet<&'a str>,
    files: BTreeMap<Vec<u8>, Entry>,
}

impl<'a> Pinned<'a> {
    fn of(base: &Base, check: &'a NativeCheck) -> Self {
        let mut pinned = Self { globs: BTreeSet::new(), files: BTreeMap::new() };
        for (path, entry) in base.files.iter().filter(|(_, entry)| entry.mode != Mode::Module) {
            for glob in check.files.iter().filter(|glob| is_match(glob, path)) {
                pinned.globs.insert(glob);
                pinned.files.insert(path.clone(), *entry);
            }
        }
        pinned
    }

    fn digest(&self, check: &NativeCheck) -> Digest {
        // A struct of strings and numbers always has a JSON form.
        let mut parts = vec![serde_json::to_vec(check).unwrap_or_default()];
        for (path, entry) in &self.files {
            parts.extend([path.clone(), format!("{:o} {}", entry.mode.to_git(), entry.id).into_bytes()]);
        }
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Puts the pinned files over `files`, and removes whatever else lies where they are or matches.
    fn put_over(&self, files: &mut BTreeMap<Vec<u8>, Source>) {
        let is_in_the_way = |path: &[u8]| {
            let below = join(path, b"");
            self.files.range(below.clone()..).next().is_some_and(|(pinned, _)| pinned.starts_with(&below))
        };
        let is_below_a_pin = |path: &[u8]| {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.into_iter().any(|(at, _)| self.files.contains_key(&path[..at]))
        };
        files.retain(|path, _| {
            !self.globs.iter().any(|glob| is_match(glob, path)) && !is_in_the_way(path) && !is_below_a_pin(path)
        });
        files.extend(self.files.iter().map(|(path, entry)| (path.clone(), Source::Base(*entry))));
    }
}

/// A copy of exactly what would be committed, for a check that another sandbox runs.
pub struct ExactCopy(Copy);

impl ExactCopy {
    /// Makes one. Blocks.
    ///
    /// # Errors
    /// When the tree cannot be read or the copy not be written.
    pub fn make(host: &CheckHost, project: &Project, tree: &Tree, parent: &str) -> Result<Self, NativeError> {
        Ok(Self(Copy::of(host, project, tree, parent, |_| {})?))
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.0.scratch.path().join("work")
    }

    /// Removes it. Blocks.
    pub fn remove(self) {
        self.0.remove();
    }
}

/// Where a file of the copy comes from.
enum Source {
    Base(Entry),
    Tree(Entry),
}

/// What a check runs on.
struct Copy {
    scratch: tempfile::TempDir,
    scan: Scan,
}

impl Copy {
    fn make(
        host: &CheckHost,
        project: &Project,
        tree: &Tree,
        parent: &str,
        name: &str,
        check: &NativeCheck,
        pins: &Pins,
    ) -> Result<Self, NativeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, &pins.base, tree.caps())?;
        let pinned = Pinned::of(&base, check);
        let found = pinned.digest(check);
        if found != pins.digest {
            let (expected, found) = (pins.digest.short(), found.short());
            return Err(NativeError::NotPinned { name: name.to_owned(), expected, found });
        }
        Self::of(host, project, tree, parent, |files| pinned.put_over(files))
    }

    fn of(
        host: &CheckHost,
        project: &Project,
        tree: &Tree,
        parent: &str,
        put_over: impl FnOnce(&mut BTreeMap<Vec<u8>, Source>),
    ) -> Result<Self, NativeError> {
        let repo = project.repo()?;
        let root = tree.root()?;
        let seen = tree.look(project, &root, parent)?;
        let scan = seen.judged(&root)?;
        let mut files = sources(&seen);
        put_over(&mut files);
        remove_left_over(&host.scratch);
        let prefix = format!("check-{}-", std::process::id());
        let scratch = tempfile::Builder::new().prefix(&prefix).tempdir_in(&host.scratch);
        let scratch = scratch.map_err(TreeError::io("make a copy in", &host.scratch))?;
        for dir in ["work", "home", "tmp", "dev"] {
            let dir = scratch.path().join(dir);
            std::fs::create_dir(&dir).map_err(TreeError::io("make", &dir))?;
        }
        let work = scratch.path().join("work");
        let copy = Root::open(&work).map_err(TreeError::io("open", &work))?;
        for (path, source) in &files {
            write_source(&repo, &root, &copy, path, source, tree.caps())?;
        }
        Ok(Self { scratch, scan })
    }

    fn remove(self) {
        let path = self.scratch.keep();
        if let Err(error) = remove_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the copy of a check");
        }
    }
}

fn sources(seen: &Seen) -> BTreeMap<Vec<u8>, Source> {
    let base = seen.base.files.iter().map(|(path, entry)| (path.clone(), Source::Base(*entry)));
    let mut files: BTreeMap<Vec<u8>, Source> = base.collect();
    for item in seen.to_commit() {
        match item.now {
            Some(now) => files.insert(item.raw.clone(), Source::Tree(now)),
            None => files.remove(&item.raw),
        };
    }
    files
}

/// What comes from the tree is compared with the scan once more, so that the check sees what was scanned.
fn write_source(
    repo: &Repository,
    tree: &Root,
    copy: &Root,
    path: &[u8],
    source: &Source,
    caps: &TreeCaps,
) -> Result<(), TreeError> {
    let entry = match source {
        Source::Base(entry) => return put(repo, copy, path, *entry),
        Source::Tree(entry) => *entry,
    };
    let bytes = content(tree, path, entry.mode == Mode::Link, caps.file_bytes_max)?;
    let id = Oid::hash_object(ObjectType::Blob, &bytes).map_err(TreeError::git("hash a file"))?;
    if id != entry.id {
        return Err(TreeError::Raced { path: shown(path) });
    }
    let written = match entry.mode {
        Mode::Link => copy.write_link(path, &bytes),
        mode => copy.write(path, &bytes, mode == Mode::Executable),
    };
    written.map_err(TreeError::io("write", copy.path(path)))
}

/// Removes every copy in `scratch`. Only for the owner of the directory, before its first check: a host
/// that was killed may have had the same process id.
pub fn clear_scratch(scratch: &Path) {
    for entry in std::fs::read_dir(scratch).into_iter().flatten().filter_map(Result::ok) {
        if let Err(error) = remove_all(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove the copy of a check");
        }
    }
}

/// Copies of hosts that were killed.
fn remove_left_over(scratch: &Path) {
    let Ok(entries) = std::fs::read_dir(scratch) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("check-")?.split('-').next()?.parse::<i32>().ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_dead = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        if pid.is_some_and(is_dead) {
            let _ = remove_all(&entry.path());
        }
    }
}

/// One check on one copy.
struct Run<'a> {
    host: &'a CheckHost,
    name: &'a str,
    check: &'a NativeCheck,
    scratch: &'a Path,
}

/// How one start ended.
enum Ended {
    /// Nothing ran; why.
    Refused(String),
    Ran(CheckReport, u64),
}

impl Run<'_> {
    /// Asks for the strongest sandbox first. A child that is refused has started nothing.
    async fn in_the_best_sandbox(&self) -> Result<(CheckReport, Sandbox, u64), NativeError> {
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

/// The beginning and the end of an output: what failed is mostly said last.
#[derive(Default)]
struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Captured {
    fn push(&mut self, bytes: &[u8], bytes_max: u64) {
        let half = usize::try_from(bytes_max / 2).unwrap_or(usize::MAX);
        let fits = half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(fits);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(half);
        self.tail.drain(..over);
        self.left_out = self.left_out.saturating_add(u64::try_from(over).unwrap_or(u64::MAX));
    }

    /// The text, and whether it was cut.
    fn text(self) -> (String, bool) {
        let tail = Vec::from(self.tail);
        if self.left_out == 0 {
            return (String::from_utf8_lossy(&[self.head, tail].concat()).into_owned(), false);
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        (format!("{head}\n[{} bytes left out]\n{tail}", self.left_out), true)
    }
}

/// An output that is being read, to its end, so that a check never waits because nobody reads.
struct Output {
    captured: Arc<Mutex<Captured>>,
    reader: tokio::task::JoinHandle<()>,
}

impl Output {
    /// The first line goes to `first_line`, where somebody wants it.
    fn read(
        mut from: Option<impl AsyncRead + Unpin + Send + 'static>,
        first_line: Option<tokio::sync::oneshot::Sender<String>>,
        bytes_max: u64,
    ) -> Self {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let into = Arc::clone(&captured);
        let reader = tokio::spawn(async move {
            if let Some(first_line) = first_line {
                let _ = first_line.send(read_line(&mut from).await);
            }
            let Some(mut from) = from else { return };
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read], bytes_max);
            }
        });
        Self { captured, reader }
    }

    /// What there is, at the latest after [`DRAIN`].
    async fn end(mut self) -> Captured {
        if tokio::time::timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn read_line(from: &mut Option<impl AsyncRead + Unpin>) -> String {
    let mut line = Vec::new();
    let Some(from) = from else { return String::new() };
    while let Ok(byte) = from.read_u8().await {
        if byte == b'\n' || line.len() > 2_000 {
            break;
        }
        line.push(byte);
    }
    String::from_utf8_lossy(&line).into_owned()
}

fn is_match(glob: &str, path: &[u8]) -> bool {
    Glob::parse(glob.as_bytes()).matches(path, true, &Cell::new(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_beginning_and_its_end() {
        let mut captured = Captured::default();
        for chunk in [&b"01234"[..], b"56", b"789abcdef"] {
            captured.push(chunk, 8);
        }
        assert_eq!(captured.text(), ("0123\n[8 bytes left out]\ncdef".to_owned(), true));
    }
}
