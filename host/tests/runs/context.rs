//! A conversation that is longer than its window is cut back, and a run that is killed while that is done ends
//! as the same run that was not.
//!
//! The agent is `react`, and reads twelve files of which four fill the window; see [`crate::common::reader`] for its
//! model, which knows what to do next from its context alone.

use crate::common::fake::Kill;
use crate::common::lab::Lab;
use crate::common::outcome::Outcome;
use crate::common::reader::{FAILED, NEXT};
use crate::common::{DOER_CONFIG, THREE_FEATURES};
use longhaul_core::model::{text_tokens, text_tokens_most};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The window, in tokens as the model counts.
const WINDOW: u64 = 6_000;

/// Files to read.
const FILES: usize = 12;

/// `{policy}` is the rule.
const CONFIG: &str = r#"
[project]
name = "long"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"
context_tokens_max = 6000

[context]
policy = "{policy}"

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files"]
settings = { steps_max = 60 }

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[checks]
done = { argv = ["grep", "-q", "done", "done.txt"] }

[run.limits]
unavailable_wait_ms_min = 100
"#;

const GOAL: &str = "# Long

## Feature: all files are read
- id: read
- check: done

Read file after file; each names the next. NEXT-FILE: a00.txt
";

fn lab(policy: &str) -> Lab {
    lab_of(&CONFIG.replace("{policy}", policy))
}

fn lab_of(config: &str) -> Lab {
    let lab = Lab::new(config, GOAL);
    for number in 0..FILES {
        let next = if number + 1 < FILES { format!("a{:02}.txt", number + 1) } else { "none".to_owned() };
        let text = format!("{NEXT}{next}\n{}", format!("line of file {number}\n").repeat(150));
        std::fs::write(lab.project().join(format!("a{number:02}.txt")), text).expect("ours");
    }
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "files"]);
    lab
}

/// The entries of the agent's journal with that name.
fn entries(lab: &Lab, name: &str) -> Vec<Value> {
    let run = lab.runs().pop().expect("a run");
    let answer = lab.json(&["journal", &run, "--invocation", "f-read/1/generate"]);
    let entries = answer["entries"].as_array().expect("a list");
    entries.iter().filter(|entry| entry["name"] == name).cloned().collect()
}

/// Summaries that the model was asked for.
fn summaries_asked(lab: &Lab) -> Vec<String> {
    lab.fake.asked().into_iter().filter(|asked| is_summary(asked)).collect()
}

fn is_summary(asked: &str) -> bool {
    asked.contains("The transcript stands between")
}

#[test]
fn every_policy_keeps_a_long_conversation_within_its_window_and_on_its_way() {
    let cases = [
        ("reset", "conversation.reset", "context reset (reset)"),
        ("auto", "conversation.reset", "context reset (auto)"),
        ("compact", "conversation.refer", "context compacted (compact)"),
        ("halve", "conversation.halve", "context compacted (halve)"),
    ];
    for (policy, entry, shown) in cases {
        let lab = lab(policy);
        let ran = lab.run(&["run"]).expect(0);
        assert!(ran.stdout.contains(shown), "{policy}: {}", ran.said());
        assert!(!entries(&lab, entry).is_empty(), "{policy} leaves entries");
        let reads = entries(&lab, "tools.call")
            .iter()
            .filter(|entry| entry["summary"].to_string().contains("files.read"))
            .count();
        assert_eq!(reads, FILES, "{policy}: each file is read once, so the thread was not lost");
        let most = lab.fake.tokens_most();
        assert!(most > WINDOW / 2 && most <= WINDOW, "{policy}: {most} tokens");
        lab.run(&["replay"]).expect(0);
    }
}

/// The window used to be taken for 128,000 tokens, and each round ended in the same refusal.
#[test]
fn a_window_that_the_server_names_is_told_and_cut_back_to() {
    let config = CONFIG.replace("{policy}", "compact").replace("context_tokens_max = 6000\n", "");
    let lab = lab_of(&config);
    lab.fake.has_window(WINDOW);
    let ran = lab.run(&["--json", "run"]).expect(0);
    let warned = ran.stdout.lines().any(|line| {
        line.contains("refused a conversation of") && line.contains("tokens as longer than its window of 6000")
    });
    assert!(warned, "{}", ran.said());
    assert!(ran.stdout.contains("\"compaction\""), "{}", ran.said());
    assert!(lab.fake.tokens_most() <= WINDOW);
    lab.run(&["replay"]).expect(0);
}

#[test]
fn without_a_policy_the_conversation_is_refused_as_before() {
    let lab = lab("off");
    let ran = lab.run(&["run"]);
    assert!(ran.said().contains("context_tokens_max"), "{}", ran.said());
    assert_eq!(summaries_asked(&lab), Vec::<String>::new());
}

