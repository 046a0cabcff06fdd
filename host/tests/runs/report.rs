//! A run is reported as it was: the same figures in every form, and the page opens anywhere.

use crate::common;
use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, THREE_FEATURES};
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_finished_run_is_reported_in_every_form() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.run(&["run"]).expect(3);
    let status = lab.json(&["status"]);

    let report = lab.json(&["report", "--format", "json"]);
    assert_eq!((&report["run"], &report["passing"]), (&status["run"], &serde_json::json!([2, 3])), "{report}");
    assert!(status["resource_usage"]["usage"].is_object(), "{status}");
    assert_eq!(report["resource_usage"], status["resource_usage"], "{report}");
    assert_eq!(report["ledger"]["caps"], status["ledger"]["caps"], "{report}");
    let statuses: Vec<_> = report["features"].as_array().expect("a list").iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["passing", "passing", "failing"]);
    let commits = report["commits"].as_array().expect("a list");
    let log = lab.git(&["log", "--format=%H", "--reverse", "main..longhaul/kept"]);
    assert_eq!(
        commits.iter().filter_map(|commit| commit["commit"].as_str()).collect::<Vec<_>>(),
        log.lines().collect::<Vec<_>>()
    );
    assert_eq!(report["passing_over_time"].as_array().map(Vec::len), Some(2), "{report}");
    let agents = report["agents"].as_array().expect("a list");
    let by_agent: u64 = agents.iter().map(|share| tokens(&share["resource_usage"])).sum();
    assert_eq!(by_agent, tokens(&status["resource_usage"]), "what each agent used is what the run used");
    let mut names: Vec<_> = agents.iter().filter_map(|share| share["agent"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["agents.code", "agents.helper", "evaluator", "planner"], "sub-agents stand for themselves");
    assert!(report["duration_ms"].as_u64() > agents[0]["worked_ms"].as_u64(), "{report}");
    let decided = report["decisions"].as_array().expect("a list").iter().filter_map(|one| one["decision"].as_str());
    assert!(decided.clone().any(|text| text == "did two-1 in a file"), "{report}");
    assert!(decided.clone().any(|text| text == "try three again, in round 2"), "{report}");

    let markdown = lab.run(&["report"]).expect(0).stdout;
    assert!(markdown.starts_with("# kept: 2 of 3 features pass\n"), "{markdown}");
    assert!(markdown.contains("## Decisions") && markdown.contains("did two-1 in a file"), "{markdown}");
    for commit in commits {
        let short = &commit["commit"].as_str().expect("a name")[..10];
        assert!(markdown.contains(&format!("`{short}`")), "{markdown}");
    }
    let page = lab.path("report.html");
    lab.run(&["report", "--format", "html", "--output", page.to_str().expect("text")]).expect(0);
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{html}");
    assert_eq!(html.matches("<svg").count(), 4);
    for part in
        ["Features that pass", "Tokens by agent", "Cost by agent", "<h2>Decisions", "<h2>Timeline", "agents.helper"]
    {
        assert!(html.contains(part), "{part}");
    }
    for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }

    let refused = lab.run(&["report", "--format", "html", "--output", "/nowhere/report.html"]).expect(1);
    assert!(refused.stderr.contains("cannot write `/nowhere/report.html`"), "{}", refused.said());
    assert!(lab.run(&["report", "r-none"]).expect(1).stderr.contains("no run"), "an unknown run");
}

fn tokens(used: &serde_json::Value) -> u64 {
    ["input_tokens", "output_tokens"].iter().filter_map(|name| used["usage"][name].as_u64()).sum()
}

/// Less than the full sandbox is accepted by name, and never passed over in silence.
#[test]
fn a_check_that_less_than_the_full_sandbox_held_is_in_the_events_and_the_report() {
    let config = DOER_CONFIG.replace("[run.limits]", "[run]\nsandbox_min = \"none\"\n\n[run.limits]");
    let lab = Lab::new(&config, "# One\n\n## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n");
    // Without mounts of its own a check of root's has to reach its copy by its path.
    std::fs::set_permissions(lab.path("."), std::fs::Permissions::from_mode(0o711)).expect("ours");
    lab.run_through(&common::without_namespaces(), &["run"]).expect(0);
    let events = lab.run(&["--json", "attach"]).expect(0).stdout;
    let told =
        |text: &str| text.contains("the check `wrote_one` ran in the sandbox level `") && text.contains("sandbox_min");
    assert!(events.lines().any(|line| line.contains("\"warning\"") && told(line)), "{events}");
    let report = lab.run(&["report", "--format", "json"]).expect(0).stdout;
    assert!(told(&report), "{report}");
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(report.contains("Longhaul runs as root"), is_root, "{report}");
    lab.run(&["replay"]).expect(0);
}
