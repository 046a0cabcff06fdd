//! The sources that this program embeds: the contract, the SDKs, the templates, the interpreters.
//!
//! With them the program alone can make projects and build them. Paths are those of the repository, so that relative
//! references (of an SDK to the contract) hold in any folder.

use crate::cache::{Cache, create_dir, write_whole};
use crate::error::BuildError;
use longhaul_core::Digest;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Each file with its path from the top.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

static DIGEST: LazyLock<Digest> = LazyLock::new(|| {
    let parts: Vec<&[u8]> = FILES.iter().flat_map(|(path, bytes)| [path.as_bytes(), bytes]).collect();
    Digest::of_parts(&parts)
});

/// The files below a folder, each with its path from there.
pub fn below(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, bytes)| {
        let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
        Some((rest, *bytes))
    })
}

/// Writes all files to a folder of the cache; returns its top.
///
/// # Errors
/// When they cannot be written.
pub fn unpack(cache: &Cache) -> Result<PathBuf, BuildError> {
    cache.folder(&format!("sources-{}", DIGEST.short()), |top| {
        FILES.iter().try_for_each(|(path, bytes)| put(&top.join(path), bytes))
    })
}

/// Writes a file and makes its parent folders.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    write_whole(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_and_the_sdks_are_carried_and_nothing_that_was_built() {
        let all: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        for wanted in ["wit/v0.1/worlds.wit", "wit/v0.1/deps/io.wit", "sdk/rust/src/lib.rs", "plugins/python/app.py"] {
            assert!(all.contains(&wanted), "{wanted}");
        }
        let unwanted = |path: &&&str| path.split('/').any(|part| part == "target" || part == "node_modules");
        assert_eq!(all.iter().filter(unwanted).count(), 0);
        assert_eq!(below("wit/v0.1").filter(|(path, _)| *path == "worlds.wit").count(), 1);
    }

    /// Folders that lie in a linked folder come with it; one beside it needs a link of its own in `embedded`.
    #[test]
    fn every_part_of_an_sdk_has_its_link() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let is_needless =
            |name: &str| name.starts_with('.') || ["examples", "testkit", "tests", "target"].contains(&name);
        for folder in ["sdk", "sdk/rust", "sdk/templates", "sdk/templates/rust"] {
            for entry in std::fs::read_dir(top.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let (file, below) = (format!("{folder}/{name}"), format!("{folder}/{name}/"));
                let is_carried = FILES.iter().any(|(path, _)| *path == file || path.starts_with(&below));
                let is_lock = file == "sdk/rust/Cargo.lock";
                assert!(is_carried || is_lock || is_needless(&name), "{file}; link it in host/crates/build/embedded");
            }
        }
    }
}
