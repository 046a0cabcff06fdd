//! A model that fails, and the one that is asked in its place, seen from the outside.

mod common;

use common::lab::Lab;
use common::{DOER_CONFIG, THREE_FEATURES};
use serde_json::Value;

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
