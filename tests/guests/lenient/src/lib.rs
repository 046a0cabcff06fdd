//! The evaluator `lenient`: each criterion passes, whatever was done, for tests that are about something else.

use longhaul_sdk::evaluator::{Evaluator, JudgeError, Judgement, Mark, Rubric, Subject, Verdict};

struct Lenient;

impl Evaluator for Lenient {
    fn judge(_: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
        let pass = |criterion: longhaul_sdk::types::Criterion| Judgement {
            criterion: criterion.id,
            mark: Mark::Pass,
            reason: "it is said to be so".to_owned(),
        };
        Ok(Verdict { judgements: rubric.criteria.into_iter().map(pass).collect(), issues: Vec::new() })
    }
}

longhaul_sdk::export_evaluator!(Lenient);
