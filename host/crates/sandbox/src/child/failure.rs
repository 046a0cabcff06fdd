//! A failed step of confinement, with its reason. Decides nothing: the child's main function reports it and ends.

/// The failed action, and the reason.
pub(super) type Failed = (&'static str, std::io::Error);

/// Names the failed action.
pub(super) fn to<E: Into<std::io::Error>>(doing: &'static str) -> impl Fn(E) -> Failed {
    move |error| (doing, error.into())
}
