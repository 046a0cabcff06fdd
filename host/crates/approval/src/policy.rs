//! The operator's policy for a tool: `allow`, `ask` or `deny`, by function and by patterns over arguments.
//!
//! The strictest of all matching rules decides, so that no rule can be shadowed by its place. A rule that allows must
//! match exactly; one that asks or denies matches broadly, and a value that could fool a pattern causes a question.

use crate::arguments::Arguments;
use crate::visible::visible;
use longhaul_core::Denial;
use longhaul_core::wildcard::covers;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The decision on a call. The modes are ordered by strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// The call is made.
    Allow,
    /// A person is asked first.
    Ask,
    /// The call is refused.
    Deny,
}

/// `[tools.NAME.approval]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = with_older_name)]
pub struct ApprovalPolicy {
    /// The mode of functions without a rule. Default `allow`, and `ask` for a tool that always asks.
    pub default: Option<PolicyMode>,
    /// By function.
    pub functions: BTreeMap<String, PolicyMode>,
    /// Rules by arguments. They come before `functions` and `default`.
    pub rules: Vec<PolicyRule>,
    /// The mode of calls with outside effects after the agent heard untrusted text: of the web, of an MCP server, of an
    /// agent that heard such. Default `ask`, with the source shown.
    #[serde(rename = "when_heard", alias = "when_untrusted", skip_serializing_if = "Option::is_none")]
    #[schemars(rename = "when_untrusted")]
    pub when_untrusted: Option<PolicyMode>,
}

/// One line of `rules`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = with_older_name)]
pub struct PolicyRule {
    /// The function; none: all.
    #[serde(default)]
    pub function: Option<String>,
    /// Patterns by the names of arguments; all must match. `*` is any run of characters, `?` is one.
    #[serde(rename = "where")]
    pub arguments: BTreeMap<String, String>,
    /// The mode of matching calls.
    pub then: PolicyMode,
    /// The mode of these calls after untrusted text; it overrides that of the whole policy.
    #[serde(rename = "when_heard", alias = "when_untrusted", default, skip_serializing_if = "Option::is_none")]
    #[schemars(rename = "when_untrusted")]
    pub when_untrusted: Option<PolicyMode>,
}

/// Adds the older name of `when_untrusted` to a schema: files that were written before have it.
fn with_older_name(schema: &mut Schema) {
    let Some(keys) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    if let Some(Value::Object(mut older)) = keys.get("when_untrusted").cloned() {
        older.insert("deprecated".to_owned(), Value::Bool(true));
        keys.insert("when_heard".to_owned(), Value::Object(older));
    }
}

/// The reason why a policy is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The policy would let a tool pass that always asks.
    #[error(
        "this tool always asks, so `allow` is not taken here; list commands that need no question in the tool's own \
         table, allow = [\"pytest -q\"], answer `a` in a run, or write `ask` or `deny`"
    )]
    AlwaysAsks,
    /// A rule without a condition, which would replace `functions` or `default`.
    #[error("a rule has no `where`; write functions = {{ NAME = \"ask\" }} or default = \"ask\" instead")]
    NoCondition,
}

/// The verdict of a policy on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// The call is made.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny(Denial),
}

impl ApprovalPolicy {
    /// Refuses a contradictory policy; `always_asks` is the tool's own setting.
    ///
    /// # Errors
    /// Every [`PolicyError`].
    pub fn check(&self, always_asks: bool) -> Result<(), PolicyError> {
        if self.rules.iter().any(|rule| rule.arguments.is_empty()) {
            return Err(PolicyError::NoCondition);
        }
        let mut modes =
            self.default.iter().chain(self.functions.values()).chain(self.rules.iter().map(|rule| &rule.then));
        if always_asks && modes.any(|mode| *mode == PolicyMode::Allow) {
            return Err(PolicyError::AlwaysAsks);
        }
        Ok(())
    }

