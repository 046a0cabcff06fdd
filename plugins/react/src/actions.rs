//! The style `actions`: reply, act, observe.
//!
//! The loop is the SDK's, [`react::drive`]; the form of an action is our own, with a thought before each, several
//! calls at once, short names of functions and a confidence. On a repository, an end counts once the feature's checks
//! pass, or when the model insists on it. Out of steps, the agent hands back what it did, marked as unfinished, for the
//! evaluator to judge; if it did nothing, it says which cap was reached.

use longhaul_sdk::conversation::{Options, Reply, ReplyFormat, StopReason};
use longhaul_sdk::message_types::{Image, ToolCallRequest, ToolCallResult};
use longhaul_sdk::react::{self, Action, Caps, Driver, End};
use longhaul_sdk::tools::{self, ToolCall, ToolError, ToolResult};
use longhaul_sdk::types::{LimitHit, Outcome, Task};
use longhaul_sdk::{Conversation, Error, artifact, json};
use serde_json::{Value, json};

use crate::own::Own;
use crate::prompt::{self, Offered};
use crate::repeated::RepeatedFailure;
use crate::reply::{self, Wish};
use crate::repository::CodeTask;
use crate::settings::{Calls, Settings};

/// Replies of the model on a repository, and elsewhere, unless the operator says so.
const STEPS_ON_CODE: u32 = 50;
const STEPS: u32 = 10;

/// Times in a row that the model may end its turn with failing checks before its end is accepted: it may know that a
/// check cannot pass.
const ENDS_MAX: u32 = 3;

pub(crate) fn run(task: &Task, settings: &Settings) -> Result<Outcome, Error> {
    let offered = prompt::offered(&tools::list(), &settings.tools).map_err(Error::Invalid)?;
    let code = CodeTask::of(task);
    let own = code.as_ref().map(|code| Own::of(code.goal.clone())).unwrap_or_default();
    let words = prompt::Words { settings, offered: &offered, own: &own, is_code: code.is_some() };
    let steps_max = settings.steps_max.unwrap_or(if code.is_some() { STEPS_ON_CODE } else { STEPS });
    let mut agent = Agent {
        task,
        settings,
        conversation: Conversation::new(&words.system()),
        schema: words.schema().to_string(),
        steps_max,
        steps_left: steps_max,
        offered,
        own,
        was_cut: false,
        repeated: RepeatedFailure::default(),
        done: Done::default(),
    };
    agent.conversation.pinned(agent.task_message(code.as_ref()))?;
    let end = agent.work();
    if let Err(Error::Limit(hit)) = &end
        && hit.name == HAND_OFF_LIMIT
    {
        agent.hand_off()?;
    }
    match end? {
        End::Finished(outcome) => Ok(outcome),
        End::OutOfSteps => agent.out_of_steps(),
        End::Unreadable(wrong) => Err(agent.unreadable(&wrong)),
    }
}

/// The cap after which the host starts a fresh invocation, which then reads our artifact.
const HAND_OFF_LIMIT: &str = "journal_entries_max";

struct Agent<'a> {
    task: &'a Task,
    settings: &'a Settings,
    conversation: Conversation,
    schema: String,
    steps_max: u32,
    steps_left: u32,
    offered: Vec<Offered>,
    own: Own,
    /// True when the last reply was cut at its limit.
    was_cut: bool,
    repeated: RepeatedFailure,
    done: Done,
}

/// The actions so far.
#[derive(Default)]
struct Done {
    calls: u32,
    files: Vec<String>,
    /// The list of steps as the model wrote it last.
    todo: Option<String>,
    /// The last lines of it, for a hand-off.
    log: Vec<String>,
}

/// The most lines of [`Done::log`] in a hand-off.
const LOG_LINES_MAX: usize = 40;

