//! The schemas and the files: those of this repository, misspelt ones, and the pages of the reference.

mod reference;
mod validator;

use super::*;
use longhaul_config::{Config, template};
use longhaul_plugins::manifest::PluginManifest;
use std::path::{Path, PathBuf};
use validator::faults;

/// Folders that hold no source.
const BUILT: [&str; 4] = ["target", "node_modules", ".git", "vendor"];

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// The files of this name below some folders of the repository, with their texts.
fn files(folders: &[&str], name: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| repository().join(folder)).collect();
    while let Some(folder) = left.pop() {
        for entry in folder.read_dir().expect("a folder").flatten() {
            let path = entry.path();
            let is_linked = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if path.is_dir() && !is_linked && !BUILT.iter().any(|built| path.ends_with(built)) {
                left.push(path);
            } else if path.ends_with(name) {
                let text = std::fs::read_to_string(&path).expect("ours").replace("{{name}}", "name");
                found.push((path, text));
            }
        }
    }
    found
}

fn value_of(text: &str) -> Value {
    toml::from_str(text).expect("TOML")
}

#[test]
fn each_file_has_a_schema_under_its_own_name() {
    assert_eq!(ConfigurationFile::ALL.as_slice(), ConfigurationFile::value_variants());
    for file in ConfigurationFile::ALL {
        let value = file.to_possible_value().expect("none is hidden");
        assert_eq!(value.get_name(), file.name());
        let help = value.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
        assert_eq!(help.trim_end_matches('.'), file.about());
        let schema = file.schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(schema["title"].as_str().is_some_and(|title| title.starts_with(file.name())), "{}", schema["title"]);
    }
}

/// A schema may take what a rule across tables refuses, and takes no key that the reader does not know.
#[test]
fn every_longhaul_toml_of_ours_is_taken_as_its_reader_takes_it() {
    let schema = of_project();
    let mut all = files(&["examples", "tests/scenarios"], "longhaul.toml");
    all.push((PathBuf::from("the template"), template::CONFIG.replace("{{name}}", "name")));
    let (mut taken, mut refused) = (0, 0);
    for (path, text) in all {
        let Ok(value) = toml::from_str::<Value>(&text) else { continue };
        let found = faults(&schema, &value);
        match Config::parse_all(&text) {
            Ok(_) => {
                assert_eq!(found, Vec::<String>::new(), "{}", path.display());
                taken += 1;
            }
            Err(wrong) if wrong.iter().any(|one| one.text.contains("unknown field")) => {
                assert!(!found.is_empty(), "{}: {wrong:?}", path.display());
                refused += 1;
            }
            Err(_) => {}
        }
    }
    assert!(taken > 50 && refused > 0, "{taken} are taken, and {refused} refused");
}

#[test]
fn every_manifest_of_ours_is_valid() {
    let schema = manifest_schema();
    let all = files(&["plugins", "sdk", "tests/guests"], "plugin.toml");
    assert!(all.len() > 30, "{}", all.len());
    for (path, text) in all {
        PluginManifest::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        assert_eq!(faults(&schema, &value_of(&text)), Vec::<String>::new(), "{}", path.display());
    }
}

/// The start of a project's file, and what its reader and the schema take after it.
const PROJECT: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

/// The table of a worker, with the one that it needs.
const WORKER: &str = "[store]\nurl = \"postgres://me@db.example/work\"\n[worker]";

