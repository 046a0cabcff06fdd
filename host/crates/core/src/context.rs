//! The operator's rules for trimming a conversation, as an invocation begins with them.
//!
//! A model becomes hasty and forgetful long before a full window refuses its conversation. So the host trims it in
//! time, by one of two methods: **compaction** keeps the newest turns whole and puts summaries in place of the older
//! ones; a **reset** begins again with a hand-off. Pinned messages stay in both. Nothing here touches a conversation or
//! asks a model; the capability does, by these numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The policy by which a conversation is cut back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Policy")]
pub enum ContextPolicy {
    /// Nothing is cut back: a context longer than the window is refused as `context-full`, and the guest may `reset`.
    Off,
    /// One summary replaces the older half of the messages that are not pinned, at most twice; then the oldest messages
    /// are dropped. For short conversations, and for models that cannot follow long instructions.
    Halve,
    /// Always compaction: for work on one thing, which refers to earlier turns.
    Compact,
    /// Always a reset: for work in clear phases.
    Reset,
    /// Chosen by the contents of the conversation since it was last cut back. The first true condition decides:
    ///
    /// 1. A phase ended: the agent added to `progress`, or saved an `artifact`. Then a reset.
    /// 2. Decisions were recorded or looked up: they are being revisited. Then compaction.
    /// 3. More than half of it is output of tools, which is seldom needed again. Then a reset.
    /// 4. Otherwise compaction.
    ///
    /// So most work within a phase gets compaction, and a new phase gets a reset.
    #[default]
    Auto,
}

impl ContextPolicy {
    /// The name in `longhaul.toml`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Halve => "halve",
            Self::Compact => "compact",
            Self::Reset => "reset",
            Self::Auto => "auto",
        }
    }

    /// True when large texts of older turns become references, which the agent can read again.
    #[must_use]
    pub fn refers(self) -> bool {
        matches!(self, Self::Compact | Self::Reset | Self::Auto)
    }
}

/// Written in `longhaul.toml` under `[context]` for all plugins, or `[agents.NAME.context]` for one.
///
/// An invocation keeps the rules that it began with: a change counts from the next one on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextRules {
    /// `off`, `halve`, `compact`, `reset` or `auto`. Default `auto`; see [`ContextPolicy`].
    pub policy: ContextPolicy,
    /// The fullest that the window may be before a request, in percent. Default 80. Above it the conversation is cut
    /// back. The reply is not counted.
    #[schemars(range(min = 1, max = 100))]
    pub full_percent_max: u32,
    /// The fullest that a compaction leaves the window, in percent. Default 40. The newest turn stays even if it alone
    /// is more.
    pub compact_percent_max: u32,
    /// The fullest that a reset leaves the window, in percent. Default 10. The system prompt and pinned messages stay
    /// even if they alone are more.
    pub reset_percent_max: u32,
    /// The window to count with, in tokens, where it is smaller than the model's or the model's is unknown. Default
    /// none: the model's. Without either, or below 512, nothing is cut back.
    pub window_tokens_max: Option<u32>,
    /// The longest text of an older turn, in bytes; a reference replaces a longer one. Default 1 000. The newest turn
    /// keeps its texts unless it alone is too long.
    pub older_text_bytes_max: u32,
    /// The most tokens of one summary. Default 1 000, and never more than `reset_percent_max` of the window.
    pub summary_tokens_max: u32,
}

impl Default for ContextRules {
    fn default() -> Self {
        Self {
            policy: ContextPolicy::Auto,
            full_percent_max: 80,
            compact_percent_max: 40,
            reset_percent_max: 10,
            window_tokens_max: None,
            older_text_bytes_max: 1_000,
            summary_tokens_max: 1_000,
        }
    }
}

impl ContextRules {
    /// Checks that the numbers are consistent.
    ///
    /// # Errors
    /// The fault, with its remedy.
    pub fn check(&self) -> Result<(), String> {
        let Self { full_percent_max: full, compact_percent_max: compact, reset_percent_max: reset, .. } = self;
        if *full == 0 || *full > 100 {
            return Err(format!("full_percent_max is {full}; take 1 to 100"));
        }
        if compact >= full || reset >= full {
            return Err(format!(
                "compact_percent_max is {compact} and reset_percent_max is {reset}; both must be less than full_percent_max, which is {full}"
            ));
        }
        Ok(())
    }

