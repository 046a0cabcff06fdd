//! The callback for the progress of each slow step. It gets one line at a time and returns nothing.

/// A callback for lines of progress: a fetch, a build, a wait.
pub type ProgressLine = fn(&str);
