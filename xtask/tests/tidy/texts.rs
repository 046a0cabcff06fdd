//! Rules that the text of single files keeps: where `unsafe` may stand, what a file opens with, what each folder has,
//! and which names stand nowhere.
//!
//! Lines are looked at as they are; what needs the structure of the code is in `imports.rs` and `names.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::tree::{files, none, read, repository, rust_files, shown};

/// Files that may say `unsafe`, and how often.
///
/// Two map code that our own child compiled; one calls the kernel where no safe interface does; one names the section
/// of the program that some data is in.
const UNSAFE: [(&str, usize); 4] = [
    ("host/benches/spine.rs", 2),
    ("host/crates/engine/src/plugin.rs", 1),
    ("host/crates/sandbox/src/child/raw.rs", 4),
    ("host/crates/shipped/src/dependencies.rs", 1),
];

/// Parts of the names of package registries, joined by a dot so that this file names none.
const REGISTRIES: [[&str; 2]; 8] = [
    ["crates", "io"],
    ["pypi", "org"],
    ["pythonhosted", "org"],
    ["npmjs", "org"],
    ["npmjs", "com"],
    ["yarnpkg", "com"],
    ["rubygems", "org"],
    ["proxy.golang", "org"],
];

#[test]
fn only_what_opens_stores_names_one() {
    let named = rust_files("host/src").filter(|path| read(path).contains("RedbStore")).map(|path| shown(&path));
    assert_eq!(named.collect::<Vec<_>>(), ["host/src/stores.rs"]);
}

#[test]
fn only_the_wiring_names_the_server_that_machines_share() {
    // The codes are those of every library's errors.
    let files = rust_files("host/src").chain(rust_files("host/crates/service"));
    let wrong = files.filter(|path| !path.ends_with("wiring.rs") && !path.ends_with("codes.rs"));
    let wrong: Vec<_> = wrong.filter(|path| read(path).contains("longhaul_redis")).map(|path| shown(&path)).collect();
    none(&wrong, "files that name `longhaul_redis`; ask for the trait, and make it in host/src/wiring.rs");
}

#[test]
fn a_file_of_source_opens_with_what_it_is_for() {
    let mut wrong = Vec::new();
    let libraries = rust_files("host/crates").filter(|path| path.components().any(|part| part.as_os_str() == "src"));
    for path in libraries.chain(rust_files("host/src")).chain(rust_files("xtask")) {
        if !read(&path).starts_with("//! ") {
            wrong.push(shown(&path));
        }
    }
    none(&wrong, "starts without `//!`");
}

#[test]
fn no_module_is_called_mod() {
    // Shared code of tests needs it: cargo would take `tests/support.rs` for a test of its own.
    let named = ["host", "xtask", "plugins", "sdk"].into_iter().filter(|folder| repository().join(folder).is_dir());
    let wrong: Vec<_> = named
        .flat_map(rust_files)
        .filter(|path| path.ends_with("mod.rs") && !is_shared_by_tests(path))
        .map(|path| shown(&path))
        .collect();
    none(&wrong, "`foo.rs` beside the folder `foo`, and no `mod.rs`");
}

fn is_shared_by_tests(path: &Path) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|folder| folder == repository().join("host/tests"))
}

/// The lines of code, by their number, that say `unsafe`, and whether a comment says why that is sound.
fn unsafe_lines(text: &str) -> Vec<(usize, bool)> {
    let lines: Vec<&str> = text.lines().collect();
    let says = |line: &str| words(&code(line)).any(|word| word == "unsafe");
    let why = |at: usize| {
        let comments = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
        comments.into_iter().any(|line| line.contains("SAFETY:"))
    };
    lines.iter().enumerate().filter(|(_, line)| says(line)).map(|(at, _)| (at + 1, why(at))).collect()
}

/// A line without its comment and without what is in quotes.
fn code(line: &str) -> String {
    let mut code = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if quoted => drop(chars.next()),
            '"' => quoted = !quoted,
            '/' if !quoted && chars.peek() == Some(&'/') => break,
            other if !quoted => code.push(other),
            _ => {}
        }
    }
    code
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|char: char| !char.is_alphanumeric() && char != '_')
}

