//! A person at a terminal who is asked before an agent acts: every answer, every way to leave, and every kill.
//!
//! `LONGHAUL_SESSION=FILE` keeps what the first of them saw.

use crate::common::lab::Lab;
use crate::common::terminal::Terminal;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

/// A project whose agent tells the server two things, each of which asks first.
fn lab() -> Lab {
    Lab::new(CONFIG, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["poster"]
settings = { calls = [
    { tool = "poster", function = "post", arguments = { text = "first" } },
    { tool = "poster", function = "post", arguments = { text = "second" } },
] }

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }

[tools.poster.approval]
functions = { post = "ask" }
when_heard = "allow"

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

const PROMPT: &str = "[y/n/a/text]? ";

fn posted(lab: &Lab) -> Vec<String> {
    lab.fake.settle();
    lab.fake.posts().into_iter().map(|told| told.text).collect()
}

fn open(lab: &Lab) -> Vec<String> {
    let all = lab.json(&["approvals"])["approvals"].as_array().expect("a list").clone();
    let open = all.iter().filter(|one| one["status"] == "open");
    open.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_person_at_the_terminal_is_asked_and_the_run_goes_on_by_itself() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[]);
    terminal.wait_for(PROMPT, 1);
    terminal.types("");
    terminal.wait_for("an empty line is no answer", 1);
    terminal.wait_for(PROMPT, 2);
    assert!(posted(&lab).is_empty());
    terminal.types("y");
    terminal.wait_for("allowed by a person, once", 1);
    terminal.wait_for(PROMPT, 3);
    assert_eq!(posted(&lab), ["first"]);
    terminal.types("n not twice");
    let (status, screen) = terminal.wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(screen.contains("rejected: not twice") && screen.matches("┌─ approval").count() == 2, "{screen}");
    assert_eq!(posted(&lab), ["first"]);
    if let Some(path) = std::env::var_os("LONGHAUL_SESSION") {
        std::fs::write(path, screen).expect("a place for the session");
    }
}

/// The actions of a person at a terminal.
type Act = fn(&mut Terminal);

#[test]
fn to_leave_parks_the_run_and_refuses_nothing() {
    let ways: [(&str, Act); 2] =
        [("the end of input", Terminal::ends_input), ("Ctrl-C", |terminal| terminal.interrupt())];
    for (name, leave) in ways {
        let lab = lab();
        let mut terminal = Terminal::start(&lab, &["run"], &[]);
        terminal.wait_for(PROMPT, 1);
        leave(&mut terminal);
        let (status, screen) = terminal.wait();
        assert_eq!(status.code(), Some(5), "{name}: {screen}");
        assert!(screen.contains("no answer; the run waits"), "{name}: {screen}");
        assert_eq!(open(&lab).len(), 1, "{name}");
        assert!(posted(&lab).is_empty(), "{name}");
    }
}

#[test]
fn a_person_is_asked_while_the_rest_of_the_run_goes_on() {
    let config = CONFIG
        .replace("iterations_max = 1", "iterations_max = 1\nparallel_max = 2")
        .replace("text = \"first\"", "text = \"w-{id}\"")
        .replace("functions = { post = \"ask\" }", "rules = [{ where = { text = \"w-one\" }, then = \"ask\" }]");
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n\n## Feature: the second\n- id: two\n- criterion: it is fine\n\nDo it.\n";
    let lab = Lab::new(&config, goal);
    lab.fake.posts_take(Duration::from_secs(6));
    let mut terminal = Terminal::start(&lab, &["run"], &[]);
    terminal.wait_for(PROMPT, 1);
    assert!(!terminal.screen().contains("PASS two"), "{}", terminal.screen());
    terminal.types("n not one");
    terminal.wait_for("rejected: not one", 1);
    assert!(!terminal.screen().contains("PASS two"), "{}", terminal.screen());
    let (status, screen) = terminal.wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    let mut told = posted(&lab);
    told.sort();
    assert_eq!(told, ["second", "second", "w-two"], "{screen}");
}

#[test]
fn what_was_typed_before_a_question_was_shown_does_not_answer_it() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[]);
    terminal.types("y");
    terminal.wait_for(PROMPT, 1);
    terminal.types("n");
    terminal.wait_for(PROMPT, 2);
    terminal.types("n");
    let (status, screen) = terminal.wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(posted(&lab).is_empty(), "{screen}");
}

