//! Repositories of users: which of them can be worked on, where a run begins, and new projects.

use super::check_error;
use crate::repo::{Repo, git, order, write};
use expect_test::expect;
use longhaul_worktree::{Branch, Tree, TreeCaps, TreeError, UserRepository, new_project, new_project_with, no_hook};

#[test]
fn a_branch_that_somebody_moved_is_left_where_it_is() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "two");
    repo.git(&["commit", "-q", "--allow-empty", "-m", "other"]);
    repo.git(&["branch", "longhaul/demo"]);
    check_error(
        &repo,
        tree.commit(&project, &order(&branch, &base, "e1"), &no_hook),
        expect![
            "branch `longhaul/demo` is at ID, but the work is based on ID; move it back: `git branch -f longhaul/demo ID`, or start a new run"
        ],
    );
    // Another process moves it between the check and the move.
    repo.git(&["branch", "-D", "longhaul/demo"]);
    let racing = |point: &str| {
        if point == "git.before-ref-move" {
            repo.git(&["branch", "longhaul/demo", "main"]);
        }
    };
    let before = repo.git(&["rev-parse", "main"]);
    assert!(matches!(tree.commit(&project, &order(&branch, &base, "e1"), &racing), Err(TreeError::BranchMoved { .. })));
    assert_eq!(repo.git(&["rev-parse", "longhaul/demo"]), before);
}

