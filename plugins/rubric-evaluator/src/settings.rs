//! The settings of this evaluator, under `[evaluator.settings]` of `longhaul.toml`.

use serde::Deserialize;

/// Unknown fields are errors: a misspelt cap would not hold.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The role in the system prompt. Default: a strict reviewer.
    pub(crate) prompt: Option<String>,
    /// Default: the model's own.
    pub(crate) temperature: Option<f32>,
    /// Default 0.
    pub(crate) seed: u32,
    /// Default: the operator's limit.
    pub(crate) output_tokens_max: Option<u32>,
    /// The most requests to the model for one verdict. Default 3, at most 10.
    pub(crate) tries_max: u32,
    /// The most characters of the output and the evidence that the model sees. Default 24000.
    pub(crate) evidence_chars_max: usize,
    /// Longest line why. Default 200.
    pub(crate) why_chars_max: usize,
    /// The most characters of a failing check's output, from its end, that go back to the agent. Default 1500.
    pub(crate) issue_chars_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prompt: None,
            temperature: None,
            seed: 0,
            output_tokens_max: None,
            tries_max: 3,
            evidence_chars_max: 24_000,
            why_chars_max: 200,
            issue_chars_max: 1_500,
        }
    }
}

impl Settings {
    pub(crate) fn clamped(mut self) -> Self {
        self.tries_max = self.tries_max.clamp(1, 10);
        self
    }
}