    /// The functions that it names.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let in_rules = self.rules.iter().filter_map(|rule| rule.function.as_deref());
        self.functions.keys().map(String::as_str).chain(in_rules)
    }

    /// True when every call passes, whatever its arguments are.
    #[must_use]
    pub fn lets_all_pass(&self, always_asks: bool) -> bool {
        let default = self.default.unwrap_or(if always_asks { PolicyMode::Ask } else { PolicyMode::Allow });
        let rest = self.functions.values().chain(self.rules.iter().map(|rule| &rule.then));
        default == PolicyMode::Allow && rest.into_iter().all(|mode| *mode == PolicyMode::Allow)
    }

    /// The verdict on a call. `table` is the policy's table of `longhaul.toml`, for the remedy.
    #[must_use]
    pub fn verdict(&self, table: &str, function: &str, arguments: &Arguments, always_asks: bool) -> PolicyVerdict {
        self.verdict_with(table, function, arguments, always_asks, false)
    }

    /// The same if the operator allowed the exact command of the call: that counts as a rule which allows it, so one
    /// that asks or denies is still stricter.
    #[must_use]
    pub fn verdict_with(
        &self,
        table: &str,
        function: &str,
        arguments: &Arguments,
        always_asks: bool,
        is_listed: bool,
    ) -> PolicyVerdict {
        let about: Vec<&PolicyRule> =
            self.rules.iter().filter(|rule| rule.function.as_deref().is_none_or(|name| name == function)).collect();
        let matching = about.iter().filter(|rule| rule.matches(arguments)).map(|rule| rule.then).max();
        let matching = matching.max(is_listed.then_some(PolicyMode::Allow));
        let default = self.default.unwrap_or(if always_asks { PolicyMode::Ask } else { PolicyMode::Allow });
        let mut mode = matching.or_else(|| self.functions.get(function).copied()).unwrap_or(default);
        if about.iter().any(|rule| rule.then > PolicyMode::Allow && rule.is_eluded(arguments)) {
            mode = mode.max(PolicyMode::Ask);
        }
        match mode {
            PolicyMode::Allow => PolicyVerdict::Allow,
            PolicyMode::Ask => PolicyVerdict::Ask,
            PolicyMode::Deny => PolicyVerdict::Deny(Denial {
                reason: format!("the operator forbids this call of `{}`", visible(function)),
                fix: format!("change `[{table}.approval]` in longhaul.toml"),
            }),
        }
    }
}

impl ApprovalPolicy {
    /// The mode of a call with outside effects after its agent heard untrusted text: that of the strictest matching
    /// rule, or else that of the policy.
    #[must_use]
    pub fn when_untrusted(&self, function: &str, arguments: &Arguments) -> PolicyMode {
        let about = self.rules.iter().filter(|rule| rule.function.as_deref().is_none_or(|name| name == function));
        let matching: Vec<&PolicyRule> = about.filter(|rule| rule.when_untrusted.is_some()).collect();
        let default = self.when_untrusted.unwrap_or(PolicyMode::Ask);
        if matching.iter().any(|rule| rule.is_eluded(arguments)) {
            return default.max(PolicyMode::Ask);
        }
        let mode = |rule: &&PolicyRule| rule.when_untrusted.filter(|mode| rule.matches_for(*mode, arguments));
        matching.iter().filter_map(mode).max().unwrap_or(default)
    }
}

impl PolicyRule {
    fn matches(&self, arguments: &Arguments) -> bool {
        self.matches_for(self.then, arguments)
    }

    /// True when the rule matches these arguments, for the mode `then`.
    fn matches_for(&self, then: PolicyMode, arguments: &Arguments) -> bool {
        let strict = then == PolicyMode::Allow;
        self.arguments.iter().all(|(name, pattern)| match arguments.get(name) {
            None => false,
            Some(value) if strict => {
                letters(value).is_some_and(|text| !is_crooked(&text) && covers(pattern, &text, None))
            }
            Some(value) => any_text(value, &mut |text| covers(&pattern.to_lowercase(), &text.to_lowercase(), None)),
        })
    }

    /// True when a value that the rule checks could have another meaning for its receiver.
    fn is_eluded(&self, arguments: &Arguments) -> bool {
        self.arguments.keys().filter_map(|name| arguments.get(name)).any(|value| any_text(value, &mut is_crooked))
    }
}

/// A value that is a single text.
fn letters(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// True when `holds` is true of any text in a value.
fn any_text(value: &Value, holds: &mut dyn FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, holds)),
        Value::Object(fields) => fields.iter().any(|(name, value)| holds(name) || any_text(value, holds)),
        other => holds(&other.to_string()),
    }
}

