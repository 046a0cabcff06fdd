//! The planner `teller`: one feature, which is the goal and never passes, and notes that say word for word what it was
//! told beside it.

use longhaul_sdk::planner::{
    CheckBody, CheckSpec, Goal, OnFailure, PlanError, PlanStep, PlanStepResult, Planner, Synthesis, WorkPlan,
};
use longhaul_sdk::types::Criterion;

struct Teller;

impl Planner for Teller {
    fn plan(goal: Goal) -> Result<WorkPlan, PlanError> {
        let criterion =
            Criterion { id: "done".to_owned(), text: "It is done.".to_owned(), check: Some("done".to_owned()) };
        let check = CheckSpec { name: "done".to_owned(), body: CheckBody::python("assert False\n") };
        let step = PlanStep {
            id: "all".to_owned(),
            title: goal.text.lines().next().unwrap_or_default().to_owned(),
            instruction: goal.text,
            category: "functional".to_owned(),
            priority: 5,
            agent: None,
            criteria: vec![criterion],
            checks: vec![check],
            depends_on: Vec::new(),
            on_failure: OnFailure::Skip,
        };
        Ok(WorkPlan { steps: vec![step], notes: goal.context })
    }

    fn replan(_: Goal, plan: WorkPlan, _: Vec<PlanStepResult>) -> Result<WorkPlan, PlanError> {
        Ok(plan)
    }

    fn synthesize(_: Goal, _: Vec<PlanStepResult>) -> Result<Synthesis, PlanError> {
        Ok(Synthesis { answer: "null".to_owned(), confidence: None, conflicts: Vec::new(), unknowns: Vec::new() })
    }
}

longhaul_sdk::export_planner!(Teller);
