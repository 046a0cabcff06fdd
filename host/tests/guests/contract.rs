//! The contract in `wit/`: the worlds are the law that the design's table says, and what was released
//! stays as it is.

use longhaul_bindings::{PACKAGE, VERSION};
use longhaul_core::Digest;
use longhaul_engine::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use wit_parser::{
    Docs, Function, FunctionKind, Interface, PackageId, Resolve, Stability, Type, TypeDefKind, World, WorldItem,
    WorldKey,
};

/// The imports that each world may have, as in the table of ARCHITECTURE.md. `wasi` stands for the runtimes of
/// languages.
const LAW: [(&str, &[&str]); 6] = [
    ("language-runtime", &["wasi"]),
    ("planner-plugin", &["wasi", "conversation", "recall", "decisions", "clock", "timer", "log"]),
    (
        "agent-plugin",
        &[
            "wasi",
            "conversation",
            "tools",
            "checks",
            "delegate",
            "recall",
            "decisions",
            "progress",
            "artifact",
            "graph",
            "clock",
            "timer",
            "log",
        ],
    ),
    ("evaluator-plugin", &["wasi", "conversation", "checks", "clock", "log"]),
    ("tool-plugin", &["wasi", "filesystem", "http", "keyvalue", "clock", "timer", "log"]),
    ("memory-plugin", &["wasi", "filesystem", "http", "keyvalue", "clock", "timer", "log"]),
];

/// The meaning of a name of the table that is not one of our interfaces.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "wasi",
        &[
            "wasi:cli/environment",
            "wasi:cli/exit",
            "wasi:cli/stderr",
            "wasi:cli/stdin",
            "wasi:cli/stdout",
            "wasi:clocks/monotonic-clock",
            "wasi:clocks/wall-clock",
            "wasi:io/error",
            "wasi:io/poll",
            "wasi:io/streams",
            "wasi:random/insecure",
            "wasi:random/insecure-seed",
            "wasi:random/random",
        ],
    ),
    ("filesystem", &["wasi:filesystem/preopens", "wasi:filesystem/types"]),
    ("http", &["wasi:http/outgoing-handler", "wasi:http/types"]),
];

struct Contract {
    resolve: Resolve,
    package: PackageId,
}

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let mut resolve = Resolve::new();
    let (package, _) = resolve.push_dir(wit().join("v0.1")).unwrap_or_else(|error| panic!("{error:?}"));
    Contract { resolve, package }
});

impl Contract {
    fn worlds(&self) -> impl Iterator<Item = (&str, &World)> {
        self.resolve.packages[self.package].worlds.iter().map(|(name, id)| (name.as_str(), &self.resolve.worlds[*id]))
    }

    /// The interfaces of our own package.
    fn interfaces(&self) -> impl Iterator<Item = (&str, &Interface)> {
        let own = &self.resolve.packages[self.package].interfaces;
        own.iter().map(|(name, id)| (name.as_str(), &self.resolve.interfaces[*id]))
    }

    /// Interfaces that a world imports and that can be called, without versions. Others are words only.
    fn callable_imports(&self, world: &World) -> BTreeSet<String> {
        let imports = world.imports.iter().filter_map(|(key, item)| match item {
            WorldItem::Interface { id, .. } if has_functions(&self.resolve.interfaces[*id]) => Some(self.name(key)),
            _ => None,
        });
        imports.collect()
    }

    fn name(&self, key: &WorldKey) -> String {
        let name = self.resolve.name_world_key(key);
        name.split_once('@').map_or(name.clone(), |(name, _)| name.to_owned())
    }
}

fn has_functions(interface: &Interface) -> bool {
    // A resource that only others make and drop is a capability too, but WASI's `error` alone is one.
    !interface.functions.is_empty()
}

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").join("wit")
}

fn ours(name: &str) -> String {
    format!("{PACKAGE}/{name}")
}

#[test]
fn each_world_imports_what_the_table_of_the_design_says_and_nothing_else() {
    let groups: BTreeMap<&str, &[&str]> = GROUPS.into_iter().collect();
    let law: BTreeMap<&str, BTreeSet<String>> = LAW
        .into_iter()
        .map(|(world, names)| {
            let interfaces = names.iter().flat_map(|name| match groups.get(name) {
                Some(group) => group.iter().map(|&one| one.to_owned()).collect(),
                None => vec![ours(name)],
            });
            (world, interfaces.collect())
        })
        .collect();
    let found: BTreeMap<&str, BTreeSet<String>> =
        CONTRACT.worlds().map(|(name, world)| (name, CONTRACT.callable_imports(world))).collect();
    assert_eq!(found, law);
}

