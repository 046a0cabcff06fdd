//! A model that fails, and the one that is asked in its place, seen from the outside.

use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, THREE_FEATURES};
use longhaul_models::schema::{Dialect, check, strict};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

/// Two features that pass.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

/// The agents' model has no server, and the fake server's model is its fallback.
fn config() -> String {
    let dead = "[models.dead]\nprovider = \"openai\"\nid = \"dead\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                fallback = [\"fake\"]\n[models.dead.retry]\nretries_max = 0\n\n[agents.code]";
    DOER_CONFIG.replacen("[agents.code]", dead, 1).replace("models = [\"fake\"]", "models = [\"dead\"]")
}

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|line| line["type"] == kind).map(|line| line["payload"].clone()).collect()
}

/// Answers every request with something that is no answer.
fn nonsense() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone()?);
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line)? > 2 {
                    if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap_or(0);
                    }
                    line.clear();
                }
                reader.read_exact(&mut vec![0; length])?;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\nconnection: close\r\n\r\n";
                stream.write_all(format!("{head}nonsense").as_bytes())
            });
        }
    });
    address
}

/// It was paid and used to be in no ledger.
#[test]
fn an_answer_that_nobody_could_use_is_in_the_ledger() {
    let prices = "price_input_usd_per_million = 1.0\nprice_output_usd_per_million = 10.0\nfallback =";
    let config = config().replace("http://127.0.0.1:1/v1", &format!("http://{}/v1", nonsense()));
    let lab = Lab::new(&config.replace("fallback =", prices), goal());
    lab.run(&["run"]).expect(0);
    let thoughts = events(&lab, "thought");
    assert_eq!(thoughts[0]["route"]["failed"][0][0], "dead", "{}", thoughts[0]);
    let replied: f64 = thoughts.iter().filter_map(|one| one["usage"]["cost_microdollars"].as_f64()).sum();
    let total = &lab.newest().expect("a run")["ledger"]["total"]["usage"];
    // The model behind it has no price, so what is known of the cost is the least that it can be.
    assert!(total["cost_microdollars"].is_null(), "{total}");
    let paid = total["cost_microdollars_min"].as_f64().expect("a number");
    assert!(replied < f64::EPSILON && paid > 100.0, "{replied} {paid}");
}

/// A key that was refused used to block its feature, and a mistyped model to use up every round.
#[test]
fn a_provider_that_refuses_for_good_is_asked_once_and_the_run_waits_for_a_person() {
    let lab = Lab::new(DOER_CONFIG, goal());
    lab.fake.refuses(Some((404, "The model `fake` does not exist or you do not have access to it.")));
    let waits = lab.run(&["run"]).expect(5);
    let reason = "answered HTTP 404: The model `fake` does not exist or you do not have access to it.; check `base_url` and \
                  `id` of [models.fake]";
    assert!(waits.said().contains(reason), "{}", waits.said());
    assert_eq!(lab.fake.requests()["model"], 1, "{}", waits.said());
    let status = lab.newest().expect("a run");
    assert_eq!((&status["status"], &status["features"][0]["attempts"]), (&"parked".into(), &0.into()), "{status:#}");

    // The cause of the refusal is corrected: the same round continues.
    lab.fake.refuses(None);
    lab.run(&["resume"]).expect(0);
    assert!(events(&lab, "judged").iter().all(|event| event["round"] == 1));
    lab.run(&["replay"]).expect(0);
}

#[test]
fn every_model_that_is_configured_can_be_tried() {
    let lab = Lab::new(&config(), goal());
    let tried = lab.run(&["models", "test"]).expect(1);
    let line = |model: &str, kind: &str| {
        let found = tried.stdout.lines().find(|line| line.starts_with(model) && line.contains(kind));
        found.unwrap_or_else(|| panic!("no line for {model} {kind}: {}", tried.said())).to_owned()
    };
    assert!(line("fake", "plain").contains("works"), "{}", tried.said());
    assert!(line("fake", "plain").contains("cost unknown"), "{}", tried.said());
    // It answers with words whatever it is asked.
    assert!(line("fake", "schema").contains("fails  ") && line("fake", "schema").contains("does not fit the schema"));
    assert!(line("dead", "plain").contains("fails"), "its fallback says nothing about it: {}", tried.said());
    let one = lab.run(&["--json", "models", "test", "dead"]).expect(1).stdout;
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!((one.as_array().map(Vec::len), &one[0]["works"]), (Some(1), &false.into()), "{one}");
    let unknown = lab.run(&["models", "test", "gpt"]).expect(1);
    assert!(unknown.stderr.contains("there is no model `gpt`; longhaul.toml has: dead, fake"), "{}", unknown.said());
}

/// Free words for the planner, a feature for an agent and a judge, and a request for several agents.
const SENDERS: &str = r#"
[project]
name = "senders"

[run.limits]
iterations_max = 1
plan_attempts_max = 1

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[planner]
plugin = "initializer"
models = ["fake"]

[evaluator]
plugin = "rubric-evaluator"
models = ["fake"]

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files"]

[agents.other]
plugin = "react"
models = ["fake"]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true
"#;

/// React's used to be refused by OpenAI for its union at the root, its open arguments and its optional fields.
#[test]
fn every_schema_that_a_shipped_plugin_sends_is_taken_by_every_provider() {
    let mut sent = std::collections::BTreeMap::new();
    for goal in ["Make something nice.", "# One\n\n## Feature: one\n- criterion: it is nice\n\nNEXT-FILE: finish\n"] {
        let lab = Lab::new(SENDERS, goal);
        lab.run(&["run"]);
        lab.run(&["ask", "Which is nicer?"]);
        lab.run(&["ask", "--plan", "Which is nicer?"]);
        sent.extend(lab.fake.schemas());
    }
    let fields: Vec<&str> = sent.keys().map(String::as_str).collect();
    for sender in ["features question", "thought", "judgements", "rationale tasks question", "answer"] {
        assert!(fields.iter().any(|fields| fields.starts_with(sender)), "nobody sent `{sender}`: {fields:#?}");
    }
    for (fields, schema) in &sent {
        for dialect in Dialect::ALL {
            let strict = strict(schema, dialect).unwrap_or_else(|| panic!("{dialect:?} cannot be told `{fields}`"));
            assert_eq!(check(&strict, dialect), [], "{dialect:?} refuses `{fields}`");
        }
    }
}
