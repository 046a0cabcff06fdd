//! The certain names at a place of a source: those bound on every path to it, or at least touched.
//!
//! Statuses are in one map with a trail of changes. A branch is walked, undone, and joined with the others, at a cost
//! in proportion to its own changes and not to all names.
//!
//! The numbers of names and scopes are our own, so a fast hash without a secret is safe for them.

use super::Settled;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// The number of names of a module whose statuses need no list.
const FEW: usize = 8;

/// A name of one scope; the module is scope 0.
pub(super) type Key = (u32, u32);

/// A place of the trail to return to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    trail: usize,
    unbound: usize,
    stopped: bool,
}

/// The changes of a branch.
pub(super) struct Branch {
    changed: FxHashMap<Key, Option<Settled>>,
    live: bool,
}

/// The statuses at the walk's present place.
#[derive(Default)]
pub(super) struct Flow {
    /// The statuses of the module's first names, by number, so that a small source needs no list.
    few: [Option<Settled>; FEW],
    /// The statuses of the module's other names.
    module: Vec<Option<Settled>>,
    /// The statuses of all other names.
    status: FxHashMap<Key, Settled>,
    /// The changes since the first mark.
    trail: Vec<(Key, Option<Settled>)>,
    marked: Cell<bool>,
    unbound: Vec<Key>,
    /// The walk ended in a jump.
    stopped: bool,
}

impl Flow {
    pub(super) fn status(&self, key: Key) -> Option<Settled> {
        match key {
            (0, name) => {
                let name = name as usize;
                self.few.get(name).or_else(|| self.module.get(name - FEW)).copied().flatten()
            }
            _ => self.status.get(&key).copied(),
        }
    }

    pub(super) fn bind(&mut self, key: Key) {
        self.set(key, Some(Settled::Bound));
    }

    pub(super) fn unbind(&mut self, key: Key) {
        self.unbound.push(key);
        self.set(key, Some(Settled::Either));
    }

    /// The walk ends in a jump: the code after it is not reached from here.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn mark(&self) -> Mark {
        self.marked.set(true);
        Mark { trail: self.trail.len(), unbound: self.unbound.len(), stopped: self.stopped }
    }

    /// The number of changes since a mark.
    pub(super) fn changes_since(&self, mark: Mark) -> usize {
        self.trail.len() - mark.trail
    }

    /// The changes since a mark, without undoing them.
    pub(super) fn since(&self, mark: Mark) -> Branch {
        let changed = self.trail[mark.trail..].iter().map(|(key, _)| (*key, self.status(*key))).collect();
        Branch { changed, live: !self.stopped }
    }

    /// Undoes the changes since a mark, and returns them.
    pub(super) fn take(&mut self, mark: Mark) -> Branch {
        let branch = self.since(mark);
        while self.trail.len() > mark.trail {
            if let Some((key, before)) = self.trail.pop() {
                self.put(key, before);
            }
        }
        self.stopped = mark.stopped;
        branch
    }

    /// Continues after several branches that started here. Branches that ended in a jump do not count.
    pub(super) fn join(&mut self, branches: &[Branch]) {
        let live = branches.iter().filter(|branch| branch.live);
        let count = live.clone().count();
        if count == 0 {
            self.stopped = true;
            return;
        }
        let mut met: FxHashMap<Key, (usize, Option<Settled>)> = FxHashMap::default();
        for (key, status) in live.flat_map(|branch| &branch.changed) {
            met.entry(*key)
                .and_modify(|(seen, other)| {
                    *seen += 1;
                    *other = meet(*other, *status);
                })
                .or_insert((1, *status));
        }
        for (key, (seen, status)) in met {
            let before = self.status(key);
            let status = if seen < count { meet(status, before) } else { status };
            if status != before {
                self.set(key, status);
            }
        }
    }

    /// Makes the changes since the mark uncertain.
    pub(super) fn maybe(&mut self, mark: Mark) {
        if self.changes_since(mark) > 0 || self.stopped != mark.stopped {
            let branch = self.take(mark);
            self.join(&[branch, Branch { changed: FxHashMap::default(), live: true }]);
        }
    }

    /// Names that were unbound between two marks are not certain to be bound any more: the unbinding may have happened,
    /// or not.
    pub(super) fn doubt_unbound(&mut self, began: Mark, ended: Mark) {
        for at in began.unbound..ended.unbound {
            let key = self.unbound[at];
            if self.status(key) == Some(Settled::Bound) {
                self.set(key, Some(Settled::Either));
            }
        }
    }

    /// Applies the certain changes of a branch here too.
    pub(super) fn apply(&mut self, branch: &Branch) {
        for (key, status) in branch.changed.iter().filter(|(_, status)| status.is_some()) {
            self.set(*key, *status);
        }
        self.stopped |= !branch.live;
    }

    fn set(&mut self, key: Key, status: Option<Settled>) {
        let before = self.put(key, status);
        if self.marked.get() {
            self.trail.push((key, before));
        }
    }

    fn of_module(&mut self, name: usize) -> &mut Option<Settled> {
        if name < FEW {
            return &mut self.few[name];
        }
        let name = name - FEW;
        if name >= self.module.len() {
            self.module.resize(name + 1, None);
        }
        &mut self.module[name]
    }

    fn put(&mut self, key: Key, status: Option<Settled>) -> Option<Settled> {
        if let (0, name) = key {
            return std::mem::replace(self.of_module(name as usize), status);
        }
        match status {
            Some(status) => self.status.insert(key, status),
            None => self.status.remove(&key),
        }
    }
}

impl Branch {
    /// A branch without changes: the path that skips all others.
    pub(super) fn past() -> Self {
        Self { changed: FxHashMap::default(), live: true }
    }
}

fn meet(one: Option<Settled>, other: Option<Settled>) -> Option<Settled> {
    match (one?, other?) {
        (Settled::Bound, Settled::Bound) => Some(Settled::Bound),
        _ => Some(Settled::Either),
    }
}
