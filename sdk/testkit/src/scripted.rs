//! A plugin's surroundings as a script has them. Nothing here reaches anything outside.

use crate::script::{Answer, HttpAnswer, ModelAnswer, Script, ScriptedCheck, ScriptedFunction};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use longhaul_capabilities::{Exchange, Models};
use longhaul_core::event::WorkUsage;
use longhaul_core::memory::Trust;
use longhaul_core::model::{
    Cost, Message, MessagePart, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, RequestedCall,
    StopReason,
};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use longhaul_core::tool::{
    CheckError, CheckInfo, Checks, Delegate, DelegateError, Delegated, FunctionInfo, Interrupted, ToolCall, ToolError,
    ToolInfo, ToolOutput, Tools, Verification,
};
use longhaul_core::work::{CheckReport, Outcome, Task};
use longhaul_core::{Denial, InvocationId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A script that is being played: it knows which answers are used up.
#[derive(Clone)]
pub(crate) struct Scripted(Arc<Inner>);

struct Inner {
    script: Script,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    /// Uses of each answer, by the list that it is in and its place there.
    given: HashMap<(String, usize), u32>,
    requests: Vec<ModelRequest>,
    http: Vec<String>,
}

impl Scripted {
    pub(crate) fn new(script: Script) -> Self {
        Self(Arc::new(Inner { script, state: Mutex::default() }))
    }

    /// A script of its own, as far used up as this one.
    pub(crate) fn fork(&self) -> Self {
        Self(Arc::new(Inner { script: self.0.script.clone(), state: Mutex::new(self.state().clone()) }))
    }

    pub(crate) fn script(&self) -> &Script {
        &self.0.script
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    pub(crate) fn http_requests(&self) -> Vec<String> {
        self.state().http.clone()
    }

    /// The first answer that fits and is not used up.
    pub(crate) fn next<'a, A: Answer>(
        &self,
        list: &str,
        answers: impl IntoIterator<Item = &'a A>,
        request: &str,
        is_for: impl Fn(&A) -> bool,
    ) -> Option<&'a A> {
        let mut state = self.state();
        answers.into_iter().enumerate().find_map(|(place, answer)| {
            let given = state.given.entry((list.to_owned(), place)).or_default();
            let fits = is_for(answer) && answer.fits(request, *given);
            *given += u32::from(fits);
            fits.then_some(answer)
        })
    }

    fn function(&self, call: &ToolCall) -> Result<&ScriptedFunction, ToolError> {
        let tool = self.script().tools.iter().find(|tool| tool.id == call.tool);
        let function = tool.and_then(|tool| tool.functions.iter().find(|function| function.name == call.function));
        function.ok_or_else(|| ToolError::UnknownFunction(format!("{}.{}", call.tool, call.function)))
    }

    fn check(&self, name: &str) -> Option<&ScriptedCheck> {
        self.script().checks.iter().find(|check| check.name == name)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Models for Scripted {
    fn model(&self, _name: &str) -> Option<Arc<dyn Model>> {
        Some(Arc::new(self.clone()))
    }
}

#[async_trait::async_trait]
impl Exchange for Scripted {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (method, url) = (request.method().as_str(), request.uri().to_string());
        self.state().http.push(format!("{method} {url}"));
        let body = String::from_utf8_lossy(request.body());
        match self.next("http", &self.script().http, &body, |answer| answer.is_for(method, &url)) {
            Some(answer) => response(answer),
            None => unanswered(&format!("the script has no answer left for {method} {url}")),
        }
    }
}

fn response(answer: &HttpAnswer) -> Response<Bytes> {
    let json = answer.json.as_ref().map(ToString::to_string);
    let body = answer.text.clone().or(json).unwrap_or_default();
    let builder = answer
        .headers
        .iter()
        .fold(Response::builder().status(answer.status), |builder, (name, value)| builder.header(name, value));
    let built = builder.body(Bytes::from(body));
    built.unwrap_or_else(|error| unanswered(&format!("the script has an answer that HTTP does not allow: {error}")))
}

/// A gateway's answer when no server is behind it.
fn unanswered(text: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text.to_owned()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

#[async_trait::async_trait]
impl Model for Scripted {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: "testkit/scripted".to_owned(), context_tokens_max: self.script().context_tokens_max }
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        _cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        self.state().requests.push(request.clone());
        let answers = &self.script().models;
        if answers.is_empty() {
            let fix = "add to the script: [[models]] text = \"...\"".to_owned();
            return Err(ModelError::Denied(Denial { reason: "no model is scripted".to_owned(), fix }));
        }
        let asked = words(request);
        let Some(answer) = self.next("models", answers, &asked, |_| true) else {
            let end = last(&asked);
            return Err(ModelError::Failed(format!(
                "the script has no answer left for `{end}`; add to the script: [[models]] text = \"...\""
            )));
        };
        if answer.silent {
            std::future::pending::<()>().await;
        }
        let reply = reply(answer, request)?;
        heard(&reply.text);
        Ok(reply)
    }
}

