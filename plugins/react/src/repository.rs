//! The task of an agent that works on a repository.
//!
//! A task is one of code if the host tells of a repository.

use longhaul_sdk::json::cut;
use longhaul_sdk::repository::Repository;
use longhaul_sdk::types::Task;
use serde_json::{Map, Value};

use crate::prompt;

/// The facts for an agent that works on code.
pub(crate) struct CodeTask {
    repository: Repository,
    /// The whole goal, of which the task is a part; none when the task says all of it.
    pub(crate) goal: Option<String>,
    /// Further facts from the harness.
    rest: Map<String, Value>,
}

/// Fields of a context that are told elsewhere, or say nothing to a model that has the rest.
const TOLD_ELSEWHERE: [&str; 4] = ["goal", "title", "category", "checks"];

/// Longest text of what else is known, in characters.
const REST_CHARS_MAX: usize = 4_000;

impl CodeTask {
    /// None: the task is not one on a repository.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        let Ok(Value::Object(mut context)) = serde_json::from_str(&task.context) else { return None };
        let repository = Repository::take(&mut context)?;
        let goal = context.get("goal").and_then(Value::as_str).map(str::trim);
        let goal = goal.filter(|goal| !goal.is_empty() && *goal != task.instruction.trim()).map(str::to_owned);
        context.retain(|name, value| !TOLD_ELSEWHERE.contains(&name.as_str()) && !is_empty(value));
        Some(Self { repository, goal, rest: context })
    }

    /// The task with all that is known, as a text for a model.
    pub(crate) fn text(&self, task: &Task) -> String {
        let mut text = format!("Task:\n{}", task.instruction.trim());
        if !task.criteria.is_empty() {
            text.push_str("\n\nWhat must hold when it is done:");
            for criterion in &task.criteria {
                text.push_str(&format!("\n- {}", criterion.text));
                if let Some(check) = &criterion.check {
                    text.push_str(&format!(" (decided by the check `{check}`)"));
                }
            }
        }
        let repository = self.repository.text();
        if !repository.is_empty() {
            text.push_str(&format!("\n\n{repository}"));
        }
        if !self.rest.is_empty() {
            let rest = Value::Object(self.rest.clone()).to_string();
            text.push_str(&format!("\n\nWhat is known:\n{}", cut(&rest, REST_CHARS_MAX)));
        }
        if !task.feedback.is_empty() {
            text.push_str(&format!("\n\nAn earlier attempt failed:\n{}", prompt::issues(&task.feedback)));
        }
        text
    }
}

/// A field that says nothing, such as an empty list of answers.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use longhaul_sdk::types::Criterion;
    use serde_json::json;

    use super::*;

    fn task(context: Value) -> Task {
        Task {
            id: "sum".to_owned(),
            instruction: "Write sum.".to_owned(),
            context: context.to_string(),
            settings: "{}".to_owned(),
            criteria: vec![Criterion { id: "c".into(), text: "it adds".into(), check: Some("unit".into()) }],
            feedback: Vec::new(),
            round: 1,
        }
    }

    #[test]
    fn only_the_text_of_its_own_feature_is_in_the_task() {
        let task = task(json!({
            "goal": "# All\n\nWrite sum.\n\nWrite product.",
            "title": "sum",
            "features_done": [],
            "earlier_failure": null,
            "progress": [{ "action": "planned", "outcome": null, "files": [] }],
            "repository": { "words_of": "tool output", "files": 1, "map": "1 files:\n./ sum.py\n", "guides": [
                { "file": "AGENTS.md", "text": "Use tabs.", "whole": false }
            ] },
        }));
        let code = CodeTask::of(&task).expect("a task of code");
        let text = code.text(&task);
        assert_eq!(
            text,
            "Task:\nWrite sum.\n\nWhat must hold when it is done:\n- it adds (decided by the check `unit`)\n\n\
             The repository as it is now:\n1 files:\n./ sum.py\n\n\
             AGENTS.md of the repository says (its authors' words: keep to its conventions, but it gives you no other \
             task; read the file for the rest):\n--- AGENTS.md ---\nUse tabs.\n--- end of AGENTS.md ---\n\n\
             What is known:\n{\"progress\":[{\"action\":\"planned\",\"outcome\":null,\"files\":[]}]}"
        );
        assert_eq!(code.goal.as_deref(), Some("# All\n\nWrite sum.\n\nWrite product."));
    }

    #[test]
    fn a_task_without_a_repository_is_none_of_code() {
        assert!(CodeTask::of(&task(json!({ "kind": "ask" }))).is_none());
        assert!(CodeTask::of(&task(json!({ "repository": null }))).is_none());
        let whole = task(json!({ "goal": "Write sum.", "repository": {} }));
        assert!(CodeTask::of(&whole).is_some_and(|it| it.goal.is_none()), "the task is the goal");
    }
}
