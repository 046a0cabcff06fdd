//! The reasons why there is nothing to plan.

/// A crash test that cannot be planned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrashtestError {
    /// A pattern fits no point that the run reaches.
    #[error("`{pattern}` fits no point that this run reaches; it reaches {}", .reached.join(", "))]
    NoSuchPoint {
        /// The pattern.
        pattern: String,
        /// The names of the points that there are.
        reached: Vec<String>,
    },
    /// The run reached no point at all.
    #[error("the run reached no durable point, so there is nowhere to kill it; see its output with --keep")]
    NoPoints,
}
