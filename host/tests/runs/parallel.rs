//! Sessions side by side, and people beside them: each works in a tree of its own, what comes to the
//! branch meanwhile is brought in and judged again, and a kill changes nothing of it.

use crate::common::fake::Kill;
use crate::common::lab::{Lab, Ran};
use crate::common::outcome::leftovers;
use crate::common::{DOER_CONFIG, Printed, Random, answer_if_asked, answers_printed, number, printed, refused};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Three features that do not know of each other.
const APART: &str = r#"# Apart

## Feature: the first
- id: one
- check: wrote_one

Do it.

## Feature: the fourth
- id: four
- check: wrote_four

Do it, too.

## Feature: the fifth
- id: five

And this.

```python check has_five
assert "written five-1" in open("/work/five.txt").read()
```
"#;

fn lab(parallel_max: u32) -> Lab {
    Lab::new(&format!("{DOER_CONFIG}parallel_max = {parallel_max}\n"), APART)
}

fn types(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == kind).collect()
}

/// The subjects of the branch, oldest first, without the start.
fn subjects(lab: &Lab) -> Vec<String> {
    let said = lab.git(&["log", "--reverse", "--format=%s", "longhaul/kept"]);
    said.lines().skip(1).map(str::to_owned).collect()
}

fn file(lab: &Lab, name: &str) -> String {
    lab.git(&["show", &format!("longhaul/kept:{name}")])
}

/// Checks the end of a run, in which the order does not matter: every feature passes, has its file, posted once, and
/// replays.
#[track_caller]
fn all_is_done(lab: &Lab, what: &str) {
    let status = lab.newest().expect("a run");
    assert_eq!(status["status"], "completed", "{what}: {status:#}");
    assert_eq!(subjects(lab).into_iter().collect::<BTreeSet<_>>().len(), 3, "{what}: {:?}", subjects(lab));
    for id in ["one", "four", "five"] {
        let text = file(lab, &format!("{id}.txt"));
        assert!(text.starts_with(&format!("written {id}-1: ")), "{what}: {text}");
    }
    let posts: Vec<_> = lab.fake.posts().into_iter().map(|told| told.text).collect();
    let once: BTreeSet<_> = posts.iter().collect();
    assert_eq!(posts.len(), once.len(), "{what}: {posts:?}");
    assert_eq!(leftovers(lab), Vec::<String>::new(), "{what}");
    lab.run(&["replay"]).expect(0);
}

#[test]
fn features_that_do_not_wait_for_each_other_are_built_side_by_side() {
    let lab = lab(3);
    lab.run(&["run"]).expect(0);
    all_is_done(&lab, "undisturbed");
    let starts: Vec<u64> = types(&lab, "session_starting").iter().filter_map(|it| it["number"].as_u64()).collect();
    let ends: Vec<u64> = types(&lab, "session_complete").iter().filter_map(|it| it["number"].as_u64()).collect();
    assert_eq!((starts.len(), ends.len()), (3, 3));
    assert!(starts.iter().max() < ends.iter().min(), "all began before one ended: {starts:?} {ends:?}");
}

#[test]
fn a_kill_beside_others_loses_and_repeats_nothing() {
    let reference = lab(3);
    let log = reference.path("points");
    reference.start_with(&["run"], &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).wait().expect(0);
    let points = std::fs::read_to_string(&log).expect("points were reached");
    let names: BTreeSet<&str> = points.lines().filter_map(|point| Some(point.rsplit_once(':')?.0)).collect();
    let merges = names.iter().filter(|name| name.contains("merge")).count();
    assert!(merges > 0, "the second commit needs a merge: {names:?}");
    let interesting = |name: &&str| {
        ["tree.", "git.", "invocation.", "work."].iter().any(|start| name.starts_with(start)) || name.contains("commit")
    };
    let all = std::env::var_os("LONGHAUL_CRASH_ALL").is_some();
    let chosen: Vec<String> = names
        .into_iter()
        .filter(interesting)
        .flat_map(|name| if all { (1..=4).collect() } else { vec![2] }.into_iter().map(move |n| format!("{name}:{n}")))
        .collect();
    let mut killed = 0;
    for point in &chosen {
        let lab = lab(3);
        let first = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        killed += u32::from(first.was_killed());
        bring_to_end(&lab, point);
        all_is_done(&lab, point);
    }
    println!("killed at {killed} of {} points beside others", chosen.len());
    assert!(killed > 10, "the points are reached: {killed} of {chosen:?}");
}

