//! What the memory of decisions and the harness agree on about scores.

/// A score between -1 and 1. What is no number says nothing, so it is 0.
#[must_use]
pub fn clamp_score(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score.clamp(-1.0, 1.0) }
}
