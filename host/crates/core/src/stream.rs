//! The public stream of a run: one JSON object a line, of one shape, with a version.
//!
//! Events are durable: each has a `number`, counted from 1 without gaps, and can be read again from any number. A
//! model's reply in progress is a live view and is not stored: it has the number that it comes `after` and a `part`,
//! and a late subscriber gets the reply so far as one part. The stream never waits for a reader: a slow one loses live
//! parts, and is notified; one that does not read is disconnected, and can resume from the last number. The JSON Schema
//! of a line is [`schema`]; `tests/events.schema.json` is that.

use crate::{Event, InvocationId, RunEvent, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of a line. It increases when a field changes its meaning or is removed; new kinds and fields may appear
/// within one, and readers ignore those that they do not know.
pub const VERSION: u32 = 1;

/// One line of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamLine {
    /// The id of the run.
    pub run: RunId,
    /// The content of the line.
    pub content: Content,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A durable event.
    Event {
        /// The number of the event: counts from 1 within the run, without gaps.
        number: u64,
        /// The time of the event, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// The event itself.
        event: Event,
    },
    /// A part of a model's reply, while the model writes it.
    Token(StreamToken),
    /// Live parts were lost because the reader was slow. Durable events are never lost.
    Lagged {
        /// The number of the last durable event before the loss.
        after: u64,
    },
    /// The reader did not read for too long and is disconnected. It may reconnect for the events after this number.
    Dropped {
        /// The number of the last durable event that was sent.
        after: u64,
    },
    /// No process works on the run any more: it ended, waits, was paused, or its process stops.
    End {
        /// The number of the last durable event.
        after: u64,
        /// The error that interrupted the run. None: there was none.
        error: Option<String>,
    },
}

/// A part of a model's reply, while the model writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Token")]
pub struct StreamToken {
    /// The id of the invocation that asked the model.
    pub invocation: InvocationId,
    /// The number of the last durable event before the part.
    #[serde(skip)]
    pub after: u64,
    /// The number of the part: counts the parts of one reply, from 1.
    #[serde(skip)]
    pub part: u64,
    /// The text of the part.
    pub text: String,
    /// True when the text is all of the reply so far, and not only this part.
    pub whole: bool,
}

/// The kind of a line, its field `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[schemars(rename = "Kind")]
pub enum LineKind {
    /// [`Event::ProjectCreated`].
    ProjectCreated,
    /// [`Event::ProjectStatus`].
    ProjectStatus,
    /// [`Event::RunStarted`].
    RunStarted,
    /// [`Event::RunResumed`].
    Resumed,
    /// [`Event::RunQueued`].
    Queued,
    /// [`Event::PluginMoved`].
    Moved,
    /// [`Event::Dispatched`].
    Dispatch,
    /// [`Event::Planned`].
    Plan,
    /// [`Event::Replanned`].
    Replan,
    /// [`Event::Answered`].
    Synthesis,
    /// [`Event::Feature`].
    Feature,
    /// [`Event::SessionStarting`].
    SessionStarting,
    /// [`Event::SessionComplete`].
    SessionComplete,
    /// [`Event::Contract`].
    Contract,
    /// [`Event::InvocationStarted`].
    TaskStarted,
    /// [`Event::Delegated`].
    Delegation,
    /// [`Event::Thought`].
    Thought,
    /// [`Event::Action`].
    Action,
    /// [`Event::Observation`].
    Observation,
    /// [`Event::Checkpoint`].
    Checkpoint,
    /// [`Event::InvocationEnded`].
    TaskDone,
    /// [`Event::Judged`].
    Judged,
    /// [`Event::Committed`].
    Commit,
    /// [`Event::Reverted`].
    Reverted,
    /// [`Event::ApprovalAsked`] or [`Event::ApprovalAnswered`].
    Approval,
    /// [`Event::Parked`].
    Parked,
    /// [`Event::Paused`].
    Paused,
    /// [`Event::Limit`].
    Limit,
    /// [`Event::VacuousCheck`].
    VacuousCheck,
    /// [`Event::Proposed`].
    Proposed,
    /// [`Event::Warning`].
    Warning,
    /// [`Event::ContextCompacted`].
    Compaction,
    /// [`Event::ContextReset`].
    Reset,
    /// [`Event::ContextAnxiety`].
    Anxiety,
    /// [`Event::RunEnded`] with any status but `failed`.
    Done,
    /// [`Event::RunEnded`] with the status `failed`, or [`Content::End`] with an error.
    Error,
    /// [`Event::Steered`].
    Steering,
    /// [`Content::Token`].
    Token,
    /// [`Content::Lagged`].
    Lagged,
    /// [`Content::Dropped`].
    Dropped,
    /// [`Content::End`] without an error.
    End,
}

