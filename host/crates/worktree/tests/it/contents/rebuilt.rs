//! The way there and back.

use super::{names, rebuild, stored};
use crate::repo::{Repo, git, read, write};
use longhaul_core::Digest;
use longhaul_worktree::{LostFile, Tree, TreeCaps, TreeError, UserRepository, no_hook};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const NAMES: [&[u8]; 8] = [b"a", b"b", b"dir", "ümlaut".as_bytes(), b"\xff\xfe", b"..a", b"q\"uote \n", b"-x"];

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }

    /// A path of one to three names.
    fn path(&mut self) -> PathBuf {
        (0..=self.below(3)).map(|_| OsStr::from_bytes(NAMES[self.below(NAMES.len())])).collect()
    }
}

/// Removes whatever is at `path`.
fn clear(path: &Path) {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path).unwrap(),
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Makes room for an entry at `rel`: directories above it, and nothing in its place.
fn make_room(dir: &Path, rel: &Path) -> PathBuf {
    let mut at = dir.to_owned();
    for name in rel.parent().unwrap() {
        at.push(name);
        if !std::fs::symlink_metadata(&at).is_ok_and(|found| found.is_dir()) {
            clear(&at);
            std::fs::create_dir(&at).unwrap();
        }
    }
    let path = dir.join(rel);
    clear(&path);
    path
}

fn change(random: &mut Random, dir: &Path) {
    let rel = random.path();
    match random.below(8) {
        0..=2 => std::fs::write(make_room(dir, &rel), format!("text {}\0", random.below(5))).unwrap(),
        3 => {
            let path = make_room(dir, &rel);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        4 => {
            let target = ["a", "b/dir", "nowhere", "ümlaut", "/etc/hostname"][random.below(5)];
            symlink(target, make_room(dir, &rel)).unwrap();
        }
        5 => std::fs::create_dir(make_room(dir, &rel)).unwrap(),
        _ if std::fs::symlink_metadata(dir.join(&rel)).is_ok() => clear(&dir.join(&rel)),
        _ => {}
    }
}

/// Every entry, with the content of files and the targets of links. Git alone decides what a mode means.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            let what = match () {
                () if kind.is_dir() => "directory".to_owned(),
                () if kind.is_symlink() => format!("link {:?}", std::fs::read_link(&path).unwrap()),
                () => format!("file {:?}", std::fs::read(&path).unwrap()),
            };
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(path.strip_prefix(dir).unwrap().to_owned(), what);
        }
    }
    found
}

/// The digest of what would be committed, or the refusal of it.
fn judged(tree: &Tree, project: &UserRepository, base: &str) -> Result<Digest, String> {
    tree.scan(project, base).map(|scan| scan.digest).map_err(|error| error.to_string())
}

#[test]
fn whatever_the_changes_the_rebuilt_tree_is_the_same() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 1..=40 {
        let mut random = Random(seed * 0x9E37_79B9);
        let repo = Repo::empty();
        (0..12).for_each(|_| change(&mut random, &repo.root()));
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        let (project, tree) = (repo.project(), repo.checkout());
        let base = project.head().unwrap();
        (0..random.below(14)).for_each(|_| change(&mut random, tree.dir()));
        if random.below(2) == 0 {
            std::fs::write(tree.dir().join(".longhaul-tmp-1"), "half written").unwrap();
        }

        let contents = tree.contents(&project, &base).unwrap();
        assert!(contents.lost.is_empty(), "seed {seed}: {:?}", contents.lost);
        let there = repo.dir.path().join("elsewhere/r-1");
        rebuild(&project, &there, &base, &contents.root, &stored(&tree, &contents)).unwrap();
        let rebuilt = Tree::in_dir(&there);
        assert_eq!(snapshot(&there), snapshot(tree.dir()), "seed {seed}");
        let expected = judged(&tree, &project, &base);
        assert_eq!(judged(&rebuilt, &project, &base), expected, "seed {seed}");
        assert_eq!(rebuilt.contents(&project, &base).unwrap().root, contents.root, "seed {seed}");
        assert_eq!(rebuilt.at(), Some(base));
        match expected {
            Ok(_) => committed += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(committed > 5 && refused > 0, "{committed} trees could be committed, {refused} could not");
}

#[test]
fn a_tree_without_a_change_has_no_content_but_an_empty_manifest() {
    let repo = Repo::with(&[("a.txt", "one"), ("d/b.txt", "two")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    let contents = tree.contents(&project, &base).unwrap();
    assert_eq!((contents.files, contents.bytes, contents.manifests.len()), (0, 0, 1));
    write(tree.dir(), "d/b.txt", "changed");
    let changed = tree.contents(&project, &base).unwrap();
    assert_eq!((changed.files, changed.bytes, changed.manifests.len()), (1, 7, 2));
    assert_ne!(changed.root, contents.root);
    write(tree.dir(), "d/b.txt", "two");
    let again = tree.contents(&project, &base).unwrap();
    assert_eq!((again.root, again.manifests), (contents.root, contents.manifests));
}

#[test]
fn a_changed_file_changes_the_manifests_above_it_alone() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    for path in ["top", "a/1", "a/b/2", "a/b/c/3", "x/4", "x/y/5", "a/z/6"] {
        write(tree.dir(), path, path);
    }
    let digests = || -> BTreeSet<Digest> {
        let contents = tree.contents(&project, &base).unwrap();
        contents.manifests.iter().map(|(digest, _)| *digest).collect()
    };
    let before = digests();
    assert_eq!(before, digests());
    write(tree.dir(), "a/b/c/3", "other");
    let after = digests();
    // The top, `a`, `a/b` and `a/b/c`; not `a/z`, `x` and `x/y`.
    assert_eq!((before.len(), after.difference(&before).count()), (7, 4));
}

#[test]
fn what_cannot_be_taken_along_is_named_and_ignored_files_are_not() {
    let repo = Repo::with(&[("a.txt", "one"), (".gitignore", "cache/\n")]);
    let caps = TreeCaps { file_bytes_max: 10, ..TreeCaps::default() };
    let (project, tree) = (repo.project(), repo.checkout_within(&caps));
    let base = project.head().unwrap();
    write(tree.dir(), "large", "0123456789a");
    write(tree.dir(), "cache/x", "ignored");
    write(tree.dir(), ".longhaul-tmp-2/x", "half removed");
    std::fs::create_dir(tree.dir().join("own")).unwrap();
    git(&tree.dir().join("own"), &["init", "-q"]);
    write(tree.dir(), "own/a", "beside it");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o644));
    rustix::fs::mknodat(rustix::fs::CWD, tree.dir().join("pipe"), kind, mode, 0).unwrap();

    let contents = tree.contents(&project, &base).unwrap();
    let lost: Vec<String> = contents.lost.iter().map(|LostFile { path, why }| format!("{path} {why}")).collect();
    let large = "large has 11 bytes, and a commit takes files of at most 10; make it smaller, remove it, or list it in \
                 .gitignore";
    assert_eq!(
        lost,
        [
            ".longhaul-tmp-2 is half removed",
            large,
            "own/.git is a repository of its own; the files beside it are taken along",
            "pipe is a socket, a pipe or a device",
        ]
    );
    let there = repo.dir.path().join("elsewhere/r-1");
    rebuild(&project, &there, &base, &contents.root, &stored(&tree, &contents)).unwrap();
    assert_eq!(names(&there), [".gitignore", "a.txt", "own"]);
    assert_eq!(judged(&Tree::in_dir(&there), &project, &base), judged(&tree, &project, &base));
}

