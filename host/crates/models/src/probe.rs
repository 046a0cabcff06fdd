//! Sends one small request of each kind that runs use, to test a model and its endpoint.
//!
//! The requests are trivial, and the test is whether the exchange works: an answer came, it has the requested form, a
//! function was called. It does not measure how good a model is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::model::{
    Message, MessagePart, MessageRole, Model, ModelError, ModelReply, ModelRequest, OfferedTool, ReplyFormat,
    StopReason, Usage, UsageTally,
};
use longhaul_core::text::truncate;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A square of one colour.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";

/// Bytes of a reply or an error that are shown.
const WHY_BYTES_MAX: usize = 700;

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A text.
    Plain,
    /// A streamed text. Without streaming, watchers see a reply only at its end.
    Streaming,
    /// JSON by a schema.
    Schema,
    /// The provider's own calls of functions.
    Tools,
    /// A picture in the request. Only agents with pictures need it.
    Picture,
}

impl ProbeKind {
    /// All kinds, in the order of the probes.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Streaming, Self::Schema, Self::Tools, Self::Picture];

    /// The name of the kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Streaming => "streaming",
            Self::Schema => "schema",
            Self::Tools => "tools",
            Self::Picture => "picture",
        }
    }

    /// True when runs need it.
    #[must_use]
    pub fn is_needed(self) -> bool {
        match self {
            Self::Plain | Self::Schema | Self::Tools => true,
            Self::Streaming | Self::Picture => false,
        }
    }
}

/// The result of one probe.
#[derive(Clone, Debug, Serialize)]
pub struct Probed {
    /// The kind.
    pub kind: ProbeKind,
    /// True when it works.
    pub works: bool,
    /// True when runs need it.
    pub needed: bool,
    /// The fault, or an observation.
    pub why: String,
    /// Its duration, in milliseconds.
    pub took_ms: u64,
    /// Its usage.
    pub usage: Usage,
}

/// Tests a model. `output_tokens_max` leaves space for a model's thoughts before the reply. When the provider refuses
/// the first request permanently, the others are not sent.
pub async fn probe(model: &dyn Model, name: &str, output_tokens_max: u32) -> Vec<Probed> {
    let mut all: Vec<Probed> = Vec::new();
    let mut pieces = 0_u32;
    for kind in ProbeKind::ALL {
        if kind == ProbeKind::Streaming {
            // The plain request shows it.
            all.extend(all.first().filter(|plain| plain.works).map(|plain| streaming(pieces, plain)));
            continue;
        }
        let request = request(kind, name, output_tokens_max);
        let began = Instant::now();
        pieces = 0;
        let mut heard = |piece: &str| pieces = pieces.saturating_add(u32::from(!piece.is_empty()));
        let tally = UsageTally::default();
        let reply = model.ask(&request, &mut heard, &tally).await;
        let probed = judged(kind, reply, tally.wasted(), began.elapsed());
        let is_over = kind == ProbeKind::Plain && !probed.works;
        all.push(probed);
        if is_over {
            break;
        }
    }
    all
}

/// Sends the request for a text alone, to see that a model answers.
pub async fn probe_plain(model: &dyn Model, name: &str, output_tokens_max: u32) -> Probed {
    let request = request(ProbeKind::Plain, name, output_tokens_max);
    let began = Instant::now();
    let tally = UsageTally::default();
    let reply = model.ask(&request, &mut |_: &str| {}, &tally).await;
    judged(ProbeKind::Plain, reply, tally.wasted(), began.elapsed())
}

fn streaming(pieces: u32, plain: &Probed) -> Probed {
    let works = pieces > 1;
    let why = if works { String::new() } else { "the reply came in one piece".to_owned() };
    let usage = Usage::default();
    Probed { kind: ProbeKind::Streaming, works, needed: false, why, took_ms: plain.took_ms, usage }
}

