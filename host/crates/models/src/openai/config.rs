//! The table of a model with `provider = "openai"`, its defaults, and its connection.
//!
//! `request.rs` refuses settings that would break the request.

use crate::ModelsError;
use crate::http_exchange::{Connection, KnownModel};
use crate::prefill::PrefillMode;
use crate::prices::{PriceSettings, Prices, table};
use crate::retry::RetryConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The window if nothing sets it, in tokens.
const WINDOW_TOKENS_DEFAULT: u32 = 128_000;

/// A table `[models.NAME]` with `provider = "openai"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The provider's own name of the model, for example `gpt-5-mini`.
    pub id: String,
    /// Its address, up to and with `/v1`. Default `https://api.openai.com/v1`.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// The environment variable that holds the key. Default: none, for servers without keys.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// A file of mode 0600 that holds the key, instead of a variable. Default: none.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Sends the key over plain HTTP to another machine. Default false. Loopback needs no permission.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// The window, in tokens. Default: that of the table in the program, or the endpoint's own, or 128 000. A smaller
    /// one that the provider names when it refuses a request as too long has precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens_max: Option<u32>,
    /// The sampling temperature, 0 to 2, for requests without one. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The provider's field for the cap of a reply. Default: `max_completion_tokens` at api.openai.com, `max_tokens`
    /// elsewhere.
    #[serde(default)]
    pub output_tokens_field: Option<OutputTokensField>,
    /// The handling of the required beginning of a reply. Default `prompt`.
    #[serde(default)]
    pub prefill: PrefillMode,
    /// The form of a JSON schema. Default `strict`.
    #[serde(default)]
    pub schema: SchemaMode,
    /// The detail of pictures, `auto`, `low` or `high`: `low` costs few tokens. Default: not sent, which the provider
    /// treats as `auto`.
    #[serde(default)]
    pub image_detail: Option<ImageDetail>,
    /// Fields that the provider does not accept and that are never sent, for example `["temperature", "seed",
    /// "stream_options"]`. Default: none. An omitted field no longer binds the provider; `stop` is applied to the reply
    /// all the same.
    #[serde(default)]
    pub omit: Vec<String>,
    /// Additional fields, for example `{ reasoning_effort = "low" }`. Default: none.
    #[serde(default)]
    pub extra_body: serde_json::Map<String, Value>,
    /// US dollars for a million input tokens; 0 if they are free. Default: that of the table in the program, or
    /// unknown. A cost that the provider states has precedence over these prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_input_usd_per_million: Option<f64>,
    /// US dollars for a million cached input tokens. Default: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_cached_usd_per_million: Option<f64>,
    /// US dollars for a million output tokens. Default: that of the table, or unknown.
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
    /// The limits of retries.
    #[serde(default)]
    pub retry: RetryConfig,
}

/// The provider's field for the cap of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputTokensField {
    /// The old name, which most servers know.
    MaxTokens,
    /// The name that newer models of OpenAI insist on.
    MaxCompletionTokens,
}

/// The detail of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// The provider decides.
    Auto,
    /// Low detail.
    Low,
    /// High detail.
    High,
}

/// The form of a JSON schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// `json_schema` with `strict`, in the provider's form: an optional field becomes nullable, and a value of any
    /// shape JSON in a text; the reply is converted back. A schema that cannot be expressed is sent without `strict`.
    #[default]
    Strict,
    /// `json_schema` without `strict`, as the plugin wrote it.
    Loose,
    /// In the system prompt, with `json_object`, for providers without schemas.
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

    /// Known facts about the model before it is asked.
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

    /// True when its price is known.
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
