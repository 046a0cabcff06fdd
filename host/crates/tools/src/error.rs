//! Reasons why a tool cannot be opened. An error of a call is a `ToolError`, which the model reads.

/// The reason why a tool is unavailable with its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// No such tool.
    #[error("there is no tool `{name}`; there are git, search and shell")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// Its settings are invalid.
    #[error("its settings are wrong: {why}")]
    Settings {
        /// The fault, with its remedy.
        why: String,
    },
}
