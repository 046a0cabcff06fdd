//! The packages of Python that a project has locked.

use longhaul_core::Digest;
use longhaul_core::packages::LockedPackage;
use serde::{Deserialize, Serialize};

/// A package of a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LockedPackageView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its wheel.
    pub sha256: Digest,
}

/// The lock of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackageLockView {
    /// The path of the lock.
    pub path: String,
    /// The requirements of the tools of longhaul.toml.
    pub wants: Vec<String>,
    /// All packages that this needs.
    pub packages: Vec<LockedPackageView>,
}

impl From<LockedPackage> for LockedPackageView {
    fn from(package: LockedPackage) -> Self {
        let LockedPackage { name, version, sha256 } = package;
        Self { name, version, sha256 }
    }
}
