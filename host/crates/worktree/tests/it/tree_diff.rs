//! The files of one commit beside those of another, of branches that real git made.

use crate::repo::Repo;
use longhaul_worktree::{COMMIT_FILES_MAX, CommitChange, TreeError};
use std::fs;

/// Commits everything that is there on a branch of its own, which begins at `main`; returns the commit.
fn branch(repo: &Repo, name: &str, change: impl Fn()) -> String {
    repo.git(&["checkout", "-q", "-b", name, "main"]);
    change();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", name]);
    repo.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn two_branches_differ_in_the_files_that_each_changed_and_not_in_those_that_both_changed_alike() {
    let repo = Repo::with(&[("same.txt", "one\n"), ("a.txt", "one\ntwo\n"), ("gone.txt", "x\n")]);
    let root = repo.root();
    let one = branch(&repo, "longhaul/one", || {
        fs::write(root.join("same.txt"), "both\n").unwrap();
        fs::write(root.join("a.txt"), "one\n2\n").unwrap();
        fs::write(root.join("only.txt"), "one's\n").unwrap();
    });
    let two = branch(&repo, "longhaul/two", || {
        fs::write(root.join("same.txt"), "both\n").unwrap();
        fs::write(root.join("a.txt"), "one\nzwei\n").unwrap();
        fs::remove_file(root.join("gone.txt")).unwrap();
    });
    let diff = repo.project().tree_diff(&one, &two).unwrap();
    assert_eq!((diff.from.as_str(), diff.to.as_str()), (one.as_str(), two.as_str()));
    let told: Vec<_> = diff.files.iter().map(|file| (file.path.as_str(), file.change)).collect();
    let expected =
        [("a.txt", CommitChange::Modified), ("gone.txt", CommitChange::Deleted), ("only.txt", CommitChange::Deleted)];
    assert_eq!(told, expected);
    assert!(diff.files[0].patch.contains("\n-2\n+zwei\n"), "{}", diff.files[0].patch);
    assert_eq!((diff.counts.files, diff.counts.modified, diff.counts.deleted, diff.files_left_out), (3, 1, 2, 0));
    let back = repo.project().tree_diff(&two, &one).unwrap();
    assert_eq!((back.counts.added, back.counts.deleted), (2, 0));
}

#[test]
fn a_commit_differs_from_itself_in_nothing() {
    let repo = Repo::with(&[("a.txt", "one\n")]);
    let head = repo.project().head().unwrap();
    let diff = repo.project().tree_diff(&head, &head).unwrap();
    assert_eq!((diff.files, diff.counts.files), (Vec::new(), 0));
}

#[test]
fn files_beyond_the_cap_are_counted_and_long_texts_are_cut() {
    let repo = Repo::with(&[]);
    let from = repo.project().head().unwrap();
    let to = branch(&repo, "longhaul/many", || {
        for number in 0..=COMMIT_FILES_MAX {
            fs::write(repo.root().join(format!("{number:05}.txt")), format!("{number}\n")).unwrap();
        }
        fs::write(repo.root().join("00000.txt"), "line\n".repeat(100_000)).unwrap();
    });
    let diff = repo.project().tree_diff(&from, &to).unwrap();
    assert_eq!((diff.files.len(), diff.files_left_out, diff.counts.files), (COMMIT_FILES_MAX, 1, COMMIT_FILES_MAX + 1));
    assert!(diff.files[0].is_cut && diff.files[0].patch.ends_with('\n'));
    assert_eq!(diff.files[0].added_lines, 100_000);
}

#[test]
fn what_is_no_commit_here_is_refused_by_name() {
    let repo = Repo::with(&[("a.txt", "one\n")]);
    let head = repo.project().head().unwrap();
    for word in ["main", "", "--all", &"0".repeat(40), &head[..10], &format!("{head}0")] {
        for (from, to) in [(word, head.as_str()), (head.as_str(), word)] {
            let error = repo.project().tree_diff(from, to).unwrap_err();
            assert!(matches!(&error, TreeError::NoCommit { commit, .. } if commit == word), "{word:?}: {error}");
        }
    }
}
