//! The state after `kill -9` in the middle of a checkout, a commit or a discard, and the result of the same call after
//! it.
//!
//! The test runs itself as a child that kills itself at the point that `LONGHAUL_TEST_KILL_AT` names.

use crate::repo::{Repo, order, read, write};
use longhaul_worktree::{Tree, TreeCaps, TreeError, UserRepository, no_hook};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIR: &str = "LONGHAUL_TEST_DIR";
const KILL_AT: &str = "LONGHAUL_TEST_KILL_AT";

/// Not a test but the child's main function: it does nothing unless a parent gave it a directory.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let point = std::env::var(KILL_AT).unwrap();
    let kill = move |at: &'static str| {
        if at == point {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    };
    work(Path::new(&dir), &kill);
}

/// A whole life of a tree. Returns the commit's id.
fn work(dir: &Path, hook: &dyn Fn(&'static str)) -> String {
    let project = UserRepository::open(&dir.join("repo")).unwrap();
    let branch = Repo::branch();
    let base = project.head().unwrap();
    let tree = Tree::checkout(&project, &dir.join("trees/r-1"), &base, &TreeCaps::default(), hook).unwrap().tree;
    if project.find_effect(&branch, "e1").unwrap().is_none() {
        write(tree.dir(), "a.txt", "two");
        write(tree.dir(), "new/b.txt", "new");
    }
    let done = tree.commit(&project, &order(&branch, &base, "e1"), hook).unwrap().unwrap();
    write(tree.dir(), "a.txt", "a failed try");
    write(tree.dir(), "rubbish/x", "a failed try");
    tree.discard(&project, &done.id, hook).unwrap();
    done.id
}

fn killed_at(dir: &Path, point: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--nocapture"])
        .env(DIR, dir)
        .env(KILL_AT, point)
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9), "{point} was not reached");
}

fn check_whole(repo: &Repo, before: &str, point: &str) {
    let tree = repo.tree_dir();
    assert_eq!(repo.git(&["rev-list", "--count", "longhaul/demo"]), "2\n", "{point}");
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "", "{point}");
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", "longhaul/demo"]), "a.txt\nd/c.txt\nnew/b.txt\n", "{point}");
    assert_eq!(repo.users_view(), before, "{point}");
    assert_eq!(read(&tree, "a.txt"), "two", "{point}");
    assert!(!tree.join("rubbish").exists(), "{point}");
    let mut beside: Vec<PathBuf> =
        std::fs::read_dir(tree.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    beside.sort();
    assert_eq!(beside, [tree.clone(), tree.with_extension("at")], "{point}");
}

fn fresh() -> Repo {
    let repo = Repo::with(&[("a.txt", "one"), ("d/c.txt", "three")]);
    // The date is part of the id.
    repo.git(&["commit", "-q", "--amend", "--date=2024-01-01T00:00:00Z", "-m", "start"]);
    repo
}

#[test]
fn killed_anywhere_and_repeated_it_ends_in_one_commit_with_the_same_id() {
    for point in [
        "tree.before-checkout-rename",
        "tree.after-checkout-rename",
        "git.before-commit-object",
        "git.after-commit-object",
        "git.before-ref-move",
        "git.after-ref-move",
        "tree.before-discard",
        "tree.after-discard",
    ] {
        let repo = fresh();
        let before = repo.users_view();
        killed_at(repo.dir.path(), point);
        killed_at_again(&repo, point);
        let id = work(repo.dir.path(), &no_hook);
        check_whole(&repo, &before, point);
        // From nothing, in the same repository, the id is the same.
        repo.git(&["update-ref", "-d", "refs/heads/longhaul/demo"]);
        std::fs::remove_dir_all(repo.tree_dir()).unwrap();
        assert_eq!(work(repo.dir.path(), &no_hook), id, "{point}");
        check_whole(&repo, &before, point);
    }
}

/// A second kill at the same place. Finished parts are not reached again.
fn killed_at_again(repo: &Repo, point: &str) {
    if matches!(
        point,
        "git.before-commit-object" | "git.after-commit-object" | "git.before-ref-move" | "tree.before-discard"
    ) {
        killed_at(repo.dir.path(), point);
    }
}

#[test]
fn killed_at_any_moment_the_call_can_be_repeated() {
    let repo = fresh();
    let before = repo.users_view();
    let mut kills = 0;
    for at in 0..20_u32 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::child", "--exact"])
            .env(DIR, repo.dir.path())
            .env(KILL_AT, "nowhere")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The time decides where it is killed; nothing is awaited.
        std::thread::sleep(std::time::Duration::from_millis(u64::from(1 + at)));
        let _ = child.kill();
        kills += u32::from(child.wait().unwrap().signal() == Some(9));
        work(repo.dir.path(), &no_hook);
        check_whole(&repo, &before, &format!("round {at}"));
        repo.git(&["update-ref", "-d", "refs/heads/longhaul/demo"]);
        std::fs::remove_dir_all(repo.tree_dir()).unwrap();
    }
    assert!(kills > 3, "only {kills} of 20 were in time");
}

/// A kill inside libgit2 leaves a lock: empty, or with the new id.
#[test]
fn a_lock_that_we_left_is_removed_and_one_of_another_git_is_not() {
    let lock_of = |repo: &Repo| repo.root().join(".git/refs/heads/longhaul/demo.lock");
    for is_empty in [true, false] {
        let repo = fresh();
        let before = repo.users_view();
        killed_at(repo.dir.path(), "git.before-ref-move");
        let marker = read(&repo.dir.path().join("trees"), "r-1.ref-move");
        let id = marker.lines().nth(1).unwrap();
        write(lock_of(&repo).parent().unwrap(), "demo.lock", &if is_empty { String::new() } else { format!("{id}\n") });
        assert_eq!(work(repo.dir.path(), &no_hook), id);
        check_whole(&repo, &before, "lock");
    }
    let repo = fresh();
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "two");
    write(lock_of(&repo).parent().unwrap(), "demo.lock", "");
    let error = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap_err();
    assert!(matches!(error, TreeError::Locked { .. }) && error.is_retryable(), "{error}");
    assert!(lock_of(&repo).exists());
}
