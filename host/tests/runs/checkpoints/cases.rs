//! The suite `checkpoint` of `$LONGHAUL_CASES`: a case is driven by what its scenario says, never by its id.

use super::{READER, moved, reader, reader_with, the_run};
use crate::common;
use crate::common::fake::Kill;
use crate::common::gated;
use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, THREE_FEATURES, repository};
use longhaul_checkpoints::SnapshotStore;
use longhaul_testkit::{HandClock, MemoryStore};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SECOND_MS: u64 = 1_000;
const DAY_MS: u64 = 86_400_000;

/// Is handed what the scenario says at each `{}` of its pattern.
type Driver = fn(&Value, &[&str]);

/// A driver for each scenario.
const DRIVERS: [(&str, Driver); 9] = [
    ("checkpoint_every={}, {} steps max reached (no finish)", steps_at_which_there_is_a_checkpoint),
    ("resume at step {} with {} observations in memory", a_resume_sees_what_was_observed),
    ("resume with pending, human answers {}", a_pending_call_that_is_answered),
    ("resume key auto-detect", a_key_by_what_it_has),
    ("crash after approved tool ran, before next step", a_crash_after_an_approved_call),
    ("key '{}'", a_key_that_is_a_path),
    ("key of {} characters", a_long_key),
    ("purge_old(days={}): ages {}", a_purge_by_age),
    ("TTL {} s: read at {} s / {} s", a_lifetime),
];

#[test]
fn the_cases_of_checkpoints() {
    let elsewhere = std::env::var_os("LONGHAUL_CASES");
    let folder = elsewhere.as_ref().map_or_else(|| repository().join("tests/cases"), PathBuf::from);
    let paths = folder.read_dir().expect("a folder of cases").map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: PathBuf| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
    };
    let mut seen = 0;
    for file in files.map(read).filter(|file| file["suite"] == "checkpoint") {
        for case in file["cases"].as_array().expect("a list of cases") {
            let (id, scenario) = (&case["id"], case["scenario"].as_str().expect("a text"));
            let driver = DRIVERS.iter().find_map(|(pattern, driver)| Some((driver, said(scenario, pattern)?)));
            match driver {
                Some((driver, found)) => driver(case, &found),
                None if elsewhere.is_some() => println!("{id} is not driven"),
                None => panic!("{id} has no driver"),
            }
            seen += 1;
        }
    }
    assert!(seen > 0, "no case of the suite `checkpoint` in {}", folder.display());
}

/// The parts of a text in the places of `{}` of a pattern. None: the text does not match.
fn said<'a>(text: &'a str, pattern: &str) -> Option<Vec<&'a str>> {
    let parts: Vec<&str> = pattern.split("{}").collect();
    let (first, others) = parts.split_first()?;
    let Some((last, between)) = others.split_last() else {
        return (text == pattern).then(Vec::new);
    };
    let mut rest = text.strip_prefix(*first)?.strip_suffix(*last)?;
    let mut found = Vec::new();
    for part in between {
        let (value, after) = rest.split_once(*part)?;
        found.push(value);
        rest = after;
    }
    found.push(rest);
    Some(found)
}

#[track_caller]
fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// A run whose process dies when its agent has read so many files and asks its model again.
fn killed_at_step(step: usize) -> Lab {
    let lab = reader(step, "finish");
    let mut started = lab.start(&["run"]);
    let number = u32::try_from(step).expect("a small number") + 1;
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number, happens: false });
    while started.is_running() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(started.wait().was_killed());
    lab
}

fn model_calls(lab: &Lab) -> u32 {
    lab.fake.requests().get("model").copied().unwrap_or_default()
}

fn entries(lab: &Lab, name: &str) -> usize {
    let answer = lab.json(&["journal", "--invocation", "f-read/1/generate"]);
    let entries = answer["entries"].as_array().expect("a list");
    entries.iter().filter(|entry| entry["name"] == name).count()
}

fn steps_at_which_there_is_a_checkpoint(case: &Value, found: &[&str]) {
    let most: usize = number(found[1]);
    let config = READER.replace("checkpoint_every = 3", &format!("checkpoint_every = {}", found[0]));
    let config = config.replace("steps_max = 10", &format!("steps_max = {most}"));
    let lab = reader_with(&config, most + 2, "none");
    lab.run(&["run"]).expect(0);
    let listed = lab.json(&["checkpoint", "list"]);
    let steps: Vec<&Value> = listed["checkpoints"].as_array().expect("a list").iter().map(|one| &one["step"]).collect();
    assert_eq!(json!(steps), case["expected_write_steps"], "they stay when the work has ended");
    let every_step = lab.json(&["checkpoint", "list", "--every", "1"]);
    assert_eq!(every_step["checkpoints"].as_array().map(Vec::len), Some(most));
}

