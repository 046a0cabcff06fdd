//! The agent's own functions for its model: run the feature's checks, and show the whole goal.
//!
//! The names stand among those of the tools. They are for tasks on a repository alone.

use longhaul_sdk::tools::{ToolCall, ToolError, ToolResult};
use longhaul_sdk::{checks, json};
use serde::Deserialize;
use serde_json::Value;

/// The tool of the agent's own actions: empty, since every tool of an operator has a name.
const OWN: &str = "";

/// Runs the checks.
pub(crate) const CHECKS: &str = "checks";
/// Shows the goal.
pub(crate) const GOAL: &str = "goal";

/// The length of a failing check's output for the model, in characters: its end, which mostly has the cause.
const SAID_CHARS_MAX: usize = 1_500;

/// Characters of the goal that are shown at once.
const GOAL_CHARS: usize = 3_000;

/// The agent's own functions.
#[derive(Default)]
pub(crate) struct Own {
    /// The names of the feature's checks.
    pub(crate) checks: Vec<String>,
    pub(crate) goal: Option<String>,
}

/// The results of the checks.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Checked {
    passed: Vec<String>,
    /// With what each said.
    failed: Vec<(String, String)>,
    /// Those that could not be run, with why: whether they pass is for the evaluator to find out.
    unknown: Vec<(String, String)>,
}

impl Own {
    /// The checks by which the feature will be judged, and the goal.
    pub(crate) fn of(goal: Option<String>) -> Self {
        Self { checks: checks::list().into_iter().map(|check| check.name).collect(), goal }
    }

    /// The names that a model may use.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let has = [(CHECKS, !self.checks.is_empty()), (GOAL, self.goal.is_some())];
        has.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
    }

    /// The call for such a name; none for other names.
    pub(crate) fn call_of(&self, name: &str, arguments: &Value) -> Option<ToolCall> {
        let name = self.names().into_iter().find(|own| *own == name)?;
        Some(ToolCall { tool: OWN.to_owned(), function: name.to_owned(), arguments: arguments.to_string() })
    }

    /// True when a call is one of the agent itself.
    pub(crate) fn is_own(call: &ToolCall) -> bool {
        call.tool == OWN
    }

    /// Answers such a call.
    pub(crate) fn answer(&self, call: &ToolCall) -> Result<ToolResult, ToolError> {
        let output = match call.function.as_str() {
            CHECKS => self.check().text(),
            _ => self.goal_from(&call.arguments)?,
        };
        Ok(ToolResult { output, truncated: false })
    }

    /// Runs every check once.
    pub(crate) fn check(&self) -> Checked {
        let mut checked = Checked::default();
        for name in &self.checks {
            match checks::run(name) {
                Ok(report) if report.passed => checked.passed.push(name.clone()),
                Ok(report) => {
                    let said = if report.stderr.trim().is_empty() { &report.stdout } else { &report.stderr };
                    let said = json::tail(said.trim(), SAID_CHARS_MAX);
                    let end = || match report.exit_code {
                        Some(code) => format!("it ended with {code}"),
                        None => "it ended at a limit".to_owned(),
                    };
                    let said = if said.is_empty() { end() } else { said.to_owned() };
                    checked.failed.push((name.clone(), said));
                }
                Err(error) => checked.unknown.push((name.clone(), longhaul_sdk::Error::from(error).to_string())),
            }
        }
        checked
    }

    fn goal_from(&self, arguments: &str) -> Result<String, ToolError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Arguments {
            #[serde(default)]
            offset: usize,
        }
        let Arguments { offset } = json::read("arguments", arguments)?;
        let goal = self.goal.as_deref().unwrap_or_default();
        let shown: String = goal.chars().skip(offset).take(GOAL_CHARS).collect();
        let (end, all) = (offset.saturating_add(shown.chars().count()), goal.chars().count());
        let more = if end < all {
            format!("\n[{} more characters; go on with {{\"offset\": {end}}}]", all - end)
        } else {
            String::new()
        };
        Ok(format!("{shown}{more}"))
    }
}

impl Checked {
    pub(crate) fn is_failing(&self) -> bool {
        !self.failed.is_empty()
    }

    /// For the model.
    pub(crate) fn text(&self) -> String {
        let mut lines: Vec<String> = self.passed.iter().map(|name| format!("`{name}` passes")).collect();
        lines.extend(self.unknown.iter().map(|(name, why)| format!("`{name}` could not be run: {why}")));
        lines.extend(self.failed.iter().map(|(name, said)| format!("`{name}` fails:\n{said}")));
        lines.join("\n")
    }

    /// The text of an outcome about the checks that do not pass.
    pub(crate) fn unknowns(&self) -> Vec<String> {
        let failed =
            self.failed.iter().map(|(name, said)| format!("the check `{name}` fails: {}", json::tail(said, 300)));
        let unknown = self.unknown.iter().map(|(name, why)| format!("the check `{name}` could not be run: {why}"));
        failed.chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_goal_is_shown_in_pages() {
        let own = Own { checks: Vec::new(), goal: Some("ä".repeat(GOAL_CHARS + 5)) };
        let first = own.goal_from("{}").expect("a page");
        assert!(first.ends_with("[5 more characters; go on with {\"offset\": 3000}]"), "{first}");
        assert_eq!(own.goal_from("{\"offset\": 3000}").expect("the rest"), "äääää");
        assert_eq!(own.goal_from("{\"offset\": 99999}").expect("nothing"), "");
    }

    #[test]
    fn only_what_there_is_can_be_asked_for() {
        let own = Own { checks: vec!["unit".to_owned()], goal: None };
        assert_eq!(own.names(), ["checks"]);
        assert!(own.call_of("checks", &json!({})).is_some_and(|call| Own::is_own(&call)));
        assert!(own.call_of("goal", &json!({})).is_none());
        assert!(Own::default().names().is_empty());
    }
}
