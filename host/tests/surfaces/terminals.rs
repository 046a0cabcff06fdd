//! Several terminals, one data directory: the first owns it, the others ask it, and when it dies one of
//! them takes its place.

mod interrupts;
mod owners;
mod projects;
mod socket;

use crate::common::DOER_CONFIG;
use crate::common::lab::{Lab, Started};
use serde_json::Value;
use std::time::Duration;

/// Posts of one run of it: two a feature, and one of each of two sub-agents of the second.
const POSTS: usize = 6;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A model that leaves time to look.
const SLOW: Duration = Duration::from_millis(400);

/// A model for which no tested command waits.
const TOO_SLOW: Duration = Duration::from_secs(60);

fn lab() -> Lab {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.fake.model_takes(SLOW);
    lab
}

/// A second project beside the first.
fn with_other(lab: &Lab) {
    lab.make_project("other", &DOER_CONFIG.replace("\"kept\"", "\"other\""), GOAL);
}

fn start_other(lab: &Lab, args: &[&str]) -> Started {
    let mut command = lab.command(args);
    command.current_dir(lab.path("other"));
    lab.start_command(command)
}

/// Kills the process that works on two runs while both wait for their models, when no effect of theirs can be cut off.
fn kill_between_effects(lab: &Lab, owner: &mut Started) {
    while lab.fake.requests().get("model") < Some(&2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // For the process that continues the run.
    lab.fake.model_takes(Duration::ZERO);
    assert!(owner.kill(), "the owner was at work");
}

fn status_of(lab: &Lab, run: &str) -> Value {
    lab.json(&["status", run])
}

fn run_of(lab: &Lab, project: &str) -> String {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list");
    let found = runs.iter().find(|run| run["project"] == project).unwrap_or_else(|| panic!("{answer}"));
    found["run"].as_str().expect("a name").to_owned()
}

/// Each feature with its status.
fn features(status: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let features = status["features"].as_array().expect("a list");
    features.iter().map(|feature| (text(&feature["id"]), text(&feature["status"]))).collect()
}