fn judged(kind: ProbeKind, reply: Result<ModelReply, ModelError>, wasted: Usage, took: Duration) -> Probed {
    let (usage, why) = match &reply {
        Ok(reply) => {
            let wrong = wrong(kind, reply);
            let notes = reply.notes.join("; ");
            (reply.usage, wrong.map_or(Ok(notes), Err))
        }
        Err(error) => (Usage::default(), Err(error.to_string())),
    };
    let works = why.is_ok();
    let why = truncate(&why.unwrap_or_else(|why| why), WHY_BYTES_MAX);
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Probed { kind, works, needed: kind.is_needed(), why, took_ms, usage: usage.plus(wasted) }
}

/// The deviation from the request.
fn wrong(kind: ProbeKind, reply: &ModelReply) -> Option<String> {
    let is_cut = reply.reason == StopReason::Length;
    let cut = if is_cut { " (it was cut at the cap of tokens)" } else { "" };
    match kind {
        ProbeKind::Plain | ProbeKind::Streaming | ProbeKind::Picture => {
            (reply.text.trim().is_empty() && !is_cut).then(|| "the reply is empty".to_owned())
        }
        ProbeKind::Schema => {
            let said: Option<Value> = serde_json::from_str(reply.text.trim()).ok();
            let fits = said.is_some_and(|said| said["colour"].is_string() && said["details"].is_object());
            (!fits).then(|| format!("the reply does not fit the schema{cut}: {}", reply.text.trim()))
        }
        ProbeKind::Tools => {
            let is_call = |call: &longhaul_core::model::RequestedCall| {
                call.tool == "clock" && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|it| it.is_object())
            };
            (!reply.calls.iter().any(is_call)).then(|| {
                format!(
                    "it did not call the function{cut}; agents with calls = \"native\" cannot use it: {}",
                    reply.text.trim()
                )
            })
        }
    }
}

fn request(kind: ProbeKind, model: &str, output_tokens_max: u32) -> ModelRequest {
    let say = |text: &str| Message::text(MessageRole::User, text);
    let plain = ModelRequest {
        model: model.to_owned(),
        system: "You are being tested for whether requests work at all. Answer briefly.".to_owned(),
        messages: vec![say("Count from one to ten in words.")],
        tools: Vec::new(),
        format: ReplyFormat::Text,
        prefill: None,
        stop: Vec::new(),
        output_tokens_max,
        temperature: None,
        seed: None,
    };
    match kind {
        ProbeKind::Plain | ProbeKind::Streaming => plain,
        ProbeKind::Schema => ModelRequest {
            messages: vec![say("Name the colour of the sky by day, as JSON, with details of your choice.")],
            format: ReplyFormat::Schema(schema()),
            seed: Some(0),
            ..plain
        },
        ProbeKind::Tools => ModelRequest {
            messages: vec![say("Call the function that tells the time, for the zone `utc`.")],
            tools: vec![clock()],
            ..plain
        },
        ProbeKind::Picture => {
            let data = STANDARD.decode(PICTURE).unwrap_or_default();
            let picture = MessagePart::Image { media_type: "image/png".to_owned(), data };
            let parts = vec![MessagePart::Text("Which colour is this square?".to_owned()), picture];
            ModelRequest { messages: vec![Message { speaker: MessageRole::User, parts }], ..plain }
        }
    }
}

/// With all features of plugins' schemas in which providers differ: bounds, an open object, an optional field.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "colour": { "type": "string", "enum": ["blue", "green", "red"] },
            "details": { "type": "object", "description": "any fields" },
            "remark": { "type": "string", "maxLength": 100 },
        },
        "required": ["colour", "details"],
        "additionalProperties": false,
    })
}

fn clock() -> OfferedTool {
    OfferedTool {
        tool: "clock".to_owned(),
        function: "now".to_owned(),
        description: "Tells the time in a zone.".to_owned(),
        parameters: json!({
            "type": "object", "properties": { "zone": { "type": "string" } }, "required": ["zone"],
            "additionalProperties": false,
        }),
    }
}
