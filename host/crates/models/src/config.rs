//! A table `[models.NAME]` of `longhaul.toml`, and the model that it describes.
//!
//! A misspelt field is an error. What can be known to be wrong is found here, before a run starts and
//! long before its model is asked: a missing key, a key that others can read, an address that would show it.

use crate::ModelsError;
use crate::local::{Local, LocalConfig};
use crate::openai::{OpenAi, OpenAiConfig};
use crate::pull;
use crate::recorded::{Recorded, Recording};
use longhaul_core::model::Model;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "kebab-case")]
pub enum ModelConfig {
    /// An endpoint that speaks OpenAI's protocol.
    #[serde(rename = "openai")]
    OpenAi(Box<OpenAiConfig>),
    /// A small model in a child process.
    Local(LocalConfig),
    /// Replies from a file.
    Recorded(RecordedConfig),
}

/// A table `[models.NAME]` with `provider = "recorded"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedConfig {
    /// The recording.
    pub file: PathBuf,
    /// The window, in tokens, of the model that was recorded. Default 128 000. Compaction depends on it,
    /// and with it what is asked.
    #[serde(default = "default_context")]
    pub context_tokens_max: u32,
}

fn default_context() -> u32 {
    128_000
}

/// What a model needs of the machine; the caller decides it, so that tests need no environment.
pub struct Surroundings<'a> {
    /// Looks into the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Paths in the configuration are relative to this directory.
    pub base: &'a Path,
    /// Where pulled models are; see [`pull::cache_dir`].
    pub cache: &'a Path,
    /// The program that serves a local model, and its first arguments, for example
    /// `["/usr/bin/longhaul", "model-child"]`.
    pub child_command: Vec<OsString>,
}

impl ModelConfig {
    /// Makes the model that plugins know as `name`. Nothing is sent and no process is started.
    ///
    /// # Errors
    /// [`ModelsError`] about a setting, a key or a file.
    pub fn build(&self, name: &str, surroundings: &Surroundings<'_>) -> Result<Arc<dyn Model>, ModelsError> {
        match self {
            Self::OpenAi(config) => {
                let mut config = config.as_ref().clone();
                config.api_key_file = config.api_key_file.map(|path| surroundings.base.join(path));
                Ok(Arc::new(OpenAi::new(name, config, surroundings.variable)?))
            }
            Self::Local(config) => {
                let file = local_file(config, surroundings)?;
                Ok(Arc::new(Local::new(name, config.clone(), surroundings.child_command.clone(), &file)))
            }
            Self::Recorded(config) => {
                let recording = Recording::read(&surroundings.base.join(&config.file))?;
                Ok(Arc::new(Recorded::new(Arc::new(recording), config.context_tokens_max)))
            }
        }
    }
}

/// The name of a model that can be pulled stands for the file it was pulled to.
fn local_file(config: &LocalConfig, surroundings: &Surroundings<'_>) -> Result<PathBuf, ModelsError> {
    let pulled = config.file.to_str().and_then(|name| pull::path_of(name, surroundings.cache));
    let path = pulled.unwrap_or_else(|| surroundings.base.join(&config.file));
    if path.is_file() { Ok(path) } else { Err(ModelsError::ModelFileMissing { path, pull: pull::DEFAULT.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Arc<dyn Model>, String> {
        let config: ModelConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        let variable = |name: &str| (name == "THE_KEY").then(|| "sk-abcdefghijklmnop".to_owned());
        let surroundings = Surroundings {
            variable: &variable,
            base: Path::new("/nowhere"),
            cache: Path::new("/nowhere/cache"),
            child_command: vec!["true".into()],
        };
        config.build("m", &surroundings).map_err(|error| error.to_string())
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
    fn what_is_wrong_is_found_before_a_run_and_says_what_helps() {
        let openai = "provider = \"openai\"\nid = \"m\"\n";
        for (text, expected) in [
            ("provider = \"opnai\"", "unknown variant `opnai`, expected one of `openai`, `local`, `recorded`"),
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
