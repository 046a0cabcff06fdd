//! A step of confinement that failed, with its reason. Decides nothing: the child's main function says it and ends.

/// Something that could not be done, and the reason.
pub(super) type Failed = (&'static str, std::io::Error);

/// Names what could not be done.
pub(super) fn to<E: Into<std::io::Error>>(doing: &'static str) -> impl Fn(E) -> Failed {
    move |error| (doing, error.into())
}
