//! The files of `packaging/` against what they name, and the log of an installed service.

use crate::common::lab::Lab;
use crate::common::python::{python, site};
use crate::common::{self, repository};
use crate::{kubernetes, list, passing};
use longhaul_config::server::ServerSettings;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_log_goes_into_a_file_as_json_when_that_is_asked_for() {
    let lab = passing();
    let log = lab.path("log/longhaul.log");
    fs::create_dir(lab.path("log")).expect("ours");
    let log_name = log.to_str().expect("text");
    let environment = [("LONGHAUL_LOG", "debug"), ("LONGHAUL_LOG_FORMAT", "json"), ("LONGHAUL_LOG_FILE", log_name)];
    lab.start_with(&["run"], &environment).wait().expect(0);
    let text = fs::read_to_string(&log).expect("made");
    assert!(!text.is_empty());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    let wrong = lab.start_with(&["runs"], &[("LONGHAUL_LOG_FORMAT", "xml")]).wait();
    common::refused(&wrong, &["LONGHAUL_LOG_FORMAT", "`json`"]);
}

/// A copy of the program, with the arguments and the environment of the program itself.
fn copied_program(lab: &Lab, copy: &Path, args: &[&str]) -> Command {
    let own = lab.command(args);
    let program = Path::new(own.get_program());
    fs::hard_link(program, copy).or_else(|_| fs::copy(program, copy).map(drop)).expect("a copy");
    let mut command = Command::new(copy);
    command.args(own.get_args()).stdin(Stdio::null());
    command.current_dir(own.get_current_dir().expect("the lab sets it"));
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// An update renames the new program into the place of the one that runs.
#[test]
fn a_server_whose_program_is_replaced_goes_on_and_the_next_command_says_so() {
    let lab = Lab::empty();
    let program = lab.path("longhaul");
    let mut server = lab.start_command(copied_program(&lab, &program, &["serve", "--listen", "127.0.0.1:0"]));
    server.wait_for("serving at");
    let ran = lab.run(&["runs"]).expect(0);
    assert!(!ran.stderr.contains("was replaced"), "{}", ran.said());
    let new = lab.path("longhaul.new");
    fs::write(&new, "the new program").expect("ours");
    fs::rename(&new, &program).expect("ours");
    let ran = lab.run(&["runs"]).expect(0);
    let note = format!("note: process {} answers, and its program was replaced since it started", server.pid());
    assert!(ran.stderr.contains(&note), "{}", ran.said());
    assert_eq!(ran.error_lines(), 1, "{}", ran.said());
    assert!(server.kill(), "it goes on");
}

#[test]
fn systemd_takes_the_unit() {
    let unit = fs::read_to_string(repository().join("packaging/longhaul.service")).expect("there");
    // The program is not installed where tests run.
    let unit = unit.replace("/usr/local/bin/longhaul serve", "/bin/true");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("longhaul.service");
    fs::write(&path, &unit).expect("ours");
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("longhaul.service"), "{said}");
    assert!(unit.lines().any(|line| line.starts_with("Delegate=")), "children have groups of their own");
}

#[test]
fn each_alert_says_what_to_do() {
    let text = fs::read_to_string(repository().join("packaging/alerts.yml")).expect("there");
    let alerts: Vec<&str> = text.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 10, "{text}");
    for alert in alerts {
        for field in ["expr: ", "severity: ", "summary: ", "runbook: "] {
            let value = alert.lines().find_map(|line| line.split_once(field)).map(|(_, value)| value.trim());
            assert!(value.is_some_and(|value| value.len() > 3), "no `{field}` in\n{alert}");
        }
        let runbook = alert.lines().find_map(|line| line.trim().strip_prefix("runbook: ")).expect("it was there");
        assert!(runbook.ends_with('.') && runbook.contains(' '), "no sentence: {runbook}");
    }
}

