//! Models of a project: their settings, the result of a test, and a fetched file.

use super::usage::UsageView;
use longhaul_models::ModelConfig;
use longhaul_models::probe::Probed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A model of `longhaul.toml`, with the defaults that are in force. It names the variable or the file of a key, and
/// never holds the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfiguredModelView {
    /// The provider: `openai`, `anthropic`, `local`, `recorded` or `route`.
    pub provider: String,
    /// The other settings, by their names in the table `[models.NAME]`. Their names have their units.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// The models of a project, by their names under `[models]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelListing {
    /// The models.
    pub models: BTreeMap<String, ConfiguredModelView>,
}

impl TryFrom<&ModelConfig> for ConfiguredModelView {
    type Error = serde_json::Error;

    fn try_from(inner: &ModelConfig) -> Result<Self, Self::Error> {
        serde_json::to_value(inner).and_then(serde_json::from_value)
    }
}

impl TryFrom<&BTreeMap<String, ModelConfig>> for ModelListing {
    type Error = serde_json::Error;

    fn try_from(inner: &BTreeMap<String, ModelConfig>) -> Result<Self, Self::Error> {
        let named = |(name, model): (&String, &ModelConfig)| {
            ConfiguredModelView::try_from(model).map(|view| (name.clone(), view))
        };
        Ok(Self { models: inner.iter().map(named).collect::<Result<_, _>>()? })
    }
}

/// The result of one request of a test of a model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelProbeView {
    /// The name of the model under `[models]`.
    pub model: String,
    /// The kind of the request: `plain`, `streaming`, `schema`, `tools` or `picture`.
    pub kind: String,
    /// True when the model can do it.
    pub works: bool,
    /// True when runs need it.
    pub needed: bool,
    /// The fault, or an observation. Empty: there is none.
    pub why: String,
    /// The duration of the request, in milliseconds.
    pub took_ms: u64,
    /// Tokens and money.
    pub usage: UsageView,
}

impl ModelProbeView {
    /// The result of a probe of the model with this name.
    pub fn of(model: &str, probed: Probed) -> Self {
        let Probed { kind, works, needed, why, took_ms, usage } = probed;
        let (model, kind, usage) = (model.to_owned(), kind.word().to_owned(), usage.into());
        Self { model, kind, works, needed, why, took_ms, usage }
    }
}

/// A fetched model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PulledModelView {
    /// The name of the model.
    pub model: String,
    /// The path of its file.
    pub path: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_is_listed_as_its_table_is_written() {
        let table = json!({ "fallback": ["b"], "provider": "route", "models": ["c", "d"], "by": "cost" });
        let models = BTreeMap::from([("a".to_owned(), serde_json::from_value::<ModelConfig>(table.clone()).unwrap())]);
        let listing = ModelListing::try_from(&models).unwrap();
        assert_eq!(listing.models["a"].provider, "route");
        assert_eq!(serde_json::to_value(listing).unwrap(), json!({ "a": table }));
    }
}
