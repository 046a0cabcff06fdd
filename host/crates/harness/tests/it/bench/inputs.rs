//! Inputs of a person that several tests send.

use longhaul_core::work::FeatureSpec;
use longhaul_harness::Input;

pub(crate) fn resume() -> Input {
    Input::Resume { retry_failing: false, limits: None }
}

/// The answer `use port 80` to the question of a feature, or of the run.
pub(crate) fn answered(feature: Option<&str>) -> Input {
    Input::Answered { feature: feature.map(Into::into), answer: "use port 80".into() }
}

pub(crate) fn added(spec: FeatureSpec) -> Input {
    Input::FeatureAdded { spec }
}

pub(crate) fn edited(spec: FeatureSpec) -> Input {
    Input::FeatureEdited { spec }
}

pub(crate) fn dropped(id: &str) -> Input {
    Input::FeatureDropped { feature: id.into() }
}
