//! Forks: a run goes on from a point of another one, on a branch of its own. What had ended is not done again, the other
//! run stays as it was, and a kill leaves no half of a fork.

use crate::common::gated::{answer, the_open};
use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, refused};
use serde_json::Value;
use std::fs;

const TWO: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- depends on: one\n- check: has_two\n\nDo it, too.\n";

const ONE: &str = "# One\n\n## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n";

/// A second model, which no part asks for.
const OTHER: &str =
    "[models.other]\nprovider = \"openai\"\nid = \"other\"\nbase_url = \"http://{server}/v1\"\n\n[agents.code]";

/// A completed run, and its name.
fn completed(goal: &str) -> (Lab, String) {
    let lab = Lab::new(&DOER_CONFIG.replacen("[agents.code]", OTHER, 1), goal);
    lab.run(&["run"]).expect(0);
    let run = lab.runs().pop().expect("a run");
    (lab, run)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

fn tip(lab: &Lab, branch: &str) -> String {
    lab.git(&["rev-parse", branch]).trim().to_owned()
}

/// How often the server was told this text.
fn posts(lab: &Lab, text: &str) -> usize {
    lab.fake.posts().iter().filter(|told| told.text == text).count()
}

/// All that the store has of a run, as an export takes it.
fn stored(lab: &Lab, run: &str, name: &str) -> [Value; 3] {
    let file = lab.path(name);
    lab.run(&["checkpoint", "export", run, "--output", file.to_str().expect("text")]).expect(0);
    let whole: Value = serde_json::from_slice(&fs::read(file).expect("written")).expect("JSON");
    ["rows", "content", "files"].map(|part| whole[part].clone())
}

fn journal(lab: &Lab, run: &str, key: &str) -> Value {
    lab.json(&["journal", run, "--invocation", key])
}

/// The point of the first entry of a journal whose call begins so.
fn entry(lab: &Lab, run: &str, key: &str, call: &str) -> String {
    let journal = journal(lab, run, key);
    let entries = journal["entries"].as_array().expect("a list");
    let found = entries.iter().find(|entry| entry["summary"].as_str().is_some_and(|summary| summary.starts_with(call)));
    format!("entry:{key}:{}", found.unwrap_or_else(|| panic!("no `{call}`: {journal:#}"))["number"])
}

fn fork(lab: &Lab, run: &str, args: &[&str]) -> (String, Value) {
    let made = lab.json(&[&["fork", run, "--yes"], args].concat());
    (text(&made["run"]), made["plan"].clone())
}

#[test]
fn a_fork_goes_on_from_its_point_and_its_parent_stays_as_it_was_and_may_go() {
    let (lab, parent) = completed(TWO);
    let before = (stored(&lab, &parent, "before"), tip(&lab, "longhaul/kept"));
    let first = text(&lab.json(&["log"])["commits"][1]["commit"]);

    // At a feature, with another model.
    let (other, plan) = fork(&lab, &parent, &["--at", "feature:two", "--model", "other"]);
    assert_eq!((&plan["commit"], &plan["passing"]["done"]), (&first.as_str().into(), &1.into()), "{plan:#}");
    let effects = plan["later_effects"].as_array().expect("a list");
    assert!(effects.iter().any(|one| one["effect"] == "acts" && one["call"] == "poster.post"), "{plan:#}");
    let status = lab.json(&["status", &other]);
    assert_eq!((&status["status"], &status["branch"]), (&"paused".into(), &"longhaul/kept-fork-1".into()));
    assert_eq!(status["fork"]["parent"], parent.as_str(), "{status:#}");
    assert!(status["fork"]["inherited_usage"]["model_calls"].as_u64() > Some(0), "{status:#}");
    assert_eq!(status["usage"]["input_tokens"], 0, "what the parent paid is not paid again");
    assert_eq!(tip(&lab, "longhaul/kept-fork-1"), first);
    assert!(!lab.fake.models().contains_key("other"));
    // What the parent posted later would be posted a second time.
    lab.run(&["resume", &other]).expect(5);
    assert_eq!((posts(&lab, "one-1-first"), posts(&lab, "two-1-first")), (1, 1));
    answer(&lab, &the_open(&lab), "a").expect(0);
    lab.run(&["resume", &other]).expect(0);
    assert!(lab.fake.models().contains_key("other"));
    assert_eq!((posts(&lab, "one-1-first"), posts(&lab, "two-1-first")), (1, 2));
    let commits = lab.git(&["log", "--reverse", "--format=%H", "main..longhaul/kept-fork-1"]);
    assert_eq!((commits.lines().count(), commits.lines().next()), (2, Some(first.as_str())));
    let compared = lab.json(&["compare", &parent, &other]);
    let first_of_fork = &compared["first_difference"];
    assert_eq!(first_of_fork["feature"], "two", "the shared past is the same: {first_of_fork:#}");

    // In the middle of an agent's work, with another answer of a tool.
    let look = entry(&lab, &parent, "f-one/1/generate", "poster.look");
    let edit = ["--at", look.as_str(), "--answer", "{\"look\":\"edited\"}", "--repeat-effects"];
    let (edited, plan) = fork(&lab, &parent, &edit);
    assert_eq!((&plan["shared"][0]["key"], &plan["shared"][0]["edited"]), (&"f-one/1/generate".into(), &true.into()));
    let begun = journal(&lab, &edited, "f-one/1/generate");
    assert!(begun["entries"].to_string().contains("edited"), "{begun:#}");
    assert_eq!((stored(&lab, &parent, "after"), tip(&lab, "longhaul/kept")), before, "the parent is as it was");

    // The parent goes, and the fork is whole.
    lab.run(&["run"]).expect(0);
    lab.run(&["gc", "--runs-older-than", "0s"]).expect(0);
    assert!(!lab.runs().contains(&parent), "it is deleted");
    assert_eq!(journal(&lab, &edited, "f-one/1/generate"), begun);
    let looks = || lab.fake.requests()["look"];
    let looked = looks();
    lab.run(&["resume", &edited]).expect(0);
    assert_eq!(looks(), looked + 1, "the second feature looks, and the first one has its answer");
    assert_eq!(posts(&lab, "one-1-first"), 2, "it came after the point, and may be repeated here");
    let result = text(&journal(&lab, &edited, "f-one/1/generate")["finished"]["result"]);
    assert!(result.contains("edited"), "{result}");
    assert_eq!(lab.json(&["status", &edited])["status"], "completed");
    lab.run(&["replay", &edited]).expect(0);
}

#[test]
fn a_fork_that_cannot_be_is_refused_and_a_kill_leaves_none_or_a_whole_one() {
    let (lab, run) = completed(ONE);
    let (run, runs) = (run.as_str(), lab.runs());
    let forked = |args: &[&str]| lab.run(&[&["fork", run], args].concat());
    refused(&forked(&["--at", "feature:nine", "--yes"]), &["has no feature `nine`"]);
    refused(&forked(&["--at", "event:99999", "--yes"]), &["no event 99999"]);
    refused(&forked(&["--at", "entry:f-one/1/generate:900", "--yes"]), &["entry 900", "was not answered"]);
    refused(&forked(&["--at", "time:2999-01-01", "--yes"]), &["nothing to do"]);
    refused(&forked(&["--at", "feature:one", "--answer", "1", "--yes"]), &["takes the place of one of an entry"]);
    refused(&forked(&["--at", "feature:one", "--model", "gone", "--yes"]), &["no [models.gone]", "fake, other"]);
    let look = entry(&lab, run, "f-one/1/generate", "poster.look");
    refused(&forked(&["--at", &look, "--answer", "two", "--yes"]), &["text goes in quotes"]);
    let post = entry(&lab, run, "f-one/1/generate", "poster.post");
    refused(&forked(&["--at", &post, "--yes"]), &["are not kept", "files.write", "tree_history"]);
    lab.git(&["branch", "longhaul/mine", "main"]);
    refused(&forked(&["--at", "feature:one", "--branch", "mine", "--yes"]), &["`longhaul/mine` is there already"]);
    refused(&forked(&["--at", "feature:one"]), &["no person can be asked", "--yes"]);
    let told = forked(&["--at", "feature:one", "--dry-run"]).expect(0).stdout;
    assert!(told.contains("poster.post (acts, cannot be undone)"), "{told}");
    assert_eq!(lab.runs(), runs, "none of them is a fork");

    let twin = ["fork", run, "--at", "feature:one", "--branch", "twin", "--yes"];
    let killed = |args: &[&str], point| lab.start_with(args, &[("LONGHAUL_CRASH_AT", point)]).wait().was_killed();
    assert!(killed(&twin, "fork.branch:1"));
    assert_eq!(lab.runs(), runs);
    lab.run(&twin).expect(0);
    refused(&lab.run(&twin), &["another run has the branch `longhaul/twin`"]);
    let late = ["fork", run, "--at", "feature:one", "--branch", "late", "--yes", "--repeat-effects"];
    assert!(killed(&late, "fork.stored:1"));
    let whole = lab.runs().pop().expect("a fork");
    assert_eq!(lab.json(&["status", &whole])["branch"], "longhaul/late");
    lab.run(&["resume", &whole]).expect(0);
    assert_eq!(lab.git(&["log", "--format=%H", "main..longhaul/late"]).lines().count(), 1);
}