/// The tag field of a stored event. A line has its [`LineKind`] in its place.
const TAG: &str = "type";

impl StreamLine {
    /// The line of a durable event.
    #[must_use]
    pub fn of(event: RunEvent) -> Self {
        let RunEvent { run, number, at_ms, event } = event;
        Self { run, content: Content::Event { number, at_ms, event } }
    }

    /// The kind of the line.
    #[must_use]
    pub fn kind(&self) -> LineKind {
        match &self.content {
            Content::Event { event, .. } => kind(event),
            Content::Token(_) => LineKind::Token,
            Content::Lagged { .. } => LineKind::Lagged,
            Content::Dropped { .. } => LineKind::Dropped,
            Content::End { error: None, .. } => LineKind::End,
            Content::End { error: Some(_), .. } => LineKind::Error,
        }
    }

    /// The id of the feature, or of the step of a plan, that the line is about. None: it is about the whole run.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match &self.content {
            Content::Event { event, .. } => task(event),
            Content::Token(token) => token.invocation.feature(),
            _ => None,
        }
    }

    /// The table of `longhaul.toml` that configures the component. None: the line is about no component.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        let Content::Event { event, .. } = &self.content else { return None };
        let agent = match event {
            Event::InvocationStarted { agent, .. }
            | Event::InvocationEnded { agent, .. }
            | Event::Delegated { agent, .. }
            | Event::Thought { agent, .. }
            | Event::Action { agent, .. }
            | Event::Checkpoint { agent, .. }
            | Event::Observation { agent, .. } => agent.as_str(),
            _ => "",
        };
        (!agent.is_empty()).then_some(agent)
    }
}

/// The event, its stored tag, and the kind of its line.
macro_rules! kinds {
    ($($event:ident $tag:literal $kind:ident,)*) => {
        /// The kind of the event's line.
        #[must_use]
        pub fn kind(event: &Event) -> LineKind {
            match event {
                Event::RunEnded { status, .. } if status == "failed" => LineKind::Error,
                $(Event::$event { .. } => LineKind::$kind,)*
            }
        }

        /// The stored tag of an event.
        #[must_use]
        pub fn tag(event: &Event) -> &'static str {
            match event {
                $(Event::$event { .. } => $tag,)*
            }
        }

        const KINDS: &[(&str, LineKind)] = &[$(($tag, LineKind::$kind)),*];
    };
}

kinds! {
    ProjectCreated "project_created" ProjectCreated,
    ProjectStatus "project_status" ProjectStatus,
    RunStarted "run_started" RunStarted,
    RunResumed "run_resumed" Resumed,
    RunQueued "run_queued" Queued,
    PluginMoved "plugin_moved" Moved,
    Dispatched "dispatched" Dispatch,
    Planned "planned" Plan,
    Replanned "replanned" Replan,
    Answered "answered" Synthesis,
    Feature "feature" Feature,
    SessionStarting "session_starting" SessionStarting,
    SessionComplete "session_complete" SessionComplete,
    Contract "contract" Contract,
    InvocationStarted "invocation_started" TaskStarted,
    Delegated "delegated" Delegation,
    Thought "thought" Thought,
    Action "action" Action,
    Observation "observation" Observation,
    Checkpoint "checkpoint" Checkpoint,
    InvocationEnded "invocation_ended" TaskDone,
    Judged "judged" Judged,
    Committed "committed" Commit,
    Reverted "reverted" Reverted,
    Parked "parked" Parked,
    Paused "paused" Paused,
    Limit "limit" Limit,
    VacuousCheck "vacuous_check" VacuousCheck,
    Proposed "proposed" Proposed,
    ApprovalAsked "approval_asked" Approval,
    ApprovalAnswered "approval_answered" Approval,
    Warning "warning" Warning,
    ContextCompacted "context_compacted" Compaction,
    ContextReset "context_reset" Reset,
    ContextAnxiety "context_anxiety" Anxiety,
    Steered "steered" Steering,
    RunEnded "run_ended" Done,
}

