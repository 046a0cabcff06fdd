//! The configuration of a new project, and the creation of a whole project.

use crate::file::FILE;
use crate::tables::Config;
use longhaul_core::fault::{self, bail};
use std::path::Path;

/// `longhaul.toml` of a new project; `{{name}}` stands for its name.
pub const CONFIG: &str = include_str!("template/longhaul.toml");

/// Creates a directory with a repository, whose first commit holds a configuration and a goal. Without a template the
/// configuration is that of `longhaul new`; in a template, `{{name}}` stands for the name.
pub fn make_whole(directory: &Path, name: &str, goal: &str, template: Option<&str>) -> fault::Result<()> {
    let config = template.unwrap_or(CONFIG).replace("{{name}}", name);
    Config::parse(&config)?;
    longhaul_worktree::new_project_with(directory, name, &[(FILE, &config), ("GOAL.md", goal)])?;
    Ok(())
}

/// The directory's name, restricted to the characters of a project's name.
pub fn plain_name(directory: &Path) -> fault::Result<String> {
    let name = std::path::absolute(directory)?;
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(64).collect();
    if plain.trim_matches('-').is_empty() {
        bail!("`{name}` makes no project name; give one with --name");
    }
    Ok(plain.trim_matches('-').to_owned())
}
