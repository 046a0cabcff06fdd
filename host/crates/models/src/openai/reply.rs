//! A reply, put together from what a hostile endpoint sends.
//!
//! Types that are not the expected ones end the reply, except where servers are known to differ: an
//! object where arguments should be text, a missing index or id of a call, a reply in one piece.

use super::{OpenAiConfig, PrefillMode, asked_tokens};
use crate::ModelsError;
use crate::Secret;
use crate::secret::Sieve;
use crate::tool_names::Names;
use longhaul_core::model::{ModelReply, ModelRequest, RequestedCall, StopReason, Usage};
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// Calls that one reply may ask for.
const CALLS_MAX: usize = 128;

/// Longest id of a call that is kept, in bytes; the providers' own have about 30.
const CALL_ID_BYTES_MAX: usize = 128;

/// A cost above this, in US dollars, is no cost of one reply and is not believed.
const COST_USD_MAX: f64 = 10_000.0;

/// Where gateways state what a reply cost, in US dollars.
const COST_HEADERS: [&str; 3] = ["x-litellm-response-cost", "x-cost-usd", "x-helicone-cost-usd"];

/// One object of a stream, or the whole answer.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

/// Why an object cannot be part of a reply.
pub(super) enum Wrong {
    Unreadable(String),
    Error { status: Option<u16>, message: String },
    TooManyCalls(usize),
}

/// A reply in the making.
pub(super) struct Assembly {
    /// The endpoint said that there is no more.
    pub(super) done: bool,
    sieve: Sieve,
    text: String,
    refusal: String,
    calls: Vec<PartialCall>,
    finish: Option<String>,
    usage: Option<Value>,
}

struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    pub(super) fn new(key: Option<&Secret>) -> Self {
        Self {
            done: false,
            sieve: Sieve::new(key),
            text: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            finish: None,
            usage: None,
        }
    }

    /// Adds one object; gives the text in it that is certain.
    pub(super) fn take(&mut self, json: &str) -> Result<String, Wrong> {
        let chunk: Chunk = serde_json::from_str(json).map_err(|error| Wrong::Unreadable(error.to_string()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(inside(&error));
        }
        self.usage = chunk.usage.filter(Value::is_object).or(self.usage.take());
        let mut heard = String::new();
        // Only one answer was asked for; others that come are not ours.
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.finish = choice.finish_reason.or(self.finish.take());
            let Some(delta) = choice.delta else { continue };
            heard.push_str(&self.sieve.push(&delta.content.unwrap_or_default()));
            self.refusal.push_str(&delta.refusal.unwrap_or_default());
            for call in delta.tool_calls.unwrap_or_default() {
                self.take_call(call)?;
            }
        }
        self.text.push_str(&heard);
        Ok(heard)
    }

    /// Whether the endpoint said that this is all.
    pub(super) fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// The end of the text, which was held back while it could have been part of the key.
    pub(super) fn finish_text(&mut self) -> String {
        let rest = self.sieve.finish();
        self.text.push_str(&rest);
        rest
    }

    /// The model's own words, when it refused.
    pub(super) fn refusal(&self) -> Option<String> {
        (!self.refusal.is_empty()).then(|| self.refusal.clone())
    }

    pub(super) fn into_reply(
        self,
        request: &ModelRequest,
        mode: PrefillMode,
        names: &Names,
        prices: &Prices,
        headers: &HeaderMap,
    ) -> ModelReply {
        let usage = prices.usage(self.usage.as_ref(), request, self.written_chars(), headers);
        let calls = self.requested(names);
        let text = with_prefill(self.text, request.prefill.as_deref().unwrap_or_default(), mode);
        let (text, stopped) = until_stop(text, request);
        let reason = match self.finish.as_deref() {
            Some("content_filter") => StopReason::Filtered,
            Some("length") if !stopped => StopReason::Length,
            _ if !calls.is_empty() => StopReason::Tools,
            _ => StopReason::End,
        };
        ModelReply { text, calls, reason, usage }
    }

    /// Some servers number all calls 0, others none: a new id or, without ids, a new name starts a call.
    fn take_call(&mut self, delta: CallDelta) -> Result<(), Wrong> {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let last = self.calls.len().checked_sub(1);
        let position = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() && name.is_empty() => last,
            None => None,
        };
        let other = |call: &PartialCall| !id.is_empty() && !call.id.is_empty() && call.id != id;
        let position = match position.filter(|&position| !other(&self.calls[position])) {
            Some(position) => position,
            None if self.calls.len() == CALLS_MAX => return Err(Wrong::TooManyCalls(CALLS_MAX)),
            None => {
                let index = delta.index.unwrap_or(self.calls.len() as u64);
                self.calls.push(PartialCall {
                    index,
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id = id;
        }
        // Servers either send the name once, in pieces, or the whole of it each time.
        if call.name != name {
            call.name.push_str(&name);
        }
        match function.arguments {
            Some(Value::String(piece)) => call.arguments.push_str(&piece),
            Some(Value::Null) | None => {}
            Some(whole) => call.arguments = whole.to_string(),
        }
        Ok(())
    }

    fn written_chars(&self) -> usize {
        self.text.chars().count() + self.calls.iter().map(|call| call.arguments.chars().count()).sum::<usize>()
    }

    fn requested(&self, names: &Names) -> Vec<RequestedCall> {
        let mut used = HashSet::new();
        let mut requested = Vec::new();
        for (position, call) in self.calls.iter().enumerate() {
            let (tool, function) = names.decode(&self.sieve.whole(&call.name));
            let arguments = match call.arguments.trim() {
                "" => "{}".to_owned(),
                _ => self.sieve.whole(&call.arguments),
            };
            requested.push(RequestedCall { id: self.call_id(position, &mut used), tool, function, arguments });
        }
        requested
    }

    /// The endpoint's own id when it can serve as one, else one of ours.
    fn call_id(&self, position: usize, used: &mut HashSet<String>) -> String {
        let own = self.sieve.whole(&self.calls[position].id);
        let usable =
            !own.is_empty() && own.len() <= CALL_ID_BYTES_MAX && own.bytes().all(|byte| byte.is_ascii_graphic());
        let mut id = if usable { own } else { format!("call_{position}") };
        while used.contains(&id) {
            id.push('_');
        }
        used.insert(id.clone());
        id
    }
}

/// A repeated beginning at least this long, in bytes, is no coincidence.
const ECHO_BYTES_MIN: usize = 8;

/// The text with its beginning, which the model may or may not have written itself.
fn with_prefill(text: String, prefill: &str, mode: PrefillMode) -> String {
    let repeats = text.starts_with(prefill);
    match mode {
        PrefillMode::Native | PrefillMode::Continue if repeats && prefill.len() >= ECHO_BYTES_MIN => {
            tracing::warn!("the provider repeats the prefill; set prefill = \"echoed\"");
            text
        }
        PrefillMode::Native | PrefillMode::Continue => format!("{prefill}{text}"),
        PrefillMode::Prompt | PrefillMode::Echoed if repeats => text,
        PrefillMode::Prompt => format!("{prefill}{}", repeated(&text, prefill).unwrap_or(&text)),
        PrefillMode::Echoed => format!("{prefill}{text}"),
    }
}

/// What follows the beginning, when the model wrote that with other white space or behind a code fence.
fn repeated<'a>(text: &'a str, prefill: &str) -> Option<&'a str> {
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix(prefill) {
        return Some(rest);
    }
    let core = prefill.trim();
    if core.is_empty() {
        return None;
    }
    if let Some(rest) = trimmed.strip_prefix(core) {
        return Some(rest.trim_start());
    }
    let fenced = trimmed.strip_prefix("```")?.split_once('\n')?.1.trim_start();
    let rest = fenced.strip_prefix(prefill).or_else(|| fenced.strip_prefix(core))?;
    Some(rest.trim_end().strip_suffix("```").map_or(rest, str::trim_end))
}

/// The text before the first stop, whether or not the provider knew that stop.
fn until_stop(mut text: String, request: &ModelRequest) -> (String, bool) {
    let start = request.prefill.as_deref().map_or(0, str::len);
    let stops = request.stop.iter().filter(|stop| !stop.is_empty());
    let end = stops.filter_map(|stop| text[start..].find(stop.as_str())).min();
    if let Some(end) = end {
        text.truncate(start + end);
    }
    (text, end.is_some())
}