/// True when a text may mean the same as one that looks different: other alphabets, detours in a path, escapes, spaces
/// at its ends.
fn is_crooked(text: &str) -> bool {
    let detour = text.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
    !text.chars().all(|c| matches!(c, ' '..='~'))
        || detour
        || text.contains("//") && !text.contains("://")
        || text.contains(['\\', '%'])
        || text.trim() != text
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        default = "ask"
        functions = { read = "allow", wipe = "deny" }
        rules = [
            { function = "write", where = { path = "docs/*" }, then = "allow" },
            { where = { path = "*secret*" }, then = "deny" },
        ]
    "#;

    #[track_caller]
    fn check(function: &str, arguments: &str, expected: PolicyMode) {
        let policy: ApprovalPolicy = toml::from_str(POLICY).expect("a policy");
        let read = Arguments::read(arguments).expect("arguments");
        let found = match policy.verdict("tools.files", function, &read, false) {
            PolicyVerdict::Allow => PolicyMode::Allow,
            PolicyVerdict::Ask => PolicyMode::Ask,
            PolicyVerdict::Deny(denial) => {
                assert!(denial.fix.contains("[tools.files.approval]"), "{denial}");
                PolicyMode::Deny
            }
        };
        assert_eq!(found, expected, "{function} {arguments}");
    }

    #[test]
    fn the_strictest_rule_that_matches_counts_and_then_the_function_and_then_the_default() {
        check("read", r#"{"path":"a"}"#, PolicyMode::Allow);
        check("write", r#"{"path":"docs/a.md"}"#, PolicyMode::Allow);
        check("write", r#"{"path":"src/a.rs"}"#, PolicyMode::Ask);
        check("write", "", PolicyMode::Ask);
        check("move", r#"{"path":"docs/a.md"}"#, PolicyMode::Ask);
        check("wipe", "{}", PolicyMode::Deny);
        check("read", r#"{"path":"my/secret.txt"}"#, PolicyMode::Deny);
        check("write", r#"{"path":"docs/secret.md"}"#, PolicyMode::Deny);
    }

    #[test]
    fn a_value_that_a_pattern_could_be_fooled_by_is_never_let_through() {
        for path in
            ["docs/../src/a.rs", "docs/./a", "docs//a", "docs/a\\\\b", "docs/%2e%2e/a", "docs/a ", "docs/\u{200b}a"]
        {
            check("write", &format!(r#"{{"path":"{path}"}}"#), PolicyMode::Ask);
        }
        // In another case, in a list, under a name, and with a Cyrillic e.
        check("read", r#"{"path":"my/SECRET"}"#, PolicyMode::Deny);
        check("read", r#"{"path":["a","b/secret"]}"#, PolicyMode::Deny);
        check("read", r#"{"path":{"secret":1}}"#, PolicyMode::Deny);
        check("read", "{\"path\":\"s\u{435}cret\"}", PolicyMode::Ask);
        check("write", r#"{"path":["docs/a.md"]}"#, PolicyMode::Ask);
    }

    #[test]
    fn a_tool_that_always_asks_cannot_be_let_through_by_policy() {
        for text in [
            "default = \"allow\"",
            "functions = { run = \"allow\" }",
            "rules = [{ where = { a = \"*\" }, then = \"allow\" }]",
        ] {
            let policy: ApprovalPolicy = toml::from_str(text).expect("a policy");
            assert_eq!(policy.check(true), Err(PolicyError::AlwaysAsks), "{text}");
            assert_eq!(policy.check(false), Ok(()), "{text}");
        }
        let none = ApprovalPolicy::default();
        assert_eq!(none.verdict("t", "run", &Arguments::default(), true), PolicyVerdict::Ask);
        assert_eq!(none.verdict("t", "run", &Arguments::default(), false), PolicyVerdict::Allow);
        assert!(none.lets_all_pass(false) && !none.lets_all_pass(true));
        let empty: ApprovalPolicy = toml::from_str("rules = [{ where = {}, then = \"deny\" }]").expect("a policy");
        assert_eq!(empty.check(false), Err(PolicyError::NoCondition));
    }
}
