//! The data directory: its path, its owner, its content.
//!
//! | path | content |
//! |---|---|
//! | `lock` | locked by the owner; the lock decides, not the socket |
//! | `state.redb`, `state.lock` | all state, and the store's own lock |
//! | `socket` | the owner's socket, mode 0600 |
//! | `socket-token` | the token that a client of the socket sends, mode 0600; made anew by each owner |
//! | `trees/RUN/` | the tree that the agents of a run work on |
//! | `scratch/` | copies that checks run on |
//! | `plugins/` | installed plugins; the crate `longhaul-plugins` keeps them |
//! | `secrets/` | values of secrets, mode 0600; the crate `longhaul-security` keeps them |
//! | `signing.key`, `signers` | the key of this directory, and accepted ones of others; likewise |

use longhaul_core::fault::{self, Context, bail};
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The variable that names the data directory.
pub const VARIABLE: &str = "LONGHAUL_HOME";

const TREES: &str = "trees";
const SCRATCH: &str = "scratch";

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

/// Whether no other user can reach the content of a directory of this user; programs of root may traverse it.
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
        let path = self.path.join("lock");
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).with_context(|| {
                let path = self.path.display();
                format!("cannot write in the data directory `{path}`; make it writable, or choose another with --home")
            })?;
        match file.try_lock() {
            Ok(()) => {
                // For people who look for the owner; nothing reads it.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                Ok(Some(Owned { home: self.clone(), _lock: file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock `{}`", path.display())),
        }
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

    /// Removes all trees except the first; they are made again when they are needed.
    pub fn forget_trees_beside(&self, run: &longhaul_core::RunId) -> std::io::Result<()> {
        let first = self.tree(run);
        let beside = format!("{run}.");
        for entry in first.parent().map(std::fs::read_dir).transpose()?.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(&beside).and_then(|rest| rest.split('.').next());
            if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
                let path = entry.path();
                if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
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

/// The data directory with its lock, which ends with this value or with the process.
#[derive(Debug)]
pub struct Owned {
    home: Home,
    _lock: File,
}

impl Owned {
    /// The directory.
    pub fn home(&self) -> &Home {
        &self.home
    }
}
