//! A table `[models.NAME]` of `longhaul.toml`, and the model that it describes.
//!
//! A misspelt field is an error. Faults that can be known are found here, before a run starts and long before its model
//! is asked: a missing key, a key that others can read, an address that would expose it.

use crate::anthropic::{Anthropic, AnthropicConfig};
use crate::cache::{Cached, ReplyCache};
use crate::local::{Local, LocalConfig};
use crate::openai::{OpenAi, OpenAiConfig};
use crate::queue::{Queued, Queues, Rates};
use crate::recorded::{Recorded, Recording};
use crate::route::{FallsThrough, RouteBy, RouteConfig, RouteMember, Routed};
use crate::{Adaptations, ApiKey, ModelsError, pull};
use longhaul_core::Digest;
use longhaul_core::model::Model;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One model.
///
/// ```toml
/// [models.gpt]
/// provider = "openai"
/// id = "gpt-5-mini"
/// api_key_env = "OPENAI_API_KEY"
///
/// [models.small]
/// provider = "local"
///
/// [models.again]
/// provider = "recorded"
/// file = "tests/run.jsonl"
///
/// [models.claude]
/// provider = "anthropic"
/// id = "claude-sonnet-4-5"
/// api_key_env = "ANTHROPIC_API_KEY"
/// fallback = ["gpt"]
/// requests_at_once_max = 4
///
/// [models.cheap]
/// provider = "route"
/// models = ["gpt", "claude"]
/// by = "cost"
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = closed)]
pub struct ModelConfig {
    /// Models that are asked, one after the other, when this one fails. Default: none. Their own fallbacks are not
    /// used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The failures after which the next one is asked: `unavailable`, `denied`, `failed`, `context-full`. Default: all
    /// of them. After a refusal, an invalid request or a cap, none is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_on: Option<Vec<FallsThrough>>,
    /// The time for which an unavailable or denied model is not asked while another one is available, in milliseconds.
    /// Default 60 000. If the provider names a longer time, that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_rest_ms: Option<u64>,
    /// Requests in flight at once, in all runs of this process. Default: no limit. Waiting requests are served in
    /// turns, run by run; the wait counts as the agent's wall time, and not as the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_at_once_max: Option<u32>,
    /// Requests that begin within a minute. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute_max: Option<u32>,
    /// Tokens, input and output, within a minute. Default: no limit. A request's input is estimated when it begins, and
    /// corrected by the provider's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute_max: Option<u32>,
    /// Keeps replies on disk, and gives them to equal requests. Default false. Not for
    /// requests with a temperature above 0 and without a seed; under the same key, endpoint and settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache: bool,
    /// Bytes of cached replies of this model. Default 256 MiB. The least recently used one is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes_max: Option<u64>,
    /// The provider.
    #[serde(flatten)]
    pub provider: Provider,
}

/// Gives the table of each provider in a schema the keys that all models have, and refuses any others: `flatten`
/// cannot.
fn closed(schema: &mut Schema) {
    let Some(Value::Object(common)) = schema.remove("properties") else { return };
    let tables = schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
    for table in tables.filter_map(Value::as_object_mut) {
        if let Some(keys) = table.get_mut("properties").and_then(Value::as_object_mut) {
            keys.extend(common.clone());
        }
        table.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// The provider of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "provider", rename_all = "kebab-case")]
pub enum Provider {
    /// An endpoint that speaks OpenAI's protocol.
    #[serde(rename = "openai")]
    OpenAi(Box<OpenAiConfig>),
    /// An endpoint that speaks Anthropic's protocol.
    Anthropic(Box<AnthropicConfig>),
    /// A small model in a child process.
    Local(LocalConfig),
    /// Replies from a file.
    Recorded(RecordedConfig),
    /// Other models, by their names.
    Route(RouteConfig),
}

/// A table `[models.NAME]` with `provider = "recorded"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedConfig {
    /// The recording.
    pub file: PathBuf,
    /// The window, in tokens, of the recorded model. Default 128 000. Compaction depends on it, and with it the
    /// requests.
    #[serde(default = "default_context")]
    pub context_tokens_max: u32,
}

fn default_context() -> u32 {
    128_000
}

/// A model's environment; the caller sets it, so that tests need no real one.
pub struct ModelEnvironment<'a> {
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Paths in the configuration are relative to this directory.
    pub base: &'a Path,
    /// The directory of pulled models, and of cached replies.
    pub cache: &'a Path,
    /// The program that serves a local model, and its first arguments, for example
    /// `["/usr/bin/longhaul", "model-child"]`.
    pub child_command: Vec<OsString>,
    /// The queues of waiting requests.
    pub queues: &'a Queues,
    /// The adaptations to providers.
    pub adaptations: &'a Adaptations,
}

