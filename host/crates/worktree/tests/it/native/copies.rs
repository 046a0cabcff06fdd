//! Copies for checks: what would be committed, with pinned files of the base, and nothing of the check before.

use super::{run, run_on, run_with, scratch, shell, wait_for};
use crate::repo::{Repo, read, write};
use expect_test::{Expect, expect};
use longhaul_worktree::{NativeCheck, NativeError, NativeReport, Tree, pins};
use std::os::unix::fs::symlink;

/// Runs a script on a repository and shows the report.
async fn check(repo: &Repo, script: &str, expected: Expect) -> NativeReport {
    let done = run(repo, &shell(script)).await.unwrap();
    let report = &done.report;
    expected.assert_eq(&format!("{} {}\n{}---\n{}", report.passed, report.exit_code, report.stdout, report.stderr));
    done
}

#[tokio::test]
async fn a_check_sees_exactly_what_would_be_committed() {
    let repo = Repo::with(&[("a.txt", "one"), ("gone", "x"), ("d/same", "same"), (".gitignore", "target/\n")]);
    repo.write("local.txt", "only in the user's checkout");
    let tree = repo.checkout();
    write(tree.dir(), "a.txt", "agent");
    write(tree.dir(), "new/b.txt", "new");
    write(tree.dir(), "target/cache", "ignored");
    std::fs::remove_file(tree.dir().join("gone")).unwrap();
    let done = check(
        &repo,
        "find . -type f | sort; cat a.txt d/same; echo err >&2; exit 3",
        expect![[r"
            false 3
            ./.gitignore
            ./a.txt
            ./d/same
            ./new/b.txt
            agentsame---
            err
        "]],
    )
    .await;
    let project = repo.project();
    assert_eq!(done.subject, tree.scan(&project, &project.head().unwrap()).unwrap().digest);
}

#[tokio::test]
async fn a_check_changes_neither_the_tree_nor_the_repository() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let before = repo.users_view();
    check(&repo, "echo changed > a.txt; rm -rf .git; echo x > $HOME/y; echo x > $TMPDIR/y", expect![["true 0\n---\n"]])
        .await;
    assert_eq!(repo.users_view(), before);
    assert_eq!(read(&repo.tree_dir(), "a.txt"), "one");
}

/// A tree whose checks each get one script, on the copy of the previous one.
struct Again {
    repo: Repo,
    tree: Tree,
}

impl Again {
    fn of(files: &[(&str, &str)]) -> Self {
        let repo = Repo::with(files);
        let tree = repo.checkout();
        Self { repo, tree }
    }

    /// Returns the inode and the birth time of the script's directory, and its output: inodes are reused.
    async fn run(&self, script: &str) -> (String, String) {
        let check = shell(&format!("stat -c '%i %w' .; {script}; echo left > ../left"));
        let project = self.repo.project();
        let pins = pins(&project, &project.head().unwrap(), "test", &check).unwrap();
        let report = run_on(&self.repo, &self.tree, &check, &pins).await.unwrap().report;
        wait_for(|| scratch(&self.repo).iter().all(|dir| !dir.join("left").exists())).await;
        let (directory, output) = report.stdout.split_once('\n').expect("the directory comes first");
        (directory.to_owned(), format!("{output}{}", report.stderr))
    }
}

#[tokio::test]
async fn what_a_check_leaves_does_not_reach_the_next() {
    let again = Again::of(&[("a.txt", "one"), ("d/e/f", "deep"), ("g", "x"), ("h", "y")]);
    let (first, _) = again
        .run(
            "mkdir -p new/dir; echo x > new/dir/x; ln -s /etc d/there; mkdir d/i; chmod 711 d; touch -d 2001-01-01 d; \
             echo x > $HOME/x; echo x > $TMPDIR/x; mkfifo pipe",
        )
        .await;
    // Changes of the agent in between arrive too.
    write(again.tree.dir(), "i/new", "agent");
    let script = "find . | sort; cat a.txt d/e/f g h i/new; ls -A $HOME $TMPDIR; stat -c '%a %y' d";
    let (mut second, mut seen) = again.run(script).await;
    // The copy may not be back yet when the next check needs it.
    for _ in 0..50 {
        if second == first {
            break;
        }
        (second, seen) = again.run(script).await;
    }
    assert_eq!(first, second, "the same directory");
    let listed = seen.split_once("./i/new\n").expect("the agent's file").0;
    assert_eq!(listed.lines().collect::<Vec<_>>(), [".", "./a.txt", "./d", "./d/e", "./d/e/f", "./g", "./h", "./i"]);
    assert!(seen.contains("onedeepxyagent"), "{seen}");
    assert!(!seen.contains("\nx\n") && seen.contains("755 ") && !seen.contains("2001"), "{seen}");
}

#[tokio::test]
async fn a_directory_in_which_a_check_changed_what_was_there_is_given_to_no_other() {
    let again = Again::of(&[("a.txt", "one"), ("d/e/f", "deep"), ("g", "x"), ("h", "y")]);
    for script in ["printf two > a.txt", "mv d/e d/moved; ln -s /etc d/e", "rm g; mkdir g; echo x > g/x", "chmod 0 h"] {
        let (first, said) = again.run(script).await;
        let (second, seen) = again.run("find . -type f | sort; cat a.txt d/e/f g h").await;
        assert!(first != second && seen == "./a.txt\n./d/e/f\n./g\n./h\nonedeepxy", "{script}: {said} {seen}");
    }
}

#[tokio::test]
async fn a_directory_that_a_check_marked_is_given_to_no_other() {
    for script in ["chmod 2755 d", "chmod 1777 .", "chmod 300 d", "setfattr -n user.seen -v 1 d"] {
        let again = Again::of(&[("d/f", "x")]);
        let (first, said) = again.run(script).await;
        if said.contains("not found") || said.contains("not supported") {
            continue;
        }
        let (second, seen) = again.run("stat -c %a . d; cat d/f").await;
        assert!(first != second && seen.ends_with('x') && seen.starts_with("755\n755"), "{script}: {said} {seen}");
    }
}

#[tokio::test]
async fn pinned_files_come_from_the_base_whatever_lies_in_the_tree() {
    let repo =
        Repo::with(&[("src/a", "one"), ("tests/test_a", "strict"), ("tests/deep/b", "strict"), ("tests/c", "strict")]);
    let tree = repo.checkout();
    write(tree.dir(), "src/a", "agent");
    write(tree.dir(), "tests/test_a", "weak");
    write(tree.dir(), "tests/conftest.py", "skip all");
    std::fs::remove_file(tree.dir().join("tests/c")).unwrap();
    std::fs::remove_dir_all(tree.dir().join("tests/deep")).unwrap();
    symlink("../src", tree.dir().join("tests/deep")).unwrap();
    let mut pinned = shell("find . -type f | sort | xargs grep -H .");
    pinned.files = vec!["tests/**".to_owned(), "absent/**".to_owned()];
    let project = repo.project();
    let base = project.head().unwrap();
    let pins_then = pins(&project, &base, "test", &pinned).unwrap();
    assert_eq!(pins_then.files, ["tests/c", "tests/deep/b", "tests/test_a"]);
    assert!(pins_then.notes[0].contains("`absent/**` matches no file"), "{:?}", pins_then.notes);
    let done = run_with(&repo, &pinned, &pins_then).await.unwrap();
    expect![[r"
        ./src/a:agent
        ./tests/c:strict
        ./tests/deep/b:strict
        ./tests/test_a:strict
    "]]
    .assert_eq(&done.report.stdout);
    pinned.argv[2] = "true".to_owned();
    let error = run_with(&repo, &pinned, &pins_then).await.unwrap_err();
    assert!(matches!(error, NativeError::NotPinned { .. }), "{error}");
}

#[tokio::test]
async fn files_of_a_test_runner_are_pinned_unasked() {
    let repo = Repo::with(&[("conftest.py", "strict"), ("pyproject.toml", "old"), ("src/a", "old")]);
    let tree = repo.checkout();
    for path in ["conftest.py", "tests/conftest.py", "pyproject.toml", "sitecustomize.py", "lib/x.pth", "src/a"] {
        write(tree.dir(), path, "agent");
    }
    let project = repo.project();
    let run = async |check: &NativeCheck| {
        let pins = pins(&project, &project.head().unwrap(), "test", check).unwrap();
        run_on(&repo, &tree, check, &pins).await.unwrap().report
    };
    let mut check = shell("grep -r . | sort");
    let report = run(&check).await;
    assert_eq!(report.stdout, "conftest.py:strict\npyproject.toml:agent\nsrc/a:agent\n");
    expect![[r"
        changes to `conftest.py`, `lib/x.pth`, `sitecustomize.py`, `tests/conftest.py` were not seen by this check: files of a test runner are taken from the base commit; to allow one, name it in `unpinned` of [checks.test]
    "]]
    .assert_eq(&report.stderr);
    // A project without one is not affected.
    check.unpinned = vec!["**".into()];
    let report = run(&check).await;
    assert_eq!((report.stdout.lines().count(), report.stderr.as_str()), (6, ""), "{report:?}");
}