#[test]
fn a_file_that_changed_since_is_not_taken_for_the_noted_one() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    write(tree.dir(), "a.txt", "two");
    let contents = tree.contents(&project, &project.head().unwrap()).unwrap();
    let file = &contents.contents[0];
    assert_eq!((file.path.as_path(), tree.read_content(file).unwrap()), (Path::new("a.txt"), b"two".to_vec()));
    write(tree.dir(), "a.txt", "six");
    assert!(matches!(tree.read_content(file), Err(TreeError::Raced { .. })));
    clear(&tree.dir().join("a.txt"));
    symlink("/etc/hostname", tree.dir().join("a.txt")).unwrap();
    assert!(matches!(tree.read_content(file), Err(TreeError::Raced { .. })));
    let mut outside = file.clone();
    outside.path = "../r-1/a.txt".into();
    assert!(matches!(tree.read_content(&outside), Err(TreeError::Stored { .. })));
}

#[test]
fn a_tree_appears_whole_or_not_at_all() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    write(tree.dir(), "a.txt", "two");
    write(tree.dir(), "b/c.txt", "three");
    let contents = tree.contents(&project, &base).unwrap();
    let whole = stored(&tree, &contents);
    let there = repo.dir.path().join("elsewhere/r-1");
    for missing in whole.keys() {
        let mut part = whole.clone();
        part.remove(missing);
        rebuild(&project, &there, &base, &contents.root, &part).unwrap_err();
        assert!(!there.exists());
    }
    // An interrupted merge of an earlier tree in this place has nothing to do with this one.
    write(there.parent().unwrap(), "r-1.merge", &format!("{base}\n{base}\n{base}\n"));
    rebuild(&project, &there, &base, &contents.root, &whole).unwrap();
    assert_eq!(names(there.parent().unwrap()), ["r-1", "r-1.at"]);
    assert_eq!((read(&there, "a.txt"), read(&there, "b/c.txt")), ("two".to_owned(), "three".to_owned()));
    let error = rebuild(&project, &there, &base, &contents.root, &whole).unwrap_err();
    assert!(matches!(error, TreeError::NotNew { .. }), "{error}");
    // The tree goes on as any other.
    let rebuilt = Tree::in_dir(&there);
    rebuilt.discard(&project, &base, &no_hook).unwrap();
    assert_eq!((read(&there, "a.txt"), there.join("b").exists()), ("one".to_owned(), false));
}

#[test]
fn a_tree_is_not_taken_along_without_a_file_of_its_commit_that_became_too_large() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let caps = TreeCaps { file_bytes_max: 10, ..TreeCaps::default() };
    let (project, tree) = (repo.project(), repo.checkout_within(&caps));
    write(tree.dir(), "a.txt", "0123456789a");
    let error = tree.contents(&project, &project.head().unwrap()).unwrap_err();
    assert!(matches!(error, TreeError::Stored { .. }) && !error.is_retryable(), "{error}");
    assert!(error.to_string().starts_with("`a.txt` has 11 bytes"), "{error}");
}

#[test]
fn a_tree_is_removed_with_its_notes_and_whatever_programs_wrote() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let tree = repo.checkout();
    let above = tree.dir().parent().unwrap().to_owned();
    write(tree.dir(), "closed/x", "x");
    std::fs::set_permissions(tree.dir().join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    write(&above, "r-1.merge", "an earlier merge");
    write(&above, "r-1.at", "an earlier commit");
    write(&above, "r-1.2.at", "of another tree");
    Tree::remove(tree.dir()).unwrap();
    assert_eq!(names(&above), ["r-1.2.at"]);
    Tree::remove(tree.dir()).unwrap();
    // A link in its place goes, and not what it leads to.
    symlink(repo.root(), tree.dir()).unwrap();
    Tree::remove(tree.dir()).unwrap();
    assert_eq!((names(&above), read(&repo.root(), "a.txt")), (vec!["r-1.2.at".to_owned()], "one".to_owned()));
}
