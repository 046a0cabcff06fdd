//! The alignment of two sequences of steps.
//!
//! Steps that are the same come first, then, between those, steps with the same call, then those that call the same
//! thing; what is left stands alone. Each is the longest common subsequence, within blocks, so that the cost is bounded
//! whatever the lengths.

use crate::step::StepKey;

/// The places of a step on both sides; none on a side that does not have it.
pub(crate) type Pair = (Option<usize>, Option<usize>);

type IsEqual = fn(&StepKey, &StepKey) -> bool;

/// The passes by which steps are matched, one after the other.
const LEVELS: [IsEqual; 3] = [
    |left, right| left.same == right.same,
    |left, right| left.call == right.call,
    |left, right| left.alike == right.alike,
];

/// Steps of a side that are compared with each of the other: a table has the square of it. Longer sequences are
/// compared block by block, after what they have alike at both ends.
const BLOCK: usize = 1_500;

/// Every step of both sides once, in the order of both.
pub(crate) fn align(left: &[StepKey], right: &[StepKey]) -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(left.len().max(right.len()));
    between(left, right, (0, 0), &LEVELS, &mut pairs);
    pairs
}

/// Aligns what lies between two matches; `at` is where it begins.
fn between(left: &[StepKey], right: &[StepKey], at: (usize, usize), levels: &[IsEqual], pairs: &mut Vec<Pair>) {
    let Some((is_equal, coarser)) = levels.split_first().filter(|_| !left.is_empty() && !right.is_empty()) else {
        pairs.extend((0..left.len()).map(|place| (Some(at.0 + place), None)));
        pairs.extend((0..right.len()).map(|place| (None, Some(at.1 + place))));
        return;
    };
    let mut from = (0, 0);
    for (on_left, on_right) in common(left, right, *is_equal) {
        let begin = (at.0 + from.0, at.1 + from.1);
        between(&left[from.0..on_left], &right[from.1..on_right], begin, coarser, pairs);
        pairs.push((Some(at.0 + on_left), Some(at.1 + on_right)));
        from = (on_left + 1, on_right + 1);
    }
    between(&left[from.0..], &right[from.1..], (at.0 + from.0, at.1 + from.1), coarser, pairs);
}

/// The places of equal steps, in ascending order on both sides.
fn common(left: &[StepKey], right: &[StepKey], is_equal: IsEqual) -> Vec<(usize, usize)> {
    let head = left.iter().zip(right).take_while(|(left, right)| is_equal(left, right)).count();
    let (inner_left, inner_right) = (&left[head..], &right[head..]);
    let ends = inner_left.iter().rev().zip(inner_right.iter().rev());
    let tail = ends.take_while(|(left, right)| is_equal(left, right)).count();
    let (tail_left, tail_right) = (left.len() - tail, right.len() - tail);
    let mut places: Vec<(usize, usize)> = (0..head).map(|place| (place, place)).collect();
    let blocks = left[head..tail_left].chunks(BLOCK).zip(right[head..tail_right].chunks(BLOCK));
    for (number, (left, right)) in blocks.enumerate() {
        let at = head + number * BLOCK;
        places.extend(longest(left, right, is_equal).into_iter().map(|(left, right)| (at + left, at + right)));
    }
    places.extend((0..tail).map(|place| (tail_left + place, tail_right + place)));
    places
}

/// The longest common subsequence of two blocks.
fn longest(left: &[StepKey], right: &[StepKey], is_equal: IsEqual) -> Vec<(usize, usize)> {
    let columns = right.len() + 1;
    // The lengths of those of all pairs of ends; a block has fewer steps than a `u16` counts.
    let mut lengths = vec![0_u16; (left.len() + 1) * columns];
    for row in (0..left.len()).rev() {
        for column in (0..right.len()).rev() {
            let here = row * columns + column;
            lengths[here] = match is_equal(&left[row], &right[column]) {
                true => lengths[here + columns + 1] + 1,
                false => lengths[here + columns].max(lengths[here + 1]),
            };
        }
    }
    let (mut row, mut column, mut places) = (0, 0, Vec::new());
    while row < left.len() && column < right.len() {
        let here = row * columns + column;
        if is_equal(&left[row], &right[column]) {
            places.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if lengths[here + columns] >= lengths[here + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;

    /// A step `call=answer`: the same call may have another answer, and what comes before `.` is what it calls.
    fn keys(text: &str) -> Vec<StepKey> {
        let key = |word: &str| {
            let (call, _) = word.split_once('=').unwrap_or((word, ""));
            let (alike, _) = call.split_once('.').unwrap_or((call, ""));
            let [same, call, alike] = [word, call, alike].map(|part| Digest::of(part.as_bytes()));
            StepKey { same, call, alike }
        };
        text.split_whitespace().map(key).collect()
    }

    #[track_caller]
    fn check(left: &str, right: &str, expected: &str) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (lefts, rights) = (words(left), words(right));
        let side = |words: &[String], at: Option<usize>| at.map_or("-".to_owned(), |at| words[at].clone());
        let pairs = align(&keys(left), &keys(right));
        let told: Vec<String> = pairs
            .iter()
            .map(|(on_left, on_right)| format!("{}|{}", side(&lefts, *on_left), side(&rights, *on_right)))
            .collect();
        assert_eq!(told.join(" "), expected);
    }

    #[test]
    fn equal_sequences_are_paired_one_by_one() {
        check("a b c", "a b c", "a|a b|b c|c");
        check("", "", "");
    }

    #[test]
    fn a_difference_in_the_middle_is_paired_by_what_is_called() {
        check("a=1 b=1 c=1", "a=1 b=2 c=1", "a=1|a=1 b=1|b=2 c=1|c=1");
        check("a write.x c", "a write.y c", "a|a write.x|write.y c|c");
        check("a read.x c", "a write.y c", "a|a read.x|- -|write.y c|c");
    }

    #[test]
    fn steps_of_one_side_alone_stand_alone() {
        check("a b", "a b c", "a|a b|b -|c");
        check("a b", "c a b", "-|c a|a b|b");
        check("", "a", "-|a");
        check("a", "", "a|-");
    }

    #[test]
    fn the_same_is_preferred_to_the_same_call_and_that_to_the_same_tool() {
        check("t.x=1", "t.x=2 t.x=1", "-|t.x=2 t.x=1|t.x=1");
        check("t.x=1", "t.y=1 t.x=2", "-|t.y=1 t.x=1|t.x=2");
    }

    #[test]
    fn long_sequences_are_aligned_block_by_block_and_keep_every_step() {
        let text = |from: usize, count: usize| (from..from + count).map(|at| format!("s{at} ")).collect::<String>();
        let (left, right) = (format!("l {}", text(0, 4_000)), format!("r {}x", text(0, 4_000)));
        let pairs = align(&keys(&left), &keys(&right));
        let lefts: Vec<usize> = pairs.iter().filter_map(|pair| pair.0).collect();
        let rights: Vec<usize> = pairs.iter().filter_map(|pair| pair.1).collect();
        assert_eq!(lefts, (0..4_001).collect::<Vec<_>>());
        assert_eq!(rights, (0..4_002).collect::<Vec<_>>());
        let both = pairs.iter().filter(|pair| pair.0.is_some() && pair.0 == pair.1).count();
        assert_eq!(both, 4_000, "the blocks are as long on both sides");
    }
}
