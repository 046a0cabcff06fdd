//! The approval policy of a tool's table.

use super::built_in;
use crate::part::PluginConfig;
use longhaul_approval::{AllowedCommand, ApprovalPolicy};
use longhaul_core::fault::{self, Context as _, bail};

/// Refuses a policy in a table without a tool, one that allows calls of a tool which always asks, and allowed commands
/// of a tool which runs none.
pub fn check(table: &str, part: &PluginConfig) -> fault::Result<()> {
    if !part.allow.is_empty() && !built_in::always_asks(part) {
        bail!(
            "[{table}] allow is for plugin = \"builtin:shell\"; write what other tools may do under [{table}.approval]"
        );
    }
    AllowedCommand::read_all(&part.allow).or_invalid(|| format!("[{table}] allow"))?;
    if part.approval != ApprovalPolicy::default() && !table.starts_with("tools.") {
        bail!("[{table}.approval] is for tools; write it under the table of a tool");
    }
    let always_asks = built_in::always_asks(part) || built_in::is_question(part);
    part.approval.check(always_asks).or_invalid(|| format!("[{table}.approval]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_allowed_to_a_shell_alone_and_each_line_is_read() {
        let told = |text: &str| {
            let part: PluginConfig = toml::from_str(text).expect("a table");
            format!("{:#}", check("tools.x", &part).expect_err(text))
        };
        assert!(told("plugin = \"files\"\nallow = [\"ls\"]").contains("allow is for plugin"));
        assert!(
            told("plugin = \"builtin:shell\"\nallow = [\"ls; id\"]").starts_with("[tools.x] allow: `ls; id` is not")
        );
        assert!(
            told("plugin = \"builtin:shell\"\napproval = { default = \"allow\" }").contains("allow = [\"pytest -q\"]")
        );
    }
}
