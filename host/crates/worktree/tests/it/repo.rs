//! A real repository in a temporary directory, inspected with the `git` command.

#![allow(dead_code, reason = "the benchmark uses a part of it")]

use longhaul_worktree::{Branch, CommitOrder, Tree, TreeCaps, UserRepository, no_hook};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository, and a directory for trees beside it.
pub struct Repo {
    pub dir: tempfile::TempDir,
}

impl Repo {
    /// With one commit that holds these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self::empty();
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        repo
    }

    pub fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repo = Self { dir };
        std::fs::create_dir(repo.root()).unwrap();
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn tree_dir(&self) -> PathBuf {
        self.dir.path().join("trees/r-1")
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.root(), path, text);
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args)
    }

    pub fn project(&self) -> UserRepository {
        UserRepository::open(&self.root()).unwrap()
    }

    pub fn checkout(&self) -> Tree {
        self.checkout_within(&TreeCaps::default())
    }

    pub fn checkout_within(&self, caps: &TreeCaps) -> Tree {
        let project = self.project();
        Tree::checkout(&project, &self.tree_dir(), &project.head().unwrap(), caps, &no_hook).unwrap().tree
    }

    pub fn branch() -> Branch {
        Branch::new("demo").unwrap()
    }

    /// The user's view of their own files.
    pub fn users_view(&self) -> String {
        let files = git(&self.root(), &["ls-files", "-s"]);
        format!("{}{}{files}", self.git(&["status", "--porcelain"]), self.git(&["symbolic-ref", "HEAD"]))
    }
}

/// The order that most tests use.
pub fn order<'a>(branch: &'a Branch, parent: &'a str, effect_id: &'a str) -> CommitOrder<'a> {
    CommitOrder {
        branch,
        parent,
        message: "Add a feature\n\nBy an agent.",
        effect_id,
        time_ms: 1_700_000_000_999,
        expected: None,
    }
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args);
    for (key, value) in [("NAME", "User"), ("EMAIL", "user@localhost")] {
        command.env(format!("GIT_AUTHOR_{key}"), value).env(format!("GIT_COMMITTER_{key}"), value);
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn read(dir: &Path, path: &str) -> String {
    std::fs::read_to_string(dir.join(path)).unwrap()
}
