//! A recorded invocation as the folder of a scenario.
//!
//! Everything is written here and read by `scenario.rs`, so that there is one format. Nothing is replaced and no file
//! is touched here: the caller hands over what may be written, and gets texts.

use crate::arguments::in_full;
use crate::call::Call;
use crate::done::refusal_line;
use crate::error::KitError;
use crate::recorded::{ANSWERS, RecordedAnswer, RecordedTable, about};
use crate::scenario::{ARGUMENTS, ERROR, EXPECTED, FILE, INPUT, ScenarioPlugin, pretty, range_line};
use crate::shown;
use longhaul_core::Limits;
use longhaul_core::tool::ToolCall;
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The head of a recorded `scenario.toml`.
const HEAD: &str = "\
# Recorded by `longhaul scenario record`. `longhaul plugin test` plays it: the plugin gets input.json and the answers of
# answers.json, and its calls are compared with arguments.txt.
";

/// An invocation that was recorded. A value of its texts stands in the scenario as it is here.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioRecording {
    /// The plugin.
    pub plugin: ScenarioPlugin,
    /// The role and the export, for example `agent.run`.
    pub export: String,
    /// The arguments of the export, as a journal has them.
    pub input: Value,
    /// The time of its start, in milliseconds since 1970-01-01 UTC.
    pub clock_ms: u64,
    /// The names of the models that it was granted, the default first.
    pub models: Vec<String>,
    /// Its limits.
    pub limits: Limits,
    /// Seed, grants, rules of contexts, and the range that is compared.
    pub recorded: RecordedTable,
    /// The calls from the first on.
    pub calls: Vec<ScenarioRecordedCall>,
    /// The end. None: it is not compared, which needs the last entry of the range.
    pub end: Option<RecordedEnd>,
}

/// A recorded call with its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioRecordedCall {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The arguments, as `longhaul_journal::AskedCall` has them.
    pub arguments: Value,
    /// The call of a tool that it asks a decision about.
    pub decides: Option<ToolCall>,
    /// The time of the call, in milliseconds since 1970-01-01 UTC.
    pub asked_ms: u64,
    /// The time of the answer, in milliseconds since 1970-01-01 UTC.
    pub answered_ms: u64,
    /// The answer.
    pub answer: Value,
}

/// The end of a recorded invocation.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedEnd {
    /// The value that it returned, as a journal has it.
    Returned(Value),
    /// The error that it returned.
    Refused(RoleError),
    /// The limit of this name stopped it.
    Limited(String),
    /// It trapped.
    Trapped,
}

