//! Circles of a graph of names, and the arrows to cut so that none is left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names, each with those that its arrows lead to.
pub type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The circles: names of which each leads to each other, in alphabetical order.
pub fn circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<Vec<&'a str>> {
    let reached: Arrows<'a> = arrows.keys().map(|&name| (name, reach(arrows, name))).collect();
    let mut found = BTreeSet::new();
    for (&name, names) in &reached {
        if names.contains(name) {
            let leads_back = |other: &&str| reached.get(*other).is_some_and(|back| back.contains(name));
            found.insert(names.iter().copied().filter(leads_back).collect());
        }
    }
    found
}

/// Arrows without which there is no circle. The heaviest arrows stay, so that those to cut are few and light; a lighter
/// set may exist.
pub fn cut<'a>(weights: &BTreeMap<(&'a str, &'a str), usize>) -> Vec<(&'a str, &'a str)> {
    let mut heaviest_first: Vec<_> = weights.iter().map(|(&arrow, &weight)| (Reverse(weight), arrow)).collect();
    heaviest_first.sort();
    let mut kept = Arrows::new();
    let mut cut = Vec::new();
    for (_, (from, to)) in heaviest_first {
        if reach(&kept, to).contains(from) {
            cut.push((from, to));
        } else {
            kept.entry(from).or_default().insert(to);
        }
    }
    cut
}

/// The names at the end of one arrow or more.
fn reach<'a>(arrows: &Arrows<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        for &to in arrows.get(name).into_iter().flatten() {
            if reached.insert(to) {
                next.push(to);
            }
        }
    }
    reached
}

#[test]
fn each_circle_is_found_once_and_what_leads_into_it_is_no_part() {
    let lines = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("z", "a"), ("e", "y")];
    let mut arrows = Arrows::new();
    for (from, to) in lines {
        arrows.entry(from).or_default().insert(to);
    }
    let found: Vec<_> = circles(&arrows).into_iter().collect();
    assert_eq!(found, [vec!["a", "b", "c"], vec!["d", "e"]]);
}

#[test]
fn the_lightest_arrow_of_a_circle_is_cut() {
    let weights = [(("a", "b"), 2), (("b", "c"), 1), (("c", "a"), 3), (("b", "a"), 5)].into_iter().collect();
    assert_eq!(cut(&weights), [("a", "b")]);
    let weights = [(("a", "b"), 2), (("b", "c"), 1)].into_iter().collect();
    assert!(cut(&weights).is_empty());
}
