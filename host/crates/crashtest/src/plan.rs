//! The choice of the kills: of each point the first, the middle and the last occurrence, and random ones.

use crate::error::CrashtestError;
use crate::points::PointOccurrence;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A kill to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedKill {
    /// The place of the kill.
    pub at: PointOccurrence,
    /// True when it was drawn, beside the first, middle and last occurrences.
    pub random: bool,
}

/// The kills of a crash test, those of one point together. `patterns` choose points by name, with `*` for any text;
/// with none, all points are chosen. `random` further occurrences of the chosen points are drawn by `seed`, or all that
/// there are.
///
/// # Errors
/// [`CrashtestError`] when nothing fits.
pub fn plan(
    counts: &BTreeMap<String, u32>,
    patterns: &[String],
    random: u32,
    seed: u64,
) -> Result<Vec<PlannedKill>, CrashtestError> {
    if counts.is_empty() {
        return Err(CrashtestError::NoPoints);
    }
    if let Some(pattern) = patterns.iter().find(|pattern| !counts.keys().any(|point| covers(pattern, point))) {
        let reached = counts.keys().cloned().collect();
        return Err(CrashtestError::NoSuchPoint { pattern: pattern.clone(), reached });
    }
    let is_chosen = |point: &str| patterns.is_empty() || patterns.iter().any(|pattern| covers(pattern, point));
    let (mut kills, mut others) = (Vec::new(), Vec::new());
    for (point, count) in counts.iter().filter(|(point, _)| is_chosen(point)) {
        let numbers: BTreeSet<u32> = [1, count.div_ceil(2), *count].into();
        let at = |number| PointOccurrence { point: point.clone(), number };
        kills.extend(numbers.iter().map(|number| PlannedKill { at: at(*number), random: false }));
        others.extend((1..=*count).filter(|number| !numbers.contains(number)).map(at));
    }
    let mut draw = Draw(seed);
    for _ in 0..random {
        if others.is_empty() {
            break;
        }
        let at = others.swap_remove(draw.below(others.len()));
        kills.push(PlannedKill { at, random: true });
    }
    Ok(kills)
}

/// True when a pattern fits a name. `*` stands for any text, also for none.
fn covers(pattern: &str, name: &str) -> bool {
    let (first, others) = pattern.split_once('*').map_or((pattern, None), |(first, others)| (first, Some(others)));
    let Some(rest) = name.strip_prefix(first) else { return false };
    let Some(others) = others else { return rest.is_empty() };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| covers(others, &rest[at..]))
}

/// The generator SplitMix64: a seed repeats a plan.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let below = (mixed ^ (mixed >> 31)) % u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(below).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> BTreeMap<String, u32> {
        [("git.after-ref-move", 2), ("store.after-commit", 9), ("work.end", 1)]
            .map(|(point, count)| (point.to_owned(), count))
            .into()
    }

    #[track_caller]
    fn check(patterns: &[&str], random: u32, expected: &[&str]) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let planned = plan(&counts(), &patterns, random, 7).expect("they fit");
        let shown: Vec<String> = planned.iter().filter(|kill| !kill.random).map(|kill| kill.at.to_string()).collect();
        assert_eq!(shown, expected);
        let drawn: BTreeSet<&PointOccurrence> =
            planned.iter().filter(|kill| kill.random).map(|kill| &kill.at).collect();
        // No occurrence twice, and no more than there are.
        let all: BTreeSet<&PointOccurrence> = planned.iter().map(|kill| &kill.at).collect();
        assert_eq!(all.len(), planned.len());
        assert!(drawn.iter().all(|at| at.point == "store.after-commit" && at.number < 9), "{drawn:?}");
        let others = if patterns.iter().any(|pattern| pattern == "work.end") { 0 } else { 6 };
        assert_eq!(drawn.len(), usize::try_from(random.min(others)).expect("small"));
    }

    #[test]
    fn each_point_is_killed_at_its_first_middle_and_last_occurrence() {
        let all = [
            "git.after-ref-move:1",
            "git.after-ref-move:2",
            "store.after-commit:1",
            "store.after-commit:5",
            "store.after-commit:9",
            "work.end:1",
        ];
        check(&[], 0, &all);
        check(&[], 4, &all);
        // Six occurrences are left beside those.
        check(&[], 100, &all);
        check(&["work.end"], 3, &["work.end:1"]);
        check(&["*.after-*"], 0, &all[..5]);
    }

    #[test]
    fn a_seed_repeats_a_plan() {
        let drawn = |seed| plan(&counts(), &[], 3, seed).expect("they fit");
        assert_eq!(drawn(5), drawn(5));
        assert!((0..20).any(|seed| drawn(seed) != drawn(5)));
    }

    #[test]
    fn a_pattern_that_fits_nothing_is_refused_with_the_points_that_there_are() {
        let refused = plan(&counts(), &["work.*".to_owned(), "tool.*".to_owned()], 0, 1).expect_err("no tool");
        let said =
            "`tool.*` fits no point that this run reaches; it reaches git.after-ref-move, store.after-commit, work.end";
        assert_eq!(refused.to_string(), said);
        assert_eq!(plan(&BTreeMap::new(), &[], 9, 1), Err(CrashtestError::NoPoints));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, fits) in [
            ("git.*", "git.before-ref-move", true),
            ("*ref*", "git.before-ref-move", true),
            ("git.*-move", "git.before-ref-move", true),
            ("git.*-mov", "git.before-ref-move", false),
            ("git", "git.before-ref-move", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(covers(pattern, name), fits, "{pattern} {name}");
        }
    }
}
