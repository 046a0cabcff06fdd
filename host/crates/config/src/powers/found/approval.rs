//! Calls that pass without a question, and those that a person is asked about.

use super::collected::Powers;
use super::values::tables;
use crate::powers::power::PowerKind;
use serde_json::Value;

impl Powers {
    /// Calls that pass although they would need an approval by default, and the opposite.
    pub(super) fn of_approval(&mut self, table: &str, policy: &Value, asks_by_default: bool) {
        let (default, functions) = (&policy["default"], tables(policy, "functions"));
        let rules: Vec<(String, &Value)> =
            policy["rules"].as_array().into_iter().flatten().map(|rule| (calls_of(rule), rule)).collect();
        let asks = |mode: &Value| mode == "ask" || mode == "deny";
        let default_asks = asks(default) || asks_by_default && default != "allow";
        let something_asks = default_asks || functions.iter().any(|&(_, mode)| asks(mode));
        self.of_mode(table, "calls", default, asks_by_default);
        for (function, mode) in functions {
            self.of_mode(table, &format!("calls of `{function}`"), mode, default_asks);
        }
        for (calls, rule) in &rules {
            let then = &rule["then"];
            // A function that asks does so for an allowed one, too.
            self.of_mode(table, calls, then, something_asks && then != "ask");
        }
        let heard = "after untrusted words were heard";
        for (calls, said) in
            std::iter::once(("calls", policy)).chain(rules.iter().map(|(calls, rule)| (&**calls, *rule)))
        {
            match said["when_heard"].as_str() {
                Some("allow") => self.add(PowerKind::Wall, table, format!("lets {calls} pass {heard}")),
                Some("deny") => self.add_guard(table, format!("refuses {calls} {heard}")),
                Some("ask") if calls != "calls" => {
                    self.add_guard(table, format!("asks a person before {calls} {heard}"));
                }
                _ => {}
            }
        }
    }

    /// One mode of a policy. `asks_otherwise` is true where these calls ask by default.
    fn of_mode(&mut self, table: &str, calls: &str, mode: &Value, asks_otherwise: bool) {
        match mode.as_str() {
            Some("allow") if asks_otherwise => {
                self.add(PowerKind::Wall, table, format!("makes {calls} without a question"));
            }
            Some("ask") if !asks_otherwise => self.add_guard(table, format!("asks a person before {calls}")),
            Some("deny") => {
                // A policy that refuses lets no call pass that an approval would stop.
                self.add_guard(table, format!("asks a person before {calls}"));
                self.add_guard(table, format!("refuses {calls}"));
            }
            _ => {}
        }
    }
}

/// The calls that a rule of a policy names.
fn calls_of(rule: &Value) -> String {
    match rule["function"].as_str() {
        Some(function) => format!("calls of `{function}` with {}", rule["where"]),
        None => format!("calls with {}", rule["where"]),
    }
}
