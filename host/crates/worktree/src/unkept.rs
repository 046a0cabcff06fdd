//! Files that their author means to keep and that no commit would hold.
//!
//! The output of a tool chain in ignored directories does not matter, and may be a hundred thousand files. So nothing
//! here walks through a tree: each path that a call names is stamped before the call, and a changed one is looked up in
//! the rules of a scan. Refuses paths that leave the tree, and follows no link.

use crate::ignore::Rules;
use crate::names::{self, join, shown};
use crate::root::{EntryKind, EntryStamp, Root, TEMPORARY};
use crate::scan::{LeftOut, count, in_module, too_large};
use crate::tree::Tree;
use crate::{TreeError, UserRepository};
use git2::{ObjectType, Oid, Repository};
use std::cell::Cell;

/// Paths that are tracked for one call.
const PATHS_MAX: usize = 256;

/// Paths that a call names, with their stamps before it.
#[derive(Clone, Debug, Default)]
pub struct Named {
    paths: Vec<(Vec<u8>, Option<EntryStamp>)>,
}

impl Tree {
    /// Stamps these paths, from the top of the tree. Invalid paths are skipped, and so are those after the first 256.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn note_named<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<Named, TreeError> {
        let root = self.root()?;
        let mut named = Named::default();
        for path in paths.into_iter().filter_map(plain).take(PATHS_MAX) {
            let before = root.stamp(&path).map_err(TreeError::io("look at", root.path(&path)))?;
            named.paths.push((path, before));
        }
        Ok(named)
    }

    /// The named paths that were written since, and that no commit would hold.
    ///
    /// # Errors
    /// When the file system or git refuses.
    pub fn unkept_since(&self, project: &UserRepository, named: &Named) -> Result<Vec<LeftOut>, TreeError> {
        let root = self.root()?;
        let mut written = Vec::new();
        for (path, before) in &named.paths {
            let now = root.stamp(path).map_err(TreeError::io("look at", root.path(path)))?;
            written.extend(now.filter(|now| is_written(before.as_ref(), now)).map(|now| (path.clone(), now)));
        }
        self.unkept_of(project, &root, written)
    }

    /// The existing ones of these paths that no commit would hold.
    ///
    /// # Errors
    /// When the file system or git refuses.
    pub fn unkept(&self, project: &UserRepository, paths: &[String]) -> Result<Vec<LeftOut>, TreeError> {
        let root = self.root()?;
        let mut there = Vec::new();
        for path in paths.iter().filter_map(|path| plain(path)) {
            let now = root.stamp(&path).map_err(TreeError::io("look at", root.path(&path)))?;
            there.extend(now.map(|now| (path, now)));
        }
        self.unkept_of(project, &root, there)
    }

    fn unkept_of(
        &self,
        project: &UserRepository,
        root: &Root,
        written: Vec<(Vec<u8>, EntryStamp)>,
    ) -> Result<Vec<LeftOut>, TreeError> {
        let Some(at) = self.at().filter(|_| !written.is_empty()) else { return Ok(Vec::new()) };
        let repo = project.repo()?;
        let lookup = Lookup { repo: &repo, root, base: base(&repo, &at)?, steps: Cell::new(0) };
        let mut unkept = Vec::new();
        for (path, stamp) in written {
            let too_deep = || too_deep(&path, self.caps().depth_max);
            let why = lookup.why(&path, &stamp)?.or_else(too_deep).or_else(|| too_large(stamp.len, self.caps()));
            unkept.extend(why.map(|why| LeftOut { path: shown(&path), why }));
        }
        Ok(unkept)
    }
}

/// The data for the look-up of a path.
struct Lookup<'a> {
    repo: &'a Repository,
    root: &'a Root,
    base: git2::Tree<'a>,
    /// Steps of matching `.gitignore`.
    steps: Cell<u64>,
}

impl Lookup<'_> {
    /// The reason why no commit would hold the file at `path`, from the outermost directory on.
    fn why(&self, path: &[u8], stamp: &EntryStamp) -> Result<Option<String>, TreeError> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_known = self.kind(path).is_some_and(|kind| kind != ObjectType::Commit);
        let mut rules = Rules::of_repository(self.repo);
        let mut dir: &[u8] = b"";
        for end in slashes.chain([path.len()]) {
            let (here, is_last) = (&path[..end], end == path.len());
            rules = rules.within(self.root, dir)?;
            if self.kind(here) == Some(ObjectType::Commit) {
                return Ok(Some(in_module(here)));
            }
            if let Some(why) = names::refused(here).or_else(|| reserved(here)).filter(|_| !is_known) {
                return Ok(Some(why));
            }
            let is_dir = !is_last || stamp.sort == EntryKind::Dir;
            if !is_known && let Some(rule) = rules.covering(here, is_dir, &self.steps)? {
                return Ok(Some(ignored(&rule)));
            }
            dir = here;
        }
        Ok(None)
    }

    /// The object type at `path` in the commit.
    fn kind(&self, path: &[u8]) -> Option<ObjectType> {
        use std::os::unix::ffi::OsStrExt;
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
        self.base.get_path(path).ok()?.kind()
    }
}

fn base<'a>(repo: &'a Repository, commit: &str) -> Result<git2::Tree<'a>, TreeError> {
    let found = Oid::from_str(commit).and_then(|id| repo.find_commit(id)?.tree());
    found.map_err(|_| TreeError::NoCommit { commit: commit.to_owned(), dir: repo.path().to_owned() })
}

/// A change in an existing directory does not count as a write of it: the changed file has a path of its own.
fn is_written(before: Option<&EntryStamp>, now: &EntryStamp) -> bool {
    match before {
        Some(before) if now.sort == EntryKind::Dir && before.sort == EntryKind::Dir => false,
        before => before != Some(now),
    }
}

fn ignored(rule: &str) -> String {
    format!("is ignored by {rule}; write it elsewhere, or change that rule")
}

fn too_deep(path: &[u8], depth_max: u64) -> Option<String> {
    // The top counts as the first directory.
    let depth = count(path.iter().filter(|byte| **byte == b'/').count()) + 1;
    (depth > depth_max).then(|| format!("is in {depth} directories within each other, and {depth_max} are the most"))
}

/// Names of partly written files, which no scan sees.
fn reserved(path: &[u8]) -> Option<String> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let why = "has a name that is kept for files which are half written; choose another name";
    name.starts_with(TEMPORARY).then(|| why.to_owned())
}

/// A path without `.` and empty names. None: it leaves the tree, or names no file.
fn plain(path: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        if name == ".." || name.contains('\0') || name.len() > 255 {
            return None;
        }
        plain = join(&plain, name.as_bytes());
    }
    (!plain.is_empty() && !path.starts_with('/') && plain.len() <= 4_096).then_some(plain)
}
