//! A model that fails, and the one that is asked in its place, seen from the outside.

mod common;

use common::lab::Lab;
use common::{DOER_CONFIG, THREE_FEATURES};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

/// Two features that pass.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

/// The agents' model is one that nobody serves, with the fake server's behind it.
fn config() -> String {
    let dead = "[models.dead]\nprovider = \"openai\"\nid = \"dead\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                fallback = [\"fake\"]\n[models.dead.retry]\nretries_max = 0\n\n[agents.code]";
    DOER_CONFIG.replacen("[agents.code]", dead, 1).replace("models = [\"fake\"]", "models = [\"dead\"]")
}

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_run_goes_on_with_the_model_behind_one_that_is_down_and_a_replay_takes_the_same_way() {
    let lab = Lab::new(&config(), goal());
    lab.run(&["run"]).expect(0);
    let thoughts = events(&lab, "thought");
    assert!(!thoughts.is_empty());
    for thought in &thoughts {
        assert_eq!((&thought["model"], &thought["route"]["served_by"]), (&"fake".into(), &"fake".into()), "{thought}");
    }
    assert_eq!(thoughts[0]["route"]["failed"][0][0], "dead", "{}", thoughts[0]);
    assert!(
        thoughts[0]["route"]["failed"][0][1].as_str().is_some_and(|why| why.contains("connect")),
        "{}",
        thoughts[0]
    );
    // It rests for a minute: nobody waits for it once more.
    assert!(thoughts.iter().skip(1).all(|thought| thought["route"]["failed"].is_null()), "{thoughts:?}");
    let asked = lab.fake.asked().len();
    lab.run(&["replay"]).expect(0);
    assert_eq!(lab.fake.asked().len(), asked, "a replay asks nobody");
}

#[test]
fn a_fallback_that_is_not_there_is_refused_before_the_run() {
    let lab = Lab::new(&config().replace("fallback = [\"fake\"]", "fallback = [\"fkae\"]"), goal());
    let refused = lab.run(&["run"]).expect(1);
    assert!(
        refused.stderr.contains("`[models.dead] fallback` is `fkae`: there is no such model"),
        "{}",
        refused.said()
    );
    assert!(lab.runs().is_empty());
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
    let paid = total["cost_microdollars"].as_f64().expect("a number");
    assert!(replied < f64::EPSILON && paid > 100.0, "{replied} {paid}");
}
