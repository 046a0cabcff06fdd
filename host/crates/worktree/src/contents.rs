//! The difference of a tree to a commit, as content by digest from which another machine makes the tree again.
//!
//! One manifest a directory, so that a changed file changes the manifests above it alone. Ignored files are no part of
//! it, as in a scan, but links that leave the tree and files that were half written are: they are work that a program
//! may go on with. Files that cannot be taken along are named. See [`Tree::rebuild`] for the way back.

use crate::caps::cap;
use crate::manifest::{self, ManifestEntry, RawBytes};
use crate::names::shown;
use crate::root::{EntryKind, EntryStamp, Root, split};
use crate::scan::{ChangeKind, Item, Mode, ScanState, content, count, is_unsafe, too_large};
use crate::tree::Tree;
use crate::{TreeError, UserRepository};
use longhaul_core::Digest;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The difference of a tree to a commit: manifests, and the changed files. Equal trees have the same `root`.
#[derive(Clone, Debug)]
pub struct TreeContents {
    /// The commit.
    pub base: String,
    /// The digest of the top directory's manifest.
    pub root: Digest,
    /// The number of changed files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// The manifests, each under its digest. Two directories may have the same one.
    pub manifests: Vec<(Digest, Vec<u8>)>,
    /// The changed files, sorted by path. Two may have the same content.
    pub contents: Vec<FileContent>,
    /// The files that are not taken along, sorted by path. Ignored files are not listed.
    pub lost: Vec<LostFile>,
}

/// A changed file; see [`Tree::read_content`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// The digest of its content.
    pub digest: Digest,
    /// The path within the tree.
    pub path: PathBuf,
    /// The length of its content.
    pub bytes: u64,
}

/// A file that no other machine gets.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LostFile {
    /// The path from the root of the tree, with `/`. Invalid UTF-8 is shown as `\xNN`.
    pub path: String,
    /// The reason: follows the path in a sentence.
    pub why: String,
}

impl Tree {
    /// The difference to the commit `base`. Files that are as they were at the last call are not read again.
    ///
    /// # Errors
    /// A cap, a file that changes meanwhile, or when git or the file system refuses.
    pub fn contents(&self, project: &UserRepository, base: &str) -> Result<TreeContents, TreeError> {
        let root = self.root()?;
        let seen = self.look(project, &root, base)?;
        let mut collector = Collector::new(self, &root);
        for item in &seen.items {
            collector.item(item)?;
        }
        for path in &seen.left_over {
            collector.left_over(path)?;
        }
        seen.empty_dirs.iter().for_each(|path| collector.make(path));
        collector.lose_rest(&seen);
        collector.finish(seen.base.commit.to_string())
    }

    /// The content of a changed file.
    ///
    /// # Errors
    /// [`TreeError::Raced`] when it is no longer that.
    pub fn read_content(&self, file: &FileContent) -> Result<Vec<u8>, TreeError> {
        let path = file.path.as_os_str().as_bytes();
        let raced = || TreeError::Raced { path: shown(path) };
        if path.split(|byte| *byte == b'/').any(is_unsafe) {
            return Err(TreeError::stored(format!("`{}`", shown(path)), "is no path of a tree"));
        }
        let root = self.root()?;
        root.stamp(path).map_err(TreeError::io("look at", root.path(path)))?.filter(is_file).ok_or_else(raced)?;
        let bytes = content(&root, path, false, self.caps().file_bytes_max)?;
        if Digest::of(&bytes) == file.digest { Ok(bytes) } else { Err(raced()) }
    }

    /// The digest and the length of the regular file at `path`.
    fn digest_of(&self, root: &Root, path: &[u8]) -> Result<(Digest, u64), TreeError> {
        let stamp = root.stamp(path).map_err(TreeError::io("look at", root.path(path)))?;
        let stamp = stamp.filter(is_file).ok_or_else(|| TreeError::Raced { path: shown(path) })?;
        let settled = stamp.is_settled();
        if settled && let Some(digest) = self.known_digest(path, &stamp) {
            return Ok((digest, stamp.len));
        }
        let bytes = content(root, path, false, self.caps().file_bytes_max)?;
        let (digest, len) = (Digest::of(&bytes), count(bytes.len()));
        if settled
            && len == stamp.len
            && let Ok(mut known) = self.digests().lock()
        {
            known.insert(path.to_vec(), (stamp, digest));
        }
        Ok((digest, len))
    }

    fn known_digest(&self, path: &[u8], stamp: &EntryStamp) -> Option<Digest> {
        let known = self.digests().lock().ok()?;
        known.get(path).filter(|(then, _)| then == stamp).map(|(_, digest)| *digest)
    }
}

/// The differences of a tree, by directory.
struct Collector<'a> {
    tree: &'a Tree,
    root: &'a Root,
    /// The entries of each directory with a difference, but for directories.
    directories: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, ManifestEntry>>,
    /// True for each path that is a directory.
    looked_up: HashMap<Vec<u8>, bool>,
    contents: Vec<FileContent>,
    lost: Vec<LostFile>,
}

impl<'a> Collector<'a> {
    fn new(tree: &'a Tree, root: &'a Root) -> Self {
        let mut collector = Self {
            tree,
            root,
            directories: BTreeMap::new(),
            looked_up: HashMap::new(),
            contents: Vec::new(),
            lost: Vec::new(),
        };
        collector.make(b"");
        collector
    }

