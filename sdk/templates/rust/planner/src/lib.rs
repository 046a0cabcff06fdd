//! The planner `{{name}}`: each line of the goal is a step. It plans and reviews, and executes nothing.

use longhaul_sdk::planner::{Goal, OnFailure, PlanError, PlanStep, PlanStepResult, Planner, Synthesis, WorkPlan};
use longhaul_sdk::types::Criterion;
use serde_json::{Map, Value};

struct Plugin;

impl Planner for Plugin {
    fn plan(goal: Goal) -> Result<WorkPlan, PlanError> {
        let lines = goal.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let steps: Vec<PlanStep> = lines.enumerate().map(|(at, line)| step(at + 1, line)).collect();
        if steps.is_empty() {
            return Err(PlanError::Unclear("what is to be done?".to_owned()));
        }
        Ok(WorkPlan { steps, notes: String::new() })
    }

    /// Called when steps have failed: here the plan stays, without what is done.
    fn replan(_: Goal, plan: WorkPlan, results: Vec<PlanStepResult>) -> Result<WorkPlan, PlanError> {
        let is_done = |step: &PlanStep| results.iter().any(|result| result.passed && result.step == step.id);
        let steps = plan.steps.into_iter().filter(|step| !is_done(step)).collect();
        Ok(WorkPlan { steps, notes: plan.notes })
    }

    /// Called at the end: one answer out of what the steps gave.
    fn synthesize(_: Goal, results: Vec<PlanStepResult>) -> Result<Synthesis, PlanError> {
        let passed = results.iter().filter(|result| result.passed).count();
        let unknowns = results.iter().filter(|result| !result.passed).map(|result| result.step.clone()).collect();
        let mut answer = Map::new();
        for result in &results {
            let output = result.outcome.as_ref().map(|outcome| outcome.output.as_str()).unwrap_or("null");
            answer.insert(result.step.clone(), serde_json::from_str(output).unwrap_or(Value::Null));
        }
        #[allow(clippy::cast_precision_loss, reason = "there are few steps")]
        let confidence = (!results.is_empty()).then(|| passed as f64 / results.len() as f64);
        Ok(Synthesis { answer: Value::Object(answer).to_string(), confidence, conflicts: Vec::new(), unknowns })
    }
}

fn step(number: usize, line: &str) -> PlanStep {
    PlanStep {
        id: format!("step-{number}"),
        title: line.chars().take(80).collect(),
        instruction: line.to_owned(),
        category: "functional".to_owned(),
        priority: 5,
        agent: None,
        // Criteria for the evaluator.
        criteria: vec![Criterion { id: "done".to_owned(), text: line.to_owned(), check: None }],
        checks: Vec::new(),
        depends_on: Vec::new(),
        on_failure: OnFailure::Retry(1),
    }
}

longhaul_sdk::export_planner!(Plugin);
