//! Asks: one agent, a routed agent or the tasks of a plan answer, without a git repository; killed, steered, cancelled
//! and capped, they answer the same.

use crate::common::executor_cases::{self, Wanted};
use crate::common::fake::Kill;
use crate::common::lab::{Lab, Ran};
use crate::common::refused;
use crate::common::terminal::Terminal;
use serde_json::Value;
use std::time::Duration;

/// Two agents that put, post and look, and no repository.
const CONFIG: &str = r#"
[project]
name = "asked"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"
price_input_usd_per_million = 1.0
price_output_usd_per_million = 10.0

[planner]
plugin = "initializer"
models = ["fake"]
settings = { output_tokens_max = 100 }

[agents.one]
plugin = "react"
description = "knows about one"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1, output_tokens_max = 100 }

[agents.two]
plugin = "react"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1, output_tokens_max = 100 }

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true
approval = { when_heard = "allow" }
"#;

fn lab(config: &str) -> Lab {
    let lab = Lab::empty();
    let project = lab.project();
    std::fs::create_dir_all(&project).expect("ours");
    std::fs::write(project.join("longhaul.toml"), config.replace("{server}", &lab.fake.address)).expect("ours");
    lab
}

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|line| line["type"] == kind).map(|line| line["payload"].clone()).collect()
}

/// The answer is all that goes to standard output.
#[track_caller]
fn answer(ran: &Ran) -> String {
    assert_eq!(ran.code(), Some(0), "{}", ran.said());
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.said());
    ran.stdout.trim().to_owned()
}

/// Used to be refused: a checkpoint was asked for the branch and the commits of its run, and an ask has none.
#[test]
fn an_ask_goes_on_where_its_checkpoint_is_imported_without_a_repository() {
    let lab = lab(CONFIG);
    let mut started = lab.start(&["ask", "--agent", "one", "do alpha; put; look"]);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number: 2, happens: false });
    while started.is_running() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(started.wait().was_killed());
    let run = lab.runs().pop().expect("a run");
    let file = lab.path("checkpoint.json");
    let file = file.to_str().expect("text");
    lab.run(&["checkpoint", "export", &run, "--output", file]).expect(0);
    let other = Lab::empty();
    std::fs::create_dir_all(other.project()).expect("ours");
    std::fs::copy(lab.project().join("longhaul.toml"), other.project().join("longhaul.toml")).expect("ours");
    other.import(file).expect(0);
    other.run(&["resume"]).expect(0);
    assert_eq!(other.newest().expect("a run")["status"], "completed");
    assert_eq!(lab.fake.puts().values().collect::<Vec<_>>(), ["alpha"], "what was done is not done again");
}

#[test]
fn a_correction_reaches_the_agent_at_its_next_step_and_a_replay_hears_it_again() {
    let lab = lab(CONFIG);
    lab.fake.model_takes(Duration::from_millis(1_500));
    let mut started = lab.start(&["ask", "--agent", "one", "do alpha; put; look"]);
    started.wait_for("round 1");
    lab.run(&["steer", ":answer", "in capital letters"]).expect(0);
    let ran = started.wait();
    assert!(answer(&ran).contains("(Human guidance: in capital letters)"), "{}", ran.said());
    assert_eq!(events(&lab, "steering").len(), 1);
    lab.run(&["replay"]).expect(0);
    refused(&lab.run(&["steer", ":answer", "too late"]), &["no work is active"]);
}

#[test]
fn a_line_that_is_typed_while_it_goes_on_is_a_correction() {
    let lab = lab(CONFIG);
    lab.fake.model_takes(Duration::from_millis(1_500));
    let mut terminal = Terminal::start(&lab, &["ask", "--agent", "one", "do alpha; put; look"], &[]);
    terminal.wait_for("round 1", 1);
    terminal.types("in small letters");
    let (status, screen) = terminal.wait();
    assert!(status.success() && screen.contains("(Human guidance: in small letters)"), "{screen}");
}

