//! Limits and context rules: the common ones, overlaid with the fields of one part.
//!
//! Refuses nothing at this point: invalid values are refused when the file is read.

use crate::part::PluginConfig;
use crate::tables::Config;
use crate::toml_text;
use longhaul_core::Limits;
use longhaul_core::context::ContextRules;
use longhaul_core::fault::{self, Fault};
use longhaul_harness::HarnessLimits;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Config {
    /// The limits of a table's plugin.
    pub fn limits_of(&self, part: &PluginConfig) -> Limits {
        // Invalid values were refused when the file was read.
        self.own_limits(part).unwrap_or_else(|_| self.limits.clone())
    }

    pub(crate) fn own_limits(&self, part: &PluginConfig) -> fault::Result<Limits> {
        overlaid(&self.limits, &part.limits)
    }

    /// The rules that trim the conversations of a table's plugin.
    pub fn context_of(&self, part: &PluginConfig) -> ContextRules {
        // Invalid values were refused when the file was read.
        self.own_context(part).unwrap_or_else(|_| self.context.clone())
    }

    pub(crate) fn own_context(&self, part: &PluginConfig) -> fault::Result<ContextRules> {
        overlaid(&self.context, &part.context)
    }

    /// The caps of an ask.
    pub fn ask_limits(&self) -> HarnessLimits {
        // Invalid values were refused when the file was read.
        overlaid(&HarnessLimits::of_ask(), &self.ask.limits).unwrap_or_else(|_| HarnessLimits::of_ask())
    }
}

/// The common fields, overlaid with a part's own.
pub(crate) fn overlaid<T: Serialize + DeserializeOwned>(all: &T, own: &toml::Table) -> fault::Result<T> {
    let mut fields = toml::Table::try_from(all)?;
    fields.extend(own.clone());
    fields.try_into().map_err(|error: toml::de::Error| Fault::invalid(toml_text::of_toml("", &error).1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::context::ContextPolicy;

    const SMALL: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

    #[test]
    fn own_limits_change_what_they_name_and_nothing_else() {
        let text = format!("{SMALL}[agents.code.limits]\nfuel_max = 7\n[limits]\nfuel_max = 9\nwall_ms_max = 5\n");
        let config = Config::parse(&text).unwrap();
        let limits = config.limits_of(&config.agents["code"]);
        assert_eq!((limits.fuel_max, limits.wall_ms_max), (7, 5));
        assert_eq!(config.limits_of(&config.planner).fuel_max, 9);
        let text = format!(
            "{SMALL}[agents.code.context]\npolicy = \"halve\"\n[context]\nwindow_tokens_max = 8000\nfull_percent_max = 70\n"
        );
        let config = Config::parse(&text).unwrap();
        let rules = config.context_of(&config.agents["code"]);
        assert_eq!(
            (rules.policy, rules.window_tokens_max, rules.full_percent_max),
            (ContextPolicy::Halve, Some(8_000), 70)
        );
        assert_eq!(config.context_of(&config.planner).policy, ContextPolicy::Auto);
    }
}