#[test]
fn each_world_exports_one_role_and_the_roles_are_those_of_the_engine() {
    for (name, world) in CONTRACT.worlds().filter(|(name, _)| *name != "language-runtime") {
        let exports: Vec<String> = world.exports.keys().map(|key| CONTRACT.name(key)).collect();
        let role = name.strip_suffix("-plugin").expect("a world is called ROLE-plugin");
        assert_eq!(exports, [ours(role)], "world `{name}`");
    }
    let roles: BTreeSet<_> = Role::ALL.iter().map(|role| format!("{}-plugin", role.name())).collect();
    let worlds: BTreeSet<_> = CONTRACT.worlds().map(|(name, _)| name.to_owned()).collect();
    assert!(worlds.is_superset(&roles) && worlds.len() == roles.len() + 1, "{worlds:?}");
}

#[test]
fn the_engine_links_the_capabilities_of_a_world_and_no_other() {
    for role in Role::ALL {
        let linked: BTreeSet<_> =
            role.capabilities().iter().map(|one| ours(&format!("{one:?}").to_lowercase())).collect();
        assert_eq!(linked.len(), role.capabilities().len(), "{role:?} has one twice");
        let world = format!("{}-plugin", role.name());
        let (_, world) = CONTRACT.worlds().find(|(name, _)| *name == world).expect("each role has a world");
        let mut imported = CONTRACT.callable_imports(world);
        imported.retain(|name| name.starts_with(PACKAGE));
        assert_eq!(linked, imported, "{role:?}");
    }
}

#[test]
fn the_contract_has_the_version_that_the_host_speaks() {
    let name = &CONTRACT.resolve.packages[CONTRACT.package].name;
    assert_eq!(format!("{}:{}", name.namespace, name.name), PACKAGE);
    assert_eq!(name.version.as_ref().map(ToString::to_string).as_deref(), Some(VERSION));
}

#[test]
fn every_item_says_since_when_it_is_there() {
    let mut without = Vec::new();
    let mut look = |what: String, stability: &Stability| {
        if !matches!(stability, Stability::Stable { since, .. } if since.to_string() == VERSION) {
            without.push(what);
        }
    };
    for (name, world) in CONTRACT.worlds() {
        look(format!("world {name}"), &world.stability);
    }
    for (name, interface) in CONTRACT.interfaces() {
        look(format!("interface {name}"), &interface.stability);
        for (id, ty) in interface.types.values().map(|id| (id, &CONTRACT.resolve.types[*id])) {
            // A type that `use` brings in has it at its definition.
            if !matches!(ty.kind, TypeDefKind::Type(Type::Id(_))) {
                look(format!("{name}.{}", ty.name.as_deref().unwrap_or("?")), &CONTRACT.resolve.types[*id].stability);
            }
        }
        for (function, item) in &interface.functions {
            // A constructor takes no attribute of its own in the syntax of WIT; its resource has one.
            if !matches!(item.kind, FunctionKind::Constructor(_)) {
                look(format!("{name}.{function}"), &item.stability);
            }
        }
    }
    assert!(without.is_empty(), "without `@since(version = {VERSION})`: {without:?}");
}

/// Every item of the contract with its documentation, fields and cases included.
fn documented() -> Vec<(String, &'static Docs)> {
    let mut items = vec![("the package".to_owned(), &CONTRACT.resolve.packages[CONTRACT.package].docs)];
    items.extend(CONTRACT.worlds().map(|(name, world)| (format!("world {name}"), &world.docs)));
    for (name, interface) in CONTRACT.interfaces() {
        items.push((format!("interface {name}"), &interface.docs));
        items.extend(interface.functions.iter().map(|(function, item)| (format!("{name}.{function}"), &item.docs)));
        for (ty, id) in &interface.types {
            let defined = &CONTRACT.resolve.types[*id];
            // A type that `use` brings in is documented at its definition.
            if !matches!(defined.kind, TypeDefKind::Type(Type::Id(_))) {
                items.push((format!("{name}.{ty}"), &defined.docs));
                let parts = parts_of(&defined.kind);
                items.extend(parts.into_iter().map(|(part, docs)| (format!("{name}.{ty}.{part}"), docs)));
            }
        }
    }
    items
}

