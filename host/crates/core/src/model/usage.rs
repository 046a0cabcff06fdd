//! The cost of a reply, and its form in documents: a cost that is not known is `null` there, and never 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The tokens and the cost of a reply, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Document", into = "Document")]
pub struct Usage {
    /// Tokens that the model read, the cached ones included.
    pub input_tokens: u32,
    /// Tokens among `input_tokens` that the provider had cached.
    pub cached_tokens: u32,
    /// Tokens among `input_tokens` that the provider put into its cache, where it charges extra for that.
    pub cache_written_tokens: u32,
    /// Tokens that the model wrote, those of its reasoning included.
    pub output_tokens: u32,
    /// Tokens among `output_tokens` that the model wrote for its reasoning.
    pub reasoning_tokens: u32,
    /// The known cost, in millionths of a US dollar.
    pub cost_microdollars: f64,
    /// True when the price of a part is unknown, so that the cost is above [`Self::cost_microdollars`].
    pub cost_unknown: bool,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_written_tokens: self.cache_written_tokens.saturating_add(other.cache_written_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_microdollars: self.cost_microdollars + other.cost_microdollars,
            cost_unknown: self.cost_unknown || other.cost_unknown,
        }
    }

    /// The whole cost, in millionths of a US dollar. None: the price of a part is unknown.
    #[must_use]
    pub fn cost(self) -> Option<f64> {
        (!self.cost_unknown).then_some(self.cost_microdollars)
    }

    /// The cost for people: `$0.0123`, `unknown`, or `at least $0.0123` where the price of a part is unknown.
    #[must_use]
    pub fn cost_text(self) -> String {
        let dollars = format!("${:.4}", self.cost_microdollars / 1e6);
        match (self.cost_unknown, self.cost_microdollars > 0.0) {
            (false, _) => dollars,
            (true, true) => format!("at least {dollars}"),
            (true, false) => "unknown".to_owned(),
        }
    }

    /// Input and output tokens together.
    #[must_use]
    pub fn tokens(self) -> u64 {
        u64::from(self.input_tokens) + u64::from(self.output_tokens)
    }
}

/// The tokens and the cost of a reply, or of several.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
struct Document {
    /// Tokens that the model read, the cached ones included.
    input_tokens: u32,
    /// Tokens among `input_tokens` that the provider had cached.
    cached_tokens: u32,
    /// Tokens among `input_tokens` that the provider put into its cache, where it charges extra for that.
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_written_tokens: u32,
    /// Tokens that the model wrote, those of its reasoning included.
    output_tokens: u32,
    /// Tokens among `output_tokens` that the model wrote for its reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    reasoning_tokens: u32,
    /// The cost in millionths of a US dollar. Null: the price of a part is unknown.
    cost_microdollars: Option<f64>,
    /// The known part of the cost, in millionths of a US dollar, where `cost_microdollars` is null.
    #[serde(default, skip_serializing_if = "is_nothing")]
    cost_microdollars_min: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_nothing(cost: &f64) -> bool {
    *cost <= 0.0
}

impl From<Usage> for Document {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            cache_written_tokens: usage.cache_written_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_microdollars: usage.cost(),
            cost_microdollars_min: if usage.cost_unknown { usage.cost_microdollars } else { 0.0 },
        }
    }
}

impl From<Document> for Usage {
    fn from(document: Document) -> Self {
        Self {
            input_tokens: document.input_tokens,
            cached_tokens: document.cached_tokens,
            cache_written_tokens: document.cache_written_tokens,
            output_tokens: document.output_tokens,
            reasoning_tokens: document.reasoning_tokens,
            cost_microdollars: document.cost_microdollars.unwrap_or(document.cost_microdollars_min),
            cost_unknown: document.cost_microdollars.is_none(),
        }
    }
}

impl JsonSchema for Usage {
    fn schema_name() -> Cow<'static, str> {
        "Usage".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: f64, is_unknown: bool, text: &str, json: &str) {
        let usage = Usage { cost_microdollars: known, cost_unknown: is_unknown, ..Usage::default() };
        assert_eq!(usage.cost_text(), text);
        let written = serde_json::to_string(&usage).unwrap();
        assert!(written.contains(json), "{written}");
        assert_eq!(serde_json::from_str::<Usage>(&written).unwrap(), usage);
    }

    #[test]
    fn an_unknown_cost_is_never_shown_as_nothing() {
        check(12_345.0, false, "$0.0123", "\"cost_microdollars\":12345.0");
        check(0.0, false, "$0.0000", "\"cost_microdollars\":0.0");
        check(0.0, true, "unknown", "\"cost_microdollars\":null");
        check(12_345.0, true, "at least $0.0123", "\"cost_microdollars_min\":12345.0");
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let known = Usage { cost_microdollars: 2.0, ..Usage::default() };
        let unknown = Usage { cost_unknown: true, ..Usage::default() };
        assert_eq!((known.plus(unknown).cost(), known.plus(known).cost()), (None, Some(4.0)));
    }

    /// Journals from before a cost could be unknown.
    #[test]
    fn an_older_document_is_read() {
        let old = r#"{"input_tokens":3,"cached_tokens":0,"output_tokens":1,"cost_microdollars":0.0}"#;
        assert_eq!(serde_json::from_str::<Usage>(old).unwrap().cost(), Some(0.0));
    }
}
