//! The bytes of the objects of a pack, counted before it is made: a repository may hold more than fits into memory.
//!
//! Counts objects as they are before compression, each once, and stops at the limit. Refuses nothing.

use crate::scan::count;
use crate::{TreeError, UserRepository};
use git2::{ObjectType, Odb, Oid, Repository};
use std::collections::HashSet;

impl UserRepository {
    /// True when the files and directories of the commits that lead to `tips`, and not to `hidden`, have at most
    /// `bytes_max` bytes. What the `hidden` commits themselves have is not counted.
    ///
    /// # Errors
    /// When git cannot read a commit or a tree.
    pub fn fits(&self, tips: &[String], hidden: &[String], bytes_max: u64) -> Result<bool, TreeError> {
        let failed = TreeError::git;
        let repo = self.repo()?;
        let odb = repo.odb().map_err(failed("open the object database"))?;
        let mut scale = Scale { repo: &repo, odb: &odb, seen: HashSet::new(), bytes: 0, bytes_max: u64::MAX };
        let mut walk = repo.revwalk().map_err(failed("walk the commits"))?;
        for commit in hidden {
            let id = Oid::from_str(commit).map_err(failed("read a commit"))?;
            walk.hide(id).map_err(failed("read a commit"))?;
            scale.add(id)?;
        }
        for commit in tips {
            let id = Oid::from_str(commit).map_err(failed("read a commit"))?;
            walk.push(id).map_err(failed("read a commit"))?;
        }
        (scale.bytes, scale.bytes_max) = (0, bytes_max);
        for id in walk {
            if !scale.add(id.map_err(failed("walk the commits"))?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Scale<'a> {
    repo: &'a Repository,
    odb: &'a Odb<'a>,
    /// Trees and blobs that count already.
    seen: HashSet<Oid>,
    bytes: u64,
    bytes_max: u64,
}

impl Scale<'_> {
    /// Adds what a commit has; false: that is too much.
    fn add(&mut self, commit: Oid) -> Result<bool, TreeError> {
        let failed = TreeError::git;
        let mut trees = vec![self.repo.find_commit(commit).map_err(failed("read a commit"))?.tree_id()];
        while let Some(id) = trees.pop() {
            if !self.seen.insert(id) {
                continue;
            }
            self.weigh(id)?;
            for entry in &self.repo.find_tree(id).map_err(failed("read a tree"))? {
                match entry.kind() {
                    Some(ObjectType::Tree) => trees.push(entry.id()),
                    Some(ObjectType::Blob) if self.seen.insert(entry.id()) => self.weigh(entry.id())?,
                    _ => {}
                }
            }
            if self.bytes > self.bytes_max {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn weigh(&mut self, id: Oid) -> Result<(), TreeError> {
        let (bytes, _) = self.odb.read_header(id).map_err(TreeError::git("read the size of an object"))?;
        self.bytes = self.bytes.saturating_add(count(bytes));
        Ok(())
    }
}
