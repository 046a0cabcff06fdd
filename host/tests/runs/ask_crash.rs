//! A planned ask of 200 tasks, killed anywhere: its answer and the count of every completed effect are those of one
//! that was not killed. And the memory that each of 200 tasks takes while all wait for a model at once.
//!
//! The tasks are a random graph, of which some fail once, some for good, and some are not sure of their answers. For
//! each name of a crash point its first and its last occurrence are tried, and the middle one later in the ask of the
//! first; `LONGHAUL_CRASH_ALL=1` tries all, each in an ask of its own. `LONGHAUL_KILLS=100` kills at as many random
//! moments (default 5), and `LONGHAUL_SEED` repeats them.

use crate::common;
use crate::common::lab::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Tasks of the graph.
const TASKS: u64 = 200;

/// Starts after which an ask that still goes on is taken to go on for ever.
const STARTS_MAX: usize = 40;

const CONFIG: &str = r#"
[project]
name = "graph"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[planner]
plugin = "initializer"
models = ["fake"]

[agents.one]
plugin = "react"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1 }

[agents.two]
plugin = "react"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1 }

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true
approval = { when_heard = "allow" }

[ask.limits]
wall_ms_max = 100000000
features_max = 500
parallel_max = {parallel}
"#;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// The graph of a seed, as a file of tasks.
fn tasks(seed: u64, count: u64) -> Value {
    let mut random = Random(seed);
    let task = |number: u64, random: &mut Random| {
        let first = number.saturating_sub(20);
        let depends_on: Vec<String> = match number {
            0 => Vec::new(),
            _ => (0..random.below(4)).map(|_| format!("t{}", first + random.below(number - first))).collect(),
        };
        let (words, on_failure) = match random.below(24) {
            0 | 1 => ("put; fails-once", "retry"),
            2 => ("put; fails", "replan"),
            3 => ("put; fails", "skip"),
            4 => ("put; unsure", "replan"),
            5 => ("look; put; put", "replan"),
            _ => ("put", "replan"),
        };
        json!({
            "id": format!("t{number}"), "agent_id": if number.is_multiple_of(2) { "one" } else { "two" },
            "instruction": format!("do t{number}; {words}"), "depends_on": depends_on, "on_failure": on_failure,
        })
    };
    json!({ "tasks": (0..count).map(|number| task(number, &mut random)).collect::<Vec<_>>() })
}

fn lab(parallel: u32, tasks: &Value) -> Lab {
    let lab = Lab::empty();
    let project = lab.project();
    std::fs::create_dir_all(&project).expect("ours");
    let config = CONFIG.replace("{server}", &lab.fake.address).replace("{parallel}", &parallel.to_string());
    std::fs::write(project.join("longhaul.toml"), config).expect("ours");
    std::fs::write(lab.path("tasks.json"), tasks.to_string()).expect("ours");
    lab
}

fn ask(lab: &Lab) -> [String; 4] {
    ["ask".into(), "what does it come to?".into(), "--tasks".into(), lab.path("tasks.json").display().to_string()]
}

fn start(lab: &Lab, environment: &[(&str, &str)]) -> common::lab::Started {
    let args = ask(lab);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    lab.start_with(if lab.newest().is_none() { &args } else { &["resume"] }, environment)
}

/// The traces of an ask: its answer, each task with its answer, and the requests to the server with their number.
#[derive(Debug, PartialEq)]
struct Left {
    status: String,
    answer: String,
    tasks: Vec<String>,
    told: BTreeMap<String, usize>,
}

fn left(lab: &Lab) -> Left {
    let status = lab.newest().expect("a run");
    let task = |task: &Value| format!("{} {} {}", task["id"], task["status"], task["answer"]);
    let mut told = BTreeMap::new();
    for text in lab.fake.puts().into_values() {
        *told.entry(text).or_default() += 1;
    }
    Left {
        status: status["status"].to_string(),
        answer: status["answer"].to_string(),
        tasks: status["features"].as_array().expect("a list").iter().map(task).collect(),
        told,
    }
}

fn is_over(lab: &Lab) -> bool {
    let status = lab.newest();
    status.is_some_and(|status| matches!(status["status"].as_str(), Some("completed" | "incomplete" | "failed")))
}

/// Goes on until it is over, and compares.
#[track_caller]
fn check(lab: &Lab, what: &str, reference: &Left) {
    for _ in 0..STARTS_MAX {
        lab.fake.settle();
        if is_over(lab) {
            break;
        }
        let ran = start(lab, &[]).wait();
        assert!(matches!(ran.code(), Some(0 | 3)), "killed at {what}, then: {:?}\n{}", ran.status, ran.said());
    }
    let found = left(lab);
    for (expected, found) in reference.tasks.iter().zip(&found.tasks) {
        assert_eq!(expected, found, "killed at {what}");
    }
    assert_eq!(*reference, found, "killed at {what}");
}

