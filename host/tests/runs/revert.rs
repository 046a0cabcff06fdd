//! Going back: branch, tree, features, decisions and progress go together, nothing is lost, and a kill leaves no half
//! of it.

use crate::common::lab::Lab;
use crate::common::outcome::{decisions, leftovers};
use crate::common::{DOER_CONFIG, refused};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- depends on: one\n- check: has_two\n\nDo it, too.\n";

/// A run of two features that both pass.
fn completed() -> Lab {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.run(&["run"]).expect(0);
    lab
}

/// The commits of the branch after the base, oldest first.
fn commits(lab: &Lab) -> Vec<String> {
    lab.git(&["log", "--reverse", "--format=%H", "main..longhaul/kept"]).lines().map(str::to_owned).collect()
}

fn tip(lab: &Lab) -> String {
    lab.git(&["rev-parse", "longhaul/kept"]).trim().to_owned()
}

fn features(lab: &Lab) -> Vec<(String, String, String)> {
    let status = lab.newest().expect("a run");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |feature: &Value| (text(&feature["id"]), text(&feature["status"]), text(&feature["reason"]));
    status["features"].as_array().expect("a list").iter().map(of).collect()
}

/// `PATH` in the tree of the newest run.
fn in_tree(lab: &Lab, path: &str) -> std::path::PathBuf {
    let run = lab.runs().pop().expect("a run");
    lab.home().join("trees").join(run).join(path)
}

