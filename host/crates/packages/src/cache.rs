//! The cache of packages: resolved requirements, wheels, and the folders that guests see.

use crate::error::PackagesError;
use crate::pip;
use longhaul_build::ProgressLine;
use longhaul_build::cache::{Cache, create_dir, write_whole};
use longhaul_core::Digest;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_core::packages::{LOCK_BYTES_MAX, PACKAGES_GUEST, PackageLock, PackageRequirement, sorted};
use std::path::PathBuf;

/// The folder of all packages below the cache.
const FOLDER: &str = "packages";

/// The modules, beside the marker of a complete folder.
const SITE: &str = "site";

/// The cache of packages of a user.
pub struct PackageCache {
    cache: Cache,
    say: ProgressLine,
}

impl PackageCache {
    /// The packages in the cache of this user.
    ///
    /// # Errors
    /// [`PackagesError::Cache`] when there is no place for it.
    pub fn open(say: ProgressLine) -> Result<Self, PackagesError> {
        Ok(Self { cache: Cache::open(say)?, say })
    }

    /// The lock to which the requirements last resolved here; without one as [`Self::resolve`].
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn lock(&self, wants: &[PackageRequirement]) -> Result<PackageLock, PackagesError> {
        match self.remembered(wants) {
            Some(lock) => Ok(lock),
            None => self.resolve(wants),
        }
    }

    /// Asks the index what the requirements need, and remembers it.
    ///
    /// # Errors
    /// [`PackagesError::Refused`] when there is no such package, it has compiled modules, the requirements exclude each
    /// other, or the index cannot be reached; [`PackagesError::NoPython`].
    pub fn resolve(&self, wants: &[PackageRequirement]) -> Result<PackageLock, PackagesError> {
        let wants = sorted(wants);
        let names: Vec<&str> = wants.iter().map(PackageRequirement::as_str).collect();
        (self.say)(&format!("resolving {} with pip", names.join(", ")));
        let (lock, text) = readable(PackageLock { packages: pip::resolve(&wants)?, wants })?;
        let path = self.path_of(&lock.wants);
        if let Some(folder) = path.parent() {
            create_dir(folder)?;
        }
        write_whole(&path, text.as_bytes())?;
        Ok(lock)
    }

    /// The folder with the modules of a lock, for a guest. It is filled if it is not there, from the cache's wheels,
    /// and from the index for those that are missing.
    ///
    /// # Errors
    /// [`PackagesError::Refused`] when a wheel is not what the lock says, is malformed or too large, or the index
    /// cannot be reached; [`PackagesError::NoPython`].
    pub fn grant(&self, lock: &PackageLock) -> Result<DirectoryGrant, PackagesError> {
        let name = Digest::of_parts(&[pip::SCRIPT.as_bytes(), lock.digest().as_bytes()]);
        let folder = self.cache.folder(&format!("{FOLDER}/{name}"), |folder| -> Result<(), PackagesError> {
            (self.say)(&format!("laying out {} packages of Python, once", lock.packages.len()));
            let site = folder.join(SITE);
            create_dir(&site)?;
            pip::fill(&lock.packages, &self.cache.path(&format!("{FOLDER}/wheels")), &site)
        })?;
        Ok(DirectoryGrant { guest: PACKAGES_GUEST.to_owned(), host: folder.join(SITE), access: Access::Read })
    }

    /// The kept lock of these packages; none where there is none, or a spoiled one, which is made again.
    fn remembered(&self, wants: &[PackageRequirement]) -> Option<PackageLock> {
        let path = self.path_of(&sorted(wants));
        let bytes = std::fs::metadata(&path).ok()?.len();
        if bytes > LOCK_BYTES_MAX as u64 {
            return None;
        }
        let lock: PackageLock = std::fs::read_to_string(&path).ok()?.parse().ok()?;
        lock.is_for(wants).then_some(lock)
    }

    fn path_of(&self, sorted: &[PackageRequirement]) -> PathBuf {
        let parts: Vec<&[u8]> = sorted.iter().map(|want| want.as_str().as_bytes()).collect();
        self.cache.path(&format!("{FOLDER}/locks/{}.txt", Digest::of_parts(&parts)))
    }
}

/// A lock as it is read again, and its text. Names and versions are those that an index told.
fn readable(lock: PackageLock) -> Result<(PackageLock, String), PackagesError> {
    let text = lock.to_string();
    match text.parse::<PackageLock>() {
        Ok(read)
            if text.len() <= LOCK_BYTES_MAX
                && read.is_for(&lock.wants)
                && read.packages.len() == lock.packages.len() =>
        {
            Ok((read, text))
        }
        _ => Err(PackagesError::Refused(
            "the index tells names or versions that no packages have; use other packages, or another index".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::packages::LockedPackage;

    #[test]
    fn a_lock_that_could_not_be_read_again_is_refused() {
        let lock = |name: &str, version: &str| {
            let package = LockedPackage { name: name.into(), version: version.into(), sha256: Digest::of(b"a") };
            PackageLock { wants: vec!["a".parse().expect("a name")], packages: vec![package] }
        };
        let (read, text) = readable(lock("a", "1.0")).expect("it is read");
        assert_eq!((read, text.lines().count()), (lock("a", "1.0"), 3));
        for (name, version) in [("a\nb", "1"), ("a", "1\n# wants: c"), ("../a", "1"), ("a", "1 --pre"), ("", "1")] {
            let refused = readable(lock(name, version)).expect_err("no package has it").to_string();
            assert!(refused.contains("another index"), "{refused}");
        }
    }
}
