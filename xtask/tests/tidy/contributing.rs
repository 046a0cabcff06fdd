//! The claims of CONTRIBUTING.md: its paths, crates, commands and variables exist under the names that it gives.
//!
//! A path may be written without the folders above it, as the page does. What a sentence says of a thing is not held.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::packages::{Package, packages};
use crate::tree::{files, none, read, repository, rust_files, shown};

/// Words that stand for any name.
const PLACEHOLDERS: [&str; 4] = ["FILE", "LANGUAGE", "NAME", "ROLE"];

/// Paths that only show how files are named.
const INVENTED: [&str; 3] = ["foo.rs", "foo/bar.rs", "mod.rs"];

/// The endings of file names that the page may mention.
const ENDINGS: [&str; 7] = ["json", "md", "py", "rs", "toml", "tsv", "wit"];

struct Page {
    /// The text outside of fences.
    prose: String,
    blocks: Vec<Block>,
}

/// The text between fences.
struct Block {
    language: String,
    lines: Vec<String>,
}

impl Page {
    fn contributing() -> Page {
        Page::new(&read(&repository().join("CONTRIBUTING.md")))
    }

    fn new(text: &str) -> Page {
        let mut page = Page { prose: String::new(), blocks: Vec::new() };
        let mut fenced = false;
        for line in text.lines() {
            if let Some(language) = line.strip_prefix("```") {
                if !fenced {
                    page.blocks.push(Block { language: language.to_owned(), lines: Vec::new() });
                }
                fenced = !fenced;
            } else if fenced {
                page.blocks.last_mut().expect("a fence opened one").lines.push(line.to_owned());
            } else {
                page.prose += line;
                page.prose.push('\n');
            }
        }
        page
    }

    /// The texts in backticks.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.prose.split('`').skip(1).step_by(2)
    }

    fn lines(&self, language: &str) -> impl Iterator<Item = &String> {
        self.blocks.iter().filter(move |block| block.language == language).flat_map(|block| &block.lines)
    }
}

#[test]
fn the_map_of_contributing_lists_every_package_and_nothing_that_is_gone() {
    let page = Page::contributing();
    let listed = paths_of_map(page.lines("").map(String::as_str));
    let gone = listed.iter().filter(|path| !repository().join(path).exists());
    none(&gone.cloned().collect::<Vec<_>>(), "paths of the map in CONTRIBUTING.md that are gone");
    let folders = packages().into_iter().filter_map(|package| Some(shown(package.manifest.parent()?)));
    let missing: Vec<_> = folders.filter(|folder| !listed.contains(folder)).collect();
    none(&missing, "packages that the map in CONTRIBUTING.md does not list");
}

#[test]
fn contributing_names_paths_that_exist() {
    let there = paths();
    let page = Page::contributing();
    let named = page.code().filter(|code| is_path(code) && !INVENTED.contains(code));
    let gone = named.filter(|code| !there.iter().any(|path| ends_with(path, code)));
    none(&gone.map(str::to_owned).collect::<Vec<_>>(), "paths in CONTRIBUTING.md that are gone");
}

#[test]
fn contributing_names_commands_that_exist() {
    let packages = packages();
    let page = Page::contributing();
    let mut wrong: Vec<String> = page.lines("sh").flat_map(|line| unknown_of_cargo(line, &packages)).collect();
    for arguments in page.code().filter_map(|code| code.strip_prefix("cargo xtask ")) {
        let told = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments.split_whitespace()).arg("--help").output();
        let told = told.expect("xtask runs");
        if !told.status.success() {
            wrong.push(format!("cargo xtask {arguments}: {}", String::from_utf8_lossy(&told.stderr)));
        }
    }
    none(&wrong, "commands in CONTRIBUTING.md that are gone");
}

#[test]
fn contributing_names_variables_that_the_code_reads() {
    let text = read(&repository().join("CONTRIBUTING.md"));
    let parts = text.split(|char: char| !char.is_ascii_uppercase() && char != '_');
    let mut unread: BTreeSet<&str> = parts.filter(|part| part.starts_with("LONGHAUL_")).collect();
    for file in ["host", "xtask", "sdk", "fuzz"].into_iter().flat_map(rust_files) {
        let code = read(&file);
        unread.retain(|name| !code.contains(&format!("\"{name}\"")));
    }
    none(&unread.into_iter().map(str::to_owned).collect::<Vec<_>>(), "variables in CONTRIBUTING.md that nothing reads");
}

