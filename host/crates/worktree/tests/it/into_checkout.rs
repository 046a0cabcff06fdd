//! A run's commits in the user's branch, and their changes, as the user's own `git` sees them.

use crate::repo::{self, Repo};
use expect_test::{Expect, expect};
use longhaul_worktree::{DiffForm, MergeKind, MergedIn, TreeError, no_hook};

/// A repository with a commit on `longhaul/demo`, made of these files; the user is on `main` and has a name.
fn with_work(files: &[(&str, &str)]) -> Repo {
    let repo = Repo::with(&[("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), (".gitignore", "*.log\n")]);
    repo.git(&["config", "user.name", "Ursula"]);
    repo.git(&["config", "user.email", "ursula@example.com"]);
    repo.git(&["switch", "-qc", "longhaul/demo"]);
    commit(&repo, files, "work");
    repo.git(&["switch", "-q", "main"]);
    repo
}

fn commit(repo: &Repo, files: &[(&str, &str)], message: &str) {
    files.iter().for_each(|(path, text)| repo.write(path, text));
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-qm", message]);
}

fn merge(repo: &Repo, dry_run: bool) -> Result<MergedIn, TreeError> {
    repo.project().merge_into_checkout(&Repo::branch(), dry_run, &no_hook)
}

fn files(repo: &Repo) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(repo.root().join(path)).unwrap_or_default();
    ["a.txt", "b.txt", "c.txt", "new.txt", "out.log"].map(read).to_vec()
}

/// It is refused, and nothing of the user's changed.
#[track_caller]
fn refused(repo: &Repo, expected: Expect) {
    let before = (repo.git(&["rev-parse", "HEAD"]), repo.users_view(), files(repo));
    for dry_run in [true, false] {
        let error = merge(repo, dry_run).expect_err("it is refused").to_string();
        let root = repo.root().canonicalize().expect("there").display().to_string();
        expected.assert_eq(&error.replace(&format!("{root}/"), "DIR").replace(&root, "DIR"));
        assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.users_view(), files(repo)), before);
    }
}

#[test]
fn a_branch_that_is_ahead_is_moved_along_without_a_commit() {
    let repo = with_work(&[("a.txt", "one\nTWO\n"), ("deep/new.txt", "new\n"), ("run.sh", "#!/bin/sh\n")]);
    let before = repo.git(&["rev-parse", "HEAD"]);
    let would = merge(&repo, true).expect("possible");
    assert_eq!((would.kind, would.commits, repo.git(&["rev-parse", "HEAD"])), (MergeKind::FastForward, 1, before));
    let merged = merge(&repo, false).expect("done");
    assert_eq!(merged, would);
    assert_eq!(merged.files, ["a.txt", "deep/new.txt", "run.sh"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), repo.git(&["rev-parse", "longhaul/demo"]));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo::read(&repo.root(), "deep/new.txt"), "new\n");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert!(repo.git(&["reflog", "-1", "--format=%gs", "main"]).starts_with("merge longhaul/demo: Fast-forward"));
    assert_eq!(merge(&repo, false).expect("nothing to do").kind, MergeKind::AlreadyThere);
}