/// All that a request says, as one text to look into.
fn words(request: &ModelRequest) -> String {
    let mut all = vec![request.system.clone()];
    for part in request.messages.iter().flat_map(|Message { parts, .. }| parts) {
        all.push(match part {
            MessagePart::Text(text) => text.clone(),
            MessagePart::Image { media_type, .. } => media_type.clone(),
            MessagePart::Requested(call) => call.arguments.clone(),
            MessagePart::Answered { output, .. } => output.clone(),
            MessagePart::Thought(thought) => thought.text.clone(),
        });
    }
    all.join("\n")
}

/// The end of a request, where what is new stands.
fn last(asked: &str) -> String {
    let from = asked.char_indices().rev().nth(119).map_or(0, |(at, _)| at);
    asked[from..].replace('\n', " ")
}

fn reply(answer: &ModelAnswer, request: &ModelRequest) -> Result<ModelReply, ModelError> {
    if let Some(error) = &answer.error {
        return Err(error.clone());
    }
    let said = answer.text.clone().or_else(|| answer.json.as_ref().map(ToString::to_string)).unwrap_or_default();
    let prefill = request.prefill.as_deref().unwrap_or_default();
    // A reply has the prefill in it; a script need not repeat it.
    let text = if said.starts_with(prefill) { said } else { format!("{prefill}{said}") };
    let calls = answer.calls.iter().enumerate().map(|(place, call)| RequestedCall {
        id: format!("call-{}", place + 1),
        tool: call.tool.clone(),
        function: call.function.clone(),
        arguments: call.arguments.to_string(),
    });
    let reason = if answer.calls.is_empty() { StopReason::End } else { StopReason::Tools };
    Ok(ModelReply {
        text,
        calls: calls.collect(),
        reason: answer.reason.unwrap_or(reason),
        usage: answer.usage.map(Into::into).unwrap_or_default(),
        ..ModelReply::default()
    })
}

#[async_trait::async_trait]
impl Tools for Scripted {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        let function = |function: &ScriptedFunction| FunctionInfo {
            name: function.name.clone(),
            description: function.description.clone(),
            parameters: function.parameters.to_string(),
            effect: function.effect,
            claim: None,
        };
        let tools = self.script().tools.iter().map(|tool| ToolInfo {
            id: tool.id.clone(),
            description: tool.description.clone(),
            functions: tool.functions.iter().map(function).collect(),
        });
        Ok(tools.collect())
    }

    async fn prepare(&self, _call: &ToolCall, _key: &str, _attempt: u32) -> Result<String, ToolError> {
        Ok("{}".to_owned())
    }

    async fn verify(
        &self,
        _call: &ToolCall,
        _prepared: &str,
        _key: &str,
        _attempt: u32,
    ) -> Result<Verification, ToolError> {
        Ok(Verification::Unknown("a scripted tool remembers nothing".to_owned()))
    }

    async fn call(&self, call: &ToolCall, _key: &str, _attempt: u32) -> Result<ToolOutput, ToolError> {
        let function = self.function(call)?;
        let list = format!("tools {} {}", call.tool, call.function);
        match self.next(&list, &function.answers, &call.arguments, |_| true) {
            Some(answer) => match &answer.error {
                Some(error) => Err(error.clone()),
                None => Ok(ToolOutput { output: answer.output.to_string(), truncated: answer.truncated }),
            },
            None => Err(ToolError::Failed(format!(
                "the script has no answer left for {}.{} {}",
                call.tool,
                call.function,
                truncate(&call.arguments, 120)
            ))),
        }
    }
}

#[async_trait::async_trait]
impl Checks for Scripted {
    fn list(&self) -> Vec<CheckInfo> {
        let info = |check: &ScriptedCheck| CheckInfo {
            name: check.name.clone(),
            description: check.description.clone(),
            vacuous: check.vacuous,
        };
        self.script().checks.iter().map(info).collect()
    }

    async fn run(&self, name: &str) -> Result<CheckReport, CheckError> {
        let check = self.check(name).ok_or_else(|| CheckError::UnknownCheck(name.to_owned()))?;
        if let Some(error) = &check.error {
            return Err(error.clone());
        }
        Ok(CheckReport {
            name: name.to_owned(),
            passed: check.passed,
            exit_code: check.exit_code.unwrap_or(i32::from(!check.passed)),
            stdout: check.stdout.clone(),
            stderr: check.stderr.clone(),
            truncated: false,
            sandbox: None,
            duration_ms: 0,
        })
    }
}

#[async_trait::async_trait]
impl Delegate for Scripted {
    async fn run(&self, _: InvocationId, agent: &str, task: Task, told: Trust) -> Result<Delegated, Interrupted> {
        let (answer, used, closing) = (self.delegated(agent, &task), WorkUsage::default(), Batch::new());
        Ok(Delegated { answer, used, heard: told, closing })
    }
}

impl Scripted {
    fn delegated(&self, agent: &str, task: &Task) -> Result<Outcome, DelegateError> {
        let answers = &self.script().agents;
        if !answers.iter().any(|answer| answer.agent == agent) {
            return Err(DelegateError::UnknownAgent(agent.to_owned()));
        }
        match self.next("agents", answers, &task.instruction, |answer| answer.agent == agent) {
            Some(answer) => match &answer.error {
                Some(error) => Err(error.clone()),
                None => Ok(answer.outcome.clone().into()),
            },
            None => Err(DelegateError::Failed(format!("the script has no answer left for the agent `{agent}`"))),
        }
    }
}
