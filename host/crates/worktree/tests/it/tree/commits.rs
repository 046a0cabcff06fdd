//! What of a tree is committed, once and under which message, and what no commit holds.

use super::{check_error, listed};
use crate::repo::{Repo, order, read, write};
use expect_test::expect;
use longhaul_worktree::{CheckpointOrder, Tree, TreeCaps, TreeError, no_hook};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[test]
fn exactly_what_differs_is_committed_and_the_user_notices_nothing() {
    let repo = Repo::with(&[
        ("a.txt", "one"),
        ("gone.txt", "x"),
        ("d/only.txt", "x"),
        ("same.txt", "s"),
        (".gitignore", "target/\n"),
    ]);
    let before = repo.users_view();
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.start(&branch).unwrap().base;
    write(tree.dir(), "a.txt", "two");
    write(tree.dir(), "new/b.txt", "new");
    write(tree.dir(), "target/out.o", "ignored");
    write(tree.dir(), "new/.longhaul-tmp-1", "half");
    write(tree.dir(), ".git/hooks/post-commit", "evil");
    std::fs::remove_file(tree.dir().join("gone.txt")).unwrap();
    std::fs::remove_dir_all(tree.dir().join("d")).unwrap();
    assert_eq!(listed(&tree, &project, &base), ["M a.txt", "D d/only.txt", "D gone.txt", "A new/b.txt"]);

    let done = tree.commit(&project, &order(&branch, &base, "r-1/f1/commit"), &no_hook).unwrap().unwrap();
    assert_eq!(done.files, ["a.txt", "d/only.txt", "gone.txt", "new/b.txt"]);
    assert_eq!(
        repo.git(&["ls-tree", "-r", "--name-only", "longhaul/demo"]),
        ".gitignore\na.txt\nnew/b.txt\nsame.txt\n"
    );
    expect![[r"
        Longhaul <longhaul@localhost> 1700000000 +0000
        Longhaul <longhaul@localhost> 1700000000 +0000
        Add a feature

        By an agent.

        Longhaul-Effect: r-1/f1/commit

    "]]
    .assert_eq(&repo.git(&["log", "-1", "--format=%an <%ae> %ad%n%cn <%ce> %cd%n%B", "--date=raw", "longhaul/demo"]));
    assert_eq!(
        repo.git(&["log", "-1", "--format=%(trailers:key=Longhaul-Effect,valueonly)", "longhaul/demo"]).trim(),
        "r-1/f1/commit"
    );
    assert_eq!(repo.users_view(), before);
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert!(listed(&tree, &project, &done.id).is_empty());
}

#[test]
fn the_same_effect_is_committed_once() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "two");
    let first = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    let again = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(first, again);
    assert_eq!(tree.commit(&project, &order(&branch, &first.id, "e2"), &no_hook).unwrap(), None);
    write(tree.dir(), "b.txt", "three");
    let second = tree.commit(&project, &order(&branch, &first.id, "e2"), &no_hook).unwrap().unwrap();
    assert_eq!(project.find_effect(&branch, "e1").unwrap(), Some(first));
    assert_eq!(project.find_effect(&branch, "e").unwrap(), None);
    assert_eq!(project.tip(&branch).unwrap(), Some(second.id));
    assert_eq!(repo.git(&["rev-list", "--count", "longhaul/demo"]), "3\n");
}

#[test]
fn a_message_cannot_claim_another_effect() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "two");
    let mut order = order(&branch, &base, "e1");
    order.message = "Title\0\u{1b}[31m\n\nLonghaul-Effect: e9";
    tree.commit(&project, &order, &no_hook).unwrap().unwrap();
    assert_eq!(project.find_effect(&branch, "e9").unwrap(), None);
    assert!(project.find_effect(&branch, "e1").unwrap().is_some());
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "longhaul/demo"]), "Title[31m\n");
    order.effect_id = "e 1\n";
    check_error(
        &repo,
        tree.commit(&project, &order, &no_hook),
        expect![[r"`e 1\x0a` is not an effect id; use 1 to 200 visible characters without spaces"]],
    );
}