#[test]
fn an_answer_from_another_terminal_takes_the_prompt_away() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[]);
    terminal.wait_for(PROMPT, 1);
    lab.run(&["approvals", "answer", &open(&lab)[0], "y"]).expect(0);
    terminal.wait_for("answered in another terminal: allowed by a person, once", 1);
    terminal.wait_for(PROMPT, 2);
    assert_eq!(posted(&lab), ["first"]);
    // And one that watches is asked as well.
    let mut other = Terminal::start(&lab, &["attach"], &[]);
    other.wait_for(PROMPT, 1);
    other.types("n");
    terminal.wait_for("answered in another terminal: rejected", 1);
    assert_eq!(terminal.wait().0.code(), Some(0));
    assert_eq!(posted(&lab), ["first"]);
}

#[test]
fn a_kill_while_the_prompt_is_open_asks_again() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[]);
    terminal.wait_for(PROMPT, 1);
    let asked = open_while_owned(&lab);
    terminal.kill();
    assert_eq!(terminal.wait().0.signal(), Some(9));
    assert_eq!(open(&lab), asked);
    let mut terminal = Terminal::start(&lab, &["resume"], &[]);
    terminal.wait_for(&format!("{} {PROMPT}", asked[0]), 1);
    terminal.types("y");
    terminal.wait_for(PROMPT, 2);
    terminal.types("y");
    assert_eq!(terminal.wait().0.code(), Some(0));
    assert_eq!(posted(&lab), ["first", "second"]);
}

/// As [`open`], asked of the process that has the prompt.
fn open_while_owned(lab: &Lab) -> Vec<String> {
    let asked = open(lab);
    assert_eq!(asked.len(), 1);
    asked
}

#[test]
fn a_kill_while_the_question_is_written_asks_again() {
    let lab = lab();
    let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", "approval.asked:1")]).wait();
    assert!(killed.was_killed(), "{}", killed.said());
    let asked = open(&lab);
    lab.run(&["resume"]).expect(5);
    assert_eq!((asked.len(), open(&lab)), (1, asked), "the same question, once");
    assert!(posted(&lab).is_empty());
}

#[test]
fn a_kill_right_after_the_answer_does_not_ask_again() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[("LONGHAUL_CRASH_AT", "approval.answered:1")]);
    terminal.wait_for(PROMPT, 1);
    let first = open_while_owned(&lab);
    terminal.types("y");
    assert_eq!(terminal.wait().0.signal(), Some(9));
    assert!(open(&lab).is_empty() && posted(&lab).is_empty());
    let ran = lab.run(&["resume"]).expect(5);
    assert_eq!(posted(&lab), ["first"], "{}", ran.said());
    assert!(!ran.stdout.contains(&format!("approval {}", first[0])), "{}", ran.said());
    let second = open(&lab);
    assert!(second.len() == 1 && second != first, "{second:?}");
}

#[test]
fn a_kill_right_after_the_tool_ran_does_not_run_it_again() {
    let lab = lab();
    let mut terminal = Terminal::start(&lab, &["run"], &[("LONGHAUL_CRASH_AT", "tool.after-call:1")]);
    terminal.wait_for(PROMPT, 1);
    let first = open_while_owned(&lab);
    terminal.types("y");
    assert_eq!(terminal.wait().0.signal(), Some(9));
    assert_eq!(posted(&lab), ["first"]);
    // It acts, so only a person can know its outcome. That is another question than the approval.
    let ran = lab.run(&["resume"]).expect(5);
    assert!(ran.said().contains("it is unknown whether it happened"), "{}", ran.said());
    assert!(open(&lab).is_empty(), "it is not asked about again");
    lab.run(&["answer", "--happened", "{}"]).expect(0);
    lab.run(&["resume"]).expect(5);
    let second = open(&lab);
    assert!(second.len() == 1 && second != first, "{second:?}");
    lab.run(&["approvals", "answer", &second[0], "y"]).expect(0);
    lab.run(&["resume"]).expect(0);
    assert_eq!(posted(&lab), ["first", "second"]);
}

#[test]
fn a_kill_anywhere_around_an_approval_calls_the_tool_once() {
    for point in ["store.before-commit:9", "tool.before-call:1", "work.end:1", "invocation.end:1"] {
        let lab = lab();
        lab.run(&["run"]).expect(5);
        lab.run(&["approvals", "answer", &open(&lab)[0], "y"]).expect(0);
        lab.start_with(&["resume"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        for _ in 0..8 {
            let status: Value = lab.newest().expect("a run");
            match status["status"].as_str().expect("a status") {
                "completed" => break,
                "parked" => match open(&lab).first() {
                    Some(id) => drop(lab.run(&["approvals", "answer", id, "y"]).expect(0)),
                    None => {
                        let happened = if posted(&lab).is_empty() { "--did-not-happen" } else { "--happened={}" };
                        lab.run(&["answer", happened]).expect(0);
                    }
                },
                _ => {}
            }
            lab.run(&["resume"]);
        }
        assert_eq!(posted(&lab), ["first", "second"], "{point}");
    }
}
