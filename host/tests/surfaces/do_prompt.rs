//! A prompt becomes a project that runs, where it is worth one and the user wants that.

use crate::common::lab::{Lab, Ran};
use serde_json::Value;

/// What such projects are made with: a planner that makes one feature of the goal, an agent that does nothing.
const TEMPLATE: &str = r#"
[project]
name = "{{name}}"

[planner]
plugin = "teller"

[agents.code]
plugin = "caller"

[run.limits]
iterations_max = 1
"#;

const WORTH_IT: &str = "Write 3 reports, one a month";
const SIMPLE: &str = "What is the time?";

/// A user, with or without a file of settings.
fn user(settings: Option<&str>) -> Lab {
    let lab = Lab::empty();
    if let Some(settings) = settings {
        let folder = lab.path(".config/longhaul");
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(folder.join("config.toml"), settings).expect("ours");
        std::fs::write(folder.join("template.toml"), TEMPLATE).expect("ours");
    }
    lab
}

fn run(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(args);
    command.env_remove("XDG_CONFIG_HOME");
    lab.start_command(command).wait()
}

#[track_caller]
fn nothing_is_made(lab: &Lab, args: &[&str], expected: &[&str]) {
    let ran = run(lab, args).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.said());
    for expected in expected.iter().chain(&["longhaul new DIR"]) {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.said());
    }
    assert!(!lab.path("write-3-reports-one-a").exists() && !lab.path("what-is-the-time").exists());
}

#[test]
fn below_the_confidence_or_switched_off_it_says_so_in_one_line_and_makes_nothing() {
    let on = user(Some("[auto]\nprojects = true\ntemplate = \"template.toml\"\n"));
    nothing_is_made(&on, &["do", SIMPLE], &["a simple question (confidence 0.00)", "not worth a project"]);
    for off in [user(None), user(Some("[auto]\nprojects = false\n"))] {
        nothing_is_made(&off, &["do", WORTH_IT], &["research (confidence 0.90)", "--auto", "config.toml"]);
        nothing_is_made(&off, &["do", "--auto", SIMPLE], &["not worth a project"]);
    }
    let told: Value = serde_json::from_str(&run(&on, &["--json", "do", SIMPLE]).expect(0).stdout).expect("JSON");
    assert_eq!((&told["project"], &told["detected"]["use_harness"]), (&Value::Null, &Value::Bool(false)), "{told}");
}

#[test]
fn a_prompt_that_is_worth_it_becomes_a_project_that_runs() {
    let lab = user(Some("[auto]\nprojects = true\ntemplate = \"template.toml\"\n"));
    // The agent does nothing, so the run ends incomplete.
    let ran = run(&lab, &["do", WORTH_IT]).expect(3);
    assert!(ran.stdout.contains("made ") && ran.stdout.contains("feature all"), "{}", ran.said());
    let project = lab.path("write-3-reports-one-a");
    assert_eq!(std::fs::read_to_string(project.join("GOAL.md")).expect("the goal"), WORTH_IT);
    assert_eq!(lab.git_in(&project, &["status", "--porcelain"]), "", "all of it is committed");

    let off = user(Some("[auto]\ntemplate = \"template.toml\"\n"));
    run(&off, &["do", "--auto", "--dir", "deep/here", WORTH_IT]).expect(3);
    assert!(off.path("deep/here/longhaul.toml").is_file());
    let again = run(&off, &["do", "--auto", "--dir", "deep/here", WORTH_IT]).expect(1);
    assert!(again.stderr.contains("is not empty"), "{}", again.said());
}

#[test]
fn a_file_of_settings_that_is_wrong_is_named() {
    let lab = user(Some("[auto]\nproject = true\n"));
    let ran = run(&lab, &["do", WORTH_IT]).expect(1);
    assert!(ran.stderr.contains("config.toml") && ran.stderr.contains("unknown field `project`"), "{}", ran.said());
}
