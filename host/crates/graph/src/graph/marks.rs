//! A set of small numbers, a bit each.

use super::places::{Place, slot};
use std::iter::successors;

/// Positions, or numbers of names. Both are assigned consecutively, so that a hundred thousand of them fit in a few
/// pages of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    words: Vec<u64>,
    count: usize,
}

impl Marks {
    /// True when it was not in the set.
    pub(super) fn insert(&mut self, place: Place) -> bool {
        let (word, bit) = at(place);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += usize::from(new);
        new
    }

    pub(super) fn remove(&mut self, place: Place) {
        let (word, bit) = at(place);
        if let Some(word) = self.words.get_mut(word) {
            self.count -= usize::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        let (word, bit) = at(place);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The first that is not below this one.
    pub(super) fn next_from(&self, place: Place) -> Option<Place> {
        let (word, _) = at(place);
        let mut words = (word..).zip(self.words.get(word..)?);
        let (number, rest) = words.next().map(|(number, first)| (number, first & (u64::MAX << (place % 64))))?;
        let found = if rest == 0 {
            words.find(|(_, word)| **word != 0).map(|(number, word)| (number, *word))?
        } else {
            (number, rest)
        };
        Some(found.0 as Place * 64 + Place::from(found.1.trailing_zeros()))
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The numbers in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Place> {
        let words = (0..).step_by(64).zip(&self.words);
        words.flat_map(|(first, word)| {
            let lefts = successors(Some(*word), |left| (*left != 0).then(|| left & (left - 1)));
            lefts.take_while(|left| *left != 0).map(move |left| first + Place::from(left.trailing_zeros()))
        })
    }
}

impl<'p> Extend<&'p Place> for Marks {
    fn extend<I: IntoIterator<Item = &'p Place>>(&mut self, places: I) {
        for place in places {
            self.insert(*place);
        }
    }
}

/// The word of a position, and its bit.
fn at(place: Place) -> (usize, u64) {
    (slot(place / 64), 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn marked_positions_are_found_in_their_order() {
        let mut marks = Marks::default();
        marks.extend(&[64, 0, 63, 130, 130]);
        assert_eq!((marks.iter().collect::<Vec<_>>(), marks.len()), (vec![0, 63, 64, 130], 4));
        marks.remove(63);
        marks.remove(65);
        marks.remove(10_000);
        assert_eq!(marks.iter().collect::<Vec<_>>(), [0, 64, 130]);
        let next = [0, 1, 64, 65, 130, 131, 5_000].map(|from| marks.next_from(from));
        assert_eq!(next, [Some(0), Some(64), Some(64), Some(130), Some(130), None, None]);
        assert!(marks.contains(64) && !marks.contains(63) && !marks.contains(10_000));
    }
}