/// The id of the feature, or of the step of a plan, that an event is about.
#[must_use]
pub fn task(event: &Event) -> Option<&str> {
    match event {
        Event::Feature { feature, .. }
        | Event::SessionStarting { feature, .. }
        | Event::SessionComplete { feature, .. }
        | Event::Contract { feature, .. }
        | Event::Judged { feature, .. }
        | Event::Committed { feature, .. }
        | Event::VacuousCheck { feature, .. } => Some(feature),
        Event::InvocationStarted { feature, .. } | Event::Steered { feature, .. } => feature.as_deref(),
        _ => invocation(event)?.feature(),
    }
}

/// The id of the invocation that an event is about.
#[must_use]
pub fn invocation(event: &Event) -> Option<&InvocationId> {
    match event {
        Event::InvocationStarted { invocation, .. }
        | Event::InvocationEnded { invocation, .. }
        | Event::Delegated { invocation, .. }
        | Event::Thought { invocation, .. }
        | Event::Action { invocation, .. }
        | Event::Observation { invocation, .. }
        | Event::Checkpoint { invocation, .. }
        | Event::ApprovalAsked { invocation, .. }
        | Event::ContextCompacted { invocation, .. }
        | Event::ContextReset { invocation, .. }
        | Event::ContextAnxiety { invocation, .. } => Some(invocation),
        _ => None,
    }
}

/// A line in its written form.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(rename = "type")]
    kind: LineKind,
    payload: Value,
}

impl Serialize for StreamLine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = Written {
            version: VERSION,
            run: self.run.clone(),
            number: None,
            after: None,
            part: None,
            at_ms: None,
            task: self.task().map(str::to_owned),
            agent: self.agent().map(str::to_owned),
            kind: self.kind(),
            payload: json!({}),
        };
        match &self.content {
            Content::Event { number, at_ms, event } => {
                (written.number, written.at_ms) = (Some(*number), Some(*at_ms));
                written.payload = serde_json::to_value(event).map_err(serde::ser::Error::custom)?;
                if let Some(fields) = written.payload.as_object_mut() {
                    fields.shift_remove(TAG);
                }
            }
            Content::Token(token) => {
                (written.after, written.part) = (Some(token.after), Some(token.part));
                written.payload = serde_json::to_value(token).map_err(serde::ser::Error::custom)?;
            }
            Content::Lagged { after } | Content::Dropped { after } => written.after = Some(*after),
            Content::End { after, error } => {
                written.after = Some(*after);
                if let Some(error) = error {
                    written.payload = json!({ "error": error });
                }
            }
        }
        written.serialize(serializer)
    }
}

/// JSON Schema of a line, generated from the types.
///
/// # Panics
/// Never: the schema of plain data has these parts.
#[must_use]
pub fn schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let mut generator = settings.into_generator();
    let events = generator.root_schema_for::<Event>().to_value();
    let token = generator.root_schema_for::<StreamToken>().to_value();
    let mut definitions = events["$defs"].clone();
    if let (Some(all), Some(more)) = (definitions.as_object_mut(), token["$defs"].as_object()) {
        all.extend(more.clone());
    }
    let variants = events["oneOf"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<Value> = variants.into_iter().flat_map(durable).collect();
    lines.push(live("token", &["after", "part"], plain(token)));
    let nothing = json!({ "type": "object" });
    lines.extend(["lagged", "dropped", "end"].map(|kind| live(kind, &["after"], nothing.clone())));
    let error = json!({
        "type": "object", "properties": { "error": { "type": "string" } }, "required": ["error"],
    });
    lines.push(live("error", &["after"], error));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of the event stream of a Longhaul run",
        "type": "object",
        "properties": {
            "version": { "const": VERSION },
            "run": { "type": "string" },
            "number": {
                "type": "integer", "minimum": 1,
                "description": "In a durable line: counts from 1 within the run, without gaps.",
            },
            "after": {
                "type": "integer", "minimum": 0,
                "description": "In a live line: the number of the last durable line before it.",
            },
            "part": {
                "type": "integer", "minimum": 1,
                "description": "In a line of `token`: counts the parts of one reply, from 1.",
            },
            "at_ms": { "type": "integer", "description": "Milliseconds since 1970-01-01 UTC." },
            "task": {
                "type": "string",
                "description": "The id of the feature, or of the step of a plan, that the line is about.",
            },
            "agent": {
                "type": "string",
                "description": "The table of longhaul.toml that configures the component.",
            },
        },
        "required": ["version", "run", "type", "payload"],
        "oneOf": lines,
        "$defs": definitions,
    })
}

