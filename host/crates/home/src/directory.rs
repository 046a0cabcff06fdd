//! The data directory: its path, its owner, its content.
//!
//! | path | content |
//! |---|---|
//! | `lock` | locked by the owner, with its process and its kind; the lock decides, not the socket |
//! | `state.redb`, `state.lock` | all state, and the store's own lock |
//! | `state.log.0`, `state.log.1` | the last changes of the store, while it is in use and after a kill |
//! | `state.postgres`, `place` | where the state is, if not here, and the id of this directory for other machines |
//! | `socket` | the owner's socket, mode 0600 |
//! | `socket-token` | the token that a client of the socket sends, mode 0600; made anew by each owner |
//! | `trees/RUN/` | the tree that the agents of a run work on |
//! | `scratch/` | copies that checks run on |
//! | `plugins/` | installed plugins; the crate `longhaul-plugins` keeps them |
//! | `secrets/` | values of secrets, mode 0600; the crate `longhaul-security` keeps them |
//! | `signing.key`, `signers` | the key of this directory, and accepted ones of others; likewise |

use crate::machine::is_replaced;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::text::truncate;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The variable that names the data directory.
pub const VARIABLE: &str = "LONGHAUL_HOME";

const TREES: &str = "trees";
const SCRATCH: &str = "scratch";
const LOCK: &str = "lock";

/// The word behind the process in the lock file of a server.
const SERVER: &str = "server";

/// The word behind the process in the lock file of a server that stands by. The next line says who has the state.
const STANDBY: &str = "standby";

/// The most that is read of a lock file.
const LOCK_BYTES_MAX: u64 = 1_024;

/// The most that a standby tells of who has the state; the file has a process and a word besides.
const WAITS_FOR_BYTES_MAX: usize = 960;

/// Opens a directory and nothing else, and no link to one.
const NO_LINK: i32 = (rustix::fs::OFlags::DIRECTORY.bits() | rustix::fs::OFlags::NOFOLLOW.bits()) as i32;

/// Longest path of a socket that is used directly; systems other than Linux take 104 bytes.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// A short path of the socket, valid as long as this value.
pub struct SocketAddress {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketAddress {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// True when no other user can reach the content of a directory of this user; programs of root may traverse it.
pub fn is_ours_alone(found: &Metadata) -> bool {
    match found.mode() & 0o077 {
        0 => true,
        0o010 => found.gid() == longhaul_sandbox::USER_OF_ROOTS_PROGRAMS && found.uid() == 0,
        _ => false,
    }
}

/// Lets programs of root traverse a new directory to the files that they work on, by path alone: they can list none.
fn let_programs_pass(path: &Path) -> std::io::Result<()> {
    for directory in [path.to_owned(), path.join(TREES), path.join(SCRATCH)] {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let opened = OpenOptions::new().read(true).custom_flags(NO_LINK).open(&directory)?;
        std::os::unix::fs::fchown(&opened, None, Some(longhaul_sandbox::USER_OF_ROOTS_PROGRAMS))?;
        opened.set_permissions(Permissions::from_mode(0o710))?;
    }
    Ok(())
}

/// The data directory.
#[derive(Clone, Debug)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// The directory that the command line or the environment names, otherwise the user's own.
    pub fn find(named: Option<PathBuf>) -> fault::Result<Self> {
        let path = match named {
            Some(path) => path,
            None => directories::ProjectDirs::from("", "", "longhaul")
                .map(|dirs| dirs.data_dir().to_owned())
                .with_context(|| format!("there is no home directory; name one with --home or {VARIABLE}"))?,
        };
        let path = std::path::absolute(&path).with_context(|| format!("`{}` is no path", path.display()))?;
        if path.to_str().is_none() {
            // The processes of a run are told paths as text.
            bail!("the path of the data directory `{}` is not UTF-8; choose another with --home", path.display());
        }
        Ok(Self { path })
    }

