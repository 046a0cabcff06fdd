//! Patches of trees and of commits, and their bounds.

use crate::repo::{Repo, write};

/// Takes the content of a committed file out of the repository.
fn lose(repo: &Repo, path: &str) {
    let id = repo.git(&["rev-parse", &format!("HEAD:{path}")]);
    let (folder, file) = id.trim().split_at(2);
    std::fs::remove_file(repo.root().join(".git/objects").join(folder).join(file)).unwrap();
}

#[test]
fn behind_what_no_longer_fits_a_patch_only_counts() {
    let repo = Repo::with(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let (project, tree, head) = (repo.project(), repo.checkout(), repo.project().head().unwrap());
    write(tree.dir(), "a.txt", "1\n");
    write(tree.dir(), "b.txt", "2\n");
    let all = tree.patch(&project, &head, "", 10_000).unwrap();
    assert!(all.text.contains("+1") && all.text.contains("+2") && all.files_left_out == 0, "{all:?}");
    // Reading it fails.
    lose(&repo, "b.txt");
    assert!(tree.patch(&project, &head, "", 10_000).is_err());
    let cut = tree.patch(&project, &head, "", 10).unwrap();
    assert_eq!((cut.text.as_str(), cut.files_left_out), ("", 2));
}

#[test]
fn behind_what_no_longer_fits_a_shown_commit_only_counts() {
    let repo = Repo::with(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let (project, head) = (repo.project(), repo.project().head().unwrap());
    let branch = Repo::branch();
    project.start(&branch).unwrap();
    let all = project.show(&branch, &head, &head, 10_000).unwrap().patch;
    assert!(all.text.contains("+one") && all.text.contains("+two") && all.files_left_out == 0, "{all:?}");
    lose(&repo, "b.txt");
    assert!(project.show(&branch, &head, &head, 10_000).is_err());
    let cut = project.show(&branch, &head, &head, 10).unwrap().patch;
    assert_eq!((cut.text.as_str(), cut.files_left_out), ("", 2));
}
