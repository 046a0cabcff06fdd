//! Rules of the source tree that a machine can check: who may depend on whom, where `unsafe` may
//! stand, what each folder has.
//!
//! A rule that fails says which file breaks it and what would be right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crates of ours a crate may depend on; `*` is all.
const ARROWS: [(&str, &[&str]); 34] = [
    ("longhaul", &["*"]),
    ("longhaul-agents", &["longhaul-core"]),
    ("longhaul-approval", &["longhaul-core"]),
    ("longhaul-bindings", &["longhaul-core"]),
    ("longhaul-bombs", &[]),
    ("longhaul-browser", &["longhaul-core", "longhaul-egress", "longhaul-sandbox"]),
    ("longhaul-build", &["longhaul-core"]),
    ("longhaul-capabilities", &["longhaul-bindings", "longhaul-core", "longhaul-egress"]),
    ("longhaul-conform", &["longhaul-core", "longhaul-engine", "longhaul-testkit"]),
    ("longhaul-core", &[]),
    ("longhaul-egress", &["longhaul-core", "longhaul-tls"]),
    ("longhaul-embeddings", &["longhaul-core"]),
    ("longhaul-engine", &["longhaul-bindings", "longhaul-capabilities", "longhaul-core", "longhaul-sandbox"]),
    ("longhaul-fuzz", &["*"]),
    ("longhaul-graph", &["longhaul-core"]),
    ("longhaul-harness", &["longhaul-core"]),
    ("longhaul-journal", &["longhaul-core"]),
    ("longhaul-judge", &["longhaul-core"]),
    ("longhaul-llama", &[]),
    ("longhaul-mcp", &["longhaul-approval", "longhaul-core", "longhaul-egress", "longhaul-sandbox"]),
    ("longhaul-models", &["longhaul-core", "longhaul-llama", "longhaul-tls"]),
    (
        "longhaul-records",
        &[
            "longhaul-approval",
            "longhaul-config",
            "longhaul-core",
            "longhaul-harness",
            "longhaul-journal",
            "longhaul-models",
        ],
    ),
    ("longhaul-redis", &["longhaul-core"]),
    ("longhaul-repomap", &[]),
    ("longhaul-resources", &["longhaul-core"]),
    ("longhaul-sandbox", &["longhaul-core"]),
    ("longhaul-schedule", &["longhaul-core"]),
    ("longhaul-store", &["longhaul-core"]),
    ("longhaul-telemetry", &["longhaul-core", "longhaul-tls"]),
    (
        "longhaul-testkit",
        &["longhaul-capabilities", "longhaul-core", "longhaul-engine", "longhaul-journal", "longhaul-store"],
    ),
    ("longhaul-tls", &[]),
    ("longhaul-tools", &["longhaul-core", "longhaul-sandbox", "longhaul-worktree"]),
    ("longhaul-worktree", &["longhaul-core", "longhaul-judge", "longhaul-sandbox"]),
    ("xtask", &["longhaul-build"]),
];

/// Files that may say `unsafe`, and how often.
///
/// Two map code that our own child compiled; one calls the kernel where no safe interface does.
const UNSAFE: [(&str, usize); 3] = [
    ("host/benches/spine.rs", 2),
    ("host/crates/engine/src/plugin.rs", 1),
    ("host/crates/sandbox/src/child/raw.rs", 4),
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

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").to_owned()
}

/// Files below a folder of the repository that are ours: nothing built, nothing of git.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let entry = entry.expect("readable");
            let (path, name) = (entry.path(), entry.file_name());
            let built = name == "target" || name == ".git" || name == "node_modules" || name == "__pycache__";
            match entry.file_type().expect("readable") {
                kind if kind.is_dir() && !built => folders.push(path),
                kind if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn rust_files(folder: &str) -> impl Iterator<Item = PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The path from the top of the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

#[track_caller]
fn none(wrong: &[String], rule: &str) {
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

/// The crates of the workspace, as cargo sees them.
struct Crate {
    name: String,
    manifest: PathBuf,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// Only for tests, examples or the build.
    beside: bool,
    ours: bool,
}

fn crates() -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let dependency = |one: &serde_json::Value| Dependency {
        name: text(&one["name"]),
        beside: !one["kind"].is_null(),
        ours: !one["path"].is_null(),
    };
    let packages = metadata["packages"].as_array().expect("a list").iter();
    packages
        .map(|package| Crate {
            name: text(&package["name"]),
            manifest: text(&package["manifest_path"]).into(),
            dependencies: package["dependencies"].as_array().expect("a list").iter().map(dependency).collect(),
        })
        .collect()
}

#[test]
fn crates_depend_on_each_other_as_the_arrows_say() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut wrong = Vec::new();
    for one in crates() {
        let Some(allowed) = arrows.get(one.name.as_str()) else {
            wrong.push(format!("`{}` has no arrows; add it to the table in this test", one.name));
            continue;
        };
        for dependency in one.dependencies.iter().filter(|dependency| dependency.ours && !dependency.beside) {
            let name = dependency.name.as_str();
            if !allowed.contains(&"*") && !allowed.contains(&name) {
                wrong.push(format!("`{}` depends on `{name}`", one.name));
            }
        }
    }
    none(&wrong, "an arrow that the design does not have");
    let found: BTreeSet<String> = crates().into_iter().map(|one| one.name).collect();
    let gone: Vec<_> = arrows.keys().filter(|name| !found.contains(**name)).collect();
    assert!(gone.is_empty(), "the table has crates that are gone: {gone:?}");
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let without = crates().into_iter().filter(|one| {
        let manifest: toml::Table = read(&one.manifest).parse().expect("cargo reads it");
        manifest.get("lints").and_then(|lints| lints.get("workspace")) != Some(&toml::Value::Boolean(true))
    });
    none(&without.map(|one| one.name).collect::<Vec<_>>(), "without `[lints] workspace = true`");
}

#[test]
fn no_library_hides_its_errors_in_anyhow() {
    let libraries = repository().join("host/crates");
    let with = crates().into_iter().filter(|one| {
        one.manifest.starts_with(&libraries)
            && one.dependencies.iter().any(|dependency| dependency.name == "anyhow" && !dependency.beside)
    });
    none(&with.map(|one| one.name).collect::<Vec<_>>(), "a crate has one enum of errors, and no `anyhow`");
}

#[test]
fn only_the_wiring_names_the_store() {
    let named = rust_files("host/src").filter(|path| read(path).contains("RedbStore")).map(|path| shown(&path));
    assert_eq!(named.collect::<Vec<_>>(), ["host/src/wiring.rs"]);
}

#[test]
fn only_the_wiring_names_the_server_that_machines_share() {
    let wrong = rust_files("host/src").filter(|path| !path.ends_with("wiring.rs"));
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
    // What tests share has to be: cargo would take `tests/support.rs` for a test of its own.
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

/// What the changelog says under `Unreleased`, an item each.
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
