//! Steps by position, each with something.

use super::index::Place;
use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Most names are bound by one step and read by one or two: a single step is kept without a tree.
#[derive(Clone, Debug, Default)]
pub(super) enum Places<T> {
    #[default]
    None,
    One(Place, T),
    Many(BTreeMap<Place, T>),
}

impl<T: Copy> Places<T> {
    /// Adds a step, or gives one that is there something else.
    pub(super) fn insert(&mut self, place: Place, value: T) {
        match self {
            Self::Many(all) => {
                all.insert(place, value);
            }
            Self::One(other, kept) if *other != place => {
                *self = Self::Many(BTreeMap::from([(*other, *kept), (place, value)]));
            }
            Self::None | Self::One(..) => *self = Self::One(place, value),
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        match self {
            Self::Many(all) => {
                all.remove(&place);
            }
            Self::One(other, _) if *other == place => *self = Self::None,
            Self::None | Self::One(..) => {}
        }
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        match self {
            Self::None => false,
            Self::One(other, _) => *other == place,
            Self::Many(all) => all.contains_key(&place),
        }
    }

    /// Those within a range, which must not be a range that ends before it begins.
    pub(super) fn range(&self, range: impl RangeBounds<Place>) -> impl DoubleEndedIterator<Item = (Place, T)> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(place, value) => (range.contains(place).then_some((*place, *value)), None),
            Self::Many(all) => (None, Some(all.range(range).map(|(place, value)| (*place, *value)))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[track_caller]
    fn check(places: &Places<bool>, expected: &[(u64, bool)]) {
        assert_eq!(places.range(..).collect::<Vec<_>>(), expected);
        for (place, _) in expected {
            assert!(places.contains(*place) && !places.contains(place + 1));
            assert_eq!(places.range(place + 1..).count() + places.range(..=*place).count(), expected.len());
        }
    }

    #[test]
    fn one_place_is_kept_as_several_are() {
        let mut places = Places::default();
        check(&places, &[]);
        places.insert(7, true);
        places.remove(8);
        check(&places, &[(7, true)]);
        places.insert(7, false);
        check(&places, &[(7, false)]);
        places.insert(3, true);
        check(&places, &[(3, true), (7, false)]);
        places.remove(7);
        check(&places, &[(3, true)]);
        places.remove(3);
        check(&places, &[]);
        let mut one = Places::default();
        one.insert(1, true);
        one.remove(1);
        check(&one, &[]);
    }
}
