//! The scratch directory of a program: an empty work directory, a home and a directory for temporary files.

use crate::remove::remove_all;
use crate::{SandboxError, SandboxHost};
use std::path::{Path, PathBuf};

/// The subdirectories. `dev` is a mount point.
pub(crate) const DIRECTORIES: [&str; 4] = ["work", "home", "tmp", "dev"];

/// A directory for one program, removed with its content.
pub struct ScratchDirectory(Option<tempfile::TempDir>);

impl ScratchDirectory {
    /// Makes a scratch directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(host: &SandboxHost) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::Room { path: host.scratch.clone(), source };
        let prefix = format!("check-{}-", std::process::id());
        let room = tempfile::Builder::new().prefix(&prefix).tempdir_in(&host.scratch).map_err(failed)?;
        DIRECTORIES.iter().try_for_each(|name| std::fs::create_dir(room.path().join(name))).map_err(failed)?;
        Ok(Self(Some(room)))
    }

    /// The directory that is `$TMPDIR` for the program, and `../tmp` from its working directory.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// The directory itself, for [`crate::run_in`].
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), tempfile::TempDir::path)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let Some(room) = self.0.take() else { return };
        let clear = move || {
            let path = room.keep();
            if let Err(error) = remove_all(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove what a program left");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(clear)),
            Err(_) => clear(),
        }
    }
}
