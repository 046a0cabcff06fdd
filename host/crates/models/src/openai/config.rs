//! The table of a model with `provider = "openai"`, its defaults, and what follows from it for the connection.
//!
//! Settings that would undo the request are refused in `request.rs`.

use crate::ModelsError;
use crate::http_exchange::{Connection, KnownModel};
use crate::prefill::PrefillMode;
use crate::prices::{PriceSettings, Prices, table};
use crate::retry::RetryConfig;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// What is taken for the window where nobody says it, in tokens.
const WINDOW_TOKENS_DEFAULT: u32 = 128_000;

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
    /// The window, in tokens. Default: that of the table that comes with the program, or what the endpoint lists, or
    /// 128 000. One that the provider names when it refuses a request as too long goes before a larger one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens_max: Option<u32>,
    /// Where the most likely token is left for others, 0 to 2, for requests that name none. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
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
    /// US dollars for a million tokens read; 0 where they cost nothing. Default: that of the table that comes with the
    /// program, or unknown. A cost that the provider states goes before these prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_input_usd_per_million: Option<f64>,
    /// US dollars for a million tokens read that the provider had cached. Default: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_cached_usd_per_million: Option<f64>,
    /// US dollars for a million tokens written. Default: that of the table, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_output_usd_per_million: Option<f64>,
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
    /// `json_schema` with `strict`, in the form that the provider takes: an optional field becomes one that may be null,
    /// and a value of any shape JSON in a text; the reply is turned back. What cannot be said so is sent without `strict`.
    #[default]
    Strict,
    /// `json_schema` without `strict`, as the plugin wrote it.
    Loose,
    /// In the system prompt, with `json_object`, for providers that know no schema.
    Prompt,
}

impl OpenAiConfig {
    pub(super) fn connection<'a>(&'a self, name: &'a str, known: KnownModel) -> Connection<'a> {
        Connection {
            name,
            id: &self.id,
            base_url: &self.base_url,
            api_key_env: self.api_key_env.as_deref(),
            api_key_file: self.api_key_file.as_deref(),
            allow_plain_http: self.allow_plain_http,
            connect_ms_max: self.connect_ms_max,
            idle_ms_max: self.idle_ms_max,
            total_ms_max: self.total_ms_max,
            context_tokens_max: self.context_tokens_max,
            response_bytes_max: self.response_bytes_max,
            line_bytes_max: self.line_bytes_max,
            retry: &self.retry,
            known,
        }
    }

    /// What is known of the model before it is asked.
    pub(super) fn known(&self, name: &str) -> Result<KnownModel, ModelsError> {
        let (entry, settings) = (
            table::find_at(&self.base_url, &self.id, 1.0, 1.0),
            PriceSettings {
                input: self.price_input_usd_per_million,
                cached: self.price_cached_usd_per_million,
                written: None,
                output: self.price_output_usd_per_million,
            },
        );
        let prices = settings.over(name, entry.map_or(Prices::Unknown, |entry| entry.prices), 1.0, 1.0)?;
        let window_tokens = entry.and_then(|entry| entry.window_tokens);
        Ok(KnownModel { prices, window_tokens, window_tokens_default: WINDOW_TOKENS_DEFAULT })
    }

    /// Whether what it costs is known.
    pub(crate) fn has_prices(&self, name: &str) -> bool {
        self.known(name).is_ok_and(|known| known.prices.is_known())
    }
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
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
