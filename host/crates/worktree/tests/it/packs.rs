//! Commits of a run in a clone that lacks them, as the user's own `git` sees them there.

use crate::repo::{Repo, git, order, write};
use longhaul_worktree::{Branch, TreeError, UserRepository, no_hook};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

const RUN: &str = "r-1";

/// A repository with commits of a run, and a clone from before the run.
struct Pair {
    repo: Repo,
    here: UserRepository,
    there: UserRepository,
    branch: Branch,
    base: String,
    /// The commits of the branch, oldest first.
    commits: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let repo = Repo::with(&[("a.txt", "zero"), ("deep/er/b.txt", "b"), ("same/c.txt", "c")]);
        // A submodule, whose commit no clone has.
        let module = format!("160000,{},module", "1".repeat(40));
        repo.git(&["update-index", "--add", "--cacheinfo", &module]);
        repo.git(&["commit", "-qm", "module"]);
        std::fs::create_dir(repo.root().join("module")).unwrap();
        git(repo.dir.path(), &["clone", "-q", "repo", "clone"]);
        let (here, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
        let there = UserRepository::open(&repo.dir.path().join("clone")).unwrap();
        let base = here.head().unwrap();
        let mut commits: Vec<String> = Vec::new();
        for number in 1..=3 {
            write(tree.dir(), "deep/er/b.txt", &format!("{number}").repeat(500));
            write(tree.dir(), &format!("{number}/new.txt"), "new");
            let parent = commits.last().unwrap_or(&base).clone();
            let effect = format!("{RUN}/f-{number}/commit");
            commits.push(tree.commit(&here, &order(&branch, &parent, &effect), &no_hook).unwrap().unwrap().id);
        }
        let pair = Self { repo, here, there, branch, base, commits };
        pair.repo.git(&["update-ref", &format!("refs/longhaul/checkpoints/{RUN}/1"), &pair.commits[0]]);
        pair.repo.git(&["update-ref", &format!("refs/longhaul/reverted/{RUN}/1"), &pair.commits[1]]);
        pair.repo.git(&["update-ref", "refs/longhaul/checkpoints/r-2/1", &pair.commits[0]]);
        pair
    }

    fn pack(&self, hidden: &[&str]) -> Vec<u8> {
        let hidden: Vec<String> = hidden.iter().map(|id| (*id).to_owned()).collect();
        self.here.pack(&self.refs().into_values().collect::<Vec<_>>(), &hidden).unwrap()
    }

    fn refs(&self) -> BTreeMap<String, String> {
        self.here.refs_of_run(&self.branch, RUN).unwrap()
    }

    fn clone_dir(&self) -> PathBuf {
        self.repo.dir.path().join("clone")
    }

    /// Runs git in the clone.
    fn git(&self, args: &[&str]) -> String {
        git(&self.clone_dir(), args)
    }

    /// Every object of the clone has those that it names.
    #[track_caller]
    fn check_sound(&self) {
        assert_eq!(self.git(&["fsck", "--strict", "--no-dangling"]), "");
    }
}

#[test]
fn commits_and_refs_of_a_run_come_to_a_clone_that_lacks_them() {
    let pair = Pair::new();
    let refs = pair.refs();
    let names: Vec<&str> = refs.keys().map(String::as_str).collect();
    assert_eq!(names, ["refs/heads/longhaul/demo", "refs/longhaul/checkpoints/r-1/1", "refs/longhaul/reverted/r-1/1"]);
    let error = pair.there.set_refs_of_run(&pair.branch, RUN, &refs).unwrap_err();
    assert!(matches!(error, TreeError::NoCommit { .. }), "{error}");
    assert_eq!(pair.there.refs_of_run(&pair.branch, RUN).unwrap(), BTreeMap::new());

    let pack = pair.pack(&[&pair.base]);
    assert_eq!(pack, pair.pack(&[&pair.base]));
    for _ in 0..2 {
        pair.there.unpack(&pack).unwrap();
        pair.there.set_refs_of_run(&pair.branch, RUN, &refs).unwrap();
    }
    assert_eq!(pair.there.refs_of_run(&pair.branch, RUN).unwrap(), refs);
    let log = ["log", "--format=%H %an %s", "longhaul/demo"];
    assert_eq!(pair.git(&log), pair.repo.git(&log));
    assert_eq!(pair.git(&["show", "longhaul/demo:3/new.txt"]), "new");
    assert_eq!(pair.git(&["status", "--porcelain"]), "");
    pair.check_sound();
    // Nothing is left to take along, nor is what both have.
    let tip = pair.commits[2].clone();
    let none = pair.here.pack(std::slice::from_ref(&tip), std::slice::from_ref(&tip)).unwrap();
    assert!(none.len() < 64 && pack.len() < pair.pack(&[]).len(), "{} bytes", none.len());
    pair.there.unpack(&none).unwrap();
}

