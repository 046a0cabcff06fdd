//! Any endpoint that speaks `POST /v1/chat/completions`: OpenAI, most clouds, most local servers.
//!
//! The endpoint is taken for hostile. Its answer is bounded in lines, bytes and time; tools that it
//! names are only asked for, never trusted; its errors are shown short and without the key; a cost
//! that it claims counts only when it is a sensible number. This file never follows a redirect, never
//! repairs JSON that a model wrote, and keeps nothing between two requests.

mod reply;
mod request;
mod sse;

use crate::http::{self, Endpoint, Reach};
use crate::retry::{Failure, Retries, RetryConfig};
use crate::tool_names::Names;
use crate::{ModelsError, Secret};
use longhaul_core::model::{Heard, Message, Model, ModelError, ModelInfo, ModelReply, ModelRequest};
use longhaul_core::{Denial, LimitHit};
use reply::{Assembly, Prices};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sse::{Decoder, Fault};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::time::{timeout, timeout_at};

/// How much of an error's body is read, in bytes.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// A table `[models.NAME]` with `provider = "openai"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The provider's own name of the model, for example `gpt-5-mini`.
    pub id: String,
    /// Where it is, up to and with `/v1`. Default `https://api.openai.com/v1`.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// The environment variable that holds the key. Default: none, for servers that want no key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// A file of mode 0600 that holds the key, instead of a variable. Default: none.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Sends the key over plain HTTP to another machine. Default false. Loopback needs no permission.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// The window, in tokens. Default 128 000. It is not asked from the provider.
    #[serde(default = "default_context")]
    pub context_tokens_max: u32,
    /// How the provider calls the cap of a reply. Default: `max_completion_tokens` at api.openai.com,
    /// `max_tokens` elsewhere.
    #[serde(default)]
    pub output_tokens_field: Option<OutputTokensField>,
    /// What happens to the beginning that a reply must have. Default `prompt`.
    #[serde(default)]
    pub prefill: PrefillMode,
    /// How a JSON schema is sent. Default `strict`.
    #[serde(default)]
    pub schema: SchemaMode,
    /// How closely a picture is looked at, `auto`, `low` or `high`: what is low costs few tokens. Default: not
    /// said, which the provider takes for `auto`.
    #[serde(default)]
    pub image_detail: Option<ImageDetail>,
    /// Fields that the provider does not bear and that are never sent, for example
    /// `["temperature", "seed", "stream_options"]`. Default: none. What is left out no longer binds
    /// the provider; `stop` is applied here all the same.
    #[serde(default)]
    pub omit: Vec<String>,
    /// Fields that are sent besides ours, for example `{ reasoning_effort = "low" }`. Default: none.
    #[serde(default)]
    pub extra_body: serde_json::Map<String, Value>,
    /// US dollars for a million tokens read, or nothing where the price is unknown. A cost that the
    /// provider states goes before these prices.
    #[serde(default)]
    pub price_input_usd_per_million: f64,
    /// US dollars for a million tokens read that the provider had cached. Default: as the others.
    #[serde(default)]
    pub price_cached_usd_per_million: Option<f64>,
    /// US dollars for a million tokens written.
    #[serde(default)]
    pub price_output_usd_per_million: f64,
    /// Longest time to connect, in milliseconds. Default 10 000.
    #[serde(default = "default_connect")]
    pub connect_ms_max: u64,
    /// Longest silence before or within an answer, in milliseconds. Default 120 000. A local server
    /// that reads a long prompt is silent for as long.
    #[serde(default = "default_idle")]
    pub idle_ms_max: u64,
    /// Longest time for a reply, its retries and their waits included, in milliseconds. Default 900 000.
    #[serde(default = "default_total")]
    pub total_ms_max: u64,
    /// Bytes of one answer, its framing included. Default 32 MiB. A token costs about 250 bytes of framing.
    #[serde(default = "default_response")]
    pub response_bytes_max: usize,
    /// Bytes of one line of an answer. Default 1 MiB.
    #[serde(default = "default_line")]
    pub line_bytes_max: usize,
    /// When to ask again.
    #[serde(default)]
    pub retry: RetryConfig,
}

/// How a provider calls the cap of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputTokensField {
    /// The old name, which most servers know.
    MaxTokens,
    /// The name that newer models of OpenAI insist on.
    MaxCompletionTokens,
}