fn bring_to_end(lab: &Lab, what: &str) {
    for _ in 0..20 {
        lab.fake.settle();
        let newest = lab.newest();
        if newest.as_ref().is_some_and(|status| status["status"] == "completed") {
            return;
        }
        answer_if_asked(lab);
        let ran: Ran = lab.run(if newest.is_none() { &["run"] } else { &["resume"] });
        assert!(matches!(ran.code(), Some(0 | 5)), "killed at {what}, then: {}", ran.said());
    }
    panic!("killed at {what}: it does not end");
}

/// A run of three sessions, killed while each has a post on its way, and resumed: it waits with three questions.
fn three_in_flight() -> (Lab, Ran) {
    let lab = lab(3);
    lab.fake.posts_take(Duration::from_secs(4));
    let mut started = lab.start(&["run"]);
    while lab.fake.posts().len() < 3 {
        assert!(started.is_running(), "{}", started.printed());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(started.kill());
    started.wait();
    lab.fake.posts_take(Duration::ZERO);
    let resumed = lab.run(&["resume"]).expect(5);
    (lab, resumed)
}

#[test]
fn an_answer_that_could_be_for_several_effects_is_kept_for_none_and_each_is_answered_as_printed() {
    let (lab, resumed) = three_in_flight();
    let told = answers_printed(&lab, &resumed.stdout);
    assert_eq!(told.len(), 3, "each question comes with its own command: {}", resumed.said());
    let status = lab.newest().expect("a run");
    let run = status["run"].as_str().expect("a name");
    let refusal = lab.run(&["answer", run, "--did-not-happen"]);
    let ids: Vec<&str> =
        status["questions"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "{status:#}");
    refused(&refusal, &[&["nothing was kept", "--question"][..], &ids].concat());
    assert_eq!(lab.newest().expect("a run"), status, "nothing was kept");

    let said = lab.run(&["status", run]).expect(0).stdout;
    let answers = answers_printed(&lab, &said);
    assert_eq!(answers.len(), 3, "{said}");
    for (answer, left) in answers.iter().zip([2, 1, 0]) {
        let ran = answer.run(&lab).expect(0);
        assert_eq!(answers_printed(&lab, &ran.stdout).len(), left, "{}", ran.said());
        // The same command once more answers no other question.
        assert_eq!(answer.run(&lab).code(), Some(1));
    }
    let last = lab.run(&["status", run]).expect(0).stdout;
    for resume in printed(&last, "go on with: ") {
        resume.run(&lab).expect(0);
    }
    all_is_done(&lab, "three questions");
}

#[test]
fn an_answer_can_be_taken_back_until_the_run_has_used_it() {
    let (lab, _) = three_in_flight();
    let run = lab.newest().expect("a run")["run"].as_str().expect("a name").to_owned();
    let feature = |id: &str, what: &str| lab.run(&["answer", &run, "--feature", id, what]);
    refused(&feature("one", "--take-back"), &["no answer that could be taken back"]);
    let asked = lab.newest().expect("a run")["questions"].clone();
    // A slip: each of them happened.
    let slip = feature("one", "--did-not-happen").expect(0);
    let undo = printed(&slip.stdout, "taken back: ");
    undo.first().unwrap_or_else(|| panic!("{}", slip.said())).run(&lab).expect(0);
    let again = lab.newest().expect("a run");
    assert_eq!(again["status"], "parked");
    assert_eq!(again["questions"].as_array().map(Vec::len), asked.as_array().map(Vec::len), "{again:#}");
    for answer in answers_printed(&lab, &lab.run(&["status"]).expect(0).stdout) {
        answer.run(&lab).expect(0);
    }
    bring_to_end(&lab, "an answer that was taken back");
    all_is_done(&lab, "an answer that was taken back");
    refused(&feature("one", "--take-back"), &["no answer that could be taken back"]);
}

/// Kills at random moments, among them moments of a person's answer; then nothing is done but what is printed.
#[test]
fn what_is_printed_after_kills_of_three_sessions_leads_to_the_end_and_sends_nothing_twice() {
    let wanted: u32 = number("LONGHAUL_KILLS").unwrap_or(6);
    let seed: u64 = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed} LONGHAUL_KILLS={wanted}");
    let reference = lab(3);
    // Compiles, which the runs below do not.
    reference.run(&["check"]).expect(0);
    let since = Instant::now();
    reference.run(&["run"]).expect(0);
    let takes = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    let expected: BTreeSet<String> = reference.fake.posts().into_iter().map(|told| told.text).collect();
    let (mut kills, mut asked, mut number) = (0, 0, 0);
    while kills < wanted {
        number += 1;
        let what = format!("LONGHAUL_SEED={seed}, run {number}");
        let mut random = Random::new(seed, number);
        let lab = lab(3);
        // So that several are on their way at many of the moments.
        lab.fake.posts_take(Duration::from_millis(random.below(250)));
        let mut kills_left = 1 + random.below(5);
        let mut ended = false;
        for _ in 0..PRINTED_MAX {
            let said = lab.run(&["status"]);
            let answers = answers_printed(&lab, &said.stdout);
            asked += answers.len();
            let mut next = if said.stderr.contains("no run of") {
                vec![Printed { args: vec!["run".to_owned()] }]
            } else if answers.is_empty() {
                printed(&said.stdout, "go on with: ")
            } else {
                answers
            };
            if next.is_empty() {
                assert!(said.stdout.contains("completed"), "{what}: nothing to type after\n{}", said.said());
                ended = true;
                break;
            }
            let is_answer = next[0].args[0] == "answer";
            for command in next.drain(..) {
                let mut started = lab.start_command(command.command(&lab));
                if kills_left > 0 && (!is_answer || random.below(4) == 0) {
                    let most = if is_answer { 60_000 } else { takes };
                    let moment = Instant::now() + Duration::from_micros(random.below(most));
                    while Instant::now() < moment && started.is_running() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    started.kill();
                    kills_left -= 1;
                }
                let ran = started.wait();
                kills += u32::from(ran.was_killed());
                let is_well = ran.was_killed() || matches!(ran.code(), Some(0 | 5));
                assert!(is_well, "{what}: {:?}\n{}", command.args, ran.said());
                lab.fake.settle();
            }
        }
        assert!(ended, "{what}: it is stuck\n{}", lab.run(&["status"]).said());
        let posts: Vec<String> = lab.fake.posts().into_iter().map(|told| told.text).collect();
        let once: BTreeSet<String> = posts.iter().cloned().collect();
        assert_eq!(posts.len(), once.len(), "{what}: sent twice: {posts:?}");
        assert_eq!(once, expected, "{what}");
        all_is_done(&lab, &what);
    }
    println!("kills survived: {kills}, in {number} runs, with {asked} questions; sent twice: 0, stuck: 0");
}