fn reference(tasks: &Value) -> (Left, Vec<String>, Duration) {
    let lab = lab(8, tasks);
    let log = lab.path("points");
    let since = Instant::now();
    let ran = start(&lab, &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).wait();
    assert!(matches!(ran.code(), Some(0 | 3)), "{}", ran.said());
    let points = std::fs::read_to_string(&log).expect("points were reached").lines().map(str::to_owned).collect();
    (left(&lab), points, since.elapsed())
}

#[test]
fn a_planned_ask_that_is_killed_at_any_point_answers_as_if_it_was_not() {
    // A smaller graph of the same make: there are a few dozen names, and each is tried three times.
    let tasks = tasks(7, 40);
    let (reference, points, _) = reference(&tasks);
    assert!(reference.tasks.iter().any(|task| task.contains("-r1")), "something was planned again: {reference:#?}");
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for point in &points {
        *counts.entry(point.rsplit_once(':').map_or(point, |(name, _)| name)).or_default() += 1;
    }
    let (mut killed, mut killed_later) = (0, 0);
    for (name, count) in &counts {
        for (number, later) in common::occurrences(*count) {
            let point = format!("{name}:{number}");
            let lab = lab(8, &tasks);
            killed += u32::from(start(&lab, &[("LONGHAUL_CRASH_AT", &point)]).wait().was_killed());
            lab.fake.settle();
            if let Some(later) = later.filter(|_| !is_over(&lab)) {
                let later = format!("{name}:{later}");
                killed_later += u32::from(start(&lab, &[("LONGHAUL_CRASH_AT", &later)]).wait().was_killed());
            }
            check(&lab, &point, &reference);
        }
    }
    println!("kills survived: {killed} at {} names of points, and {killed_later} later on", counts.len());
    killed += killed_later;
    assert!(killed as usize >= counts.len(), "{killed} kills at {counts:?}");
}

#[test]
fn a_planned_ask_of_200_tasks_that_is_killed_again_and_again_answers_as_if_it_was_not() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("LONGHAUL_KILLS").unwrap_or(5);
    let seed = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed} LONGHAUL_KILLS={wanted}");
    let tasks = tasks(11, TASKS);
    let (reference, _, takes) = reference(&tasks);
    println!("unkilled: {takes:?}, {} tasks, {} told", reference.tasks.len(), reference.told.len());
    assert!(reference.tasks.len() > 250 && reference.told.len() > 190, "a replan, and hardly a task left out");
    let takes = u64::try_from(takes.as_millis()).unwrap_or(u64::MAX);
    let (mut random, mut kills) = (Random(seed), 0);
    while kills < wanted {
        let lab = lab(8, &tasks);
        for _ in 0..10 {
            if kills == wanted || is_over(&lab) {
                break;
            }
            let mut started = start(&lab, &[]);
            std::thread::sleep(Duration::from_millis(random.below(takes / 4)));
            kills += u64::from(started.kill());
            started.wait();
            lab.fake.settle();
        }
        check(&lab, &format!("LONGHAUL_SEED={seed}, after {kills} kills"), &reference);
    }
    println!("random kills survived: {kills}");
}

/// Resident bytes of a process.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn tasks_that_wait_for_a_model_hold_less_than_a_mebibyte_each() {
    let most = |count: u64| {
        let task = |number: u64| json!({ "id": format!("t{number}"), "instruction": format!("do t{number}") });
        let tasks = json!({ "tasks": (0..count).map(task).collect::<Vec<_>>() });
        let lab = lab(200, &tasks);
        // Long enough for all to wait at once.
        lab.fake.model_takes(Duration::from_secs(4));
        let mut started = start(&lab, &[]);
        let mut most = 0;
        while started.is_running() && lab.fake.asked().len() < usize::try_from(count).expect("small") {
            std::thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(50));
            most = most.max(resident(started.pid()));
        }
        lab.fake.model_takes(Duration::ZERO);
        started.wait().expect(0);
        most
    };
    let (few, many) = (most(2), most(TASKS));
    let each = many.saturating_sub(few) / (TASKS - 2);
    println!("2 tasks: {few} B, {TASKS} tasks: {many} B, each waiting task: {each} B");
    assert!(each < 1 << 20, "{each} bytes for a task that waits");
}
