//! The memory of agents, in every backend; and the memory of an ended run, through kills.

use crate::common;
use crate::common::lab::Lab;
use crate::common::{ASKED_CONFIG, DOER_CONFIG, THREE_FEATURES};
use crate::redis_server::RedisServer;
use serde_json::{Value, json};
use std::net::TcpListener;

/// A project whose agent remembers something and looks for it.
const NOTER: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"

[agents.code.settings]
remember = [
    { tier = "working", key = "port", value = 8080 },
    { tier = "episodic", key = "the harbour's port", value = { number = 9090 } },
]
recall = [
    { tier = "working", key = "port" },
    { tier = "episodic", key = "the harbour's port" },
    { key = "nothing of it" },
]

[checks]
never = { argv = ["false"] }

[run.limits]
iterations_max = 1
"#;

const GOAL: &str = "# Ports\n\n## Feature: a port\n- id: all\n- check: never\n\nSay where the harbour is.\n";

fn memories(lab: &Lab, args: &[&str]) -> Vec<Value> {
    lab.json(&[&["memory"], args].concat())["items"].as_array().expect("a list").clone()
}

/// Scope, key and value of each.
fn short(memories: &[Value]) -> Vec<String> {
    let one = |one: &Value| {
        let value = one["value"].get("summary").unwrap_or(&one["value"]);
        format!("{} {} {value}", one["scope"].as_str().unwrap_or_default(), one["key"].as_str().unwrap_or_default())
    };
    memories.iter().map(one).collect()
}

/// The output of the newest run's agent.
fn output(lab: &Lab) -> Value {
    let journal = lab.json(&["journal", "--invocation", "f-all/1/generate"]);
    let result: Value = serde_json::from_str(journal["finished"]["result"].as_str().expect("a result")).expect("JSON");
    serde_json::from_str(result["returned"]["output"].as_str().expect("an output")).expect("JSON")
}

fn check_backend(config: &str) {
    let lab = Lab::new(&format!("{NOTER}{config}"), GOAL);
    lab.run(&["run"]).expect(3);
    assert_eq!(
        output(&lab),
        json!([
            "remembered",
            "remembered",
            { "kept": 8080, "found": ["port", "the harbour's port"] },
            { "kept": { "number": 9090 }, "found": ["the harbour's port", "port"] },
            { "kept": null, "found": [] },
        ]),
        "{config}"
    );
    let all = memories(&lab, &["list"]);
    assert!(short(&all).contains(&"working port 8080".to_owned()), "{config}: {all:?}");
    let fact = all.iter().find(|one| one["key"] == "the harbour's port").expect("kept");
    assert_eq!((&fact["by"], &fact["trust"]), (&json!("agents.code"), &json!("own-words")));
    let shown = lab.run(&["memory", "show", "the harbour's port"]).expect(0).stdout;
    assert!(shown.contains("step      f-all/1/generate\n"), "{shown}");
    // A second run finds it, in a process of its own.
    lab.run(&["memory", "forget", "port"]).expect(0);
    lab.run(&["run"]).expect(3);
    assert_eq!(memories(&lab, &["search", "harbour"])[0]["key"], "the harbour's port", "{config}");
    lab.run(&["replay"]).expect(0);
}

#[test]
fn agents_remember_in_the_data_directory() {
    check_backend("");
}

#[test]
fn agents_remember_on_a_redis_server() {
    let server = RedisServer::start();
    check_backend(&format!("[memory]\nbackend = \"redis\"\nredis = {{ url = \"{}\" }}\n", server.url()));
}

#[test]
fn agents_remember_in_a_component_of_any_language() {
    for language in ["rust", "js", "c"] {
        let shelf = common::repository().join(format!("target/plugins/sdk/{language}/shelf.wasm"));
        check_backend(&format!("[memory]\nbackend = \"plugin\"\nplugin = {{ plugin = \"{}\" }}\n", shelf.display()));
    }
}

#[test]
fn machines_with_one_server_share_what_is_remembered() {
    let server = RedisServer::start();
    let config = format!("{NOTER}[memory]\nbackend = \"redis\"\nredis = {{ url = \"{}\" }}\n", server.url());
    let [here, there, elsewhere] = [(); 3].map(|()| Lab::new(&config, GOAL));
    here.run(&["run"]).expect(3);
    // Its name, which any repository may choose, gives no access to its memory.
    elsewhere.run(&["run", "--plan-only"]).expect(4);
    assert!(memories(&elsewhere, &["search", "harbour"]).is_empty());
    let id = here.run(&["project", "id"]).expect(0).stdout;
    there.run(&["project", "same-as", id.trim()]).expect(0);
    there.run(&["run", "--plan-only"]).expect(4);
    let found = memories(&there, &["search", "harbour"]);
    assert_eq!(found[0]["key"], "the harbour's port", "{found:?}");
}

