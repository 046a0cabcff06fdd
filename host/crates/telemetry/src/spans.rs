//! Events of one run as spans, by OpenTelemetry's conventions for generative AI.
//!
//! One span for each stretch of the run's work and of each invocation, one for each request to a model and each call of
//! a tool. A span is found by its invocation and never by its agent, so that parallel tasks of one agent do not mix. A
//! span is made when it has ended; nothing is sent from here.

use crate::attributes::{ModelNames, number, of_reply, of_resources, of_usage, of_work};
use crate::content::ContentWriter;
use crate::conventions::{finish_reason, operation};
use crate::draft::{SpanDraft, agent_name, caller, conversation, status, time};
use crate::stretches::Stretches;
use crate::{ids, label};
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::stream;
use longhaul_core::watch::StepContent;
use longhaul_core::{InvocationId, RunId};
use opentelemetry::trace::{Event as SpanEvent, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId};
use opentelemetry_sdk::trace::SpanData;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The most events of a span of the run; the first ones stay.
const RUN_EVENTS_MAX: usize = 128;

/// The most open spans of one run. Further ones are ignored.
const OPEN_MAX: usize = 10_000;

/// The most calls whose arguments are remembered until they end. The beginning is known of further ones.
const ARGUMENTS_MAX: usize = 256;

/// The status of a stretch whose process died or was stopped.
const INTERRUPTED: &str = "interrupted";

/// The status of a stretch after which the run waits for a person.
const PARKED: &str = "parked";

/// The spans of one run, under construction.
pub struct Spans {
    run: RunId,
    /// The most bytes of an attribute with content. None: no content.
    content_bytes_max: Option<usize>,
    scope: InstrumentationScope,
    project: String,
    /// The starts of the stretches that have not begun.
    ahead: VecDeque<u64>,
    /// True when another process made the spans of the stretch before the last one.
    closed: bool,
    stretch: Option<Stretch>,
    /// The number of stretches so far, and the span of the one before.
    stretches: u32,
    previous: Option<SpanId>,
    open: BTreeMap<InvocationId, Open>,
    actions: HashMap<(InvocationId, u32), AskedCall>,
    /// The span of the last event.
    place: SpanId,
}

/// A stretch of the run's work.
struct Stretch {
    id: SpanId,
    after: u64,
    began_ms: u64,
    last_ms: u64,
    /// The status of the run if the stretch ended now.
    status: &'static str,
    /// True when the run ended in it.
    is_over: bool,
    happened: Vec<SpanEvent>,
    happened_more: u32,
}

/// An invocation that has not ended.
struct Open {
    operation: &'static str,
    agent: String,
    plugin: String,
    /// Its span in the current stretch. None: it did nothing yet.
    span: Option<OpenSpan>,
    /// Its span in an earlier stretch.
    previous: Option<SpanId>,
}

#[derive(Clone, Copy)]
struct OpenSpan {
    id: SpanId,
    began_ms: u64,
}

/// A call of a tool that has not ended.
struct AskedCall {
    at_ms: u64,
    arguments: Option<String>,
}

impl Spans {
    /// Makes the spans of a run from all of its events, from the first. Content is made if it has a bound.
    #[must_use]
    pub fn new(run: RunId, content_bytes_max: Option<usize>, stretches: &Stretches) -> Self {
        let scope = InstrumentationScope::builder("longhaul").with_version(env!("CARGO_PKG_VERSION")).build();
        Self {
            place: ids::stretch(&run, 0),
            run,
            content_bytes_max,
            scope,
            project: String::new(),
            ahead: stretches.starts().iter().copied().collect(),
            closed: stretches.is_closed(),
            stretch: None,
            stretches: 0,
            previous: None,
            open: BTreeMap::new(),
            actions: HashMap::new(),
        }
    }

    /// Takes the next event, with the content of its step; returns the spans that ended with it.
    pub fn take(&mut self, event: &RunEvent, content: Option<StepContent>) -> Vec<SpanData> {
        let at_ms = event.at_ms;
        let mut ended = self.begin_stretches(event.number, at_ms);
        if let Some(stretch) = &mut self.stretch {
            stretch.last_ms = stretch.last_ms.max(at_ms);
        }
        self.go_on(&event.event, at_ms);
        self.place = self.place_of(&event.event);
        match &event.event {
            Event::InvocationStarted { .. } | Event::Delegated { .. } => {}
            Event::InvocationEnded { invocation, outcome, ok, used, .. } => {
                ended.extend(self.end(invocation, outcome, *ok, *used, at_ms));
            }
            Event::Thought { .. } => ended.extend(self.chat(&event.event, content, at_ms)),
            Event::Action { .. } => self.call(&event.event, content, at_ms),
            Event::Observation { .. } => ended.extend(self.tool(&event.event, content, at_ms)),
            Event::RunEnded { status, summary, used } => ended.extend(self.run_ended(status, summary, *used, at_ms)),
            other => self.note(other, at_ms),
        }
        ended
    }

