//! The style `actions`: reply, act, observe.
//!
//! What a tool says, its errors among it, is an observation. Errors of the model's side end the
//! run with their type. Out of steps, the agent hands back what it did, marked as unfinished, for
//! the evaluator to judge; if it did nothing, it says which cap was reached.

use longhaul_sdk::conversation::{Options, ReplyFormat, Turn};
use longhaul_sdk::message_types::CallAnswer;
use longhaul_sdk::tools::{self, ToolCall, ToolError, ToolResult};
use longhaul_sdk::types::{LimitHit, Outcome, Task};
use longhaul_sdk::{Conversation, Error, artifact, json};
use serde_json::{Value, json};

use crate::prompt::{self, Offered};
use crate::reply::{self, Action, Wish};
use crate::settings::{Calls, Settings};

pub(crate) fn run(task: &Task, settings: &Settings) -> Result<Outcome, Error> {
    let offered = prompt::offered(&tools::list(), &settings.tools).map_err(Error::Invalid)?;
    let mut agent = Agent {
        task,
        settings,
        conversation: Conversation::new(&prompt::system(settings, &offered)),
        schema: prompt::schema(&offered).to_string(),
        offered,
        done: Done::default(),
    };
    agent.conversation.pinned(agent.task_message())?;
    let result = agent.steps();
    if let Err(Error::Limit(hit)) = &result
        && hit.name == HAND_OFF_LIMIT
    {
        agent.hand_off()?;
    }
    result
}

/// The cap after which the host starts a fresh invocation, which then reads our artifact.
const HAND_OFF_LIMIT: &str = "journal_entries_max";

struct Agent<'a> {
    task: &'a Task,
    settings: &'a Settings,
    conversation: Conversation,
    schema: String,
    offered: Vec<Offered>,
    done: Done,
}

/// What was done so far.
#[derive(Default)]
struct Done {
    calls: u32,
    files: Vec<String>,
    /// The last lines of it, for a hand-off.
    log: Vec<String>,
}

/// How many lines of [`Done::log`] go into a hand-off.
const LOG_LINES_MAX: usize = 40;

impl Agent<'_> {
    fn steps(&mut self) -> Result<Outcome, Error> {
        let mut tried = 0;
        for _ in 0..self.settings.steps_max {
            let turn = self.conversation.complete(&self.options(tried))?;
            if !turn.calls.is_empty() {
                tried = 0;
                self.answer_native(&turn)?;
                continue;
            }
            match reply::read(&turn.text) {
                Ok(Wish::Finish { answer, confidence }) => {
                    return Ok(self.finished(answer, confidence));
                }
                Ok(Wish::Act(actions)) => {
                    tried = 0;
                    let observation = self.act(&actions);
                    self.conversation.user(observation)?;
                }
                Err(wrong) => {
                    tried += 1;
                    if tried >= self.settings.tries_max {
                        return Err(self.unreadable(&wrong));
                    }
                    self.conversation.user(format!("Your reply cannot be used: {wrong}"))?;
                }
            }
        }
        self.out_of_steps()
    }

    fn options(&self, tried: u32) -> Options {
        let mut options = self.settings.options(self.task.attempt, tried);
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

    /// Does what the model's JSON asks for, and gives the observations in its order.
    fn act(&mut self, actions: &[Action]) -> String {
        let found: Vec<Result<ToolCall, String>> =
            actions.iter().map(|action| self.call_of(&action.name, &action.arguments)).collect();
        let mut answers = self.call(found.iter().flatten().cloned().collect()).into_iter();
        let mut observations = Vec::new();
        for (action, found) in actions.iter().zip(found) {
            let observation = match found.map(|_| answers.next()) {
                Ok(Some(Ok(result))) => self.observation(&action.name, &result),
                Ok(Some(Err(error))) => self.cut(&format!("Tool error ({}): {}", action.name, Error::from(error))),
                Ok(None) => format!("Tool error ({}): it gave no answer", action.name),
                Err(wrong) => format!("Tool error ({}): {wrong}", action.name),
            };
            observations.push(observation);
        }
        observations.join("\n\n")
    }

    /// Does what the model asks for through its provider, and answers each call by its id.
    fn answer_native(&mut self, turn: &Turn) -> Result<(), Error> {
        for call in &turn.calls {
            let name = format!("{}.{}", call.tool, call.function);
            let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
            let found = self.call_of(&name, &arguments);
            let result = found.map(|call| self.call(vec![call]).pop());
            let (output, failed) = match result {
                Ok(Some(Ok(result))) => (Value::from(self.cut(&result.output)), false),
                Ok(Some(Err(error))) => (error_value(&name, &Error::from(error).to_string()), true),
                Ok(None) => (error_value(&name, "it gave no answer"), true),
                Err(wrong) => (error_value(&name, &wrong), true),
            };
            let answer = CallAnswer { id: call.id.clone(), output: output.to_string(), failed };
            self.conversation.answer(answer)?;
        }
        Ok(())
    }

    fn call_of(&self, name: &str, arguments: &Value) -> Result<ToolCall, String> {
        if !arguments.is_object() {
            return Err("the arguments are not a JSON object".to_owned());
        }
        let found = prompt::find(&self.offered, name)?;
        Ok(ToolCall { tool: found.tool.clone(), function: found.function.clone(), arguments: arguments.to_string() })
    }

    fn call(&mut self, calls: Vec<ToolCall>) -> Vec<Result<ToolResult, ToolError>> {
        let answers = match calls.as_slice() {
            [] => Vec::new(),
            [one] => vec![tools::call_raw(one)],
            many => tools::call_many(many),
        };
        for (call, answer) in calls.iter().zip(&answers) {
            self.done.note(call, answer);
        }
        answers
    }

    fn observation(&self, name: &str, result: &ToolResult) -> String {
        let note = if result.truncated { " (the tool cut it)" } else { "" };
        format!("Observation ({name}){note}: {}", self.cut(&result.output))
    }

    fn cut(&self, text: &str) -> String {
        json::cut(text, self.settings.observation_chars_max)
    }

    fn task_message(&self) -> String {
        let mut text = prompt::task(self.task);
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
        Ok(artifact::save(&state.to_string(), &self.done.log.join("\n"))?)
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
        let max = self.settings.steps_max;
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
        let is_done = answer.is_ok();
        self.calls += u32::from(is_done);
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let path = arguments["path"].as_str().unwrap_or_default();
        let writes = matches!(call.function.as_str(), "write" | "edit");
        if is_done && writes && !path.is_empty() && !self.files.iter().any(|file| file == path) {
            self.files.push(path.to_owned());
        }
        let state = if is_done { "done" } else { "failed" };
        self.log.push(format!("- {}.{} {path}: {state}", call.tool, call.function));
        if self.log.len() > LOG_LINES_MAX {
            self.log.remove(0);
        }
    }
}

fn is_of_task(state: &str, id: &str) -> bool {
    serde_json::from_str::<Value>(state).is_ok_and(|state| state["task"] == id)
}

fn error_value(name: &str, text: &str) -> Value {
    Value::from(format!("Tool error ({name}): {text}"))
}