/// Commands after which a run that has not ended is taken to be stuck.
const PRINTED_MAX: usize = 60;

/// A run that was killed while its only agent was at work, with the branch one commit further.
fn killed_and_overtaken(name: &str, text: &str) -> Lab {
    let lab = lab(1);
    let started = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "post", number: 1, happens: false });
    assert!(started.wait().was_killed());
    lab.fake.settle();
    lab.git(&["switch", "--quiet", "-c", "longhaul/kept"]);
    std::fs::write(lab.project().join(name), text).expect("ours");
    lab.git(&["add", "--all"]);
    lab.git(&["commit", "--quiet", "--message", "by a person"]);
    lab.git(&["switch", "--quiet", "-"]);
    answer_if_asked(&lab);
    lab
}

#[test]
fn what_a_person_commits_meanwhile_is_kept_and_judged_with_the_work() {
    let lab = killed_and_overtaken("theirs.txt", "mine\n");
    bring_to_end(&lab, "their commit");
    assert_eq!(file(&lab, "theirs.txt"), "mine\n");
    assert_eq!(subjects(&lab)[0], "by a person");
    let judged: Vec<_> = types(&lab, "judged").iter().map(|event| event["task"].clone()).collect();
    assert_eq!(judged.iter().filter(|feature| *feature == "one").count(), 2, "again on what is there now: {judged:?}");
    lab.run(&["replay"]).expect(0);
}