#[test]
fn a_run_begins_at_head_or_goes_on_from_its_branch() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, branch) = (repo.project(), Repo::branch());
    let head = project.head().unwrap();
    assert_eq!(project.start(&branch).unwrap().base, head);
    repo.git(&["branch", "longhaul/demo"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    // HEAD holds all of the branch.
    assert_eq!(project.start(&branch).unwrap().base, project.head().unwrap());
    let tree = repo.checkout();
    write(tree.dir(), "a.txt", "two");
    let base = project.head().unwrap();
    let done = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    let start = project.start(&branch).unwrap();
    assert_eq!((start.base, start.notes.len()), (done.id.clone(), 0));
    repo.git(&["commit", "-q", "--allow-empty", "-m", "mine too"]);
    let start = project.start(&branch).unwrap();
    assert_eq!(start.base, done.id);
    expect![
        "branch `longhaul/demo` goes on from its tip and lacks commits of HEAD; to have them, merge HEAD into it first"
    ]
    .assert_eq(&start.notes[0]);
}

#[test]
fn a_project_that_cannot_be_worked_on_says_what_to_do() {
    let repo = Repo::empty();
    let branch = Repo::branch();
    check_error(
        &repo,
        UserRepository::open(repo.dir.path()),
        expect!["`DIR` is not in a git repository; run `longhaul init` in it, or `git init` and a first commit"],
    );
    check_error(
        &repo,
        UserRepository::open(&repo.dir.path().join("absent")),
        expect!["`DIR/absent` is not in a git repository; run `longhaul init` in it, or `git init` and a first commit"],
    );
    check_error(
        &repo,
        UserRepository::open(&repo.root()),
        expect![[r#"`DIR/repo/` has no commit yet; make one: `git add -A && git commit -m "start"`"#]],
    );
    git(repo.dir.path(), &["init", "-q", "--bare", "bare.git"]);
    check_error(
        &repo,
        UserRepository::open(&repo.dir.path().join("bare.git")),
        expect!["`DIR/bare.git/` is a bare repository; clone it and run in the clone: `git clone DIR/bare.git/`"],
    );
    for at in 0..7 {
        repo.write(&format!("f{at}"), "x");
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "start"]);
    let project = UserRepository::open(&repo.root()).unwrap();
    project.check_clean().unwrap();
    repo.write("f0", "changed");
    repo.write("g/untracked", "x");
    check_error(
        &repo,
        project.check_clean(),
        expect!["`DIR/repo/` has changes that are not committed: `f0`, `g/`; commit them, or `git stash -u`"],
    );
    for at in 0..7 {
        repo.write(&format!("f{at}"), "changed");
    }
    check_error(
        &repo,
        project.check_clean(),
        expect![
            "`DIR/repo/` has changes that are not committed: `f0`, `f1`, `f2`, `f3`, `f4` and 3 more; commit them, or `git stash -u`"
        ],
    );
    repo.git(&["stash", "-uq"]);
    repo.git(&["switch", "-qc", "longhaul/demo"]);
    check_error(
        &repo,
        project.start(&branch),
        expect!["branch `longhaul/demo` is checked out in `DIR/repo/`; switch to another one there: `git switch -`"],
    );
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["worktree", "add", "-q", "../linked", "longhaul/demo"]);
    check_error(
        &repo,
        project.start(&branch),
        expect!["branch `longhaul/demo` is checked out in `DIR/linked/`; switch to another one there: `git switch -`"],
    );
    repo.git(&["worktree", "remove", "../linked"]);
    repo.git(&["branch", "-m", "longhaul/demo", "longhaul"]);
    check_error(
        &repo,
        project.start(&branch),
        expect![
            "branch `longhaul` leaves no room for `longhaul/demo`; rename it: `git branch -m longhaul longhaul-old`"
        ],
    );
    repo.git(&["branch", "-m", "longhaul", "longhaul/demo/x"]);
    check_error(
        &repo,
        project.start(&branch),
        expect![
            "branch `longhaul/demo/x` leaves no room for `longhaul/demo`; rename it: `git branch -m longhaul/demo/x longhaul/demo/x-old`"
        ],
    );
    for wrong in ["", "a b", "a..b", "x.lock", "../main", "a/b"] {
        assert!(matches!(Branch::new(wrong), Err(TreeError::BranchName { .. })), "{wrong}");
    }
    check_error(
        &repo,
        Branch::new("a b"),
        expect!["`a b` cannot name a branch; use letters, digits, `-`, `_` and `.`, at most 200 of them"],
    );
    check_error(
        &repo,
        Tree::checkout(&project, &repo.tree_dir(), &"0".repeat(40), &TreeCaps::default(), &no_hook),
        expect!["commit `ID` is not in `DIR/repo/.git/`; fetch it, or start a new run"],
    );
}

#[test]
fn a_subdirectory_and_a_linked_worktree_lead_to_the_repository() {
    let repo = Repo::with(&[("sub/a.txt", "one")]);
    assert_eq!(
        UserRepository::open(&repo.root().join("sub")).unwrap().root().canonicalize().unwrap(),
        repo.root().canonicalize().unwrap()
    );
    repo.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let (project, tree, branch) =
        (UserRepository::open(&repo.dir.path().join("linked")).unwrap(), repo.checkout(), Repo::branch());
    write(tree.dir(), "sub/a.txt", "two");
    let base = project.head().unwrap();
    tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(repo.git(&["rev-list", "--count", "longhaul/demo"]), "2\n");
}

/// Not the directory above that of git, whose files were once taken for the user's.
#[test]
fn a_repository_whose_git_directory_lies_elsewhere_has_its_own_files() {
    let repo = Repo::with(&[("a.txt", "one")]);
    write(repo.dir.path(), "beside.txt", "no file of the repository");
    repo.git(&["init", "-q", "--separate-git-dir", repo.dir.path().join("away.git").to_str().unwrap()]);
    assert!(repo.root().join(".git").is_file());
    let project = UserRepository::open(&repo.root()).unwrap();
    assert_eq!(project.root().canonicalize().unwrap(), repo.root().canonicalize().unwrap());
    project.check_clean().unwrap();
    repo.write("new.txt", "two");
    let dirty = project.check_clean().unwrap_err().to_string();
    assert!(dirty.contains("`new.txt`") && !dirty.contains("beside"), "{dirty}");
}

#[test]
fn a_new_project_has_a_commit_and_is_clean() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let dir = repo.dir.path().join("deep/new");
    let project = new_project(&dir, "demo\nx").unwrap();
    project.check_clean().unwrap();
    assert_eq!(git(&dir, &["ls-tree", "--name-only", "main"]), ".gitignore\nREADME.md\n");
    assert_eq!(git(&dir, &["status", "--porcelain"]), "");
    check_error(&repo, new_project(&dir, "demo"), expect!["`DIR/deep/new` is not empty; choose another directory"]);
    check_error(
        &repo,
        new_project(&repo.root().join("in"), "demo"),
        expect!["`DIR/repo/in` is inside another git repository; choose another directory"],
    );
    assert!(!repo.root().join("in").exists(), "nothing is left of it");
}

/// A full disk used to leave a directory that the next try refused, since it was not empty.
#[test]
fn a_new_project_that_cannot_be_written_leaves_a_directory_only_if_it_was_there() {
    let place = tempfile::tempdir().unwrap();
    let (new, there) = (place.path().join("new"), place.path().join("there"));
    std::fs::create_dir(&there).unwrap();
    for dir in [&new, &there] {
        let failed = new_project_with(dir, "demo", &[("no/such/directory", "text")]);
        assert!(matches!(failed, Err(TreeError::Io { .. })));
    }
    assert!(!new.exists() && there.exists());
    new_project(&new, "demo").unwrap();
}
