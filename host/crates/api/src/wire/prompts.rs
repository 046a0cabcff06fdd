//! Guesses about prompts.

use longhaul_harness::detect::Detected;
use serde::Serialize;
use serde_json::Value;

/// The guess about a prompt.
#[derive(Clone, Debug, Serialize)]
pub struct DetectedView {
    /// The kind of work, a word.
    #[serde(rename = "type")]
    pub kind: Value,
    /// True when it is worth a project.
    pub use_harness: bool,
    /// Its parts: those that the prompt lists, or as many names as it requests.
    pub items: Vec<String>,
    /// The confidence of the guess, from 0 to 1.
    pub confidence: f64,
    /// The reasons for it, one line each.
    pub reasons: Vec<String>,
}

impl From<&Detected> for DetectedView {
    fn from(inner: &Detected) -> Self {
        let Detected { kind, use_harness, items, confidence, reasons } = inner;
        Self {
            kind: serde_json::to_value(kind).unwrap_or_default(),
            use_harness: *use_harness,
            items: items.clone(),
            confidence: *confidence,
            reasons: reasons.clone(),
        }
    }
}
