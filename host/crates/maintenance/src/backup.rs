//! Backs up a data directory into one file while it is in use, and restores it.
//!
//! The file is a tar archive, compressed with zstd, so that any system opens it. It contains:
//!
//! | path | content |
//! |---|---|
//! | `state.redb` | a consistent copy of the store |
//! | `plugins/` | installed plugins |
//! | `server.toml`, `resources.toml` | the settings of the data directory |
//! | `trees/RUN/` | the trees of inactive runs |
//! | `secrets/NAME` | secrets, if requested |
//! | `manifest.json` | each of these with its length, digest and mode, and the signer's key |
//! | `manifest.json.minisig` | the signature of the manifest; the last entry, so a truncated file has none |
//!
//! The manifest records the head of the audit log, and the restored log must have that record. A restore has to name
//! the signer, or state that the archive is unsigned. Parts that act by themselves (API tokens, `server.toml`, trust in
//! projects) are restored only on request. The signing key is in no archive.
//!
//! The archive leaves out everything that can be rebuilt (compiled code, copies for checks, models), and the tree of an
//! active run, which would not fit the store: such a run continues from its commits. Refuses to write over a file, to
//! restore into a directory that holds anything, and to leave half of a restored directory behind.

mod archive;
mod restore;

pub use archive::{ArchiveParts, write};
pub use restore::{PreparedStore, restore};

use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// The version of the archive. Those of version 1 are unsigned, and record no modes.
const VERSION: u32 = 2;

/// The last entry but one.
const MANIFEST: &str = "manifest.json";

/// The last entry.
const SIGNATURE: &str = "manifest.json.minisig";

/// The store's entry.
const STATE: &str = "state.redb";

/// The first path components that an archive may have.
const PLACES: [&str; 6] = [STATE, "plugins", "server.toml", "resources.toml", "trees", "secrets"];

/// Bytes of one file that is not the store. Components and files of a tree are far smaller.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Files of an archive.
const FILES_MAX: usize = 1_000_000;

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ArchiveEntry {
    /// The path from the top of the data directory.
    path: String,
    /// The size of its content.
    bytes: u64,
    /// The digest of its content, or of the target of a link.
    sha256: Digest,
    /// The target, if it is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// True when it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
}

/// The path of an entry, if it is valid: plain names only, below one of the allowed places.
fn checked(path: &Path) -> Option<PathBuf> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let is_file = |place: &str| place.contains('.');
    let (first, rest) = parts.split_first()?;
    let fits = PLACES.contains(first) && is_file(first) == rest.is_empty();
    fits.then(|| parts.iter().collect())
}

/// True when a link may be here: in the tree of a run, where the work of the run made it, and nowhere else. Elsewhere
/// the host itself would follow it.
fn may_be_link(inside: &Path) -> bool {
    inside.starts_with("trees") && inside.components().count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_a_data_directory_are_taken() {
        let taken = |path: &str| checked(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(taken("state.redb").as_deref(), Some("state.redb"));
        assert_eq!(taken("./plugins/a.wasm").as_deref(), Some("plugins/a.wasm"));
        for path in
            ["../state.redb", "/state.redb", "plugins/../../x", "plugins", "lock", "state.redb/x", "", "trees/../x"]
        {
            assert_eq!(taken(path), None, "{path}");
        }
    }

    #[test]
    fn links_are_taken_only_in_trees_of_runs() {
        assert!(may_be_link(Path::new("trees/run/link")) && may_be_link(Path::new("trees/run/a/link")));
        for path in ["state.redb", "server.toml", "plugins/a.wasm", "trees/run", "secrets/p/name"] {
            assert!(!may_be_link(Path::new(path)), "{path}");
        }
    }
}
