//! The first minute: the bare command, help, the demo with its kill, and the skill for coding agents.

use crate::common::lab::{Lab, Ran};
use crate::common::refused;
use crate::common::terminal::Terminal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The subjects of the demo's commits, the newest first.
const COMMITS: [&str; 3] = ["mean of a list", "Celsius to Fahrenheit", "factorial of a number"];

/// Runs the program without anybody's agreement to files of projects in its environment.
fn run(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(args);
    command.env_remove("LONGHAUL_TRUST");
    lab.start_command(command).wait()
}

#[test]
fn the_demo_is_killed_and_resumed_and_nothing_is_done_twice() {
    let lab = Lab::empty();
    let arguments = ["--json", "onboard", "--yes", "--provider", "recorded", "--directory", "demo"];
    let ran = run(&lab, &arguments).expect(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said()));
    assert_eq!((&report["killed"], &report["repeated"]), (&json!(true), &json!([])), "{}", ran.said());
    assert!(ran.stderr.contains("killed with SIGKILL"), "{}", ran.said());
    let before = report["before"]["invocations"].as_u64().expect("a number");
    assert!((3..7).contains(&before), "planned, one feature built and judged: {report}");
    assert_eq!(report["after"], json!({ "invocations": 7, "model_calls": 3 }));
    assert_eq!(report["commits"], json!(COMMITS));

    let demo = lab.path("demo");
    let log = lab.git_in(&demo, &["log", "--format=%s", "main..longhaul/longhaul-demo"]);
    assert_eq!(log.lines().collect::<Vec<_>>(), COMMITS);
    let effects =
        lab.git_in(&demo, &["log", "--format=%(trailers:key=Longhaul-Effect,valueonly)", "longhaul/longhaul-demo"]);
    let mut effects: Vec<&str> = effects.lines().filter(|line| !line.is_empty()).collect();
    effects.sort_unstable();
    effects.dedup();
    assert_eq!(effects.len(), COMMITS.len());
    assert_eq!(lab.git_in(&demo, &["status", "--porcelain"]), "");

    refused(&run(&lab, &arguments), &["demo` is not empty", "--directory DIR"]);
    refused(&run(&lab, &["onboard", "--yes", "--directory", "demo/below"]), &["is in the git repository"]);
}

#[test]
fn the_demo_asks_a_person_at_the_terminal() {
    let lab = Lab::empty();
    let mut terminal = Terminal::start(&lab, &["onboard", "--directory", "my demo"], &[]);
    terminal.wait_for("a number or a name [recorded]:", 1);
    terminal.types("nonsense");
    terminal.wait_for("`nonsense` is none of them", 1);
    terminal.types("");
    terminal.wait_for("kill the run in the middle, and resume it? [Y/n]", 1);
    terminal.types("n");
    terminal.wait_for("open the page now? [y/N]", 1);
    terminal.types("");
    let (status, screen) = terminal.wait();
    assert!(status.success(), "{screen}");
    assert!(!screen.contains("SIGKILL"), "{screen}");
    assert!(screen.contains("/my demo' diff"), "a shell can read the path:\n{screen}");
    for subject in COMMITS {
        assert!(screen.contains(subject), "no `{subject}` in:\n{screen}");
    }
}

#[test]
fn a_demo_that_cannot_be_made_is_refused_in_a_line() {
    let lab = Lab::empty();
    refused(&run(&lab, &["onboard"]), &["no person can be asked", "--yes"]);
    refused(&run(&lab, &["--json", "onboard"]), &["no person can be asked", "--yes"]);
    refused(&run(&lab, &["onboard", "--yes", "--provider", "nobody"]), &["no provider `nobody`", "recorded"]);
    let mut command = lab.command(&["onboard", "--yes", "--provider", "recorded", "--directory"]);
    command.arg(OsStr::from_bytes(b"demo-\xff"));
    refused(&lab.start_command(command).wait(), &["bytes that are not UTF-8 in its path", "rename it"]);
    assert!(!lab.path("longhaul-demo").exists(), "nothing is left behind");
}

/// It used to advise a resume, which found no run.
#[test]
fn a_demo_whose_run_never_began_goes_on_with_a_run() {
    let lab = Lab::empty();
    std::fs::write(lab.path("file"), "").expect("ours");
    let ran = lab.run_at(&lab.path("file"), &["onboard", "--yes", "--provider", "recorded"]).expect(1);
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("go on with: longhaul --project ") && last.ends_with("/longhaul-demo run"), "{}", ran.said());
}

#[test]
fn the_bare_command_tells_a_person_what_to_do_and_a_program_that_one_is_missing() {
    let lab = Lab::empty();
    let (status, screen) = Terminal::start(&lab, &[], &[]).wait();
    assert!(status.success(), "{screen}");
    for text in ["survives being killed", "Found here:", "What you can do now:", "longhaul onboard"] {
        assert!(screen.contains(text), "no `{text}` in:\n{screen}");
    }
    let ran = run(&lab, &[]).expect(2);
    assert!(ran.stderr.contains("subcommand") && ran.stdout.is_empty(), "{}", ran.said());
    assert!(!lab.home().exists(), "no data directory is made");
}

#[test]
fn help_has_the_commands_the_chapters_and_the_nearest_name() {
    let lab = Lab::empty();
    let check = |args: &[&str], texts: &[&str]| {
        let ran = run(&lab, args).expect(0);
        for text in texts {
            assert!(ran.stdout.contains(text), "no `{text}` in {args:?}:\n{}", ran.said());
        }
    };
    check(&["--help"], &["Often used:", "All commands:", "longhaul help --all"]);
    check(&["help"], &["All commands:", "Chapters of the book", "journal-and-replay"]);
    check(&["help", "--all"], &["\nCommands:\n", "  trajectories  ", "Exit codes: 0 done", "\nOptions:\n"]);
    check(&["help", "plugin", "build"], &["Usage: longhaul plugin build", "Examples:\n  longhaul plugin build"]);
    check(&["help", "journal-and-replay"], &["journal"]);
    check(&["help", "guides/memory"], &["emory"]);
    let ran = run(&lab, &["help", "jurnal-and-replay"]).expect(2);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.said());
    assert!(ran.stderr.contains("did you mean `longhaul help journal-and-replay`?"), "{}", ran.said());
}

#[test]
fn the_skill_is_installed_where_a_coding_agent_finds_it() {
    let lab = Lab::empty();
    refused(&run(&lab, &["skill", "install"]), &["there is no .claude", "--directory DIR"]);
    std::fs::create_dir(lab.path(".claude")).expect("ours");
    run(&lab, &["skill", "install"]).expect(0);
    let path = lab.path(".claude/skills/longhaul/SKILL.md");
    let text = std::fs::read_to_string(&path).expect("installed");
    assert!(text.starts_with("---\nname: longhaul\n"), "{text}");
    std::fs::write(&path, "mine").expect("ours");
    refused(&run(&lab, &["skill", "install"]), &["is a different file", "--force"]);
    let again = lab.json(&["skill", "install", "--force"]);
    assert_eq!(again["written"], json!(true), "{again}");
    assert_eq!(std::fs::read_to_string(&path).expect("installed"), text);
}