#[test]
fn a_whole_history_comes_to_a_repository_that_has_none_of_it() {
    let pair = Pair::new();
    let other = Repo::with(&[("unrelated", "x")]);
    let project = other.project();
    // What nobody has hides nothing.
    project.unpack(&pair.pack(&[&"0".repeat(40)])).unwrap();
    project.set_refs_of_run(&pair.branch, RUN, &pair.refs()).unwrap();
    assert_eq!(other.git(&["rev-list", "--count", "longhaul/demo"]), "5\n");
    assert_eq!(other.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn damaged_commits_are_refused_and_leave_the_clone_sound() {
    let pair = Pair::new();
    let pack = pair.pack(&[&pair.base]);
    let refuse = |pack: &[u8]| {
        let error = pair.there.unpack(pack).expect_err("it is damaged");
        assert!(matches!(error, TreeError::Stored { .. }), "{error}");
        error.to_string()
    };
    for end in [0, 1, 4, pack.len() / 2, pack.len() - 1] {
        refuse(&pack[..end]);
    }
    refuse(&[&pack[..], b"more"].concat());
    for at in (0..pack.len()).step_by(7) {
        let mut damaged = pack.clone();
        damaged[at] ^= 0x10;
        // A bit of the frame's header may mean nothing.
        if let Err(error) = pair.there.unpack(&damaged) {
            assert!(matches!(error, TreeError::Stored { .. }), "{error}");
        }
    }
    pair.check_sound();
    // The commits before are elsewhere.
    let lacking = Pair::new();
    let part = lacking.pack(&[&lacking.commits[1]]);
    let error = lacking.there.unpack(&part).unwrap_err().to_string();
    assert!(error.contains("which this repository does not have"), "{error}");
    lacking.check_sound();
}

#[test]
fn forged_commits_are_refused_before_they_take_memory() {
    let pair = Pair::new();
    let forged = |objects: &[(u8, u64, &[u8])]| {
        let mut out = zstd::Encoder::new(Vec::new(), 3).unwrap();
        out.write_all(b"longhaul-objects 1\n").unwrap();
        for (kind, len, bytes) in objects {
            out.write_all(&[*kind]).unwrap();
            out.write_all(&len.to_le_bytes()).unwrap();
            out.write_all(bytes).unwrap();
        }
        pair.there.unpack(&out.finish().unwrap()).map_err(|error| error.to_string())
    };
    let refused = |objects: &[(u8, u64, &[u8])], why: &str| {
        let error = forged(objects).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    forged(&[(3, 1, b"x")]).unwrap();
    refused(&[(3, 1 << 40, b"x")], "over the limit");
    refused(&[(3, u64::MAX, b"x"), (3, 1, b"x")], "over the limit");
    refused(&[(3, 5, b"x")], "end early");
    refused(&[(7, 1, b"x")], "unknown kind 7");
    refused(&[(2, 9, b"100644 a\0")], "hold a tree that cannot be read");
    refused(&[(2, 29, &[&b"100644 a\0"[..], &[7; 20]].concat())], "need the object 0707");
    refused(&[(1, 8, b"parent x")], "hold a commit that cannot be read");
    let commit = format!("tree {}\n", "12".repeat(20));
    refused(&[(1, 46, commit.as_bytes())], "need the object 1212");
    let later = zstd::bulk::compress(b"longhaul-objects 2\n", 3).unwrap();
    assert!(pair.there.unpack(&later).unwrap_err().to_string().contains("a later version"));
    pair.check_sound();
}

#[test]
fn only_refs_of_the_run_are_set() {
    let pair = Pair::new();
    pair.there.unpack(&pair.pack(&[])).unwrap();
    let before = pair.git(&["for-each-ref"]);
    let tip = &pair.commits[2];
    for name in [
        "HEAD",
        "refs/heads/main",
        "refs/heads/longhaul/other",
        "refs/longhaul/checkpoints/r-2/1",
        "refs/longhaul/checkpoints/r-1/01",
        "refs/longhaul/checkpoints/r-1/0",
        "refs/longhaul/checkpoints/r-1/1/2",
        "refs/longhaul/checkpoints/r-1/x",
        "refs/longhaul/checkpoints/r-1/../../../heads/main",
        "refs/longhaul/replaced/r-1/1",
        "refs/tags/r-1/1",
    ] {
        // None is set where one is refused.
        let refs =
            BTreeMap::from([(name.to_owned(), tip.clone()), ("refs/heads/longhaul/demo".to_owned(), tip.clone())]);
        let error = pair.there.set_refs_of_run(&pair.branch, RUN, &refs).unwrap_err();
        assert!(matches!(error, TreeError::Stored { .. }) && error.to_string().contains(name), "{name}: {error}");
    }
    assert_eq!(pair.git(&["for-each-ref"]), before);
}

#[test]
fn a_branch_that_went_elsewhere_follows_and_keeps_what_it_leaves() {
    let pair = Pair::new();
    pair.there.unpack(&pair.pack(&[])).unwrap();
    let mut refs = pair.refs();
    let mut set = |tip: &str| {
        refs.insert("refs/heads/longhaul/demo".to_owned(), tip.to_owned());
        pair.there.set_refs_of_run(&pair.branch, RUN, &refs)
    };
    // Back to a commit that another of the refs leads from: nothing is lost.
    set(&pair.commits[1]).unwrap();
    set(&pair.commits[0]).unwrap();
    assert_eq!(pair.git(&["for-each-ref", "refs/longhaul/replaced"]), "");
    set(&pair.commits[2]).unwrap();
    set(&pair.commits[0]).unwrap();
    let kept = format!("refs/longhaul/replaced/{RUN}/{}", pair.commits[2]);
    assert_eq!(pair.git(&["for-each-ref", "--format=%(refname)", "refs/longhaul/replaced"]).trim(), kept);
    assert_eq!(pair.git(&["rev-parse", "longhaul/demo"]).trim(), pair.commits[0]);
    // The user looks at the branch.
    pair.git(&["switch", "-q", "longhaul/demo"]);
    let error = set(&pair.commits[2]).unwrap_err();
    assert!(matches!(error, TreeError::CheckedOut { .. }), "{error}");
    assert_eq!(pair.git(&["rev-parse", "longhaul/demo"]).trim(), pair.commits[0]);
}
