//! The imports between the files of a crate, by the paths in their text.
//!
//! A re-export is followed to the module that defines the thing, since that is the one imported. So a `pub use` of what
//! lies below one's own module gives a name and imports nothing: a file that uses the name imports its definition.

use std::path::Path;

use crate::modules::{Id, Module, ROOT};
use crate::tree::{shown, source};

/// An import of one file of a crate by another; an inline module counts as its file.
pub struct Import {
    /// The module that imports.
    pub from: String,
    /// The module that defines the thing.
    pub to: String,
    pub symbol: String,
    /// File and line.
    pub place: String,
}

/// Reads the crate that begins with this file of the repository.
pub fn of_crate(root: &Path) -> Vec<Import> {
    imports(&crate::modules::read(Path::new(&shown(root)), &source))
}

fn imports(modules: &[Module]) -> Vec<Import> {
    let names = Names(modules);
    let mut found = Vec::new();
    for (id, module) in modules.iter().enumerate() {
        for one in &module.uses {
            let target = names.of_use(id, &one.path);
            if !(one.public && names.is_below(target, id)) {
                found.extend(names.import(id, target, one.line));
            }
        }
        for (path, line) in &module.mentions {
            found.extend(names.import(id, names.of_mention(id, path), *line));
        }
    }
    found
}

/// The target of a path.
#[derive(Clone, Copy)]
enum Target<'a> {
    Module(Id),
    /// An item that this module defines, or what a macro made in it.
    Item(Id, &'a str),
    /// Another crate, or nothing that the text shows.
    Elsewhere,
}

/// The names of a crate.
struct Names<'a>(&'a [Module]);

/// Names that are being looked up, each with its module, so that re-exports in a circle come to an end.
type Asked<'a> = Vec<(Id, &'a str)>;

impl<'a> Names<'a> {
    fn of_use(&self, from: Id, path: &'a [String]) -> Target<'a> {
        let module = &self.0[from];
        let Some(first) = path.first() else { return Target::Elsewhere };
        // The name that this very `use` brings, such as `clap` of `use clap::clap`, does not explain it.
        let is_here = is_keyword(first)
            || module.children.contains_key(first)
            || module.items.contains(first)
            || module.imports.get(first).is_some_and(|imported| imported != path);
        if is_here { self.resolve(from, path, &mut Asked::new()) } else { Target::Elsewhere }
    }

    /// The import of a path in code. `Type::new` of a type that a `use` brought counts once, as that `use`.
    fn of_mention(&self, from: Id, path: &'a [String]) -> Target<'a> {
        let Some(first) = path.first() else { return Target::Elsewhere };
        let through_module =
            is_keyword(first) || matches!(self.lookup(from, first, &mut Asked::new()), Some(Target::Module(_)));
        if through_module { self.resolve(from, path, &mut Asked::new()) } else { Target::Elsewhere }
    }

    fn resolve(&self, from: Id, path: &'a [String], asked: &mut Asked<'a>) -> Target<'a> {
        let Some((first, below)) = path.split_first() else { return Target::Elsewhere };
        let (mut found, rest) = match first.as_str() {
            "crate" => (Target::Module(ROOT), below),
            "self" => (Target::Module(from), below),
            "super" => {
                let count = path.iter().take_while(|segment| *segment == "super").count();
                let above = (0..count).fold(from, |module, _| self.0[module].parent.unwrap_or(module));
                (Target::Module(above), &path[count..])
            }
            name => (self.lookup(from, name, asked).unwrap_or(Target::Elsewhere), below),
        };
        for segment in rest.iter().filter(|segment| *segment != "self" && *segment != "*") {
            found = match found {
                Target::Module(module) => self.lookup(module, segment, asked).unwrap_or(Target::Item(module, segment)),
                end => return end,
            };
        }
        found
    }

    /// The meaning of a name in a module. None: the text of the module does not show it.
    fn lookup(&self, module: Id, name: &'a str, asked: &mut Asked<'a>) -> Option<Target<'a>> {
        if asked.contains(&(module, name)) {
            return None;
        }
        asked.push((module, name));
        let found = self.find(module, name, asked);
        asked.pop();
        found
    }

