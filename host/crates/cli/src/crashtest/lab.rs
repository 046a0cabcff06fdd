//! The copies of a crash test: one of the project that all others are made of, and for each run a project, a data
//! directory and a receiver of its own. All go with the test, unless they are kept.

use super::child::{self, Ended};
use super::receiver::{HostAnswers, Receiver};
use crate::context::Context;
use crate::owner::Owner;
use longhaul_config::Config;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_crashtest::{PointOccurrence, model_requests, points};
use longhaul_home::crash::{CRASH_AT, CRASH_LOG, CRASH_MODELS, CRASH_RECEIVER};
use longhaul_home::{PLUGINS_VARIABLE, VARIABLE, own_program, plugin_directories};
use longhaul_worktree::{UserRepository, copy_project};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{Mutex, watch};

/// Bytes of a data directory and of the files around it, as a small run leaves them.
const HOME_BYTES: u64 = 64 << 20;

/// Variables that would lead a process out of its copy.
const NOT_FOR_CHILDREN: [&str; 7] =
    [VARIABLE, "LONGHAUL_SERVER", "LONGHAUL_TOKEN", CRASH_AT, CRASH_LOG, CRASH_RECEIVER, CRASH_MODELS];

/// The beginning of the names of variables for telemetry, which would be sent.
const TELEMETRY: &str = "OTEL_";

/// Files of the process that owns a data directory, and trees and copies that no look at a run reads.
const NOT_STATE: [&str; 5] = ["lock", "socket", "socket-token", "trees", "scratch"];

/// The value of every secret in a crash test. It opens nothing.
const STAND_IN_SECRET: &str = "crashtest-stand-in-secret";

/// The settings of all runs of a test.
pub struct LabSettings {
    /// The directory of the user's project.
    pub project: PathBuf,
    /// The recording that answers every model.
    pub recording: PathBuf,
    /// The configuration of the project.
    pub config: Config,
    /// The answers of hosts.
    pub answers: Arc<HostAnswers>,
    /// Kills that are tested at once.
    pub jobs: u32,
    /// Longest time of one process.
    pub timeout: Duration,
    /// True when the copies stay.
    pub keep: bool,
}

/// The temporary directory of a test.
pub struct Stage<'a> {
    settings: LabSettings,
    owner: &'a Arc<dyn Owner>,
    program: PathBuf,
    plugins: OsString,
    /// The commit that every run begins at.
    base: String,
    /// The directory of the project within its repository.
    within: PathBuf,
    stopped: watch::Receiver<bool>,
    labs: AtomicU32,
    /// Held while a data directory is open in this process: an engine takes much address space.
    looking: Mutex<()>,
    /// Dropped last: the copies are in it.
    directory: StageDirectory,
}

