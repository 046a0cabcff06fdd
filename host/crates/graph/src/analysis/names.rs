//! Sorted lists of names, no larger than what they hold.
//!
//! A graph keeps several of them for each of its steps, and most steps have few names: a tree's smallest node would be
//! many times larger than what is in it. Lists that are equal, as of what a step may bind and what it surely binds, may
//! be one.

use super::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Map;
use std::slice::Iter;
use std::sync::Arc;

/// Names in their order, each once.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Names(Option<Arc<[Name]>>);

/// Something for each of several names, in their order.
#[derive(Clone, PartialEq, Eq)]
pub struct ByName<T>(Box<[(Name, T)]>);

/// What an entry of [`ByName`] looks like from outside.
type Entry<T> = fn(&(Name, T)) -> (&Name, &T);

impl Names {
    /// Of names that are in their order, each once.
    pub(super) fn sorted<'n>(mut names: impl Iterator<Item = &'n Name> + Clone) -> Self {
        // Counted first, so that the list is made in its place.
        let (count, mut next) = (names.clone().count(), || names.next().expect("it was counted").clone());
        let names = (count > 0).then(|| (0..count).map(|_| next()).collect::<Arc<[Name]>>());
        debug_assert!(names.iter().all(|names| names.is_sorted_by(|one, next| one < next)));
        Self(names)
    }

    /// One name more, in time in proportion to how many there are.
    pub fn insert(&mut self, name: Name) {
        if let Err(at) = self.all().binary_search(&name) {
            let (before, after) = self.all().split_at(at);
            self.0 = Some(before.iter().cloned().chain([name]).chain(after.iter().cloned()).collect());
        }
    }

    /// Whether the name is one of them.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.all().binary_search_by(|one| (**one).cmp(name)).is_ok()
    }

    /// The names in their order.
    pub fn iter(&self) -> Iter<'_, Name> {
        self.all().iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// True without any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn all(&self) -> &[Name] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T> ByName<T> {
    /// Of so many entries, whose names are in their order, each once.
    pub(super) fn sorted(count: usize, entries: impl Iterator<Item = (Name, T)>) -> Self {
        if count == 0 {
            return Self::default();
        }
        // As long as it has to be, so that nothing grows or shrinks.
        let mut exact = Vec::with_capacity(count);
        exact.extend(entries);
        debug_assert!(exact.is_sorted_by(|(one, _), (next, _)| one < next));
        Self(exact.into_boxed_slice())
    }

    /// Of entries in any order; of several of one name, the first.
    pub(crate) fn first_of_each(mut entries: Vec<(Name, T)>) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (first, _)| later == first);
        Self(entries.into_boxed_slice())
    }

    /// Something for one name, instead of what there was; in time in proportion to how many there are.
    pub fn insert(&mut self, name: Name, value: T) {
        let mut entries = std::mem::take(&mut self.0).into_vec();
        match entries.binary_search_by(|(one, _)| one.cmp(&name)) {
            Ok(at) => entries[at].1 = value,
            Err(at) => entries.insert(at, (name, value)),
        }
        self.0 = entries.into_boxed_slice();
    }

    /// What there is for the name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        let at = self.0.binary_search_by(|(one, _)| (**one).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Whether there is something for the name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries in the order of their names.
    pub fn iter(&self) -> Map<Iter<'_, (Name, T)>, Entry<T>> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The names in their order.
    pub fn keys(&self) -> impl Iterator<Item = &Name> + Clone {
        self.0.iter().map(|(name, _)| name)
    }

    /// What there is, in the order of the names.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<'a> IntoIterator for &'a Names {
    type Item = &'a Name;
    type IntoIter = Iter<'a, Name>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a ByName<T> {
    type Item = (&'a Name, &'a T);
    type IntoIter = Map<Iter<'a, (Name, T)>, Entry<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<T: Serialize> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'d, T: Deserialize<'d>> Deserialize<'d> for ByName<T> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|entries| Self(entries.into_iter().collect()))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for ByName<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}
