//! The files that decide a check, from a commit.

use super::check::NativeCheck;
use crate::glob::Glob;
use crate::names::{join, shown};
use crate::scan::{Base, Entry, Mode};
use longhaul_core::Digest;
use longhaul_judge::{RunnerFileRule, runner_file};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// The files that decide a check, from the base commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFiles {
    /// The commit.
    pub base: String,
    /// The digest of the command, its settings and every file with its content.
    pub digest: Digest,
    /// The paths, sorted.
    pub files: Vec<String>,
    /// Notes for the operator: globs that pin nothing.
    pub notes: Vec<String>,
}

/// The source of a file in the copy.
pub(super) enum Source {
    Base(Entry),
    Tree(Entry),
}

impl Source {
    pub(super) fn entry(&self) -> Entry {
        let (Self::Base(entry) | Self::Tree(entry)) = self;
        *entry
    }
}

/// The pinned files of a check: those of its globs, and a test runner's own files automatically.
pub(super) struct Pinned<'a> {
    /// The globs that match something.
    pub(super) globs: BTreeSet<&'a str>,
    pub(super) files: BTreeMap<Vec<u8>, Entry>,
    /// Names of a runner's files that the commit has.
    names: BTreeSet<&'static str>,
    unpinned: &'a [String],
}

impl<'a> Pinned<'a> {
    pub(super) fn of(base: &Base, check: &'a NativeCheck) -> Self {
        let (globs, files, names) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let mut pinned = Self { globs, files, names, unpinned: &check.unpinned };
        for (path, entry) in base.files.iter().filter(|(_, entry)| entry.mode != Mode::Module) {
            for glob in check.files.iter().filter(|glob| is_match(glob, path)) {
                pinned.globs.insert(glob);
                pinned.files.insert(path.clone(), *entry);
            }
            if let Some((name, _)) = pinned.unasked(path) {
                pinned.names.insert(name);
                pinned.files.insert(path.clone(), *entry);
            }
        }
        pinned
    }

    /// The name and the rule of a runner's file that is pinned automatically.
    fn unasked(&self, path: &[u8]) -> Option<(&'static str, RunnerFileRule)> {
        let file = runner_file(std::str::from_utf8(path).ok()?).filter(|file| file.rule != RunnerFileRule::Shown)?;
        (!self.unpinned.iter().any(|glob| is_match(glob, path))).then_some((file.name, file.rule))
    }

    /// True when a file of the work that the commit does not have is left out.
    fn is_left_out(&self, path: &[u8]) -> bool {
        self.unasked(path).is_some_and(|(name, rule)| rule == RunnerFileRule::LeftOut || self.names.contains(name))
    }

    pub(super) fn digest(&self, check: &NativeCheck) -> Digest {
        // A struct of strings and numbers always has a JSON form.
        let mut parts = vec![serde_json::to_vec(check).unwrap_or_default()];
        for (path, entry) in &self.files {
            parts.extend([path.clone(), format!("{:o} {}", entry.mode.to_git(), entry.id).into_bytes()]);
        }
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Puts the pinned files over `files`, and removes other files at their paths or in their globs. Returns the
    /// runner's files whose changes the check does not see.
    pub(super) fn put_over(&self, files: &mut BTreeMap<Vec<u8>, Source>) -> Vec<String> {
        let is_changed = |(path, source): &(&Vec<u8>, &Source)| matches!(source, Source::Tree(entry) if self.files.get(*path).is_none_or(|pinned| pinned.id != entry.id));
        let changed = files.iter().filter(is_changed).filter(|(path, _)| {
            self.is_left_out(path) || self.files.contains_key(*path) && self.unasked(path).is_some()
        });
        let unseen = changed.map(|(path, _)| shown(path)).collect();
        let is_in_the_way = |path: &[u8]| {
            let below = join(path, b"");
            self.files.range(below.clone()..).next().is_some_and(|(pinned, _)| pinned.starts_with(&below))
        };
        let is_below_a_pin = |path: &[u8]| {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.into_iter().any(|(at, _)| self.files.contains_key(&path[..at]))
        };
        files.retain(|path, _| {
            let is_dropped = self.globs.iter().any(|glob| is_match(glob, path)) || self.is_left_out(path);
            !is_dropped && !is_in_the_way(path) && !is_below_a_pin(path)
        });
        files.extend(self.files.iter().map(|(path, entry)| (path.clone(), Source::Base(*entry))));
        unseen
    }
}

fn is_match(glob: &str, path: &[u8]) -> bool {
    Glob::parse(glob.as_bytes()).matches(path, true, &Cell::new(0))
}
