//! Detects premature completion: the agent finished without expressing doubt, and the round was judged not to pass.
//!
//! The check runs when the verdict arrives, since only the evaluator knows what is unmet; the agent's own checks do not
//! count. The only consequence is an event.

use super::ending::WorkEnd;
use longhaul_core::InvocationId;
use longhaul_core::context::Anxiety;
use longhaul_core::event::Event;
use longhaul_core::work::{Criterion, Outcome, Verdict};
use longhaul_harness::WorkReport;

/// The confidence from which an agent counts as sure that it is done.
const SURE: f64 = 0.8;

/// The event, if the judgement `judged` shows premature completion for the outcome of `agent`.
pub(super) fn sign(agent: InvocationId, outcome: &Outcome, judged: &WorkEnd, criteria: &[Criterion]) -> Option<Event> {
    let WorkEnd::Report(WorkReport::Judged(verdict)) = judged else { return None };
    let criteria = unmet(verdict, criteria);
    let is_sign = claims_all(outcome) && !criteria.is_empty();
    is_sign.then_some(Event::ContextAnxiety { invocation: agent, sign: Anxiety::CriteriaUnmet { criteria } })
}

/// An agent that names what is missing, or says that it is not sure, did not claim completion.
fn claims_all(outcome: &Outcome) -> bool {
    outcome.confidence.is_none_or(|confidence| confidence >= SURE) && outcome.unknowns.is_empty()
}

fn unmet(verdict: &Verdict, criteria: &[Criterion]) -> Vec<String> {
    let unmet = criteria.iter().filter(|one| !verdict.passes(std::slice::from_ref(one)));
    unmet.map(|criterion| criterion.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::work::{Judgement, Mark};

    #[track_caller]
    fn check(confidence: Option<f64>, unknowns: &[&str], mark: Mark, expected: bool) {
        let outcome = Outcome {
            output: "{}".into(),
            summary: String::new(),
            confidence,
            unknowns: unknowns.iter().map(|unknown| (*unknown).to_owned()).collect(),
        };
        let criterion = Criterion { id: "c".into(), text: "it works".into(), check: None };
        let judgement = Judgement { criterion: "c".into(), mark, why: String::new() };
        let judged = WorkEnd::Report(WorkReport::Judged(Verdict { judgements: vec![judgement], issues: Vec::new() }));
        let agent = InvocationId::from_text("r-1/f/1/generate");
        assert_eq!(sign(agent, &outcome, &judged, &[criterion]).is_some(), expected);
    }

    #[test]
    fn only_who_claims_all_and_is_judged_not_to_pass_has_hurried() {
        check(None, &[], Mark::Fail, true);
        check(Some(0.8), &[], Mark::Fail, true);
        check(Some(0.79), &[], Mark::Fail, false);
        check(None, &["whether it compiles"], Mark::Fail, false);
        check(None, &[], Mark::Pass, false);
    }
}
