//! One small request of each kind that runs use, to see what a model and its endpoint can do.
//!
//! What is asked is trivial, and what is judged is whether the exchange works: an answer came, it has the form that was
//! asked for, a function was called. How good a model is, nobody learns here.

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

/// How much of a reply or an error is shown, in bytes.
const WHY_BYTES_MAX: usize = 700;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A text.
    Plain,
    /// A text that comes in pieces. Without, people who watch see a reply at its end.
    Streaming,
    /// JSON by a schema.
    Schema,
    /// The provider's own calls of functions.
    Tools,
    /// A picture in the request. Only agents that are shown pictures need it.
    Picture,
}

impl ProbeKind {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Streaming, Self::Schema, Self::Tools, Self::Picture];

    /// In a word.
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

    /// Whether runs cannot do without it.
    #[must_use]
    pub fn is_needed(self) -> bool {
        match self {
            Self::Plain | Self::Schema | Self::Tools => true,
            Self::Streaming | Self::Picture => false,
        }
    }
}

/// What came of one request.
#[derive(Clone, Debug, Serialize)]
pub struct Probed {
    /// What was tried.
    pub kind: ProbeKind,
    /// Whether it works.
    pub works: bool,
    /// Whether runs cannot do without it.
    pub needed: bool,
    /// What is wrong, or what was noticed.
    pub why: String,
    /// How long it took.
    pub took_ms: u64,
    /// What it cost.
    pub usage: Usage,
}

/// Tries a model. `output_tokens_max` has room for what a model thinks before it replies. When the provider refuses the
/// first request for good, the others are not made.
pub async fn probe(model: &dyn Model, name: &str, output_tokens_max: u32) -> Vec<Probed> {
    let mut all: Vec<Probed> = Vec::new();
    let mut pieces = 0_u32;
    for kind in ProbeKind::ALL {
        if kind == ProbeKind::Streaming {
            // It is the plain request that shows it.
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

/// What is not as it was asked for.
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

/// With all that schemas of plugins have and that providers differ in: bounds, an open object, an optional field.
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
