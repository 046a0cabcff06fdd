//! Live steps of an agent's work: each thought, each action, each observation.
//!
//! Steps are reported in the order of the guest's own calls, even when the answers come from the journal, so that their
//! numbers are the same in each attempt and none is reported twice. They are cut short; the journal has all of it.

use crate::ctx::Ctx;
use longhaul_core::event::Event;
use longhaul_core::model::{ModelReply, ModelRequest, ReplyDetails};
use longhaul_core::text::truncate;
use longhaul_core::tool::{ToolCall, ToolError, ToolOutput, call_line, outcome_line};
use longhaul_core::watch::StepContent;
use serde_json::Value;

/// Bytes of a thought.
const THOUGHT_BYTES_MAX: usize = 2_000;

/// Bytes of arguments and of tools' answers.
const CALL_BYTES_MAX: usize = 500;

/// Bytes of the names that a guest gives.
const NAME_BYTES_MAX: usize = 120;

impl Ctx {
    /// A model replied.
    pub(crate) fn tell_thought(&mut self, request: &ModelRequest, reply: &ModelReply, took_ms: Option<u64>) {
        let step = self.next_step();
        let model = request.model.as_str();
        self.tell_content(step, || StepContent::Reply {
            request: Box::new(request.clone()),
            reply: Box::new(reply.clone()),
        });
        let provider_model = match &reply.route {
            Some(route) => route.provider_model.clone(),
            None => self.services.models.model(model).map(|model| model.info().id).unwrap_or_default(),
        };
        self.tell_step(
            step,
            Event::Thought {
                invocation: self.invocation.clone(),
                agent: self.scope.plugin.clone(),
                step,
                text: truncate(&thought(reply), THOUGHT_BYTES_MAX),
                model: reply.route.as_ref().map_or(model, |route| &route.served_by).to_owned(),
                provider_model,
                usage: reply.usage,
                took_ms,
                route: reply.route.clone().map(Box::new),
                details: Some(Box::new(ReplyDetails::of(request, reply))),
            },
        );
    }

    /// The guest calls a tool. Returns the step, for its observation.
    pub(crate) fn tell_action(&mut self, call: &ToolCall) -> u32 {
        let step = self.next_step();
        self.tell_content(step, || StepContent::Arguments(call.arguments.clone()));
        self.tell_step(
            step,
            Event::Action {
                invocation: self.invocation.clone(),
                agent: self.scope.plugin.clone(),
                step,
                tool: truncate(&call.tool, NAME_BYTES_MAX),
                function: truncate(&call.function, NAME_BYTES_MAX),
                arguments: truncate(&call.arguments, CALL_BYTES_MAX),
                line: call_line(call),
            },
        );
        step
    }

    /// The result of a call.
    pub(crate) fn tell_observation(
        &mut self,
        of: u32,
        call: &ToolCall,
        answer: &Result<ToolOutput, ToolError>,
        took_ms: Option<u64>,
    ) {
        let step = self.next_step();
        self.tell_content(step, || StepContent::Output(output_of(answer)));
        let output = match answer {
            Ok(output) => truncate(&output.output, CALL_BYTES_MAX),
            Err(error) => truncate(&error.to_string(), CALL_BYTES_MAX),
        };
        self.tell_step(
            step,
            Event::Observation {
                invocation: self.invocation.clone(),
                agent: self.scope.plugin.clone(),
                step,
                of,
                tool: truncate(&call.tool, NAME_BYTES_MAX),
                function: truncate(&call.function, NAME_BYTES_MAX),
                ok: answer.is_ok(),
                output,
                line: outcome_line(call, answer),
                took_ms,
            },
        );
    }

    fn next_step(&mut self) -> u32 {
        self.steps = self.steps.saturating_add(1);
        self.steps
    }

    /// Before its step, so that a watcher that sees the event has the content.
    fn tell_content(&self, number: u32, content: impl FnOnce() -> StepContent) {
        if self.services.watch.wants_content() {
            self.services.watch.content(&self.invocation, number, content());
        }
    }

    fn tell_step(&self, number: u32, step: Event) {
        self.services.watch.step(&self.invocation, number, step);
    }
}

/// The output of a call, or its error.
fn output_of(answer: &Result<ToolOutput, ToolError>) -> String {
    match answer {
        Ok(output) => output.output.clone(),
        Err(error) => error.to_string(),
    }
}

/// The thought in a reply: the field of that name, if the reply is an object that has one; else all its text; else the
/// model's reasoning before it.
fn thought(reply: &ModelReply) -> String {
    let said = serde_json::from_str::<Value>(&reply.text).ok();
    if let Some(thought) = said.as_ref().and_then(|said| said.get("thought")).and_then(Value::as_str) {
        return thought.to_owned();
    }
    if !reply.text.trim().is_empty() {
        return reply.text.clone();
    }
    reply.thoughts.iter().map(|thought| thought.text.as_str()).collect::<Vec<_>>().join("\n")
}
