//! The error response of an endpoint: its message, its codes, and the numbers in it.
//!
//! Providers word the same error differently; each question of a caller is a method of [`Problem`]. This file decides
//! nothing: `http_exchange.rs` decides about retries, `adaptation.rs` about adapted requests.

use serde_json::Value;

/// An endpoint's error.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) codes: Vec<String>,
    /// The refused field of the request.
    pub(crate) param: Option<String>,
    /// llama-server reports both.
    pub(crate) asked_tokens: Option<u64>,
    pub(crate) window_tokens: Option<u64>,
}

impl Problem {
    /// There is no common code for it.
    pub(crate) fn is_context_full(&self) -> bool {
        let named = ["context_length_exceeded", "exceed_context_size_error"];
        let said = [
            "maximum context length",
            "context window",
            "context size",
            "context limit",
            "prompt is too long",
            "input token count",
            "maximum prompt length",
            "loaded with context length",
        ];
        let message = self.message.to_lowercase();
        self.codes.iter().any(|code| named.contains(&code.as_str())) || said.iter().any(|words| message.contains(words))
    }

    /// Most providers use 404, some 400.
    pub(crate) fn is_unknown_model(&self) -> bool {
        let message = self.message.to_lowercase();
        let said = ["does not exist", "not a valid model", "unknown model", "model not found", "invalid model"];
        self.codes.iter().any(|code| code == "model_not_found")
            || message.contains("model") && said.iter().any(|words| message.contains(words))
    }

    /// Anthropic uses the status of an invalid request.
    pub(crate) fn is_broke(&self) -> bool {
        self.message.to_lowercase().contains("credit balance is too low")
    }
}

/// Parses `{"error": {"message", "type", "code"}}` and its variants; any other body is its own message.
pub(crate) fn problem(body: &str) -> Problem {
    let mut value: Value = serde_json::from_str(body).unwrap_or_default();
    // Gemini returns a list of one.
    if let Some(first) = value.as_array_mut().and_then(|all| all.first_mut()) {
        value = first.take();
    }
    let error = value.get("error").unwrap_or(&value);
    let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").or_else(|| text("detail")).or_else(|| error.as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| body.to_owned());
    let number = |field: &str| error.get(field).and_then(Value::as_u64);
    Problem {
        codes: [text("code"), text("type")].into_iter().flatten().collect(),
        param: text("param").filter(|param| !param.is_empty()),
        asked_tokens: number("n_prompt_tokens").or_else(|| number_after(&message, &ASKED)),
        window_tokens: number("n_ctx").or_else(|| number_after(&message, &WINDOW)).or_else(|| window_last(&message)),
        message,
    }
}

/// The text of an error object.
pub(crate) fn problem_text(error: &Value) -> String {
    problem(&error.to_string()).message
}

/// The requests for a window, and the windows, of OpenAI, vLLM, OpenRouter and DeepSeek (`This model's maximum context
/// length is 8192 tokens. However, you requested 9000 tokens`), Anthropic (`prompt is too long: 208310 tokens > 200000
/// maximum`), Gemini (`The input token count (2845475) exceeds the maximum number of tokens allowed (1048576)`),
/// llama-server (`the available context size (4096 tokens)`), LM Studio and xAI.
const ASKED: [&str; 8] = [
    "too long: ",
    "token count (",
    "you requested about ",
    "you requested ",
    "resulted in ",
    "prompt contains ",
    "request contains ",
    "request (",
];

const WINDOW: [&str; 9] = [
    " tokens > ",
    "maximum context length is ",
    "maximum context length of ",
    "number of tokens allowed (",
    "number of tokens allowed ",
    "available context size (",
    "context length of only ",
    "maximum prompt length is ",
    "too large for model with ",
];

/// The number after the first of these phrases that precedes one.
fn number_after(message: &str, words: &[&str]) -> Option<u64> {
    let message = message.to_lowercase();
    let digits = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    words.iter().find_map(|words| message.split_once(words).and_then(|(_, rest)| digits(rest)))
}

/// The last number of `exceed context limit: 188240 + 21333 > 200000`.
fn window_last(message: &str) -> Option<u64> {
    let (_, window) = message.split_once("context limit: ")?.1.split_once(" > ")?;
    number_after(&format!("> {window}"), &["> "])
}
