//! Trees that are made again from stored content: equal to the original, and safe from whoever writes to the store.

mod hostile;
mod rebuilt;

use longhaul_core::Digest;
use longhaul_worktree::{Tree, TreeContents, TreeError, UserRepository};
use std::collections::BTreeMap;
use std::path::Path;

/// Content by digest.
type Stored = BTreeMap<Digest, Vec<u8>>;

/// Everything that makes the tree again.
fn stored(tree: &Tree, contents: &TreeContents) -> Stored {
    let files = contents.contents.iter().map(|file| (file.digest, tree.read_content(file).unwrap()));
    contents.manifests.iter().cloned().chain(files).collect()
}

fn rebuild(project: &UserRepository, dir: &Path, base: &str, root: &Digest, stored: &Stored) -> Result<(), TreeError> {
    let absent = || TreeError::Stored { what: "the content".to_owned(), why: "is not stored".to_owned() };
    Tree::rebuild(project, dir, base, root, &mut |digest| stored.get(digest).cloned().ok_or_else(absent))
}

/// The names of the entries of a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
