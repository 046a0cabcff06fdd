//! Reverts: the words that name a commit, the commits that stay reachable, and the state after a kill; and the log,
//! which no subject confuses.

use crate::repo::{Repo, order, read, write};
use longhaul_worktree::{Branch, RevertOrder, Tree, TreeError, UserRepository, WayBack, keep_as, no_hook};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const DIR: &str = "LONGHAUL_TEST_DIR";
const KILL_AT: &str = "LONGHAUL_TEST_KILL_AT";

/// A branch with three commits after the base, and its tree.
struct Lane {
    repo: Repo,
    project: UserRepository,
    tree: Tree,
    branch: Branch,
    base: String,
    /// Oldest first.
    commits: Vec<String>,
}

impl Lane {
    fn new() -> Self {
        Self::of(["first", "second", "third"])
    }

    fn of(messages: [&str; 3]) -> Self {
        let repo = Repo::with(&[("a.txt", "zero")]);
        let (project, tree, branch) = (repo.project(), repo.checkout(), Repo::branch());
        let base = project.head().unwrap();
        let mut commits: Vec<String> = Vec::new();
        for (number, message) in messages.into_iter().enumerate() {
            write(tree.dir(), "a.txt", &number.to_string());
            write(tree.dir(), &format!("{number}.txt"), "new");
            let parent = commits.last().unwrap_or(&base).clone();
            let effect = format!("r-1/f-{number}/commit");
            let order = longhaul_worktree::CommitOrder { message, ..order(&branch, &parent, &effect) };
            commits.push(tree.commit(&project, &order, &no_hook).unwrap().unwrap().id);
        }
        Self { repo, project, tree, branch, base, commits }
    }

    fn way(&self, word: &str) -> Result<WayBack, TreeError> {
        self.project.way_back(&self.branch, &self.base, word)
    }

    #[track_caller]
    fn refused(&self, word: &str) -> String {
        let error = self.way(word).unwrap_err().to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        error
    }

    fn revert(&self, word: &str) -> String {
        let way = self.way(word).unwrap();
        let keep_as = keep_as("r-1", self.project.last_kept("r-1").unwrap() + 1);
        let order = RevertOrder { branch: &self.branch, from: &way.from, to: &way.to, keep_as: Some(&keep_as) };
        self.tree.revert(&self.project, &order, &no_hook).unwrap();
        keep_as
    }

    fn tip(&self) -> String {
        self.project.tip(&self.branch).unwrap().unwrap()
    }
}

#[test]
fn a_commit_is_named_by_its_hash_or_the_beginning_of_it() {
    let lane = Lane::new();
    let [first, second, third] = lane.commits.as_slice() else { panic!("three") };
    for word in [first.as_str(), &first[..12], &first[..12].to_uppercase()] {
        let way = lane.way(word).unwrap();
        assert_eq!((&way.to, &way.from), (first, third));
        assert_eq!(way.left, [third.clone(), second.clone()]);
    }
    assert_eq!(lane.way(&lane.base).unwrap().left.len(), 3);
    assert_eq!(lane.way(third).unwrap().left, Vec::<String>::new());
}

#[test]
fn a_branch_that_lags_behind_where_the_run_began_has_no_commits_of_it() {
    let lane = Lane::new();
    lane.repo.git(&["merge", "-q", "longhaul/demo"]);
    lane.repo.git(&["commit", "-q", "--allow-empty", "-m", "after the merge"]);
    let base = lane.project.start(&lane.branch).unwrap().base;
    assert_eq!(lane.project.end_of(&lane.branch, &base).unwrap(), base);
    assert_eq!(lane.project.end_of(&lane.branch, &lane.base).unwrap(), lane.commits[2]);
    assert_eq!(lane.project.log(&lane.branch, &base, 10).unwrap(), []);
    let way = lane.project.way_back(&lane.branch, &base, &base).unwrap();
    assert_eq!((way.from, way.left), (base, vec![]));
}