#[test]
fn branches_that_went_apart_are_merged_by_the_user() {
    let repo = with_work(&[("a.txt", "ONE\ntwo\n"), ("new.txt", "new\n")]);
    std::fs::write(repo.root().join(".git/hooks/post-merge"), "#!/bin/sh\ntouch hooked\n").expect("ours");
    commit(&repo, &[("b.txt", "of the user\n")], "mine");
    assert_eq!(merge(&repo, true).expect("possible").to, None);
    let merged = merge(&repo, false).expect("done");
    assert_eq!((merged.kind, merged.commits, merged.into.as_str()), (MergeKind::MergeCommit, 1, "main"));
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s|%an|%ae|%cn"]).trim(),
        "Merge branch 'longhaul/demo'|Ursula|ursula@example.com|Ursula"
    );
    let parents = repo.git(&["log", "-1", "--format=%P"]);
    assert!(parents.contains(repo.git(&["rev-parse", "longhaul/demo"]).trim()) && parents.contains(&merged.from));
    assert_eq!(
        (repo::read(&repo.root(), "a.txt"), repo::read(&repo.root(), "b.txt")),
        ("ONE\ntwo\n".into(), "of the user\n".into())
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_stands_in_the_way_is_named_and_nothing_is_half_merged() {
    let repo = with_work(&[("a.txt", "ONE\ntwo\n")]);
    repo.write("a.txt", "not committed\n");
    refused(&repo, expect!["`DIR` has changes that are not committed: `a.txt`; commit them, or `git stash -u`"]);

    let repo = with_work(&[("a.txt", "ONE\ntwo\n"), ("b.txt", "other\n")]);
    commit(&repo, &[("a.txt", "EINS\ntwo\n"), ("c.txt", "c\n")], "mine");
    refused(
        &repo,
        expect![
            "`longhaul/demo` and your branch changed the same lines of `a.txt`; nothing was changed; merge by hand: `git merge longhaul/demo`, resolve these files, `git commit`"
        ],
    );

    let repo = with_work(&[("a.txt", "ONE\ntwo\n")]);
    repo.git(&["switch", "-q", "--detach"]);
    let error = merge(&repo, false).expect_err("on no branch").to_string();
    assert!(error.starts_with("HEAD of ") && error.ends_with("switch to one: `git switch main`"), "{error}");

    let repo = Repo::with(&[("a.txt", "one\n")]);
    refused(
        &repo,
        expect!["`DIR` has no branch `longhaul/demo`; a run makes it with its first commit, see `longhaul log`"],
    );

    // Ignored files are in no commit, and would be lost.
    let repo = with_work(&[("out.log", "of the agent\n"), ("a.txt", "ONE\ntwo\n")]);
    repo.write("out.log", "of the user\n");
    refused(
        &repo,
        expect!["the merge would write over `out.log` in `DIR`, which no commit holds; move them away first"],
    );

    let repo = with_work(&[("a.txt", "ONE\ntwo\n")]);
    std::fs::write(repo.root().join(".git/MERGE_HEAD"), repo.git(&["rev-parse", "HEAD"])).expect("ours");
    refused(&repo, expect!["`DIR` is in the middle of a merge; finish it, or give it up: `git merge --abort`"]);
}

#[test]
fn a_user_whom_git_does_not_know_is_asked_for_a_name_before_anything_is_written() {
    let repo = with_work(&[("a.txt", "ONE\ntwo\n")]);
    commit(&repo, &[("c.txt", "c\n")], "mine");
    repo.git(&["config", "user.name", ""]);
    let before = (repo.git(&["rev-parse", "HEAD"]), repo.users_view());
    let error = merge(&repo, false).expect_err("nobody").to_string();
    assert!(error.contains("git config --global user.name NAME"), "{error}");
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.users_view()), before);
}

#[test]
fn a_branch_that_somebody_moves_meanwhile_gets_its_files_back() {
    let repo = with_work(&[("a.txt", "ONE\ntwo\n"), ("new.txt", "new\n")]);
    let root = repo.root();
    let moves = |point: &'static str| {
        if point == "merge.before-ref-move" {
            repo::git(&root, &["update-ref", "refs/heads/main", "refs/heads/longhaul/demo"]);
        }
    };
    let before = repo.git(&["rev-parse", "HEAD"]);
    let error = repo.project().merge_into_checkout(&Repo::branch(), false, &moves).expect_err("it moved");
    assert!(error.to_string().starts_with("git could not move your branch"), "{error}");
    repo.git(&["update-ref", "refs/heads/main", before.trim()]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo::read(&root, "a.txt"), "one\ntwo\n");
    assert!(!root.join("new.txt").exists());
}

#[test]
fn a_difference_is_one_that_git_applies() {
    let repo = with_work(&[("a.txt", "one\nTWO\n"), ("bytes", "a\0b"), ("deep/new.txt", "new")]);
    let (from, to) = (repo.git(&["rev-parse", "main"]), repo.git(&["rev-parse", "longhaul/demo"]));
    let (from, to) = (from.trim(), to.trim());
    let patch = repo.project().diff(from, to, DiffForm::Patch).expect("both are there");
    let file = repo.dir.path().join("patch");
    std::fs::write(&file, &patch).expect("ours");
    repo.git(&["apply", "--index", file.to_str().expect("text")]);
    assert_eq!(repo.git(&["write-tree"]).trim(), repo.git(&["rev-parse", "longhaul/demo^{tree}"]).trim());
    let stat = String::from_utf8(repo.project().diff(from, to, DiffForm::Stat).expect("both are there")).expect("text");
    assert!(stat.contains(" a.txt ") && stat.contains("3 files changed, 2 insertions(+), 1 deletion(-)"), "{stat}");
    assert_eq!(repo.project().parent_of(to).expect("there").as_deref(), Some(from));
    let gone = repo.project().diff(from, &"0".repeat(40), DiffForm::Stat).expect_err("not there").to_string();
    assert!(gone.contains("is not in"), "{gone}");
}