#[test]
fn work_on_the_same_lines_is_sent_back_and_the_persons_change_wins() {
    let lab = killed_and_overtaken("one.txt", "written by a person\n");
    bring_to_end(&lab, "a conflict");
    let why =
        types(&lab, "feature").iter().map(|event| event["payload"]["why"].to_string()).collect::<Vec<_>>().join("\n");
    assert!(why.contains("the branch changed the same lines of `one.txt`"), "{why}");
    assert!(file(&lab, "one.txt").starts_with("written one-1"), "built again, on theirs");
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
}

#[test]
fn a_person_edits_a_file_between_two_sessions_and_the_agent_finds_it_so() {
    let lab = lab(1);
    let started = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "post", number: 3, happens: false });
    assert!(started.wait().was_killed());
    lab.fake.settle();
    let run = lab.newest().expect("a run")["run"].as_str().expect("a name").to_owned();
    std::fs::write(lab.home().join("trees").join(run).join("note.txt"), "from a person\n").expect("ours");
    bring_to_end(&lab, "their edit");
    assert_eq!(file(&lab, "note.txt"), "from a person\n");
}

#[test]
fn a_revert_loses_no_work_of_sessions_side_by_side() {
    let lab = lab(3);
    let started = lab.start(&["run"]);
    // At least two have written their files, and none has passed.
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "post", number: 3, happens: false });
    assert!(started.wait().was_killed());
    lab.fake.settle();
    lab.run(&["pause"]).expect(0);
    let base = lab.git(&["rev-parse", "main"]);
    let refusal = lab.run(&["revert", "--to", base.trim()]);
    refused(&refusal, &["in no commit", "--stash"]);
    let written: Vec<_> =
        ["one", "four", "five"].into_iter().filter(|id| refusal.stderr.contains(&format!("`{id}.txt`"))).collect();
    assert!(written.len() >= 2, "{}", refusal.said());
    let ran = lab.run(&["revert", "--to", base.trim(), "--stash"]).expect(0);
    let run = lab.newest().expect("a run")["run"].as_str().expect("a name").to_owned();
    for feature in written {
        assert!(ran.stdout.contains(&format!("features {run} kept {feature}")), "{}", ran.said());
        let kept = lab.run(&["features", &run, "kept", feature]).expect(0).stdout;
        assert!(kept.contains(&format!("written {feature}-1")), "{kept}");
    }
    bring_to_end(&lab, "a revert");
    all_is_built(&lab);
}

#[test]
fn a_revert_after_sessions_side_by_side_finds_nothing_loose_in_trees_that_others_passed_by() {
    let lab = lab(3);
    lab.run(&["run"]).expect(0);
    let first = lab.git(&["log", "--reverse", "--format=%H", "main..longhaul/kept"]);
    lab.run(&["revert", "--to", first.lines().next().expect("a commit")]).expect(0);
    lab.run(&["resume"]).expect(0);
    all_is_built(&lab);
}

/// Each feature is in the branch, whatever was told to the world on the way.
#[track_caller]
fn all_is_built(lab: &Lab) {
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    for id in ["one", "four", "five"] {
        assert!(file(lab, &format!("{id}.txt")).starts_with(&format!("written {id}-1: ")));
    }
}
