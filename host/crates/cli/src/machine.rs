//! The models, plugins and other programs of this machine, as `doctor`, `onboard` and the bare command find them.
//!
//! Nothing is started, and of keys only the names of their variables are read.

use longhaul_core::fault::{self, Fault};
use longhaul_home::{Home, cache, carried_plugins, variable};
use longhaul_models::discover::PORTS;
use longhaul_models::pull::{DEFAULT, path_of};
use longhaul_models::{Discovery, discover};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Models that this machine could use.
pub(super) struct FoundModels {
    /// Keys in the environment, and model servers on loopback.
    pub(super) discovery: Discovery,
    /// The small model that was fetched. None: it was not.
    pub(super) local: Option<PathBuf>,
}

/// Looks for models. Takes at most about 300 ms.
pub(super) async fn models() -> fault::Result<FoundModels> {
    let discovery = discover(&variable, &PORTS).await;
    let local = path_of(DEFAULT, &cache()?).filter(|path| path.is_file());
    Ok(FoundModels { discovery, local })
}

/// The plugins of these names that are not found.
pub(super) fn missing<'a>(names: &[&'a str], project: Option<&Path>, home: &Home) -> Vec<&'a str> {
    names.iter().copied().filter(|name| longhaul_plugins::find(name, project, home).is_err()).collect()
}

/// The plugins that are missing, and the reason or the remedy.
pub(super) fn missing_words(missing: &[&str]) -> String {
    words_of_missing(missing, carried_plugins().err().as_ref())
}

/// `why` is the reason why the plugins that this program carries could not be unpacked.
fn words_of_missing(missing: &[&str], why: Option<&Fault>) -> String {
    let names = missing.join(", ");
    match why {
        Some(why) => format!("missing: {names}; {why:#}"),
        None => format!("missing: {names}; build them with `cargo xtask plugins`, or set LONGHAUL_PLUGINS"),
    }
}

/// True when a program of this name is on PATH.
pub(super) fn has_program(name: &str) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| is_program(&directory.join(name)))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The repository around a directory, by the nearest `.git` above it.
pub(super) fn repository_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|above| above.join(".git").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_file_that_may_be_executed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tool");
        assert!(!is_program(&path) && !is_program(directory.path()));
        std::fs::write(&path, "").expect("ours");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("ours");
        assert!(!is_program(&path));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
        assert!(is_program(&path));
    }

    /// `longhaul onboard` used to advise a build to users whose cache could not be written.
    #[test]
    fn missing_plugins_are_told_with_the_reason_why_they_are() {
        let words = words_of_missing(&["react", "files"], None);
        assert!(words.starts_with("missing: react, files; build them with"), "{words}");
        let words = words_of_missing(&["react"], Some(&Fault::msg("cannot create the directory `/cache`")));
        assert_eq!(words, "missing: react; cannot create the directory `/cache`");
    }

    #[test]
    fn the_repository_is_the_nearest_one_above() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(directory.path().join(".git")).expect("ours");
        std::fs::create_dir_all(&below).expect("ours");
        assert_eq!(repository_of(&below), Some(directory.path()));
    }
}