/// The fields of a record, and the cases of a variant or an enum.
fn parts_of(kind: &TypeDefKind) -> Vec<(&str, &Docs)> {
    match kind {
        TypeDefKind::Record(record) => record.fields.iter().map(|field| (field.name.as_str(), &field.docs)).collect(),
        TypeDefKind::Variant(variant) => variant.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Enum(listed) => listed.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Flags(flags) => flags.flags.iter().map(|flag| (flag.name.as_str(), &flag.docs)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_item_is_documented_in_more_than_a_word() {
    let says_little = |docs: &Docs| docs.contents.as_deref().unwrap_or_default().split_whitespace().count() < 2;
    let silent: Vec<String> =
        documented().into_iter().filter(|(_, docs)| says_little(docs)).map(|(item, _)| item).collect();
    assert!(silent.is_empty(), "without documentation: {silent:?}");
}

#[test]
fn no_documentation_breaks_the_bindings_of_a_language() {
    // Docs become comments in C, JavaScript and Rust, and strings in Python.
    const BREAKING: [&str; 4] = ["*/", "/*", "\"", "\\"];
    let breaks =
        |docs: &Docs| BREAKING.into_iter().find(|part| docs.contents.as_deref().unwrap_or_default().contains(*part));
    let broken: Vec<String> = documented()
        .into_iter()
        .filter_map(|(item, docs)| breaks(docs).map(|part| format!("{item} has `{part}`")))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn no_word_of_the_contract_is_a_64_bit_integer() {
    // Two tool chains of JavaScript turn them into numbers that lose digits or cannot be written as JSON.
    let mut wide = Vec::new();
    for (name, interface) in CONTRACT.interfaces() {
        for (ty, id) in &interface.types {
            let words = words_of_kind(&CONTRACT.resolve.types[*id].kind);
            wide.extend(words.into_iter().filter(is_wide).map(|_| format!("{name}.{ty}")));
        }
        for (function, item) in &interface.functions {
            wide.extend(words_of_function(item).into_iter().filter(is_wide).map(|_| format!("{name}.{function}")));
        }
    }
    assert!(wide.is_empty(), "64 bits: {wide:?}");
}

fn is_wide(ty: &Type) -> bool {
    matches!(ty, Type::U64 | Type::S64)
}

fn words_of_function(function: &Function) -> Vec<Type> {
    let mut words: Vec<Type> = function.params.iter().map(|param| param.ty).collect();
    words.extend(function.result);
    words.iter().flat_map(|word| words_of(*word)).collect()
}

/// A type and all that it is made of without a name of its own.
fn words_of(ty: Type) -> Vec<Type> {
    let Type::Id(id) = ty else { return vec![ty] };
    let defined = &CONTRACT.resolve.types[id];
    if defined.name.is_some() { Vec::new() } else { words_of_kind(&defined.kind) }
}

fn words_of_kind(kind: &TypeDefKind) -> Vec<Type> {
    let parts: Vec<Type> = match kind {
        TypeDefKind::Record(record) => record.fields.iter().map(|field| field.ty).collect(),
        TypeDefKind::Tuple(tuple) => tuple.types.clone(),
        TypeDefKind::Variant(variant) => variant.cases.iter().filter_map(|case| case.ty).collect(),
        TypeDefKind::Option(ty) | TypeDefKind::List(ty) | TypeDefKind::Type(ty) => vec![*ty],
        TypeDefKind::Result(result) => result.ok.into_iter().chain(result.err).collect(),
        TypeDefKind::Enum(_) | TypeDefKind::Flags(_) | TypeDefKind::Resource | TypeDefKind::Handle(_) => Vec::new(),
        other => panic!("the contract has a kind of type that this test does not know: {other:?}"),
    };
    parts.into_iter().flat_map(words_of).collect()
}

#[test]
fn every_error_can_be_one_that_nobody_thought_of() {
    let mut errors = BTreeSet::new();
    for (_, interface) in CONTRACT.interfaces() {
        for function in interface.functions.values() {
            errors.extend(error_types(function));
        }
    }
    assert!(errors.len() >= 10, "the errors of the contract are found: {errors:?}");
    for error in errors {
        let (_, id) = CONTRACT
            .interfaces()
            .find_map(|(name, interface)| interface.types.get(&error).map(|id| (name, *id)))
            .unwrap_or_else(|| panic!("`{error}` is not of this package"));
        let failed = cases(&CONTRACT.resolve.types[id].kind).into_iter().find(|(name, _)| name == "failed");
        assert_eq!(failed, Some(("failed".into(), Some(Type::String))), "`{error}`");
    }
}

/// The names of the error types within what a function answers.
fn error_types(function: &Function) -> Vec<String> {
    let mut waiting: Vec<Type> = function.result.into_iter().collect();
    let mut errors = Vec::new();
    while let Some(Type::Id(id)) = waiting.pop() {
        match &CONTRACT.resolve.types[id].kind {
            TypeDefKind::Result(result) => {
                let Some(Type::Id(error)) = result.err else { panic!("`{}` has an untyped error", function.name) };
                let name = CONTRACT.resolve.types[error].name.clone();
                errors.push(name.unwrap_or_else(|| panic!("the error of `{}` has no name", function.name)));
            }
            TypeDefKind::List(inner) | TypeDefKind::Option(inner) => waiting.push(*inner),
            _ => {}
        }
    }
    errors
}

/// The cases of a variant, behind whatever `use` put before it.
fn cases(kind: &TypeDefKind) -> Vec<(String, Option<Type>)> {
    match kind {
        TypeDefKind::Variant(variant) => variant.cases.iter().map(|case| (case.name.clone(), case.ty)).collect(),
        TypeDefKind::Type(Type::Id(id)) => cases(&CONTRACT.resolve.types[*id].kind),
        _ => Vec::new(),
    }
}

#[test]
fn an_exported_interface_uses_no_interface_that_can_be_called() {
    // Else each plugin of that role would import those functions, whether its world offers them or not.
    for role in Role::ALL {
        let (_, interface) = CONTRACT.interfaces().find(|(name, _)| *name == role.name()).expect("a role has one");
        for (name, id) in &interface.types {
            let TypeDefKind::Type(Type::Id(of)) = CONTRACT.resolve.types[*id].kind else { continue };
            let wit_parser::TypeOwner::Interface(owner) = CONTRACT.resolve.types[of].owner else { continue };
            let owner = &CONTRACT.resolve.interfaces[owner];
            let used = owner.name.as_deref().unwrap_or("?");
            assert!(
                !has_functions(owner) || used == role.name(),
                "`{}` uses `{name}` of `{used}`, which has functions; move it to an interface of types",
                role.name()
            );
        }
    }
}

#[test]
fn each_interface_is_a_file_of_its_name() {
    for (name, _) in CONTRACT.interfaces() {
        assert!(wit().join(format!("v0.1/{name}.wit")).is_file(), "there is no wit/v0.1/{name}.wit");
    }
}

// Released contracts.

/// The faults of the folders of `wit` by its list of released ones.
fn wrong_releases(wit: &Path) -> Vec<String> {
    let list = fs::read_to_string(wit.join("released.txt")).expect("readable");
    let mut wrong = Vec::new();
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((folder, listed)) = line.split_once(char::is_whitespace) else {
            wrong.push(format!("`{line}` is not a folder and a digest"));
            continue;
        };
        let found = digest_of(&wit.join(folder)).to_string();
        if found != listed.trim() {
            wrong.push(format!(
                "`{folder}` is released and was changed: its digest is {found}; undo the change, or make a new folder"
            ));
        }
    }
    wrong
}

/// The digest of all files of a folder, by their names.
fn digest_of(folder: &Path) -> Digest {
    let mut parts = Vec::new();
    for path in files_within(folder) {
        let name = path.strip_prefix(folder).expect("within").to_str().expect("text").to_owned();
        parts.push(name.into_bytes());
        parts.push(fs::read(&path).expect("readable"));
    }
    Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn files_within(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[test]
fn no_released_contract_was_changed() {
    assert_eq!(wrong_releases(&wit()), [""; 0], "see wit/released.txt");
}

#[test]
fn a_change_of_a_released_contract_is_noticed_and_one_of_a_draft_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let wit = directory.path();
    fs::create_dir_all(wit.join("v1/deps")).expect("made");
    fs::create_dir(wit.join("draft")).expect("made");
    for file in ["v1/a.wit", "v1/deps/b.wit", "draft/a.wit"] {
        fs::write(wit.join(file), file).expect("written");
    }
    let digest = digest_of(&wit.join("v1"));
    fs::write(wit.join("released.txt"), format!("# Frozen.\n\nv1 {digest}\n")).expect("written");
    assert_eq!(wrong_releases(wit), [""; 0]);

    fs::write(wit.join("draft/a.wit"), "other").expect("written");
    assert_eq!(wrong_releases(wit), [""; 0]);

    for (file, text) in [("v1/a.wit", "other"), ("v1/deps/b.wit", "other"), ("v1/new.wit", "")] {
        let before = fs::read(wit.join(file)).ok();
        fs::write(wit.join(file), text).expect("written");
        let wrong = wrong_releases(wit);
        assert!(wrong.len() == 1 && wrong[0].contains("`v1` is released and was changed"), "{file}: {wrong:?}");
        match before {
            Some(bytes) => fs::write(wit.join(file), bytes).expect("written"),
            None => fs::remove_file(wit.join(file)).expect("removed"),
        }
        assert_eq!(wrong_releases(wit), [""; 0], "{file}");
    }
    fs::rename(wit.join("v1/a.wit"), wit.join("v1/c.wit")).expect("renamed");
    assert_eq!(wrong_releases(wit).len(), 1);
    fs::remove_dir_all(wit.join("v1")).expect("removed");
    assert_eq!(wrong_releases(wit).len(), 1, "a released folder that is gone");
    fs::write(wit.join("released.txt"), "v1\n").expect("written");
    assert_eq!(wrong_releases(wit), ["`v1` is not a folder and a digest"]);
}
