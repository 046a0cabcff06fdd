//! Reasons why a project did not become a component, in sentences for its author.

use std::path::{Path, PathBuf};

/// The error of a build, with its remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The project has an invalid value, or lacks a required one.
    #[error("{0}")]
    Project(String),
    /// A program that the language needs is missing.
    #[error("{doing}: `{program}` does not start ({why}); {remedy}")]
    ToolMissing {
        /// The task that needed it.
        doing: String,
        /// The name of the program.
        program: String,
        /// The error of the system.
        why: std::io::Error,
        /// The way to get it.
        remedy: &'static str,
    },
    /// A program ended with an error; its own output is part of the text, unchanged.
    #[error("{doing}: `{program}` ended with {status}{said}")]
    ToolFailed {
        /// The task of the program.
        doing: String,
        /// The name of the program.
        program: String,
        /// The exit status.
        status: std::process::ExitStatus,
        /// A new line and the program's output; empty if that went to the terminal already.
        said: String,
    },
    /// The package client of Python fetched nothing.
    #[error("cannot fetch {package} with pip: {reason}; {remedy}{log}")]
    NotFetched {
        /// The package and its version.
        package: String,
        /// The reason, in a few words.
        reason: String,
        /// The way out.
        remedy: &'static str,
        /// The place of pip's whole output, after a semicolon; empty if it could not be written.
        log: String,
    },
    /// A program of a directory, such as the cache, may not be started or loaded there.
    #[error(
        "{doing}: no program can be started in `{directory}` ({why}), as where a file system is mounted noexec; \
         if that is the cache, name another one with LONGHAUL_CACHE or XDG_CACHE_HOME",
        directory = .directory.display()
    )]
    NoExec {
        /// The task that needed it.
        doing: String,
        /// The directory of the program.
        directory: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// A program did not end in time.
    #[error("{doing}: `{program}` took longer than {seconds_max} s")]
    ToolSlow {
        /// The task of the program.
        doing: String,
        /// The name of the program.
        program: String,
        /// The timeout.
        seconds_max: u64,
    },
    /// The tool chain of a language is unavailable on this machine.
    #[error("{0}")]
    Toolchain(String),
    /// The component does not match its world.
    #[error("{0}")]
    Component(String),
    /// A file or a folder cannot be used.
    #[error("cannot {doing} `{path}`", path = .path.display())]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn project(text: impl Into<String>) -> Self {
        Self::Project(text.into())
    }

    pub(crate) fn toolchain(text: impl Into<String>) -> Self {
        Self::Toolchain(text.into())
    }

    pub(crate) fn component(text: impl Into<String>) -> Self {
        Self::Component(text.into())
    }
}

/// An error of a file operation that names the file.
pub(crate) trait AtPath<T> {
    /// `doing` is the attempted operation: "read", "write".
    fn at(self, doing: &'static str, path: &Path) -> Result<T, BuildError>;
}

impl<T> AtPath<T> for std::io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, BuildError> {
        self.map_err(|source| BuildError::Io { doing, path: path.to_owned(), source })
    }
}