#[test]
fn what_failed_is_in_every_hand_off_and_every_summary_has_a_link() {
    let lab = lab("reset");
    let ran = lab.run(&["--json", "run"]).expect(0);
    let events: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let resets: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "reset").map(|event| &event["payload"]).collect();
    assert!(resets.len() >= 2, "{}", ran.said());
    for reset in &resets {
        assert!(reset["tokens_before"].as_u64() > Some(WINDOW * 8 / 10), "{reset}");
        assert!(reset["tokens_after"].as_u64() < Some(WINDOW * 4 / 10), "{reset}");
        assert_eq!(reset["replaced"].as_str().map(str::len), Some(64), "{reset}");
    }
    let ended = events.iter().rfind(|event| event["type"] == "done").expect("it ended");
    assert_eq!(ended["payload"]["used"]["context_resets"], resets.len(), "{ended}");
    let second = &summaries_asked(&lab)[1];
    assert!(second.contains(FAILED), "the model that hands off is told what failed before: {second}");
}

#[test]
fn a_kill_around_a_summary_asks_for_it_at_most_once_more() {
    let reference = lab("auto");
    reference.run(&["run"]).expect(0);
    let expected = Outcome::of(&reference);
    let asked = reference.fake.asked();
    let summaries: Vec<usize> = (0..asked.len()).filter(|place| is_summary(&asked[*place])).collect();
    assert!(summaries.len() >= 2, "{asked:#?}");
    // Each summary while it is on its way, answered or not, and the request after it.
    let kills = summaries.iter().take(2).flat_map(|place| [(place + 1, true), (place + 1, false), (place + 2, true)]);
    for (number, happens) in kills {
        let lab = lab("auto");
        let started = lab.start(&["run"]);
        let number = u32::try_from(number).expect("few");
        lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number, happens });
        assert!(started.wait().was_killed(), "request {number}");
        lab.fake.settle();
        lab.run(&["resume"]).expect(0);
        assert_eq!(Outcome::of(&lab), expected, "killed at request {number}");
        let asked = lab.fake.asked();
        let again = asked.len() - asked.iter().collect::<BTreeSet<_>>().len();
        // The one in flight, if it got through; nothing that was answered.
        assert_eq!(again, usize::from(happens), "killed at request {number}: {asked:#?}");
        lab.run(&["replay"]).expect(0);
    }
}

#[test]
fn a_changed_rule_counts_from_the_next_invocation_on() {
    let lab = lab("reset");
    let started = lab.start(&["run"]);
    let number = 8;
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number, happens: true });
    assert!(started.wait().was_killed());
    let path = lab.project().join("longhaul.toml");
    let config = std::fs::read_to_string(&path).expect("ours");
    let changed = config.replace("policy = \"reset\"", "policy = \"off\"");
    std::fs::write(&path, changed).expect("ours");
    lab.run(&["resume"]).expect(0);
    assert!(entries(&lab, "conversation.reset").len() >= 2, "the invocation goes on with the rules that it began with");
    lab.run(&["replay"]).expect(0);
}

/// The files of `longhaul new`, with the model of the test and a check.
fn template() -> String {
    let written = include_str!("../../crates/config/src/template/longhaul.toml").replace("{{name}}", "large");
    let model = "id = \"gpt-5-mini\"\napi_key_env = \"OPENAI_API_KEY\"";
    assert!(written.contains(model), "{written}");
    let fake = "id = \"fake\"\nbase_url = \"http://{server}/v1\"";
    format!(
        "{}\n[checks]\nrounds = {{ argv = [\"grep\", \"-q\", \"round(total\", \"src/part0/money.py\"] }}\n",
        written.replace(model, fake)
    )
}

/// A goal of twelve features, of which one is worked on first.
fn goal_of_twelve() -> String {
    let mut goal = "# Twelve\n\n## Feature: totals are rounded\n- id: rounding\n- priority: 10\n- check: rounds\n\nRound the total \
                    of an invoice to cents in money.py.\n"
        .to_owned();
    for number in 1..12 {
        let words = format!("UNRELATED-{number} ").repeat(300);
        let _ = write!(
            goal,
            "\n## Feature: another {number}\n- id: other{number}\n- depends on: rounding\n- check: rounds\n\n{words}\n"
        );
    }
    goal
}

/// A project with so many source files, with what agents are to know in a file of its own.
fn large_lab(files: usize) -> Lab {
    let lab = Lab::new(&template(), &goal_of_twelve());
    for number in 0..files {
        let directory = lab.project().join(format!("src/part{}/sub{}", number % 10, number % 7));
        std::fs::create_dir_all(&directory).expect("ours");
        let text = format!(
            "import core\n\n\ndef handle_event_{number}(event, context=None):\n    return core.dispatch(event)\n\n\n\
             class Worker{number}:\n    def run(self, limit: int) -> None:\n        pass\n"
        );
        std::fs::write(directory.join(format!("worker_{number}.py")), text).expect("ours");
    }
    let top = lab.project().join("src/part0");
    std::fs::create_dir_all(&top).expect("ours");
    std::fs::write(top.join("money.py"), "def total_of(lines):\n    total = sum(lines)\n    return total\n")
        .expect("ours");
    std::fs::write(lab.project().join("AGENTS.md"), "Keep functions short.\n".repeat(1_000)).expect("ours");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "files"]);
    lab
}

