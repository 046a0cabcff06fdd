//! The tests of pinned files that a command of cargo must run, and the files of its programs.
//!
//! The manifests of the base commit define the packages and programs, and the `mod` lines of its sources define their
//! files: the work may change both, and leave tests out in this way. Files that the base commit does not have are taken
//! from the work. A test that is bound to a system or a feature, that is ignored, or whose program needs a feature or a
//! harness of its own need not run; nor need examples and benches. Refuses to ignore a pinned file with tests below
//! `src/` because nothing names it: something has to name it.

use super::command_line::{Targets, Words, fits};
use crate::clike::{modules, tests};
use crate::runner::CheckFiles;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Names of tests, each with its file.
pub(super) type Expected = BTreeSet<(String, String)>;

/// The tests of a command.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Tests of pinned files that must run.
    pub(super) expected: Expected,
    /// Files of programs, in the base commit or in the work. Other files with tests are data of tests.
    pub(super) sources: BTreeSet<String>,
    /// Names of the libraries of the work.
    pub(super) crates: BTreeSet<String>,
}

impl Plan {
    /// The plan for the words of a command.
    pub(super) fn of(argv: &[String], files: &dyn CheckFiles, pinned: &BTreeSet<String>) -> Self {
        let words = Words::of(argv);
        let mut plan = Self { expected: expected(&words, &Sources::of(files, true), pinned), ..Self::default() };
        for is_base in [true, false] {
            let sources = Sources::of(files, is_base);
            let manifests = sources.manifests();
            let mut dirs = chosen_packages(&words, &sources, &manifests);
            dirs.extend(chosen_packages(&words.of_all(), &sources, &manifests));
            for dir in &dirs {
                let Some(manifest) = manifests.get(dir) else { continue };
                let package = Package { dir, manifest, sources: &sources, words: &words };
                plan.sources.extend(package.sources());
                plan.crates.extend(package.crates());
            }
        }
        plan
    }
}

/// The `pinned` files that the words choose.
fn expected(words: &Words, sources: &Sources<'_>, pinned: &BTreeSet<String>) -> Expected {
    let manifests = sources.manifests();
    let mut found = Expected::new();
    for dir in chosen_packages(words, sources, &manifests) {
        let Some(manifest) = manifests.get(&dir) else { continue };
        let package = Package { dir: &dir, manifest, sources, words };
        let is_own = |path: &&String| {
            let below =
                manifests.keys().filter(|other| path.starts_with(other.as_str())).max_by_key(|other| other.len());
            below == Some(&dir)
        };
        let own = pinned.iter().filter(is_own).filter(|path| path.ends_with(".rs"));
        package.expect(own.collect(), &mut found);
    }
    found
}

/// Files of the base commit, else of the work; or those of the work alone.
struct Sources<'a> {
    files: &'a dyn CheckFiles,
    base: BTreeSet<String>,
    paths: BTreeSet<String>,
}

impl<'a> Sources<'a> {
    fn of(files: &'a dyn CheckFiles, is_base: bool) -> Self {
        let base: BTreeSet<String> = if is_base { files.base_paths().into_iter().collect() } else { BTreeSet::new() };
        let paths = files.paths().into_iter().chain(base.iter().cloned()).collect();
        Self { files, base, paths }
    }

    fn text(&self, path: &str) -> Option<String> {
        if self.base.contains(path) { self.files.read_base(path) } else { self.files.read(path) }
    }

    /// The manifests by the directories of the packages, each with a `/` at its end.
    fn manifests(&self) -> BTreeMap<String, Table> {
        self.paths
            .iter()
            .filter_map(|path| Some((path.strip_suffix("Cargo.toml")?.to_owned(), self.text(path)?)))
            .filter(|(dir, _)| dir.is_empty() || dir.ends_with('/'))
            .filter_map(|(dir, text)| Some((dir, text.parse().ok()?)))
            .collect()
    }
}

