//! Errors that keep a test from being carried out. A plugin's mistake is no error of the kit: it is a [`crate::Done`].

use longhaul_core::store::StoreError;
use longhaul_engine::LoadError;
use std::path::PathBuf;

/// Errors that leave nothing to assert on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KitError {
    /// Compiling needs the program `longhaul`, and it is not there.
    #[error(
        "the program `longhaul`, which compiles components, was not found; put it on PATH, name it with LONGHAUL_PROGRAM, or use Kit::with_program"
    )]
    NoProgram,
    /// There is nowhere to keep compiled code.
    #[error("there is no home directory to keep compiled plugins in; name a directory with LONGHAUL_CACHE")]
    NoCache,
    /// The component cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The plugin has another role.
    #[error("plugin `{plugin}` has the role {role}, which exports {}; it has no `{export}`", exports.join(", "))]
    WrongExport {
        /// The name of the plugin.
        plugin: String,
        /// Role of the plugin.
        role: &'static str,
        /// The export that was asked for.
        export: String,
        /// The exports of the plugin.
        exports: Vec<&'static str>,
    },
    /// The input is not what the export takes.
    #[error("the input of `{export}` is wrong: {reason}")]
    Input {
        /// The name of the export.
        export: String,
        /// The fault, for people.
        reason: String,
    },
    /// A file of the test cannot be read.
    #[error("`{}`: {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The fault, for people.
        reason: String,
    },
    /// The store of a scene cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}
