//! The allowed programs, and their paths.
//!
//! A program is requested by the exact word on the operator's list, and looked up only in the operator's PATH. Refuses
//! a path that is not on the list, whatever it leads to, and a program in a directory where an agent can write.

use crate::arguments::shown;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The default PATH for the lookup of programs.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Most programs of a list.
const PROGRAMS_MAX: usize = 500;

/// The operator's list.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    names: Vec<String>,
    path: String,
}

impl Programs {
    /// # Errors
    /// The fault of the list or the PATH, for the operator.
    pub(super) fn of(names: &[String], path: Option<&str>) -> Result<Self, String> {
        if names.is_empty() {
            return Err(
                "`programs` is empty; list what may be started, such as programs = [\"cargo\", \"ls\"], or what runs \
                 without a question under [tools.NAME], allow = [\"cargo test *\"]"
                    .to_owned(),
            );
        }
        if names.len() > PROGRAMS_MAX {
            return Err(format!("`programs` has {} entries; {PROGRAMS_MAX} are the most", names.len()));
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        let is_full = |name: &str| name.starts_with('/') && !name.split('/').any(|part| part == "..");
        let plain = |name: &&String| name.chars().all(|one| one.is_ascii_graphic()) && (is_name(name) || is_full(name));
        if let Some(wrong) = names.iter().find(|name| !plain(name)) {
            return Err(format!("`{}` is no program's name and no full path", shown(wrong)));
        }
        let path = path.unwrap_or(PATH_DEFAULT);
        if let Some(wrong) = path.split(':').find(|dir| !dir.starts_with('/')) {
            return Err(format!(
                "PATH has `{}`; take full paths only, or a program of the tree would be found",
                shown(wrong)
            ));
        }
        Ok(Self { names: names.to_vec(), path: path.to_owned() })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of the program that `word` names. Agents can write in `tree`.
    ///
    /// Not on the list, or missing; see [`Refusal`].
    /// Not on the list, or not there; see [`Refusal`].
    pub(super) fn find(&self, word: &str, tree: &Path) -> Result<PathBuf, Refusal> {
        if !self.names.iter().any(|name| name == word) {
            return Err(Refusal::NotListed);
        }
        let dirs = self.path.split(':').map(|dir| Path::new(dir).join(word));
        let places: Vec<PathBuf> = if word.starts_with('/') { vec![word.into()] } else { dirs.collect() };
        let found = places.into_iter().find(|place| is_program(place)).ok_or(Refusal::NotThere)?;
        let (real, tree) = (found.canonicalize(), tree.canonicalize());
        match (real, tree) {
            (Ok(real), Ok(tree)) if !real.starts_with(&tree) => Ok(found),
            _ => Err(Refusal::InTree),
        }
    }
}

/// The reason why a program is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotListed,
    NotThere,
    /// An agent could have written it.
    InTree,
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
