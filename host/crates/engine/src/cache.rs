//! Compiled code by digest, in a directory that no other user can write.
//!
//! Loading compiled code is running it, so the directory must be private: it is made with mode 0700, and refused when
//! it belongs to another user or others can write it. Each file also has a seal, without which it is compiled again
//! (see `seal.rs`).

use crate::compile_lock::CompileLock;
use crate::error::LoadError;
use crate::jail::Jail;
use crate::seal::{Sealer, Unsealed};
use crate::unfinished;
use longhaul_core::Digest;
use rustix::fs::StatVfsMountFlags;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

pub use longhaul_core::crash::CrashHook;

/// The fault of a cache whose file system is mounted noexec, and its remedy.
const NOEXEC: &str = "its file system is mounted noexec, so no compiled code runs from it; name a cache on another one \
                      with LONGHAUL_CACHE or XDG_CACHE_HOME";

/// True when the file system of a directory lets none of its files be run, as it does when it is mounted noexec.
#[must_use]
pub fn is_noexec(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

pub(crate) struct Cache {
    directory: PathBuf,
    fingerprint: String,
    sealer: Sealer,
    crash_hook: OnceLock<CrashHook>,
}

impl Cache {
    pub(crate) fn open(directory: PathBuf, fingerprint: String) -> Result<Self, LoadError> {
        let refuse = |reason: String| LoadError::Cache { path: directory.clone(), reason };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| refuse(format!("it cannot be made: {error}")))?;
        let found = fs::symlink_metadata(&directory).map_err(|error| refuse(error.to_string()))?;
        if !found.is_dir() {
            return Err(refuse("it is no directory; move it away".into()));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(refuse("it belongs to another user; choose another with LONGHAUL_CACHE".into()));
        }
        if found.mode() & 0o077 != 0 {
            return Err(refuse(format!("others can reach it; run: chmod 700 {}", directory.display())));
        }
        let sealer = Sealer::open(&directory).map_err(refuse)?;
        Ok(Self { directory, fingerprint, sealer, crash_hook: OnceLock::new() })
    }

    /// The file with the compiled code of `bytes`, compiled now if it does not exist.
    pub(crate) async fn compiled(
        &self,
        name: &str,
        digest: &Digest,
        bytes: &[u8],
        jail: &Jail,
    ) -> Result<PathBuf, LoadError> {
        self.check_runs_code()?;
        if let Some(path) = self.sealed(name, digest) {
            return Ok(path);
        }
        let path = self.path(digest);
        let _lock = CompileLock::take(name, &path).await;
        // The earlier holder of the lock has compiled it.
        if let Some(path) = self.sealed(name, digest) {
            return Ok(path);
        }
        self.compile(name, bytes, jail, &path).await?;
        Ok(path)
    }

    /// The file with the compiled code of a component, if it exists and has its seal. Another file is dropped.
    fn sealed(&self, name: &str, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        if !path.exists() {
            return None;
        }
        match self.sealer.check(&path) {
            Ok(()) => return Some(path),
            // Expected if an older version began the cache.
            Err(Unsealed::NoSeal) => tracing::info!(plugin = name, "compiled code without a seal is compiled anew"),
            Err(error) => tracing::warn!(plugin = name, "compiled code is not run, but compiled anew: {error}"),
        }
        self.forget(digest);
        None
    }

    /// Compiles `bytes` into the file `path`.
    async fn compile(&self, name: &str, bytes: &[u8], jail: &Jail, path: &Path) -> Result<(), LoadError> {
        tracing::info!(plugin = name, bytes = bytes.len(), "compiling; this happens once");
        self.remove_abandoned(Duration::from_millis(jail.limits.wall_ms_max));
        let unfinished = unfinished::create_in(&self.directory)
            .map_err(|error| self.refuse(format!("no file can be made in it: {error}")))?;
        self.reach("compile.before-start");
        jail.compile(name, bytes, unfinished.path()).await?;
        self.reach("compile.before-rename");
        // A name without its bytes, after a power cut, would be code that wasmtime maps and runs.
        unfinished
            .as_file()
            .sync_all()
            .map_err(|error| self.refuse(format!("a file in it cannot be kept: {error}")))?;
        self.sealer
            .seal(path, unfinished.as_file())
            .map_err(|error| self.refuse(format!("a file in it cannot be sealed: {error}")))?;
        // Renaming is atomic: two processes that compile the same plugin, where there are no locks, both end with a
        // whole file.
        unfinished.persist(path).map_err(|error| self.refuse(format!("the file cannot be named: {error}")))?;
        self.reach("compile.after-rename");
        Ok(())
    }

    /// Refuses a directory whose files may not be mapped as code, before something is compiled into it.
    fn check_runs_code(&self) -> Result<(), LoadError> {
        if is_noexec(&self.directory) {
            return Err(self.refuse(NOEXEC.into()));
        }
        Ok(())
    }

    /// Removes files that killed hosts left. Other hosts may be compiling, so only files older than two deadlines are
    /// removed.
    fn remove_abandoned(&self, deadline: Duration) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.filter_map(Result::ok) {
            let is_unfinished = unfinished::is_unfinished(&entry.file_name());
            let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
            if is_unfinished && age.is_some_and(|age| age > deadline * 2) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Drops a file that must not be loaded, so that it is compiled again.
    pub(crate) fn forget(&self, digest: &Digest) {
        let path = self.path(digest);
        self.sealer.forget(&path);
        let _ = fs::remove_file(path);
    }

    pub(crate) fn set_crash_hook(&self, hook: CrashHook) {
        // Set once, before anything is compiled.
        let _ = self.crash_hook.set(hook);
    }

    fn reach(&self, point: &'static str) {
        if let Some(hook) = self.crash_hook.get() {
            hook(point);
        }
    }

    /// The file with the compiled code of a component, if it exists and was compiled here.
    pub(crate) fn known(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        self.sealer.check(&path).ok().map(|()| path)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let key = Digest::of_parts(&[digest.as_bytes(), self.fingerprint.as_bytes()]);
        self.directory.join(format!("{key}.cwasm"))
    }

    fn refuse(&self, reason: String) -> LoadError {
        LoadError::Cache { path: self.directory.clone(), reason }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}
