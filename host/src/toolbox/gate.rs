//! What the approval gate knows of a tool: the operator's policy for its calls, and what the tool is.

use super::built_in;
use crate::cast::Pins;
use crate::config::PluginConfig;
use anyhow::{Context as _, bail};
use longhaul_approval::{Arguments, Asks, Policy, Verdict, runs_commands};
use longhaul_core::Denial;
use longhaul_core::tool::ToolCall;

/// One tool at the gate.
pub struct ToolGate {
    /// The table of `longhaul.toml`, without brackets.
    table: String,
    policy: Policy,
    plugin: String,
    /// The digest of the component that the run pinned, or the name of what is the host's own.
    pub component: String,
    /// What its calls ask.
    pub asks: Asks,
    always_asks: bool,
}

impl ToolGate {
    /// The gate of the tool of that name.
    pub fn of(name: &str, part: &PluginConfig, pins: &Pins) -> Self {
        let table = format!("tools.{name}");
        let pinned = pins.get(&table).map(|pin| pin.digest.to_string());
        Self {
            component: pinned.unwrap_or_else(|| part.plugin.clone()),
            policy: part.approval.clone(),
            plugin: part.plugin.clone(),
            asks: if part.plugin == built_in::ASK_HUMAN { Asks::Question } else { Asks::Call },
            always_asks: built_in::always_asks(part),
            table,
        }
    }

    /// Whether nobody need be asked about this call.
    pub fn is_free(&self, call: &ToolCall) -> bool {
        if self.asks == Asks::Question {
            return false;
        }
        self.policy.lets_all_pass(self.always_asks) || self.verdict(call) == Verdict::Allow
    }

    /// What the operator says of a call. One whose arguments cannot be read is refused: nobody could approve of it.
    pub fn verdict(&self, call: &ToolCall) -> Verdict {
        match Arguments::read(&call.arguments) {
            Ok(arguments) => self.policy.verdict(&self.table, &call.function, &arguments, self.always_asks),
            Err(wrong) => Verdict::Deny(Denial {
                reason: wrong.to_string(),
                fix: "send one JSON object in which each name stands once".to_owned(),
            }),
        }
    }

    /// Whether the call runs a command, so that `a` means a program.
    pub fn runs_commands(&self, call: &ToolCall) -> bool {
        self.always_asks || runs_commands(&call.tool, &call.function, &self.plugin)
    }
}

/// Refuses a policy where no tool stands, and one that lets a tool pass which always asks.
pub fn check(table: &str, part: &PluginConfig) -> anyhow::Result<()> {
    if part.approval != Policy::default() && !table.starts_with("tools.") {
        bail!("[{table}.approval] is for tools; write it under the table of a tool");
    }
    part.approval.check(built_in::always_asks(part)).with_context(|| format!("[{table}.approval]"))
}
