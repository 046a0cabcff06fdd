//! A tree that is brought to a later commit.

use crate::repo::{Repo, read, write};
use longhaul_worktree::{Merge, no_hook};

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