    /// Makes the directory, mode 0700. Programs of root are another user, who may traverse a directory that is made
    /// here: without mounts of their own they reach their trees in no other way.
    pub fn make(&self) -> fault::Result<()> {
        let path = &self.path;
        let is_new = !path.exists();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| {
            format!("the data directory `{}` cannot be made; choose another with --home", path.display())
        })?;
        if is_new && rustix::process::geteuid().is_root() {
            // Root of a container may be denied this, and then most levels of the sandbox still work.
            let _ = let_programs_pass(path);
        }
        let found = std::fs::metadata(path)?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            bail!("the data directory `{}` belongs to another user; choose another with --home", path.display());
        }
        if !is_ours_alone(&found) {
            bail!("others can reach the data directory `{0}`; run: chmod 700 {0}", path.display());
        }
        Ok(())
    }

    /// Takes the lock, if no other process has it.
    pub fn try_own(&self) -> fault::Result<Option<Owned>> {
        self.make()?;
        let path = self.path.join(LOCK);
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).with_context(|| {
                let path = self.path.display();
                format!("cannot write in the data directory `{path}`; make it writable, or choose another with --home")
            })?;
        match file.try_lock() {
            Ok(()) => {
                let owned = Owned { home: self.clone(), lock: file };
                owned.write("");
                Ok(Some(owned))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock `{}`", path.display())),
        }
    }

    /// The process that has the lock, by the words that it wrote into the file. None: no process has it, or the file
    /// does not tell yet.
    pub fn lock_holder(&self) -> Option<LockHolder> {
        let file = File::open(self.path.join(LOCK)).ok()?;
        // The words of a process that was killed stay in the file. Shared, so that two who look do not see each other.
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let held = file.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        let text = lock_text(file)?;
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let mut words = first.split_whitespace();
        let (pid, word) = (words.next()?.parse().ok()?, words.next());
        let waits_for = (word == Some(STANDBY)).then(|| rest.trim().to_owned());
        Some(LockHolder { pid, is_server: word == Some(SERVER) || waits_for.is_some(), waits_for, held })
    }

    /// The process that the lock file names, if its program was replaced since it started. For clients of the owner:
    /// the lock is not looked at, so that nobody who takes it meanwhile is refused.
    pub fn outdated_owner(&self) -> Option<u32> {
        let text = lock_text(File::open(self.path.join(LOCK)).ok()?)?;
        let pid = text.split_whitespace().next()?.parse().ok()?;
        is_replaced(pid).then_some(pid)
    }

    /// Refuses a directory that a server owns: it keeps the lock until somebody ends it.
    pub fn refuse_second_server(&self) -> fault::Result<()> {
        match self.lock_holder() {
            Some(holder) if holder.is_server => Err(Fault::conflict(format!(
                "another longhaul owns `{}`: a server, {holder}; use that one, end it with `kill {}`, or choose another \
                 directory with --home",
                self.path.display(),
                holder.pid
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a directory whose server stands by: it answers nothing until it takes over.
    pub fn refuse_standby(&self) -> fault::Result<()> {
        let Some(LockHolder { pid, waits_for: Some(waits_for), .. }) = self.lock_holder() else { return Ok(()) };
        Err(Fault::conflict(format!(
            "the server of `{}` (process {pid}) stands by, since {waits_for}; ask that one, on its machine or over HTTP",
            self.path.display()
        )))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The owner's socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The socket under a path that the system accepts, which has at most 107 bytes. A longer one leads through a
    /// descriptor of the data directory: a socket elsewhere would have a name that others can take first.
    pub fn socket_address(&self) -> fault::Result<SocketAddress> {
        let plain = self.socket();
        if plain.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(SocketAddress { path: plain, _directory: None });
        }
        let directory = File::open(&self.path).with_context(|| format!("cannot open `{}`", self.path.display()))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/socket", directory.as_raw_fd()));
        Ok(SocketAddress { path, _directory: Some(directory) })
    }

    /// The file of the token that a client of the socket sends. No sandbox contains the data directory, so no program
    /// in one can read it.
    pub fn socket_token(&self) -> PathBuf {
        self.path.join("socket-token")
    }

    /// The tree of a run.
    pub fn tree(&self, run: &longhaul_core::RunId) -> PathBuf {
        self.path.join(TREES).join(run.as_str())
    }

    /// The tree of a run's sessions with this number; the first is the run's own.
    pub fn tree_of(&self, run: &longhaul_core::RunId, number: u32) -> PathBuf {
        match number {
            0 => self.tree(run),
            number => self.path.join(TREES).join(format!("{run}.{number}")),
        }
    }

    /// The numbers of a run's existing trees except the first, in order.
    pub fn trees_beside(&self, run: &longhaul_core::RunId) -> std::io::Result<Vec<u32>> {
        let first = self.tree(run);
        let beside = format!("{run}.");
        let mut numbers = Vec::new();
        for entry in first.parent().map(std::fs::read_dir).transpose()?.into_iter().flatten() {
            let name = entry?.file_name().to_string_lossy().into_owned();
            numbers.extend(name.strip_prefix(&beside).and_then(|number| number.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes all trees except the first; they are made again when they are needed. A data directory without trees has
    /// none to remove.
    pub fn forget_trees_beside(&self, run: &longhaul_core::RunId) -> std::io::Result<()> {
        let first = self.tree(run);
        let beside = format!("{run}.");
        let entries = match first.parent().map(std::fs::read_dir).transpose() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            found => found?,
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(&beside).and_then(|rest| rest.split('.').next());
            if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
                let path = entry.path();
                // Programs wrote it: nested deeper than any stack, or without permissions.
                if entry.file_type()?.is_dir() {
                    longhaul_sandbox::remove_all(&path)?;
                } else {
                    std::fs::remove_file(path)?;
                }
            }
        }
        Ok(())
    }

    /// The directory for the copies that checks work on.
    pub fn scratch(&self) -> PathBuf {
        self.path.join(SCRATCH)
    }

    /// Installed plugins.
    pub fn plugins(&self) -> PathBuf {
        self.path.join("plugins")
    }
}

/// The words in a lock file.
fn lock_text(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(LOCK_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The process that has the lock of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number.
    pub pid: u32,
    /// True when it is a server, which keeps the lock until somebody ends it.
    pub is_server: bool,
    /// The holder of the state, as a clause, if the owner is a server that stands by for it.
    pub waits_for: Option<String>,
    /// The time for which it has had the lock, if the clock tells.
    pub held: Option<Duration>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match self.held.map(|held| held.as_secs()) {
            None => Ok(()),
            Some(seconds @ ..120) => write!(f, ", for {seconds} s"),
            Some(seconds @ ..7_200) => write!(f, ", for {} min", seconds / 60),
            Some(seconds @ ..172_800) => write!(f, ", for {} h", seconds / 3_600),
            Some(seconds) => write!(f, ", for {} days", seconds / 86_400),
        }
    }
}

/// The data directory with its lock, which ends with this value or with the process.
#[derive(Debug)]
pub struct Owned {
    home: Home,
    lock: File,
}

impl Owned {
    /// Tells others that this process is a server, which keeps the lock until somebody ends it.
    pub fn say_server(&self) {
        self.write(SERVER);
    }

    /// Tells others that this process is a server that stands by. `waits_for` is a clause about who has the state, such
    /// as `the database is held by ...`.
    pub fn say_standby(&self, waits_for: &str) {
        self.write(&format!("{STANDBY}\n{}", truncate(waits_for, WAITS_FOR_BYTES_MAX)));
    }

    /// Writes this process into the lock file. An owner that cannot is still the owner, and only nobody is told who it
    /// is.
    fn write(&self, word: &str) {
        let mut file = &self.lock;
        let text = format!("{} {word}", std::process::id());
        let written = file.set_len(0).and_then(|()| file.rewind());
        let _: io::Result<()> = written.and_then(|()| writeln!(file, "{}", text.trim_end()));
    }

    /// The directory.
    pub fn home(&self) -> &Home {
        &self.home
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_the_lock_is_known_as_long_as_it_has_it() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::find(Some(place.path().join("home"))).unwrap();
        assert_eq!(home.lock_holder(), None, "there is no directory");
        let owned = home.try_own().unwrap().unwrap();
        let holder = home.lock_holder().unwrap();
        assert_eq!((holder.pid, holder.is_server), (std::process::id(), false));
        home.refuse_second_server().unwrap();
        owned.say_server();
        assert!(home.lock_holder().unwrap().is_server);
        home.refuse_standby().unwrap();
        owned.say_standby("the database is held by process 5 on there");
        let holder = home.lock_holder().unwrap();
        assert_eq!(holder.waits_for.as_deref(), Some("the database is held by process 5 on there"));
        assert!(holder.is_server, "a second server is refused");
        let refused = home.refuse_standby().unwrap_err().to_string();
        assert!(refused.contains("stands by, since the database is held by process 5 on there"), "{refused}");
        owned.say_server();
        let refused = home.refuse_second_server().unwrap_err();
        let expected = format!("another longhaul owns `{}`: a server, process ", home.path().display());
        assert!(refused.to_string().starts_with(&expected), "{refused}");
        assert!(refused.to_string().contains(&format!("kill {}", std::process::id())), "{refused}");
        drop(owned);
        assert_eq!(home.lock_holder(), None, "its words are still in the file");
        home.refuse_second_server().unwrap();
        // An owner of the version before wrote its number alone.
        let owned = home.try_own().unwrap().unwrap();
        std::fs::write(home.path().join("lock"), "17\n").unwrap();
        assert_eq!(home.lock_holder().map(|holder| (holder.pid, holder.is_server)), Some((17, false)));
        std::fs::write(home.path().join("lock"), "").unwrap();
        assert_eq!(home.lock_holder(), None, "it does not tell yet");
        drop(owned);
    }

    #[test]
    fn the_time_of_a_holder_is_told_in_a_unit_of_its_length() {
        let told = |seconds| {
            let held = Some(Duration::from_secs(seconds));
            LockHolder { pid: 7, is_server: true, waits_for: None, held }.to_string()
        };
        for (seconds, expected) in [
            (119, "for 119 s"),
            (120, "for 2 min"),
            (7_199, "for 119 min"),
            (7_200, "for 2 h"),
            (172_799, "for 47 h"),
            (172_800, "for 2 days"),
        ] {
            assert_eq!(told(seconds), format!("process 7, {expected}"));
        }
        assert_eq!(LockHolder { pid: 7, is_server: false, waits_for: None, held: None }.to_string(), "process 7");
    }
}
