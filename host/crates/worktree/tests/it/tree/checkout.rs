//! Trees as they are made, discarded and shown, and their caps.

use super::{check_error, listed};
use crate::repo::{Repo, read, write};
use expect_test::expect;
use longhaul_worktree::{Tree, TreeCaps, TreeError, no_hook};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn a_tree_has_the_files_of_the_commit_and_no_repository() {
    let repo = Repo::with(&[("a.txt", "one"), ("deep/er/b.txt", "two"), ("run.sh", "#!/bin/sh\n")]);
    std::fs::set_permissions(repo.root().join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("deep/er", repo.root().join("link")).unwrap();
    symlink("/etc/hostname", repo.root().join("out")).unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "more"]);
    let tree = repo.checkout();
    assert_eq!(read(tree.dir(), "deep/er/b.txt"), "two");
    assert_eq!(std::fs::read_link(tree.dir().join("link")).unwrap(), Path::new("deep/er"));
    assert_eq!(std::fs::read_link(tree.dir().join("out")).unwrap(), Path::new("/etc/hostname"));
    assert_ne!(std::fs::metadata(tree.dir().join("run.sh")).unwrap().permissions().mode() & 0o100, 0);
    assert!(!tree.dir().join(".git").exists());
    assert!(listed(&tree, &repo.project(), &repo.project().head().unwrap()).is_empty());
}

#[test]
fn a_tree_that_is_there_is_taken_as_it_is() {
    let repo = Repo::with(&[("a.txt", "one")]);
    write(repo.checkout().dir(), "a.txt", "agent");
    let project = repo.project();
    let again =
        Tree::checkout(&project, &repo.tree_dir(), &project.head().unwrap(), &TreeCaps::default(), &no_hook).unwrap();
    assert!(!again.fresh);
    assert_eq!(read(again.tree.dir(), "a.txt"), "agent");
}

#[test]
fn a_discarded_tree_is_the_commit_again_but_for_ignored_files() {
    let repo = Repo::with(&[("a.txt", "one"), ("d/b.txt", "two"), (".gitignore", "cache/\n")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "agent");
    write(tree.dir(), "new/deep/x", "agent");
    write(tree.dir(), "cache/x", "kept");
    write(tree.dir(), "d/.longhaul-tmp-1", "half written when it was killed");
    write(tree.dir(), "half/.longhaul-tmp-2/x", "half removed");
    std::fs::remove_file(tree.dir().join("d/b.txt")).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&tree.best_effort(&project, &base, 1_000).unwrap()).unwrap();
    assert_eq!(kept["files"]["a.txt"]["text"], "agent");
    assert_eq!(kept["files"]["d/b.txt"]["deleted"], true);
    tree.discard(&project, &base, &no_hook).unwrap();
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(listed(&tree, &project, &base).is_empty());
    assert!(!tree.dir().join("new").exists());
    assert!(!tree.dir().join("d/.longhaul-tmp-1").exists() && !tree.dir().join("half").exists());
    assert_eq!(read(tree.dir(), "cache/x"), "kept");
    assert_eq!(read(tree.dir(), "d/b.txt"), "two");
}

#[test]
fn evidence_is_bounded_and_says_what_it_does_not_show() {
    let repo = Repo::with(&[("gone", "x")]);
    let (project, tree) = (repo.project(), repo.checkout());
    std::fs::remove_file(tree.dir().join("gone")).unwrap();
    write(tree.dir(), "big.txt", &"ä".repeat(5_000));
    std::fs::write(tree.dir().join("bin"), [0, 159, 1]).unwrap();
    symlink("bin", tree.dir().join("link")).unwrap();
    let changes = tree.changes(&project, &project.head().unwrap()).unwrap();
    let evidence = tree.evidence(&changes, 400).unwrap();
    let shown: Vec<String> =
        evidence.iter().map(|(path, text)| format!("{path}: {}", text.trim_start_matches('ä'))).collect();
    expect![[r#"
        [
            "big.txt: \n[cut: the file has 10000 bytes]",
            "bin: [binary, 3 bytes]",
            "gone: [deleted]",
            "link: [symbolic link to bin]",
        ]
    "#]]
    .assert_debug_eq(&shown);
    assert!(evidence.iter().map(|(path, text)| path.len() + text.len()).sum::<usize>() <= 400);
    assert_eq!(tree.evidence(&changes, 50).unwrap().last().unwrap().1, "[3 more files, over the limit]");
}

#[test]
fn caps_are_typed_and_a_tree_over_one_can_still_be_discarded() {
    let repo = Repo::with(&[("a.txt", "one"), ("b.txt", "two")]);
    let project = repo.project();
    let base = project.head().unwrap();
    let checkout = |caps: &TreeCaps| Tree::checkout(&project, &repo.tree_dir(), &base, caps, &no_hook);
    let caps = TreeCaps { files_max: 1, ..TreeCaps::default() };
    check_error(
        &repo,
        checkout(&caps),
        expect!["limit `files_max` reached: 2 of 1; at `b.txt`; remove files, or list them in .gitignore"],
    );
    let caps = TreeCaps { bytes_max: 5, ..TreeCaps::default() };
    check_error(
        &repo,
        checkout(&caps),
        expect!["limit `bytes_max` reached: 6 of 5; at `b.txt`; remove files, or list them in .gitignore"],
    );
    let caps = TreeCaps { files_max: 3, file_bytes_max: 10, depth_max: 3, ..TreeCaps::default() };
    let tree = checkout(&caps).unwrap().tree;
    write(tree.dir(), "large", "0123456789a");
    let scan = tree.scan(&project, &base).unwrap();
    assert!(scan.changes.is_empty());
    let why =
        "has 11 bytes, and a commit takes files of at most 10; make it smaller, remove it, or list it in .gitignore";
    assert_eq!(scan.left_out[0].why, why);
    write(tree.dir(), "c", "");
    let error = tree.scan(&project, &base).unwrap_err();
    assert!(error.is_of_the_work() && !error.is_retryable());
    check_error(
        &repo,
        Err::<(), _>(error),
        expect!["limit `files_max` reached: 4 of 3; at `large`; remove files, or list them in .gitignore"],
    );
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(listed(&tree, &project, &base).is_empty());
    write(tree.dir(), "1/2/3/4", "");
    check_error(
        &repo,
        tree.scan(&project, &base),
        expect!["limit `depth_max` reached: 4 of 3; at `1/2/3`; remove files, or list them in .gitignore"],
    );
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(!tree.dir().join("1").exists());
}

#[test]
fn directories_deeper_than_the_stack_are_removed() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let mut dir = rustix::fs::open(tree.dir(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..5_000 {
        mkdirat(&dir, "d", Mode::from_raw_mode(0o755)).unwrap();
        dir = openat(&dir, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let base = project.head().unwrap();
    assert!(matches!(tree.scan(&project, &base), Err(TreeError::Limit { .. })));
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(!tree.dir().join("d").exists());
    // The tree, and the commit that it was last brought to.
    assert_eq!(std::fs::read_dir(tree.dir().parent().unwrap()).unwrap().count(), 2);
}