    /// Ends the current stretch, since nobody works on the run any more; returns its spans.
    pub fn close(&mut self) -> Vec<SpanData> {
        let Some(stretch) = &self.stretch else { return Vec::new() };
        let (id, status, last_ms, is_over) = (stretch.id, stretch.status, stretch.last_ms, stretch.is_over);
        let mut ended = self.interrupt(status, last_ms);
        if !is_over {
            ended.extend(self.stretch_span(status, Status::Unset, Vec::new()));
        }
        (self.stretch, self.previous) = (None, Some(id));
        ended
    }

    /// The span that the last event belongs to.
    pub(crate) fn place(&self) -> SpanId {
        self.place
    }

    /// Begins the stretches whose first event this is. The spans of one whose process died are made here.
    fn begin_stretches(&mut self, number: u64, at_ms: u64) -> Vec<SpanData> {
        let mut ended = Vec::new();
        while let Some(after) = self.ahead.front().copied().filter(|after| number > *after) {
            self.ahead.pop_front();
            if let Some(stretch) = &mut self.stretch
                && stretch.status == PARKED
            {
                // Something else was at work when its process died.
                stretch.status = INTERRUPTED;
            }
            let spans = self.close();
            if !(self.ahead.is_empty() && self.closed) {
                ended.extend(spans);
            }
            self.stretches = self.stretches.saturating_add(1);
            self.stretch = Some(Stretch {
                id: ids::stretch(&self.run, after),
                after,
                began_ms: at_ms,
                last_ms: at_ms,
                status: INTERRUPTED,
                is_over: false,
                happened: Vec::new(),
                happened_more: 0,
            });
        }
        ended
    }

