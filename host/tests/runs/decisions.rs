//! What is decided is kept with its reason, found by what it is about, and judged by what came of it.

use crate::common::lab::Lab;
use crate::common::outcome::decisions;
use crate::common::{DOER_CONFIG, THREE_FEATURES};
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
            r#""agents.code" "two" "success" "hand `help-a` to agents.helper""#,
            r#""agents.code" "two" "success" "hand `help-b` to agents.helper""#,
            r#""agents.code" "two" "success" "hand `help-deep` to agents.helper""#,
            r#""agents.helper" "two" "success" "hand `help-deep` to agents.helper""#,
            r#""agents.helper" "two" "success" "hand `help-deep` to agents.helper""#,
            r#""longhaul" "three" "failure" "try three again, in round 2""#,
            r#""longhaul" null "open" "build 3 features: the first; the second; the one without a fox""#,
        ]
    );

    let retried = &found(&lab, "try again")[0];
    assert_eq!((&retried["decision"]["tags"][0], &retried["decision"]["by"]), (&"retry".into(), &"longhaul".into()));
    assert!(retried["decision"]["reasoning"].as_str().is_some_and(|why| why.contains("has-fox")), "{retried}");

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

/// A project whose planner tells what it was told.
const TELLER: &str = r#"
[project]
name = "kept"

[planner]
plugin = "teller"

[agents.code]
plugin = "caller"
settings = { decide = "Keep dates as text in ISO 8601, since the parser of {id} is slow." }

[run.limits]
iterations_max = 1
text_bytes_max = 20000
"#;

/// What the planner of the newest run was told of decisions.
fn told(lab: &Lab) -> Value {
    let planned = lab.json(&["journal", "--invocation", "plan"]);
    let result: Value = serde_json::from_str(planned["finished"]["result"].as_str().expect("a result")).expect("JSON");
    let notes = result["returned"]["notes"].as_str().expect("the planner's notes");
    serde_json::from_str::<Value>(notes).expect("its context")["decisions"].clone()
}

#[test]
fn a_planner_is_told_the_decisions_that_bear_on_its_goal_and_why() {
    let lab = Lab::new(TELLER, "Parse the dates of a log file.\n");
    lab.run(&["run"]).expect(3);
    assert_eq!(told(&lab), Value::Null, "nothing was decided before the first run");

    std::fs::write(lab.project().join("GOAL.md"), "A parser that reads a date.\n").expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "another goal"]);
    lab.run(&["run"]).expect(3);
    let first = &told(&lab)[0];
    assert_eq!(first["decision"], "Keep dates as text in ISO 8601, since the parser of all is slow.");
    assert_eq!((&first["about"], &first["outcome"]), (&"how to do all".into(), &"failure".into()));
    assert_eq!(first["chosen_because"], "has 2 of 3 words: date, parser; came out as failure");

    std::fs::write(lab.project().join("GOAL.md"), "Nothing of that kind.\n").expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "a third goal"]);
    lab.run(&["run"]).expect(3);
    assert_eq!(told(&lab), Value::Null, "what does not bear on the goal is not told");
}
