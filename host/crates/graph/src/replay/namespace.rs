//! The namespace at every step, from the changes of all earlier steps.
//!
//! An index from names to the steps that left them, and to the steps that looked them up. A lookup before a step, and
//! the search for the readers of a change, cost in proportion to their results, for any number of steps.

use super::history::StepRun;
use crate::analysis::VariableName;
use crate::step::{Delta, GivenGroup, KeptValues, ValueGroup};
use longhaul_core::Digest;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A step's place in the order of the namespace.
pub(crate) type Position = u64;

/// A step's value of a name; none when it unbound it.
type Left = Option<Arc<ValueGroup>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    left: HashMap<VariableName, BTreeMap<Position, Left>>,
    readers: HashMap<VariableName, BTreeSet<Position>>,
    readers_of_all: BTreeSet<Position>,
}

impl Namespace {
    /// The group with the name before a step, and the step that left it.
    pub(crate) fn find(&self, name: &str, before: Position) -> Option<(Position, &Arc<ValueGroup>)> {
        let (position, left) = self.left.get(name)?.range(..before).next_back()?;
        left.as_ref().map(|group| (*position, group))
    }

    /// Those names of a group that are still its own.
    pub(crate) fn names_of(&self, group: &ValueGroup, left_by: Position, before: Position) -> BTreeSet<VariableName> {
        let is_own = |name: &&VariableName| self.find(name, before).is_some_and(|(position, _)| position == left_by);
        group.names.iter().filter(is_own).cloned().collect()
    }

    /// The digest of a name's value before a step: it changes when its group does, or loses a variable.
    pub(crate) fn seen(&self, name: &str, before: Position) -> Option<Digest> {
        let (left_by, group) = self.find(name, before)?;
        let names = self.names_of(group, left_by, before);
        let value = group.kept.value();
        let mut parts: Vec<&[u8]> = vec![value.as_bytes()];
        parts.extend(names.iter().map(|name| name.as_bytes()));
        Some(Digest::of_parts(&parts))
    }

    /// The digest of what a name reaches by itself, for a step that reads these names: it stays the same when other
    /// variables come to share objects with the name, or no longer do. It is that of the group if more of the group is
    /// read, or if nothing else is known.
    pub(crate) fn seen_alone(
        &self,
        name: &str,
        before: Position,
        is_read: impl Fn(&VariableName) -> bool,
    ) -> Option<Digest> {
        let (left_by, group) = self.find(name, before)?;
        let Some(value) = group.value_of(name) else { return self.seen(name, before) };
        let names = self.names_of(group, left_by, before);
        if names.iter().any(|other| **other != *name && is_read(other)) {
            return self.seen(name, before);
        }
        Some(Digest::of_parts(&[b"alone", value.as_bytes()]))
    }

    /// The digest of the whole namespace before a step.
    pub(crate) fn seen_all(&self, before: Position) -> Digest {
        let names = self.names(before);
        let seen: Vec<_> = names.iter().filter_map(|name| Some((name, self.seen(name, before)?))).collect();
        let parts: Vec<&[u8]> = seen.iter().flat_map(|(name, digest)| [name.as_bytes(), digest.as_bytes()]).collect();
        Digest::of_parts(&parts)
    }

    /// Every name that exists before a step.
    pub(crate) fn names(&self, before: Position) -> BTreeSet<VariableName> {
        self.left.keys().filter(|name| self.find(name, before).is_some()).cloned().collect()
    }

    /// Replaces a step's last run with a new one, and returns the later steps that read a changed value.
    pub(crate) fn replace(&mut self, at: Position, old: Option<&StepRun>, new: Option<&StepRun>) -> BTreeSet<Position> {
        let none = Delta::default();
        let delta_of = |run: Option<&StepRun>| run.map_or_else(|| none.clone(), |run| run.report.delta.clone());
        let (old_delta, new_delta) = (delta_of(old), delta_of(new));
        let touched = self.touched(at, [&old_delta, &new_delta]);
        let before: Vec<_> = touched.iter().map(|name| self.seen(name, at + 1)).collect();
        old_delta.names().for_each(|name| self.take_out(name, at));
        for group in &new_delta.groups {
            group.names.iter().for_each(|name| self.put(name, at, Some(Arc::clone(group))));
        }
        new_delta.deleted.iter().for_each(|name| self.put(name, at, None));
        self.note_reads(at, old, new);
        let changed = touched.iter().zip(before).filter(|(name, before)| self.seen(name, at + 1) != *before);
        let names: Vec<&VariableName> = changed.map(|(name, _)| name).collect();
        self.readers_after(at, &names)
    }