/// Files and tables, with a key that is right, and one that is misspelt or has a wrong value.
const SLIPS: [(ConfigurationFile, &str, &str, &str); 25] = [
    (ConfigurationFile::Project, "[run]", "strategy = \"pipeline\"", "strategie = \"pipeline\""),
    (ConfigurationFile::Project, "[run]", "strategy = \"session\"", "strategy = \"ask\""),
    (ConfigurationFile::Project, "[run]", "labels_needed = [\"gpu\"]", "labels_needed = [\"-gpu\"]"),
    (ConfigurationFile::Project, "[run]", "needs = { memory_mb = 1.0 }", "needs = [\"gpu\"]"),
    (ConfigurationFile::Project, "[run]", "priority = 9", "priority = 10"),
    (ConfigurationFile::Project, "[run.limits]", "iterations_max = 2", "iterations = 2"),
    (ConfigurationFile::Project, "[ask.limits]", "iterations_max = 2", "iterations = 2"),
    (ConfigurationFile::Project, "[agents.code.limits]", "fuel_max = 1", "fuel = 1"),
    (ConfigurationFile::Project, "[agents.code.context]", "policy = \"halve\"", "policy = \"forget\""),
    (ConfigurationFile::Project, "[agents.b]\nplugin = \"react\"", "models = []", "model = []"),
    (
        ConfigurationFile::Project,
        "[tools.t]\nplugin = \"files\"",
        "hosts = [\"https://a.example\"]",
        "hosts = \"https://a.example\"",
    ),
    (ConfigurationFile::Project, "[tools.t]\nplugin = \"files\"", "confirm_effects = true", "confirm = true"),
    (
        ConfigurationFile::Project,
        "[tools.t]\nplugin = \"files\"\n[tools.t.approval]",
        "when_untrusted = \"deny\"",
        "when_trusted = \"deny\"",
    ),
    (
        ConfigurationFile::Project,
        "[tools.t]\nplugin = \"files\"\n[tools.t.approval]",
        "when_heard = \"deny\"",
        "when_heard = \"never\"",
    ),
    (ConfigurationFile::Project, "[models.m]\nprovider = \"openai\"\nid = \"m\"", "cache = true", "cached = true"),
    (ConfigurationFile::Project, "[models.m]\nprovider = \"local\"", "threads = 2", "bearer = true"),
    (ConfigurationFile::Project, "[models.m]", "provider = \"local\"", "provider = \"elsewhere\""),
    (ConfigurationFile::Project, "[mcp.m]\ncommand = [\"x\"]", "env = { A = { secret = \"b\" } }", "env = { A = 1 }"),
    (
        ConfigurationFile::Project,
        "[checks]\nshort = [\"true\"]",
        "c = { argv = [\"true\"] }",
        "c = { args = [\"true\"] }",
    ),
    (ConfigurationFile::Server, "[server]", "listen = \"127.0.0.1:1\"", "address = \"127.0.0.1:1\""),
    (ConfigurationFile::Server, "[notify]\ncommand = [\"x\"]", "on = [\"asks\"]", "on = [\"ask\"]"),
    (ConfigurationFile::Server, WORKER, "labels = [\"gpu\"]", "labels = [\"GPU\"]"),
    (ConfigurationFile::Server, WORKER, "runs_max = 1", "runs = 1"),
    (ConfigurationFile::Resources, "[mcp-server]", "max_processes = 1", "processes_max = 1"),
    (
        ConfigurationFile::Plugin,
        "name = \"p\"\nversion = \"1\"\nworld = \"tool-plugin\"\n[asks]",
        "models = true",
        "model = true",
    ),
];

#[test]
fn a_slip_is_refused_by_the_schema_as_by_the_reader() {
    for (file, table, right, wrong) in SLIPS {
        let schema = file.schema();
        for (line, is_right) in [(right, true), (wrong, false)] {
            let start = if file == ConfigurationFile::Project { PROJECT } else { "" };
            let text = format!("{start}{table}\n{line}\n");
            let found = faults(&schema, &value_of(&text));
            assert_eq!(found.is_empty(), is_right, "{text}\n{found:?}");
            assert_eq!(is_read(file, &text), is_right, "{text}");
        }
    }
}

/// True when the reader of a file takes a text.
fn is_read(file: ConfigurationFile, text: &str) -> bool {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join(file.name()), text).expect("written");
    match file {
        ConfigurationFile::Project => Config::parse(text).is_ok(),
        ConfigurationFile::Server => {
            let notify = longhaul_config::server::notify(home.path());
            notify.is_ok() && longhaul_config::server::ServerSettings::read(home.path()).is_ok()
        }
        ConfigurationFile::Resources => longhaul_config::resources::ResourceSettings::read(home.path()).is_ok(),
        ConfigurationFile::Plugin => PluginManifest::parse(text).is_ok(),
    }
}
