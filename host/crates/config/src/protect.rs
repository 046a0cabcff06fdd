//! `[protect]`: files that a feature may change only with a person's approval.
//!
//! To the list of [`longhaul_worktree::PROTECTED`] come the files of the project that `longhaul.toml` itself names
//! (`protect/files.rs`). Refuses patterns that lead out of the tree.

mod files;

pub use files::protected;

use longhaul_core::fault::{self, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table `[protect]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectConfig {
    /// Further paths, as in `.gitignore`: `/deploy/**`, `*.tf`.
    pub paths: Vec<String>,
    /// Paths, including built-in ones, that agents may change without an approval.
    pub allow: Vec<String>,
}

impl ProtectConfig {
    /// Refuses patterns that name no file of a tree.
    pub fn check(&self) -> fault::Result<()> {
        for (key, patterns) in [("paths", &self.paths), ("allow", &self.allow)] {
            for pattern in patterns {
                let leads_out = pattern.split('/').any(|part| part == "..");
                if pattern.trim_matches('/').is_empty() || leads_out || pattern.starts_with('!') {
                    bail!(
                        "[protect] {key} has `{pattern}`; write a path from the top of the tree, such as \"/deploy/**\""
                    );
                }
            }
        }
        Ok(())
    }
}
