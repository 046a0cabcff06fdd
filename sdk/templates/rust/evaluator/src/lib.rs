//! The evaluator `{{name}}`: a criterion passes when its text occurs in the output.
//!
//! It sees the output and the rubric, never how the output came to be.

use longhaul_sdk::evaluator::{Evaluator, JudgeError, Judgement, Mark, Rubric, Subject, Verdict};
use longhaul_sdk::types::{Criterion, Issue};

struct Plugin;

impl Evaluator for Plugin {
    fn judge(subject: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
        if rubric.criteria.is_empty() {
            return Err(JudgeError::Failed("a rubric without criteria cannot be judged".to_owned()));
        }
        let mut verdict = Verdict { judgements: Vec::new(), issues: Vec::new() };
        for criterion in &rubric.criteria {
            let passes = subject.output.contains(&criterion.text);
            verdict.judgements.push(judgement(criterion, passes));
            if !passes {
                // Advice for the agent before its next round.
                let text = format!("the output does not say: {}", criterion.text);
                verdict.issues.push(Issue { criterion: Some(criterion.id.clone()), text });
            }
        }
        Ok(verdict)
    }
}

fn judgement(criterion: &Criterion, passes: bool) -> Judgement {
    let (mark, reason) =
        if passes { (Mark::Pass, "the output says it") } else { (Mark::Fail, "the output does not say it") };
    Judgement { criterion: criterion.id.clone(), mark, reason: reason.to_owned() }
}

longhaul_sdk::export_evaluator!(Plugin);
