//! The set-up of a planned run: its features, and the limits that differ from the default ones.

use super::{Bench, feature};
use longhaul_core::work::FeatureSpec;
use longhaul_harness::HarnessLimits;

pub(crate) struct RunSetup {
    limits: HarnessLimits,
    features: Vec<FeatureSpec>,
}

/// A run of features with these ids, of which none depends on another.
pub(crate) fn run_of(ids: &[&str]) -> RunSetup {
    run_with(ids.iter().map(|id| feature(id, &[])).collect::<Vec<_>>())
}

/// A run of these features.
pub(crate) fn run_with(features: impl Into<Vec<FeatureSpec>>) -> RunSetup {
    RunSetup { limits: HarnessLimits::default(), features: features.into() }
}

impl RunSetup {
    pub(crate) fn limited(mut self, change: impl FnOnce(&mut HarnessLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The run once its plan is accepted. Its log begins here.
    #[track_caller]
    pub(crate) fn planned(self) -> Bench {
        Bench::planned(self.limits, self.features)
    }
}
