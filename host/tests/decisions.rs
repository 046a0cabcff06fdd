//! What is decided is kept with its reason, found by what it is about, and judged by what came of it.

mod common;

use common::lab::Lab;
use common::outcome::decisions;
use common::{DOER_CONFIG, THREE_FEATURES};
use serde_json::Value;

/// The ids of the hits of a question, the best first.
fn found(lab: &Lab, question: &str) -> Vec<Value> {
    let listed = lab.run(&["--json", "decisions", "list", "--query", question]).expect(0).stdout;
    listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn decisions_are_kept_judged_by_their_feature_and_found_by_words() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.run(&["run"]).expect(3);
    let run = lab.runs().pop().expect("a run");
    let mut all = decisions(&lab, &run);
    all.sort();
    assert_eq!(
        all,
        [
            r#""agents.code" "one" "success" "did one-1 in a file""#,
            r#""agents.code" "three" "failure" "did three-1 in a file""#,
            r#""agents.code" "three" "failure" "did three-2 in a file""#,
            r#""agents.code" "two" "success" "did two-1 in a file""#,
            r#""longhaul" null "open" "build 3 features: the first; the second; the one without a fox""#,
        ]
    );

    let hits = found(&lab, "which files did three");
    assert_eq!(hits[0]["decision"]["feature"], "three", "{hits:?}");
    let why = hits[0]["why"].as_str().expect("a text");
    assert!(why.contains("tagged files") && why.contains("came out as failure"), "{why}");
    assert!(found(&lab, "nothing of the kind").is_empty());

    let id = hits[0]["decision"]["id"].as_str().expect("an id");
    lab.run(&["decisions", "feedback", id, "--score", "-7", "--lesson", "look for the fox first"]).expect(0);
    let judged = lab.json(&["decisions", "show", id]);
    assert_eq!((&judged["score"], &judged["outcome"]), (&(-1.0).into(), &"failure".into()), "{judged}");
    assert_eq!(found(&lab, "fox")[0]["decision"]["id"], id, "a lesson is searched too");

    let refused = |arguments: &[&str], expected: &str| {
        let ran = lab.run(arguments).expect(1);
        assert!(ran.stderr.contains(expected), "{}", ran.said());
    };
    refused(&["decisions", "show", "none"], "there is no decision `none`");
    refused(&["decisions", "feedback", id], "say what came of it");
    refused(&["decisions", "show", ""], "several decisions begin with ``; write more of it");
}
