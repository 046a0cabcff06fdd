//! A reply, assembled from a hostile endpoint's events.
//!
//! Unknown events are skipped, as the protocol requires. Counts come twice, at the start and at the end; the later one
//! is the total.

use super::config::AnthropicConfig;
use crate::ApiKey;
use crate::calls::{self, PartialCall};
use crate::endpoint_account::EndpointAccount;
use crate::http_exchange::{Assembly, Wrong, until_stop};
use crate::prefill::with_prefill;
use crate::prices::{Prices, count, estimate};
use crate::problem::problem_text;
use crate::secret::KeyRedactor;
use crate::tool_names::Names;
use longhaul_core::model::{ModelReply, ModelRequest, StopReason, Thought, Usage, text_tokens_most};
use longhaul_core::text::truncate;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Reasons of servers for the end of a reply that is whole.
const ENDS: [&str; 4] = ["", "end_turn", "stop_sequence", "tool_use"];

/// Blocks of thoughts of one reply.
const THOUGHTS_MAX: usize = 256;

/// Bytes of unsigned thoughts that are kept.
const UNSIGNED_BYTES_MAX: usize = 16 << 10;

/// One event of a stream, or the whole answer.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Whole,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    MessageDelta {
        delta: End,
        #[serde(default)]
        usage: Option<Value>,
    },
    MessageStop,
    Message(Whole),
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    model: Option<Value>,
    #[serde(default)]
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        input: Value,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: Option<String>,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[expect(clippy::enum_variant_names, reason = "the protocol's names")]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    OtherDelta,
}

/// A reply under assembly.
pub(crate) struct AnthropicAssembly {
    done: bool,
    account: EndpointAccount,
    stream_redactor: KeyRedactor,
    text: String,
    calls: Vec<PartialCall>,
    /// The thoughts with the index of their block.
    thoughts: Vec<(u64, Thought)>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
}

impl Assembly for AnthropicAssembly {
    fn take(&mut self, event: &str) -> Result<String, Wrong> {
        let event: Event = serde_json::from_str(event).map_err(|error| Wrong::Unreadable(error.to_string()))?;
        match event {
            Event::MessageStart { message } => {
                self.account.take(message.model.as_ref(), message.id.as_ref());
                self.count(message.usage);
                Ok(String::new())
            }
            Event::ContentBlockStart { index, content_block } => self.begin(index, content_block),
            Event::ContentBlockDelta { index, delta } => Ok(self.add(index, delta)),
            Event::MessageDelta { delta, usage } => {
                self.count(usage);
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                Ok(String::new())
            }
            Event::MessageStop => {
                self.done = true;
                Ok(String::new())
            }
            Event::Message(whole) => self.take_whole(whole),
            Event::Error { error } => Err(ended_by(&error)),
            Event::Other => Ok(String::new()),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.stop_reason.is_some()
    }

    fn finish_text(&mut self) -> String {
        let rest = self.stream_redactor.finish();
        self.text.push_str(&rest);
        rest
    }

    /// The protocol reports a refusal as the reason of the end, beside any text before it.
    fn refusal(&self) -> Option<String> {
        let refused = self.stop_reason.as_deref() == Some("refusal");
        (refused && self.text.trim().is_empty() && self.calls.is_empty())
            .then(|| "the provider ended the reply for its safety policy".to_owned())
    }

    /// Counts that the provider leaves out are estimated, so that silence cannot bypass a budget. Its input count
    /// excludes cached tokens; the host's includes them.
    fn counted(&self, request: &ModelRequest) -> Usage {
        let usage = Value::Object(self.usage.clone());
        let count = |path| count(Some(&usage), path);
        let cached = count("/cache_read_input_tokens").unwrap_or(0);
        let written = count("/cache_creation_input_tokens").unwrap_or(0);
        let thought: u64 = self.thoughts.iter().map(|(_, thought)| text_tokens_most(&thought.text)).sum();
        let calls: u64 = self.calls.iter().map(|call| text_tokens_most(&call.arguments)).sum();
        let read = count("/input_tokens").map(|fresh| fresh.saturating_add(cached).saturating_add(written));
        let output = || estimate(text_tokens_most(&self.text) + thought + calls + 1);
        let stated = count("/output_tokens").filter(|tokens| *tokens > 0);
        // A count before the end is not the final one.
        let stated = stated.map(|tokens| if self.is_whole() { tokens } else { tokens.max(output()) });
        let output_tokens = stated.unwrap_or_else(output);
        Usage {
            input_tokens: read.unwrap_or_else(|| estimate(request.tokens_most())),
            cached_tokens: cached,
            cache_written_tokens: written,
            output_tokens,
            reasoning_tokens: count("/output_tokens_details/thinking_tokens").unwrap_or_else(|| estimate(thought)),
            ..Usage::default()
        }
    }

    fn stated(&self) -> Option<Value> {
        Some(Value::Object(self.usage.clone()))
    }
}

impl AnthropicAssembly {
    pub(super) fn new(key: Option<&ApiKey>) -> Self {
        Self {
            done: false,
            account: EndpointAccount::default(),
            stream_redactor: KeyRedactor::new(key),
            text: String::new(),
            calls: Vec::new(),
            thoughts: Vec::new(),
            stop_reason: None,
            usage: Map::new(),
        }
    }