impl ScenarioRecording {
    /// The files of its scenario: names and texts.
    ///
    /// # Errors
    /// [`KitError::Input`] when the input or the result is not that of its export.
    pub fn files(&self) -> Result<BTreeMap<&'static str, String>, KitError> {
        let wrong =
            |error: serde_json::Error| KitError::Input { export: self.export.clone(), reason: error.to_string() };
        let export = self.export.split_once('.').map_or(self.export.as_str(), |(_, export)| export);
        let input = input(export, self.input.clone()).map_err(wrong)?;
        // The written text must be the one that a test reads.
        Call::from_json(export, input.clone())?;
        let mut files = BTreeMap::from([
            (FILE, self.table(export)?),
            (INPUT, pretty(&input)),
            (ANSWERS, pretty(&serde_json::to_value(self.answers()).map_err(wrong)?)),
            (ARGUMENTS, self.arguments()),
        ]);
        match (&self.end, self.recorded.to) {
            (Some(RecordedEnd::Returned(value)), None) => {
                files.insert(EXPECTED, pretty(&returned(export, value.clone()).map_err(wrong)?));
            }
            (Some(end), None) => {
                files.insert(ERROR, format!("{}\n", self.error_line(end)));
            }
            (_, to) => {
                files.insert(ERROR, format!("{}\n", range_line(to.unwrap_or_default())));
            }
        }
        Ok(files)
    }

    fn table(&self, export: &str) -> Result<String, KitError> {
        let wrong =
            |error: toml::ser::Error| KitError::Input { export: self.export.clone(), reason: error.to_string() };
        let mut script = toml::Table::new();
        script.insert("clock_ms".to_owned(), toml::Value::try_from(self.clock_ms).map_err(wrong)?);
        script.insert("model_names".to_owned(), toml::Value::try_from(&self.models).map_err(wrong)?);
        let mut table = toml::Table::new();
        table.insert("export".to_owned(), export.into());
        table.insert("plugin".to_owned(), toml::Value::try_from(&self.plugin).map_err(wrong)?);
        table.insert("script".to_owned(), script.into());
        table.insert("recorded".to_owned(), toml::Value::try_from(&self.recorded).map_err(wrong)?);
        let limits = self.own_limits().map_err(wrong)?;
        if !limits.is_empty() {
            table.insert("limits".to_owned(), limits.into());
        }
        let text = toml::to_string_pretty(&table).map_err(wrong)?;
        Ok(format!("{HEAD}\n{text}"))
    }

    /// The limits that are not the default ones.
    fn own_limits(&self) -> Result<toml::Table, toml::ser::Error> {
        let default = toml::Table::try_from(Limits::default())?;
        let limits = toml::Table::try_from(&self.limits)?;
        Ok(limits.into_iter().filter(|(name, value)| default.get(name) != Some(value)).collect())
    }

    /// The answers up to the end of the range.
    fn answers(&self) -> Vec<RecordedAnswer> {
        let answer = |(entry, call): (u32, &ScenarioRecordedCall)| RecordedAnswer {
            entry,
            call: call.name.clone(),
            about: about(&call.name, &call.arguments),
            asked_ms: call.asked_ms,
            answered_ms: call.answered_ms,
            decides: call.decides.clone(),
            answer: call.answer.clone(),
        };
        (1..)
            .zip(&self.calls)
            .take_while(|(entry, _)| self.recorded.to.is_none_or(|to| *entry <= to))
            .map(answer)
            .collect()
    }

    /// The calls of the range in full.
    fn arguments(&self) -> String {
        let range = (1..).zip(&self.calls).filter(|(entry, _)| self.recorded.compares(*entry));
        in_full(range.map(|(_, call)| (call.name.as_str(), &call.arguments)))
    }

    fn error_line(&self, end: &RecordedEnd) -> String {
        match end {
            RecordedEnd::Returned(_) => String::new(),
            RecordedEnd::Refused(error) => refusal_line(&shown::refused(error, self.export.starts_with("planner."))),
            RecordedEnd::Limited(name) => format!("limit: {name}"),
            RecordedEnd::Trapped => "trap".to_owned(),
        }
    }
}

/// The input of a scenario, of the arguments that a journal keeps.
fn input(export: &str, kept: Value) -> serde_json::Result<Value> {
    Ok(match export {
        "plan" => goal(&read(kept)?),
        "replan" => {
            let (of, plan, results): (Goal, Plan, Vec<StepResult>) = read(kept)?;
            json!({ "goal": goal(&of), "plan": plan, "results": step_results(results) })
        }
        "synthesize" => {
            let (of, results): (Goal, Vec<StepResult>) = read(kept)?;
            json!({ "goal": goal(&of), "results": step_results(results) })
        }
        "run" => {
            let Task { id, instruction, context, settings, criteria, feedback, attempt } = read(kept)?;
            json!({
                "id": id,
                "instruction": instruction,
                "context": context,
                "settings": settings,
                "criteria": criteria,
                "feedback": feedback,
                "round": attempt,
            })
        }
        "judge" => {
            let (Subject { instruction, output, evidence }, Rubric { criteria, settings }) = read(kept)?;
            let evidence: Vec<Value> =
                evidence.into_iter().map(|(name, content)| json!({ "name": name, "content": content })).collect();
            let mut subject = Map::from_iter([("instruction".to_owned(), Value::from(instruction))]);
            put_output(&mut subject, output);
            subject.insert("evidence".to_owned(), evidence.into());
            json!({ "subject": subject, "rubric": { "criteria": criteria, "settings": settings } })
        }
        // `Call::from_json` says which exports there are.
        _ => kept,
    })
}