impl Driver for Agent<'_> {
    type Answer = Outcome;

    fn ask(&mut self, tried: u32) -> Result<Reply, Error> {
        self.steps_left = self.steps_left.saturating_sub(1);
        let reply = self.conversation.complete(&self.options(tried))?;
        self.was_cut = reply.reason == StopReason::Length;
        Ok(reply)
    }

    fn read(&self, reply: &str) -> Result<react::Wish<Outcome>, String> {
        let wish = match self.settings.calls {
            Calls::Schema => reply::read(reply)?,
            Calls::Native => reply::read_native(reply, self.was_cut)?,
        };
        Ok(match wish {
            Wish::Finish { answer, confidence } => react::Wish::Finish(self.finished(answer, confidence)),
            Wish::Act(calls) => react::Wish::Act(
                calls
                    .into_iter()
                    .map(|one| Action { call: self.call_of(&one.name, &one.arguments), name: one.name })
                    .collect(),
            ),
        })
    }

    fn requested(&self, call: &ToolCallRequest) -> Result<ToolCall, String> {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        self.call_of(&format!("{}.{}", call.tool, call.function), &arguments)
    }

    fn call(&mut self, calls: &[ToolCall]) -> Vec<Result<ToolResult, ToolError>> {
        let theirs: Vec<ToolCall> = calls.iter().filter(|call| !Own::is_own(call)).cloned().collect();
        let mut theirs = match theirs.as_slice() {
            [] => Vec::new(),
            [one] => vec![tools::call_raw(one)],
            many => tools::call_many(many),
        }
        .into_iter();
        let no_answer = || Err(ToolError::Failed("it gave no answer".to_owned()));
        let answer = |call| match Own::is_own(call) {
            true => self.own.answer(call),
            false => theirs.next().unwrap_or_else(no_answer),
        };
        let answers: Vec<_> = calls.iter().map(answer).collect();
        for (call, answer) in calls.iter().zip(&answers) {
            self.done.note(call, answer);
        }
        self.repeated.note(calls, &answers);
        answers
    }

    fn say(&mut self, text: String) -> Result<(), Error> {
        self.unless_stuck()?;
        self.conversation.user(text)
    }

    fn answer(&mut self, answer: ToolCallResult) -> Result<(), Error> {
        self.unless_stuck()?;
        self.conversation.answer(answer)
    }

    fn show(&mut self, pictures: Vec<Image>) -> Result<(), Error> {
        self.conversation.pictures(pictures)
    }
}