/// The time for which a failed model is not asked, by default.
const REST_MS: u64 = 60_000;

/// Bytes of cached replies, by default.
const CACHE_BYTES_MAX: u64 = 256 << 20;

/// Makes the models `wanted`, and those that they need, from the tables `configs`. Nothing is sent and no process is
/// started.
///
/// # Errors
/// [`ModelsError`] about a setting, a key or a file.
pub fn build(
    configs: &BTreeMap<String, ModelConfig>,
    wanted: impl IntoIterator<Item = String>,
    surroundings: &ModelEnvironment<'_>,
) -> Result<HashMap<String, Arc<dyn Model>>, ModelsError> {
    let wanted: BTreeSet<String> = wanted.into_iter().filter(|name| configs.contains_key(name)).collect();
    let mut plain = HashMap::new();
    for name in &wanted {
        let config = &configs[name];
        check_names(configs, name, config)?;
        for name in needed(name, config) {
            if !plain.contains_key(&name) {
                plain.insert(name.clone(), configs[&name].build(&name, surroundings)?);
            }
        }
    }
    let models = wanted.into_iter().map(|name| {
        let model = behind(configs, &name, &plain)?;
        Ok((name, model))
    });
    models.collect()
}

/// The tables of all models that are asked for the models `wanted`.
pub fn asked(configs: &BTreeMap<String, ModelConfig>, wanted: &[String]) -> BTreeSet<String> {
    let behind = |name: &String| configs.get(name).map(|config| needed(name, config)).unwrap_or_default();
    wanted.iter().flat_map(behind).collect()
}