/// It used to begin a new session, which did again what was done.
#[test]
fn a_cancelled_task_stops_and_a_resume_goes_on_where_it_was() {
    let lab = lab(CONFIG);
    lab.fake.model_takes(Duration::from_millis(600));
    let plan =
        r#"PLAN {"tasks": [{"id": "a", "instruction": "do a; post; look; look"}, {"id": "b", "instruction": "do b"}]}"#;
    let mut started = lab.start(&["ask", "--plan", plan]);
    while lab.fake.posts().is_empty() {
        assert!(started.is_running());
        std::thread::sleep(Duration::from_millis(5));
    }
    lab.run(&["cancel", ":a"]).expect(0);
    started.wait().expect(3);
    let status = lab.newest().expect("a run");
    assert_eq!((&status["status"], status["answer"].is_null()), (&"incomplete".into(), true));
    lab.fake.model_takes(Duration::ZERO);
    answer(&lab.run(&["resume"]));
    let status = lab.newest().expect("a run");
    assert_eq!(status["status"], "completed");
    let sessions: Vec<&Value> =
        status["features"].as_array().expect("a list").iter().map(|task| &task["sessions"]).collect();
    assert_eq!(sessions, [&Value::from(1), &Value::from(1)]);
    assert_eq!(lab.fake.posts().len(), 1, "what was done is not done again");
    lab.run(&["replay"]).expect(0);
}

/// It used to stay cancelled: what broke off went on as it was.
#[test]
fn a_task_that_was_cancelled_before_a_kill_is_taken_up_by_the_resume() {
    let lab = lab(CONFIG);
    lab.fake.model_takes(Duration::from_millis(800));
    let plan = r#"PLAN {"tasks": [{"id": "a", "instruction": "do a; put"}, {"id": "b", "instruction": "do b; put; put; put; put"}]}"#;
    let mut started = lab.start(&["ask", "--plan", plan]);
    started.wait_for("work on a");
    lab.run(&["cancel", ":a"]).expect(0);
    started.kill();
    assert!(started.wait().was_killed());
    lab.fake.model_takes(Duration::ZERO);
    lab.run(&["resume"]).expect(0);
    let status = lab.newest().expect("a run");
    assert_eq!(status["status"], "completed");
    assert!(status["features"].as_array().expect("a list").iter().all(|task| task["status"] == "passing"), "{status}");
}

