//! Positions of steps, and steps by position, each with a value.

/// A step's position in insertion order.
pub(super) type Place = u64;

/// The index in a list: positions are consecutive.
pub(super) fn slot(place: Place) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// True when a place is among these, which are sorted.
pub(super) fn contains(places: &[Place], place: Place) -> bool {
    places.binary_search(&place).is_ok()
}

/// Most names are bound by one step and read by one or two: a single step needs no list.
///
/// It is a list, since steps are added at its end, and queries are for ranges. An insertion in the middle moves those
/// after it: some ten microseconds with the largest number of steps.
#[derive(Clone, Debug, Default)]
pub(super) enum Places<T> {
    #[default]
    None,
    One((Place, T)),
    /// By position.
    Many(Vec<(Place, T)>),
}

impl<T: Copy> Places<T> {
    /// Adds a step, or replaces the value of an existing one.
    pub(super) fn insert(&mut self, place: Place, value: T) {
        match self {
            Self::Many(all) if all.last().is_some_and(|(last, _)| *last < place) => all.push((place, value)),
            Self::Many(all) => match all.binary_search_by_key(&place, |(at, _)| *at) {
                Ok(at) => all[at].1 = value,
                Err(at) => all.insert(at, (place, value)),
            },
            Self::One(kept) if kept.0 < place => *self = Self::Many(vec![*kept, (place, value)]),
            Self::One(kept) if kept.0 > place => *self = Self::Many(vec![(place, value), *kept]),
            Self::None | Self::One(_) => *self = Self::One((place, value)),
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        match self {
            Self::Many(all) => {
                if let Ok(at) = all.binary_search_by_key(&place, |(at, _)| *at) {
                    all.remove(at);
                }
            }
            Self::One((at, _)) if *at == place => *self = Self::None,
            Self::None | Self::One(_) => {}
        }
    }

    /// The steps before a position.
    pub(super) fn before(&self, place: Place) -> &[(Place, T)] {
        let all = self.all();
        &all[..place.checked_sub(1).map_or(0, |last| count_to(all, last))]
    }

    /// The steps after a position.
    pub(super) fn after(&self, place: Place) -> &[(Place, T)] {
        let all = self.all();
        &all[count_to(all, place)..]
    }

    /// The next step after a position.
    pub(super) fn next(&self, place: Place) -> Option<Place> {
        match self {
            Self::None => None,
            Self::One((at, _)) => (*at > place).then_some(*at),
            Self::Many(all) => all.get(count_to(all, place)).map(|(at, _)| *at),
        }
    }

    fn all(&self) -> &[(Place, T)] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }
}

/// The number of steps up to a position, including it. Those of a name that every step uses have no gaps, and are
/// counted without a search.
fn count_to<T>(all: &[(Place, T)], place: Place) -> usize {
    let Some(passed) = all.first().and_then(|(first, _)| place.checked_sub(*first)) else { return 0 };
    let most = all.len().min(slot(passed).saturating_add(1));
    if all[most - 1].0 <= place { most } else { all[..most].partition_point(|(at, _)| *at <= place) }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[track_caller]
    fn check(places: &Places<bool>, expected: &[(u64, bool)]) {
        assert_eq!(places.before(u64::MAX), expected);
        for (at, (place, _)) in expected.iter().enumerate() {
            assert_eq!((places.before(*place), places.after(*place)), (&expected[..at], &expected[at + 1..]));
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
        places.insert(5, true);
        check(&places, &[(3, true), (5, true), (7, false)]);
        places.insert(9, true);
        places.insert(5, false);
        check(&places, &[(3, true), (5, false), (7, false), (9, true)]);
        places.remove(9);
        places.remove(5);
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
