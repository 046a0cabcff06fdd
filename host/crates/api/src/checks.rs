//! What is wrong with a project, and what would run. Looks for nothing itself.

use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest text of one finding, in bytes: parts of it were written by plugins.
const TEXT_BYTES_MAX: usize = 2_000;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The file, relative to the project, where it is about one.
    pub file: Option<String>,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do, in one line.
    pub text: String,
}

impl Finding {
    /// One of a file, with its line, or of no file. Its text is made one printable line.
    #[must_use]
    pub fn new(file: Option<&str>, line: Option<usize>, text: &str) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { file: file.map(str::to_owned), line, text: printable(&text, TEXT_BYTES_MAX) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(formatter, "{file}:{line}: {}", self.text),
            (Some(file), None) => write!(formatter, "{file}: {}", self.text),
            (None, _) => formatter.write_str(&self.text),
        }
    }
}

/// What would run, in words, when nothing is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The project's name.
    pub project: String,
    /// The parts: the table, the plugin, and what it may do.
    pub parts: Vec<String>,
    /// The models that may be asked.
    pub models: Vec<String>,
    /// The checks.
    pub checks: Vec<String>,
    /// The features, where the goal writes them; none: a planner asks a model.
    pub features: Option<Vec<String>>,
}
