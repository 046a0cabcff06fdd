//! A rehearsal of a run, beside the run itself: entries of its agent's journal in a second.
//!
//! ```text
//! cargo xtask plugins --tests
//! cargo bench -p longhaul --bench rehearsals
//! ```
//!
//! The agent reads file after file. Its model is a script on loopback that answers at once, so the live figure is the
//! most that a run can do; it is that from the first entry of the agent to its last one. The rehearsal answers from the
//! journal of the whole run, in a process of its own each time; its figure is that which `longhaul rehearse` tells, the
//! plugins loaded included, in the middle of five. `LONGHAUL_STEPS` says how many files there are. Compare the ratio.

#[path = "../tests/common/mod.rs"]
mod common;

use common::built_plugins;
use common::lab::Lab;
use common::reader::NEXT;

const FILES: usize = 150;

const REHEARSALS: usize = 5;

const CONFIG: &str = r#"
[project]
name = "kept"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"
context_tokens_max = 1000000

[context]
policy = "off"

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files"]
settings = { steps_max = {steps} }

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[checks]
done = { argv = ["grep", "-q", "done", "done.txt"] }
"#;

const GOAL: &str = "# Long\n\n## Feature: all files are read\n- id: read\n- check: done\n\n\
                    Read file after file; each names the next. NEXT-FILE: a0.txt\n";

fn main() {
    built_plugins::expect(&["files", "react", "initializer", "tests/doer"]);
    let asked = std::env::var("LONGHAUL_STEPS").ok().and_then(|text| text.parse().ok());
    let files: usize = asked.unwrap_or(FILES).clamp(10, 300);
    let lab = Lab::new(&CONFIG.replace("{steps}", &(files + 10).to_string()), GOAL);
    for number in 0..files {
        let next = if number + 1 < files { format!("a{}.txt", number + 1) } else { "none".to_owned() };
        std::fs::write(lab.project().join(format!("a{number}.txt")), format!("{NEXT}{next}\n")).expect("ours");
    }
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "files"]);
    lab.run(&["run"]).expect(0);
    let (entries, live) = live(&lab);
    let mut rates: Vec<f64> = (0..REHEARSALS).map(|_| rehearsed(&lab)).collect();
    rates.sort_by(f64::total_cmp);
    let rehearsal = rates[REHEARSALS / 2];
    println!("{entries} entries of an agent: live {live:.0} a second, rehearsed {rehearsal:.0} a second");
    println!("ratio {:.1}", rehearsal / live);
}

/// The entries of the agent, and how many were made in a second.
fn live(lab: &Lab) -> (usize, f64) {
    let (mut times, mut after) = (Vec::new(), 0);
    loop {
        let page = lab.json(&["journal", "--invocation", "f-read/1/generate", "--after", &after.to_string()]);
        let entries = page["entries"].as_array().expect("a list");
        let Some(last) = entries.last() else { break };
        after = last["number"].as_u64().expect("a number");
        times.extend(entries.iter().map(|entry| entry["at_ms"].as_u64().expect("a time")));
    }
    let ms = times.last().expect("some") - times.first().expect("some");
    (times.len(), per_second(times.len() as u64, ms))
}

/// The entries that one rehearsal answers in a second.
fn rehearsed(lab: &Lab) -> f64 {
    let report = lab.json(&["rehearse"]);
    assert_eq!(report["runs"][0]["verdict"], "reaches_end", "{report:#}");
    let number = |name: &str| report[name].as_u64().expect("a number");
    per_second(number("entries"), number("duration_ms"))
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn per_second(entries: u64, ms: u64) -> f64 {
    entries as f64 * 1_000.0 / ms.max(1) as f64
}