    fn find(&self, id: Id, name: &'a str, asked: &mut Asked<'a>) -> Option<Target<'a>> {
        let modules: &'a [Module] = self.0;
        let module = &modules[id];
        if let Some(child) = module.children.get(name) {
            return Some(Target::Module(*child));
        }
        if module.items.contains(name) {
            return Some(Target::Item(id, name));
        }
        if let Some(path) = module.imports.get(name) {
            return Some(self.resolve(id, path, asked));
        }
        module.globs.iter().find_map(|glob| match self.resolve(id, glob, asked) {
            Target::Module(inner) if inner != id => self.lookup(inner, name, asked),
            _ => None,
        })
    }

    fn import(&self, from: Id, target: Target<'_>, line: usize) -> Option<Import> {
        let (to, symbol) = match target {
            Target::Module(to) => (to, self.shown(to)),
            Target::Item(to, name) => (to, name.to_owned()),
            Target::Elsewhere => return None,
        };
        let place = format!("{}:{line}", self.0[from].file.display());
        let (from, to) = (self.with_file(from), self.with_file(to));
        (from != to).then(|| Import { from: self.shown(from), to: self.shown(to), symbol, place })
    }

    fn is_below(&self, target: Target<'_>, module: Id) -> bool {
        match target {
            Target::Module(owner) | Target::Item(owner, _) => self.0[owner].path.starts_with(&self.0[module].path),
            Target::Elsewhere => false,
        }
    }

    /// The module that has a file, of one that may be inline in it.
    fn with_file(&self, mut module: Id) -> Id {
        while let Some(parent) = self.0[module].parent
            && self.0[parent].file == self.0[module].file
        {
            module = parent;
        }
        module
    }

    fn shown(&self, module: Id) -> String {
        let path = &self.0[module].path;
        if path.is_empty() { "(root)".to_owned() } else { path.join("::") }
    }
}

fn is_keyword(segment: &str) -> bool {
    matches!(segment, "crate" | "self" | "super")
}

/// Reads a crate of these files, of which `lib.rs` is the root, and compares its imports: `from -> to symbol, place`.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let source = |path: &Path| {
        let file = files.iter().find(|(file, _)| Path::new(file) == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    let found = imports(&crate::modules::read(Path::new("lib.rs"), &source));
    let found = found.iter().map(|one| format!("{} -> {} {}, {}", one.from, one.to, one.symbol, one.place));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_tree_of_uses_is_followed_to_each_of_its_ends() {
    let tree = "use crate::{
        b::{self as bee, inner::{Deep as _, *}, One as Two},
        c::{self},
    };
    fn f() { bee::g(); }";
    check(
        &[
            ("lib.rs", "mod a; mod b; mod c; struct Not;"),
            ("a.rs", tree),
            ("b.rs", "pub mod inner; pub struct One; pub fn g() {}"),
            ("b/inner.rs", "pub struct Deep;"),
            ("c.rs", ""),
        ],
        &[
            "a -> b b, a.rs:2",
            "a -> b::inner Deep, a.rs:2",
            "a -> b::inner b::inner, a.rs:2",
            "a -> b One, a.rs:2",
            "a -> c c, a.rs:3",
            "a -> b g, a.rs:5",
        ],
    );
}

#[test]
fn a_re_export_is_followed_through_modules_to_the_one_that_defines() {
    check(
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use d::Thing;"),
            ("a.rs", "use crate::b::Named; fn f(thing: crate::Thing) {}"),
            ("b.rs", "pub use crate::c::Thing as Named;"),
            ("c.rs", "pub use super::d::*;"),
            ("d.rs", "pub struct Thing;"),
        ],
        &["a -> d Thing, a.rs:1", "a -> d Thing, a.rs:1", "b -> d Thing, b.rs:1", "c -> d d, c.rs:1"],
    );
}

#[test]
fn re_exports_in_a_circle_come_to_an_end() {
    check(
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::Thing; pub use crate::b::*;"),
            ("b.rs", "pub use crate::a::Thing; pub use crate::a::*;"),
        ],
        &["a -> b Thing, a.rs:1", "a -> b b, a.rs:1", "b -> a Thing, b.rs:1", "b -> a a, b.rs:1"],
    );
}

