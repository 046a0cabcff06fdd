//! The features of runs beside each other, with the last verdict on each.

use crate::trace::TracedRun;
use longhaul_api::comparison::{ComparedFeature, FeatureSide, LastVerdict};
use longhaul_core::work::Mark;
use std::collections::BTreeMap;

/// Features that are listed; more are counted.
const FEATURES_MAX: usize = 500;

/// The features in the order of the first run, then those of the others alone; and the number of those beyond the most
/// that are listed.
pub(crate) fn of(runs: &[TracedRun]) -> (Vec<ComparedFeature>, usize) {
    let (mut features, mut places) = (Vec::<ComparedFeature>::new(), BTreeMap::<&str, usize>::new());
    for (run, TracedRun { status, trace }) in runs.iter().enumerate() {
        for feature in &status.features {
            let id = feature.spec.id.as_str();
            let at = *places.entry(id).or_insert_with(|| {
                let (feature, title) = (id.to_owned(), feature.spec.title.clone());
                features.push(ComparedFeature { feature, title, is_same: false, sides: Vec::new() });
                features.len() - 1
            });
            features[at].sides.push(FeatureSide {
                run,
                status: feature.status,
                reason: feature.why.clone(),
                sessions: feature.sessions,
                verdict: trace.verdict(id).cloned(),
                commit: feature.commit.clone(),
                answer: feature.answer.clone(),
                resource_usage: feature.used,
            });
        }
    }
    for feature in &mut features {
        feature.is_same =
            feature.sides.len() == runs.len() && feature.sides.windows(2).all(|two| alike(&two[0], &two[1]));
    }
    let left_out = features.len().saturating_sub(FEATURES_MAX);
    features.truncate(FEATURES_MAX);
    (features, left_out)
}

fn alike(one: &FeatureSide, other: &FeatureSide) -> bool {
    one.status == other.status && marks(one.verdict.as_ref()) == marks(other.verdict.as_ref())
}

/// The marks of a verdict, and whether the work passed.
fn marks(verdict: Option<&LastVerdict>) -> Option<(bool, BTreeMap<&str, Mark>)> {
    let verdict = verdict?;
    let marks = verdict.judgements.iter().map(|judgement| (judgement.criterion.as_str(), judgement.mark));
    Some((verdict.passed, marks.collect()))
}
