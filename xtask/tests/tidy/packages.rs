//! The packages of the workspace, as cargo sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tree::repository;

pub struct Package {
    pub name: String,
    pub manifest: PathBuf,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
}

pub struct Dependency {
    pub name: String,
    /// Only for tests, examples or the build.
    pub beside: bool,
    pub ours: bool,
}

/// A target that cargo builds of a package.
pub struct Target {
    /// `lib`, `bin`, `test`, `bench`, `example` or `custom-build`.
    pub kind: String,
    pub name: String,
    pub source: PathBuf,
    /// True when cargo builds it for its unit tests.
    pub tested: bool,
}

impl Package {
    /// The root files of the library and of each program.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.built().map(|target| target.source.as_path())
    }

    /// The library and each program.
    pub fn built(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.kind == "lib" || target.kind == "bin")
    }
}

pub fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    list(&metadata["packages"], package)
}

fn package(one: &Value) -> Package {
    Package {
        name: text(&one["name"]),
        manifest: text(&one["manifest_path"]).into(),
        dependencies: list(&one["dependencies"], dependency),
        targets: list(&one["targets"], target),
    }
}

fn dependency(one: &Value) -> Dependency {
    Dependency { name: text(&one["name"]), beside: !one["kind"].is_null(), ours: !one["path"].is_null() }
}

fn target(one: &Value) -> Target {
    Target {
        kind: text(&one["kind"][0]),
        name: text(&one["name"]),
        source: text(&one["src_path"]).into(),
        tested: one["test"].as_bool().expect("cargo says it of each target"),
    }
}

fn list<T>(value: &Value, read: fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(read).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
