//! A project from nothing.
//!
//! Refuses a directory that holds anything, and one inside another repository: its files would be
//! committed by two.

use crate::TreeError;
use crate::git::Project;
use git2::{Repository, RepositoryInitOptions, Signature};
use std::path::Path;

/// Makes the directory, a repository with the branch `main` in it, and a first commit, so that HEAD
/// exists. The commit holds a `README.md` with the name and a `.gitignore`.
///
/// # Errors
/// When something is there already, or the file system refuses.
pub fn new_project(dir: &Path, name: &str) -> Result<Project, TreeError> {
    new_project_with(dir, name, &[])
}

/// As [`new_project`], with these files, by their names and texts, in the commit too.
///
/// # Errors
/// As [`new_project`].
pub fn new_project_with(dir: &Path, name: &str, more: &[(&str, &str)]) -> Result<Project, TreeError> {
    std::fs::create_dir_all(dir).map_err(TreeError::io("make", dir))?;
    let mut entries = std::fs::read_dir(dir).map_err(TreeError::io("list", dir))?;
    let not_new = |what| TreeError::NotNew { dir: dir.to_owned(), what };
    if entries.next().is_some() {
        return Err(not_new("is not empty"));
    }
    if Repository::discover(dir).is_ok() {
        return Err(not_new("is inside another git repository"));
    }
    // One line, whatever the name holds.
    let name: String = name.chars().filter(|character| !character.is_control()).collect();
    let title = format!("# {name}\n");
    let files = [&[("README.md", title.as_str()), (".gitignore", GITIGNORE)], more].concat();
    for (file, text) in &files {
        std::fs::write(dir.join(file), text).map_err(TreeError::io("write", dir.join(file)))?;
    }
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").no_reinit(true).external_template(false);
    let repo = Repository::init_opts(dir, &options).map_err(TreeError::git("make a repository"))?;
    first_commit(&repo, &files).map_err(TreeError::git("make the first commit"))?;
    Project::open(dir)
}

/// What languages that agents write in leave behind.
const GITIGNORE: &str = "/target/\nnode_modules/\n__pycache__/\n*.pyc\n.venv/\n.env\n";

fn first_commit(repo: &Repository, files: &[(&str, &str)]) -> Result<(), git2::Error> {
    let mut index = repo.index()?;
    for (file, _) in files {
        index.add_path(Path::new(file))?;
    }
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    // The user's name where git knows it: it is the user who begins a project.
    let who = repo.signature().or_else(|_| Signature::now("Longhaul", "longhaul@localhost"))?;
    repo.commit(Some("HEAD"), &who, &who, "Begin\n", &tree, &[]).map(|_| ())
}