/// The keys of models that are readable now, for redaction. Paths are relative to `base`.
pub fn keys(
    configs: &BTreeMap<String, ModelConfig>,
    base: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<ApiKey> {
    configs.iter().filter_map(|(name, config)| config.provider.key(name, base, variable).ok()?).collect()
}

/// The models behind the models `wanted` whose price is unknown: a cap on money cannot be enforced with them.
pub fn without_prices(configs: &BTreeMap<String, ModelConfig>, wanted: &[String]) -> Vec<String> {
    let has_prices = |name: &String| match configs.get(name).map(|config| &config.provider) {
        Some(Provider::OpenAi(config)) => config.has_prices(name),
        Some(Provider::Anthropic(config)) => config.has_prices(name),
        Some(Provider::Local(_) | Provider::Recorded(_) | Provider::Route(_)) | None => true,
    };
    asked(configs, wanted).into_iter().filter(|name| !has_prices(name)).collect()
}

/// The plain models behind a name, in order.
fn needed(name: &str, config: &ModelConfig) -> Vec<String> {
    let own: Vec<String> = match &config.provider {
        Provider::Route(route) => route.models.clone(),
        _ => vec![name.to_owned()],
    };
    own.into_iter().chain(config.fallback.iter().cloned()).collect()
}

/// Every name on a list is that of a table, and of a plain model.
fn check_names(configs: &BTreeMap<String, ModelConfig>, model: &str, config: &ModelConfig) -> Result<(), ModelsError> {
    let wrong = |field, value: &str, remedy: &str| {
        let (model, value, remedy) = (model.to_owned(), value.to_owned(), remedy.to_owned());
        Err(ModelsError::Setting { model, field, value, remedy })
    };
    let route = if let Provider::Route(route) = &config.provider { route.models.as_slice() } else { &[] };
    if matches!(config.provider, Provider::Route(_)) && route.is_empty() {
        return wrong("models", "[]", "name at least one model");
    }
    let fallback = config.fallback.as_slice();
    for (field, names) in [("models", route), ("fallback", fallback)] {
        for (at, name) in names.iter().enumerate() {
            let is_route = |config: &ModelConfig| matches!(config.provider, Provider::Route(_));
            match configs.get(name) {
                None => return wrong(field, name, "there is no such model; add its table, or remove the name"),
                Some(other) if is_route(other) => return wrong(field, name, "it is a route itself; name its models"),
                Some(_) if name == model || names[..at].contains(name) => {
                    return wrong(field, name, "it is asked already; remove the name");
                }
                Some(_) => {}
            }
        }
    }
    if let Some(name) = fallback.iter().find(|name| route.contains(name)) {
        return wrong("fallback", name, "it is asked already; remove the name");
    }
    Ok(())
}

/// The model of a name: the plain one, or several that are asked in turn.
fn behind(
    configs: &BTreeMap<String, ModelConfig>,
    name: &str,
    plain: &HashMap<String, Arc<dyn Model>>,
) -> Result<Arc<dyn Model>, ModelsError> {
    let config = &configs[name];
    let names = needed(name, config);
    let by = if let Provider::Route(route) = &config.provider { route.by } else { RouteBy::Order };
    let is_route = matches!(config.provider, Provider::Route(_));
    if !is_route && config.fallback.is_empty() {
        return Ok(Arc::clone(&plain[name]));
    }
    let mut members = Vec::new();
    for name in names {
        members.push(RouteMember { model: Arc::clone(&plain[&name]), name });
    }
    let windows = members.iter().map(|member| member.model.info().context_tokens_max);
    // Any model of a route that holds the conversation will do; a fallback replaces the chosen one.
    let window = if is_route { windows.max() } else { windows.into_iter().next() }.unwrap_or(0);
    let falls_on = config.fallback_on.clone().unwrap_or_else(|| FallsThrough::ALL.to_vec());
    let rest = Duration::from_millis(config.fallback_rest_ms.unwrap_or(REST_MS));
    Ok(Arc::new(Routed::new(members, by, window, falls_on, rest)))
}

impl ModelConfig {
    /// Makes the model with the plugins' name `name`, without its fallbacks.
    fn build(&self, name: &str, surroundings: &ModelEnvironment<'_>) -> Result<Arc<dyn Model>, ModelsError> {
        self.check_rates(name)?;
        let mut model = self.provider.build(name, surroundings)?;
        let rates = self.rates();
        if !rates.is_unlimited() {
            model = Arc::new(Queued::new(model, surroundings.queues.of(self.identity(name, surroundings)?, rates)));
        }
        if self.cache {
            let bytes_max = self.cache_bytes_max.unwrap_or(CACHE_BYTES_MAX);
            let directory = surroundings.cache.join("replies");
            let cache = ReplyCache::new(&directory, self.identity(name, surroundings)?, bytes_max);
            model = Arc::new(Cached::new(model, name, cache));
        }
        Ok(model)
    }

    fn rates(&self) -> Rates {
        Rates {
            requests_at_once_max: self.requests_at_once_max,
            requests_per_minute_max: self.requests_per_minute_max,
            tokens_per_minute_max: self.tokens_per_minute_max,
        }
    }

    fn check_rates(&self, model: &str) -> Result<(), ModelsError> {
        let wrong = |field, value: &str, remedy: &str| {
            let (model, value, remedy) = (model.to_owned(), value.to_owned(), remedy.to_owned());
            Err(ModelsError::Setting { model, field, value, remedy })
        };
        let rates = [
            ("requests_at_once_max", self.requests_at_once_max),
            ("requests_per_minute_max", self.requests_per_minute_max),
            ("tokens_per_minute_max", self.tokens_per_minute_max),
        ];
        if let Some((field, _)) = rates.iter().find(|(_, rate)| *rate == Some(0)) {
            return wrong(field, "0", "no request would ever be made; give 1 or more, or remove it");
        }
        if self.cache && matches!(self.provider, Provider::Recorded(_)) {
            return wrong("cache", "true", "a recording is one already; remove the line");
        }
        Ok(())
    }

    /// The identity of this model: its provider's whole table, and the key itself.
    fn identity(&self, name: &str, surroundings: &ModelEnvironment<'_>) -> Result<Digest, ModelsError> {
        let table = serde_json::to_vec(&self.provider).unwrap_or_default();
        let key = self.provider.key(name, surroundings.base, surroundings.variable)?;
        let base = surroundings.base.as_os_str().as_encoded_bytes();
        Ok(match &self.provider {
            // A replaced file is another model.
            Provider::Local(config) => {
                let file = local_file(config, surroundings)?;
                let facts = std::fs::metadata(&file).ok();
                let changed = facts.map(|facts| format!("{} {:?}", facts.len(), facts.modified().ok()));
                let changed = changed.unwrap_or_default();
                Digest::of_parts(&[&table, file.as_os_str().as_encoded_bytes(), changed.as_bytes()])
            }
            Provider::Recorded(_) => Digest::of_parts(&[&table, base]),
            _ => Digest::of_parts(&[&table, key.as_ref().map_or("", ApiKey::expose).as_bytes()]),
        })
    }
}

impl Provider {
    fn build(&self, name: &str, surroundings: &ModelEnvironment<'_>) -> Result<Arc<dyn Model>, ModelsError> {
        let below = |path: &Option<PathBuf>| path.as_ref().map(|path| surroundings.base.join(path));
        Ok(match self {
            Self::OpenAi(config) => {
                let mut config = config.as_ref().clone();
                config.api_key_file = below(&config.api_key_file);
                Arc::new(OpenAi::new(name, config, surroundings.variable)?.adapting(surroundings.adaptations))
            }
            Self::Anthropic(config) => {
                let mut config = config.as_ref().clone();
                config.api_key_file = below(&config.api_key_file);
                Arc::new(Anthropic::new(name, config, surroundings.variable)?.adapting(surroundings.adaptations))
            }
            Self::Local(config) => {
                let file = local_file(config, surroundings)?;
                Arc::new(Local::new(name, config.clone(), surroundings.child_command.clone(), &file))
            }
            Self::Recorded(config) => {
                let recording = Recording::read(&surroundings.base.join(&config.file))?;
                Arc::new(Recorded::new(Arc::new(recording), config.context_tokens_max))
            }
            Self::Route(_) => {
                let remedy = "it is a route itself; name its models".to_owned();
                let (model, field) = (name.to_owned(), "provider");
                return Err(ModelsError::Setting { model, field, value: "route".to_owned(), remedy });
            }
        })
    }

    fn key(
        &self,
        name: &str,
        base: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<ApiKey>, ModelsError> {
        let (env, file) = match self {
            Self::OpenAi(config) => (&config.api_key_env, &config.api_key_file),
            Self::Anthropic(config) => (&config.api_key_env, &config.api_key_file),
            Self::Local(_) | Self::Recorded(_) | Self::Route(_) => return Ok(None),
        };
        let file = file.as_ref().map(|path| base.join(path));
        ApiKey::find(name, env.as_deref(), file.as_deref(), variable)
    }
}

/// The name of a model that can be pulled stands for the file it was pulled to.
fn local_file(config: &LocalConfig, surroundings: &ModelEnvironment<'_>) -> Result<PathBuf, ModelsError> {
    let pulled = config.file.to_str().and_then(|name| pull::path_of(name, surroundings.cache));
    let path = pulled.unwrap_or_else(|| surroundings.base.join(&config.file));
    if path.is_file() { Ok(path) } else { Err(ModelsError::ModelFileMissing { path, pull: pull::DEFAULT.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Arc<dyn Model>, String> {
        check_all(&[("m", text)])
    }

    /// The model of the first table.
    fn check_all(tables: &[(&str, &str)]) -> Result<Arc<dyn Model>, String> {
        let mut configs = BTreeMap::new();
        for (name, text) in tables {
            let config: ModelConfig = toml::from_str(text).map_err(|error| error.to_string())?;
            configs.insert((*name).to_owned(), config);
        }
        let variable = |name: &str| (name == "THE_KEY").then(|| "sk-abcdefghijklmnop".to_owned());
        let surroundings = ModelEnvironment {
            variable: &variable,
            base: Path::new("/nowhere"),
            cache: Path::new("/nowhere/cache"),
            child_command: vec!["true".into()],
            queues: &Queues::default(),
            adaptations: &Adaptations::default(),
        };
        let first = tables[0].0.to_owned();
        let mut models = build(&configs, [first.clone()], &surroundings).map_err(|error| error.to_string())?;
        Ok(models.remove(&first).unwrap())
    }

    #[test]
    fn a_table_becomes_a_model() {
        let model =
            check("provider = \"openai\"\nid = \"gpt-5-mini\"\napi_key_env = \"THE_KEY\"\ncontext_tokens_max = 9")
                .unwrap();
        assert_eq!((model.info().id.as_str(), model.info().context_tokens_max), ("openai/gpt-5-mini", 9));
    }

    #[test]
    fn every_setting_can_be_written() {
        let text = r#"
            provider = "openai"
            id = "qwen3"
            base_url = "http://gpu:8000/v1"
            api_key_env = "THE_KEY"
            allow_plain_http = true
            context_tokens_max = 32768
            output_tokens_field = "max_tokens"
            prefill = "continue"
            schema = "loose"
            omit = ["seed"]
            extra_body = { reasoning_effort = "low", top_p = 0.9 }
            price_input_usd_per_million = 0.25
            price_cached_usd_per_million = 0.025
            price_output_usd_per_million = 2.0
            fallback_on = ["unavailable", "context-full"]
            fallback_rest_ms = 1000
            requests_at_once_max = 2
            requests_per_minute_max = 60
            tokens_per_minute_max = 10000
            cache = true
            cache_bytes_max = 1000000
            connect_ms_max = 1000
            idle_ms_max = 1000
            total_ms_max = 1000
            response_bytes_max = 1000
            line_bytes_max = 1000
            [retry]
            retries_max = 2
            backoff_ms_first = 1
            backoff_ms_max = 2
            retry_after_ms_max = 3
        "#;
        check(text).unwrap();
    }

    #[test]
    fn a_route_has_the_largest_window_of_its_models_and_a_fallback_that_of_the_first() {
        let small = "provider = \"openai\"\nid = \"small\"\ncontext_tokens_max = 10";
        let large = "provider = \"anthropic\"\nid = \"large\"\ncontext_tokens_max = 99";
        let route = "provider = \"route\"\nmodels = [\"s\", \"l\"]\nby = \"cost\"";
        let model = check_all(&[("m", route), ("s", small), ("l", large)]).unwrap();
        assert_eq!((model.info().id.as_str(), model.info().context_tokens_max), ("openai/small", 99));
        let model = check_all(&[("s", &format!("{small}\nfallback = [\"l\"]")), ("l", large)]).unwrap();
        assert_eq!(model.info().context_tokens_max, 10);
    }

    #[test]
    fn names_that_lead_nowhere_or_in_a_circle_are_refused() {
        let plain = "provider = \"openai\"\nid = \"x\"\n";
        let route = "provider = \"route\"\nmodels = [\"a\"]\n";
        for (first, expected) in [
            (format!("{plain}fallback = [\"gone\"]"), "`[models.m] fallback` is `gone`: there is no such model"),
            (format!("{plain}fallback = [\"m\"]"), "it is asked already"),
            (format!("{plain}fallback = [\"a\", \"a\"]"), "it is asked already"),
            (format!("{plain}fallback = [\"r\"]"), "it is a route itself"),
            (format!("{route}fallback = [\"a\"]"), "it is asked already"),
            ("provider = \"route\"\nmodels = []".to_owned(), "name at least one model"),
            (format!("{plain}requests_at_once_max = 0"), "no request would ever be made"),
            (format!("{plain}fallback_on = [\"refused\"]"), "unknown variant `refused`"),
        ] {
            let tables = [("m", first.as_str()), ("a", plain), ("r", route)];
            let error = check_all(&tables).err().unwrap_or_else(|| panic!("accepted: {first}"));
            assert!(error.contains(expected), "{first}\n{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_found_before_a_run_and_says_what_helps() {
        let openai = "provider = \"openai\"\nid = \"m\"\n";
        for (text, expected) in [
            (
                "provider = \"opnai\"",
                "unknown variant `opnai`, expected one of `openai`, `anthropic`, `local`, `recorded`, `route`",
            ),
            ("id = \"m\"", "missing field `provider`"),
            ("provider = \"openai\"", "missing field `id`"),
            (&format!("{openai}api_key = \"sk-1\""), "unknown field `api_key`"),
            (&format!("{openai}[retry]\nmax = 1"), "unknown field `max`"),
            (
                &format!("{openai}api_key_env = \"GONE\""),
                "the environment has no `GONE`, which should hold the key of model `m`",
            ),
            (&format!("{openai}api_key_file = \"key\""), "key file `/nowhere/key` cannot be read"),
            (&format!("{openai}api_key_env = \"THE_KEY\"\napi_key_file = \"k\""), "keep one of them"),
            (&format!("{openai}omit = [\"messages\"]"), "there is no request without it"),
            (&format!("{openai}extra_body = {{ tools = [] }}"), "it is written from the request"),
            (&format!("{openai}price_input_usd_per_million = -1.0"), "0 or more"),
            (&format!("{openai}price_output_usd_per_million = nan"), "0 or more"),
            ("provider = \"openai\"\nid = \" \"", "write the provider's name"),
            ("provider = \"anthropic\"\nid = \"c\"\nthinking_tokens_max = 10", "give 1024 or more"),
            ("provider = \"anthropic\"\nid = \"c\"\nprefill = \"echoed\"", "`prompt` and `native`"),
            ("provider = \"anthropic\"\nid = \"c\"\nseed = 1", "unknown field `seed`"),
            (
                "provider = \"local\"",
                "model file `/nowhere/cache/models/smollm2-135m-instruct-q4_1.gguf` does not exist; fetch it with: longhaul models pull smollm2",
            ),
            ("provider = \"local\"\nfile = \"a.gguf\"", "model file `/nowhere/a.gguf` does not exist"),
            ("provider = \"local\"\ncontext = 1", "unknown field `context`"),
            ("provider = \"recorded\"\nfile = \"a.jsonl\"", "recording `/nowhere/a.jsonl`: No such file"),
        ] {
            let error = check(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(error.contains(expected), "{text}\n{error}");
            assert!(!error.contains("sk-"), "{error}");
        }
    }
}