#[test]
fn the_container_file_names_what_is_there() {
    const KNOWN: [&str; 13] = [
        "FROM",
        "WORKDIR",
        "RUN",
        "COPY",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
        "ARG",
    ];
    let text = fs::read_to_string(repository().join("packaging/Containerfile")).expect("there");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let lines = lines.replace("\\\n", " ");
    let instructions: Vec<(&str, &str)> =
        lines.lines().filter_map(|line| line.split_once(' ')).map(|(word, rest)| (word, rest.trim())).collect();
    for (word, rest) in &instructions {
        assert!(KNOWN.contains(word), "{word} {rest}");
        if *word == "FROM" {
            let image = rest.split(' ').next().unwrap_or_default();
            assert!(image.contains(':') && !image.ends_with(":latest"), "{image}");
        }
    }
    let of = |wanted: &str| {
        instructions.iter().filter(|(word, _)| *word == wanted).map(|(_, rest)| *rest).collect::<Vec<_>>()
    };
    assert!(of("USER") == ["longhaul"], "it does not run as root");
    // Forms that no shell reads get signals themselves.
    for rest in of("CMD").into_iter().chain(of("ENTRYPOINT")) {
        assert!(serde_json::from_str::<Vec<String>>(rest).is_ok(), "{rest}");
    }
    let minimum = fs::read_to_string(repository().join("Cargo.toml")).expect("there");
    let minimum: toml::Table = minimum.parse().expect("cargo reads it");
    let version = minimum["workspace"]["package"]["rust-version"].as_str().expect("text").to_owned();
    assert!(of("FROM")[0].contains(&format!("rust:{version}")), "the compiler that the workspace asks for");
}

#[test]
fn the_settings_of_the_composed_servers_are_what_the_program_reads() {
    let composed = composed();
    for name in ["alpha", "beta", "gamma"] {
        let service = &composed["services"][name];
        let source = service["configs"][0]["source"].as_str().expect("a name");
        let settings = composed["configs"][source]["content"].as_str().expect("settings");
        let folder = tempfile::tempdir().expect("a directory");
        fs::write(folder.path().join("server.toml"), settings).expect("ours");
        let store = longhaul_config::server::store(folder.path()).expect("in order").expect("a database");
        let server = ServerSettings::read(folder.path()).expect("in order");
        assert!(server.worker().is_some(), "{name} works on runs");
        let url = server.server_url().expect("the others forward to it");
        assert_eq!(url.as_str(), format!("http://{name}:7717"));
        let password = &service["environment"][store.password_env.expect("a password")];
        assert_eq!(
            password, &composed["services"]["database"]["environment"]["POSTGRES_PASSWORD"],
            "both sides have it"
        );
        assert!(store.url.contains("@database/"), "{}", store.url);
    }
}

/// The compose file as it is read, with its aliases in their places.
fn composed() -> Value {
    let mut python = python();
    python.args(["-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"]);
    python.stdin(fs::File::open(repository().join("packaging/compose.yml")).expect("there"));
    let read = python.env("PYTHONPATH", site(kubernetes::LIST)).output().expect("python3 is installed");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    serde_json::from_slice(&read.stdout).expect("JSON")
}

#[test]
fn the_composed_servers_name_what_is_there_and_have_data_directories_of_their_own() {
    let composed = composed();
    let services = composed["services"].as_object().expect("services");
    let mut volumes = Vec::new();
    for (name, service) in services {
        let mounted = list(service, "volumes").iter().filter_map(|volume| volume.as_str()?.split_once(':'));
        for (volume, _) in mounted.filter(|(source, _)| !source.starts_with('.')) {
            assert!(composed["volumes"].as_object().is_some_and(|all| all.contains_key(volume)), "{name}: {volume}");
            volumes.push(volume.to_owned());
        }
        for other in service["depends_on"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            assert!(services.contains_key(other), "{name} depends on {other}");
        }
        for config in service["configs"].as_array().into_iter().flatten() {
            let source = config["source"].as_str().expect("a name");
            assert!(composed["configs"][source]["content"].is_string(), "{name}: {source}");
            assert_eq!(source, name, "each has its own settings");
        }
    }
    volumes.sort();
    assert_eq!(volumes, ["alpha", "beta", "database", "gamma"], "none is shared");
    let mut ports = BTreeSet::new();
    for name in ["alpha", "beta", "gamma"] {
        let server = &services[name];
        assert_eq!((&server["image"], &server["restart"]), (&json!("longhaul"), &json!("on-failure")));
        let port = server["ports"][0].as_str().expect("a port");
        assert!(port.starts_with("127.0.0.1:") && port.ends_with(":7717"), "{name}: {port}");
        assert!(ports.insert(port), "{name}: {port} is that of another one");
    }
}
