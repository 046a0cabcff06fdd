//! Tests of artifacts and agents: after a thousand runs, and with hostile input.

use longhaul_agents::compress::{
    FinishedRun, LIST_MAX, PART_CHARS, compress, context, parts, printed, summary, without_laid_over,
};
use longhaul_agents::{
    AgentCode, AgentError, AgentLimits, AgentPatch, AgentRecord, ArtifactHead, NewAgent, NewArtifactVersion,
    STATE_BYTES_MAX,
};
use longhaul_core::Name;
use serde_json::{Value, json};
use std::path::PathBuf;

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn ran(output: &str, run_count: u64) -> FinishedRun<'_> {
    FinishedRun { output, run_count, at_ms: 1_767_225_600_000, error: None }
}

fn next(state: Value) -> NewArtifactVersion {
    NewArtifactVersion { state, summary: "s".to_owned(), run_count: 1, at_ms: 0, made_by: "a person".to_owned() }
}

#[test]
fn a_line_with_a_state_at_the_end_is_handed_on_and_is_no_output() {
    let found = printed("working\n{\"state\": {\"n\": 1}, \"summary\": \"one\"}\n\n");
    assert_eq!(
        (found.output.as_str(), found.state, found.summary.as_deref()),
        ("working\n", Some(json!({"n": 1})), Some("one"))
    );
    assert_eq!(printed("{\"state\": null}").state, Some(Value::Null));
    assert_eq!(printed("{\"state\": [1]}").state, Some(json!([1])));
    for other in [
        "",
        "\n",
        "{\"state\": 1}\nmore",
        "{\"states\": 1}",
        "[\"state\"]",
        "state",
        "{\"state\": ",
        "x {\"state\": 1}",
    ] {
        let found = printed(other);
        assert_eq!((found.output.as_str(), found.state), (other, None));
    }
}

#[test]
fn what_the_user_wrote_stays_and_what_we_write_is_written_over() {
    let before = json!({ "counters": {"a": 1}, "alerts": [1], "other": 2, "run_count": 99, "long": vec![0; 500] });
    let after = compress(Some(before), &ran("x", 4));
    assert_eq!(after["counters"], json!({"a": 1}));
    assert_eq!((&after["alerts"], &after["other"]), (&json!([1]), &json!(2)));
    assert_eq!((&after["run_count"], &after["previous_output"]), (&json!(4), &json!("x")));
    assert_eq!(after["last_run"], "2026-01-01T00:00:00Z");
    assert_eq!(after["long"].as_array().map(Vec::len), Some(500), "a list of the user's is not cut");
    assert_eq!(after.get("recent_errors"), None);
    for whole in [json!([1, 2]), json!("text"), json!(7)] {
        assert_eq!(compress(Some(whole.clone()), &ran("x", 1)), whole);
    }
}

#[test]
fn of_long_output_the_beginning_and_the_end_are_kept_by_characters() {
    let exact = "ä".repeat(2 * PART_CHARS);
    assert_eq!(parts(&exact), exact);
    let long = format!("begin{}end", "ä".repeat(3 * PART_CHARS));
    let kept = parts(&long);
    assert!(kept.starts_with("beginä") && kept.ends_with("äend"), "{kept}");
    assert!(kept.contains("[… 508 characters left out …]"), "{kept}");
    assert_eq!(summary(&format!("  {}", "ö".repeat(300)), None), "ö".repeat(200));
    assert_eq!(summary("x", Some("no")), "failed: no");
}