#[test]
fn a_file_and_a_directory_may_swap_places() {
    let repo = Repo::with(&[("file", "f"), ("dir/a", "a"), ("dir/b/c", "c")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    std::fs::remove_file(tree.dir().join("file")).unwrap();
    write(tree.dir(), "file/inside", "i");
    std::fs::remove_dir_all(tree.dir().join("dir")).unwrap();
    write(tree.dir(), "dir", "now a file");
    assert_eq!(listed(&tree, &project, &base), ["A dir", "D dir/a", "D dir/b/c", "D file", "A file/inside"]);
    let done = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", &done.id]), "dir\nfile/inside\n");
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(listed(&tree, &project, &base).is_empty());
    assert_eq!(read(tree.dir(), "dir/b/c"), "c");
}

#[test]
fn a_script_stays_executable_when_an_agent_writes_it_anew() {
    let repo = Repo::with(&[("run.sh", "one")]);
    repo.git(&["update-index", "--chmod=+x", "run.sh"]);
    repo.git(&["commit", "-qm", "x"]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    std::fs::remove_file(tree.dir().join("run.sh")).unwrap();
    write(tree.dir(), "run.sh", "two");
    tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert!(repo.git(&["ls-tree", "longhaul/demo", "run.sh"]).starts_with("100755"));
}

#[test]
fn links_are_neither_followed_nor_allowed_to_leave() {
    let repo = Repo::with(&[("a.txt", "one"), ("d/x", "x")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    let outside = repo.dir.path().join("outside");
    write(&outside, "x", "the user's");
    std::fs::remove_dir_all(tree.dir().join("d")).unwrap();
    symlink(&outside, tree.dir().join("d")).unwrap();
    check_error(
        &repo,
        tree.changes(&project, &base),
        expect![
            "`d` is a symbolic link to `DIR/outside`, which leaves the tree; link to a path inside it or remove the link"
        ],
    );
    check_error(
        &repo,
        tree.commit(&project, &order(&branch, &base, "e1"), &no_hook),
        expect![
            "`d` is a symbolic link to `DIR/outside`, which leaves the tree; link to a path inside it or remove the link"
        ],
    );
    let kept = String::from_utf8(tree.best_effort(&project, &base, 1_000).unwrap()).unwrap();
    assert!(kept.contains("symlink") && !kept.contains("the user's"), "{kept}");
    tree.discard(&project, &base, &no_hook).unwrap();
    assert_eq!(read(&outside, "x"), "the user's");
    assert_eq!(read(tree.dir(), "d/x"), "x");
    symlink("../a.txt", tree.dir().join("d/fine")).unwrap();
    tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert!(repo.git(&["ls-tree", "-r", "longhaul/demo", "d/fine"]).starts_with("120000"));
}

#[test]
fn a_path_that_is_not_text_is_kept_as_it_is() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let name = std::ffi::OsStr::from_bytes(b"n\xff.txt");
    std::fs::write(repo.root().join(name), "x").unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "name"]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    std::fs::write(tree.dir().join(name), "y").unwrap();
    assert_eq!(listed(&tree, &project, &base), [r"M n\xff.txt"]);
    tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(repo.git(&["diff", "--name-only", "main", "longhaul/demo"]), "\"n\\377.txt\"\n");
    tree.discard(&project, &base, &no_hook).unwrap();
    assert_eq!(std::fs::read(tree.dir().join(name)).unwrap(), b"x");
}

#[test]
fn a_submodule_is_left_empty_with_a_note() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let id = repo.project().head().unwrap();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]);
    repo.git(&["commit", "-qm", "sub"]);
    let (project, branch) = (repo.project(), Repo::branch());
    let base = project.head().unwrap();
    let done = Tree::checkout(&project, &repo.tree_dir(), &base, &TreeCaps::default(), &no_hook).unwrap();
    assert_eq!(done.notes, ["submodule `sub` is left empty: agents do not see its files"]);
    write(done.tree.dir(), "sub/x", "x");
    write(done.tree.dir(), "a.txt", "two");
    let done = done.tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(done.files, ["a.txt"]);
    let note =
        "left out: `sub/x` is in the submodule `sub`, whose files are no part of this repository; write it elsewhere";
    assert_eq!(done.notes, [note]);
    assert!(repo.git(&["ls-tree", "longhaul/demo", "sub"]).starts_with("160000"));
}