    fn item(&mut self, item: &Item) -> Result<(), TreeError> {
        let path = &item.raw;
        match (&item.left_out, item.now.map(|now| now.mode)) {
            // Without it, the tree would have the content of the commit in its place.
            (Some(why), _) if item.kind == ChangeKind::Modified && too_large(item.len, self.tree.caps()).is_some() => {
                Err(TreeError::stored(format!("`{}`", shown(path)), why.clone()))
            }
            (Some(why), _) => {
                self.lose(path, why);
                Ok(())
            }
            (None, None) => self.gone(path),
            (None, Some(Mode::Link)) => self.link(path),
            (None, Some(mode)) => self.file(path, mode == Mode::Executable),
        }
    }

    /// A file that was half written stays; the program that wrote it may go on.
    fn left_over(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let stamp = self.root.stamp(path).map_err(TreeError::io("look at", self.root.path(path)))?;
        match stamp.map(|stamp| (stamp.sort, too_large(stamp.len, self.tree.caps()))) {
            None => Ok(()),
            Some((EntryKind::File { executable }, None)) => self.file(path, executable),
            Some((EntryKind::Link, _)) => self.link(path),
            Some((EntryKind::File { .. }, Some(why))) => {
                self.lose(path, &why);
                Ok(())
            }
            Some((EntryKind::Dir | EntryKind::Other, _)) => {
                self.lose(path, "is half removed");
                Ok(())
            }
        }
    }

    fn file(&mut self, path: &[u8], executable: bool) -> Result<(), TreeError> {
        let (digest, bytes) = self.tree.digest_of(self.root, path)?;
        self.put(path, ManifestEntry::File { digest, bytes, executable });
        self.contents.push(FileContent { digest, path: OsStr::from_bytes(path).into(), bytes });
        Ok(())
    }

    fn link(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let target = content(self.root, path, true, self.tree.caps().file_bytes_max)?;
        self.put(path, ManifestEntry::Link { target: RawBytes(target) });
        Ok(())
    }

    /// Names the topmost directory that is gone with the file. A directory in its place is none of the file's entries.
    fn gone(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in slashes.chain([path.len()]) {
            if !self.is_dir(&path[..end])? {
                let (dir, name) = split(&path[..end]);
                self.make(dir);
                let entries = self.directories.entry(dir.to_vec()).or_default();
                // Another file may be in its place.
                entries.entry(name.to_vec()).or_insert(ManifestEntry::Gone);
                return Ok(());
            }
        }
        self.make(path);
        Ok(())
    }

    fn is_dir(&mut self, path: &[u8]) -> Result<bool, TreeError> {
        if let Some(known) = self.looked_up.get(path) {
            return Ok(*known);
        }
        let stamp = self.root.stamp(path).map_err(TreeError::io("look at", self.root.path(path)))?;
        let is_dir = stamp.is_some_and(|stamp| stamp.sort == EntryKind::Dir);
        self.looked_up.insert(path.to_vec(), is_dir);
        Ok(is_dir)
    }

    fn put(&mut self, path: &[u8], entry: ManifestEntry) {
        let (dir, name) = split(path);
        self.make(dir);
        self.directories.entry(dir.to_vec()).or_default().insert(name.to_vec(), entry);
    }

    /// Notes a directory and those above it, which exist.
    fn make(&mut self, mut dir: &[u8]) {
        while !self.directories.contains_key(dir) {
            self.directories.insert(dir.to_vec(), BTreeMap::new());
            dir = split(dir).0;
        }
    }

    fn lose(&mut self, path: &[u8], why: &str) {
        self.lost.push(LostFile { path: shown(path), why: why.to_owned() });
    }

    /// Entries of the file system that are no files.
    fn lose_rest(&mut self, seen: &ScanState) {
        for path in &seen.special {
            self.lose(path, "is a socket, a pipe or a device");
        }
        for path in &seen.repositories {
            self.lose(path, "is a repository of its own; the files beside it are taken along");
        }
    }

    /// Directories below come first: their digests are in the manifests above.
    fn finish(mut self, base: String) -> Result<TreeContents, TreeError> {
        let caps = self.tree.caps();
        let entries: u64 = self.directories.values().map(|entries| count(entries.len()) + 1).sum();
        cap("entries_max", entries, entries_max(caps.files_max), b"")?;
        let bytes = self.contents.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
        cap("bytes_max", bytes, caps.bytes_max, b"")?;
        let mut manifests = Vec::new();
        let mut root = Digest::of(b"");
        while let Some((dir, entries)) = self.directories.pop_last() {
            let (digest, text) = manifest::encode(&dir, entries)?;
            manifests.push((digest, text));
            if dir.is_empty() {
                root = digest;
            } else {
                self.put(&dir, ManifestEntry::Directory { manifest: digest });
            }
        }
        self.contents.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
        self.lost.sort_by(|a, b| a.path.cmp(&b.path));
        let (contents, lost) = (self.contents, self.lost);
        Ok(TreeContents { base, root, files: count(contents.len()), bytes, manifests, contents, lost })
    }
}

/// Entries of all manifests of a tree that may have so many files: those of the commit may all be gone, and their
/// directories changed.
pub(crate) fn entries_max(files_max: u64) -> u64 {
    files_max.saturating_mul(3)
}

fn is_file(stamp: &EntryStamp) -> bool {
    matches!(stamp.sort, EntryKind::File { .. })
}