#[test]
fn a_server_that_is_away_is_waited_for_and_stops_nothing_that_can_do_without() {
    let mut server = RedisServer::start();
    let config = format!("{DOER_CONFIG}[memory]\nbackend = \"redis\"\nredis = {{ url = \"{}\" }}\n", server.url());
    server.kill();
    // No agent recalls anything here: the run goes on, and its outcome is remembered later.
    let lab = Lab::new(&config, THREE_FEATURES);
    let ran = lab.run(&["run"]).expect(3);
    assert!(ran.stderr.contains("remembered later"), "{}", ran.said());
    server.restart();
    assert_eq!(short(&memories(&lab, &["list", "--prefix", "feature/"])).len(), 2);
}

/// The labs' cache has no sentence model; a program that was built without says how to build it.
const NO_SENTENCES: &str = if cfg!(feature = "embeddings") {
    "fetch it with: longhaul models pull minilm"
} else {
    "build it with: cargo build --release --features embeddings"
};

#[test]
fn what_cannot_be_meant_is_refused_before_a_run() {
    for (config, expected) in [
        ("[memory]\nbackend = \"redis\"\n", "add [memory.redis] url"),
        ("[memory]\nbackend = \"plugin\"\n", "add [memory.plugin] plugin"),
        ("[memory]\nmodel = \"m\"\n", "there is no [models.m]"),
        ("[memory]\nredis = { url = \"redis://:hunter2@h/\" }\n", "url holds a password"),
        ("[memory]\nbackend = \"plugin\"\nplugin = { plugin = \"files\" }\n", "memory"),
        (
            "[memory]\nbackend = \"plugin\"\nplugin = { plugin = \"x\" }\nembeddings = \"minilm\"\n",
            "a component finds by itself",
        ),
        ("[memory]\nembeddings = \"minilm\"\n", NO_SENTENCES),
    ] {
        let ran = Lab::new(&format!("{NOTER}{config}"), GOAL).run(&["run"]).expect(1);
        assert!(ran.stderr.contains(expected) && !ran.said().contains("hunter2"), "{}", ran.said());
    }
}

#[test]
fn a_session_is_told_what_bears_on_its_feature() {
    let goal =
        "# Ledger\n\n## Feature: ledger\n- id: ledger\n- criterion: it is fine\n\nSum the ledger. NEXT-FILE: finish\n";
    let config = r#"
[project]
name = "kept"
[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"
[agents.code]
plugin = "react"
models = ["fake"]
[evaluator]
plugin = "lenient"
"#;
    let lab = Lab::new(config, goal);
    lab.run(&["run"]).expect(0);
    let told = |lab: &Lab| lab.fake.last_request().to_string().contains("Notes from earlier runs of this project");
    assert!(!told(&lab), "there is nothing to tell yet");
    lab.run(&["run"]).expect(0);
    assert!(told(&lab) && lab.fake.last_request().to_string().contains("feature/ledger"));
    // An operator can switch it off.
    std::fs::write(
        lab.project().join("longhaul.toml"),
        config.replace("{server}", &lab.fake.address) + "[memory]\nepisodic = false\n",
    )
    .expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "no memory"]);
    let before = memories(&lab, &["list"]).len();
    lab.run(&["run"]).expect(0);
    assert!(!told(&lab));
    assert_eq!(memories(&lab, &["list"]).len(), before);
}

/// It used to be asked for whatever the run had spent, and was in no ledger.
#[test]
fn what_remembering_costs_is_in_the_ledger_and_within_the_caps_of_the_run() {
    let remembered = |limits: &str| {
        let config = DOER_CONFIG
            .replace("[models.fake]", "[memory]\nmodel = \"fake\"\n\n[models.fake]")
            .replace("[run.limits]", &format!("[run.limits]\n{limits}"));
        let lab = Lab::new(&config, THREE_FEATURES);
        let episode = json!({ "facts": [], "episode": { "summary": "All went well.", "sources": [1] } });
        lab.fake.remembers(&episode.to_string());
        lab.run(&["run"]);
        let rows = lab.newest().expect("a run")["ledger"]["rows"].as_array().cloned().unwrap_or_default();
        let is_it = |row: &&Value| row["invocation"].as_str().is_some_and(|name| name.ends_with("/remember"));
        let calls = rows.iter().find(is_it).map(|row| row["resource_usage"]["model_calls"].clone());
        (lab.fake.asked_to_remember(), calls)
    };
    assert_eq!(remembered(""), (1, Some(json!(1))));
    assert_eq!(remembered("tokens_max = 1"), (0, None));
}

