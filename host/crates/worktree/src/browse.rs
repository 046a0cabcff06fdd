//! Lists the files of a tree, one by one: ignored files are skipped, links are not followed.
//!
//! Every file is opened as [`crate::root`] does it, so that a directory that becomes a link in the middle leads
//! nowhere. Refuses more entries and deeper directories than the caps of the tree, and reads nothing: the caller gets
//! an open file.

use crate::TreeError;
use crate::caps::cap;
use crate::git::UserRepository;
use crate::ignore::Rules;
use crate::names::{join, shown};
use crate::root::{EntryKind, Root, TEMPORARY};
use crate::tree::Tree;
use std::cell::Cell;
use std::fs::File;
use std::ops::ControlFlow;
use std::rc::Rc;

/// A file of the tree.
pub struct Browsed<'a> {
    /// The path from the top of the tree; see [`crate::FileChange::path`].
    pub path: &'a str,
    /// Its length when it was listed, in bytes.
    pub bytes: u64,
    root: &'a Root,
    raw: &'a [u8],
}

impl Browsed<'_> {
    /// The open file. An error if it no longer exists or is no regular file any more.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(&self) -> std::io::Result<File> {
        self.root.open_file(self.raw)
    }
}

impl Tree {
    /// Shows every regular file below `under`, sorted by path within a directory, to `look`, until it breaks off.
    /// Returns how many entries were skipped since they are no regular files.
    ///
    /// # Errors
    /// A cap, a path that leads nowhere, or the file system.
    pub fn browse(
        &self,
        project: &UserRepository,
        under: &str,
        look: &mut dyn FnMut(&Browsed<'_>) -> ControlFlow<()>,
    ) -> Result<u64, TreeError> {
        let repo = project.repo()?;
        let root = self.root()?;
        let mut rules = Rules::of_repository(&repo);
        let mut at = Vec::new();
        // Directories above may be ignored, too.
        for name in under.as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            rules = rules.within(&root, &at)?;
            at = join(&at, name);
        }
        let mut walk = Walk { root: &root, tree: self, steps: Cell::new(0), seen: 0, passed_over: 0 };
        walk.run(at, &rules, look)?;
        Ok(walk.passed_over)
    }
}

/// With an explicit stack: the guest chooses the depth.
struct Walk<'a> {
    root: &'a Root,
    tree: &'a Tree,
    steps: Cell<u64>,
    seen: u64,
    passed_over: u64,
}

impl Walk<'_> {
    fn run(
        &mut self,
        from: Vec<u8>,
        rules: &Rc<Rules>,
        look: &mut dyn FnMut(&Browsed<'_>) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        if self.root.stamp(&from).is_ok_and(|found| matches!(found, Some(stamp) if stamp.sort != EntryKind::Dir)) {
            let _ = self.show(&from, look);
            return Ok(());
        }
        let mut waiting = vec![(from, 1, Rc::clone(rules))];
        while let Some((dir, depth, rules)) = waiting.pop() {
            cap("depth_max", depth, self.tree.caps().depth_max, &dir)?;
            let rules = rules.within(self.root, &dir)?;
            let entries = self.root.list(&dir).map_err(TreeError::io("list", self.root.path(&dir)))?;
            let mut below = Vec::new();
            for (name, stamp) in entries {
                let path = join(&dir, &name);
                self.seen += 1;
                cap("files_max", self.seen, self.tree.caps().files_max, &path)?;
                let is_dir = stamp.sort == EntryKind::Dir;
                if is_ours(&name) || rules.cover(&path, is_dir, &self.steps)? {
                    continue;
                }
                if is_dir {
                    below.push((path, depth + 1, Rc::clone(&rules)));
                } else if self.show(&path, look).is_break() {
                    return Ok(());
                }
            }
            waiting.extend(below.into_iter().rev());
        }
        Ok(())
    }

    fn show(&mut self, raw: &[u8], look: &mut dyn FnMut(&Browsed<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self.root.stamp(raw) {
            Ok(Some(stamp)) if matches!(stamp.sort, EntryKind::File { .. }) => {
                look(&Browsed { path: &shown(raw), bytes: stamp.len, root: self.root, raw })
            }
            _ => {
                self.passed_over += 1;
                ControlFlow::Continue(())
            }
        }
    }
}

fn is_ours(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git") || name.starts_with(TEMPORARY)
}
