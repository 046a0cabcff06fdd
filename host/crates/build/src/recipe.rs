//! The table `[build]` of a plugin's manifest, for each language: files and folders that the build reads.
//!
//! An unknown field is an error. The users of the files check that they exist.

use serde::Deserialize;
use std::path::PathBuf;

/// The way to make the component: the rest of `[build]`.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    /// Rust has no further fields: all of them are in `Cargo.toml`.
    Rust,
    Python(PythonRecipe),
    Javascript(JavascriptRecipe),
    C(CRecipe),
}

/// `[build]` of a plugin in Python.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PythonRecipe {
    /// The module with the classes that the world requires.
    pub(crate) module: String,
    /// Further folders to import from, relative to the plugin's, for example the SDK.
    #[serde(default)]
    pub(crate) paths: Vec<PathBuf>,
    /// Packages in pure Python to import from, each as `NAME==VERSION`, without those that they need.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
}

impl PythonRecipe {
    /// Folders besides the project's own.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// `[build]` of a plugin in JavaScript.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JavascriptRecipe {
    /// The file with the export that the world requires; `.js` or `.ts`.
    pub(crate) entry: PathBuf,
    /// Further folders to import from, relative to the plugin's. One with a package.json is the
    /// package of that name.
    #[serde(default)]
    pub(crate) paths: Vec<PathBuf>,
}

impl JavascriptRecipe {
    /// Folders besides the project's own.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// `[build]` of a plugin in C.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CRecipe {
    /// The files to compile, relative to the plugin's folder.
    pub(crate) sources: Vec<PathBuf>,
    /// Folders with headers, relative to the plugin's; the SDK is one of them.
    #[serde(default)]
    pub(crate) paths: Vec<PathBuf>,
}

impl CRecipe {
    /// Folders besides the project's own.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}