#[test]
fn only_the_last_hundred_errors_are_kept() {
    let mut state = None;
    for number in 0..250 {
        let error = format!("error {number} {}", "x".repeat(1_000));
        state = Some(compress(state, &FinishedRun { error: Some(&error), ..ran("", number) }));
    }
    let errors = state.as_ref().and_then(|state| state["recent_errors"].as_array()).expect("a list");
    assert_eq!(errors.len(), LIST_MAX);
    assert!(
        errors[0]["error"].as_str().is_some_and(|text| text.starts_with("error 150 ") && text.chars().count() == 200)
    );
    // A list of that name from the user stays unchanged.
    let odd = compress(Some(json!({"recent_errors": "mine"})), &FinishedRun { error: Some("e"), ..ran("", 1) });
    assert_eq!(odd["recent_errors"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_state_stays_bounded_over_a_thousand_runs() {
    let (mut state, mut sizes) = (Some(json!({ "mine": 1 })), Vec::new());
    for number in 1..=1_000 {
        let error = (number % 3 == 0).then_some("it rained");
        let output = "line\n".repeat(number % 700);
        let run_count = u64::try_from(number).unwrap_or_default();
        let after = compress(state.take(), &FinishedRun { error, output: &output, ..ran("", run_count) });
        sizes.push(after.to_string().len());
        state = Some(after);
    }
    assert!(sizes.iter().max() < Some(&20_000), "{:?}", sizes.iter().max());
    let state = state.expect("a state");
    assert_eq!((&state["mine"], &state["run_count"]), (&json!(1), &json!(1_000)));
}

#[test]
fn config_and_input_are_laid_over_the_state_and_not_kept() {
    let (config, input) = (json!({"unit": "C"}), json!(3));
    assert_eq!(context(None, &Value::Null, None), json!({}));
    assert_eq!(context(Some(&json!([1])), &Value::Null, None), json!({"state": [1]}));
    let seen = context(Some(&json!({"n": 1, "input": "own"})), &config, Some(&input));
    assert_eq!(seen, json!({"n": 1, "input": 3, "config": {"unit": "C"}}));
    let before = json!({"n": 1, "input": "own"});
    let kept = without_laid_over(seen.clone(), Some(&before), &config, Some(&input));
    assert_eq!(kept, before);
    let own = json!({"config": 1});
    assert_eq!(without_laid_over(own.clone(), None, &Value::Null, None), own, "a key of the user's own");
}

#[test]
fn a_first_run_finds_nothing_and_a_damaged_artifact_is_no_first_run() {
    let agent = name("a");
    assert_eq!(ArtifactHead::read(&agent, None), Ok(ArtifactHead::default()));
    let head = ArtifactHead::default().with(&agent, next(json!({"n": 1}))).expect("fits");
    let bytes = serde_json::to_vec(&head).expect("JSON");
    assert_eq!(ArtifactHead::read(&agent, Some(&bytes)), Ok(head.clone()));
    let cleared = serde_json::to_vec(&head.cleared()).expect("JSON");
    assert_eq!(ArtifactHead::read(&agent, Some(&cleared)).map(|head| (head.version, head.artifact)), Ok((2, None)));
    let other = String::from_utf8(bytes.clone()).expect("text");
    for damaged in [
        &b""[..],
        b"null",
        b"{}",
        b"{\"version\": 0, \"artifact\": null}",
        &bytes[..bytes.len() - 1],
        &bytes[..bytes.len() / 2],
        &[0xff; 40],
        other.replace("\"agent\":\"a\"", "\"agent\":\"b\"").as_bytes(),
        other.replacen("\"version\":1", "\"version\":2", 1).as_bytes(),
    ] {
        let error = ArtifactHead::read(&agent, Some(damaged)).expect_err("damaged");
        assert!(matches!(error, AgentError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("damaged") && error.to_string().contains("artifact clear a"), "{error}");
    }
}

#[test]
fn who_changes_an_artifact_by_a_version_overwrites_nothing_unseen() {
    let agent = name("a");
    let first = ArtifactHead::default().with(&agent, next(json!(1))).expect("fits");
    let second = first.with(&agent, next(json!(2))).expect("fits");
    assert_eq!((first.version, second.version, second.cleared().version), (1, 2, 3));
    assert_eq!(second.expect(&agent, None), Ok(()));
    assert_eq!(second.expect(&agent, Some(2)), Ok(()));
    let error = second.expect(&agent, Some(1)).expect_err("changed");
    assert_eq!(
        error.to_string(),
        "the artifact of agent `a` has version 2, and the change is for version 1; look at it again"
    );
    // After a clearing, a writer that saw an earlier artifact is refused.
    assert!(second.cleared().expect(&agent, Some(2)).is_err() && second.cleared().expect(&agent, Some(0)).is_err());
}

#[test]
fn a_state_may_have_a_mebibyte_and_not_a_byte_more() {
    let of = |bytes: usize| Value::String("x".repeat(bytes - 2));
    assert!(ArtifactHead::default().with(&name("a"), next(of(STATE_BYTES_MAX))).is_ok());
    let error = ArtifactHead::default().with(&name("a"), next(of(STATE_BYTES_MAX + 1))).expect_err("too long");
    assert_eq!(
        error,
        AgentError::TooLong {
            field: "state",
            bytes: STATE_BYTES_MAX + 1,
            max: STATE_BYTES_MAX,
            remedy: "keep less in it, or keep files in a directory that the agent is granted",
        }
    );
}

fn python() -> NewAgent {
    NewAgent::new(name("a"), AgentCode::Python { source: "print(1)".to_owned() })
}

#[test]
fn a_record_is_read_as_it_was_written_and_counts_its_changes() {
    let record = AgentRecord::made(python(), 5).expect("well");
    let bytes = serde_json::to_vec(&record).expect("JSON");
    assert_eq!(AgentRecord::read(&name("a"), &bytes), Ok(record.clone()));
    assert!(matches!(AgentRecord::read(&name("b"), &bytes), Err(AgentError::DamagedRecord { .. })));
    assert!(matches!(AgentRecord::read(&name("a"), b"{"), Err(AgentError::DamagedRecord { .. })));
    let patch: AgentPatch = serde_json::from_value(json!({"config": {"n": 1}, "active": false})).expect("a patch");
    let changed = record.changed(patch, Some(1), 9).expect("well");
    assert_eq!((changed.version, changed.created_ms, changed.updated_ms, changed.agent.active), (2, 5, 9, false));
    let none: AgentPatch = serde_json::from_value(json!({"config": null})).expect("a patch");
    assert_eq!(changed.changed(none, None, 9).expect("well").agent.config, Value::Null);
    let kept = changed.changed(AgentPatch::default(), None, 9).expect("well");
    assert_eq!(kept.agent, changed.agent);
    assert!(matches!(changed.changed(AgentPatch::default(), Some(1), 9), Err(AgentError::Changed { found: 2, .. })));
}

#[test]
fn an_agent_that_cannot_be_is_refused_with_what_can() {
    let refused = |change: &dyn Fn(&mut NewAgent)| {
        let mut agent = python();
        change(&mut agent);
        agent.check().map_err(|error| error.to_string()).expect_err("refused")
    };
    let limits = |change: &dyn Fn(&mut AgentLimits)| refused(&|agent| change(&mut agent.limits));
    assert!(limits(&|limits| limits.timeout_ms = 0).contains("1 to 86400000"));
    assert!(limits(&|limits| limits.timeout_ms = 86_400_001).contains("`timeout_ms` is 86400001"));
    assert!(limits(&|limits| limits.memory_bytes_max = 5 << 30).contains("memory_bytes_max"));
    assert!(limits(&|limits| limits.output_bytes_max = 17 << 20).contains("output_bytes_max"));
    let code = |code: AgentCode| refused(&move |agent| agent.code = code.clone());
    assert!(code(AgentCode::Python { source: "x".repeat(1_000_001) }).contains("1000001 bytes"));
    assert!(code(AgentCode::Run { directory: PathBuf::from("x") }).contains("no absolute path"));
    let ask = |goal: &str| AgentCode::Ask { directory: PathBuf::from("/"), goal: goal.to_owned(), agent: None };
    assert!(code(ask(" ")).contains("the goal is empty"));
    assert!(code(ask(&"x".repeat(70_000))).contains("`goal`"));
    assert!(refused(&|agent| agent.config = json!("x".repeat(70_000))).contains("`config`"));
    assert!(refused(&|agent| agent.description = "x".repeat(5_000)).contains("`description`"));
    for wrong in [json!({"name": "../x"}), json!({"name": "a", "code": {"kind": "shell", "source": ""}}), json!([])] {
        assert!(serde_json::from_value::<NewAgent>(wrong).is_err());
    }
}

#[test]
fn cases_of_hand_offs_hold() {
    let own = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    let directory = std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from);
    let mut driven = 0;
    for entry in std::fs::read_dir(directory).expect("the cases").flatten() {
        let text = std::fs::read(entry.path()).unwrap_or_default();
        let Ok(suite) = serde_json::from_slice::<Value>(&text) else { continue };
        for case in suite["cases"].as_array().into_iter().flatten().filter(|_| suite["suite"] == "executor_tasks") {
            driven += u32::from(hand_off(case));
        }
    }
    assert!(driven > 0, "no case hands anything on");
}

/// True when a case is about artifacts, by its fields.
#[track_caller]
fn hand_off(case: &Value) -> bool {
    let (id, expected) = (&case["id"], &case["expected"]);
    if let Some(output) = case["raw_output"].as_str() {
        let (before, count) = (&case["previous_state"], case["run_count"].as_u64().unwrap_or(1));
        let after = compress(Some(before.clone()).filter(|state| !state.is_null()), &ran(output, count));
        for (name, expected) in expected.as_object().expect("an object") {
            match (name.as_str(), expected) {
                ("original" | "deviation", _) => {}
                // Our version keeps the fields that the original drops.
                ("keeps" | "drops_in_original", Value::Array(keys)) => {
                    keys.iter()
                        .filter_map(Value::as_str)
                        .for_each(|key| assert_eq!(after[key], before[key], "{id}: {key}"));
                }
                _ => assert_eq!(&after[name], expected, "{id}: {name}"),
            }
        }
        return true;
    }
    let is_bare = case.as_object().is_some_and(|fields| fields.keys().all(|name| name == "id" || name == "expected"));
    let head = match case["after"].as_str() {
        Some("clear") => ArtifactHead::default().with(&name("a"), next(json!({}))).expect("fits").cleared(),
        Some(step) => panic!("{id}: unknown step `{step}`; write what it does"),
        None if is_bare => ArtifactHead::default(),
        None => return false,
    };
    assert_eq!(json!(head.artifact), *expected, "{id}");
    true
}

#[test]
fn a_run_that_began_with_an_earlier_version_is_counted_and_changes_nothing() {
    let first = ArtifactHead::default().with(&name("a"), next(json!({"n": 1}))).expect("it fits");
    let after = first.conflicted().conflicted();
    assert_eq!((after.version, &after.artifact, after.conflict_count), (1, &first.artifact, 2));
    assert_eq!((first.run_count(), after.run_count()), (1, 3));
    let stored = serde_json::to_vec(&after).expect("JSON");
    assert_eq!(ArtifactHead::read(&name("a"), Some(&stored)), Ok(after.clone()));
    // A row of an earlier version has no such count.
    let mut earlier = serde_json::to_value(&first).expect("JSON");
    earlier.as_object_mut().expect("an object").remove("conflict_count");
    assert_eq!(ArtifactHead::read(&name("a"), Some(earlier.to_string().as_bytes())), Ok(first));
    let later = after.with(&name("a"), next(json!({"n": 2}))).expect("it fits");
    assert_eq!((later.version, later.conflict_count, after.cleared().run_count()), (2, 0, 0));
}
