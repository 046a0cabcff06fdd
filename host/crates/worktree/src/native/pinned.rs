//! The files that decide a check, as a commit has them.

use super::NativeCheck;
use super::copy::Source;
use crate::glob::Glob;
use crate::scan::{Base, Entry, Mode, join};
use longhaul_core::Digest;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// What the globs of a check take from a commit.
pub(super) struct Pinned<'a> {
    /// Those that match something.
    pub(super) globs: BTreeSet<&'a str>,
    pub(super) files: BTreeMap<Vec<u8>, Entry>,
}

impl<'a> Pinned<'a> {
    pub(super) fn of(base: &Base, check: &'a NativeCheck) -> Self {
        let mut pinned = Self { globs: BTreeSet::new(), files: BTreeMap::new() };
        for (path, entry) in base.files.iter().filter(|(_, entry)| entry.mode != Mode::Module) {
            for glob in check.files.iter().filter(|glob| is_match(glob, path)) {
                pinned.globs.insert(glob);
                pinned.files.insert(path.clone(), *entry);
            }
        }
        pinned
    }

    pub(super) fn digest(&self, check: &NativeCheck) -> Digest {
        // A struct of strings and numbers always has a JSON form.
        let mut parts = vec![serde_json::to_vec(check).unwrap_or_default()];
        for (path, entry) in &self.files {
            parts.extend([path.clone(), format!("{:o} {}", entry.mode.to_git(), entry.id).into_bytes()]);
        }
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Puts the pinned files over `files`, and removes whatever else lies where they are or matches.
    pub(super) fn put_over(&self, files: &mut BTreeMap<Vec<u8>, Source>) {
        let is_in_the_way = |path: &[u8]| {
            let below = join(path, b"");
            self.files.range(below.clone()..).next().is_some_and(|(pinned, _)| pinned.starts_with(&below))
        };
        let is_below_a_pin = |path: &[u8]| {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.into_iter().any(|(at, _)| self.files.contains_key(&path[..at]))
        };
        files.retain(|path, _| {
            !self.globs.iter().any(|glob| is_match(glob, path)) && !is_in_the_way(path) && !is_below_a_pin(path)
        });
        files.extend(self.files.iter().map(|(path, entry)| (path.clone(), Source::Base(*entry))));
    }
}

fn is_match(glob: &str, path: &[u8]) -> bool {
    Glob::parse(glob.as_bytes()).matches(path, true, &Cell::new(0))
}
