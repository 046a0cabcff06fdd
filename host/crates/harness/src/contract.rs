//! Additions to a feature's rubric before the work on it begins. Nothing is ever weakened.
//!
//! An agent, which is not the feature's own, answers with missing criteria and checks:
//!
//! ```json
//! {"checks": [{"name": "rejects-empty", "python": "..."}],
//!  "criteria": [{"id": "empty", "text": "an empty list is refused", "check": "rejects-empty"}]}
//! ```
//!
//! Both may be missing. A criterion or check with an existing name is left out, so nothing that was planned is
//! replaced; native checks are the operator's and cannot be added.

use crate::input::HarnessSetup;
use crate::limits::HarnessLimits;
use crate::plan::{self, PlanError};
use crate::state::Offered;
use crate::texts::line;
use longhaul_core::work::{CheckBody, CheckSpec, Criterion, FeatureSpec};
use serde::Deserialize;

/// An agent's answer.
#[derive(Deserialize)]
struct Proposal {
    #[serde(default)]
    checks: Vec<ProposedCheck>,
    #[serde(default)]
    criteria: Vec<ProposedCriterion>,
}

#[derive(Deserialize)]
struct ProposedCheck {
    name: String,
    python: String,
}

#[derive(Deserialize)]
struct ProposedCriterion {
    id: String,
    text: String,
    #[serde(default)]
    check: Option<String>,
}

/// A feature with additions to its rubric.
#[derive(Clone, Debug, PartialEq)]
pub struct Extended {
    /// The feature, with its earlier rubric unchanged.
    pub spec: FeatureSpec,
    /// The ids of the criteria that were added.
    pub criteria: Vec<String>,
    /// The names of the checks that were added.
    pub checks: Vec<String>,
    /// The rejected additions with their reasons, one line each.
    pub left_out: Vec<String>,
}

/// The reason why nothing was added.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// The answer has another form.
    #[error("the answer is no object with `checks` and `criteria`: {0}")]
    Form(#[from] serde_json::Error),
    /// The answer breaks a cap or a rule of plans.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Adds what `output` proposes to `spec`.
///
/// # Errors
/// Every [`ContractError`]; then the feature keeps its planned rubric.
pub fn extend(
    spec: &FeatureSpec,
    output: &str,
    setup: &HarnessSetup,
    limits: &HarnessLimits,
) -> Result<Extended, ContractError> {
    let proposal = parse(output)?;
    let mut extended = Extended { spec: spec.clone(), criteria: Vec::new(), checks: Vec::new(), left_out: Vec::new() };
    for ProposedCheck { name, python } in proposal.checks {
        extended.add_check(CheckSpec { name, body: CheckBody::Python(python) });
    }
    for ProposedCriterion { id, text, check } in proposal.criteria {
        extended.add_criterion(Criterion { id, text, check });
    }
    extended.judge_by_every_check();
    extended.spec = plan::accept_alone(extended.spec, setup, limits)?;
    Ok(extended)
}

/// Removes the `refused` criteria of an offer from `spec`, and the offered checks that no criterion names then.
pub(crate) fn withdraw(spec: &mut FeatureSpec, offered: &mut Offered, refused: impl Fn(&str) -> bool) {
    let is_refused = |id: &String, offered: &Offered| offered.criteria.contains(id) && refused(id);
    spec.criteria.retain(|criterion| !is_refused(&criterion.id, offered));
    let is_named = |check: &String| spec.criteria.iter().any(|criterion| criterion.check.as_ref() == Some(check));
    spec.checks.retain(|check| !offered.checks.contains(&check.name) || is_named(&check.name));
    offered.criteria.retain(|id| !refused(id));
    offered.checks.retain(is_named);
}

/// Models that finish with a text pass the object inside a string.
fn parse(output: &str) -> Result<Proposal, serde_json::Error> {
    match serde_json::from_str(output)? {
        serde_json::Value::String(inner) => serde_json::from_str(&inner),
        value => serde_json::from_value(value),
    }
}

impl Extended {
    fn add_check(&mut self, check: CheckSpec) {
        if self.spec.checks.iter().any(|there| there.name == check.name) {
            return self.leave_out("check", &check.name);
        }
        self.checks.push(check.name.clone());
        self.spec.checks.push(check);
    }

    fn add_criterion(&mut self, criterion: Criterion) {
        if self.spec.criteria.iter().any(|there| there.id == criterion.id) {
            return self.leave_out("criterion", &criterion.id);
        }
        self.criteria.push(criterion.id.clone());
        self.spec.criteria.push(criterion);
    }

    fn leave_out(&mut self, what: &str, name: &str) {
        let name = line(name, 80);
        self.left_out.push(format!("the proposed {what} `{name}` was left out, since there is one of that name"));
    }

    /// A check that no criterion names would run and decide nothing.
    fn judge_by_every_check(&mut self) {
        for check in self.checks.clone() {
            let is_named = self.spec.criteria.iter().any(|criterion| criterion.check.as_ref() == Some(&check));
            if !is_named && !self.spec.criteria.iter().any(|criterion| criterion.id == check) {
                self.criteria.push(check.clone());
                let text = format!("the check `{check}` passes");
                self.spec.criteria.push(Criterion { id: check.clone(), text, check: Some(check) });
            }
        }
    }
}
