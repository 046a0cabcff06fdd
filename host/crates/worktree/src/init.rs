//! Creates a repository: for a new project, and for files that are in none.
//!
//! A new project refuses a directory that holds anything, and one inside another repository: its files would be
//! committed by two. Existing files are committed only by their owner.

use crate::TreeError;
use crate::git::{UserRepository, check_settled, find, not_opened};
use git2::{ErrorCode, Repository, RepositoryInitOptions, Signature};
use std::io;
use std::path::Path;

/// Makes the directory, a repository with the branch `main` in it, and a first commit, so that HEAD exists. The commit
/// holds a `README.md` with the name and a `.gitignore`.
///
/// # Errors
/// When the directory is not empty, or the file system refuses.
pub fn new_project(dir: &Path, name: &str) -> Result<UserRepository, TreeError> {
    new_project_with(dir, name, &[])
}

/// As [`new_project`], with further files, by their names and texts, in the commit. A directory that was not there is
/// removed when the project cannot be made: a part of one would be refused at the next try.
///
/// # Errors
/// As [`new_project`].
pub fn new_project_with(dir: &Path, name: &str, more: &[(&str, &str)]) -> Result<UserRepository, TreeError> {
    let is_ours = make_directory(dir).map_err(TreeError::io("make", dir))?;
    let made = fill(dir, name, more);
    if made.is_err() && is_ours {
        let _ = std::fs::remove_dir_all(dir);
    }
    made
}

/// Makes a directory and those above it. True when this call made it: of two processes, one has made it.
fn make_directory(dir: &Path) -> io::Result<bool> {
    if let Some(above) = dir.parent() {
        std::fs::create_dir_all(above)?;
    }
    match std::fs::create_dir(dir) {
        // It may be a link to a directory, or a file, which is an error here.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => std::fs::create_dir_all(dir).map(|()| false),
        made => made.map(|()| true),
    }
}

fn fill(dir: &Path, name: &str, more: &[(&str, &str)]) -> Result<UserRepository, TreeError> {
    let mut entries = std::fs::read_dir(dir).map_err(TreeError::io("list", dir))?;
    let not_new = |what| TreeError::NotNew { dir: dir.to_owned(), what };
    if entries.next().is_some() {
        return Err(not_new("is not empty"));
    }
    if find(dir).is_ok() {
        return Err(not_new("is inside another git repository"));
    }
    // One line, whatever the name contains.
    let name: String = name.chars().filter(|character| !character.is_control()).collect();
    let title = format!("# {name}\n");
    let files = [&[("README.md", title.as_str()), (".gitignore", GITIGNORE)], more].concat();
    for (file, text) in &files {
        std::fs::write(dir.join(file), text).map_err(TreeError::io("write", dir.join(file)))?;
    }
    let repo = make(dir)?;
    first_commit(&repo, &files).map_err(TreeError::git("make the first commit"))?;
    UserRepository::open(dir)
}

/// Makes a repository in `dir`, with the branch `main` and no commit, unless `dir` is in one. True when it was made.
///
/// # Errors
/// [`TreeError::Bare`], [`TreeError::Owner`], [`TreeError::InProgress`], or when the file system refuses.
pub fn init_repository(dir: &Path) -> Result<bool, TreeError> {
    match find(dir) {
        Ok(repo) if repo.is_bare() => Err(TreeError::Bare { dir: repo.path().to_owned() }),
        Ok(repo) => check_settled(&repo, repo.workdir().unwrap_or(dir)).map(|()| false),
        Err(error) if error.code() == ErrorCode::NotFound => make(dir).map(|_| true),
        Err(error) => Err(not_opened(error, dir)),
    }
}

fn make(dir: &Path) -> Result<Repository, TreeError> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").no_reinit(true).external_template(false);
    Repository::init_opts(dir, &options).map_err(TreeError::git("make a repository"))
}

/// Files that the usual languages leave behind.
const GITIGNORE: &str = "/target/\nnode_modules/\n__pycache__/\n*.pyc\n.venv/\n.env\n";

fn first_commit(repo: &Repository, files: &[(&str, &str)]) -> Result<(), git2::Error> {
    let mut index = repo.index()?;
    for (file, _) in files {
        index.add_path(Path::new(file))?;
    }
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    // The user's name if git knows it: the user begins the project.
    let who = repo.signature().or_else(|_| Signature::now("Longhaul", "longhaul@localhost"))?;
    repo.commit(Some("HEAD"), &who, &who, "Begin\n", &tree, &[]).map(|_| ())
}
