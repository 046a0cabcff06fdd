//! A copy of a user's repository with its files, for trials that must not touch the original.
//!
//! The copy is a clone of its own: no object is shared, no remote and no other branch remains, and nothing that happens
//! in it reaches the original. Files that git ignores are copied, too, since a project may need them; links are copied
//! as links. The original is only read.

use crate::TreeError;
use crate::git::UserRepository;
use git2::build::{CloneLocal, RepoBuilder};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of a repository's directory, or of the file that leads to it.
const GIT: &str = ".git";

/// Copies the repository around `project`, whose files are those of its commit, into `to`, which is made. Returns the
/// directory of the project in the copy.
///
/// # Errors
/// [`TreeError::Dirty`] and the others of [`UserRepository::check_clean`], and when git or the file system refuses.
pub fn copy_project(project: &Path, to: &Path) -> Result<PathBuf, TreeError> {
    let repository = UserRepository::open(project)?;
    repository.check_clean()?;
    let root = resolved(repository.root())?;
    let within = resolved(project)?.strip_prefix(&root).map(Path::to_owned).unwrap_or_default();
    let not_text = || TreeError::io("copy", &root)(std::io::Error::other("its path is not UTF-8"));
    let source = root.to_str().ok_or_else(not_text)?;
    let cloned = RepoBuilder::new().clone_local(CloneLocal::NoLinks).clone(source, to);
    let cloned = cloned.map_err(TreeError::git("copy the repository"))?;
    cloned.remote_delete("origin").map_err(TreeError::git("forget where the copy is from"))?;
    copy_missing(&root, to)?;
    // Joined with nothing, a path would end with a slash.
    Ok(if within.as_os_str().is_empty() { to.to_owned() } else { to.join(within) })
}

fn resolved(path: &Path) -> Result<PathBuf, TreeError> {
    path.canonicalize().map_err(TreeError::io("find", path))
}

/// Copies what a directory has and its copy lacks. Repositories inside of it stay without their history.
fn copy_missing(from: &Path, to: &Path) -> Result<(), TreeError> {
    for entry in fs::read_dir(from).map_err(TreeError::io("list", from))? {
        let entry = entry.map_err(TreeError::io("list", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == GIT {
            continue;
        }
        let kind = entry.file_type().map_err(TreeError::io("look at", &source))?;
        if kind.is_dir() {
            if !target.exists() {
                fs::create_dir(&target).map_err(TreeError::io("make", &target))?;
            }
            copy_missing(&source, &target)?;
        } else if target.symlink_metadata().is_err() {
            copy_one(&source, &target, kind)?;
        }
    }
    Ok(())
}

fn copy_one(source: &Path, target: &Path, kind: fs::FileType) -> Result<(), TreeError> {
    if kind.is_symlink() {
        let leads_to = fs::read_link(source).map_err(TreeError::io("read the link", source))?;
        return std::os::unix::fs::symlink(leads_to, target).map_err(TreeError::io("make the link", target));
    }
    // Sockets and the like are of processes that are there now.
    if kind.is_file() {
        fs::copy(source, target).map_err(TreeError::io("copy to", target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::new_project_with;

    #[test]
    fn a_copy_has_the_commit_and_the_ignored_files_and_nothing_leads_back() {
        let place = tempfile::tempdir().expect("a directory");
        let (original, copy) = (place.path().join("original"), place.path().join("copy"));
        let repository = new_project_with(&original, "shop", &[("GOAL.md", "Sell.\n")]).expect("made");
        fs::create_dir_all(original.join("target/deep")).expect("ours");
        fs::write(original.join("target/deep/plugin.wasm"), "wasm").expect("ours");
        std::os::unix::fs::symlink("plugin.wasm", original.join("target/deep/newest.wasm")).expect("ours");
        assert_eq!(copy_project(&original, &copy).expect("copied"), copy);
        let copied = UserRepository::open(&copy).expect("a repository");
        assert_eq!(copied.head().expect("a commit"), repository.head().expect("a commit"));
        assert_eq!(fs::read_to_string(copy.join("target/deep/newest.wasm")).expect("copied"), "wasm");
        assert!(copy.join("target/deep/newest.wasm").is_symlink());
        copied.check_clean().expect("nothing is changed");
        assert!(git2::Repository::open(&copy).expect("ours").remotes().expect("read").is_empty());
        // Changes of the copy stay there.
        fs::write(copy.join("GOAL.md"), "Buy.\n").expect("ours");
        repository.check_clean().expect("the original is as it was");
    }

    #[test]
    fn uncommitted_work_is_refused_with_what_to_do() {
        let place = tempfile::tempdir().expect("a directory");
        let original = place.path().join("original");
        new_project_with(&original, "shop", &[]).expect("made");
        fs::write(original.join("new.py"), "").expect("ours");
        let refused = copy_project(&original, &place.path().join("copy")).expect_err("a change").to_string();
        assert!(refused.contains("`new.py`; commit them"), "{refused}");
        let refused = copy_project(place.path(), &place.path().join("copy")).expect_err("no repository").to_string();
        assert!(refused.contains("is not in a git repository"), "{refused}");
    }
}