#[test]
fn a_word_that_names_no_commit_of_the_run_is_refused_in_one_line() {
    let lane = Lane::new();
    let long = "a".repeat(41);
    for word in
        ["", "abc", &long, "--hard", "-f", "HEAD", "main", "longhaul/demo", "HEAD~1", "abcg", "a b\nc", "\u{1f600}"]
    {
        assert!(matches!(lane.way(word), Err(TreeError::NotAHash { .. })), "{word}");
        assert!(lane.refused(word).contains("longhaul log"), "{word}");
    }
    assert!(lane.refused(&"0".repeat(40)).contains("names nothing"));
    let tree = lane.repo.git(&["rev-parse", "main^{tree}"]);
    assert!(lane.refused(tree.trim()).contains("is no commit"));
    lane.repo.git(&["switch", "-q", "-c", "other"]);
    lane.repo.git(&["commit", "-q", "--allow-empty", "-m", "elsewhere"]);
    let other = lane.repo.git(&["rev-parse", "HEAD"]);
    assert!(lane.refused(other.trim()).contains("another branch"));
    // The run began at its first commit, so earlier commits are not its own.
    let later = lane.project.way_back(&lane.branch, &lane.commits[0], &lane.base).unwrap_err().to_string();
    assert!(later.contains("before the run began"), "{later}");
}

#[test]
fn the_beginning_of_two_commits_is_ambiguous() {
    let repo = Repo::with(&[("a.txt", "zero")]);
    let (project, branch) = (repo.project(), Repo::branch());
    let base = project.head().unwrap();
    // Of a few hundred commits some two begin with the same four digits.
    let git = git2::Repository::open(repo.root()).unwrap();
    let who = git2::Signature::new("User", "user@localhost", &git2::Time::new(1_700_000_000, 0)).unwrap();
    let mut last = git.head().unwrap().peel_to_commit().unwrap();
    let mut seen = BTreeSet::new();
    let twice = (0..3_000).find_map(|number: u32| {
        let tree = last.tree().unwrap();
        let id = git.commit(None, &who, &who, &number.to_string(), &tree, &[&last]).unwrap();
        last = git.find_commit(id).unwrap();
        let short = id.to_string()[..4].to_owned();
        (!seen.insert(short.clone())).then_some(short)
    });
    let twice = twice.expect("there are 65 536 beginnings");
    repo.git(&["branch", "longhaul/demo", &last.id().to_string()]);
    let error = project.way_back(&branch, &base, &twice).unwrap_err();
    assert!(matches!(error, TreeError::Ambiguous { .. }), "{error}");
}

#[test]
fn going_back_moves_branch_and_tree_and_keeps_what_was() {
    let lane = Lane::new();
    let before = lane.repo.users_view();
    write(lane.tree.dir(), "loose.txt", "in no commit");
    let kept = lane.revert(&lane.commits[0]);
    assert_eq!(kept, "refs/longhaul/reverted/r-1/1");
    assert_eq!(lane.tip(), lane.commits[0]);
    assert_eq!(lane.repo.git(&["rev-parse", &kept]).trim(), lane.commits[2]);
    assert_eq!(read(lane.tree.dir(), "a.txt"), "0");
    for gone in ["1.txt", "2.txt", "loose.txt"] {
        assert!(!lane.tree.dir().join(gone).exists(), "{gone}");
    }
    assert_eq!(lane.repo.users_view(), before, "the user's checkout and index are as they were");
    assert!(!lane.tree.dir().with_extension("ref-move").exists());

    let reverted = lane.project.log_reverted(&lane.branch, &lane.base, "r-1", 10).unwrap();
    let ids = |log: &[longhaul_worktree::Logged]| log.iter().map(|one| one.commit.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&reverted), [lane.commits[2].clone(), lane.commits[1].clone()]);
    // Once more, further back: the commits that were abandoned before are named once.
    assert_eq!(lane.revert(&lane.base), "refs/longhaul/reverted/r-1/2");
    let reverted = lane.project.log_reverted(&lane.branch, &lane.base, "r-1", 10).unwrap();
    assert_eq!(ids(&reverted), [&lane.commits[0], &lane.commits[2], &lane.commits[1]].map(Clone::clone));
    assert_eq!(lane.project.log(&lane.branch, &lane.base, 10).unwrap(), []);
}

#[test]
fn a_branch_that_somebody_looks_at_or_moved_stays() {
    let lane = Lane::new();
    let order = RevertOrder {
        branch: &lane.branch,
        from: &lane.commits[2],
        to: &lane.commits[0],
        keep_as: Some("refs/longhaul/reverted/r-1/1"),
    };
    lane.repo.git(&["switch", "-q", "longhaul/demo"]);
    let error = lane.tree.revert(&lane.project, &order, &no_hook).unwrap_err();
    assert!(matches!(error, TreeError::CheckedOut { .. }), "{error}");
    assert!(lane.project.check_movable(&lane.branch).is_err());
    lane.repo.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
    lane.repo.git(&["switch", "-q", "main"]);
    let error = lane.tree.revert(&lane.project, &order, &no_hook).unwrap_err();
    assert!(matches!(error, TreeError::BranchMoved { .. }), "{error}");
    assert_eq!(lane.repo.git(&["for-each-ref", "refs/longhaul/"]), "");
    assert_eq!(read(lane.tree.dir(), "a.txt"), "2");
}