/// The directory, kept or not.
enum StageDirectory {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl StageDirectory {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

impl<'a> Stage<'a> {
    /// Copies the project.
    pub fn new(context: &'a Context, settings: LabSettings, stopped: watch::Receiver<bool>) -> fault::Result<Self> {
        let made = tempfile::Builder::new().prefix("longhaul-crashtest-").tempdir();
        let made = made.context("no temporary directory can be made; name another with TMPDIR")?;
        let directory = if settings.keep { StageDirectory::Kept(made.keep()) } else { StageDirectory::Temporary(made) };
        let original = directory.path().join("original");
        let project = copy_project(&settings.project, &original).map_err(full_disk)?;
        expect_room(directory.path(), bytes_of(&original)?, settings.jobs)?;
        let within = project.strip_prefix(&original).map(Path::to_owned).unwrap_or_default();
        let recording = directory.path().join("recording.jsonl");
        fs::copy(&settings.recording, &recording)
            .with_context(|| format!("copy `{}`", settings.recording.display()))?;
        let plugins = std::env::join_paths(plugin_directories(&context.home))
            .context("a directory of plugins has a `:` in its path, which LONGHAUL_PLUGINS cannot hold")?;
        Ok(Self {
            base: UserRepository::open(&project)?.head()?,
            settings,
            owner: &context.owner,
            program: own_program()?,
            plugins,
            within,
            stopped,
            labs: AtomicU32::new(0),
            looking: Mutex::default(),
            directory,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The program as the command line needs it.
    pub fn owner(&self) -> &Arc<dyn Owner> {
        self.owner
    }

    /// The commit that every run begins at.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The recording that answers every model.
    pub fn recording(&self) -> PathBuf {
        self.path().join("recording.jsonl")
    }

    /// Held while a data directory is open in this process.
    pub fn looking(&self) -> &Mutex<()> {
        &self.looking
    }

    /// Longest time of one process.
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// A new copy of everything.
    pub async fn lab(&self) -> fault::Result<Lab<'_>> {
        let number = self.labs.fetch_add(1, Ordering::Relaxed);
        let directory = self.path().join(format!("run-{number}"));
        make_private(&directory)?;
        let copy = directory.join("project");
        copy_tree(&self.path().join("original"), &copy, &[]).map_err(|error| of_copy(error, &copy))?;
        let home = directory.join("home");
        let receiver = Receiver::start(Arc::clone(&self.settings.answers)).await?;
        let project = if self.within.as_os_str().is_empty() { copy } else { copy.join(&self.within) };
        let lab = Lab { stage: self, directory, project, home, receiver, processes: AtomicU32::new(0) };
        self.set_secrets(&lab).await?;
        Ok(lab)
    }

    /// Sets each secret that the project names to a value that opens nothing.
    async fn set_secrets(&self, lab: &Lab<'_>) -> fault::Result<()> {
        let of_parts =
            self.settings.config.parts().flat_map(|(_, part)| &part.secrets).map(|secret| secret.name.clone());
        let servers = self.settings.config.mcp.values();
        let names: BTreeSet<String> =
            of_parts.chain(servers.flat_map(|server| server.secrets().map(str::to_owned))).collect();
        for name in names {
            let arguments = ["secrets", "set", name.as_str()].map(OsString::from);
            let mut command = self.command(&lab.home, &lab.project, &arguments);
            command.env(CRASH_RECEIVER, lab.receiver.address().to_string());
            child::feed(&mut command, STAND_IN_SECRET);
            let output = lab.directory.join("secrets.txt");
            let ended = child::run(command, &output, self.timeout(), self.stopped.clone()).await?;
            if ended.code() != Some(0) {
                bail!("the secret `{name}` could not be stood in for: {}", ended.last_lines());
            }
        }
        Ok(())
    }

    /// This program, about to start in a copy.
    fn command(&self, home: &Path, project: &Path, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(home).arg("--project").arg(project).arg("--trust").args(arguments);
        command.current_dir(project).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let is_telemetry = name.to_str().is_some_and(|name| name.starts_with(TELEMETRY));
            if is_telemetry || NOT_FOR_CHILDREN.iter().any(|other| name == *other) {
                command.env_remove(&name);
            }
        }
        command.env(PLUGINS_VARIABLE, &self.plugins).env("TERM", "dumb");
        command
    }
}

/// One run with its project, data directory and receiver. Deleted when it is dropped, unless it is kept.
pub struct Lab<'a> {
    stage: &'a Stage<'a>,
    directory: PathBuf,
    project: PathBuf,
    home: PathBuf,
    receiver: Receiver,
    processes: AtomicU32,
}

impl Lab<'_> {
    /// The project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The data directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The receiver.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The number of requests to models so far, by invocation.
    pub fn model_requests(&self) -> BTreeMap<String, u32> {
        model_requests(&fs::read_to_string(self.directory.join("models.txt")).unwrap_or_default())
    }

    /// Runs a process of the run to its end, or to its kill at `at`.
    pub async fn process(&self, arguments: &[&OsStr], at: Option<&PointOccurrence>) -> fault::Result<LabProcess> {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let arguments: Vec<OsString> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut command = self.stage.command(&self.home, &self.project, &arguments);
        let log = self.directory.join(format!("points-{number}.txt"));
        command.env(CRASH_LOG, &log).env(CRASH_MODELS, self.directory.join("models.txt"));
        command.env(CRASH_RECEIVER, self.receiver.address().to_string());
        if let Some(at) = at {
            command.env(CRASH_AT, at.to_string());
        }
        let output = self.directory.join(format!("process-{number}.txt"));
        let ended = child::run(command, &output, self.stage.timeout(), self.stage.stopped.clone()).await?;
        // A process that reached no point has made no list.
        let points = points::reached(&fs::read_to_string(&log).unwrap_or_default());
        Ok(LabProcess { ended, points })
    }

