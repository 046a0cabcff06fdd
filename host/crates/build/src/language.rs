//! The languages of plugins, by their words.

use crate::error::BuildError;
use std::fmt;
use std::str::FromStr;

/// A language; `plugin.toml` names it under `[build] language`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginLanguage {
    /// Rust, built by cargo.
    Rust,
    /// Python: CPython inside the component.
    Python,
    /// JavaScript or TypeScript: QuickJS inside the component.
    Javascript,
    /// C, built by the clang of zig.
    C,
}

impl PluginLanguage {
    /// All languages.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Javascript, Self::C];

    /// The word of the language in a manifest.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::C => "c",
        }
    }

    /// The folder of its SDK and of its templates.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Javascript => "js",
            other => other.word(),
        }
    }
}

impl fmt::Display for PluginLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for PluginLanguage {
    type Err = BuildError;

    /// Reads a language from its word, or from `js` for JavaScript.
    fn from_str(word: &str) -> Result<Self, BuildError> {
        Self::ALL.into_iter().find(|language| language.word() == word || language.folder() == word).ok_or_else(|| {
            BuildError::project(format!(
                "there is no language `{}` here; write one of: rust, python, js, c",
                word.escape_default()
            ))
        })
    }
}
