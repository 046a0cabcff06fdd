//! Grants of a project to a program by a path of its `longhaul.toml`.
//!
//! A person agrees to the words of a grant. Files in the project are the repository's, which may replace them by links
//! with any pull or merge: such a path must also be in the project by its real name. Accepts every path outside of the
//! project, since a person agreed to its words, and opens nothing.

use crate::launch::without_dots;
use std::path::{Path, PathBuf};

/// A granted path that a link in the project leads out of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` leads out of the project by a link, to `{}`; to allow it, name that path itself, which is a power to agree to",
    .path.display(), .real.display()
)]
pub struct LeadsOut {
    /// The path as granted.
    pub path: PathBuf,
    /// Its real path.
    pub real: PathBuf,
}

/// The full path of the grant `path`, which is full or relative to the top of `project`.
///
/// # Errors
/// When a link in the project leads it out of there.
pub fn granted(project: &Path, path: &Path) -> Result<PathBuf, LeadsOut> {
    let whole = without_dots(&project.join(path));
    // A missing path cannot be shown, either.
    let (Ok(top), Ok(real)) = (project.canonicalize(), whole.canonicalize()) else { return Ok(whole) };
    let mut passed = whole.ancestors().filter_map(|dir| dir.canonicalize().ok());
    if !real.starts_with(&top) && passed.any(|dir| dir.starts_with(&top)) {
        return Err(LeadsOut { path: path.to_owned(), real });
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_grant_of_the_project_stays_in_it_whatever_the_repository_makes_of_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().canonicalize().expect("its name");
        let (project, keys) = (top.join("project"), top.join("keys"));
        std::fs::create_dir_all(project.join("real/deep")).expect("made");
        std::fs::create_dir(&keys).expect("made");
        std::fs::write(keys.join("id"), "").expect("written");
        for (target, link) in [("real", "docs"), ("../keys", "out"), ("/", "root"), ("../project", "self")] {
            symlink(target, project.join(link)).expect("made");
        }
        symlink(&project, top.join("alias")).expect("made");
        let check = |path: &str, expected: Result<&str, &str>| {
            let whole = |path: &str| without_dots(&project.join(path));
            let expected = expected.map(whole).map_err(whole);
            assert_eq!(granted(&project, Path::new(path)).map_err(|error| error.real), expected, "{path}");
        };
        for inside in ["real", "docs", "docs/deep", "self/real", "absent", "out/../real"] {
            check(inside, Ok(inside));
        }
        for (path, real) in [("out", "../keys"), ("out/id", "../keys/id"), ("./out", "../keys"), ("root/usr", "/usr")] {
            check(path, Err(real));
        }
        // Another name of the project leads to the same links.
        for full in [project.join("out"), top.join("alias/out"), project.join("real/../out")] {
            check(full.to_str().expect("text"), Err("../keys"));
        }
        for outside in ["../keys", "/usr", "../alias/real", "out/../../keys"] {
            check(outside, Ok(outside));
        }
        let said = granted(&project, Path::new("out")).expect_err("it leads out").to_string();
        assert!(said.contains("`out`") && said.contains(keys.to_str().expect("text")), "{said}");
    }
}
