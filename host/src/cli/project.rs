//! `longhaul init` and `longhaul new`: the two files that make a repository a project.

use super::{Context, Exit};
use crate::config::FILE;
use anyhow::{Context as _, bail};
use longhaul_worktree::Project;
use std::path::Path;

const CONFIG: &str = include_str!("project/longhaul.toml");
const GOAL: &str = include_str!("project/GOAL.md");

/// Makes an existing repository a project.
pub fn init(context: &Context, name: Option<String>) -> anyhow::Result<Exit> {
    let directory = context
        .project
        .canonicalize()
        .with_context(|| format!("there is no directory `{}`", context.project.display()))?;
    Project::open(&directory)?;
    if directory.join(FILE).exists() {
        bail!("`{}` is there already; edit it", directory.join(FILE).display());
    }
    let name = match name {
        Some(name) => name,
        None => plain_name(&directory)?,
    };
    write_files(&directory, &name)?;
    outln!("wrote {FILE} and GOAL.md; write the goal, choose a model, commit both, then: longhaul run");
    Ok(Exit::Done)
}

/// Makes a directory with a repository, and the two files in it for the user to edit and commit.
pub fn new(context: &Context, directory: &Path) -> anyhow::Result<Exit> {
    let directory = context.project.join(directory);
    let name = plain_name(&directory)?;
    longhaul_worktree::new_project(&directory, &name)?;
    write_files(&directory, &name)?;
    outln!("made {}; write GOAL.md, choose a model in {FILE}, commit both, then: longhaul run", directory.display());
    Ok(Exit::Done)
}

/// Makes a directory with a repository, whose first commit holds a configuration and a goal. Without a template, the
/// configuration is that of [`new`]; in one, `{{name}}` stands for the name.
pub fn make(directory: &Path, name: &str, goal: &str, template: Option<&str>) -> anyhow::Result<()> {
    let config = template.unwrap_or(CONFIG).replace("{{name}}", name);
    crate::config::Config::parse(&config)?;
    longhaul_worktree::new_project_with(directory, name, &[(FILE, &config), ("GOAL.md", goal)])?;
    Ok(())
}

fn write_files(directory: &Path, name: &str) -> anyhow::Result<()> {
    let config = CONFIG.replace("{{name}}", name);
    crate::config::Config::parse(&config)?;
    std::fs::write(directory.join(FILE), config)?;
    if !directory.join("GOAL.md").exists() {
        std::fs::write(directory.join("GOAL.md"), GOAL.replace("{{name}}", name))?;
    }
    Ok(())
}

/// The directory's name, as far as a project may have it.
pub fn plain_name(directory: &Path) -> anyhow::Result<String> {
    let absolute = std::path::absolute(directory)?;
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(64).collect();
    if plain.trim_matches('-').is_empty() {
        bail!("`{name}` makes no project name; give one with --name");
    }
    Ok(plain.trim_matches('-').to_owned())
}
