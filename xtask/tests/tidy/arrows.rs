//! The allowed dependencies between crates, and the required fields of every manifest.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Arrows, circles};
use crate::packages::packages;
use crate::tree::{none, read, repository};

/// The crates of ours that a crate may depend on; `*` is all.
const ARROWS: &[(&str, &[&str])] = &[
    ("embed-exec", &["longhaul-exec"]),
    ("embed-run", &["longhaul"]),
    ("longhaul", &["*"]),
    ("longhaul-agents", &["longhaul-core"]),
    (
        "longhaul-api",
        &[
            "longhaul-agents",
            "longhaul-approval",
            "longhaul-config",
            "longhaul-core",
            "longhaul-harness",
            "longhaul-mcp",
            "longhaul-models",
            "longhaul-records",
            "longhaul-resources",
            "longhaul-schedule",
            "longhaul-security",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-approval", &["longhaul-core"]),
    ("longhaul-bindings", &["longhaul-core"]),
    ("longhaul-bombs", &[]),
    ("longhaul-browser", &["longhaul-core", "longhaul-egress", "longhaul-sandbox"]),
    ("longhaul-build", &["longhaul-core"]),
    ("longhaul-capabilities", &["longhaul-bindings", "longhaul-core", "longhaul-egress"]),
    (
        "longhaul-checkpoints",
        &[
            "longhaul-api",
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-graph",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-journal",
            "longhaul-models",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-run",
            "longhaul-security",
            "longhaul-worktree",
        ],
    ),
    (
        "longhaul-cli",
        &[
            "longhaul-agents",
            "longhaul-api",
            "longhaul-approval",
            "longhaul-bombs",
            "longhaul-browser",
            "longhaul-build",
            "longhaul-capabilities",
            "longhaul-client",
            "longhaul-config",
            "longhaul-conform",
            "longhaul-core",
            "longhaul-crashtest",
            "longhaul-egress",
            "longhaul-engine",
            "longhaul-exec",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-listen",
            "longhaul-mcp",
            "longhaul-models",
            "longhaul-packages",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-report",
            "longhaul-resources",
            "longhaul-sandbox",
            "longhaul-schedule",
            "longhaul-security",
            "longhaul-testkit",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-client", &["longhaul-api", "longhaul-core", "longhaul-egress", "longhaul-home"]),
    (
        "longhaul-config",
        &[
            "longhaul-approval",
            "longhaul-browser",
            "longhaul-core",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-mcp",
            "longhaul-models",
            "longhaul-postgres",
            "longhaul-redis",
            "longhaul-resources",
            "longhaul-sandbox",
            "longhaul-telemetry",
            "longhaul-tools",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-conform", &["longhaul-core", "longhaul-engine", "longhaul-testkit"]),
    ("longhaul-core", &[]),
    ("longhaul-crashtest", &["longhaul-api", "longhaul-core", "longhaul-worktree"]),
    ("longhaul-egress", &["longhaul-core"]),
    ("longhaul-embeddings", &["longhaul-core"]),
    ("longhaul-engine", &["longhaul-bindings", "longhaul-capabilities", "longhaul-core", "longhaul-sandbox"]),
    (
        "longhaul-exec",
        &[
            "longhaul-capabilities",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-engine",
            "longhaul-home",
            "longhaul-sandbox",
        ],
    ),
    (
        "longhaul-forks",
        &[
            "longhaul-api",
            "longhaul-config",
            "longhaul-core",
            "longhaul-graph",
            "longhaul-harness",
            "longhaul-journal",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-run",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-fuzz", &["*"]),
    ("longhaul-graph", &["longhaul-core"]),
    ("longhaul-graph-runner", &["longhaul-api", "longhaul-core", "longhaul-exec", "longhaul-graph", "longhaul-home"]),
    ("longhaul-harness", &["longhaul-core"]),
    ("longhaul-home", &["longhaul-core", "longhaul-sandbox", "longhaul-shipped"]),
    ("longhaul-journal", &["longhaul-core"]),
    ("longhaul-judge", &["longhaul-core"]),
    ("longhaul-listen", &[]),
    ("longhaul-llama", &[]),
    (
        "longhaul-maintenance",
        &[
            "longhaul-api",
            "longhaul-checkpoints",
            "longhaul-config",
            "longhaul-core",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-memory",
            "longhaul-records",
            "longhaul-security",
        ],
    ),
    ("longhaul-mcp", &["longhaul-approval", "longhaul-core", "longhaul-egress", "longhaul-sandbox"]),
    (
        "longhaul-memory",
        &[
            "longhaul-capabilities",
            "longhaul-config",
            "longhaul-core",
            "longhaul-engine",
            "longhaul-harness",
            "longhaul-journal",
            "longhaul-models",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-security",
        ],
    ),
    ("longhaul-models", &["longhaul-core", "longhaul-egress", "longhaul-llama"]),
    (
        "longhaul-monitor",
        &["longhaul-agents", "longhaul-api", "longhaul-config", "longhaul-core", "longhaul-resources"],
    ),
    (
        "longhaul-notify",
        &[
            "longhaul-agents",
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-home",
            "longhaul-records",
            "longhaul-schedule",
            "longhaul-security",
        ],
    ),
    ("longhaul-objects", &["longhaul-core", "longhaul-egress"]),
    ("longhaul-packages", &["longhaul-build", "longhaul-core"]),
    (
        "longhaul-plugins",
        &[
            "longhaul-api",
            "longhaul-build",
            "longhaul-capabilities",
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-engine",
            "longhaul-home",
            "longhaul-packages",
            "longhaul-records",
            "longhaul-sandbox",
            "longhaul-security",
            "longhaul-toolbox",
        ],
    ),
    ("longhaul-postgres", &["longhaul-core", "longhaul-objects"]),
    (
        "longhaul-preflight",
        &[
            "longhaul-api",
            "longhaul-config",
            "longhaul-core",
            "longhaul-engine",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-mcp",
            "longhaul-models",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-security",
            "longhaul-toolbox",
            "longhaul-worktree",
        ],
    ),
    (
        "longhaul-records",
        &[
            "longhaul-approval",
            "longhaul-config",
            "longhaul-core",
            "longhaul-harness",
            "longhaul-journal",
            "longhaul-models",
            "longhaul-telemetry",
        ],
    ),
    ("longhaul-redis", &["longhaul-core"]),
    ("longhaul-repomap", &[]),
    (
        "longhaul-report",
        &[
            "longhaul-api",
            "longhaul-core",
            "longhaul-crashtest",
            "longhaul-harness",
            "longhaul-records",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-resources", &["longhaul-core"]),
    (
        "longhaul-run",
        &[
            "longhaul-api",
            "longhaul-approval",
            "longhaul-capabilities",
            "longhaul-config",
            "longhaul-core",
            "longhaul-engine",
            "longhaul-harness",
            "longhaul-journal",
            "longhaul-memory",
            "longhaul-models",
            "longhaul-notify",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-repomap",
            "longhaul-sandbox",
            "longhaul-toolbox",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-sandbox", &["longhaul-core"]),
    ("longhaul-schedule", &["longhaul-core"]),
    (
        "longhaul-scheduler",
        &[
            "longhaul-agents",
            "longhaul-api",
            "longhaul-config",
            "longhaul-core",
            "longhaul-exec",
            "longhaul-home",
            "longhaul-notify",
            "longhaul-records",
            "longhaul-schedule",
        ],
    ),
    (
        "longhaul-security",
        &[
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-home",
            "longhaul-mcp",
            "longhaul-models",
            "longhaul-records",
            "longhaul-worktree",
        ],
    ),
    (
        "longhaul-server",
        &[
            "longhaul-agents",
            "longhaul-api",
            "longhaul-approval",
            "longhaul-client",
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-exec",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-listen",
            "longhaul-models",
            "longhaul-plugins",
            "longhaul-records",
            "longhaul-report",
            "longhaul-resources",
            "longhaul-schedule",
            "longhaul-service",
            "longhaul-worktree",
        ],
    ),
    (
        "longhaul-service",
        &[
            "longhaul-agents",
            "longhaul-api",
            "longhaul-approval",
            "longhaul-build",
            "longhaul-capabilities",
            "longhaul-checkpoints",
            "longhaul-config",
            "longhaul-core",
            "longhaul-engine",
            "longhaul-exec",
            "longhaul-forks",
            "longhaul-graph-runner",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-journal",
            "longhaul-maintenance",
            "longhaul-mcp",
            "longhaul-memory",
            "longhaul-models",
            "longhaul-monitor",
            "longhaul-notify",
            "longhaul-plugins",
            "longhaul-preflight",
            "longhaul-records",
            "longhaul-redis",
            "longhaul-resources",
            "longhaul-run",
            "longhaul-schedule",
            "longhaul-scheduler",
            "longhaul-security",
            "longhaul-telemetry",
            "longhaul-time-travel",
            "longhaul-toolbox",
            "longhaul-workers",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-shipped", &["longhaul-core"]),
    ("longhaul-store", &["longhaul-core"]),
    ("longhaul-store-tests", &["longhaul-core"]),
    ("longhaul-telemetry", &["longhaul-core", "longhaul-egress"]),
    (
        "longhaul-testkit",
        &["longhaul-capabilities", "longhaul-core", "longhaul-engine", "longhaul-journal", "longhaul-store"],
    ),
    ("longhaul-time-travel", &["longhaul-api", "longhaul-core"]),
    (
        "longhaul-toolbox",
        &[
            "longhaul-approval",
            "longhaul-browser",
            "longhaul-config",
            "longhaul-core",
            "longhaul-egress",
            "longhaul-exec",
            "longhaul-harness",
            "longhaul-home",
            "longhaul-mcp",
            "longhaul-records",
            "longhaul-sandbox",
            "longhaul-security",
            "longhaul-tools",
            "longhaul-worktree",
        ],
    ),
    ("longhaul-tools", &["longhaul-core", "longhaul-sandbox", "longhaul-worktree"]),
    ("longhaul-workers", &["longhaul-api", "longhaul-core"]),
    ("longhaul-worktree", &["longhaul-core", "longhaul-judge", "longhaul-sandbox"]),
    ("xtask", &["longhaul-build"]),
];

/// Circles that dependencies for tests close. There is none.
const TIED_BY_TESTS: &[&[&str]] = &[];

#[test]
fn crates_depend_on_each_other_as_the_arrows_say() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut wrong = Vec::new();
    for one in packages() {
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
    let found: BTreeSet<String> = packages().into_iter().map(|one| one.name).collect();
    let gone: Vec<_> = arrows.keys().filter(|name| !found.contains(**name)).collect();
    assert!(gone.is_empty(), "the table has crates that are gone: {gone:?}");
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let without = packages().into_iter().filter(|one| {
        let manifest: toml::Table = read(&one.manifest).parse().expect("cargo reads it");
        manifest.get("lints").and_then(|lints| lints.get("workspace")) != Some(&toml::Value::Boolean(true))
    });
    none(&without.map(|one| one.name).collect::<Vec<_>>(), "without `[lints] workspace = true`");
}

#[test]
fn no_library_hides_its_errors_in_anyhow() {
    let libraries = repository().join("host/crates");
    let with = packages().into_iter().filter(|one| {
        one.manifest.starts_with(&libraries)
            && one.dependencies.iter().any(|dependency| dependency.name == "anyhow" && !dependency.beside)
    });
    none(&with.map(|one| one.name).collect::<Vec<_>>(), "a crate has one enum of errors, and no `anyhow`");
}

#[test]
fn no_crates_depend_on_each_other_in_a_circle() {
    let packages = packages();
    let mut arrows = Arrows::new();
    for package in &packages {
        let ours = package.dependencies.iter().filter(|dependency| dependency.ours);
        arrows.entry(&package.name).or_default().extend(ours.map(|dependency| dependency.name.as_str()));
    }
    let found: Vec<_> = circles(&arrows).into_iter().collect();
    assert_eq!(found, TIED_BY_TESTS, "circles of crates, those of dependencies for tests among them");
}
