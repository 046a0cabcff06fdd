//! The settings of this planner, under `[planner.settings]` of `longhaul.toml`.

use longhaul_sdk::planner::{Goal, PlanError};
use serde::Deserialize;

use crate::markdown;

/// When to ask the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UseModel {
    /// For goals without `## Feature:` sections.
    #[default]
    Auto,
    /// Also to replan and to sum up a goal that writes its features.
    Always,
}

/// Unknown fields are errors: a misspelt cap would not hold.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// When to ask the model. Default `auto`.
    pub(crate) model: UseModel,
    /// The most requests to the model for one plan. Default 3, at most 10.
    pub(crate) tries_max: u32,
    /// The most features of a plan of the model. Default 200.
    pub(crate) features_max: usize,
    /// Default: the model's own in the first try, and 0.2 in each further one.
    pub(crate) temperature: Option<f32>,
    /// Default 0; each retry adds 1.
    pub(crate) seed: u32,
    /// Default: the operator's limit.
    pub(crate) output_tokens_max: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model: UseModel::Auto,
            tries_max: 3,
            features_max: 200,
            temperature: None,
            seed: 0,
            output_tokens_max: None,
        }
    }
}

impl Settings {
    pub(crate) fn of(goal: &Goal) -> Result<Self, PlanError> {
        let mut settings: Self = longhaul_sdk::json::read("planner settings", &goal.settings)?;
        settings.tries_max = settings.tries_max.clamp(1, 10);
        Ok(settings)
    }

    pub(crate) fn uses_model(&self, goal: &Goal) -> bool {
        self.model == UseModel::Always || !markdown::has_features(&goal.text)
    }
}
