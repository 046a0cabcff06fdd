//! Why a tool cannot be opened. What goes wrong in a call is a `ToolError`, which the model reads.

/// Why a tool cannot be had as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// No such tool.
    #[error("there is no tool `{name}`; there are git, search and shell")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Its settings cannot be read.
    #[error("its settings are wrong: {why}")]
    Settings {
        /// What is wrong, and what to do.
        why: String,
    },
}
