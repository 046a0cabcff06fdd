//! Ignored files: the rules of the tree and of the user, as git reads them.

use super::listed;
use crate::repo::{Repo, write};
use std::os::unix::fs::symlink;

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