fn a_resume_sees_what_was_observed(_: &Value, found: &[&str]) {
    let step: usize = number(found[0]);
    assert_eq!(found[1], found[0], "each step observes once");
    let lab = killed_at_step(step);
    let key = format!("{}:code", the_run(&lab));
    let shown = lab.json(&["checkpoint", "show", &key]);
    assert_eq!((&shown["kind"], &shown["step"]), (&json!("agent"), &json!(step)), "{shown}");
    // The conversation can be read where it stands.
    let said = lab.run(&["memory", "conversation", "f-read/1/generate"]).expect(0).stdout;
    assert!(said.contains(&format!("this is file {}", step - 1)) && said.contains("it has not ended"), "{said}");
    let before = model_calls(&lab);
    let other = moved(&lab, &key);
    other.run(&["resume"]).expect(0);
    assert_eq!(model_calls(&lab) - before, 1);
    let asked = lab.fake.last_request().to_string();
    assert!((0..step).all(|file| asked.contains(&format!("this is file {file}"))), "{asked}");
    assert_eq!(entries(&other, "conversation.complete"), step + 1);
    let journal = other.json(&["journal", "--invocation", "f-read/1/generate"]);
    assert!(journal["finished"]["result"].as_str().is_some_and(|result| result.contains("all read")), "{journal}");
}

fn a_pending_call_that_is_answered(_: &Value, found: &[&str]) {
    let put = json!({ "tool": "poster", "function": "put", "arguments": { "text": "free" } });
    let lab = gated::lab(&json!([gated::post("a"), put]), &json!([]));
    lab.run(&["run"]).expect(5);
    let asked = gated::the_open(&lab);
    let key = format!("{}:code", the_run(&lab));
    let shown = lab.run(&["checkpoint", "show", &key]).expect(0).stdout;
    assert!(shown.contains("1 approval open"), "{shown}");
    let other = moved(&lab, &key);
    assert_eq!(gated::the_open(&other), asked, "the same question");
    gated::answer(&other, &asked, found[0]).expect(0);
    other.run(&["resume"]).expect(0);
    let answers = gated::answers(&other);
    match found[0] {
        "y" => assert_eq!(gated::posted(&lab), ["a"], "it ran once"),
        "n" => {
            assert!(gated::posted(&lab).is_empty(), "it did not run");
            gated::error(&answers[0], "rejected by a person");
        }
        correction => {
            assert!(gated::posted(&lab).is_empty(), "it did not run");
            gated::error(&answers[0], correction.trim_matches('\''));
        }
    }
    assert_eq!(answers[1], json!({ "put": "free" }), "the work went on");
}

fn a_key_by_what_it_has(case: &Value, _: &[&str]) {
    match case["checkpoint_has"].as_str() {
        Some("plan") => a_key_with_a_plan(),
        Some("agent_id") => a_key_with_an_agent(),
        other => panic!("{}: unknown content {other:?} of a checkpoint; write a driver in {}", case["id"], file!()),
    }
}

fn a_key_with_a_plan() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.run(&["run", "--sessions", "1"]).expect(4);
    let run = the_run(&lab);
    let shown = lab.json(&["checkpoint", "show", &run]);
    assert_eq!((&shown["kind"], &shown["features"], &shown["passing"]), (&json!("plan"), &json!(3), &json!(1)));
    let posts = gated::posted(&lab);
    let other = moved(&lab, &run);
    other.run(&["resume"]).expect(3);
    let all = gated::posted(&lab);
    assert_eq!(all[..posts.len()], posts, "what was done is not done again");
    let mut once = all.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), all.len(), "{all:?}");
    let status = other.json(&["status"]);
    let passing =
        status["features"].as_array().expect("a list").iter().filter(|one| one["status"] == "passing").count();
    assert_eq!(passing, 2, "{status:#}");
    assert_eq!(other.runs(), [run]);
}

fn a_key_with_an_agent() {
    let lab = killed_at_step(2);
    let key = format!("{}:agents.code", the_run(&lab));
    let shown = lab.json(&["checkpoint", "show", &key]);
    assert_eq!((&shown["kind"], &shown["agent_id"]), (&json!("agent"), &json!("agents.code")));
    let before = model_calls(&lab);
    lab.run(&["resume", &key]).expect(0);
    assert_eq!(model_calls(&lab) - before, 1, "its own work goes on, from its step");
    common::refused(&lab.run(&["resume", &format!("{}:nobody", the_run(&lab))]), &["has no work of [agents.nobody]"]);
}

