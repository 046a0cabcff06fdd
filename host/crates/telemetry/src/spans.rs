//! Events of one run as spans, by OpenTelemetry's conventions for generative AI.
//!
//! One span for the run, one for each invocation, one for each request to a model and each call of a tool. A span is
//! found by its invocation and never by its agent, so that parallel tasks of one agent do not mix. A span is made when
//! it has ended; nothing is sent from here.

use crate::{ids, label};
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::model::Usage;
use longhaul_core::stream;
use longhaul_core::{InvocationId, RunId};
use opentelemetry::trace::{Event as SpanEvent, SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// The most events of a run's span; the first ones stay.
const RUN_EVENTS_MAX: usize = 128;

/// The most open spans of one run. Further ones are ignored.
const OPEN_MAX: usize = 10_000;

/// The spans of one run, under construction.
pub struct Spans {
    run: RunId,
    content: bool,
    scope: InstrumentationScope,
    project: String,
    started_ms: Option<u64>,
    happened: Vec<SpanEvent>,
    happened_more: u32,
    open: HashMap<InvocationId, Open>,
    actions: HashMap<(InvocationId, u32), u64>,
}

/// An invocation that has not ended.
struct Open {
    name: String,
    operation: &'static str,
    agent: String,
    plugin: String,
    began_ms: u64,
}

impl Spans {
    /// Makes the spans of a run from all of its events, from the first.
    #[must_use]
    pub fn new(run: RunId, content: bool) -> Self {
        let scope = InstrumentationScope::builder("longhaul").with_version(env!("CARGO_PKG_VERSION")).build();
        Self {
            run,
            content,
            scope,
            project: String::new(),
            started_ms: None,
            happened: Vec::new(),
            happened_more: 0,
            open: HashMap::new(),
            actions: HashMap::new(),
        }
    }

    /// Takes the next event; returns the spans that ended with it.
    pub fn take(&mut self, event: &RunEvent) -> Vec<SpanData> {
        let at_ms = event.at_ms;
        self.started_ms.get_or_insert(at_ms);
        match &event.event {
            Event::InvocationStarted { invocation, plugin, export, agent, .. } => {
                self.begin(invocation, agent, plugin, operation(export), at_ms);
                Vec::new()
            }
            Event::Delegated { invocation, agent, plugin, .. } => {
                self.begin(invocation, agent, plugin, "invoke_agent", at_ms);
                Vec::new()
            }
            Event::InvocationEnded { invocation, outcome, ok, used, .. } => {
                self.end(invocation, outcome, *ok, *used, at_ms).into_iter().collect()
            }
            Event::Thought { .. } => self.chat(&event.event, at_ms).into_iter().collect(),
            Event::Action { invocation, step, .. } => {
                if self.actions.len() < OPEN_MAX {
                    self.actions.insert((invocation.clone(), *step), at_ms);
                }
                Vec::new()
            }
            Event::Observation { .. } => self.tool(&event.event, at_ms).into_iter().collect(),
            Event::RunEnded { status, summary, used } => vec![self.run(status, summary, *used, at_ms)],
            other => {
                self.note(other, at_ms);
                Vec::new()
            }
        }
    }

    fn begin(&mut self, invocation: &InvocationId, agent: &str, plugin: &str, operation: &'static str, at_ms: u64) {
        // A run that continues repeats its open invocations; their first start counts.
        if self.open.len() >= OPEN_MAX || self.open.contains_key(invocation) {
            return;
        }
        let agent = if agent.is_empty() { plugin } else { agent.strip_prefix("agents.").unwrap_or(agent) };
        self.open.insert(
            invocation.clone(),
            Open {
                name: format!("{operation} {agent}"),
                operation,
                agent: agent.to_owned(),
                plugin: plugin.to_owned(),
                began_ms: at_ms,
            },
        );
    }

    fn end(
        &mut self,
        invocation: &InvocationId,
        outcome: &str,
        ok: bool,
        used: WorkUsage,
        at_ms: u64,
    ) -> Option<SpanData> {
        let open = self.open.remove(invocation)?;
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", open.operation),
            KeyValue::new("gen_ai.agent.name", open.agent),
            KeyValue::new("gen_ai.agent.id", invocation.as_str().to_owned()),
            KeyValue::new("longhaul.plugin", open.plugin),
        ];
        attributes.extend(of_usage(used.usage));
        attributes.extend([
            number("longhaul.fuel", used.fuel),
            number("longhaul.memory_bytes_peak", used.memory_bytes_peak),
            number("longhaul.host_calls", used.host_calls),
            number("longhaul.model_calls", used.model_calls.into()),
        ]);
        if let Some(task) = invocation.feature() {
            attributes.push(KeyValue::new("longhaul.task_id", task.to_owned()));
        }
        if self.content {
            attributes.push(KeyValue::new("longhaul.outcome", outcome.to_owned()));
        }
        let span = Draft { name: open.name, kind: SpanKind::Internal, id: ids::of(invocation), attributes };
        Some(self.span(span, self.parent(invocation), status(ok), open.began_ms, at_ms))
    }

    fn chat(&self, event: &Event, at_ms: u64) -> Option<SpanData> {
        let Event::Thought { invocation, step, text, model, provider_model, usage, took_ms, route, .. } = event else {
            return None;
        };
        let (provider, id) = provider_model.split_once('/').unwrap_or(("", provider_model));
        let id = if id.is_empty() { model } else { id };
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", provider.to_owned()),
            KeyValue::new("gen_ai.request.model", id.to_owned()),
            KeyValue::new("longhaul.model", model.clone()),
        ];
        attributes.extend(of_usage(*usage));
        if let Some(route) = route {
            attributes.push(KeyValue::new("longhaul.model.cached", route.cached));
            let failed = route.failed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
            attributes.push(KeyValue::new("longhaul.model.failed", failed));
        }
        if self.content {
            attributes.push(KeyValue::new("gen_ai.output.messages", messages(text)));
        }
        let (began_ms, id_of) = (at_ms.saturating_sub(took_ms.unwrap_or(0)), ids::step(invocation, *step));
        let span = Draft { name: format!("chat {id}"), kind: SpanKind::Client, id: id_of, attributes };
        Some(self.span(span, ids::of(invocation), Status::Unset, began_ms, at_ms))
    }

    fn tool(&mut self, event: &Event, at_ms: u64) -> Option<SpanData> {
        let Event::Observation { invocation, of, tool, function, ok, output, took_ms, .. } = event else {
            return None;
        };
        let asked_ms = self.actions.remove(&(invocation.clone(), *of));
        let began_ms = took_ms.map(|took| at_ms.saturating_sub(took)).or(asked_ms).unwrap_or(at_ms);
        let name = format!("{}.{}", label::of(tool), label::of(function));
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", name.clone()),
            KeyValue::new("gen_ai.tool.type", "function"),
            number("gen_ai.tool.call.id", (*of).into()),
        ];
        if !ok {
            attributes.push(KeyValue::new("error.type", "tool_error"));
        }
        if self.content {
            attributes.push(KeyValue::new("gen_ai.tool.call.result", output.clone()));
        }
        let id = ids::step(invocation, *of);
        let span = Draft { name: format!("execute_tool {name}"), kind: SpanKind::Internal, id, attributes };
        Some(self.span(span, ids::of(invocation), status(*ok), began_ms, at_ms))
    }

    fn run(&mut self, ended_as: &str, summary: &str, used: WorkUsage, at_ms: u64) -> SpanData {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "invoke_workflow"),
            KeyValue::new("gen_ai.workflow.name", self.project.clone()),
            KeyValue::new("longhaul.run_id", self.run.as_str().to_owned()),
            KeyValue::new("longhaul.status", ended_as.to_owned()),
        ];
        attributes.extend(of_usage(used.usage));
        if self.content {
            attributes.push(KeyValue::new("longhaul.summary", summary.to_owned()));
        }
        let began_ms = self.started_ms.unwrap_or(at_ms);
        let name = format!("invoke_workflow {}", self.project);
        let span = Draft { name, kind: SpanKind::Internal, id: ids::root(&self.run), attributes };
        let mut data = self.span(span, SpanId::INVALID, status(ended_as == "completed"), began_ms, at_ms);
        data.events.events = std::mem::take(&mut self.happened);
        data.events.dropped_count = std::mem::take(&mut self.happened_more);
        data
    }

    /// Records an event of the run itself.
    fn note(&mut self, event: &Event, at_ms: u64) {
        if let Event::RunStarted { project, .. } = event {
            self.project.clone_from(project);
        }
        if self.happened.len() >= RUN_EVENTS_MAX {
            self.happened_more = self.happened_more.saturating_add(1);
            return;
        }
        let mut attributes = Vec::new();
        if let Some(task) = stream::task(event) {
            attributes.push(KeyValue::new("longhaul.task_id", task.to_owned()));
        }
        if self.content
            && let Ok(text) = serde_json::to_string(event)
        {
            attributes.push(KeyValue::new("longhaul.event", text));
        }
        self.happened.push(SpanEvent::new(stream::tag(event), time(at_ms), attributes, 0));
    }

    /// The parent of an invocation's span: the span of the one that delegated to it, else that of the run.
    fn parent(&self, invocation: &InvocationId) -> SpanId {
        match invocation.as_str().rsplit_once('#') {
            Some((caller, _)) => ids::of(&InvocationId::from_text(caller)),
            None => ids::root(&self.run),
        }
    }

    fn span(&self, draft: Draft, parent: SpanId, status: Status, began_ms: u64, ended_ms: u64) -> SpanData {
        let context =
            SpanContext::new(ids::trace(&self.run), draft.id, TraceFlags::SAMPLED, false, TraceState::default());
        SpanData {
            span_context: context,
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: draft.kind,
            name: draft.name.into(),
            start_time: time(began_ms),
            end_time: time(ended_ms),
            attributes: draft.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

/// A span without its parent.
struct Draft {
    name: String,
    kind: SpanKind,
    id: SpanId,
    attributes: Vec<KeyValue>,
}

/// Name of an export's operation in the conventions.
fn operation(export: &str) -> &'static str {
    match export {
        "planner.plan" | "planner.replan" => "plan",
        _ => "invoke_agent",
    }
}

/// A model's message in the form of the conventions.
fn messages(text: &str) -> String {
    let parts = serde_json::json!([{ "type": "text", "content": text }]);
    serde_json::json!([{ "role": "assistant", "parts": parts }]).to_string()
}

fn of_usage(usage: Usage) -> Vec<KeyValue> {
    let mut attributes = vec![
        number("gen_ai.usage.input_tokens", usage.input_tokens.into()),
        number("gen_ai.usage.output_tokens", usage.output_tokens.into()),
        number("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens.into()),
        number("gen_ai.usage.cache_creation.input_tokens", usage.cache_written_tokens.into()),
        number("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens.into()),
    ];
    // An unknown cost is no attribute: 0 would mean that nothing was paid.
    attributes.extend(usage.cost().map(|cost| KeyValue::new("longhaul.cost_usd", cost / 1e6)));
    attributes
}

fn number(name: &'static str, value: u64) -> KeyValue {
    KeyValue::new(name, Value::I64(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// Without text: a description is content.
fn status(ok: bool) -> Status {
    if ok { Status::Ok } else { Status::error("") }
}

pub(crate) fn time(at_ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms)
}

#[cfg(test)]
mod tests;