/// The memory of a run that a kill interrupted, and the number of requests to the model.
fn killed_at(point: &str) -> (Vec<String>, u32) {
    let config = DOER_CONFIG.replace("[models.fake]", "[memory]\nmodel = \"fake\"\n\n[models.fake]");
    let lab = Lab::new(&config, THREE_FEATURES);
    let facts = [
        json!({ "key": "port", "value": "It is 8080.", "sources": [1] }),
        json!({ "key": "b", "value": 2, "ttl_s": 3600 }),
    ];
    lab.fake
        .remembers(&json!({ "facts": facts, "episode": { "summary": "All went well.", "sources": [1] } }).to_string());
    let crash = format!("{point}:1");
    let environment: &[(&str, &str)] = if point.is_empty() { &[] } else { &[("LONGHAUL_CRASH_AT", &crash)] };
    let ran = lab.start_with(&["run"], environment).wait();
    assert_eq!(ran.was_killed(), !point.is_empty(), "{}", ran.said());
    (
        short(&memories(&lab, &["list"])).into_iter().map(|line| line.replace(&lab.runs()[0], "RUN")).collect(),
        lab.fake.asked_to_remember(),
    )
}

#[test]
fn a_kill_while_a_run_is_remembered_repeats_nothing_that_was_finished() {
    let without_times = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().map(|line| line.replace(|char: char| char.is_ascii_digit(), "")).collect()
    };
    let (expected, asked) = killed_at("");
    assert_eq!((expected.len(), asked), (3, 1), "{expected:?}");
    let expected = without_times(expected);
    for point in ["memory.before-extract", "memory.extracted", "memory.before-put", "memory.after-put"] {
        let (found, asked) = killed_at(point);
        assert_eq!((without_times(found), asked), (expected.clone(), 1), "{point}");
    }
}

/// Entries of another program used to be recalled, and to count as an agent's own words when they were noted again.
#[test]
fn an_agent_is_not_told_what_nobody_knows_the_origin_of() {
    let server = RedisServer::start();
    let config = format!("{NOTER}[memory]\nbackend = \"redis\"\nredis = {{ url = \"{}\" }}\n", server.url());
    let lab = Lab::new(&config, GOAL);
    // Put there by some other program.
    let until_ms = u64::MAX >> 12;
    let entry = json!({ "key": "rumour", "value": "\"the harbour is closed\"", "tags": [], "expires_at_ms": null });
    let stored = json!({ "entry": entry, "until_ms": until_ms }).to_string();
    server.ask(&["SET", "longhaul:m:13:episodic/kept:rumour", &stored]);
    server.ask(&["ZADD", "longhaul:i:episodic/kept", "0", "rumour"]);
    lab.run(&["run"]).expect(3);
    let fact = memories(&lab, &["show", "the harbour's port"]).remove(0);
    assert_eq!(fact["trust"], "own-words", "it heard nothing of it: {fact}");
}

/// A server that takes connections and says nothing.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("bound").to_string();
    (listener, address)
}

/// It used to be over only when it was remembered, however long the model for that took.
#[test]
fn an_ask_is_over_before_a_model_is_waited_for_that_says_what_to_remember() {
    let (_listener, address) = silent();
    let slow = "[models.slow]\nprovider = \"openai\"\nid = \"slow\"\n";
    let memory = format!("{slow}base_url = \"http://{address}/v1\"\n\n[memory]\nmodel = \"slow\"\n");
    let lab = Lab::empty();
    std::fs::create_dir_all(lab.project()).expect("ours");
    let config = format!("{ASKED_CONFIG}{memory}").replace("{server}", &lab.fake.address);
    std::fs::write(lab.project().join("longhaul.toml"), config).expect("ours");
    let mut started = lab.start(&["ask", "do alpha; put"]);
    // The answer is all that goes to standard output.
    while !started.printed().starts_with("alpha ") {
        assert!(started.is_running(), "it has the run remembered still: {}", started.printed());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // No other request waits for that: this process answers them meanwhile.
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    assert!(lab.run(&["ask", "do beta; put"]).stdout.starts_with("beta "));
    started.kill();
}

/// Orders used to wait for the process that started a run, and that process for its memory.
#[test]
fn a_project_whose_memory_does_not_answer_holds_up_no_other_one() {
    let (listener, address) = silent();
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.fake.model_takes(std::time::Duration::from_secs(60));
    let memory = format!("[memory]\nbackend = \"redis\"\nredis = {{ url = \"redis://{address}/0\" }}\n");
    lab.make_project("other", &format!("{}{memory}", NOTER.replace("\"kept\"", "\"other\"")), GOAL);
    let mut owner = lab.start(&["run"]);
    while !lab.fake.requests().contains_key("model") {
        assert!(owner.is_running(), "{}", owner.printed());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let other = lab.path("other");
    let mut held_up = lab.start(&["--project", other.to_str().expect("text"), "run"]);
    // It asks its memory before there is a run.
    let connected = listener.accept().expect("its memory is asked");
    lab.run(&["pause"]).expect(0);
    assert_eq!(lab.runs().len(), 1, "the other one is not there yet");
    assert!(held_up.is_running(), "{}", held_up.printed());
    drop(connected);
}
