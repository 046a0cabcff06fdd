//! A public type has its name alone, so that a reader who sees the name knows the thing, whatever crate it is from.
//!
//! Names that macros make are not seen, and types that only a crate or a module sees may be called alike. The SDK in
//! Rust is outside: its names are read in guests, where no type of the host is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules;
use crate::packages::packages;
use crate::tree::{none, shown, source};

#[test]
fn a_public_type_stands_once_in_the_workspace() {
    let doubled = public_types().into_iter().filter(|(_, places)| places.len() > 1);
    let told = doubled.map(|(name, places)| format!("`{name}`: {}", places.into_iter().collect::<Vec<_>>().join(", ")));
    none(&told.collect::<Vec<_>>(), "public types that are called alike; rename all but one");
}

/// Each name of a public type, with the places where such a type is defined.
fn public_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    let packages = packages();
    for root in packages.iter().flat_map(|package| package.roots()).map(shown) {
        for module in modules::read(Path::new(&root), &source) {
            for (name, line) in module.public_types {
                found.entry(name).or_default().insert(format!("{}:{line}", module.file.display()));
            }
        }
    }
    found
}
