//! Runs whose machine dies: another one, or the same one without its trees, goes on with the files and commits that the
//! database has of them.

use crate::common::fake::Kill;
use crate::common::lab::Lab;
use crate::common::outcome::Outcome;
use crate::common::{DOER_CONFIG, answer_if_asked, refused};
use crate::postgres::{run_once_free, two_homes};
use crate::postgres_server::PostgresServer;
use crate::{TWO, list};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The points at which a machine dies: files that are in no commit yet, a commit that nothing tells of, and a step that
/// is not stored.
const POINTS: [&str; 3] = ["tool.after-call", "git.after-ref-move", "work.end"];

/// Starts after which a run that still goes on is taken to go on for ever.
const STARTS_MAX: usize = 20;

#[test]
fn a_run_whose_machine_dies_goes_on_at_another_one_as_if_it_had_not() {
    let (reference, kills) = reference();
    for kill in kills {
        let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
        let other = two_homes(&lab, &server);
        let clone = lab.path("clone");
        copy(&lab.project().join(".git"), &clone);
        killed(&lab, &kill);
        // A clone of before the run is what the other machine has.
        fs::remove_dir_all(lab.project().join(".git")).expect("ours");
        copy(&clone, &lab.project().join(".git"));
        forget_trees(&lab);
        ends_alike(&lab, &other, &kill, &reference);
    }
}

#[test]
fn a_run_whose_tree_was_removed_gets_the_files_again_that_its_answers_tell_of() {
    let (reference, kills) = reference();
    let kill = &kills[0];
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let _other = two_homes(&lab, &server);
    killed(&lab, kill);
    forget_trees(&lab);
    ends_alike(&lab, &lab.home(), kill, &reference);
}

#[test]
fn a_run_waits_for_its_machine_where_its_tree_cannot_be_made_and_goes_on_anywhere_once_it_rests() {
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let other = two_homes(&lab, &server);
    let owner = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: owner.pid(), kind: "model", number: 1, happens: true });
    assert!(owner.wait().was_killed());
    lab.fake.settle();
    let (repository, aside) = (lab.project().join(".git"), lab.path("aside"));
    fs::rename(&repository, &aside).expect("ours");
    let resumed = run_once_free(&lab, &other, &["resume"]);
    let place = format!("is in `{}` on ", lab.home().display());
    refused(&resumed, &["the tree of run ", &place, "is no clone of its repository", "longhaul abandon"]);
    fs::rename(&aside, &repository).expect("ours");
    lab.run(&["resume", "--sessions", "1"]).expect(4);
    assert!(!other.join("trees").read_dir().is_ok_and(|mut trees| trees.next().is_some()), "none was made there");
    lab.run_at(&other, &["resume"]).expect(0);
    let runs = lab.json(&["runs"]);
    assert_eq!(list(&runs, "items")[0]["status"], "completed", "{runs:#}");
}

#[test]
fn a_run_goes_on_elsewhere_without_the_commits_that_it_took_back() {
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let other = two_homes(&lab, &server);
    lab.run(&["run"]).expect(0);
    let branch = lab.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/longhaul/"]);
    let range = format!("main..{}", branch.trim());
    let commits = || -> Vec<String> {
        lab.git(&["log", "--reverse", "--format=%H", &range]).lines().map(str::to_owned).collect()
    };
    let made = commits();
    let [first, second] = made.as_slice() else { panic!("two commits: {made:?}") };
    let (repository, clone) = (lab.project().join(".git"), lab.path("clone"));
    copy(&repository, &clone);
    lab.run(&["revert", "--to", first]).expect(0);
    // The other machine fetched the branch before.
    fs::remove_dir_all(&repository).expect("ours");
    copy(&clone, &repository);
    lab.run_at(&other, &["resume"]).expect(0);
    let rebuilt = commits();
    assert_eq!((rebuilt.len(), &rebuilt[0]), (2, first));
    assert_ne!(&rebuilt[1], second);
}

/// The traces of a run that nothing ends, and the middle one of each of the points.
fn reference() -> (Outcome, Vec<String>) {
    let lab = Lab::new(DOER_CONFIG, TWO);
    let log = lab.path("points");
    lab.start_with(&["run"], &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).wait().expect(0);
    let reached = fs::read_to_string(&log).expect("points were reached");
    let middle = |name: &&str| {
        let count = reached.lines().filter(|line| line.starts_with(&format!("{name}:"))).count();
        assert!(count > 0, "{name} is not reached");
        format!("{name}:{}", count.div_ceil(2))
    };
    (Outcome::of(&lab), POINTS.iter().map(middle).collect())
}

fn killed(lab: &Lab, kill: &str) {
    let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", kill)]).wait();
    assert!(killed.was_killed(), "{kill}: {}", killed.said());
    lab.fake.settle();
}

fn forget_trees(lab: &Lab) {
    fs::remove_dir_all(lab.home().join("trees")).expect("it had some");
}

/// Brings the run to its end with that data directory, and compares what it leaves.
#[track_caller]
fn ends_alike(lab: &Lab, home: &Path, kill: &str, reference: &Outcome) {
    for _ in 0..STARTS_MAX {
        let status = answer_if_asked(lab).expect("a run");
        if status["status"] == "completed" {
            break;
        }
        let ran = run_once_free(lab, home, &["resume"]);
        assert!(matches!(ran.code(), Some(0 | 5)), "killed at {kill}: {:?}\n{}", ran.status, ran.said());
    }
    assert_eq!(Outcome::of(lab), *reference, "killed at {kill}");
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp").success());
}