#[test]
fn an_ask_stops_at_its_money_or_its_time_and_goes_on_when_it_gets_more() {
    let config = |limits: &str| format!("{CONFIG}\n[ask.limits]\n{limits}\n");
    let lab = lab(&config("cost_microdollars_max = 6000"));
    let plan: Vec<String> = (0..6).map(|n| format!(r#"{{"id": "t{n}", "instruction": "do t{n}; put"}}"#)).collect();
    let plan = format!(r#"PLAN {{"tasks": [{}]}}"#, plan.join(", "));
    let write = |text: &str| {
        std::fs::write(lab.project().join("longhaul.toml"), text.replace("{server}", &lab.fake.address)).expect("ours");
    };
    let stopped = lab.run(&["ask", "--plan", &plan]).expect(3);
    assert!(stopped.stderr.contains("cost_microdollars_max"), "{}", stopped.said());
    let cost = |lab: &Lab| lab.newest().expect("a run")["ledger"]["total"]["usage"]["cost_microdollars"].as_f64();
    let spent = cost(&lab).expect("a number");
    assert!(spent > 0.0 && spent <= 6_000.0, "{spent}");
    // Its costs are still counted.
    lab.run(&["resume"]).expect(3);
    assert!(cost(&lab).is_some_and(|now| now >= spent && now <= 6_000.0));
    write(&config("wall_ms_max = 1"));
    let stopped = lab.run(&["resume"]).expect(3);
    assert!(stopped.stderr.contains("wall_ms_max"), "{}", stopped.said());
    write(CONFIG);
    lab.run(&["resume"]).expect(0);
    let mut puts: Vec<_> = lab.fake.puts().into_values().collect();
    puts.sort();
    assert_eq!(puts, ["t0", "t1", "t2", "t3", "t4", "t5"]);
    let shown = lab.run(&["status"]).expect(0).stdout;
    assert!(shown.contains("of $2.0000") && shown.contains("of 180 s worked"), "{shown}");
    assert!(lab.run(&["report"]).expect(0).stdout.contains("ledger: $"));
}

/// Kills an ask at a request to the model.
fn killed_at(lab: &Lab, args: &[&str], number: u32) {
    let started = lab.start(args);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number, happens: true });
    assert!(started.wait().was_killed());
    lab.fake.settle();
}

/// Its memory used to be left out of the count.
#[test]
fn a_model_call_that_a_kill_cuts_off_stays_charged_and_is_shown() {
    let lab = lab(CONFIG);
    let total = |lab: &Lab| lab.newest().expect("a run")["ledger"]["total"].clone();
    killed_at(&lab, &["ask", "--agent", "one", "do alpha; put; look"], 2);
    killed_at(&lab, &["resume"], 3);
    lab.run(&["resume"]).expect(0);
    let total = total(&lab);
    assert_eq!(total["possibly_paid_twice"], 2, "{total}");
    // The longest reply of each, at least.
    assert!(total["interrupted_usage_max"]["output_tokens"].as_u64().is_some_and(|tokens| tokens == 200), "{total}");
    assert!(total["interrupted_usage_max"]["cost_microdollars"].as_f64().is_some_and(|cost| cost > 2_000.0), "{total}");
    for args in [&["status"] as &[&str], &["report"]] {
        let said = lab.run(args).expect(0).stdout;
        assert!(said.contains("possibly paid twice: 2 (up to $0.00"), "{said}");
        assert_eq!(said.matches("possibly paid twice").count(), 1, "one number: {said}");
    }
    // An attempt that was killed ended without an event, and the number was another one in each place.
    for args in [&["status"] as &[&str], &["report", "--format", "json"]] {
        let shown = lab.json(args);
        let numbers = [&shown["resource_usage"], &shown["features"][0]["resource_usage"], &shown["ledger"]["total"]];
        assert_eq!(numbers.map(|usage| usage["possibly_paid_twice"].as_u64()), [Some(2); 3], "{shown}");
    }
    // The cap counts it: what is left is less than what one call may cost.
    let one = total["interrupted_usage_max"]["cost_microdollars"].as_f64().expect("a number") / 2.0;
    let config = format!("{CONFIG}\n[ask.limits]\ncost_microdollars_max = {:.0}\n", one * 1.7);
    let config = config.replace("{server}", &lab.fake.address);
    std::fs::write(lab.project().join("longhaul.toml"), config).expect("ours");
    killed_at(&lab, &["ask", "--agent", "one", "do beta; put; look"], 7);
    let stopped = lab.run(&["resume"]).expect(3);
    assert!(stopped.stderr.contains("cost_microdollars_max"), "{}", stopped.said());
}

/// The bytes that a tool sent used to be left out of the count.
#[test]
fn bytes_that_a_tool_sends_are_counted_and_refused_by_the_cap_of_the_run() {
    let lab = lab(CONFIG);
    let sent = |lab: &Lab| lab.newest().expect("a run")["ledger"]["total"]["egress_bytes"].as_u64().expect("a number");
    answer(&lab.run(&["ask", "--agent", "one", "do alpha"]));
    let to_models = sent(&lab);
    answer(&lab.run(&["ask", "--agent", "one", "do alpha; put"]));
    let with_tool = sent(&lab);
    // Two requests to the model, of which the second has the first in it, and one of the tool.
    assert!(with_tool > 2 * to_models + 50, "{to_models}, {with_tool}");
    // Room for the first request to the model, and none for the tool's.
    let limits = format!("{CONFIG}\n[ask.limits]\negress_bytes_max = {}\n", to_models + 10);
    std::fs::write(lab.project().join("longhaul.toml"), limits.replace("{server}", &lab.fake.address)).expect("ours");
    let puts = lab.fake.puts().len();
    let stopped = lab.run(&["ask", "--agent", "one", "do alpha; put"]);
    assert_eq!(lab.fake.puts().len(), puts, "{}", stopped.said());
    let heard = lab.run(&["--json", "attach"]).stdout;
    assert!(heard.contains("egress_bytes_max"), "{}\n{heard}", stopped.said());
}

/// It used to be dropped without a word.
#[test]
fn a_correction_that_came_too_late_is_told_to_the_person_who_said_it() {
    let lab = lab(CONFIG);
    lab.fake.model_takes(Duration::from_millis(1_500));
    let mut started = lab.start(&["ask", "--agent", "one", "do alpha"]);
    started.wait_for("round 1");
    while lab.fake.asked().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    lab.run(&["steer", ":answer", "in capital letters"]).expect(0);
    let ran = started.wait().expect(0);
    assert!(ran.stderr.contains("answer ended before it was told: `in capital letters`"), "{}", ran.said());
}

/// The journal of the choice used to say that something else was asked.
#[test]
fn a_choice_that_was_cut_off_is_made_by_the_model_that_chooses_now() {
    let lab = lab(CONFIG);
    killed_at(&lab, &["ask", "--route", "do alpha; put\nto:two"], 1);
    let other = "\n[ask]\nmodel = \"other\"\n[models.other]\nprovider = \"openai\"\nid = \"other\"\nbase_url = \"http://{server}/v1\"\n";
    let config = format!("{CONFIG}{other}").replace("{server}", &lab.fake.address);
    std::fs::write(lab.project().join("longhaul.toml"), config).expect("ours");
    assert!(answer(&lab.run(&["resume"])).starts_with("alpha "));
    assert!(lab.fake.models()["other"].starts_with("You decide which agent"));
    assert_eq!(events(&lab, "dispatch")[0]["agent"], "two");
}

/// The test is a program of its own, since one that embeds the crate is not `longhaul`.
#[test]
fn a_rust_program_asks_waiting_or_watching() {
    const NAME: &str = "ask::a_rust_program_asks_waiting_or_watching";
    if let (Some(home), Some(project)) = (std::env::var_os("ASKS_IN"), std::env::var_os("ASKS_ABOUT")) {
        return embedded(home.into(), project.into());
    }
    let lab = lab(CONFIG);
    let program = lab.command(&[]);
    let mut embedding = std::process::Command::new(std::env::current_exe().expect("this test"));
    embedding.args(["--exact", NAME, "--nocapture"]).env("ASKS_IN", lab.home()).env("ASKS_ABOUT", lab.project());
    for (name, value) in program.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        embedding.env(name, value);
    }
    embedding.env("LONGHAUL_PROGRAM", program.get_program());
    let ran = lab.start_command(embedding).wait().expect(0);
    let said: Vec<&str> = ran.stdout.lines().filter_map(|line| line.strip_prefix("said: ")).collect();
    assert!(matches!(said[..], [one, two] if one.starts_with("\"alpha ") && two == "run_ended"), "{}", ran.said());
    assert_eq!(lab.runs().len(), 2);
}