fn goal(Goal { text, context, settings, criteria }: &Goal) -> Value {
    json!({ "text": text, "context": context, "settings": settings, "criteria": criteria })
}

fn step_results(results: Vec<StepResult>) -> Vec<Value> {
    let one = |StepResult { step, passed, outcome, issues }: StepResult| {
        let outcome = outcome.map(|Outcome { output, summary, confidence, unknowns }| {
            let mut outcome = Map::new();
            put_output(&mut outcome, output);
            outcome.insert("summary".to_owned(), summary.into());
            outcome.insert("confidence".to_owned(), json!(confidence));
            outcome.insert("unknowns".to_owned(), json!(unknowns));
            outcome
        });
        json!({ "step": step, "passed": passed, "outcome": outcome, "issues": issues })
    };
    results.into_iter().map(one).collect()
}

/// The output as a value, or as the text that it is where another text of the value would be written.
fn put_output(fields: &mut Map<String, Value>, output: String) {
    match serde_json::from_str::<Value>(&output) {
        Ok(value) if serde_json::to_string(&value).is_ok_and(|text| text == output) => {
            fields.insert("output".to_owned(), value)
        }
        Ok(_) | Err(_) => fields.insert("output_text".to_owned(), output.into()),
    };
}

/// The result in the words of the contract, of one that a journal keeps.
fn returned(export: &str, kept: Value) -> serde_json::Result<Value> {
    Ok(match export {
        "plan" | "replan" => shown::plan(read::<Plan>(kept)?),
        "synthesize" => shown::synthesis(read::<Synthesis>(kept)?),
        "run" => shown::outcome(read::<Outcome>(kept)?),
        "judge" => shown::verdict(read::<Verdict>(kept)?),
        _ => kept,
    })
}

