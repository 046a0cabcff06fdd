//! The style `file`: one code block becomes one file.
//!
//! Made for models too small for JSON and tools: the reply starts inside a code fence and stops at
//! the next one. A reply without code, or (with `self_check`) one whose checks fail, goes back with
//! what was wrong, at most `tries_max` times. The last writing stays: the evaluator decides.

use longhaul_sdk::conversation::{Options, Reply, StopReason};
use longhaul_sdk::types::{Outcome, Task};
use longhaul_sdk::{Conversation, Error, checks, json, tools};
use serde_json::{Value, json};

use crate::settings::Settings;
use crate::{code, prompt};

pub(crate) fn run(task: &Task, settings: &Settings) -> Result<Outcome, Error> {
    let (named, instruction) = code::file_line(&task.instruction);
    let file = target(task, settings, named)?;
    let conversation = Conversation::new(&system(settings));
    conversation.pinned(message(task, settings, &instruction))?;

    let mut written = None;
    let mut wrong = String::new();
    for tried in 0..settings.tries_max {
        if tried > 0 {
            conversation.user(format!("{wrong}\nWrite all of the code again."))?;
        }
        let reply = conversation.complete(&options(task, settings, tried))?;
        let Some(text) = code_of(&reply) else {
            wrong = no_code(settings, reply.reason);
            continue;
        };
        write(settings, &file, &text)?;
        let failing = failing_check(task, settings)?;
        let is_cut = reply.reason == StopReason::Length;
        written = Some(outcome(&file, &text, is_cut, failing.as_deref()));
        match failing {
            Some(text) => wrong = format!("This does not work:\n{text}"),
            None => break,
        }
    }
    written.ok_or_else(|| {
        let tries = settings.tries_max;
        Error::Failed(format!("the model gave no code in {tries} replies; the last one: {wrong}"))
    })
}

/// The file to write: of the settings, of the context, or of the instruction's `File:` line.
fn target(task: &Task, settings: &Settings, named: Option<&str>) -> Result<String, Error> {
    let context: Value = serde_json::from_str(&task.context).unwrap_or(Value::Null);
    let file = settings.file.as_deref().or_else(|| context["file"].as_str()).or(named);
    file.map(str::to_owned).ok_or_else(|| {
        Error::Invalid(
            "nothing says which file to write; add `- file: NAME` to the feature, or \
             `file = \"NAME\"` to the settings of this agent"
                .to_owned(),
        )
    })
}

fn system(settings: &Settings) -> String {
    let language = &settings.language;
    settings
        .prompt
        .clone()
        .unwrap_or_else(|| format!("You write {language} code. Reply with one {language} code block and nothing else."))
}

fn message(task: &Task, settings: &Settings, instruction: &str) -> String {
    if task.feedback.is_empty() {
        return instruction.to_owned();
    }
    // The first failure is enough for a model of this size.
    let issue = prompt::issues(&task.feedback[..1]);
    let language = &settings.language;
    format!("{instruction}\n\nEarlier {language} code for this failed:\n{issue}")
}

fn options(task: &Task, settings: &Settings, tried: u32) -> Options {
    let options = settings.options(task.round, tried);
    if !settings.prefill {
        return options;
    }
    // The newline keeps a second opening fence from ending the reply at once.
    let (prefill, stop) = (format!("```{}\n", settings.language), "\n```".to_owned());
    Options { prefill: Some(prefill), stop: vec![stop], ..options }
}

fn code_of(reply: &Reply) -> Option<String> {
    let block = code::first_block(&reply.text)?;
    if block.is_closed || reply.reason != StopReason::Length {
        return Some(block.code);
    }
    Some(code::without_last_line(&block.code)).filter(|code| !code.trim().is_empty())
}

fn no_code(settings: &Settings, reason: StopReason) -> String {
    let language = &settings.language;
    match reason {
        StopReason::Length => "The reply was cut before there was code; be shorter.".to_owned(),
        _ => format!("There is no code block; start with ```{language}."),
    }
}

fn write(settings: &Settings, file: &str, text: &str) -> Result<(), Error> {
    let arguments = json!({ "path": file, "content": text });
    tools::call::<Value>(&settings.files_tool, "write", &arguments).map(drop)
}

/// The output of the first check that fails. None: all pass, or none is run here.
fn failing_check(task: &Task, settings: &Settings) -> Result<Option<String>, Error> {
    if !settings.self_check {
        return Ok(None);
    }
    let mut names: Vec<&str> = task.criteria.iter().filter_map(|c| c.check.as_deref()).collect();
    names.dedup();
    for name in names {
        let report = checks::run(name)?;
        if !report.passed {
            let said = if report.stderr.trim().is_empty() { report.stdout } else { report.stderr };
            return Ok(Some(json::tail(said.trim(), 1_500).to_owned()));
        }
    }
    Ok(None)
}

fn outcome(file: &str, text: &str, is_cut: bool, failing: Option<&str>) -> Outcome {
    let mut unknowns = Vec::new();
    if is_cut {
        unknowns.push("the model's reply was cut at `output_tokens_max`".to_owned());
    }
    if let Some(failing) = failing {
        unknowns.push(format!("a check still fails: {}", json::tail(failing, 300)));
    }
    let summary = format!("wrote {file}, {} lines", text.lines().count());
    Outcome { unknowns, ..longhaul_sdk::outcome(&json!({ "files": [file] }), summary) }
}
