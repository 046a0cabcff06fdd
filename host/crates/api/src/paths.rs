//! Every path of a request is whole: whoever owns the data directory stands in another directory than whoever asks,
//! and a relative path would name another project, or another file, there. Surfaces make paths whole; here they are
//! refused where one was forgotten.

use crate::operations::Operation;
use crate::request::Request;
use longhaul_core::fault::Fault;
use longhaul_models::set::ModelOptions;
use std::path::{Path, PathBuf};

impl Request {
    /// Refuses a request with a relative path.
    ///
    /// # Errors
    /// The first of them.
    pub fn expect_whole_paths(&self) -> Result<(), Fault> {
        self.paths().into_iter().try_for_each(expect_whole)
    }

    /// Those that nothing behind checks: agents and backups do it themselves, and so does whoever looks for a run.
    fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Run { directory, models, .. } => with_models(directory, models),
            Self::Ask { question } => with_models(&question.directory, &question.models),
            Self::CreateProject { directory, .. }
            | Self::AcceptMcp { directory, .. }
            | Self::DescribeMcp { directory, .. } => vec![directory],
            Self::Replay { with, .. } => with.iter().map(PathBuf::as_path).collect(),
            _ => Vec::new(),
        }
    }
}

fn with_models<'a>(directory: &'a Path, models: &'a ModelOptions) -> Vec<&'a Path> {
    let files = models.replay_from.iter().chain(&models.record_to).map(PathBuf::as_path);
    std::iter::once(directory).chain(files).collect()
}

/// Refuses a request with a relative path.
///
/// # Errors
/// The first of them.
pub fn expect_whole_paths(operation: &impl Operation) -> Result<(), Fault> {
    operation.paths().into_iter().try_for_each(expect_whole)
}

/// Refuses a path that means something else in another directory.
///
/// # Errors
/// Where it is relative.
pub fn expect_whole(path: &Path) -> Result<(), Fault> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "`{}` is a relative path, which means nothing here; write the whole one",
        path.display()
    )))
}