fn a_crash_after_an_approved_call(_: &Value, _: &[&str]) {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    gated::answer(&lab, &gated::the_open(&lab), "y").expect(0);
    let ran = lab.start_with(&["resume"], &[("LONGHAUL_CRASH_AT", "invocation.end:1")]).wait();
    assert!(ran.was_killed(), "{}", ran.said());
    assert_eq!(gated::posted(&lab), ["a"], "it ran before the crash");
    let other = moved(&lab, &the_run(&lab));
    other.run(&["resume"]).expect(0);
    assert_eq!(gated::posted(&lab), ["a"], "and not again");
}

/// Saves a run under a name, and takes it up by that name.
fn saved_as(name: &str) -> Lab {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let run = the_run(&lab);
    lab.run(&["checkpoint", "export", &run, "--save", name]).expect(0);
    let listed = lab.json(&["checkpoint", "list"]);
    assert_eq!(listed["saved"][0]["key"], name);
    lab.run(&["checkpoint", "import", name, "--saved", "--replace"]).expect(0);
    assert_eq!(lab.runs(), [run]);
    gated::answer(&lab, &gated::the_open(&lab), "y").expect(0);
    lab.run(&["resume"]).expect(0);
    lab
}

fn a_key_that_is_a_path(_: &Value, found: &[&str]) {
    let key = found[0];
    let lab = saved_as(key);
    let name = key.rsplit('/').next().expect("it has a last part");
    let around = |folder: &Path| -> Vec<String> {
        let names = folder.read_dir().expect("a folder").map(|entry| entry.expect("readable").file_name());
        names.map(|found| found.to_string_lossy().into_owned()).filter(|found| found.contains(name)).collect()
    };
    assert_eq!((around(&lab.home()), around(&lab.path("."))), (Vec::new(), Vec::new()));
    common::refused(&lab.run(&["checkpoint", "export", key]), &[&format!("there is no run `{key}`")]);
}

fn a_long_key(_: &Value, found: &[&str]) {
    saved_as(&"k".repeat(number(found[0])));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// An age such as `7d+1s`.
#[track_caller]
fn age_ms(text: &str) -> u64 {
    let part = |part: &str| match part.split_at(part.len() - 1) {
        (days, "d") => number::<u64>(days) * DAY_MS,
        (hours, "h") => number::<u64>(hours) * 3_600 * SECOND_MS,
        (seconds, "s") => number::<u64>(seconds) * SECOND_MS,
        (_, unit) => panic!("unknown unit `{unit}` of an age"),
    };
    text.split('+').map(part).sum()
}

fn a_purge_by_age(case: &Value, found: &[&str]) {
    let (store, clock) = (MemoryStore::new(), HandClock::at(HandClock::START_MS));
    let snapshots = SnapshotStore::new(&store, &clock);
    let age_max_ms = number::<u64>(found[0]) * DAY_MS;
    let mut ages: Vec<(&str, u64)> = found[1].split(", ").map(|age| (age, age_ms(age))).collect();
    // Saved one after the other, so that at the end their ages are those of the case.
    ages.sort_by_key(|(_, age)| std::cmp::Reverse(*age));
    let now_ms = ages.first().expect("an age").1;
    let mut passed = 0;
    for (name, age) in &ages {
        clock.advance_ms(now_ms - age - passed);
        passed = now_ms - age;
        block_on(snapshots.save(name, b"{}".to_vec(), now_ms + DAY_MS)).expect("saved");
    }
    clock.advance_ms(now_ms - passed);
    assert_eq!(json!(block_on(snapshots.purge(age_max_ms)).expect("purged")), case["expected_removed"]);
    let mut left: Vec<String> = snapshots.list().expect("listed").into_iter().map(|saved| saved.key).collect();
    let mut young: Vec<&str> = ages.iter().filter(|(_, age)| *age <= age_max_ms).map(|(name, _)| *name).collect();
    left.sort_unstable();
    young.sort_unstable();
    assert_eq!(left, young);
}

fn a_lifetime(case: &Value, found: &[&str]) {
    let [lifetime, first, second] = [0, 1, 2].map(|at| number::<u64>(found[at]) * SECOND_MS);
    let (store, clock) = (MemoryStore::new(), HandClock::at(HandClock::START_MS));
    let snapshots = SnapshotStore::new(&store, &clock);
    block_on(snapshots.save("k", b"{}".to_vec(), lifetime)).expect("saved");
    let seen = || if snapshots.read("k").expect("read").is_some() { "present" } else { "absent" };
    clock.advance_ms(first);
    let before = seen();
    clock.advance_ms(second - first);
    assert_eq!(json!([before, seen()]), case["expected"]);
    block_on(snapshots.save("at once", b"{}".to_vec(), 0)).expect("saved");
    assert!(snapshots.read("at once").expect("read").is_none(), "0 is over at once");
}