#[test]
fn a_completed_run_goes_back_and_builds_again_what_it_left() {
    let lab = completed();
    let run = lab.runs().pop().expect("a run");
    let made = commits(&lab);
    let [first, second] = made.as_slice() else { panic!("two commits: {made:?}") };
    let users = lab.git(&["status", "--porcelain", "--branch"]);
    let log = lab.json(&["log"]);
    let logged: Vec<&Value> = log["commits"].as_array().expect("a list").iter().collect();
    assert_eq!([&logged[0]["commit"], &logged[1]["commit"]], [second, first]);
    assert_eq!((&logged[0]["feature"], &logged[0]["outcome"]), (&"two".into(), &"passing".into()));
    assert_eq!(logged[0]["run"], run.as_str());

    let ran = lab.run(&["revert", "--to", &first[..8]]).expect(0);
    let kept = format!("refs/longhaul/reverted/{run}/1");
    for words in [&first[..10], &kept, "two", "longhaul resume"] {
        assert!(ran.stdout.contains(words), "no `{words}` in {}", ran.said());
    }
    assert_eq!(tip(&lab), *first);
    assert_eq!(lab.git(&["rev-parse", &kept]).trim(), second, "what was left behind is reachable");
    let why = format!("reverted to {}", &first[..10]);
    let expected = [("one", "passing", "all checks passed"), ("two", "not_started", why.as_str())];
    assert_eq!(features(&lab), expected.map(|(id, status, why)| (id.into(), status.into(), why.into())));
    assert_eq!(lab.newest().expect("a run")["status"], "paused");
    assert!(in_tree(&lab, "one.txt").exists() && !in_tree(&lab, "two.txt").exists());
    assert_eq!(lab.git(&["status", "--porcelain", "--branch"]), users, "the user's checkout is as it was");
    let outcomes: BTreeSet<String> = decisions(&lab, &run).iter().map(|line| words(line, 1, 2)).collect();
    assert!(outcomes.contains(r#""two" "reverted""#) && outcomes.contains(r#""one" "success""#), "{outcomes:?}");
    assert_eq!(lab.json(&["log"])["commits"].as_array().map(Vec::len), Some(1));
    assert_eq!(lab.json(&["log", "--reverted"])["commits"][0]["commit"], second.as_str());
    let entries = lab.json(&["journal", "--invocation", "revert/1"]);
    assert_eq!(entries["entries"][0]["name"], "git.revert", "{entries}");
    refused(&lab.run(&["run"]), &["is paused", "longhaul resume"]);
    // The branch is at that commit already.
    let again = lab.run(&["revert", "--to", first]).expect(0);
    assert!(again.stdout.contains("already"), "{}", again.said());
    assert_eq!(lab.git(&["for-each-ref", "refs/longhaul/"]).lines().count(), 1);

    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    let rebuilt = commits(&lab);
    assert_eq!((rebuilt.len(), &rebuilt[0]), (2, first));
    assert_ne!(&rebuilt[1], second);
    assert_eq!(leftovers(&lab), Vec::<String>::new());
    lab.run(&["replay"]).expect(0);
}

/// Words `from` to `to` of a line.
fn words(line: &str, from: usize, to: usize) -> String {
    line.split(' ').collect::<Vec<_>>()[from..=to].join(" ")
}

#[test]
fn a_word_that_is_no_commit_of_the_run_is_refused_in_one_line() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    lab.run(&["run"]).expect(0);
    let before = (tip(&lab), lab.newest());
    let long = "a".repeat(41);
    let older = lab.git(&["rev-parse", "main~1"]);
    for word in ["--hard", "-1", "--stash", "", "abc", "HEAD", "main", "@{1}", "../x", "zzzz", &long] {
        refused(&lab.run(&["revert", "--to", word]), &["is not the name of a commit", "longhaul log"]);
    }
    refused(&lab.run(&["revert", "--to", &"0".repeat(40)]), &["names nothing"]);
    refused(&lab.run(&["revert", "--to", older.trim()]), &["before the run began"]);
    refused(&lab.run(&["revert", "--to", &before.0, "--run", "r-gone"]), &["no run `r-gone`"]);
    lab.git(&["switch", "-q", "longhaul/kept"]);
    refused(&lab.run(&["revert", "--to", &commits(&lab)[0]]), &["checked out", "git switch -"]);
    lab.git(&["switch", "-q", "main"]);
    assert_eq!((tip(&lab), lab.newest()), before, "nothing changed");
    // Without a commit there is nothing to say.
    lab.run(&["revert"]).expect(2);
}

#[test]
fn work_that_is_in_no_commit_is_named_and_kept_when_asked() {
    let lab = completed();
    let made = commits(&lab);
    fs::write(in_tree(&lab, "loose.txt"), "by hand").expect("ours");
    let before = lab.newest();
    refused(&lab.run(&["revert", "--to", &made[0]]), &["in no commit", "`loose.txt`", "--stash"]);
    assert_eq!((tip(&lab), lab.newest()), (made[1].clone(), before));
    assert!(in_tree(&lab, "loose.txt").exists());

    let ran = lab.run(&["revert", "--to", &made[0], "--stash"]).expect(0);
    assert!(ran.stdout.contains("kept revert-1"), "{}", ran.said());
    assert!(!in_tree(&lab, "loose.txt").exists());
    let kept = lab.json(&["features", "kept", "revert-1"]);
    assert_eq!(kept["files"]["loose.txt"]["text"], "by hand", "{kept}");
    refused(&lab.run(&["features", "kept", "gone"]), &["kept nothing under `gone`"]);
    // The tree alone.
    fs::write(in_tree(&lab, "one.txt"), "spoilt").expect("ours");
    lab.run(&["revert", "--to", &made[0], "--stash"]).expect(0);
    assert!(fs::read_to_string(in_tree(&lab, "one.txt")).expect("there").contains("written one-1"));
    assert_eq!(lab.json(&["features", "kept", "revert-2"])["files"]["one.txt"]["text"], "spoilt");
    lab.run(&["resume"]).expect(0);
}

#[test]
fn a_run_that_works_is_paused_first_and_what_was_under_way_is_begun_anew() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.fake.model_takes(Duration::from_millis(400));
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on two");
    let first = commits(&lab).remove(0);
    refused(&lab.run(&["revert", "--to", &first]), &["is working", "longhaul pause"]);
    owner.interrupt();
    owner.wait().expect(4);
    lab.fake.model_takes(Duration::ZERO);
    lab.run(&["revert", "--to", &first, "--stash"]).expect(0);
    // A commit that the run began at is as good as any other.
    let base = lab.git(&["rev-parse", "main"]);
    lab.run(&["revert", "--to", base.trim(), "--stash"]).expect(0);
    let not_started = |(_, status, _): &(String, String, String)| status == "not_started" || status == "blocked";
    assert!(features(&lab).iter().all(not_started), "{:?}", features(&lab));
    assert_eq!(tip(&lab), base.trim());
    lab.run(&["resume"]).expect(0);
    assert_eq!(commits(&lab).len(), 2);
    assert_eq!(leftovers(&lab), Vec::<String>::new());
}