    /// A copy of the state in the data directory, for a look that does not change what a resume finds.
    pub fn copy_of_home(&self) -> fault::Result<PathBuf> {
        let copy = self.directory.join("home-at-kill");
        copy_home(&self.home, &copy)?;
        Ok(copy)
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        if !self.stage.settings.keep {
            // A file that cannot be deleted now goes with the whole directory.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// A process of a run that ended, with the points that it reached.
pub struct LabProcess {
    /// Its end.
    pub ended: Ended,
    /// The points, in their order.
    pub points: Vec<PointOccurrence>,
}

fn make_private(directory: &Path) -> fault::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| of_copy(error, directory))
}

/// Copies the state of a data directory; nothing where there is none yet.
fn copy_home(from: &Path, to: &Path) -> fault::Result<()> {
    make_private(to)?;
    match from.is_dir() {
        true => copy_tree(from, to, &NOT_STATE).map_err(|error| of_copy(error, to)),
        false => Ok(()),
    }
}

/// Copies a directory, without the names of `except` in it. Links are copied as links.
fn copy_tree(from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if except.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_tree(&source, &target, &[])?;
            fs::set_permissions(&target, fs::metadata(&source)?.permissions())?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// The bytes of all files below a directory.
fn bytes_of(directory: &Path) -> fault::Result<u64> {
    let mut bytes = 0_u64;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => open.push(entry.path()),
                kind if kind.is_file() => bytes = bytes.saturating_add(entry.metadata()?.len()),
                _ => {}
            }
        }
    }
    Ok(bytes)
}

/// Refuses a disk without room for the copies of all runs at once.
fn expect_room(directory: &Path, project_bytes: u64, jobs: u32) -> fault::Result<()> {
    let needed = project_bytes.saturating_add(HOME_BYTES).saturating_mul(u64::from(jobs));
    let disk = rustix::fs::statvfs(directory)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= needed {
        return Ok(());
    }
    bail!(Fault::unavailable(format!(
        "{} MB are free in `{}`, and the copies of {jobs} at once take {} MB; name a larger place with TMPDIR, or take \
         fewer --jobs",
        free >> 20,
        directory.display(),
        needed >> 20
    )))
}

fn of_copy(error: io::Error, to: &Path) -> Fault {
    let shown = to.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(&shown.to_string()),
        _ => Fault::from(error).context(format!("cannot copy to `{shown}`")),
    }
}

fn full_disk(error: longhaul_worktree::TreeError) -> Fault {
    match &error {
        longhaul_worktree::TreeError::Io { source, path, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
        {
            full(&path.display().to_string())
        }
        _ => error.into(),
    }
}

fn full(place: &str) -> Fault {
    Fault::unavailable(format!("no room is left on the disk of `{place}`; name a larger place with TMPDIR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_copied_without_what_belongs_to_its_process() {
        let place = tempfile::tempdir().expect("a directory");
        let (home, copy) = (place.path().join("home"), place.path().join("copy"));
        fs::create_dir_all(home.join("trees/r-1")).expect("ours");
        fs::create_dir_all(home.join("secrets")).expect("ours");
        for file in ["lock", "state.redb", "secrets/one", "trees/r-1/a.py"] {
            fs::write(home.join(file), file).expect("ours");
        }
        copy_home(&home, &copy).expect("copied");
        let is_there = |name: &str| copy.join(name).exists();
        assert!(is_there("state.redb") && is_there("secrets/one"));
        assert!(!is_there("lock") && !is_there("trees"));
        // Killed before there was one.
        copy_home(&place.path().join("none"), &place.path().join("empty")).expect("nothing to copy");
        assert_eq!(bytes_of(&copy).expect("read"), 21);
    }

    #[test]
    fn a_disk_without_room_is_refused_with_what_to_do() {
        let place = tempfile::tempdir().expect("a directory");
        assert!(expect_room(place.path(), u64::MAX, 1).is_err_and(|error| error.to_string().contains("TMPDIR")));
        let refused = of_copy(io::ErrorKind::StorageFull.into(), Path::new("/copies")).to_string();
        assert_eq!(refused, "no room is left on the disk of `/copies`; name a larger place with TMPDIR");
    }
}