#[test]
fn a_glob_brings_every_name_of_its_module() {
    check(
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::*;\nfn f() { inner::g(); Other::new(); }"),
            ("b.rs", "pub mod inner; pub struct Other;"),
            ("b/inner.rs", "pub fn g() {}"),
        ],
        &["a -> b b, a.rs:1", "a -> b::inner g, a.rs:2"],
    );
}

#[test]
fn super_climbs_as_often_as_it_is_written() {
    check(
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod one;"),
            ("a/one.rs", "mod two { use super::super::super::b::Thing; use super::super::One; }\nuse super::super::b;"),
            ("b.rs", "pub struct Thing;"),
        ],
        &["a::one -> b b, a/one.rs:2", "a::one -> b Thing, a/one.rs:1", "a::one -> a One, a/one.rs:1"],
    );
}

#[test]
fn a_path_in_a_macro_an_attribute_or_a_range_is_an_import() {
    let text = "macro_rules! end { () => { $crate::b::end() } }
        fn f() { bail!(\"{}\", super::b::Two); for _ in 0..crate::b::MAX {} self.super_::x(); }
        #[serde(with = \"crate::b::time\")] struct A; #[derive(crate::b::Derive)] struct B;
        // crate::b::Comment
        /// crate::b::Doc
        pub(in crate::b) const QUOTED: &str = \"crate::b::Quoted\";";
    check(
        &[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "")],
        &[
            "a -> b end, a.rs:1",
            "a -> b Two, a.rs:2",
            "a -> b MAX, a.rs:2",
            "a -> b time, a.rs:3",
            "a -> b Derive, a.rs:3",
        ],
    );
}

#[test]
fn what_is_compiled_for_tests_alone_is_left_out_with_its_files() {
    let text = "#[cfg(test)] mod tests;
        #[cfg(all(test, feature = \"x\"))] #[allow(unused)] fn f<A, B>() { crate::b::one(); }
        #[cfg(test)] use crate::b::{Two, Three};
        struct A { #[cfg(test)] field: crate::b::Four, other: crate::b::Five }
        #[cfg(not(test))] use crate::b::Six;
        #[cfg(any(test, feature = \"x\"))] use crate::b::Seven;";
    check(
        &[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("a/tests.rs", "use crate::b::Eight;"), ("b.rs", "")],
        &["a -> b Six, a.rs:5", "a -> b Seven, a.rs:6", "a -> b Five, a.rs:4"],
    );
}

#[test]
fn a_child_that_asks_a_facade_for_its_sibling_imports_the_sibling() {
    check(
        &[
            ("lib.rs", "mod facade;"),
            ("facade.rs", "mod one; mod two; pub use one::One; pub(crate) use self::two::Two;"),
            ("facade/one.rs", "pub struct One;"),
            ("facade/two.rs", "use super::One; pub struct Two;"),
        ],
        &["facade::two -> facade::one One, facade/two.rs:1"],
    );
}

#[test]
fn a_private_use_of_what_lies_below_is_an_import() {
    check(
        &[("lib.rs", "mod a; use a::A; use ::a::Other; use log::a::A as B;"), ("a.rs", "pub struct A;")],
        &["(root) -> a A, lib.rs:1"],
    );
}

#[test]
fn a_module_is_read_from_the_file_that_its_attribute_names() {
    check(
        &[
            ("lib.rs", "#[path = \"other/place.rs\"] mod a; mod b; mod c { mod d; }"),
            ("other/place.rs", "mod e;"),
            ("other/e.rs", "use crate::b::One;"),
            ("b/mod.rs", "mod f;"),
            ("b/f.rs", "use crate::b::Two;"),
            ("c/d.rs", "use crate::b::r#type;"),
        ],
        &["a::e -> b One, other/e.rs:1", "b::f -> b Two, b/f.rs:1", "c::d -> b type, c/d.rs:1"],
    );
}

#[test]
fn modules_of_one_name_that_are_compiled_by_turns_are_all_read() {
    let text = "#[cfg(unix)] mod read { use crate::b::One; }\n#[cfg(not(unix))] mod read { use crate::b::Two; }";
    check(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "")], &["a -> b One, a.rs:1", "a -> b Two, a.rs:2"]);
}
