//! The evaluator `rubric-evaluator`: pinned checks where there are any, a model for the rest.
//!
//! Where a criterion has a check, the check decides and the model is not asked. What the model
//! judges is data to it: fenced, and never to be obeyed. What it leaves out is unknown, never
//! passed, and it gives no scores.

mod judge;
mod prompt;
mod settings;

use longhaul_sdk::evaluator::{Evaluator, JudgeError, Rubric, Subject, Verdict};
use longhaul_sdk::types::Issue;

use settings::Settings;

struct RubricEvaluator;

impl Evaluator for RubricEvaluator {
    fn judge(subject: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
        let settings: Settings = longhaul_sdk::json::read("evaluator settings", &rubric.settings)?;
        let settings = settings.clamped();
        let mut verdict = Verdict { judgements: Vec::new(), issues: Vec::new() };
        if rubric.criteria.is_empty() {
            let text = "there is nothing to judge by: the feature has no criteria".to_owned();
            verdict.issues.push(Issue { criterion: None, text });
            return Ok(verdict);
        }
        let asked: Vec<_> = rubric.criteria.iter().filter(|criterion| criterion.check.is_none()).collect();
        let marks = judge::by_model(&subject, &asked, &settings)?;
        for criterion in &rubric.criteria {
            let found = match &criterion.check {
                Some(name) => judge::by_check(name, &settings)?,
                None => judge::of_model(&marks, &criterion.id),
            };
            judge::add(&mut verdict, criterion, found);
        }
        Ok(verdict)
    }
}

longhaul_sdk::export_evaluator!(RubricEvaluator);
