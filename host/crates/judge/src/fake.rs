//! Files of a work and of its base commit, for tests of the judges.

use crate::{CheckFiles, EvidenceKind, JudgedCheck};
use std::collections::BTreeMap;

/// Texts by their paths. All files of the base commit are pinned.
pub(crate) struct FakeFiles {
    base: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
}

impl FakeFiles {
    pub(crate) fn of(base: &[(&str, &str)], now: &[(&str, &str)]) -> Self {
        let owned = |files: &[(&str, &str)]| {
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect::<BTreeMap<_, _>>()
        };
        Self { base: owned(base), now: owned(now) }
    }
}

impl CheckFiles for FakeFiles {
    fn paths(&self) -> Vec<String> {
        self.now.keys().cloned().collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        self.now.get(path).cloned()
    }

    fn base_paths(&self) -> Vec<String> {
        self.base.keys().cloned().collect()
    }

    fn read_base(&self, path: &str) -> Option<String> {
        self.base.get(path).cloned()
    }

    fn pinned(&self) -> Vec<String> {
        self.base_paths()
    }
}

/// A check with twins of a command.
pub(crate) fn check<'a>(argv: &'a [String], kind: EvidenceKind, files: &'a FakeFiles) -> JudgedCheck<'a> {
    JudgedCheck { argv, kind, twins: true, report: None, tests_min: 0, seed: [9; 32], files }
}