/// The lines of one event: its possible kinds, and its fields without the tag.
fn durable(mut variant: Value) -> Vec<Value> {
    let tag = variant["properties"][TAG]["const"].as_str().unwrap_or_default().to_owned();
    let description = variant["description"].take();
    if let Some(fields) = variant["properties"].as_object_mut() {
        fields.shift_remove(TAG);
    }
    if let Some(required) = variant["required"].as_array_mut() {
        required.retain(|name| name != TAG);
    }
    let payload = plain(variant);
    let line = |kind: LineKind| {
        json!({
            "description": description,
            "properties": { "type": { "const": kind }, "payload": payload },
            "required": ["number", "at_ms"],
        })
    };
    kinds_of(&tag).map(line).collect()
}

/// The possible kinds of an event with this tag.
fn kinds_of(tag: &str) -> impl Iterator<Item = LineKind> {
    let own = KINDS.iter().find(|(known, _)| *known == tag).map(|(_, kind)| *kind);
    own.into_iter().chain((own == Some(LineKind::Done)).then_some(LineKind::Error))
}

fn live(kind: &str, required: &[&str], payload: Value) -> Value {
    json!({ "properties": { "type": { "const": kind }, "payload": payload }, "required": required })
}

/// Removes the parts that only the top of a schema has.
fn plain(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        for name in ["$schema", "$defs", "title", "description"] {
            fields.shift_remove(name);
        }
    }
    schema
}

/// A parsed line.
impl<'de> Deserialize<'de> for StreamLine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut written = Written::deserialize(deserializer)?;
        let content = content(&mut written).map_err(serde::de::Error::custom)?;
        Ok(Self { run: written.run, content })
    }
}

fn content(written: &mut Written) -> Result<Content, String> {
    let after = written.after.unwrap_or_default();
    let mut payload = written.payload.take();
    let Some(number) = written.number else {
        return match written.kind {
            LineKind::Token => {
                let token: StreamToken = serde_json::from_value(payload).map_err(|error| error.to_string())?;
                Ok(Content::Token(StreamToken { after, part: written.part.unwrap_or_default(), ..token }))
            }
            LineKind::Lagged => Ok(Content::Lagged { after }),
            LineKind::Dropped => Ok(Content::Dropped { after }),
            LineKind::End | LineKind::Error => {
                let error = payload["error"].as_str().map(str::to_owned);
                Ok(Content::End { after, error })
            }
            other => Err(format!("a line of {other:?} has no number")),
        };
    };
    let event = durable_event(written.kind, &mut payload)?;
    Ok(Content::Event { number, at_ms: written.at_ms.unwrap_or_default(), event })
}

/// The event of that kind with these fields: some kinds belong to several events.
fn durable_event(kind: LineKind, payload: &mut Value) -> Result<Event, String> {
    // The content of a line is outside input.
    let Some(fields) = payload.as_object_mut() else { return Err("the payload of a line is no object".to_owned()) };
    let mut wrong = format!("a line of {kind:?} is never durable, and this one has a number");
    for (tag, _) in KINDS.iter().filter(|(tag, _)| kinds_of(tag).any(|own| own == kind)) {
        fields.insert(TAG.to_owned(), json!(tag));
        match serde_json::from_value(Value::Object(fields.clone())) {
            Ok(event) => return Ok(event),
            Err(error) => wrong = error.to_string(),
        }
    }
    Err(wrong)
}

#[cfg(test)]
mod tests;
