//! Findings about a project, and the description of its run. This module checks nothing.

use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most bytes of the text of a finding, of which plugins write a part.
const TEXT_BYTES_MAX: usize = 2_000;

/// A fault of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The file, relative to the project. None: the finding is about no single file.
    pub file: Option<String>,
    /// The line of the file, from 1. None: not known.
    pub line: Option<usize>,
    /// The fault and its remedy, in one line.
    pub text: String,
}

impl Finding {
    /// A finding about a file and a line of it, or about no file. Its text is made one printable line.
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

/// A description of the run that a valid project would have, or of its asks if it has no goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The name of the project.
    pub project: String,
    /// The parts, one line each: the table, the plugin, and its grants.
    pub parts: Vec<String>,
    /// The models that may be asked, one line each.
    pub models: Vec<String>,
    /// The checks, one line each.
    pub checks: Vec<String>,
    /// The conditions of its turn that differ from the usual ones, one line each: labels of servers, and a priority.
    pub turn: Vec<String>,
    /// The features that the goal's file lists, one line each. None: a planner asks a model for them.
    pub features: Option<Vec<String>>,
    /// The further needs of a run, one line each, of a project without a goal, which was checked for asks. None: the
    /// project was checked for a run.
    pub run_needs: Option<Vec<String>>,
}
