//! `[protect]`: which files a feature may change only with a person's approval.
//!
//! To the list of [`longhaul_worktree::PROTECTED`] come the files of the project that `longhaul.toml` itself starts: a
//! plugin that it names by a path, and a program of `[notify]` or `[mcp]`. Refuses patterns that lead out of the tree.

use crate::config::Config;
use anyhow::bail;
use longhaul_worktree::Protected;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `[protect]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectConfig {
    /// Further paths, as in `.gitignore`: `/deploy/**`, `*.tf`.
    pub paths: Vec<String>,
    /// Paths, of the built-in ones too, that agents may change without being asked about.
    pub allow: Vec<String>,
}

impl ProtectConfig {
    /// Refuses what names no file of a tree.
    pub fn check(&self) -> anyhow::Result<()> {
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

/// Which files of a project are protected.
pub fn protected(config: &Config, project: &Path) -> Protected {
    let listed = config.protect.paths.iter().map(|path| (path.clone(), "is listed in [protect]".to_owned()));
    let further: Vec<_> = listed.chain(started(config, project)).collect();
    Protected::new(&further, &config.protect.allow)
}

/// Files of the project that the configuration has Longhaul start.
fn started(config: &Config, project: &Path) -> Vec<(String, String)> {
    let plugins = config.parts().filter(|(_, part)| part.plugin.starts_with('.'));
    let plugins = plugins.map(|(table, part)| (table, part.plugin.as_str()));
    let servers = config.mcp.iter().flat_map(|(name, server)| words(format!("mcp.{name}"), &server.command));
    let notified = config.notify.iter().flat_map(|notify| words("notify".to_owned(), &notify.command));
    let mails = config.notify.iter().filter_map(|notify| notify.email.as_ref());
    let mailed = mails.flat_map(|email| words("notify.email".to_owned(), &email.sendmail));
    let named = plugins.chain(servers).chain(notified).chain(mailed);
    let own = named.filter_map(|(table, word)| Some((own_file(word, project)?, format!("is started by [{table}]"))));
    own.collect()
}

fn words(table: String, command: &[String]) -> impl Iterator<Item = (String, &str)> {
    command.iter().map(move |word| (table.clone(), word.as_str()))
}

/// The path from the top of the tree of a word that names a file of the project.
fn own_file(word: &str, project: &Path) -> Option<String> {
    let file = project.join(word).canonicalize().ok().filter(|file| file.is_file())?;
    let inside = file.strip_prefix(project.canonicalize().ok()?).ok()?.to_str()?.to_owned();
    Some(longhaul_worktree::pattern_of(&inside))
}
