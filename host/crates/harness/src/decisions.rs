//! The common rule for scores, for the memory of decisions and the harness.

/// Clamps a score to -1 to 1. NaN becomes 0.
#[must_use]
pub fn clamp_score(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score.clamp(-1.0, 1.0) }
}