/// Tokens of a request, estimated and at most, as the host counts them.
fn tokens_of(request: &Value) -> (u64, u64) {
    let messages = request["messages"].as_array().expect("messages").iter();
    let said = messages
        .map(|message| message["content"].as_str().map_or_else(|| message["content"].to_string(), str::to_owned));
    let form = [request["tools"].to_string(), request["response_format"].to_string()];
    let texts: Vec<String> = said.chain(form).collect();
    (texts.iter().map(|text| text_tokens(text)).sum(), texts.iter().map(|text| text_tokens_most(text)).sum())
}

#[test]
fn an_agent_on_a_large_repository_begins_small_and_ends_once_its_checks_pass() {
    let lab = large_lab(2_000);
    let act = |action: &str, args: Value| json!({ "thought": "next", "action": action, "args": args });
    let edit = |old: &str, new: &str| json!({ "old": old, "new": new });
    lab.fake.says([
        act("todo.write", json!({ "items": [{ "text": "round the total", "state": "doing" }] })),
        act("goal", json!({})),
        act(
            "files.edit",
            json!({ "path": "src/part0/money.py", "old": "return total", "new": "return total  # cents" }),
        ),
        json!({ "thought": "done", "action": "finish", "answer": "rounded" }),
        act(
            "files.multi_edit",
            json!({ "path": "src/part0/money.py", "edits": [
            edit("sum(lines)", "sum(line for line in lines)"), edit("return total  # cents", "return round(total, 2)"),
        ] }),
        ),
        json!({ "thought": "done", "action": "finish", "answer": "rounded to cents" }),
    ]);
    let ran = lab.run(&["--json", "run", "--sessions", "1"]);
    let requests = lab.fake.replied_to();
    assert_eq!(requests.len(), 6, "{}", ran.said());

    let first = requests[0]["messages"].to_string();
    let (estimated, most) = tokens_of(&requests[0]);
    println!("{estimated} tokens, at most {most}");
    assert!(estimated < 8_000, "{estimated} tokens, at most {most}");
    assert!(
        first.contains("Round the total of an invoice") && !first.contains("UNRELATED"),
        "its own feature alone: {first}"
    );
    assert!(first.contains("src/part0/money.py\\n  def total_of(lines)"), "what matters is in the map: {first}");
    assert!(first.contains("AGENTS.md of the repository says") && first.contains("Keep functions short"), "{first}");
    let told =
        |at: usize| requests[at]["messages"].as_array().and_then(|all| all.last()).expect("one")["content"].to_string();
    assert!(told(1).contains("0 of 1 done; now: round the total"), "{}", told(1));
    assert!(told(2).contains("UNRELATED-1"), "the rest of the goal is there when it is asked for: {}", told(2));
    assert!(told(3).contains("\\\"lines_added\\\":1"), "{}", told(3));
    assert!(told(4).contains("You are not done") && told(4).contains("`rounds` fails"), "{}", told(4));
    assert!(told(5).contains("\\\"lines_added\\\":2,\\\"lines_removed\\\":2"), "{}", told(5));

    let events: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let todo = events
        .iter()
        .find(|event| event["type"] == "observation" && event["payload"]["tool"] == "todo")
        .expect("people see the list");
    assert!(todo["payload"]["output"].as_str().is_some_and(|text| text.contains("[>] round the total")), "{todo}");
    assert!(events.iter().any(|event| event["type"] == "commit" && event["task"] == "rounding"), "{}", ran.said());
    lab.run(&["replay"]).expect(0);
}

#[test]
fn an_agent_that_says_it_is_done_and_is_not_is_a_sign_of_anxiety() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    let ran = lab.run(&["--json", "run"]).expect(3);
    let events = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let signs: Vec<Value> =
        events.filter(|event| event["type"] == "anxiety").map(|event| event["payload"].clone()).collect();
    let unmet: Vec<&Value> = signs.iter().filter(|sign| sign["sign"] == "criteria_unmet").collect();
    assert!(!unmet.is_empty(), "{}", ran.said());
    for sign in unmet {
        assert!(sign["invocation"].as_str().is_some_and(|name| name.contains("/f-three/")), "{sign}");
        assert!(sign["criteria"].as_array().is_some_and(|criteria| !criteria.is_empty()), "{sign}");
    }
}
