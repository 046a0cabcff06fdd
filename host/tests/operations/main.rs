//! A host in operation: resources, backups, state in PostgreSQL, several servers at work, audit, cleaning, the doctor,
//! notifications and telemetry.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/postgres/tests/support/server.rs"]
mod postgres_server;
#[path = "../../crates/postgres/tests/support/proxy.rs"]
mod proxy;

mod audit;
mod backup;
mod doctor;
mod gc;
mod journals;
mod kubernetes;
mod notify;
mod packaging;
mod postgres;
mod postgres_trees;
mod resources;
mod stored;
mod telemetry;
mod workers;

use crate::common::lab::{Lab, Started};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// Longest time for something to be seen before its test fails.
const PATIENCE: Duration = Duration::from_secs(120);

const TWO: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A project whose only feature passes, whatever is done.
fn passing() -> Lab {
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = { calls = [] }\n\
                  [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n";
    Lab::new(config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

/// A project whose only feature is judged by this check.
fn judged_by(argv: &[&str]) -> Lab {
    let config = format!(
        "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = {{ calls = [] }}\n\
         [checks]\nfine = {{ argv = {} }}\n[run.limits]\niterations_max = 1\n",
        json!(argv)
    );
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- check: fine\n\nDo it.\n")
}

fn set_resources(lab: &Lab, text: &str) {
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(lab.home().join("resources.toml"), text).expect("ours");
}

/// Asks until it is so; what was answered then.
#[track_caller]
fn until(lab: &Lab, owner: &mut Started, args: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let answer = lab.json(args);
        if is_so(&answer) {
            return answer;
        }
        assert!(owner.is_running() && since.elapsed() < PATIENCE, "{answer:#}\n{}", owner.printed());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or_else(|| panic!("no `{name}`: {answer:#}"), Vec::as_slice)
}
