//! Makes a tree again from a commit and stored content; see [`Tree::contents`] for the way there.
//!
//! Every manifest is read and checked before anything is written, and the directory appears complete or not at all.
//! Stored bytes are hostile: their digests are compared, and counts, sizes and depth are bounded, so that a manifest
//! which many directories share ends, too. Writes through no link, and nothing outside the directory except the files
//! beside it that [`crate::Tree`] names.

use crate::caps::TreeCaps;
use crate::contents::entries_max;
use crate::manifest::{self, ManifestEntry, RawBytes};
use crate::names::join;
use crate::root::Root;
use crate::scan::{PATHS_BYTES_MAX, count};
use crate::tree::{Tree, beside, remove_if_there, remove_left_over};
use crate::{TreeError, UserRepository, no_hook};
use longhaul_core::Digest;
use std::path::Path;

/// Bytes of all manifests of a tree: four of the largest.
const MANIFESTS_BYTES_MAX: u64 = 256 << 20;

/// Reads stored content by its digest.
type Fetch<'a> = &'a mut dyn FnMut(&Digest) -> Result<Vec<u8>, TreeError>;

impl Tree {
    /// Writes the tree whose difference to the commit `base` has the manifest `root` into `directory`, which must not
    /// exist, and notes `base` as the commit that it was brought to. `fetch` returns stored content by its digest. A
    /// call that fails or is killed leaves at most a temporary directory and that note, which the next one replaces.
    ///
    /// # Errors
    /// [`TreeError::NotNew`], [`TreeError::Stored`] when content is damaged or over a limit, those of `fetch`, or when
    /// git or the file system refuses.
    pub fn rebuild(
        project: &UserRepository,
        directory: &Path,
        base: &str,
        root: &Digest,
        fetch: &mut dyn FnMut(&Digest) -> Result<Vec<u8>, TreeError>,
    ) -> Result<(), TreeError> {
        let directory = std::path::absolute(directory).map_err(TreeError::io("find", directory))?;
        remove_left_over(&directory)?;
        if std::fs::symlink_metadata(&directory).is_ok() {
            return Err(TreeError::NotNew { dir: directory, what: "is there already" });
        }
        let tree = Self::in_dir(&directory);
        let steps = steps(root, tree.caps(), fetch)?;
        let change = |made: &Root| {
            steps.iter().try_for_each(|(path, entry)| apply(made, path, entry, fetch))?;
            // Of an earlier tree of this name.
            remove_if_there(&beside(&directory, ".merge"))?;
            // Before the directory appears: without the note, its work would count as work on another commit.
            tree.note_at(base)
        };
        tree.write_fresh(project, base, change, &no_hook).map(|_| ())
    }
}

/// All differences, those of a directory before those below it.
fn steps(root: &Digest, caps: &TreeCaps, fetch: Fetch<'_>) -> Result<Vec<(Vec<u8>, ManifestEntry)>, TreeError> {
    let mut steps = Vec::new();
    let (mut manifests_bytes, mut files_bytes, mut paths_bytes) = (0_u64, 0_u64, 0_u64);
    let mut waiting = vec![(Vec::new(), *root, 1_u64)];
    while let Some((dir, digest, depth)) = waiting.pop() {
        // Directories of a commit may be one deeper than those that a walk enters.
        within("directories within each other", &dir, depth, caps.depth_max.saturating_add(1))?;
        let text = fetch(&digest)?;
        manifests_bytes = manifests_bytes.saturating_add(count(text.len()));
        within("bytes of manifests", &dir, manifests_bytes, MANIFESTS_BYTES_MAX)?;
        for (name, entry) in manifest::decode(&dir, &digest, &text)? {
            let path = join(&dir, &name);
            // Names are few bytes of a manifest that many directories share; their paths are not.
            paths_bytes = paths_bytes.saturating_add(count(path.len()));
            within("bytes of paths", b"", paths_bytes, PATHS_BYTES_MAX)?;
            match &entry {
                ManifestEntry::File { bytes, .. } => {
                    within("bytes of a file", &path, *bytes, caps.file_bytes_max)?;
                    files_bytes = files_bytes.saturating_add(*bytes);
                    within("bytes of files", &path, files_bytes, caps.bytes_max)?;
                }
                ManifestEntry::Directory { manifest } => waiting.push((path.clone(), *manifest, depth + 1)),
                ManifestEntry::Link { .. } | ManifestEntry::Gone => {}
            }
            steps.push((path, entry));
            within("entries", &dir, count(steps.len()), entries_max(caps.files_max))?;
        }
    }
    Ok(steps)
}

fn within(what: &str, path: &[u8], used: u64, max: u64) -> Result<(), TreeError> {
    if used <= max {
        return Ok(());
    }
    Err(TreeError::stored(manifest::told(path), format!("has {used} {what}, and {max} are the most")))
}

fn apply(made: &Root, path: &[u8], entry: &ManifestEntry, fetch: Fetch<'_>) -> Result<(), TreeError> {
    let written = match entry {
        ManifestEntry::Gone => made.remove(path),
        ManifestEntry::Directory { .. } => made.make_dir(path),
        ManifestEntry::Link { target: RawBytes(target) } => made.write_link(path, target),
        ManifestEntry::File { digest, bytes, executable } => {
            let content = fetch(digest)?;
            if Digest::of(&content) != *digest || count(content.len()) != *bytes {
                let why = format!("is not the content {} of {bytes} bytes", digest.short());
                return Err(TreeError::stored(manifest::told(path), why));
            }
            made.write(path, &content, *executable)
        }
    };
    written.map_err(TreeError::io("write", made.path(path)))
}