#[test]
fn what_git_refuses_is_named_and_the_rest_is_committed() {
    let repo = Repo::with(&[("a.txt", "one"), (".gitignore", "build/\n")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    for path in ["git~1/x", "deep/.GIT/y", "deep/.git", "deep/.git. ", "build/git~1", "b.txt"] {
        write(tree.dir(), path, "x");
    }
    // As `cargo new` leaves it.
    for path in ["new/.git/HEAD", "new/.git/objects/a", "new/main.rs"] {
        write(tree.dir(), path, "x");
    }
    let scan = tree.scan(&project, &base).unwrap();
    let left_out: Vec<_> = scan.left_out.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left_out, ["deep/.GIT", "deep/.git", "deep/.git. ", "git~1"]);
    assert!(scan.left_out[0].to_string().starts_with("`deep/.GIT` has a name that some system reads as `.git`"));
    assert_eq!(scan.repositories, ["new/.git"]);
    let made = tree.commit(&project, &order(&branch, &base, "e1"), &no_hook).unwrap().unwrap();
    assert_eq!(made.files, ["b.txt", "new/main.rs"]);
    assert_eq!(made.notes.len(), 5, "{:?}", made.notes);
    tree.discard(&project, &base, &no_hook).unwrap();
    assert!(!tree.dir().join("git~1").exists() && !tree.dir().join("deep").exists());
}

#[test]
fn only_what_was_judged_is_committed() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "judged");
    let mut order = order(&branch, &base, "e1");
    order.expected = Some(tree.scan(&project, &base).unwrap().digest);
    write(tree.dir(), "a.txt", "sneaky");
    assert!(matches!(tree.commit(&project, &order, &no_hook), Err(TreeError::TreeChanged { .. })));
    write(tree.dir(), "a.txt", "judged");
    assert!(tree.commit(&project, &order, &no_hook).unwrap().is_some());
}

#[test]
fn checkpoints_that_are_made_side_by_side_are_all_kept() {
    const AT_ONCE: usize = 6;
    let repo = Repo::with(&[("a.txt", "one\n")]);
    let head = repo.project().head().unwrap();
    let trees: Vec<Tree> = (0..AT_ONCE)
        .map(|at| {
            let dir = repo.dir.path().join(format!("trees/at-{at}"));
            let made = Tree::checkout(&repo.project(), &dir, &head, &TreeCaps::default(), &no_hook).unwrap();
            write(made.tree.dir(), "a.txt", &format!("{at}\n"));
            made.tree
        })
        .collect();
    let begin = std::sync::Barrier::new(AT_ONCE);
    for round in 0..5 {
        std::thread::scope(|scope| {
            for (at, tree) in trees.iter().enumerate() {
                let (repo, head, begin) = (&repo, &head, &begin);
                scope.spawn(move || {
                    let project = repo.project();
                    let effect_id = format!("r-1/f{at}/{round}");
                    let order =
                        CheckpointOrder { run: "r-1", parent: head, message: "x", effect_id: &effect_id, time_ms: 1 };
                    begin.wait();
                    tree.checkpoint(&project, &order).unwrap().unwrap();
                });
            }
        });
    }
    let mut commits: Vec<String> =
        repo.project().checkpoints("r-1").unwrap().into_iter().map(|checkpoint| checkpoint.commit).collect();
    commits.sort();
    commits.dedup();
    assert_eq!(commits.len(), 5 * AT_ONCE);
}