/// What happens to the beginning that a reply must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefillMode {
    /// The system prompt asks for it, and it is put in front where the model left it out. Works
    /// everywhere; a watcher hears the reply at its end only, since only then this is known.
    #[default]
    Prompt,
    /// It is the last message, of the assistant, and the provider continues it and does not repeat it.
    Native,
    /// As `native`, for a provider that repeats it at the start of its answer, as llama-server does.
    Echoed,
    /// As `native`, with the two fields that vLLM wants for it.
    Continue,
}

/// How closely a picture is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// As the provider sees fit.
    Auto,
    /// At a glance.
    Low,
    /// In all its parts.
    High,
}

/// How a JSON schema is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// `json_schema` with `strict`. OpenAI wants `additionalProperties: false` and every property required.
    #[default]
    Strict,
    /// `json_schema` without `strict`.
    Loose,
    /// In the system prompt, with `json_object`, for providers that know no schema.
    Prompt,
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
}
fn default_context() -> u32 {
    128_000
}
fn default_connect() -> u64 {
    10_000
}
fn default_idle() -> u64 {
    120_000
}
fn default_total() -> u64 {
    900_000
}
fn default_response() -> usize {
    32 << 20
}
fn default_line() -> usize {
    1 << 20
}

/// A model behind such an endpoint.
pub struct OpenAi {
    name: String,
    config: OpenAiConfig,
    endpoint: Endpoint,
    prices: Prices,
}

