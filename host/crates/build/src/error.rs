//! Why a project did not become a component, in words for its author.

use std::path::{Path, PathBuf};

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The project says something that cannot be, or does not say something that it must.
    #[error("{0}")]
    Project(String),
    /// A program that the language needs is not there.
    #[error("{doing}: `{program}` does not start ({why}); {remedy}")]
    ToolMissing {
        /// What it was needed for.
        doing: String,
        /// Its name.
        program: String,
        /// What the system says.
        why: std::io::Error,
        /// How to get it.
        remedy: &'static str,
    },
    /// A program ended with an error; what it said itself is part of the text, as it said it.
    #[error("{doing}: `{program}` ended with {status}{said}")]
    ToolFailed {
        /// What it was to do.
        doing: String,
        /// Its name.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// A new line and its own words; empty where they went to the terminal already.
        said: String,
    },
    /// A program did not end in time.
    #[error("{doing}: `{program}` took longer than {seconds_max} s")]
    ToolSlow {
        /// What it was to do.
        doing: String,
        /// Its name.
        program: String,
        /// How long it had.
        seconds_max: u64,
    },
    /// The tool chain of a language cannot be had on this machine.
    #[error("{0}")]
    Toolchain(String),
    /// A component came out, and is not what its world says.
    #[error("{0}")]
    Component(String),
    /// A file or a folder cannot be used.
    #[error("cannot {doing} `{path}`", path = .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
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

/// An error of a file operation that says which file.
pub(crate) trait AtPath<T> {
    /// `doing` is what was tried: "read", "write".
    fn at(self, doing: &'static str, path: &Path) -> Result<T, BuildError>;
}

impl<T> AtPath<T> for std::io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, BuildError> {
        self.map_err(|source| BuildError::Io { doing, path: path.to_owned(), source })
    }
}