#[test]
fn a_log_survives_any_subject() {
    let long = "x".repeat(10_240);
    let odd = "a | b\ttabbed \u{1b}[31mred\u{7} \u{1f600} 'q' \"q\"\n\nLonghaul-Feature: forged";
    let lane = Lane::of([
        odd,
        &long,
        "\n\nplain\n\nbody\n\nLonghaul-Feature: a\nLonghaul-Outcome: passing\nLonghaul-Run: r-1",
    ]);
    lane.repo.git(&["switch", "-q", "longhaul/demo"]);
    // Git itself would refuse none of these.
    lane.repo.git(&["commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", "by hand | \u{1}\u{2} \u{85} end"]);
    lane.repo.git(&["switch", "-q", "main"]);
    let log = lane.project.log(&lane.branch, &lane.base, 10).unwrap();
    let subjects: Vec<&str> = log.iter().map(|one| one.subject.as_str()).collect();
    let odd = "a | btabbed [31mred \u{1f600} 'q' \"q\"";
    assert_eq!(subjects, ["by hand | \u{1}\u{2} \u{85} end", "plain", &long, odd]);
    let (newest, plain, first) = (&log[0], &log[1], &log[3]);
    assert_eq!((&newest.feature, &newest.run), (&None, &None));
    let texts = [&plain.feature, &plain.outcome, &plain.run].map(|text| text.as_deref().unwrap_or_default());
    assert_eq!(texts, ["a", "passing", "r-1"]);
    assert_eq!(first.feature, None, "the trailer of a model stands above ours");
    assert_eq!(plain.at_ms, 1_700_000_000_000);
    assert_eq!(lane.project.log(&lane.branch, &lane.base, 1).unwrap().len(), 1);
    assert_eq!(lane.project.log(&Branch::new("none").unwrap(), &lane.base, 1).unwrap(), []);
}

/// Not a test but the child's main function: it does nothing unless a parent gave it a directory.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let point = std::env::var(KILL_AT).unwrap();
    go_back(Path::new(&dir), &move |at| {
        if at == point {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    });
}

/// The child's call, and the repeated call after its kill.
fn go_back(dir: &Path, hook: &dyn Fn(&'static str)) {
    let project = UserRepository::open(&dir.join("repo")).unwrap();
    let tree = dir.join("trees/r-1");
    let tree =
        Tree::checkout(&project, &tree, "never read", &longhaul_worktree::TreeCaps::default(), hook).unwrap().tree;
    let ends = read(dir, "ends");
    let (from, to) = ends.split_once(' ').unwrap();
    let keep_as = Some("refs/longhaul/reverted/r-1/1");
    let order = RevertOrder { branch: &Repo::branch(), from, to, keep_as };
    tree.revert(&project, &order, hook).unwrap();
}

#[test]
fn killed_anywhere_the_same_order_ends_in_the_same_place() {
    for point in [
        "git.before-keep-ref",
        "git.after-keep-ref",
        "git.before-ref-move",
        "git.after-ref-move",
        "tree.before-discard",
        "tree.before-restore-file",
        "tree.after-discard",
    ] {
        let lane = Lane::new();
        let dir = lane.repo.dir.path();
        let before = lane.repo.users_view();
        write(dir, "ends", &format!("{} {}", lane.commits[2], lane.commits[0]));
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["revert::child", "--exact", "--nocapture"])
            .env(DIR, dir)
            .env(KILL_AT, point)
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9), "{point} was not reached");
        // In between there is the old branch or the new one, and nothing is lost.
        assert!([&lane.commits[0], &lane.commits[2]].contains(&&lane.tip()), "{point}");
        go_back(dir, &no_hook);
        assert_eq!(lane.tip(), lane.commits[0], "{point}");
        assert_eq!(lane.repo.git(&["rev-parse", "refs/longhaul/reverted/r-1/1"]).trim(), lane.commits[2], "{point}");
        assert_eq!(read(lane.tree.dir(), "a.txt"), "0", "{point}");
        assert!(!lane.tree.dir().join("2.txt").exists(), "{point}");
        assert_eq!(lane.repo.users_view(), before, "{point}");
        assert!(!dir.join("trees/r-1.ref-move").exists(), "{point}");
    }
}