impl OpenAi {
    /// Prepares the model `name`; nothing is sent yet. `variable` looks into the environment.
    ///
    /// # Errors
    /// [`ModelsError`] about the key, the address or another setting.
    pub fn new(
        name: &str,
        config: OpenAiConfig,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelsError> {
        request::check_settings(name, &config)?;
        let reach = Reach {
            model: name,
            base_url: &config.base_url,
            key: key(name, &config, variable)?,
            allow_plain_http: config.allow_plain_http,
            connect: Duration::from_millis(config.connect_ms_max),
            idle: Duration::from_millis(config.idle_ms_max),
        };
        let endpoint = Endpoint::new(reach)?;
        let prices = Prices::of(name, &config)?;
        Ok(Self { name: name.to_owned(), config, endpoint, prices })
    }

    /// One request, answered or not.
    async fn attempt(&self, body: &Value, asked: &Asked<'_>, heard: Heard<'_>) -> Result<ModelReply, Failure> {
        let post = self.endpoint.client.post(self.endpoint.url("chat/completions"));
        let sending = post.headers(self.endpoint.headers()).json(body).send();
        let mut response = match timeout(self.endpoint.idle, sending).await {
            Err(_) => return Err(self.passing(&http::silence(self.endpoint.idle))),
            // Whatever the client reports here, no answer came: it could not connect or was cut off.
            Ok(Err(error)) => return Err(self.passing(&http::shown(error))),
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(self.refusal(&mut response, asked.request).await);
        }
        let mut assembly = Assembly::new(self.endpoint.key.as_ref());
        if is_json(response.headers()) {
            self.read_whole(&mut response, &mut assembly, asked, heard).await?;
        } else {
            self.read_stream(&mut response, &mut assembly, asked, heard).await?;
        }
        self.finish(assembly, response.headers(), asked, heard)
    }

    /// The endpoint answers in one piece, although it was asked for a stream.
    async fn read_whole(
        &self,
        response: &mut Response,
        assembly: &mut Assembly,
        asked: &Asked<'_>,
        heard: Heard<'_>,
    ) -> Result<(), Failure> {
        let bytes_max = self.config.response_bytes_max;
        let (body, whole) =
            http::read_body(response, bytes_max, self.endpoint.idle).await.map_err(|why| self.passing(&why))?;
        if !whole {
            return Err(limit("response_bytes_max", bytes_max));
        }
        let body = String::from_utf8(body).map_err(|_| self.unreadable("it is not UTF-8"))?;
        let piece = self.take(assembly, &body)?;
        asked.hear(&piece, heard);
        Ok(())
    }

    async fn read_stream(
        &self,
        response: &mut Response,
        assembly: &mut Assembly,
        asked: &Asked<'_>,
        heard: Heard<'_>,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::new(self.config.line_bytes_max, self.config.response_bytes_max);
        loop {
            let chunk = match timeout(self.endpoint.idle, response.chunk()).await {
                Err(_) => return Err(self.passing(&http::silence(self.endpoint.idle))),
                Ok(Err(error)) => return Err(self.passing(&http::shown(error))),
                Ok(Ok(chunk)) => chunk,
            };
            let ended = chunk.is_none();
            let events = match chunk {
                Some(chunk) => decoder.push(&chunk),
                None => decoder.finish().map(Vec::from_iter),
            };
            for event in events.map_err(|fault| self.fault(&fault))? {
                if event.trim() == "[DONE]" {
                    assembly.done = true;
                    return Ok(());
                }
                if event.trim().is_empty() {
                    continue;
                }
                // The connection ended within an event: that is no answer, and not one of the model's either.
                if ended && serde_json::from_str::<serde::de::IgnoredAny>(&event).is_err() {
                    return Err(self.passing("the answer broke off before its end"));
                }
                let piece = self.take(assembly, &event)?;
                asked.hear(&piece, heard);
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// One object of the answer; gives the text in it that is certain.
    fn take(&self, assembly: &mut Assembly, event: &str) -> Result<String, Failure> {
        match assembly.take(event) {
            Ok(piece) => Ok(piece),
            Err(reply::Wrong::Unreadable(why)) => Err(self.unreadable(&why)),
            Err(reply::Wrong::Error { status, message }) => Err(self.error_inside(status, &message)),
            Err(reply::Wrong::TooManyCalls(max)) => Err(limit("tool_calls_max", max)),
        }
    }

    fn finish(
        &self,
        mut assembly: Assembly,
        headers: &HeaderMap,
        asked: &Asked<'_>,
        heard: Heard<'_>,
    ) -> Result<ModelReply, Failure> {
        if !assembly.is_whole() {
            return Err(self.passing("the answer broke off before its end"));
        }
        let rest = assembly.finish_text();
        if let Some(refusal) = assembly.refusal() {
            return Err(Failure::Final(ModelError::Refused(self.endpoint.excerpt(&refusal))));
        }
        let reply = assembly.into_reply(asked.request, self.config.prefill, &asked.names, &self.prices, headers);
        if asked.heard_at_end {
            heard(&reply.text);
        }
        asked.hear(&rest, heard);
        Ok(reply)
    }

    /// What an answer other than 2xx means.
    async fn refusal(&self, response: &mut Response, request: &ModelRequest) -> Failure {
        let status = response.status();
        let after = http::retry_after(response.headers(), SystemTime::now());
        // The status says enough when the body does not come.
        let body = http::read_body(response, ERROR_BODY_BYTES_MAX, self.endpoint.idle).await.unwrap_or_default().0;
        let body = String::from_utf8_lossy(&body);
        let problem = reply::problem(&body);
        let text =
            format!("{} answered HTTP {}: {}", self.who(), status.as_u16(), self.endpoint.excerpt(&problem.message));
        let is = |codes: &[&str]| problem.codes.iter().any(|code| codes.contains(&code.as_str()));
        if is(&["content_filter", "content_policy_violation"]) {
            return Failure::Final(ModelError::Refused(text));
        }
        if status == StatusCode::PAYMENT_REQUIRED || is(&["insufficient_quota"]) {
            return denied(text, "add credit at the provider, or choose another model".to_owned());
        }
        if problem.is_context_full() {
            return Failure::Final(ModelError::ContextFull(self.overflow(&problem, request)));
        }
        match status.as_u16() {
            401 | 403 => denied(text, self.key_fix()),
            408 | 425 | 429 | 500..=599 => Failure::Passing { reason: text, after },
            300..=399 => failed(format!("{text}; redirects are not followed: set base_url to the final address")),
            404 => invalid(format!("{text}; check `base_url` and `id` of [models.{}]", self.name)),
            _ => invalid(text),
        }
    }

    /// The endpoint's own numbers where it tells them; ours are an estimate and a setting.
    fn overflow(&self, problem: &reply::Problem, request: &ModelRequest) -> LimitHit {
        let max = problem.window_tokens.unwrap_or(u64::from(self.config.context_tokens_max));
        let used = problem.asked_tokens.unwrap_or_else(|| asked_tokens(request));
        LimitHit::new("context_tokens_max", used.max(max.saturating_add(1)), max)
    }

    /// An error object where a piece of the answer should be.
    fn error_inside(&self, status: Option<u16>, message: &str) -> Failure {
        let text = format!("{} ended its answer with an error: {}", self.who(), self.endpoint.excerpt(message));
        match status {
            Some(400..=407 | 409..=424 | 426..=428 | 430..=499) => failed(text),
            _ => Failure::passing(text),
        }
    }

    fn fault(&self, fault: &Fault) -> Failure {
        match fault {
            Fault::Line(max) => limit("line_bytes_max", *max),
            Fault::Whole(max) => limit("response_bytes_max", *max),
            Fault::Text => self.unreadable("it is not UTF-8"),
        }
    }

    fn passing(&self, why: &str) -> Failure {
        Failure::passing(format!("{}: {}", self.who(), self.endpoint.excerpt(why)))
    }

    fn unreadable(&self, why: &str) -> Failure {
        failed(format!("the answer of {} cannot be read: {}", self.who(), self.endpoint.excerpt(why)))
    }

    fn who(&self) -> String {
        format!("model `{}` at `{}`", self.name, self.endpoint.host())
    }

    fn key_fix(&self) -> String {
        match (&self.config.api_key_env, &self.config.api_key_file) {
            (Some(variable), _) => {
                format!("put a valid key into the environment variable `{variable}`")
            }
            (None, Some(path)) => format!("put a valid key into the file `{}`", path.display()),
            (None, None) => {
                format!("add to longhaul.toml: [models.{}] api_key_env = \"NAME_OF_A_VARIABLE\"", self.name)
            }
        }
    }
}

/// What all requests for one reply share.
struct Asked<'a> {
    request: &'a ModelRequest,
    names: Names,
    heard_at_end: bool,
}

impl Asked<'_> {
    fn hear(&self, piece: &str, heard: Heard<'_>) {
        if !self.heard_at_end && !piece.is_empty() {
            heard(piece);
        }
    }
}

#[async_trait::async_trait]
impl Model for OpenAi {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: format!("openai/{}", self.config.id), context_tokens_max: self.config.context_tokens_max }
    }

