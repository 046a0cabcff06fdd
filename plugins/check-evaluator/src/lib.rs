//! The evaluator `check-evaluator`: what the pinned checks say, and nothing else.
//!
//! A criterion passes when its check exits with 0. A criterion without a check is unknown, never
//! passed. No model is asked, so the same work gets the same marks.

mod marks;

use std::collections::BTreeMap;

use longhaul_sdk::checks::{self, CheckError};
use longhaul_sdk::evaluator::{Evaluator, JudgeError, Rubric, Subject, Verdict};
use longhaul_sdk::types::Criterion;
use longhaul_sdk::{Error, json};

use marks::{Finding, Settings};

struct CheckEvaluator;

impl Evaluator for CheckEvaluator {
    fn judge(_: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
        let settings: Settings = json::read("evaluator settings", &rubric.settings)?;
        let vacuous: Vec<String> =
            checks::list().into_iter().filter(|check| check.vacuous).map(|check| check.name).collect();
        let mut ran = BTreeMap::new();
        let mut verdict = marks::empty(&rubric.criteria);
        for criterion in &rubric.criteria {
            let finding = find(criterion, &mut ran)?;
            marks::add(&mut verdict, criterion, &finding, &vacuous, &settings);
        }
        Ok(verdict)
    }
}

/// Runs the check of a criterion, each check once.
fn find(criterion: &Criterion, ran: &mut BTreeMap<String, Finding>) -> Result<Finding, JudgeError> {
    let Some(name) = &criterion.check else {
        return Ok(Finding::NoCheck);
    };
    if let Some(finding) = ran.get(name) {
        return Ok(finding.clone());
    }
    let finding = match checks::run(name) {
        Ok(report) => Finding::Ran(report),
        // The work may be fine; that this check cannot tell is for the operator to mend.
        Err(error @ (CheckError::UnknownCheck(_) | CheckError::Failed(_))) => {
            Finding::CannotRun(Error::from(error).to_string())
        }
        Err(error) => return Err(Error::from(error).into()),
    };
    ran.insert(name.clone(), finding.clone());
    Ok(finding)
}

longhaul_sdk::export_evaluator!(CheckEvaluator);
