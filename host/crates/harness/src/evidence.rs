//! The evidence behind a pass. A check is evidence only when it failed before the work began and the work changed
//! something: otherwise it passes without the work, and is vacuous.
//!
//! A feature that only vacuous checks decide gets one more criterion, which asks whether the feature's request is met.
//! Refuses to let a feature pass by vacuous checks alone, unless a person agreed to that.

use crate::input::HarnessSetup;
use crate::state::{Consent, Feature};
use longhaul_core::work::{CheckBody, Criterion, Evidence, FeatureSpec};
use std::collections::BTreeMap;

/// The id of the criterion that is added when checks prove nothing.
const AS_ASKED: &str = "as-asked";

/// The evidence for a PASS of each of `criteria`.
pub(crate) fn of(criteria: &[Criterion], vacuous: &[String], is_changed: bool) -> BTreeMap<String, Evidence> {
    let of = |criterion: &Criterion| match &criterion.check {
        Some(check) if !is_changed || vacuous.contains(check) => Evidence::VacuousCheck,
        Some(_) => Evidence::Check,
        None => Evidence::Reading,
    };
    criteria.iter().map(|criterion| (criterion.id.clone(), of(criterion))).collect()
}

/// The same, for an operator's check with weaker evidence than tests and counterexamples.
pub(crate) fn of_feature(
    feature: &Feature,
    criteria: &[Criterion],
    is_changed: bool,
    setup: &HarnessSetup,
) -> BTreeMap<String, Evidence> {
    let mut evidence = of(criteria, &feature.vacuous, is_changed);
    for criterion in criteria {
        let check = feature.spec.checks.iter().find(|check| criterion.check.as_ref() == Some(&check.name));
        let weak = check.and_then(|check| weak(&check.body, setup));
        if let (Some(weak), Some(found)) = (weak, evidence.get_mut(&criterion.id))
            && *found == Evidence::Check
        {
            *found = weak;
        }
    }
    evidence
}

fn weak(body: &CheckBody, setup: &HarnessSetup) -> Option<Evidence> {
    let CheckBody::Native(name) = body else { return None };
    let is_exit = setup.exit_checks.contains(name);
    is_exit.then_some(Evidence::ExitCode).or_else(|| setup.weak_checks.get(name).copied())
}

/// True when only vacuous checks decide.
pub(crate) fn is_vacuous(criteria: &[Criterion], vacuous: &[String], is_changed: bool) -> bool {
    of(criteria, vacuous, is_changed).values().all(|evidence| *evidence == Evidence::VacuousCheck)
}

/// The criteria of a feature. If only vacuous checks would decide, and no person agreed to that, they include whether
/// the work does what the feature asks for.
pub(crate) fn criteria(feature: &Feature) -> Vec<Criterion> {
    let mut criteria = feature.spec.criteria.clone();
    if feature.consent != Some(Consent::Given) && is_vacuous(&criteria, &feature.vacuous, true) {
        criteria.push(as_asked(&feature.spec));
    }
    criteria
}

fn as_asked(spec: &FeatureSpec) -> Criterion {
    let is_taken = |id: &String| spec.criteria.iter().any(|criterion| criterion.id == *id);
    let numbered = (2_u32..).map(|number| format!("{AS_ASKED}-{number}"));
    let id = std::iter::once(AS_ASKED.to_owned()).chain(numbered).find(|id| !is_taken(id)).unwrap_or_default();
    let text = format!(
        "the changed files do what the task asks for (\"{}\"); its checks passed before the work began, so they do not \
         show it",
        spec.title
    );
    Criterion { id, text, check: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn criterion(id: &str, check: Option<&str>) -> Criterion {
        Criterion { id: id.into(), text: "it holds".into(), check: check.map(str::to_owned) }
    }

    #[track_caller]
    fn check(criteria: &[Criterion], vacuous: &[&str], is_changed: bool, expected: bool) {
        let vacuous: Vec<String> = vacuous.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(is_vacuous(criteria, &vacuous, is_changed), expected, "{criteria:?} {vacuous:?} {is_changed}");
    }

    #[test]
    fn a_check_shows_something_when_it_failed_before_and_the_work_changed_something() {
        let (unit, sum, read) = (criterion("a", Some("unit")), criterion("b", Some("sum")), criterion("c", None));
        check(from_ref(&unit), &["unit"], true, true);
        check(from_ref(&unit), &[], true, false);
        check(from_ref(&unit), &[], false, true);
        check(&[unit.clone(), sum.clone()], &["unit"], true, false);
        check(&[unit.clone(), sum], &["unit", "sum"], true, true);
        check(&[unit, read], &["unit"], false, false);
    }

    #[test]
    fn a_feature_of_vacuous_checks_is_judged_by_what_it_asks_for() {
        let spec = FeatureSpec {
            id: "a".into(),
            title: "Add a".into(),
            instruction: "write it".into(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: vec![criterion(AS_ASKED, Some("unit"))],
            checks: vec![],
            depends_on: vec![],
        };
        let mut feature = Feature { vacuous: vec!["unit".into()], ..Feature::new(spec) };
        let ids = |feature: &Feature| criteria(feature).into_iter().map(|criterion| criterion.id).collect::<Vec<_>>();
        assert_eq!(ids(&feature), [AS_ASKED, "as-asked-2"]);
        feature.consent = Some(Consent::Given);
        assert_eq!(ids(&feature), [AS_ASKED]);
    }
}
