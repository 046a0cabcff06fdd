//! Trees and commits, as the user's own `git` sees them.

#[path = "support/repo.rs"]
mod repo;

use expect_test::{Expect, expect};
use longhaul_worktree::{
    Branch, ChangeKind, CheckpointOrder, Merge, Tree, TreeCaps, TreeError, UserRepository, new_project, no_hook,
};
use repo::{Repo, git, order, read, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// The text of an error, with the parts that differ between runs replaced.
#[track_caller]
fn check_error<T>(repo: &Repo, result: Result<T, TreeError>, expected: Expect) {
    let Err(error) = result else { panic!("it was not refused") };
    let text = error.to_string().replace(&repo.dir.path().canonicalize().unwrap().display().to_string(), "DIR");
    let mut words: Vec<String> = Vec::new();
    for word in text.replace(&repo.dir.path().display().to_string(), "DIR").split(' ') {
        let hex: String = word.chars().filter(char::is_ascii_hexdigit).collect();
        words.push(if hex.len() == 40 { word.replace(&hex, "ID") } else { word.to_owned() });
    }
    expected.assert_eq(&words.join(" "));
}

/// `A path`, `M path` and `D path`.
fn listed(tree: &Tree, project: &UserRepository, parent: &str) -> Vec<String> {
    let letter = |kind| match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
    };
    let changes = tree.changes(project, parent).unwrap();
    changes.iter().map(|change| format!("{} {}", letter(change.kind), change.path)).collect()
}

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
fn ignore_files_of_the_tree_count_and_those_of_the_user_too() {
    let repo = Repo::with(&[("a.txt", "one"), ("logs/kept.log", "tracked")]);
    std::fs::write(repo.root().join(".git/info/exclude"), "secret*\n").unwrap();
    let (project, tree) = (repo.project(), repo.checkout());
    write(tree.dir(), ".gitignore", "*.log\n/build/\n!important.log\n");
    write(tree.dir(), "sub/.gitignore", "here\n");
    for path in ["x.log", "important.log", "build/o", "sub/here", "sub/there", "secret.txt", "logs/new.log"] {
        write(tree.dir(), path, "x");
    }
    write(tree.dir(), "logs/kept.log", "changed");
    let expected = ["A .gitignore", "A important.log", "M logs/kept.log", "A sub/.gitignore", "A sub/there"];
    assert_eq!(listed(&tree, &project, &project.head().unwrap()), expected);
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
fn an_ignore_file_that_is_a_link_ignores_nothing() {
    let repo = Repo::with(&[("a.txt", "one"), ("rules", "*\n")]);
    let (project, tree) = (repo.project(), repo.checkout());
    symlink("rules", tree.dir().join(".gitignore")).unwrap();
    write(tree.dir(), "b.txt", "two");
    assert_eq!(listed(&tree, &project, &project.head().unwrap()), ["A .gitignore", "A b.txt"]);
}

/// The rules are this crate's own code, so git judges them.
#[test]
fn what_git_ignores_is_ignored() {
    let rules = "# comment\n\n*.log\n!keep.log\n/top\nmid/dle\ndir/\n**/deep/x\na/**/z\nall/**\n!all/keep\n\\#hash\n\\!bang\nsp\\ \ntrail  \n[ab]c\n[!x]yy\nq?\n**/\\*star\nno/*\n!no/in/\nwin\r\n";
    let paths = "x.log keep.log s/keep.log s/x.log top s/top mid/dle s/mid/dle dir/f s/dir/f t/dir deep/x s/deep/x s/deep/y a/z a/1/z \
                 a/1/2/z a/1/y all/f all/keep all/sub/f #hash !bang trail ac cc ayy xyy q1 q12 *star s/*star astar no/f no/in/g win comment";
    let repo = Repo::with(&[("a.txt", "one"), (".gitignore", rules), ("s/.gitignore", "!x.log\ninner\n")]);
    let (project, tree) = (repo.project(), repo.checkout());
    for path in paths.split_whitespace().chain(["sp ", "s/inner", "s/t/inner", "inner"]) {
        write(tree.dir(), path, "x");
        repo.write(path, "x");
    }
    let ours: Vec<String> =
        listed(&tree, &project, &project.head().unwrap()).iter().map(|line| line[2..].to_owned()).collect();
    let theirs = repo.git(&["ls-files", "-z", "--others", "--exclude-standard"]);
    let mut theirs: Vec<&str> = theirs.split_terminator('\0').collect();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
    assert!(theirs.len() > 15, "{theirs:?}");
}

#[test]
fn hostile_ignore_patterns_take_no_time() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    write(tree.dir(), ".gitignore", &format!("{}b\n{}c\n", "*a".repeat(100), "**/a/".repeat(60)));
    write(tree.dir(), &format!("{}z", "a/".repeat(100)), "deep");
    write(tree.dir(), &"a".repeat(200), "long");
    let started = std::time::Instant::now();
    assert_eq!(listed(&tree, &project, &project.head().unwrap()).len(), 3);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
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
fn a_named_file_that_no_commit_would_hold_is_told_with_the_rule() {
    let repo = Repo::with(&[("a.txt", "one"), (".gitignore", "build/\n*.log\n!keep.log\n"), ("build/kept", "1")]);
    repo.git(&["add", "-f", "build/kept"]);
    let id = repo.project().head().unwrap();
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]);
    repo.git(&["commit", "-qm", "sub"]);
    let (project, tree) = (repo.project(), repo.checkout());
    let check = |paths: &[&str], expected: &[&str]| {
        let named = tree.note_named(paths.iter().copied()).unwrap();
        for path in paths.iter().filter(|path| !path.starts_with(['/', '.']) && !path.ends_with("read")) {
            write(tree.dir(), path, &format!("written for {expected:?}"));
        }
        let told: Vec<_> = tree.unkept_since(&project, &named).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{paths:?}");
    };
    write(tree.dir(), "build/read", "was there before");
    check(&["a.txt", "src/new.rs", "keep.log", "build/kept", "build/read"], &[]);
    check(&["../out", "/etc/passwd"], &[]);
    check(
        &["build/x.py", "b/c.log"],
        &[
            "`build/x.py` is ignored by `build/` in `.gitignore`; write it elsewhere, or change that rule",
            "`b/c.log` is ignored by `*.log` in `.gitignore`; write it elsewhere, or change that rule",
        ],
    );
    let module = "is in the submodule `sub`, whose files are no part of this repository; write it elsewhere";
    check(&["sub/x"], &[&format!("`sub/x` {module}")]);
    check(&["git~1"], &["`git~1` has a name that some system reads as `.git`, which git refuses; choose another name"]);
    let deep = "d/".repeat(128) + "x";
    check(&[&deep], &[&format!("`{deep}` is in 129 directories within each other, and 128 are the most")]);
    std::fs::remove_dir_all(tree.dir().join("d")).unwrap();
    // Corrected: it is part of the next commit.
    write(tree.dir(), ".gitignore", "*.log\n");
    let still = tree.unkept(&project, &["build/x.py".into(), "b/c.log".into(), "gone.log".into()]).unwrap();
    assert_eq!(still.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["b/c.log"]);
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
}

