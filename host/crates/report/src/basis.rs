//! The basis of the pass of a feature, for each criterion.
//!
//! Evidence is that of the last verdict by which the feature passed; where no evaluator judged it, a person's word or
//! the run before. Refuses to call one kind better than another: each says what could fool it.

use longhaul_core::event::{Event, RunEvent};
use longhaul_core::work::{Evidence, FeatureStatus};
use longhaul_harness::Feature;
use longhaul_harness::state::{AS_A_PERSON_SAYS, Consent};
use serde::Serialize;

/// The basis of the pass of a criterion.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Basis {
    pub(super) criterion: String,
    pub(super) rests_on: RestsOn,
}

/// [`Evidence`] of a verdict, and what stands in for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RestsOn {
    Check,
    VacuousCheck,
    ExitCode,
    Junit,
    TestNames,
    Reading,
    Person,
    RunBefore,
}

impl RestsOn {
    fn of(evidence: Evidence) -> Self {
        match evidence {
            Evidence::Check => Self::Check,
            Evidence::VacuousCheck => Self::VacuousCheck,
            Evidence::ExitCode => Self::ExitCode,
            Evidence::Junit => Self::Junit,
            Evidence::TestNames => Self::TestNames,
            Evidence::Reading => Self::Reading,
        }
    }

    /// For people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Check => "tests with counterexamples that fail; code that knows the expected values could pass",
            Self::VacuousCheck => "a check that passed without the work, which shows nothing",
            Self::ExitCode => "an exit code, which the code under test could choose",
            Self::Junit => "a report in the form of JUnit, which the code under test could write",
            Self::TestNames => "tests by name without counterexamples, which the code under test could report",
            Self::Reading => "an evaluator that read the work",
            Self::Person => "a person, who accepted the work as it is",
            Self::RunBefore => "the verdict of the run before, and checks that still pass",
        }
    }
}

/// Of a feature whose checks all passed, or passes without a verdict.
pub(super) fn of(feature: &Feature, events: &[RunEvent]) -> Vec<Basis> {
    let criteria = || feature.spec.criteria.iter().map(|criterion| criterion.id.clone());
    let all_rest_on = |rests_on| criteria().map(|criterion| Basis { criterion, rests_on }).collect::<Vec<_>>();
    let judged = events.iter().rev().find_map(|event| match &event.event {
        Event::Judged { feature: other, passed: true, evidence, .. } if *other == feature.spec.id => Some(evidence),
        _ => None,
    });
    let Some(evidence) = judged else {
        let unjudged = if feature.why == AS_A_PERSON_SAYS { RestsOn::Person } else { RestsOn::RunBefore };
        return if feature.status == FeatureStatus::Passing { all_rest_on(unjudged) } else { Vec::new() };
    };
    let is_consented = feature.consent == Some(Consent::Given);
    // A person said that checks which show nothing are enough.
    if is_consented && evidence.values().all(|evidence| *evidence == Evidence::VacuousCheck) {
        return all_rest_on(RestsOn::Person);
    }
    let of = |(criterion, evidence): (&String, &Evidence)| Basis {
        criterion: criterion.clone(),
        rests_on: RestsOn::of(*evidence),
    };
    evidence.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;
    use longhaul_core::work::{Criterion, FeatureSpec};
    use longhaul_harness::state::BY_THE_RUN_BEFORE;

    fn feature(why: &str, consent: Option<Consent>) -> Feature {
        let spec = FeatureSpec {
            id: "a".into(),
            title: "Add a".into(),
            instruction: String::new(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: vec![Criterion { id: "t".into(), text: "it holds".into(), check: Some("t".into()) }],
            checks: Vec::new(),
            depends_on: Vec::new(),
        };
        Feature { status: FeatureStatus::Passing, why: why.into(), consent, ..Feature::new(spec) }
    }

    #[track_caller]
    fn check(feature: &Feature, judged: &[(bool, Evidence)], expected: &[RestsOn]) {
        let event = |(number, (passed, evidence)): (u64, &(bool, Evidence))| RunEvent {
            run: RunId::from_text("r-1"),
            number,
            at_ms: number,
            event: Event::Judged {
                feature: "a".into(),
                round: 1,
                passed: *passed,
                judgements: Vec::new(),
                evidence: [("t".to_owned(), *evidence)].into(),
            },
        };
        let events: Vec<RunEvent> = (1..).zip(judged).map(event).collect();
        let found: Vec<RestsOn> = of(feature, &events).iter().map(|basis| basis.rests_on).collect();
        assert_eq!(found, expected, "{judged:?}");
    }

    #[test]
    fn each_pass_says_what_it_rests_on() {
        let passing = feature("", None);
        check(&passing, &[(true, Evidence::Junit), (true, Evidence::Check)], &[RestsOn::Check]);
        check(&passing, &[(true, Evidence::TestNames), (false, Evidence::Check)], &[RestsOn::TestNames]);
        check(&passing, &[(true, Evidence::VacuousCheck)], &[RestsOn::VacuousCheck]);
        check(&feature("", Some(Consent::Given)), &[(true, Evidence::VacuousCheck)], &[RestsOn::Person]);
        check(&feature(AS_A_PERSON_SAYS, None), &[(false, Evidence::VacuousCheck)], &[RestsOn::Person]);
        check(&feature(BY_THE_RUN_BEFORE, None), &[], &[RestsOn::RunBefore]);
        check(&Feature { status: FeatureStatus::Failing, ..passing }, &[(false, Evidence::Check)], &[]);
    }
}