/// The directories of the tested packages, each with a `/` at its end.
fn chosen_packages(words: &Words, sources: &Sources<'_>, manifests: &BTreeMap<String, Table>) -> BTreeSet<String> {
    let name = |dir: &String| manifests.get(dir).and_then(|one| one.get("package")?.get("name")?.as_str());
    let is_named = |names: &[String], dir: &String| {
        let own = name(dir).unwrap_or_default();
        names.iter().any(|one| fits(one.rsplit(['#', '/']).next().unwrap_or(one).split('@').next().unwrap_or(one), own))
    };
    if !words.packages.is_empty() {
        return manifests.keys().filter(|dir| is_named(&words.packages, dir)).cloned().collect();
    }
    let top = words.manifest.as_deref().unwrap_or("Cargo.toml");
    let dir = joined("", top.strip_suffix("Cargo.toml").unwrap_or(top));
    let now = sources.files.read(&format!("{dir}Cargo.toml")).and_then(|text| text.parse::<Table>().ok());
    // A member that the work adds is tested too.
    let roots = manifests.get(&dir).into_iter().chain(&now);
    let mut chosen: BTreeSet<String> = roots.flat_map(|root| of_root(&dir, root, words, manifests)).collect();
    chosen.retain(|dir| name(dir).is_some() && !is_named(&words.excluded, dir));
    chosen
}

fn of_root(dir: &str, root: &Table, words: &Words, manifests: &BTreeMap<String, Table>) -> Vec<String> {
    let workspace = root.get("workspace");
    let list = |key: &str| -> Option<Vec<String>> {
        let list = workspace?.get(key)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(|path| joined(dir, path)).collect())
    };
    let named = |patterns: &[String]| -> Vec<String> {
        manifests.keys().filter(|one| patterns.iter().any(|pattern| fits(pattern, one))).cloned().collect()
    };
    let is_whole = words.is_workspace || !root.contains_key("package");
    match (list("default-members"), is_whole && workspace.is_some()) {
        (Some(default), _) if !words.is_workspace => named(&default),
        (_, false) => vec![dir.to_owned()],
        (_, true) => {
            let mut members = named(&list("members").unwrap_or_default());
            members.push(dir.to_owned());
            let mut at = 0;
            while let Some(member) = members.get(at).cloned() {
                let paths = manifests.get(&member).map(|table| dependencies(&member, table)).unwrap_or_default();
                for path in paths {
                    if path.starts_with(dir) && manifests.contains_key(&path) && !members.contains(&path) {
                        members.push(path);
                    }
                }
                at += 1;
            }
            let excluded = list("exclude").unwrap_or_default();
            members.retain(|member| !excluded.iter().any(|one| member.starts_with(one)));
            members
        }
    }
}

/// The directories of path dependencies.
fn dependencies(dir: &str, manifest: &Table) -> Vec<String> {
    let tables =
        ["dependencies", "dev-dependencies", "build-dependencies"].into_iter().filter_map(|key| manifest.get(key));
    let all = tables.filter_map(Value::as_table).flat_map(Table::values);
    all.filter_map(|one| one.get("path")?.as_str()).map(|path| joined(dir, path)).collect()
}

/// A path from a directory; both end with a `/`.
fn joined(dir: &str, path: &str) -> String {
    let mut names: Vec<&str> = dir.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    names.iter().map(|name| format!("{name}/")).collect()
}

struct Package<'a> {
    dir: &'a str,
    manifest: &'a Table,
    sources: &'a Sources<'a>,
    words: &'a Words,
}

/// A test program.
struct Root {
    /// The path from the directory of its package.
    path: String,
    /// True when the words choose it, and its tests are reported as such.
    is_tested: bool,
}

/// The path of modules from the root of a program to a file.
struct Reached {
    path: String,
    modules: Vec<String>,
    is_conditional: bool,
}