#[test]
fn a_tree_is_brought_to_a_later_commit_with_the_work_that_is_in_it() {
    let repo = Repo::with(&[("a.txt", "1\n2\n3\n4\n5\n6\n"), ("gone.txt", "x"), ("left.txt", "y")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "one\n2\n3\n4\n5\n6\n");
    write(tree.dir(), "ours.txt", "ours");
    std::fs::remove_file(tree.dir().join("gone.txt")).unwrap();
    repo.write("a.txt", "1\n2\n3\n4\n5\nsix\n");
    repo.write("theirs.txt", "theirs");
    let tip = committed(&repo);
    assert_eq!(tree.merge(&project, &base, &tip, &no_hook).unwrap(), Merge::Done);
    assert_eq!(read(tree.dir(), "a.txt"), "one\n2\n3\n4\n5\nsix\n");
    assert_eq!(read(tree.dir(), "theirs.txt"), "theirs");
    let changed: Vec<_> = tree.changes(&project, &tip).unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(changed, ["a.txt", "gone.txt", "ours.txt"]);
    assert_eq!(tree.at().as_deref(), Some(tip.as_str()));
}

#[test]
fn changes_of_the_same_lines_are_named_and_the_tree_stays_as_it_is() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "ours");
    write(tree.dir(), "b.txt", "ours");
    repo.write("a.txt", "theirs");
    let tip = committed(&repo);
    let found = tree.merge(&project, &base, &tip, &no_hook).unwrap();
    assert_eq!(found, Merge::Conflict { files: vec!["a.txt".into()] });
    assert_eq!((read(tree.dir(), "a.txt"), tree.at().as_deref()), ("ours".into(), Some(base.as_str())));
    // Between two sessions the branch wins, and what was overwritten is named.
    assert_eq!(tree.bring_to(&project, &tip, &no_hook).unwrap(), ["a.txt"]);
    assert_eq!(read(tree.dir(), "a.txt"), "theirs");
    assert!(tree.changes(&project, &tip).unwrap().is_empty());
}

/// A commit of everything in the user's checkout.
fn committed(repo: &Repo) -> String {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", "theirs"]);
    repo.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

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
