//! The names of an edge in their order, each with the reason why the needed step matters to it.

use crate::analysis::{Reason, VariableName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Map;
use std::slice::Iter;

/// Names with their reasons, in the order of the names.
#[derive(Clone, Default)]
pub struct Variables(Entries);

/// Most edges have one name, which needs no list.
#[derive(Clone)]
enum Entries {
    One((VariableName, Reason)),
    /// In their order.
    Many(Box<[(VariableName, Reason)]>),
}

/// The public form of an entry.
type Entry = fn(&(VariableName, Reason)) -> (&VariableName, &Reason);

impl Variables {
    pub(super) fn one(name: VariableName, reason: Reason) -> Self {
        Self(Entries::One((name, reason)))
    }

    /// Takes entries in any order; of several of one name, the first.
    pub(super) fn first_of_each(mut entries: Vec<(VariableName, Reason)>) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (first, _)| later == first);
        Self(Entries::Many(entries.into()))
    }

    /// The reason why the name matters.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Reason> {
        let all = self.all();
        let at = all.binary_search_by(|(one, _)| (**one).cmp(name)).ok()?;
        Some(&all[at].1)
    }

    /// True when the edge has the name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries in the order of their names.
    pub fn iter(&self) -> Map<Iter<'_, (VariableName, Reason)>, Entry> {
        self.all().iter().map(|(name, reason)| (name, reason))
    }

    /// The names in their order.
    pub fn keys(&self) -> impl Iterator<Item = &VariableName> + Clone {
        self.all().iter().map(|(name, _)| name)
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// True without any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn all(&self) -> &[(VariableName, Reason)] {
        match &self.0 {
            Entries::One(one) => std::slice::from_ref(one),
            Entries::Many(all) => all,
        }
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self::Many(Box::default())
    }
}

impl PartialEq for Variables {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Variables {}

impl<'v> IntoIterator for &'v Variables {
    type Item = (&'v VariableName, &'v Reason);
    type IntoIter = Map<Iter<'v, (VariableName, Reason)>, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'d> Deserialize<'d> for Variables {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|entries| Self(Entries::Many(entries.into_iter().collect())))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}
