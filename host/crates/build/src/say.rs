//! The callback that is told of each step that takes long. It gets one line at a time and answers nothing.

/// Where a line goes that says what is done: a fetch, a build, a wait.
pub type ProgressLine = fn(&str);
