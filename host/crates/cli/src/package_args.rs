//! The options of packages for Python, shared by the commands that run it: exec, graphs and agents.
//!
//! They become a directory of the cache that the code may read, named by the digest of its content. Nothing of a
//! package runs on this machine.

use super::plugin::say;
use clap::Args;
use longhaul_build::cache::write_whole;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::DirectoryGrant;
use longhaul_core::packages::{LOCK_BYTES_MAX, NotARequirement, PackageLock, PackageRequirement};
use longhaul_home::text_file;
use longhaul_packages::PackageCache;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct PackageArgs {
    /// A package in pure Python for the code, such as `tabulate==0.9.0`, with all that it needs. May be given several
    /// times. pip fetches it once; afterwards no network is needed.
    #[arg(long, value_name = "PACKAGE", value_parser = requirement)]
    with: Vec<PackageRequirement>,
    /// A file with the exact packages and their digests: followed if it is there, and written if it is not.
    #[arg(long, value_name = "FILE", requires = "with")]
    lock: Option<PathBuf>,
    /// Resolve the packages again, to newer versions where there are any.
    #[arg(long, requires = "with")]
    upgrade: bool,
}

impl PackageArgs {
    pub fn is_empty(&self) -> bool {
        self.with.is_empty()
    }

    /// The directory with the packages; none if none are named.
    pub fn grant(&self) -> fault::Result<Option<DirectoryGrant>> {
        if self.is_empty() {
            return Ok(None);
        }
        let cache = PackageCache::open(say)?;
        let lock = self.locked(&cache)?;
        Ok(Some(cache.grant(&lock)?))
    }

    fn locked(&self, cache: &PackageCache) -> fault::Result<PackageLock> {
        match &self.lock {
            Some(path) if path.exists() && !self.upgrade => self.read(path),
            Some(path) => {
                let lock = self.resolved(cache)?;
                keep(path, &lock)?;
                Ok(lock)
            }
            None => self.resolved(cache),
        }
    }

    fn resolved(&self, cache: &PackageCache) -> fault::Result<PackageLock> {
        Ok(if self.upgrade { cache.resolve(&self.with)? } else { cache.lock(&self.with)? })
    }

    fn read(&self, path: &Path) -> fault::Result<PackageLock> {
        let text =
            text_file::read(path, LOCK_BYTES_MAX as u64).with_context(|| format!("read `{}`", path.display()))?;
        let lock: PackageLock = text.parse::<PackageLock>().with_context(|| format!("`{}`", path.display()))?;
        if !lock.is_for(&self.with) {
            bail!("`{}` is of other packages; write it anew with --upgrade", path.display());
        }
        Ok(lock)
    }
}

/// Puts a lock in its place: a repository may bring a link of the name along, to anything.
fn keep(path: &Path, lock: &PackageLock) -> fault::Result<()> {
    Ok(write_whole(path, lock.to_string().as_bytes())?)
}

fn requirement(text: &str) -> Result<PackageRequirement, String> {
    text.parse().map_err(|error: NotARequirement| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_written_in_the_place_of_a_link_and_not_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("keys"), "of the user").unwrap();
        for (link, target) in [("to-a-file", "keys"), ("to-none", "made")] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
            keep(&at(link), &PackageLock::default()).unwrap();
            assert!(at(link).is_file() && !at(link).is_symlink());
        }
        assert_eq!(std::fs::read_to_string(at("keys")).unwrap(), "of the user");
        assert!(!at("made").exists());
    }

    #[test]
    fn a_lock_is_followed_only_for_what_it_was_made_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let args = |with: &str| PackageArgs { with: vec![with.parse().unwrap()], lock: None, upgrade: false };
        std::fs::write(&path, format!("# wants: a==1\na==1 --hash=sha256:{}\n", "0".repeat(64))).unwrap();
        assert_eq!(args("a == 1").read(&path).unwrap().packages[0].name, "a");
        let error = format!("{:#}", args("a==2").read(&path).expect_err("of another version"));
        assert!(error.ends_with("is of other packages; write it anew with --upgrade"), "{error}");
        assert!(requirement("-r x").expect_err("no option").contains("names no package of an index"));
    }
}
