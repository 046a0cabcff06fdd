//! No files of a crate import each other in a circle, so that each can be read, tested and moved with those below it
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Arrows, circles, cut};
use crate::imports::{Import, of_crate};
use crate::packages::packages;
use crate::tree::none;

#[test]
fn no_module_imports_in_a_circle() {
    let mut wrong = Vec::new();
    for package in packages() {
        let found: Vec<String> = package.roots().flat_map(|root| told(&of_crate(root))).collect();
        if !found.is_empty() {
            wrong.push(format!("`{}`", package.name));
            wrong.extend(found);
        }
    }
    none(&wrong, "circles of imports; move or cut what is marked");
}

/// The text about each circle, for the author who breaks it.
fn told(imports: &[Import]) -> Vec<String> {
    let mut arrows = Arrows::new();
    for import in imports {
        arrows.entry(&import.from).or_default().insert(&import.to);
    }
    circles(&arrows).iter().map(|circle| tell(circle, imports)).collect()
}

/// The modules of a circle, then each import among them with its places; `cut` marks those without which it is none.
fn tell(circle: &[&str], imports: &[Import]) -> String {
    let mut symbols: BTreeMap<(&str, &str), BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for import in imports {
        let arrow = (import.from.as_str(), import.to.as_str());
        if circle.contains(&arrow.0) && circle.contains(&arrow.1) {
            symbols.entry(arrow).or_default().entry(&import.symbol).or_default().insert(&import.place);
        }
    }
    let weights = symbols.iter().map(|(&arrow, symbols)| (arrow, symbols.len())).collect();
    let cut = cut(&weights);
    let mut text = format!("  {} modules: {}", circle.len(), circle.join(", "));
    for (arrow, symbols) in &symbols {
        let mark = if cut.contains(arrow) { "cut " } else { "" };
        text += &format!("\n    {mark}{} -> {}", arrow.0, arrow.1);
        for (symbol, places) in symbols {
            for place in places {
                text += &format!("\n        {place} {symbol}");
            }
        }
    }
    text
}

#[test]
fn a_circle_is_told_with_the_places_of_its_imports_and_what_to_cut() {
    let import = |from: &str, to: &str, symbol: &str, line: usize| Import {
        from: from.to_owned(),
        to: to.to_owned(),
        symbol: symbol.to_owned(),
        place: format!("{from}.rs:{line}"),
    };
    let imports = [
        import("a", "b", "One", 1),
        import("a", "b", "Two", 2),
        import("a", "b", "Two", 3),
        import("b", "a", "Three", 4),
        import("b", "c", "Four", 5),
    ];
    let expected = "  2 modules: a, b
    a -> b
        a.rs:1 One
        a.rs:2 Two
        a.rs:3 Two
    cut b -> a
        b.rs:4 Three";
    assert_eq!(told(&imports), [expected]);
}
