//! `longhaul skill`: installs the skill that teaches coding agents to use Longhaul.
//!
//! A different file is replaced only when the user says so: it may be their own.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Subcommand;
use longhaul_api::wire::onboarding::SkillInstalled;
use longhaul_core::fault::{self, Context as _, bail};
use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The skill, which is a page of the repository.
const SKILL: &str = include_str!("../embedded/SKILL.md");

const FILE: &str = "SKILL.md";

/// The directory of coding agents in a project, and the place of this skill in it.
const AGENTS: &str = ".claude";
const PLACE: &str = ".claude/skills/longhaul";

#[derive(Subcommand, Debug)]
pub enum SkillCommand {
    /// Write SKILL.md, from which a coding agent learns to prepare, start, follow and resume runs.
    Install {
        /// The directory of the skill. Default: `.claude/skills/longhaul` of the project, where there is `.claude`.
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Replace a different SKILL.md.
        #[arg(long)]
        force: bool,
    },
}

/// Runs the command.
pub fn run(context: &Context, command: SkillCommand) -> fault::Result<Exit> {
    let SkillCommand::Install { directory, force } = command;
    let directory = match directory {
        Some(named) => std::path::absolute(&named).with_context(|| format!("`{}` is no path", named.display()))?,
        None => usual(&context.project)?,
    };
    let path = directory.join(FILE);
    let written = install(&path, force)?;
    let path = path.display().to_string();
    if context.json {
        print_json(&SkillInstalled { path, written })?;
    } else if written {
        outln!("installed {path}");
    } else {
        outln!("{path} is installed already, and the same");
    }
    Ok(Exit::Done)
}

/// The place of the skill in a project whose coding agent reads skills.
fn usual(project: &Path) -> fault::Result<PathBuf> {
    if !project.join(AGENTS).is_dir() {
        bail!(
            "there is no {AGENTS} in `{}`; name the directory of the skill: longhaul skill install --directory DIR",
            project.display()
        );
    }
    Ok(project.join(PLACE))
}

/// True when a project has a directory for the skill and not the skill.
pub(super) fn is_wanted(project: &Path) -> bool {
    project.join(AGENTS).is_dir() && !project.join(PLACE).join(FILE).exists()
}

/// True when the file was written; false when it was there and the same.
fn install(path: &Path, force: bool) -> fault::Result<bool> {
    match std::fs::read(path) {
        Ok(found) if found == SKILL.as_bytes() => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        _ if force => {}
        Ok(_) => bail!("`{}` is a different file; replace it with --force", path.display()),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
    write(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(true)
}

/// Replaces the file as a whole. A link in its place is replaced, and not followed.
fn write(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(SKILL.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_different_file_is_replaced_only_when_asked_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("skills/longhaul").join(FILE);
        assert!(install(&path, false).expect("written"));
        assert!(!install(&path, false).expect("the same"));
        std::fs::write(&path, "mine").expect("ours");
        let refused = install(&path, false).expect_err("a different file").to_string();
        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "mine");
        assert!(install(&path, true).expect("written"));
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), SKILL);
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (directory.path().join(FILE), directory.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).expect("ours");
        assert!(install(&path, false).expect("written"));
        assert!(!other.exists());
    }

    #[test]
    fn a_project_without_a_coding_agent_has_no_usual_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let refused = usual(directory.path()).expect_err("no place").to_string();
        assert!(refused.contains("--directory DIR"), "{refused}");
        assert!(!is_wanted(directory.path()));
        std::fs::create_dir(directory.path().join(AGENTS)).expect("ours");
        assert!(is_wanted(directory.path()) && usual(directory.path()).is_ok());
    }
}