    /// A watcher hears a broken attempt and then, after a line that says so, the next one.
    async fn complete(&self, request: &ModelRequest, heard: Heard<'_>) -> Result<ModelReply, ModelError> {
        let body = request::body(&self.config, &self.endpoint, request)?;
        let heard_at_end = request.prefill.is_some() && self.config.prefill == PrefillMode::Prompt;
        let asked = Asked { request, names: Names::of(&request.tools), heard_at_end };
        let total = Duration::from_millis(self.config.total_ms_max);
        let mut retries = Retries::new(self.config.retry.clone(), total);
        let mut spoke = false;
        loop {
            let mut hear = |piece: &str| {
                spoke |= !piece.is_empty();
                heard(piece);
            };
            if let (Some(prefill), PrefillMode::Native | PrefillMode::Continue) =
                (&request.prefill, self.config.prefill)
            {
                hear(prefill);
            }
            let failure = match timeout_at(retries.deadline(), self.attempt(&body, &asked, &mut hear)).await {
                Err(_) => return Err(retries.timed_out(total)),
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(failure)) => failure,
            };
            retries.wait(failure).await?;
            if std::mem::take(&mut spoke) {
                heard("\n[the answer broke off; asked again]\n");
            }
        }
    }
}

fn key(
    name: &str,
    config: &OpenAiConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Secret>, ModelsError> {
    match (&config.api_key_env, &config.api_key_file) {
        (None, None) => Ok(None),
        (None, Some(path)) => Secret::from_file(name, path).map(Some),
        (Some(env), None) => match variable(env) {
            Some(value) => Secret::new(name, &value).map(Some),
            None => Err(ModelsError::KeyMissing { model: name.to_owned(), variable: env.clone() }),
        },
        (Some(_), Some(path)) => Err(ModelsError::Setting {
            model: name.to_owned(),
            field: "api_key_file",
            value: path.display().to_string(),
            remedy: "`api_key_env` is set too; keep one of them".to_owned(),
        }),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

/// Roughly what the request is long.
fn asked_tokens(request: &ModelRequest) -> u64 {
    request.messages.iter().map(Message::tokens_estimated).sum::<u64>() + request.system.chars().count() as u64 / 4
}

fn limit(name: &str, max: usize) -> Failure {
    Failure::Final(ModelError::Limit(LimitHit::new(name, max as u64 + 1, max as u64)))
}

fn denied(reason: String, fix: String) -> Failure {
    Failure::Final(ModelError::Denied(Denial { reason, fix }))
}

fn failed(text: String) -> Failure {
    Failure::Final(ModelError::Failed(text))
}

fn invalid(text: String) -> Failure {
    Failure::Final(ModelError::Invalid(text))
}

#[cfg(test)]
mod tests;
