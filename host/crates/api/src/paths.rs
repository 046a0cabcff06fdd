//! Refuses relative paths in requests, and paths that are not UTF-8. The owner of the data directory has another
//! working directory than the caller, so a relative path would name another project or file there; surfaces make paths
//! absolute before they send a request. Requests and records are JSON, which has no other text than UTF-8.
//!
//! It also lists where requests name paths, for those who see requests of all operations as JSON: the client of a
//! server elsewhere, and the server that it asks. It does not decide who may name which path.

use crate::operations::Operation;
use longhaul_core::fault::Fault;
use std::path::Path;

/// The places of requests, as JSON pointers, that name the directory of a project or of the code of an agent.
pub const DIRECTORIES: &[&str] = &[
    "/agent/code/directory",
    "/agent/summary_by/directory",
    "/directory",
    "/model/directory",
    "/patch/code/directory",
    "/patch/summary_by/directory",
    "/run/newest_in",
];

/// The places of requests, as JSON pointers, that name a file.
pub const FILES: &[&str] = &["/file", "/models/record_to", "/models/replay_from", "/with"];

/// Refuses a request with a relative path, or one that is not UTF-8.
///
/// # Errors
/// The first such path, as an invalid request.
pub fn expect_whole_paths(operation: &impl Operation) -> Result<(), Fault> {
    operation.paths().into_iter().try_for_each(expect_whole)
}

/// Refuses a relative path, which would mean another file in another working directory, and a path that is not UTF-8.
///
/// # Errors
/// The path is relative, or not UTF-8.
pub fn expect_whole(path: &Path) -> Result<(), Fault> {
    if path.to_str().is_none() {
        return Err(Fault::invalid(format!(
            "`{}` has bytes that are not UTF-8 in its path, which cannot be stored; rename it, or work elsewhere",
            path.display()
        )));
    }
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "`{}` is a relative path, which means nothing here; write the whole one",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::ListApprovals;
    use crate::graphs::{DiagnoseStep, ModelChoice};
    use crate::journal::ReplayInvocations;
    use crate::operations::OperationCall;
    use crate::rehearsals::RehearseRuns;
    use crate::runs::{BeginRun, RunRef, ShowRun};
    use crate::upkeep::WriteBackup;
    use longhaul_models::set::ModelOptions;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    /// The paths at the listed places of a request. Those that the request declares are among them.
    fn listed<O: Operation>(request: &O) -> Vec<String> {
        let written = OperationCall::of(request).expect("it is written").request;
        let places = DIRECTORIES.iter().chain(FILES);
        let found: Vec<String> = places.filter_map(|at| written.pointer(at)?.as_str()).map(str::to_owned).collect();
        for declared in request.paths() {
            assert!(found.iter().any(|path| Path::new(path) == declared), "{}: {}", O::NAME, declared.display());
        }
        found
    }

    #[test]
    fn the_paths_of_requests_stand_at_the_listed_places() {
        let (project, file) = (PathBuf::from("/project"), PathBuf::from("/file"));
        let newest = || RunRef::NewestIn(project.clone());
        let models = ModelOptions { replay_from: Some(file.clone()), record_to: None };
        let (plan, plan_only, sessions, again) = (None, false, None, false);
        let run = BeginRun { directory: project.clone(), models, plan, plan_only, sessions, again };
        assert_eq!(listed(&run), ["/project", "/file"]);
        assert_eq!(listed(&ShowRun { run: newest() }), ["/project"]);
        assert_eq!(listed(&ListApprovals { run: Some(newest()), open: true }), ["/project"]);
        assert_eq!(listed(&ShowRun { run: RunRef::Named("r-1".to_owned()) }), Vec::<String>::new());
        let replay = ReplayInvocations { run: newest(), invocation: None, with: Some(file.clone()) };
        assert_eq!(listed(&replay), ["/project", "/file"]);
        let (directory, with) = (Some(project.clone()), Some(file.clone()));
        assert_eq!(listed(&RehearseRuns { directory, with, ..RehearseRuns::default() }), ["/project", "/file"]);
        let model = Some(ModelChoice { directory: project.clone(), model: None });
        let (name, step, token) = ("g".to_owned(), None, String::new());
        assert_eq!(listed(&DiagnoseStep { name, step, model, token }), ["/project"]);
        assert_eq!(listed(&WriteBackup { file, with_secrets: false }), ["/file"]);
    }

    /// A project below a directory with such a name used to end with `path contains invalid UTF-8 characters`.
    #[test]
    fn a_path_is_absolute_and_text_or_is_refused_with_what_to_do() {
        let refused =
            |path: &[u8]| expect_whole(Path::new(OsStr::from_bytes(path))).err().map(|error| error.to_string());
        assert_eq!(refused(b"/with spaces/shop"), None);
        assert!(refused(b"shop").is_some_and(|error| error.contains("relative path")));
        assert!(refused(b"/shop-\xff").is_some_and(|error| error.contains("not UTF-8") && error.contains("rename it")));
    }
}