/// What tokens cost, in millionths of a dollar each, which is dollars a million.
pub(super) struct Prices {
    input: f64,
    cached: f64,
    output: f64,
}

impl Prices {
    pub(super) fn of(model: &str, config: &OpenAiConfig) -> Result<Self, ModelsError> {
        let input = config.price_input_usd_per_million;
        let fields = [
            ("price_input_usd_per_million", input),
            ("price_cached_usd_per_million", config.price_cached_usd_per_million.unwrap_or(input)),
            ("price_output_usd_per_million", config.price_output_usd_per_million),
        ];
        for (field, price) in fields {
            if !(0.0..=1e9).contains(&price) {
                let remedy = "give dollars for a million tokens, 0 or more".to_owned();
                return Err(ModelsError::Setting { model: model.to_owned(), field, value: price.to_string(), remedy });
            }
        }
        let [(_, input), (_, cached), (_, output)] = fields;
        Ok(Self { input, cached, output })
    }

    /// Counts that the provider leaves out are estimated, so that a budget cannot be passed by silence.
    fn usage(
        &self,
        stated: Option<&Value>,
        request: &ModelRequest,
        written_chars: usize,
        headers: &HeaderMap,
    ) -> Usage {
        let count = |path: &str| {
            let number = stated?.pointer(path)?;
            let number = number.as_u64().or_else(|| number.as_f64().map(whole))?;
            Some(u32::try_from(number).unwrap_or(u32::MAX))
        };
        let estimate = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        let input_tokens = count("/prompt_tokens").unwrap_or_else(|| estimate(asked_tokens(request)));
        let output_tokens = count("/completion_tokens").unwrap_or_else(|| estimate(written_chars as u64 / 4 + 1));
        let cached = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens"));
        let mut usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        usage.cached_tokens = cached.unwrap_or(0).min(input_tokens);
        let stated_usd = cost_in(headers).or_else(|| believed(stated?.get("cost")?.as_f64()?));
        usage.cost_microdollars = stated_usd.map_or_else(|| self.cost(usage), |usd| usd * 1e6);
        usage
    }

    fn cost(&self, usage: Usage) -> f64 {
        let fresh = usage.input_tokens - usage.cached_tokens;
        f64::from(fresh) * self.input
            + f64::from(usage.cached_tokens) * self.cached
            + f64::from(usage.output_tokens) * self.output
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what a count wants"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

fn cost_in(headers: &HeaderMap) -> Option<f64> {
    let stated = |name| headers.get(name)?.to_str().ok()?.trim().parse().ok().and_then(believed);
    COST_HEADERS.into_iter().find_map(stated)
}

/// Gateways write 0 before they know the cost of a stream, so 0 says nothing.
fn believed(usd: f64) -> Option<f64> {
    (usd > 0.0 && usd <= COST_USD_MAX).then_some(usd)
}

/// What an endpoint says is wrong.
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) codes: Vec<String>,
    /// llama-server tells both.
    pub(super) asked_tokens: Option<u64>,
    pub(super) window_tokens: Option<u64>,
}

impl Problem {
    /// There is no one word for it.
    pub(super) fn is_context_full(&self) -> bool {
        let named = ["context_length_exceeded", "exceed_context_size_error"];
        let message = self.message.to_lowercase();
        self.codes.iter().any(|code| named.contains(&code.as_str()))
            || ["maximum context length", "context window", "context size"].iter().any(|words| message.contains(words))
    }
}

/// Reads `{"error": {"message", "type", "code"}}` and its relatives; any other body is its own message.
pub(super) fn problem(body: &str) -> Problem {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let error = value.get("error").unwrap_or(&value);
    let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").or_else(|| text("detail")).or_else(|| error.as_str().map(str::to_owned));
    Problem {
        message: message.unwrap_or_else(|| body.to_owned()),
        codes: [text("code"), text("type")].into_iter().flatten().collect(),
        asked_tokens: error.get("n_prompt_tokens").and_then(Value::as_u64),
        window_tokens: error.get("n_ctx").and_then(Value::as_u64),
    }
}

fn inside(error: &Value) -> Wrong {
    let code = error.get("code").or_else(|| error.get("status"));
    let status = code.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Wrong::Error { status, message: problem(&error.to_string()).message }
}
