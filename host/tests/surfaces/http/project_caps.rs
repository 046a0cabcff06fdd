//! Caps of a project over all of its runs: one waits for another, and who used up the day waits for midnight, or for a
//! higher cap in the file.

use crate::common::ASKED_CONFIG;
use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// Writes the file of a project for asks, with these caps.
fn write(lab: &Lab, caps: &str) {
    let text = ASKED_CONFIG.replace("{server}", &lab.fake.address);
    let text = text.replace("name = \"asked\"\n", &format!("name = \"asked\"\n{caps}\n"));
    fs::write(lab.project().join("longhaul.toml"), text).expect("ours");
}

/// Asks something that takes an agent as many steps.
fn ask(web: &Web, lab: &Lab, steps: usize) -> String {
    let goal = format!("do it; {}put", "look; ".repeat(steps));
    let body = json!({ "directory": lab.project(), "goal": goal, "dispatch": { "agent": "one" } });
    web.post("/api/v1/asks", &body).expect(201).json()["run"].as_str().expect("a name").to_owned()
}

#[test]
fn runs_of_a_project_wait_for_each_other_and_for_the_next_day_and_say_by_which_setting() {
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    write(&lab, "runs_at_once_max = 1");
    lab.fake.model_takes(Duration::from_millis(300));
    let web = Web::start(&lab);
    let path = |run: &str| format!("/api/v1/runs/{run}");
    let first = ask(&web, &lab, 20);
    web.until(&path(&first), |run| run["status"] == "working" && run["queue_place"].is_null());
    let second = ask(&web, &lab, 1);
    let told = web.until(&path(&second), |run| {
        run["queue_place"] == 1 && run["reason"].as_str().is_some_and(|reason| reason.contains("runs_at_once_max"))
    });
    let reason = told["reason"].as_str().expect("a reason");
    assert!(reason.contains("under [project] of longhaul.toml allows 1 run of project `asked` at once"), "{reason}");
    web.post(&format!("{}/pause", path(&first)), &json!({})).expect(200);
    web.until_status(&second, "completed");

    // What was used before the cap was written counts, and a request needs more than a token.
    write(&lab, "tokens_per_day_max = 1");
    web.post(&format!("{}/resume", path(&first)), &json!({})).expect(200);
    let parked = web.until_status(&first, "parked");
    let reason = parked["reason"].as_str().expect("a reason");
    assert!(reason.contains("the project used up its day"), "{reason}");
    assert!(reason.contains("of 1 (tokens_per_day_max); it goes on at 00:00 UTC"), "{reason}");
    // Midnight, or a minute after it where this test meets one.
    assert!(reason.contains("(until 00:0"), "{reason}");
    let wake_ms = parked["next_wake_ms"].as_u64().expect("a time");
    assert_eq!(wake_ms % 60_000, 0);
    let report = lab.run(&["report", &first]).expect(0).stdout;
    assert!(report.contains("tokens\\_per\\_day\\_max"), "{report}");

    write(&lab, "tokens_per_day_max = 1_000_000_000");
    lab.fake.model_takes(Duration::ZERO);
    web.post(&format!("{}/resume", path(&first)), &json!({})).expect(200);
    web.until_status(&first, "completed");
}