fn read<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
    serde_json::from_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use longhaul_core::context::PinnedContext;
    use longhaul_core::{Denial, Digest};

    fn recording() -> ScenarioRecording {
        let call = |name: &str, arguments: Value, answer: Value| ScenarioRecordedCall {
            name: name.into(),
            arguments,
            decides: None,
            asked_ms: 10,
            answered_ms: 20,
            answer,
        };
        let task = json!({
            "id": "f", "instruction": "Add\nit.", "context": { "a": [1] }, "settings": {}, "criteria": [],
            "feedback": [{ "text": "wrong" }], "attempt": 2,
        });
        ScenarioRecording {
            plugin: ScenarioPlugin {
                name: "react".into(),
                version: "0.1.0".into(),
                role: "agent".into(),
                digest: Some(Digest::of(b"bytes")),
            },
            export: "agent.run".into(),
            input: task,
            clock_ms: 1_000,
            models: vec!["default".into(), "small".into()],
            limits: Limits { fuel_max: 7, ..Limits::default() },
            recorded: RecordedTable {
                invocation: "r-1/f/1/generate".into(),
                seed: Some(Digest::of(b"seed")),
                tools: vec!["files".into()],
                context: Some(PinnedContext::default()),
                ..RecordedTable::default()
            },
            calls: vec![
                call("tools.list", Value::Null, json!([])),
                call("tools.call", json!({ "tool": "files", "function": "read" }), json!({ "Ok": {} })),
                call("conversation.complete", json!({ "model": "default" }), json!({ "Err": {} })),
            ],
            end: Some(RecordedEnd::Returned(
                json!({ "output": "{\"a\":1}", "summary": "done", "confidence": null, "unknowns": [] }),
            )),
        }
    }

    #[test]
    fn what_is_written_is_what_a_scenario_reads() {
        let recording = recording();
        let files = recording.files().unwrap();
        let names: Vec<&str> = files.keys().copied().collect();
        assert_eq!(names, [ANSWERS, ARGUMENTS, EXPECTED, INPUT, FILE]);
        let scenario: Scenario = toml::from_str(&files[FILE]).unwrap();
        assert_eq!(scenario.export.as_deref(), Some("run"));
        assert_eq!(scenario.plugin.as_ref(), Some(&recording.plugin));
        assert_eq!(scenario.recorded.as_ref(), Some(&recording.recorded));
        assert_eq!(scenario.limits, recording.limits);
        assert_eq!((scenario.script.clock_ms, scenario.script.model_names), (1_000, recording.models.clone()));
        assert!(!files[FILE].contains("memory_bytes_max"), "only limits of its own are named: {}", files[FILE]);
        let answers: Vec<RecordedAnswer> = serde_json::from_str(&files[ANSWERS]).unwrap();
        assert_eq!(answers, recording.answers());
        assert_eq!((answers[1].entry, answers[1].about.as_str()), (2, "files.read"));
        let input: Value = serde_json::from_str(&files[INPUT]).unwrap();
        let Ok(Call::Run(task)) = Call::from_json("run", input) else { panic!("a task") };
        assert_eq!(serde_json::to_value(&task).unwrap(), recording.input);
        let expected: Value = serde_json::from_str(&files[EXPECTED]).unwrap();
        assert_eq!(expected["output"], json!({ "a": 1 }));
        assert!(files[ARGUMENTS].starts_with("tools.list\ntools.call\n  tool: files\n"), "{}", files[ARGUMENTS]);
    }

    #[test]
    fn a_range_has_the_answers_before_it_and_no_end() {
        let mut recording = recording();
        (recording.recorded.from, recording.recorded.to) = (Some(2), Some(2));
        let files = recording.files().unwrap();
        assert_eq!(files[ARGUMENTS], "tools.call\n  tool: files\n  function: read\n");
        assert_eq!(recording.answers().len(), 2);
        assert_eq!(files[ERROR], "range: the scenario ends with entry 2\n");
        assert!(!files.contains_key(EXPECTED));
    }

    #[test]
    fn each_end_is_written_as_a_test_of_it_says_it() {
        let check = |export: &str, end: RecordedEnd, expected: &str| {
            let recording = ScenarioRecording { export: export.into(), end: Some(end.clone()), ..recording() };
            assert_eq!(recording.error_line(&end), expected);
        };
        check("agent.run", RecordedEnd::Refused(RoleError::Failed("no".into())), "failed: no");
        check("agent.run", RecordedEnd::Refused(RoleError::Blocked("why?".into())), "blocked: why?");
        check("planner.plan", RecordedEnd::Refused(RoleError::Blocked("why?".into())), "unclear: why?");
        let denial = Denial { reason: "no".into(), fix: "ask".into() };
        let line = format!("denied: {denial}");
        check("agent.run", RecordedEnd::Refused(RoleError::Denied(denial)), &line);
        check("agent.run", RecordedEnd::Limited("fuel_max".into()), "limit: fuel_max");
        check("agent.run", RecordedEnd::Trapped, "trap");
    }

    #[test]
    fn inputs_of_all_roles_are_read_back() {
        let goal = json!({ "text": "go", "context": {}, "settings": {} });
        let outcome = json!({ "output": "{ \"a\": 1 }", "summary": "", "confidence": 0.5, "unknowns": ["b"] });
        let results = json!([{ "step": "a", "passed": true, "outcome": outcome, "issues": [] }]);
        let plan = json!({ "steps": [], "notes": "n" });
        let subject = json!({ "instruction": "i", "output": "[1,2]", "evidence": [["a", "b"]] });
        let rubric = json!({ "criteria": [{ "id": "c", "text": "holds" }], "settings": {} });
        let read = |export: &str, kept: Value| Call::from_json(export, input(export, kept).unwrap()).unwrap();
        let Call::Replan(of, _, of_steps) = read("replan", json!([goal, plan, results])) else { panic!("a replan") };
        assert_eq!((of.text.as_str(), serde_json::to_value(&of_steps).unwrap()), ("go", results.clone()));
        let Call::Synthesize(_, of_steps) = read("synthesize", json!([goal, results])) else { panic!("a synthesis") };
        assert_eq!(serde_json::to_value(&of_steps).unwrap(), results);
        let Call::Judge(of, by) = read("judge", json!([subject, rubric])) else { panic!("a judgement") };
        assert_eq!((serde_json::to_value(&of).unwrap(), serde_json::to_value(&by).unwrap()), (subject, rubric));
        assert!(matches!(read("plan", goal), Call::Plan(_)));
    }
}