/// True when all of a revert happened, or none of it.
#[track_caller]
fn is_whole(lab: &Lab, point: &str, first: &str) -> bool {
    // The first command afterwards finishes what was begun.
    let status = lab.newest().expect("a run");
    let happened = status["status"] == "paused";
    let statuses: Vec<String> = features(lab).into_iter().map(|(_, status, _)| status).collect();
    let expected = if happened { ["passing", "not_started"] } else { ["passing", "passing"] };
    assert_eq!(statuses, expected, "killed at {point}");
    assert_eq!(tip(lab) == first, happened, "killed at {point}: the branch goes with the features");
    assert_eq!(in_tree(lab, "two.txt").exists(), !happened, "killed at {point}: the tree goes with the branch");
    assert_eq!(leftovers(lab), Vec::<String>::new(), "killed at {point}");
    happened
}

#[test]
fn a_revert_that_is_killed_anywhere_happened_whole_or_not_at_all() {
    let lab = completed();
    let first = commits(&lab).remove(0);
    let log = lab.path("points");
    let args = ["revert", "--to", &first];
    let revert = |environment: &[(&str, &str)]| lab.start_with(&args, environment).wait();
    revert(&[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).expect(0);
    lab.run(&["resume"]).expect(0);
    let points = fs::read_to_string(&log).expect("points were reached");
    let mut killed = BTreeSet::new();
    for point in points.lines() {
        let ran = revert(&[("LONGHAUL_CRASH_AT", point)]);
        if !ran.was_killed() {
            // How often an idle store makes itself quick to open depends on the time.
            lab.run(&["resume"]).expect(0);
            continue;
        }
        killed.insert(point.rsplit_once(':').expect("a count").0.to_owned());
        // To finish it is a place to be killed at as well.
        lab.start_with(&["status"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        if !is_whole(&lab, point, &first) {
            revert(&[]).expect(0);
            assert!(is_whole(&lab, point, &first));
        }
        lab.run(&["resume"]).expect(0);
        assert_eq!(lab.newest().expect("a run")["status"], "completed", "killed at {point}");
    }
    for name in ["revert.noted", "revert.moved", "git.after-keep-ref", "git.after-ref-move", "tree.before-restore-file"]
    {
        assert!(killed.contains(name), "{name} of {killed:?}");
    }
    println!("reverts that were killed: {} names of points, {killed:?}", killed.len());
}

#[test]
fn a_log_shows_any_subject_on_its_line() {
    let lab = completed();
    lab.git(&["switch", "-q", "longhaul/kept"]);
    let long = "x".repeat(10_240);
    for subject in ["a | b \u{1b}[31mred\u{7} \u{1f600}", &long] {
        lab.git(&["commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", subject]);
    }
    lab.git(&["switch", "-q", "main"]);
    let shown = lab.run(&["log"]).expect(0).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 5, "four commits and where it began: {shown}");
    assert!(lines[1].contains("a | b \\u001b[31mred\\u0007 \u{1f600}") && lines[0].len() < 200, "{shown}");
    assert!(lines[2].contains("two  passing") && lines[4].contains("the run began here"), "{shown}");
    let log = lab.json(&["log", "--limit", "1"]);
    assert_eq!(log["commits"][0]["subject"], long.as_str());
    assert_eq!(log["commits"].as_array().map(Vec::len), Some(1));
}