impl Agent<'_> {
    /// Goes on until the model ends its turn and the checks agree.
    fn work(&mut self) -> Result<End<Outcome>, Error> {
        let (mut ends, mut calls) = (0, self.done.calls);
        loop {
            let end = react::drive(self, &self.caps())?;
            let End::Finished(outcome) = end else { return Ok(end) };
            let checked = self.own.check();
            if !checked.is_failing() {
                let unknowns = [outcome.unknowns.clone(), checked.unknowns()].concat();
                return Ok(End::Finished(Outcome { unknowns, ..outcome }));
            }
            ends = if self.done.calls == calls { ends + 1 } else { 1 };
            calls = self.done.calls;
            if ends >= ENDS_MAX {
                let unknowns = checked.unknowns();
                return Ok(End::Finished(Outcome { confidence: Some(0.0), unknowns, ..outcome }));
            }
            let text = checked.text();
            self.conversation.user(format!(
                "You are not done: the checks that decide do not all pass.\n{text}\nGo on. If one of them cannot pass, say why \
                 and finish again."
            ))?;
        }
    }

    fn unless_stuck(&self) -> Result<(), Error> {
        self.repeated.stuck().map_or(Ok(()), |why| Err(Error::Failed(why)))
    }

    fn caps(&self) -> Caps {
        Caps {
            steps_max: self.steps_left,
            unreadable_max: self.settings.tries_max,
            observation_chars_max: self.settings.observation_chars_max,
        }
    }

    fn options(&self, tried: u32) -> Options {
        let mut options = self.settings.options(self.task.round, tried);
        match self.settings.calls {
            Calls::Schema => options.format = ReplyFormat::Schema(self.schema.clone()),
            Calls::Native => {
                let mut tools: Vec<String> = self.offered.iter().map(|offered| offered.tool.clone()).collect();
                tools.dedup();
                options.offer_tools = tools;
            }
        }
        options
    }

    fn call_of(&self, name: &str, arguments: &Value) -> Result<ToolCall, String> {
        if !arguments.is_object() {
            return Err("the arguments are not a JSON object".to_owned());
        }
        if let Some(own) = self.own.call_of(name, arguments) {
            return Ok(own);
        }
        let found = prompt::find(&self.offered, name)?;
        Ok(ToolCall { tool: found.tool.clone(), function: found.function.clone(), arguments: arguments.to_string() })
    }

    fn task_message(&self, code: Option<&CodeTask>) -> String {
        let mut text = match code {
            Some(code) => code.text(self.task),
            None => react::task_text(self.task),
        };
        // Without an artifact, or with one of another task, we start from the beginning.
        if let Ok(Some(earlier)) = artifact::load()
            && is_of_task(&earlier.state, &self.task.id)
        {
            text.push_str(&format!("\n\nDone so far, by an earlier run:\n{}", earlier.summary));
        }
        text
    }

    fn hand_off(&self) -> Result<(), Error> {
        let state = json!({ "task": self.task.id, "files": self.done.files });
        let todo = self.done.todo.iter().map(|todo| format!("The list of steps: {todo}"));
        let summary: Vec<String> = todo.chain(self.done.log.iter().cloned()).collect();
        Ok(artifact::save(&state.to_string(), &summary.join("\n"))?)
    }

    fn finished(&self, answer: Value, confidence: Option<f64>) -> Outcome {
        let summary = match &answer {
            Value::Null => "finished without an answer".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let output = json!({ "answer": answer, "files": self.done.files });
        Outcome { confidence, ..longhaul_sdk::outcome(&output, json::cut(&summary, 500)) }
    }

    fn out_of_steps(&self) -> Result<Outcome, Error> {
        let max = self.steps_max;
        if self.done.calls == 0 {
            let (used, max) = (f64::from(max), f64::from(max));
            return Err(Error::Limit(LimitHit { name: "steps_max".to_owned(), used, max }));
        }
        let unfinished = format!("stopped at `steps_max` {max} before it finished");
        let output = json!({ "answer": null, "files": self.done.files });
        Ok(Outcome {
            confidence: Some(0.0),
            unknowns: vec![unfinished.clone()],
            ..longhaul_sdk::outcome(&output, unfinished)
        })
    }

    fn unreadable(&self, wrong: &str) -> Error {
        Error::Failed(format!(
            "the model gave {} replies in a row that cannot be used; the last one: {wrong}; choose \
             a stronger model for this agent, or the style `file`",
            self.settings.tries_max,
        ))
    }
}

impl Done {
    fn note(&mut self, call: &ToolCall, answer: &Result<ToolResult, ToolError>) {
        if Own::is_own(call) {
            return;
        }
        let is_done = answer.is_ok();
        self.calls += u32::from(is_done);
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let changed = changed(&call.function, &arguments, answer);
        for path in &changed {
            if !self.files.contains(path) {
                self.files.push(path.clone());
            }
        }
        if let Some(todo) = answer.as_ref().ok().filter(|_| call.tool == "todo") {
            self.todo = Some(todo.output.clone());
            return;
        }
        let state = if is_done { "done" } else { "failed" };
        let path = if changed.is_empty() {
            arguments["path"].as_str().unwrap_or_default().to_owned()
        } else {
            changed.join(" ")
        };
        self.log.push(format!("- {}.{} {path}: {state}", call.tool, call.function));
        if self.log.len() > LOG_LINES_MAX {
            self.log.remove(0);
        }
    }
}

/// The files that a call changed, of the tool `files` or one like it.
fn changed(function: &str, arguments: &Value, answer: &Result<ToolResult, ToolError>) -> Vec<String> {
    let Ok(answer) = answer else { return Vec::new() };
    let texts = |values: &[&Value]| -> Vec<String> {
        values.iter().filter_map(|value| value.as_str()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    };
    match function {
        "write" | "edit" | "multi_edit" | "delete" => texts(&[&arguments["path"]]),
        "move" => texts(&[&arguments["from"], &arguments["to"]]),
        "patch" => {
            let answer: Value = serde_json::from_str(&answer.output).unwrap_or(Value::Null);
            texts(&answer["files"].as_array().into_iter().flatten().collect::<Vec<_>>())
        }
        _ => Vec::new(),
    }
}

fn is_of_task(state: &str, id: &str) -> bool {
    serde_json::from_str::<Value>(state).is_ok_and(|state| state["task"] == id)
}