fn embedded(home: std::path::PathBuf, project: std::path::PathBuf) {
    use futures_util::StreamExt as _;
    use longhaul::ask::{AskClient, AskRequest, Dispatch, ModelOptions, ask_blocking};
    use longhaul_core::stream::{Content, tag};
    let home = longhaul::Home::find(Some(home)).expect("a data directory");
    let question = |goal: &str| AskRequest {
        directory: project.clone(),
        goal: goal.into(),
        dispatch: Dispatch::Agent("two".into()),
        plan: None,
        models: ModelOptions::default(),
    };
    let answered = ask_blocking(&home, question("do alpha; put")).expect("answered");
    println!("said: {}", answered.synthesis.expect("an answer").answer);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let last = runtime.block_on(async {
        let asker = AskClient::open(&home, &project).await.expect("open");
        let (run, lines) = asker.stream(question("do beta")).await.expect("asked");
        let lines: Vec<_> = lines.collect().await;
        let last = lines.iter().rev().find_map(|line| match &line.content {
            Content::Event { event, .. } => Some(tag(event)),
            _ => None,
        });
        assert!(asker.answered(run).await.expect("a run").synthesis.is_some());
        asker.close().await;
        last.expect("an event")
    });
    println!("said: {last}");
}

/// A test serves no child processes, like a program that embeds the crate and does not say that it does.
#[test]
fn a_rust_program_that_serves_no_children_may_look_and_is_told_what_to_write_before_it_begins_a_run() {
    use longhaul::projects::{ProjectClient, RunOptions};
    let lab = lab(CONFIG);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let refused = runtime.block_on(async {
        let home = longhaul::Home::find(Some(lab.home())).expect("a data directory");
        let project = ProjectClient::open(&home, &lab.project()).await.expect("open");
        project.list().await.expect("projects can be listed");
        let refused = project.begin(RunOptions::default()).await.expect_err("there is no program for the children");
        project.close().await;
        refused
    });
    assert_eq!(
        refused.to_string(),
        "this program cannot run the child processes of longhaul; begin its `main` with `longhaul::run_child_if_asked()`, or name an installed `longhaul` with LONGHAUL_PROGRAM"
    );
}

/// The cases about the choice of an agent for a task; the others are about code, records, artifacts and schedules.
#[test]
fn executor_cases_about_agents() {
    for case in executor_cases::executions() {
        if !matches!(executor_cases::wanted(&case), Wanted::Unknown) {
            continue;
        }
        let ran = lab(CONFIG).run(&["ask", "x", "--agent", &case["agent"].as_str().expect("a name").replace(' ', "-")]);
        assert_eq!(ran.code() == Some(0), case["expected"]["success"].as_bool().expect("a truth value"));
        assert!(ran.stderr.contains(case["expected"]["error_contains"].as_str().expect("text")), "{}", ran.said());
    }
}
