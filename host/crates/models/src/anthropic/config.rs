//! The table of a model with `provider = "anthropic"`, its defaults, and its connection.
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
const WINDOW_TOKENS_DEFAULT: u32 = 200_000;

/// The provider's prices of tokens that are read from its cache and written to it, as a share of the price of others.
const CACHED_SHARE: f64 = 0.1;
const WRITTEN_SHARE: f64 = 1.25;

/// A table `[models.NAME]` with `provider = "anthropic"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// The provider's own name of the model, for example `claude-sonnet-4-5`.
    pub id: String,
    /// Its address, up to and with `/v1`. Default `https://api.anthropic.com/v1`.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// The environment variable that holds the key. Default: none.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// A file of mode 0600 that holds the key, instead of a variable. Default: none.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Sends the key as `Authorization: Bearer`, as gateways need it, instead of `x-api-key`. Default false.
    #[serde(default)]
    pub bearer: bool,
    /// Sends the key over plain HTTP to another machine. Default false. Loopback needs no permission.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// The version of the protocol. Default `2023-06-01`.
    #[serde(default = "default_version")]
    pub version: String,
    /// Feature names for the header `anthropic-beta`. Default: none.
    #[serde(default)]
    pub beta: Vec<String>,
    /// The window, in tokens. Default: that of the table in the program, or the endpoint's own, or 200 000. A smaller
    /// one that the provider names when it refuses a request as too long has precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens_max: Option<u32>,
    /// The sampling temperature, 0 to 1, for requests without one. Default: not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Tokens for the model's thoughts before it replies, 1 024 or more. They are added to those of the reply, and no
    /// temperature is sent with them. Default: thinking is not requested. Models with adaptive thinking use `extra_body
    /// = { thinking = { type = "adaptive" } }`.
    #[serde(default)]
    pub thinking_tokens_max: Option<u32>,
    /// Marks the system prompt and the newest message for the provider's prompt cache, so that the next turn reads the
    /// earlier part at the price of cached tokens. Default true.
    #[serde(default = "default_true")]
    pub prompt_cache: bool,
    /// The handling of the required beginning of a reply: `prompt` or `native`. Default `prompt`; newer models refuse
    /// `native`.
    #[serde(default)]
    pub prefill: PrefillMode,
    /// The form of a JSON schema. Default `prompt`.
    #[serde(default)]
    pub schema: AnthropicSchema,
    /// Fields that the provider does not accept and that are never sent, for example `["temperature"]`. Default: none.
    /// `stop` is applied to the reply all the same.
    #[serde(default)]
    pub omit: Vec<String>,
    /// Additional fields, for example `{ output_config = { effort = "low" } }`. Default: none.
    #[serde(default)]
    pub extra_body: serde_json::Map<String, Value>,
    /// US dollars for a million input tokens; 0 if they are free. Default: that of the table in the program, or
    /// unknown. A cost that a gateway states has precedence over these prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_input_usd_per_million: Option<f64>,
    /// US dollars for a million tokens read from the provider's cache. Default: a tenth of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_cached_usd_per_million: Option<f64>,
    /// US dollars for a million tokens written to the provider's cache. Default: 1.25 times the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_cache_written_usd_per_million: Option<f64>,
    /// US dollars for a million output tokens, thoughts included. Default: that of the table, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_output_usd_per_million: Option<f64>,
    /// Longest time to connect, in milliseconds. Default 10 000.
    #[serde(default = "default_connect")]
    pub connect_ms_max: u64,
    /// Longest silence before or within an answer, in milliseconds. Default 120 000.
    #[serde(default = "default_idle")]
    pub idle_ms_max: u64,
    /// Longest time for a reply, its retries and their waits included, in milliseconds. Default 900 000.
    #[serde(default = "default_total")]
    pub total_ms_max: u64,
    /// Bytes of one answer, its framing included. Default 32 MiB.
    #[serde(default = "default_response")]
    pub response_bytes_max: usize,
    /// Bytes of one line of an answer. Default 1 MiB.
    #[serde(default = "default_line")]
    pub line_bytes_max: usize,
    /// The limits of retries.
    #[serde(default)]
    pub retry: RetryConfig,
}

/// The form of a JSON schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnthropicSchema {
    /// In the system prompt. Works everywhere.
    #[default]
    Prompt,
    /// As `output_config.format`, which newer models enforce, in the provider's form. A schema that cannot be expressed
    /// goes into the system prompt.
    Native,
}

impl AnthropicConfig {
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
        let entry = table::find_at(&self.base_url, &self.id, CACHED_SHARE, WRITTEN_SHARE);
        let settings = PriceSettings {
            input: self.price_input_usd_per_million,
            cached: self.price_cached_usd_per_million,
            written: self.price_cache_written_usd_per_million,
            output: self.price_output_usd_per_million,
        };
        let prices = entry.map_or(Prices::Unknown, |entry| entry.prices);
        let prices = settings.over(name, prices, CACHED_SHARE, WRITTEN_SHARE)?;
        let window_tokens = entry.and_then(|entry| entry.window_tokens);
        Ok(KnownModel { prices, window_tokens, window_tokens_default: WINDOW_TOKENS_DEFAULT })
    }

    /// True when its price is known.
    pub(crate) fn has_prices(&self, name: &str) -> bool {
        self.known(name).is_ok_and(|known| known.prices.is_known())
    }
}

fn default_base_url() -> String {
    "https://api.anthropic.com/v1".to_owned()
}
fn default_version() -> String {
    "2023-06-01".to_owned()
}
fn default_true() -> bool {
    true
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
