//! The suite `hitl` of `$LONGHAUL_CASES`: what answers mean, what a rule lets through, what runs of a batch.

use crate::common;
use crate::common::gated::{answer, answers, lab, open, post, posted};
use longhaul_approval::{
    Approval, ApprovalAnswer, ApprovalKind, ApprovalStatus, ApprovalSubject, NoAnswer, runs_commands,
};
use longhaul_core::InvocationId;
use longhaul_core::approval::{Intent, Undecided};
use longhaul_core::journal::EffectClass;
use longhaul_core::tool::ToolCall;
use serde_json::{Value, json};
use std::path::PathBuf;

type Held = Result<(), String>;

#[test]
fn every_case_of_the_suite_hitl_holds() {
    let cases = cases();
    assert!(!cases.is_empty(), "no case of the suite `hitl` in {}", directory().display());
    let wrong: Vec<_> =
        cases.iter().filter_map(|case| held(case).err().map(|why| format!("{}: {why}", case["id"]))).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn held(case: &Value) -> Held {
    match case["kind"].as_str() {
        Some("parse_answer") => read(case),
        Some("session_allow") => by_rule(case),
        Some("parallel_batch") => batch(case),
        Some("flow" | "edge") => scenario(case),
        other => Err(format!("unknown kind {other:?}; write a driver for it in {}", file!())),
    }
}

/// The scenarios are texts: a driver by hand for each, chosen by what the case holds.
fn scenario(case: &Value) -> Held {
    let corrects = |words: &str| matches!(ApprovalAnswer::read(words), Ok(ApprovalAnswer::Correction { .. }));
    let has_no_store = |result: &str| result.contains("without a checkpoint store");
    if case["answers"][0].as_str().is_some_and(corrects) {
        correction(case)
    } else if case["expected"]["result"].as_str().is_some_and(has_no_store) {
        nobody_to_ask()
    } else if std::env::var_os("LONGHAUL_CASES").is_some() {
        eprintln!("{}: not driven", case["id"]);
        Ok(())
    } else {
        Err(format!("has no driver; write one in {}", file!()))
    }
}

fn read(case: &Value) -> Held {
    let line = case["input"].as_str().ok_or("input is no text")?;
    let found = match ApprovalAnswer::read(line) {
        Err(NoAnswer::Empty) => json!({ "run_tool": false, "reprompt": true }),
        Err(error) => return Err(error.to_string()),
        Ok(answer) => {
            let runs = matches!(answer, ApprovalAnswer::Once | ApprovalAnswer::ByRule);
            let by_rule = answer == ApprovalAnswer::ByRule;
            let correction = if let ApprovalAnswer::Correction { text } = answer { Some(text) } else { None };
            json!({ "run_tool": runs, "session_allow": by_rule, "correction": correction })
        }
    };
    expect(&found, &case["expected"])
}

fn by_rule(case: &Value) -> Held {
    let tool = case["tool"].as_str().ok_or("tool is no text")?;
    let subject = |arguments: &Value, entry| ApprovalSubject {
        invocation: InvocationId::from_text("r-1/f-one/1/generate"),
        entry,
        tool: tool.to_owned(),
        function: "call".to_owned(),
        component: "0f1e".to_owned(),
        arguments: arguments.to_string(),
    };
    let granted = subject(&case["granted_args"], 1);
    let runs_commands = runs_commands(tool, "call", tool);
    let asked = Approval {
        id: granted.id(),
        subject: granted,
        asks: ApprovalKind::Call,
        agent: "agents.code".to_owned(),
        plugin: "x".to_owned(),
        effect: EffectClass::Acts,
        runs_commands,
        heard: Vec::new(),
        repeats: false,
        at_ms: 1,
        standing: ApprovalStatus::Open,
    };
    // Where no rule can be made, the next call is asked about as well.
    let rule = asked.answered("a", 2).ok().and_then(|(_, rule)| rule);
    expect(&json!(asked.takes_rule()), &json!(rule.is_some()))?;
    let passes = rule.is_some_and(|rule| rule.covers(&subject(&case["call_args"], 2), runs_commands));
    expect(&json!(passes), &case["expected"]["skip_prompt"])
}

fn batch(case: &Value) -> Held {
    let texts = |name: &str| -> Result<Vec<String>, String> {
        let list = case[name].as_array().ok_or(format!("{name} is no list"))?;
        Ok(list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect())
    };
    let (gated, words) = (texts("gated")?, texts("answers")?);
    let calls: Vec<Value> = gated.iter().map(|text| post(text)).collect();
    let lab = lab(&json!([]), &json!([calls]));
    lab.run(&["run"]).expect(5);
    for (one, words) in open(&lab).iter().zip(&words) {
        answer(&lab, one["id"].as_str().ok_or("no id")?, words).expect(0);
    }
    lab.run(&["resume"]).expect(0);
    expect(&json!(posted(&lab)), &case["expected"]["runs"])?;
    let answers = answers(&lab)[0].as_array().cloned().unwrap_or_default();
    expect(&json!(answers.len()), &json!(gated.len()))?;
    let said = json!(answers).to_string();
    match case["expected"]["guidance"].as_str() {
        Some(guidance) if !said.contains(guidance) => Err(format!("`{guidance}` did not reach the agent: {said}")),
        None if !said.contains("rejected by a person") => Err(format!("no rejection: {said}")),
        _ => Ok(()),
    }
}

fn correction(case: &Value) -> Held {
    let words = case["answers"][0].as_str().ok_or("no answer")?;
    let lab = lab(&json!([post("a"), post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let first = open(&lab)[0]["id"].clone();
    answer(&lab, first.as_str().ok_or("no id")?, words).expect(0);
    lab.run(&["resume"]).expect(5);
    expect(&json!(posted(&lab).len()), &case["expected"]["tool_runs_first_call"])?;
    let second = open(&lab);
    expect(&json!(second.len() == 1 && second[0]["id"] != first), &case["expected"]["second_call_prompts"])?;
    answer(&lab, second[0]["id"].as_str().ok_or("no id")?, "n").expect(0);
    lab.run(&["resume"]).expect(0);
    let said = answers(&lab)[0]["error"].clone();
    let guidance = format!("Human guidance: {words}");
    if said.as_str().is_some_and(|said| said.contains(&guidance)) { Ok(()) } else { Err(format!("{said}")) }
}

/// Where no store can keep a question, nothing passes, and it is no refusal either.
fn nobody_to_ask() -> Held {
    let approvals = longhaul_capabilities::null::NullServices;
    let approvals: &dyn longhaul_core::approval::Approvals = &approvals;
    let call = ToolCall { tool: "t".into(), function: "f".into(), arguments: "{}".into() };
    let (invocation, effect) = (InvocationId::from_text("r-1/x"), EffectClass::Acts);
    let intent = Intent { invocation, entry: 1, call, effect, reads: false, heard: Vec::new() };
    if approvals.is_free(&intent) {
        return Err("it passed without a question".to_owned());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    match runtime.block_on(approvals.decide(&intent)) {
        Err(Undecided::Unavailable(_)) => Ok(()),
        other => Err(format!("{:?}", other.map(|(decision, _)| decision))),
    }
}

fn expect(found: &Value, expected: &Value) -> Held {
    if found == expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) }
}

fn directory() -> PathBuf {
    let default = || common::repository().join("tests/cases");
    std::env::var_os("LONGHAUL_CASES").map_or_else(default, PathBuf::from)
}

fn cases() -> Vec<Value> {
    let directory = directory();
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let files = paths.iter().map(|path| -> Value {
        let text = std::fs::read_to_string(path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    let of_suite = files.filter(|file| file["suite"] == "hitl");
    of_suite.flat_map(|file| file["cases"].as_array().cloned().expect("a list of cases")).collect()
}
