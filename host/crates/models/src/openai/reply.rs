//! A reply, assembled from a hostile endpoint's objects.
//!
//! Unexpected types end the reply, except where servers are known to differ: an object where arguments should be text,
//! a missing index or id of a call, a reply in one piece.

use super::config::OpenAiConfig;
use crate::ApiKey;
use crate::calls::{self, PartialCall};
use crate::endpoint_account::EndpointAccount;
use crate::http_exchange::{Assembly, Wrong, inside, until_stop};
use crate::prefill::with_prefill;
use crate::prices::{Prices, count, estimate};
use crate::secret::KeyRedactor;
use crate::tool_names::Names;
use longhaul_core::model::{ModelReply, ModelRequest, StopReason, Thought, Usage, text_tokens_most};
use longhaul_core::text::truncate;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

/// Reasons of servers for the end of a reply that is whole.
const ENDS: [&str; 6] = ["", "stop", "eos", "eos_token", "tool_calls", "function_call"];

/// Bytes of thoughts that are kept.
const THOUGHT_BYTES_MAX: usize = 16 << 10;

/// One object of a stream, or the whole answer.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    model: Option<Value>,
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
    /// Not OpenAI's own: DeepSeek's, vLLM's and llama-server's.
    #[serde(default)]
    reasoning_content: Option<Value>,
    /// OpenRouter's name of it, which some servers use beside the other.
    #[serde(default)]
    reasoning: Option<Value>,
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

/// A reply under assembly.
pub(crate) struct OpenAiAssembly {
    /// The endpoint ended the reply.
    done: bool,
    account: EndpointAccount,
    stream_redactor: KeyRedactor,
    text: String,
    thought: String,
    refusal: String,
    calls: Vec<PartialCall>,
    finish: Option<String>,
    usage: Option<Value>,
}

impl Assembly for OpenAiAssembly {
    fn take(&mut self, event: &str) -> Result<String, Wrong> {
        if event.trim() == "[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        let chunk: Chunk = serde_json::from_str(event).map_err(|error| Wrong::Unreadable(error.to_string()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(inside(&error));
        }
        self.account.take(chunk.model.as_ref(), chunk.id.as_ref());
        self.usage = chunk.usage.filter(Value::is_object).or(self.usage.take());
        let mut heard = String::new();
        // Only one answer was requested; others are ignored.
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.finish = choice.finish_reason.or(self.finish.take());
            let Some(delta) = choice.delta else { continue };
            heard.push_str(&self.stream_redactor.push(&delta.content.unwrap_or_default()));
            self.refusal.push_str(&delta.refusal.unwrap_or_default());
            let thought = [&delta.reasoning_content, &delta.reasoning].into_iter().flatten().find_map(Value::as_str);
            self.thought.push_str(thought.unwrap_or_default());
            for call in delta.tool_calls.unwrap_or_default() {
                self.take_call(call)?;
            }
        }
        self.text.push_str(&heard);
        Ok(heard)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn finish_text(&mut self) -> String {
        let rest = self.stream_redactor.finish();
        self.text.push_str(&rest);
        rest
    }

    fn refusal(&self) -> Option<String> {
        (!self.refusal.is_empty()).then(|| self.refusal.clone())
    }

    fn counted(&self, request: &ModelRequest) -> Usage {
        let count = |path| count(self.usage.as_ref(), path);
        let cached = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens"));
        Usage {
            input_tokens: count("/prompt_tokens").unwrap_or_else(|| estimate(request.tokens_most())),
            cached_tokens: cached.unwrap_or(0),
            output_tokens: count("/completion_tokens").unwrap_or_else(|| estimate(self.written_tokens())),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
            ..Usage::default()
        }
    }

    fn stated(&self) -> Option<Value> {
        self.usage.clone()
    }
}

impl OpenAiAssembly {
    pub(super) fn new(key: Option<&ApiKey>) -> Self {
        Self {
            done: false,
            account: EndpointAccount::default(),
            stream_redactor: KeyRedactor::new(key),
            text: String::new(),
            thought: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            finish: None,
            usage: None,
        }
    }

    pub(crate) fn into_reply(
        self,
        request: &ModelRequest,
        config: &OpenAiConfig,
        names: &Names,
        prices: &Prices,
        headers: &HeaderMap,
    ) -> ModelReply {
        let usage = prices.charged(self.counted(request), headers, self.usage.as_ref());
        let calls = calls::requested(&self.calls, &self.stream_redactor, names);
        let thought = truncate(self.stream_redactor.whole(&self.thought).trim(), THOUGHT_BYTES_MAX);
        let thought = Thought { text: thought, model: config.id.clone(), ..Thought::default() };
        let text = with_prefill(self.text, request.prefill.as_deref().unwrap_or_default(), config.prefill);
        let (text, stopped) = until_stop(text, request);
        let reason = match self.finish.as_deref() {
            Some("content_filter") => StopReason::Filtered,
            Some("length") if !stopped => StopReason::Length,
            _ if !calls.is_empty() => StopReason::Tools,
            Some(other) if !stopped && !ENDS.contains(&other) => StopReason::Other,
            _ => StopReason::End,
        };
        let thoughts = if thought.text.is_empty() { Vec::new() } else { vec![thought] };
        let endpoint = Some(self.account.endpoint(&config.base_url, &self.stream_redactor));
        ModelReply { text, calls, reason, usage, thoughts, endpoint, ..ModelReply::default() }
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
            None if self.calls.len() == calls::MAX => return Err(Wrong::TooManyCalls(calls::MAX)),
            None => {
                let index = delta.index.unwrap_or(self.calls.len() as u64);
                self.calls.push(PartialCall { index, ..PartialCall::default() });
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

    /// An upper bound of the written tokens; the end of a reply counts as one.
    fn written_tokens(&self) -> u64 {
        let calls = self.calls.iter().map(|call| text_tokens_most(&call.name) + text_tokens_most(&call.arguments));
        let texts = [&self.text, &self.thought, &self.refusal].map(|text| text_tokens_most(text));
        calls.sum::<u64>() + texts.iter().sum::<u64>() + 1
    }
}
