//! The style `actions`: reply, act, observe.
//!
//! The loop is the SDK's, [`react::drive`]; the form of an action is our own, with a thought before each, several
//! calls at once, short names of functions and a confidence. Out of steps, the agent hands back what it did,
//! marked as unfinished, for the evaluator to judge; if it did nothing, it says which cap was reached.

use longhaul_sdk::conversation::{Options, ReplyFormat, Turn};
use longhaul_sdk::message_types::{CallAnswer, Image, RequestedCall};
use longhaul_sdk::react::{self, Action, Caps, Driver, End};
use longhaul_sdk::tools::{self, ToolCall, ToolError, ToolResult};
use longhaul_sdk::types::{LimitHit, Outcome, Task};
use longhaul_sdk::{Conversation, Error, artifact, json};
use serde_json::{Value, json};

use crate::prompt::{self, Offered};
use crate::reply::{self, Wish};
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
    let end = react::drive(&mut agent, &caps(settings));
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

fn caps(settings: &Settings) -> Caps {
    Caps {
        steps_max: settings.steps_max,
        unreadable_max: settings.tries_max,
        observation_chars_max: settings.observation_chars_max,
    }
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

impl Driver for Agent<'_> {
    type Answer = Outcome;

    fn ask(&mut self, tried: u32) -> Result<Turn, Error> {
        self.conversation.complete(&self.options(tried))
    }

    fn read(&self, reply: &str) -> Result<react::Wish<Outcome>, String> {
        Ok(match reply::read(reply)? {
            Wish::Finish { answer, confidence } => react::Wish::Finish(self.finished(answer, confidence)),
            Wish::Act(calls) => react::Wish::Act(
                calls
                    .into_iter()
                    .map(|one| Action { call: self.call_of(&one.name, &one.arguments), name: one.name })
                    .collect(),
            ),
        })
    }

    fn requested(&self, call: &RequestedCall) -> Result<ToolCall, String> {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        self.call_of(&format!("{}.{}", call.tool, call.function), &arguments)
    }

    fn call(&mut self, calls: &[ToolCall]) -> Vec<Result<ToolResult, ToolError>> {
        let answers = match calls {
            [one] => vec![tools::call_raw(one)],
            many => tools::call_many(many),
        };
        for (call, answer) in calls.iter().zip(&answers) {
            self.done.note(call, answer);
        }
        answers
    }

    fn say(&mut self, text: String) -> Result<(), Error> {
        self.conversation.user(text)
    }

    fn answer(&mut self, answer: CallAnswer) -> Result<(), Error> {
        self.conversation.answer(answer)
    }

    fn show(&mut self, pictures: Vec<Image>) -> Result<(), Error> {
        self.conversation.pictures(pictures)
    }
}

impl Agent<'_> {
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

    fn call_of(&self, name: &str, arguments: &Value) -> Result<ToolCall, String> {
        if !arguments.is_object() {
            return Err("the arguments are not a JSON object".to_owned());
        }
        let found = prompt::find(&self.offered, name)?;
        Ok(ToolCall { tool: found.tool.clone(), function: found.function.clone(), arguments: arguments.to_string() })
    }

    fn task_message(&self) -> String {
        let mut text = react::task_text(self.task);
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