impl Package<'_> {
    fn expect(&self, pinned: Vec<&String>, found: &mut Expected) {
        let mut reached: BTreeMap<String, Vec<(Reached, bool)>> = BTreeMap::new();
        for root in self.roots() {
            for one in self.reached(&root.path) {
                reached.entry(one.path.clone()).or_default().push((one, root.is_tested));
            }
        }
        for path in pinned {
            let Some(text) = self.sources.text(path) else { continue };
            let own = &path[self.dir.len()..];
            let ways = reached.get(path);
            let is_conditional = |name: &str| tests(&text).iter().any(|test| test.name == name && test.is_conditional);
            for test in tests(&text) {
                let is_chosen = |modules: &[String], is_whole: bool| {
                    let parts: Vec<&str> = modules.iter().chain(&test.modules).map(String::as_str).collect();
                    self.words.choose(&[&parts[..], &[&test.name]].concat().join("::"), is_whole)
                };
                let is_there = match ways {
                    Some(ways) => ways
                        .iter()
                        .filter(|(way, is_tested)| *is_tested && !way.is_conditional)
                        .any(|(way, _)| is_chosen(&way.modules, true)),
                    None => own.starts_with("src/") && self.tests_sources() && is_chosen(&[], false),
                };
                if is_there && !is_conditional(&test.name) {
                    found.insert((path.clone(), test.name.clone()));
                }
            }
        }
    }

    /// The files of its programs, regardless of the words.
    fn sources(&self) -> BTreeSet<String> {
        let listed = |key: &str| -> Vec<String> {
            let listed = self.manifest.get(key).and_then(Value::as_array).into_iter().flatten();
            listed
                .filter_map(|one| one.get("path")?.as_str())
                .map(|path| path.trim_start_matches("./").to_owned())
                .collect()
        };
        let others = ["example", "bench"].into_iter().flat_map(|key| {
            let found = self.found(key, "").into_iter().map(|(_, path)| path);
            found.chain(listed(key)).collect::<Vec<String>>()
        });
        let roots = self.roots().into_iter().map(|root| root.path).chain(others);
        roots.flat_map(|root| self.reached(&root)).map(|one| one.path).collect()
    }

    /// The names of its library and its programs.
    fn crates(&self) -> Vec<String> {
        let name = |key: &str| self.manifest.get(key)?.get("name")?.as_str();
        [name("package"), name("lib")].into_iter().flatten().map(|name| name.replace('-', "_")).collect()
    }

    fn tests_sources(&self) -> bool {
        self.words.targets.as_ref().is_none_or(|targets| targets.lib || !targets.bins.is_empty())
    }

    fn roots(&self) -> Vec<Root> {
        let targets = self.words.targets.as_ref();
        let name = |table: &Value| table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let package = self.manifest.get("package").map(name).unwrap_or_default();
        let mut roots = Vec::new();
        let mut add = |path: Option<String>, table: Option<&Value>, is_chosen: bool| {
            if let Some(path) = path {
                let is_tested = is_chosen && self.is_tested(table);
                roots.push(Root { path, is_tested });
            }
        };
        let path = |table: &Value| Some(table.get("path")?.as_str()?.trim_start_matches("./").to_owned());
        let lib = self.manifest.get("lib");
        add(
            lib.and_then(path).or_else(|| Some("src/lib.rs".to_owned())),
            lib,
            targets.is_none_or(|targets| targets.lib),
        );
        for (key, automatic) in [("bin", "autobins"), ("test", "autotests")] {
            let listed = self.manifest.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            let is_chosen = |name: &str| {
                let patterns = |targets: &Targets| {
                    let patterns = if key == "bin" { &targets.bins } else { &targets.tests };
                    patterns.iter().any(|pattern| fits(pattern, name))
                };
                targets.is_none_or(patterns)
            };
            let mut seen = BTreeSet::new();
            for table in &listed {
                let name = name(table);
                let path = path(table).or_else(|| self.usual(key, &name, &package));
                seen.extend(path.clone());
                add(path, Some(table), is_chosen(&name));
            }
            let says = self.manifest.get("package").and_then(|package| package.get(automatic)?.as_bool());
            let edition =
                self.manifest.get("package").and_then(|package| package.get("edition")).map(|one| one.as_str());
            let is_old = !listed.is_empty() && matches!(edition, None | Some(Some("2015")));
            if says.unwrap_or(!is_old) {
                for (name, path) in self.found(key, &package) {
                    if !seen.contains(&path) {
                        add(Some(path), None, is_chosen(&name));
                    }
                }
            }
        }
        roots
    }

    /// True when its tests are run and reported, according to its table.
    fn is_tested(&self, table: Option<&Value>) -> bool {
        let Some(table) = table else { return true };
        let is = |key: &str| table.get(key).and_then(Value::as_bool).unwrap_or(true);
        is("test") && is("harness") && (self.words.all_features || table.get("required-features").is_none())
    }

    fn usual(&self, key: &str, name: &str, package: &str) -> Option<String> {
        self.found(key, package).into_iter().find(|(found, _)| found == name).map(|(_, path)| path)
    }

    /// Programs that cargo finds by their places: name and path.
    fn found(&self, key: &str, package: &str) -> Vec<(String, String)> {
        let dir = match key {
            "bin" => "src/bin/",
            "example" => "examples/",
            "bench" => "benches/",
            _ => "tests/",
        };
        let own = self.sources.paths.iter().filter_map(|path| path.strip_prefix(self.dir));
        let named = |path: &str| {
            let name = path.strip_prefix(dir)?.strip_suffix(".rs")?;
            let name = name.strip_suffix("/main").unwrap_or(name);
            (!name.contains('/')).then(|| (name.to_owned(), path.to_owned()))
        };
        let mut found: Vec<(String, String)> = own.filter_map(named).collect();
        if key == "bin" {
            found.push((package.to_owned(), "src/main.rs".to_owned()));
        }
        found
    }

    /// The files of a program, by its `mod` lines.
    fn reached(&self, root: &str) -> Vec<Reached> {
        let mut found = vec![Reached { path: format!("{}{root}", self.dir), modules: vec![], is_conditional: false }];
        let mut at = 0;
        while at < found.len() && found.len() < FILES_MAX {
            let (path, above, is_conditional) =
                (found[at].path.clone(), found[at].modules.clone(), found[at].is_conditional);
            let Some(text) = self.sources.text(&path) else {
                found.remove(at);
                continue;
            };
            let (dir, file) = path.rsplit_once('/').map_or(("", path.as_str()), |(dir, file)| (dir, file));
            let stem = file.strip_suffix(".rs").unwrap_or(file);
            let is_top = at == 0 || stem == "mod";
            let below = if is_top { joined("", dir) } else { joined(dir, stem) };
            for module in modules(&text).into_iter().filter(|module| !module.is_inline) {
                let place: String = module.inside.iter().map(|name| format!("{name}/")).collect();
                let usual =
                    [format!("{below}{place}{}.rs", module.name), format!("{below}{place}{}/mod.rs", module.name)];
                let paths = match &module.path {
                    Some(path) => vec![joined(dir, path).trim_end_matches('/').to_owned()],
                    None => usual.to_vec(),
                };
                let Some(path) = paths.into_iter().find(|path| self.sources.paths.contains(path)) else { continue };
                let is_conditional = is_conditional || module.is_conditional;
                if found.iter().any(|one| one.path == path && one.is_conditional <= is_conditional) {
                    continue;
                }
                let modules = [above.clone(), module.inside, vec![module.name]].concat();
                found.push(Reached { path, modules, is_conditional });
            }
            at += 1;
        }
        found
    }
}

/// Files of one program that are read.
const FILES_MAX: usize = 4_096;
