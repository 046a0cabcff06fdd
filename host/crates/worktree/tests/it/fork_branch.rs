//! Branches of forks: made once, refused where somebody has the name, and taken over from a fork that was killed.

use crate::repo::Repo;
use longhaul_worktree::{Branch, TreeError};

/// A repository with two commits, and their names.
fn two_commits() -> (Repo, [String; 2]) {
    let repo = Repo::with(&[("a.txt", "one")]);
    let first = repo.project().head().unwrap();
    repo.write("a.txt", "two");
    repo.git(&["commit", "-q", "-am", "second"]);
    let second = repo.project().head().unwrap();
    (repo, [first, second])
}

fn refs(repo: &Repo) -> Vec<String> {
    let listed =
        repo.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/longhaul", "refs/longhaul"]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_fork_gets_its_branch_once() {
    let (repo, [first, second]) = two_commits();
    let (project, branch) = (repo.project(), Branch::new("demo-fork-1").unwrap());
    project.check_fork_branch(&branch).unwrap();
    project.make_fork_branch(&branch, &first).unwrap();
    project.keep_fork_branch(&branch).unwrap();
    assert_eq!(refs(&repo), [format!("refs/heads/longhaul/demo-fork-1 {first}")]);
    for refused in [project.check_fork_branch(&branch), project.make_fork_branch(&branch, &second)] {
        assert!(matches!(refused, Err(TreeError::BranchExists { .. })), "{refused:?}");
    }
    assert_eq!(refs(&repo), [format!("refs/heads/longhaul/demo-fork-1 {first}")]);
    let gone = "0".repeat(40);
    let refused = project.make_fork_branch(&Branch::new("demo-fork-2").unwrap(), &gone);
    assert!(matches!(refused, Err(TreeError::NoCommit { .. })), "{refused:?}");
}

#[test]
fn a_branch_that_a_killed_fork_left_is_the_next_forks_unless_somebody_moved_it() {
    let (repo, [first, second]) = two_commits();
    let (project, branch) = (repo.project(), Branch::new("demo-fork-1").unwrap());
    project.make_fork_branch(&branch, &first).unwrap();
    // Killed here: nothing keeps the branch.
    project.make_fork_branch(&branch, &second).unwrap();
    project.keep_fork_branch(&branch).unwrap();
    assert_eq!(refs(&repo), [format!("refs/heads/longhaul/demo-fork-1 {second}")]);
    let other = Branch::new("demo-fork-2").unwrap();
    project.make_fork_branch(&other, &first).unwrap();
    repo.git(&["branch", "-f", "longhaul/demo-fork-2", &second]);
    let refused = project.make_fork_branch(&other, &first);
    assert!(matches!(refused, Err(TreeError::BranchExists { .. })), "{refused:?}");
}

#[test]
fn a_fork_that_cannot_be_stored_leaves_no_branch() {
    let (repo, [first, second]) = two_commits();
    let (project, branch) = (repo.project(), Branch::new("demo-fork-1").unwrap());
    project.make_fork_branch(&branch, &first).unwrap();
    project.drop_fork_branch(&branch).unwrap();
    assert_eq!(refs(&repo), Vec::<String>::new());
    // A commit on it is somebody's.
    project.make_fork_branch(&branch, &first).unwrap();
    repo.git(&["branch", "-f", "longhaul/demo-fork-1", &second]);
    project.drop_fork_branch(&branch).unwrap();
    assert_eq!(refs(&repo), [format!("refs/heads/longhaul/demo-fork-1 {second}")]);
    project.drop_fork_branch(&branch).unwrap();
}

#[test]
fn the_newest_of_some_commits_comes_after_all_others() {
    let (repo, [first, second]) = two_commits();
    let project = repo.project();
    let newest = |base: &str, commits: &[&str]| project.newest_of(base, commits.iter().copied()).unwrap();
    assert_eq!(newest(&first, &[]), first);
    assert_eq!(newest(&first, &[&second, &first]), second);
    assert_eq!(newest(&second, &[&first]), second);
    assert!(matches!(project.newest_of(&first, ["none"]), Err(TreeError::NoCommit { .. })));
}