    /// The invocations of an event are at work in the current stretch from now on.
    fn go_on(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::InvocationStarted { invocation, plugin, export, agent, .. } => {
                self.begin(invocation, agent, plugin, operation(export));
            }
            Event::Delegated { invocation, agent, plugin, .. } => {
                self.begin(invocation, agent, plugin, "invoke_agent");
            }
            _ => {}
        }
        let took_ms = match event {
            Event::Thought { took_ms, .. } | Event::Observation { took_ms, .. } => took_ms.unwrap_or(0),
            _ => 0,
        };
        if let Some(invocation) = stream::invocation(event) {
            self.open_span(invocation, at_ms.saturating_sub(took_ms));
        }
    }

    fn begin(&mut self, invocation: &InvocationId, agent: &str, plugin: &str, operation: &'static str) {
        // A run that continues repeats its open invocations.
        if self.open.len() >= OPEN_MAX || self.open.contains_key(invocation) {
            return;
        }
        let agent = if agent.is_empty() { plugin } else { agent_name(agent) };
        let (agent, plugin) = (agent.to_owned(), plugin.to_owned());
        self.open.insert(invocation.clone(), Open { operation, agent, plugin, span: None, previous: None });
    }

    /// Begins the spans of an invocation and of its callers in the current stretch, as far as they have none.
    fn open_span(&mut self, invocation: &InvocationId, at_ms: u64) {
        if let Some(caller) = caller(invocation) {
            self.open_span(&caller, at_ms);
        }
        let Some(open) = self.open.get_mut(invocation).filter(|open| open.span.is_none()) else { return };
        let (after, began_ms) = self.stretch.as_ref().map_or((0, at_ms), |stretch| (stretch.after, stretch.began_ms));
        let id = if open.previous.is_none() { ids::of(invocation) } else { ids::going_on(invocation, after) };
        open.span = Some(OpenSpan { id, began_ms: at_ms.max(began_ms) });
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
        let mut attributes = match open.operation {
            "plan" => of_resources(used),
            _ => of_work(used),
        };
        if !ok {
            attributes.push(KeyValue::new("error.type", "invocation_failed"));
        }
        if self.content_bytes_max.is_some() {
            attributes.push(KeyValue::new("longhaul.outcome", outcome.to_owned()));
        }
        Some(self.invocation_span(invocation, &open, open.span?, attributes, (status(ok), at_ms)))
    }

    /// Ends the spans of all invocations that are at work. They may go on in a later stretch.
    fn interrupt(&mut self, status: &'static str, at_ms: u64) -> Vec<SpanData> {
        let span = |(invocation, open): (&InvocationId, &Open)| {
            let attributes = vec![KeyValue::new("longhaul.status", status)];
            Some(self.invocation_span(invocation, open, open.span?, attributes, (Status::Unset, at_ms)))
        };
        let ended = self.open.iter().filter_map(span).collect();
        for open in self.open.values_mut() {
            open.previous = open.span.take().map(|span| span.id).or(open.previous);
        }
        ended
    }

    fn invocation_span(
        &self,
        invocation: &InvocationId,
        open: &Open,
        span: OpenSpan,
        more: Vec<KeyValue>,
        (status, ended_ms): (Status, u64),
    ) -> SpanData {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", open.operation),
            KeyValue::new("gen_ai.agent.name", open.agent.clone()),
            KeyValue::new("longhaul.invocation", invocation.as_str().to_owned()),
            KeyValue::new("longhaul.plugin", open.plugin.clone()),
        ];
        // The conventions give a plan no conversation; the requests within it have theirs.
        if open.operation != "plan" {
            attributes.push(conversation(invocation));
        }
        if let Some(task) = invocation.feature() {
            attributes.push(KeyValue::new("longhaul.task_id", task.to_owned()));
        }
        attributes.extend(more);
        let name = format!("{} {}", open.operation, open.agent);
        let draft = SpanDraft { name, kind: SpanKind::Internal, id: span.id, previous: open.previous, attributes };
        let parent = match caller(invocation) {
            Some(caller) => self.span_of(&caller),
            None => self.stretch_id(),
        };
        self.span(draft, parent, status, (span.began_ms, ended_ms))
    }

    fn chat(&self, event: &Event, content: Option<StepContent>, at_ms: u64) -> Option<SpanData> {
        let Event::Thought { invocation, step, text, model, usage, took_ms, route, details, .. } = event else {
            return None;
        };
        let names = ModelNames::of(event)?;
        let mut attributes = names.attributes();
        attributes.push(conversation(invocation));
        attributes.push(KeyValue::new("longhaul.model", model.clone()));
        attributes.extend(details.iter().flat_map(|details| of_reply(details)));
        attributes.extend(of_usage(*usage));
        if let Some(route) = route {
            attributes.push(KeyValue::new("longhaul.model.cached", route.cached));
            let failed = route.failed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
            attributes.push(KeyValue::new("longhaul.model.failed", failed));
        }
        if let Some(bytes_max) = self.content_bytes_max {
            let finish = finish_reason(details.as_ref().map(|details| details.reason).unwrap_or_default());
            let writer = ContentWriter::new(bytes_max);
            attributes.extend(match content {
                Some(StepContent::Reply { request, reply }) => writer.exchange(&request, &reply, finish),
                _ => writer.reply(text, finish),
            });
        }
        let name = format!("chat {}", names.id);
        let id = ids::step(invocation, *step);
        let draft = SpanDraft { name, kind: SpanKind::Client, id, previous: None, attributes };
        let began_ms = self.within(invocation, at_ms.saturating_sub(took_ms.unwrap_or(0)), at_ms);
        Some(self.span(draft, self.span_of(invocation), Status::Unset, (began_ms, at_ms)))
    }

    /// Remembers a call until its result.
    fn call(&mut self, event: &Event, content: Option<StepContent>, at_ms: u64) {
        let Event::Action { invocation, step, arguments, .. } = event else { return };
        if self.actions.len() >= OPEN_MAX {
            return;
        }
        let arguments = self.content_bytes_max.map(|bytes_max| match content {
            // Twice the bound, so that the one who writes it still sees that it is too long.
            Some(StepContent::Arguments(whole)) if self.actions.len() < ARGUMENTS_MAX => {
                let end = whole.floor_char_boundary(bytes_max.saturating_mul(2));
                whole[..end].to_owned()
            }
            _ => arguments.clone(),
        });
        self.actions.insert((invocation.clone(), *step), AskedCall { at_ms, arguments });
    }

    fn tool(&mut self, event: &Event, content: Option<StepContent>, at_ms: u64) -> Option<SpanData> {
        let Event::Observation { invocation, of, tool, function, ok, output, took_ms, agent, .. } = event else {
            return None;
        };
        let asked = self.actions.remove(&(invocation.clone(), *of));
        let asked_ms = asked.as_ref().map(|asked| asked.at_ms);
        let began_ms = took_ms.map(|took| at_ms.saturating_sub(took)).or(asked_ms).unwrap_or(at_ms);
        let name = format!("{}.{}", label::of(tool), label::of(function));
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", name.clone()),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("gen_ai.tool.call.id", of.to_string()),
            conversation(invocation),
        ];
        if !agent.is_empty() {
            attributes.push(KeyValue::new("gen_ai.agent.name", agent_name(agent).to_owned()));
        }
        if !ok {
            attributes.push(KeyValue::new("error.type", "tool_error"));
        }
        if let Some(bytes_max) = self.content_bytes_max {
            let output = match &content {
                Some(StepContent::Output(whole)) => whole,
                _ => output,
            };
            let arguments = asked.as_ref().and_then(|asked| asked.arguments.as_deref());
            attributes.extend(ContentWriter::new(bytes_max).tool(arguments, ok.then_some(output.as_str())));
            if !ok {
                attributes.push(KeyValue::new("longhaul.error", output.chars().take(500).collect::<String>()));
            }
        }
        let id = ids::step(invocation, *of);
        let name = format!("execute_tool {name}");
        let draft = SpanDraft { name, kind: SpanKind::Internal, id, previous: None, attributes };
        let began_ms = self.within(invocation, began_ms, at_ms);
        Some(self.span(draft, self.span_of(invocation), status(*ok), (began_ms, at_ms)))
    }

    fn run_ended(&mut self, ended_as: &str, summary: &str, used: WorkUsage, at_ms: u64) -> Vec<SpanData> {
        let mut ended = self.interrupt(INTERRUPTED, at_ms);
        let mut attributes = of_work(used);
        let is_completed = ended_as == "completed";
        if !is_completed {
            attributes.push(KeyValue::new("error.type", format!("run_{}", label::of(ended_as))));
        }
        if self.content_bytes_max.is_some() {
            attributes.push(KeyValue::new("longhaul.summary", summary.to_owned()));
        }
        ended.extend(self.stretch_span(ended_as, status(is_completed), attributes));
        if let Some(stretch) = &mut self.stretch {
            stretch.is_over = true;
        }
        ended
    }

    /// The span of the current stretch.
    fn stretch_span(&mut self, run_status: &str, status: Status, more: Vec<KeyValue>) -> Option<SpanData> {
        let stretch = self.stretch.as_mut()?;
        let (id, began_ms, last_ms) = (stretch.id, stretch.began_ms, stretch.last_ms);
        let (happened, happened_more) = (std::mem::take(&mut stretch.happened), stretch.happened_more);
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "invoke_workflow"),
            KeyValue::new("gen_ai.agent.name", self.project.clone()),
            KeyValue::new("longhaul.run_id", self.run.as_str().to_owned()),
            KeyValue::new("longhaul.status", run_status.to_owned()),
            number("longhaul.stretch", self.stretches.into()),
        ];
        attributes.extend(more);
        let name = format!("invoke_workflow {}", self.project);
        let draft = SpanDraft { name, kind: SpanKind::Internal, id, previous: self.previous, attributes };
        let mut data = self.span(draft, SpanId::INVALID, status, (began_ms, last_ms));
        (data.events.events, data.events.dropped_count) = (happened, happened_more);
        Some(data)
    }

    /// Records an event of the run itself.
    fn note(&mut self, event: &Event, at_ms: u64) {
        if let Event::RunStarted { project, .. } = event {
            self.project.clone_from(project);
        }
        let Some(stretch) = &mut self.stretch else { return };
        match event {
            Event::Parked { .. } => stretch.status = PARKED,
            Event::Paused => stretch.status = "paused",
            Event::RunResumed => stretch.status = INTERRUPTED,
            _ => {}
        }
        if stretch.happened.len() >= RUN_EVENTS_MAX {
            stretch.happened_more = stretch.happened_more.saturating_add(1);
            return;
        }
        let mut attributes = Vec::new();
        if let Some(task) = stream::task(event) {
            attributes.push(KeyValue::new("longhaul.task_id", task.to_owned()));
        }
        if self.content_bytes_max.is_some()
            && let Ok(text) = serde_json::to_string(event)
        {
            attributes.push(KeyValue::new("longhaul.event", text));
        }
        stretch.happened.push(SpanEvent::new(stream::tag(event), time(at_ms), attributes, 0));
    }

    fn place_of(&self, event: &Event) -> SpanId {
        stream::invocation(event).map_or_else(|| self.stretch_id(), |invocation| self.span_of(invocation))
    }

    fn stretch_id(&self) -> SpanId {
        self.stretch.as_ref().map_or_else(|| ids::stretch(&self.run, 0), |stretch| stretch.id)
    }

    /// The current span of an invocation.
    fn span_of(&self, invocation: &InvocationId) -> SpanId {
        let span = self.open.get(invocation).and_then(|open| open.span);
        span.map_or_else(|| ids::of(invocation), |span| span.id)
    }

    /// A beginning that is not before that of the invocation's span: a call may be as old as an earlier stretch.
    fn within(&self, invocation: &InvocationId, began_ms: u64, ended_ms: u64) -> u64 {
        let span = self.open.get(invocation).and_then(|open| open.span);
        span.map_or(began_ms, |span| began_ms.max(span.began_ms)).min(ended_ms)
    }

    fn span(&self, draft: SpanDraft, parent: SpanId, status: Status, times: (u64, u64)) -> SpanData {
        draft.finish(&self.run, &self.scope, parent, status, times)
    }
}

#[cfg(test)]
mod tests;