    /// The same as numbers of tokens, for a model whose window is `window_tokens`, where 0 is unknown. None: nothing is
    /// trimmed.
    #[must_use]
    pub fn budget(&self, window_tokens: u64) -> Option<Budget> {
        let own = self.window_tokens_max.map_or(0, u64::from);
        let window_tokens = match (window_tokens, own) {
            (0, own) => own,
            (known, 0) => known,
            (known, own) => known.min(own),
        };
        if self.policy == ContextPolicy::Off || window_tokens < WINDOW_TOKENS_MIN {
            return None;
        }
        let percent = |percent: u32| window_tokens.saturating_mul(u64::from(percent)) / 100;
        let reset_tokens = percent(self.reset_percent_max);
        Some(Budget {
            window_tokens,
            full_tokens: percent(self.full_percent_max),
            compact_tokens: percent(self.compact_percent_max),
            reset_tokens,
            summary_tokens: u64::from(self.summary_tokens_max).min(reset_tokens).max(SUMMARY_TOKENS_MIN),
        })
    }
}

/// A smaller window has no space for the request of a summary, so nothing is trimmed in it.
const WINDOW_TOKENS_MIN: u64 = 512;

/// A summary of fewer tokens is useless.
const SUMMARY_TOKENS_MIN: u64 = 32;

/// The numbers of [`ContextRules`] for one window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The size of the window.
    pub window_tokens: u64,
    /// The size above which a conversation is cut back.
    pub full_tokens: u64,
    /// The size after a compaction.
    pub compact_tokens: u64,
    /// The size after a reset.
    pub reset_tokens: u64,
    /// The most tokens of a summary.
    pub summary_tokens: u64,
}

/// The rules of an invocation, stored in the first entry of its journal: both fields determine the requests to its
/// models, so a resume and a replay must find them unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedContext {
    /// The rules at the start of the invocation.
    pub rules: ContextRules,
    /// The default model, for requests without a name.
    pub model: Option<String>,
    /// The windows of the granted models, by name, in tokens; 0: unknown. A conversation with another model, which was
    /// granted later, is not trimmed.
    pub windows_tokens: BTreeMap<String, u32>,
}

impl PinnedContext {
    /// The rules at the beginning, for these models; the first is the default.
    #[must_use]
    pub fn new(rules: ContextRules, windows_tokens: impl IntoIterator<Item = (String, u32)>) -> Self {
        let windows: Vec<(String, u32)> = windows_tokens.into_iter().collect();
        let model = windows.first().map(|(name, _)| name.clone());
        Self { rules, model, windows_tokens: windows.into_iter().collect() }
    }
}

/// A sign that a model hurries to an end because its context fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "sign", rename_all = "snake_case")]
pub enum Anxiety {
    /// A reply has less than half the median length of the five before it. Reported once, until a reply has a usual
    /// length again.
    ShortAnswer {
        /// The length in characters, the arguments of requested calls included.
        chars: u64,
        /// The median length of the five replies before it, in characters.
        median_chars: u64,
    },
    /// The agent returned as if all was done, without an open question, and the round was judged not to pass.
    CriteriaUnmet {
        /// The ids of the criteria that were not passed.
        criteria: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_nobody_knows_is_never_full() {
        assert_eq!(ContextRules::default().budget(0), None);
        let off = ContextRules { policy: ContextPolicy::Off, ..ContextRules::default() };
        assert_eq!(off.budget(1_000), None);
    }

    #[test]
    fn the_smaller_of_two_windows_counts() {
        let rules = ContextRules { window_tokens_max: Some(8_000), ..ContextRules::default() };
        let window = |tokens| rules.budget(tokens).unwrap().window_tokens;
        assert_eq!([window(0), window(7_999), window(8_000), window(8_001)], [8_000, 7_999, 8_000, 8_000]);
    }

    #[test]
    fn percents_are_of_the_window() {
        let budget = ContextRules::default().budget(10_000).unwrap();
        assert_eq!(
            budget,
            Budget {
                window_tokens: 10_000,
                full_tokens: 8_000,
                compact_tokens: 4_000,
                reset_tokens: 1_000,
                summary_tokens: 1_000
            }
        );
        assert_eq!(ContextRules::default().budget(511), None, "there is no room for a summary");
        assert!(ContextRules::default().budget(512).is_some());
    }

    #[test]
    fn what_leaves_more_than_it_found_is_refused() {
        let check = |compact, reset, full| {
            ContextRules {
                compact_percent_max: compact,
                reset_percent_max: reset,
                full_percent_max: full,
                ..ContextRules::default()
            }
            .check()
            .is_ok()
        };
        assert!(check(79, 79, 80) && check(40, 10, 100) && check(0, 0, 1));
        assert!(!check(80, 10, 80) && !check(40, 80, 80) && !check(0, 0, 0) && !check(40, 10, 101));
    }
}
