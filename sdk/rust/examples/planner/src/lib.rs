//! The planner `outline`: each line `- id: instruction` of the goal is a step.
//!
//! No model is asked, so the same goal gives the same plan. A goal without such a line is a question back to its
//! author, and never a plan of one vague step.

use std::collections::BTreeSet;

use longhaul_sdk::planner::{Goal, OnFailure, PlanError, PlanStep, PlanStepResult, Planner, Synthesis, WorkPlan};
use longhaul_sdk::types::Criterion;
use serde_json::{Map, Value};

struct Outline;

impl Planner for Outline {
    fn plan(goal: Goal) -> Result<WorkPlan, PlanError> {
        let steps: Vec<PlanStep> = goal.text.lines().filter_map(step).collect();
        if steps.is_empty() {
            let question = "which steps does the goal have? write each as a line `- id: instruction`";
            return Err(PlanError::Unclear(question.to_owned()));
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = steps.iter().find(|step| !ids.insert(&step.id)) {
            return Err(PlanError::Unclear(format!(
                "two steps are called `{}`; what is the second one's id?",
                twice.id
            )));
        }
        let notes = format!("{} steps, as the goal lists them", steps.len());
        Ok(WorkPlan { steps, notes })
    }

    fn replan(_: Goal, plan: WorkPlan, results: Vec<PlanStepResult>) -> Result<WorkPlan, PlanError> {
        let has_passed = |step: &PlanStep| results.iter().any(|result| result.step == step.id && result.passed);
        let steps: Vec<PlanStep> = plan.steps.into_iter().filter(|step| !has_passed(step)).collect();
        let notes = format!("{} steps are left", steps.len());
        Ok(WorkPlan { steps, notes })
    }

    fn synthesize(_: Goal, results: Vec<PlanStepResult>) -> Result<Synthesis, PlanError> {
        let outputs = results.iter().filter_map(|result| {
            let output = &result.outcome.as_ref()?.output;
            let value = serde_json::from_str(output).unwrap_or_else(|_| Value::from(output.as_str()));
            Some((result.step.clone(), value))
        });
        let answer: Map<String, Value> = outputs.collect();
        let unknowns: Vec<String> =
            results.iter().filter(|result| !result.passed).map(|result| result.step.clone()).collect();
        let confidence = Some(share(results.len() - unknowns.len(), results.len()));
        Ok(Synthesis { answer: Value::from(answer).to_string(), confidence, conflicts: Vec::new(), unknowns })
    }
}

longhaul_sdk::export_planner!(Outline);

/// The step of a line `- id: instruction`. Ids are what the harness takes: up to 64 letters, digits, `-` and `_`.
fn step(line: &str) -> Option<PlanStep> {
    let (id, instruction) = line.trim().strip_prefix("- ")?.split_once(':')?;
    let (id, instruction) = (id.trim(), instruction.trim());
    let is_id_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(is_id_char);
    (is_id && !instruction.is_empty()).then(|| PlanStep {
        id: id.to_owned(),
        title: instruction.chars().take(80).collect(),
        instruction: instruction.to_owned(),
        category: "functional".to_owned(),
        priority: 5,
        agent: None,
        criteria: vec![Criterion { id: "does-it".to_owned(), text: instruction.to_owned(), check: None }],
        checks: Vec::new(),
        depends_on: Vec::new(),
        on_failure: OnFailure::Retry(1),
    })
}

fn share(part: usize, whole: usize) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "there are fewer than 2^53 steps")]
    let (part, whole) = (part as f64, whole as f64);
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use longhaul_sdk::types::Outcome;

    use super::*;

    fn goal(text: &str) -> Goal {
        Goal { text: text.to_owned(), context: "{}".to_owned(), settings: "{}".to_owned(), criteria: Vec::new() }
    }

    fn result(step: &str, passed: bool, output: Option<&str>) -> PlanStepResult {
        let outcome = |output: &str| Outcome {
            output: output.to_owned(),
            summary: String::new(),
            confidence: None,
            unknowns: Vec::new(),
        };
        PlanStepResult { step: step.to_owned(), passed, outcome: output.map(outcome), issues: Vec::new() }
    }

    #[test]
    fn the_lines_of_a_list_become_steps() {
        let plan = Outline::plan(goal("Do:\n - a: läuft: gut\r\n- b c: no id\n-d: no blank\n- e:\n- f_1: sing"));
        let steps = plan.expect("a plan").steps;
        let found: Vec<(&str, &str)> = steps.iter().map(|step| (&*step.id, &*step.instruction)).collect();
        assert_eq!(found, [("a", "läuft: gut"), ("f_1", "sing")]);
    }

    #[test]
    fn a_goal_without_steps_or_with_two_of_one_id_is_a_question() {
        for text in ["", "make it so", "- a: x\n- a: y"] {
            assert!(matches!(Outline::plan(goal(text)), Err(PlanError::Unclear(_))), "{text}");
        }
    }

    #[test]
    fn a_replan_leaves_out_what_passed() {
        let plan = Outline::plan(goal("- a: x\n- b: y")).expect("a plan");
        let left = Outline::replan(goal(""), plan, vec![result("a", true, None), result("b", false, None)]);
        assert_eq!(left.expect("a plan").steps[0].id, "b");
    }

    #[test]
    fn a_synthesis_holds_what_is_known() {
        let results = vec![result("a", true, Some("[1]")), result("b", true, Some("oops")), result("c", false, None)];
        let synthesis = Outline::synthesize(goal(""), results).expect("a synthesis");
        assert_eq!(synthesis.answer, r#"{"a":[1],"b":"oops"}"#);
        assert!((synthesis.confidence.unwrap_or_default() - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(synthesis.unknowns, ["c"]);
    }
}