    pub(crate) fn into_reply(
        self,
        request: &ModelRequest,
        config: &AnthropicConfig,
        names: &Names,
        prices: &Prices,
        headers: &HeaderMap,
    ) -> ModelReply {
        let usage = prices.charged(self.counted(request), headers, Some(&Value::Object(self.usage.clone())));
        let calls = calls::requested(&self.calls, &self.stream_redactor, names);
        let thoughts =
            self.thoughts.into_iter().map(|(_, thought)| kept(thought, config, &self.stream_redactor)).collect();
        let text = with_prefill(self.text, request.prefill.as_deref().unwrap_or_default(), config.prefill);
        let (text, stopped) = until_stop(text, request);
        let reason = match self.stop_reason.as_deref() {
            Some("refusal") => StopReason::Filtered,
            Some("max_tokens" | "model_context_window_exceeded") if !stopped => StopReason::Length,
            _ if !calls.is_empty() => StopReason::Tools,
            Some(other) if !stopped && !ENDS.contains(&other) => StopReason::Other,
            _ => StopReason::End,
        };
        let endpoint = Some(self.account.endpoint(&config.base_url, &self.stream_redactor));
        ModelReply { text, calls, reason, usage, thoughts, endpoint, ..ModelReply::default() }
    }

    fn take_whole(&mut self, whole: Whole) -> Result<String, Wrong> {
        self.account.take(whole.model.as_ref(), whole.id.as_ref());
        self.count(whole.usage);
        self.stop_reason = whole.stop_reason;
        self.done = true;
        let mut heard = String::new();
        for (index, block) in (0..).zip(whole.content) {
            heard.push_str(&self.begin(index, block)?);
        }
        Ok(heard)
    }

    fn begin(&mut self, index: u64, block: Block) -> Result<String, Wrong> {
        match block {
            Block::Text { text } => return Ok(self.say(&text)),
            Block::ToolUse { .. } if self.calls.len() == calls::MAX => return Err(Wrong::TooManyCalls(calls::MAX)),
            Block::ToolUse { id, name, input } => {
                // In a stream the input is empty here and comes in pieces; in a whole answer it is complete here.
                let is_here = input.as_object().is_some_and(|input| !input.is_empty());
                let arguments = if is_here { input.to_string() } else { String::new() };
                self.calls.push(PartialCall { index, id, name, arguments });
            }
            Block::Thinking { thinking, signature } => {
                self.think(index, Thought { text: thinking, signature, ..Thought::default() });
            }
            Block::RedactedThinking { data } => {
                self.think(index, Thought { signature: Some(data), hidden: true, ..Thought::default() });
            }
            Block::Other => {}
        }
        Ok(String::new())
    }

    fn add(&mut self, index: u64, delta: Delta) -> String {
        match delta {
            Delta::TextDelta { text } => return self.say(&text),
            Delta::InputJsonDelta { partial_json } => {
                if let Some(call) = self.calls.iter_mut().rfind(|call| call.index == index) {
                    call.arguments.push_str(&partial_json);
                }
            }
            Delta::ThinkingDelta { thinking } => {
                if let Some(thought) = self.thought(index) {
                    thought.text.push_str(&thinking);
                }
            }
            Delta::SignatureDelta { signature } => {
                if let Some(thought) = self.thought(index) {
                    thought.signature.get_or_insert_default().push_str(&signature);
                }
            }
            Delta::OtherDelta => {}
        }
        String::new()
    }

    fn say(&mut self, text: &str) -> String {
        let piece = self.stream_redactor.push(text);
        self.text.push_str(&piece);
        piece
    }

    fn think(&mut self, index: u64, thought: Thought) {
        if self.thoughts.len() < THOUGHTS_MAX {
            self.thoughts.push((index, thought));
        }
    }

    fn thought(&mut self, index: u64) -> Option<&mut Thought> {
        self.thoughts.iter_mut().rfind(|(at, _)| *at == index).map(|(_, thought)| thought)
    }

    fn count(&mut self, usage: Option<Value>) {
        let Some(Value::Object(usage)) = usage else { return };
        self.usage.extend(usage.into_iter().filter(|(_, count)| !count.is_null()));
    }
}

/// A signed thought is returned unchanged. One that contains the key is not returned.
fn kept(mut thought: Thought, config: &AnthropicConfig, stream_redactor: &KeyRedactor) -> Thought {
    thought.model.clone_from(&config.id);
    let clean = stream_redactor.whole(&thought.text);
    if clean != thought.text {
        (thought.text, thought.signature) = (clean, None);
    }
    if thought.signature.is_none() {
        thought.text = truncate(&thought.text, UNSIGNED_BYTES_MAX);
    }
    thought
}

/// The kind of an error stands for the status that it has on its own.
fn ended_by(error: &Value) -> Wrong {
    let status = match error.get("type").and_then(Value::as_str) {
        Some("invalid_request_error") => Some(400),
        Some("authentication_error") => Some(401),
        Some("billing_error") => Some(402),
        Some("permission_error") => Some(403),
        Some("not_found_error") => Some(404),
        Some("request_too_large") => Some(413),
        _ => None,
    };
    Wrong::Error { status, message: problem_text(error) }
}