    /// The names that a change affects: its own, and those that shared a group with them before.
    fn touched(&self, at: Position, deltas: [&Delta; 2]) -> BTreeSet<VariableName> {
        let mut touched = BTreeSet::new();
        for name in deltas.into_iter().flat_map(Delta::names) {
            touched.insert(Arc::clone(name));
            if let Some((left_by, group)) = self.find(name, at) {
                touched.extend(self.names_of(group, left_by, at));
            }
        }
        touched
    }

    /// The readers of these names, up to the next step that wrote them.
    fn readers_after(&self, at: Position, names: &[&VariableName]) -> BTreeSet<Position> {
        let mut found = BTreeSet::new();
        for name in names {
            let next = self.left.get(*name).and_then(|left| left.range(at + 1..).next());
            let last = next.map_or(Position::MAX, |(position, _)| *position);
            if let Some(readers) = self.readers.get(*name) {
                found.extend(readers.range(at + 1..=last));
            }
        }
        if !names.is_empty() {
            found.extend(self.readers_of_all.range(at + 1..));
        }
        found
    }

    fn note_reads(&mut self, at: Position, old: Option<&StepRun>, new: Option<&StepRun>) {
        for name in old.into_iter().flat_map(|run| run.reads.keys()) {
            if let Some(readers) = self.readers.get_mut(name) {
                readers.remove(&at);
                if readers.is_empty() {
                    self.readers.remove(name);
                }
            }
        }
        self.readers_of_all.remove(&at);
        for name in new.into_iter().flat_map(|run| run.reads.keys()) {
            self.readers.entry(Arc::clone(name)).or_default().insert(at);
        }
        if new.is_some_and(|run| run.all.is_some()) {
            self.readers_of_all.insert(at);
        }
    }

    fn put(&mut self, name: &VariableName, at: Position, left: Left) {
        self.left.entry(Arc::clone(name)).or_default().insert(at, left);
    }

    fn take_out(&mut self, name: &VariableName, at: Position) {
        if let Some(left) = self.left.get_mut(name) {
            left.remove(&at);
            if left.is_empty() {
                self.left.remove(name);
            }
        }
    }

    /// Names with all names that functions under them may look up when they are called.
    pub(crate) fn with_needs(&self, names: BTreeSet<VariableName>, before: Position) -> BTreeSet<VariableName> {
        let mut open: Vec<VariableName> = names.iter().cloned().collect();
        let mut found = names;
        while let Some(name) = open.pop() {
            let Some((left_by, group)) = self.find(&name, before) else { continue };
            let own = self.names_of(group, left_by, before);
            for other in group.needs.iter().chain(&own) {
                if self.find(other, before).is_some() && found.insert(Arc::clone(other)) {
                    open.push(Arc::clone(other));
                }
            }
        }
        found
    }

    /// The groups with these names before a step, and the first step whose values cannot be stored.
    pub(crate) fn groups(
        &self,
        names: &BTreeSet<VariableName>,
        before: Position,
    ) -> (Vec<GivenGroup>, Option<Position>) {
        let (mut given, mut live, mut done) = (Vec::new(), None::<Position>, BTreeSet::new());
        for name in names {
            let Some((left_by, group)) = self.find(name, before) else { continue };
            if done.contains(name) {
                continue;
            }
            let own = self.names_of(group, left_by, before);
            done.extend(own.iter().cloned());
            match &group.kept {
                KeptValues::Live { .. } => live = Some(live.map_or(left_by, |least| least.min(left_by))),
                KeptValues::Stored { blob, value, .. } => {
                    let value = (own.len() == group.names.len()).then_some(*value);
                    given.push(GivenGroup { names: own, blob: *blob, value });
                }
            }
        }
        (given, live)
    }
}