/// The paths of a map, where what is indented lies in the last entry that is indented less.
fn paths_of_map<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut above: Vec<(usize, &str)> = Vec::new();
    let mut paths = BTreeSet::new();
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = line.split_whitespace().next() else { continue };
        above.retain(|(less, _)| *less < indent);
        above.push((indent, name.trim_end_matches('/')));
        paths.insert(above.iter().map(|(_, name)| *name).collect::<Vec<_>>().join("/"));
    }
    paths
}

/// Every file of the repository and every folder that has one.
fn paths() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files(".") {
        let above = file.ancestors().take_while(|path| *path != repository());
        found.extend(above.map(shown));
    }
    found
}

/// True of what looks like a path of the repository, and not of what is built.
fn is_path(code: &str) -> bool {
    let is_plain = code.chars().all(|char| char.is_ascii_alphanumeric() || "/._-".contains(char));
    let ending = code.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    let is_file = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    is_plain && (code.contains('/') || is_file) && !Path::new(code).starts_with("target")
}

fn ends_with(path: &str, asked: &str) -> bool {
    let mut names = path.rsplit('/');
    asked.trim_end_matches('/').rsplit('/').all(|asked| names.next().is_some_and(|name| is_called(name, asked)))
}

fn is_called(name: &str, asked: &str) -> bool {
    let (stem, ending) = asked.split_once('.').map_or((asked, None), |(stem, ending)| (stem, Some(ending)));
    let ends = || ending.is_none_or(|ending| name.split_once('.').is_some_and(|(_, its)| its == ending));
    name == asked || (PLACEHOLDERS.contains(&stem) && ends())
}

/// The names of cargo's targets in a line of the shell that do not exist.
fn unknown_of_cargo(line: &str, packages: &[Package]) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
    let value = |option: &str| words.iter().skip_while(|word| **word != option).nth(1).copied();
    let mut unknown = Vec::new();
    if let Some(manifest) = value("--manifest-path").filter(|manifest| !repository().join(manifest).is_file()) {
        unknown.push(format!("{line}: no file `{manifest}`"));
    }
    let Some(name) = value("-p") else { return unknown };
    let Some(package) = packages.iter().find(|package| package.name == name) else {
        unknown.push(format!("{line}: no package `{name}`"));
        return unknown;
    };
    for kind in ["test", "bench", "example"] {
        let is_there = |name: &str| package.targets.iter().any(|target| target.kind == kind && target.name == name);
        if let Some(target) = value(&format!("--{kind}")).filter(|target| !is_there(target)) {
            unknown.push(format!("{line}: no {kind} `{target}` in `{name}`"));
        }
    }
    unknown
}

#[test]
fn a_map_is_read_by_its_indents() {
    let map = "a/     one\n  b/   two\n    c  three\n  d.rs four\ne/f/   five";
    let paths: Vec<_> = paths_of_map(map.lines()).into_iter().collect();
    assert_eq!(paths, ["a", "a/b", "a/b/c", "a/d.rs", "e/f"]);
}

#[test]
fn only_what_looks_like_a_path_is_looked_for() {
    for path in ["core/src/a.rs", "a.wit", "tests/", ".ci/run", "sdk/LANGUAGE"] {
        assert!(is_path(path), "{path}");
    }
    for other in [".wat", "a::b", "crash.reach", "target/plugins", "//!", "cargo test a/b", "`{{name}}`"] {
        assert!(!is_path(other), "{other}");
    }
}

#[test]
fn a_path_is_found_by_its_last_names_and_by_those_that_a_placeholder_stands_for() {
    for asked in ["host/src/a.rs", "a.rs", "src/NAME.rs", "ROLE/a.rs", "host/LANGUAGE/FILE"] {
        assert!(ends_with("host/src/a.rs", asked), "{asked}");
    }
    for asked in ["b.rs", "rc/a.rs", "src/NAME.wit", "work/host/src/a.rs", "src/"] {
        assert!(!ends_with("host/src/a.rs", asked), "{asked}");
    }
}

#[test]
fn a_command_is_known_by_its_package_and_target() {
    let packages = packages();
    let known = "A=1 cargo nextest run -p xtask --test tidy  # -p nobody";
    assert_eq!(unknown_of_cargo(known, &packages), [""; 0]);
    for (line, unknown) in [
        ("cargo run -p nobody", "no package `nobody`"),
        ("cargo test -p xtask --test none", "no test `none` in `xtask`"),
        ("cargo test --manifest-path none/Cargo.toml", "no file `none/Cargo.toml`"),
    ] {
        assert_eq!(unknown_of_cargo(line, &packages), [format!("{line}: {unknown}")]);
    }
}
