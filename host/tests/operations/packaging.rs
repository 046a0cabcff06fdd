//! The files of `packaging/` against what they name, and the log of an installed service.

use crate::common::{self, repository};
use crate::passing;
use serde_json::Value;
use std::fs;
use std::process::Command;

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