#[test]
fn unsafe_stands_only_where_it_is_listed_and_says_why() {
    let mut found = BTreeMap::new();
    let mut silent = Vec::new();
    for path in rust_files("host").chain(rust_files("xtask")) {
        let lines = unsafe_lines(&read(&path));
        silent.extend(lines.iter().filter(|(_, why)| !why).map(|(line, _)| format!("{}:{line}", shown(&path))));
        if !lines.is_empty() {
            found.insert(shown(&path), lines.len());
        }
    }
    none(&silent, "`unsafe` without a `SAFETY:` comment above it");
    let listed: BTreeMap<String, usize> = UNSAFE.into_iter().map(|(path, count)| (path.to_owned(), count)).collect();
    assert_eq!(found, listed, "`unsafe` elsewhere, or more of it, than the table in this test says");
}

#[test]
fn the_search_for_unsafe_sees_code_and_not_words() {
    assert_eq!(unsafe_lines("// SAFETY: ours.\nlet a = unsafe { b() };"), [(2, true)]);
    assert_eq!(unsafe_lines("// Fine.\nlet a = unsafe { b() };"), [(2, false)]);
    assert_eq!(unsafe_lines("let a = \"unsafe\"; // unsafe\n#![deny(unsafe_code)]"), []);
    assert_eq!(unsafe_lines("let a = \"\\\"\"; unsafe { b() }"), [(1, false)]);
}

#[test]
fn every_plugin_says_what_it_is() {
    let mut wrong = Vec::new();
    let is_plugin = |path: &Path| ["plugin.toml", "Cargo.toml", "app.py"].iter().any(|file| path.join(file).is_file());
    let folders = fs::read_dir(repository().join("plugins")).expect("readable");
    let plugins: Vec<_> = folders.map(|entry| entry.expect("readable").path()).filter(|path| is_plugin(path)).collect();
    assert!(!plugins.is_empty());
    for plugin in plugins {
        for file in ["README.md", "plugin.toml"] {
            if !plugin.join(file).is_file() {
                wrong.push(shown(&plugin.join(file)));
            }
        }
        let manifest = fs::read_to_string(plugin.join("plugin.toml")).unwrap_or_default();
        if let Err(error) = manifest.parse::<toml::Table>() {
            wrong.push(format!("{}: {error}", shown(&plugin.join("plugin.toml"))));
        }
    }
    none(&wrong, "missing or wrong");
}

/// The items of the changelog under `Unreleased`.
fn unreleased(changelog: &str) -> Vec<&str> {
    let after = changelog.lines().skip_while(|line| !(line.starts_with("## ") && line.contains("Unreleased"))).skip(1);
    after
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("- ") || line.starts_with("* "))
        .collect()
}

#[test]
fn the_changelog_tells_users_what_is_new() {
    assert!(
        !unreleased(&read(&repository().join("CHANGELOG.md"))).is_empty(),
        "CHANGELOG.md has nothing under Unreleased"
    );
}

#[test]
fn only_what_stands_under_unreleased_is_unreleased() {
    assert_eq!(unreleased("# Changes\n\n## Unreleased\n\n- *(cli)* one\n\n## 0.1.0\n\n- two\n"), ["- *(cli)* one"]);
    assert_eq!(unreleased("# Changes\n\n## 0.1.0\n\n- two\n"), [""; 0]);
}

#[test]
fn no_file_names_a_package_registry() {
    let hosts = REGISTRIES.map(|[name, top]| format!("{name}.{top}"));
    let mut wrong = Vec::new();
    // Cargo writes its own registry into each lock file.
    for path in files(".").into_iter().filter(|path| !path.ends_with("Cargo.lock")) {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("readable")).into_owned();
        wrong.extend(hosts.iter().filter(|host| text.contains(*host)).map(|host| format!("{}: {host}", shown(&path))));
    }
    none(&wrong, "where packages come from is the machine's affair");
}
