//! The project of the demo: three small functions in Python, with the checks that decide them.

use crate::machine;
use longhaul_api::paths::expect_whole;
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context as _, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const NAME: &str = "longhaul-demo";
const CONFIG: &str = include_str!("longhaul.toml");
const GOAL: &str = include_str!("GOAL.md");

/// Replies of the small model to the requests of the demo, and the name of their file.
const RECORDING: &str = include_str!("../../embedded/recording.jsonl");
pub(super) const RECORDING_FILE: &str = "recording.jsonl";

/// The model of the demo.
#[derive(Clone, Debug)]
pub(super) struct DemoModel {
    /// Its name under `[models]`. A recording answers the requests of one name.
    pub(super) name: &'static str,
    /// Its table in `longhaul.toml`.
    pub(super) table: String,
    /// Most tokens of a reply.
    pub(super) output_tokens_max: u32,
}

impl DemoModel {
    /// The configuration of the demo.
    pub(super) fn config(&self) -> String {
        let tokens = self.output_tokens_max.to_string();
        CONFIG
            .replace("{{model}}", &self.table)
            .replace("{{name}}", self.name)
            .replace("{{output_tokens_max}}", &tokens)
    }
}

/// Refuses a place where the project cannot be made.
pub(super) fn expect_free(directory: &Path) -> fault::Result<()> {
    const OTHER: &str = "name another directory with --directory DIR";
    expect_whole(directory)?;
    let shown = directory.display();
    match std::fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!("`{shown}` is not empty; {OTHER}"),
        Err(error) if error.kind() == ErrorKind::NotADirectory => bail!("`{shown}` is no directory; {OTHER}"),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot read `{shown}`; {OTHER}"));
        }
        Ok(false) | Err(_) => {}
    }
    if let Some(repository) = machine::repository_of(directory) {
        bail!("`{shown}` is in the git repository `{}`; {OTHER}", repository.display());
    }
    Ok(())
}

/// Makes the directory with a repository, whose first commit holds the project. The path has no links in it.
pub(super) fn make(directory: &Path, model: &DemoModel) -> fault::Result<PathBuf> {
    let config = model.config();
    Config::parse(&config)?;
    let mut files = vec![(FILE, config.as_str()), ("GOAL.md", GOAL)];
    if config.contains(RECORDING_FILE) {
        files.push((RECORDING_FILE, RECORDING));
    }
    longhaul_worktree::new_project_with(directory, NAME, &files)?;
    directory.canonicalize().with_context(|| format!("`{}` was made and is gone", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_taken_is_refused_with_the_option() {
        let directory = tempfile::tempdir().expect("a directory");
        let check = |path: &Path, said: &str| {
            let refused = expect_free(path).expect_err("taken").to_string();
            assert!(refused.contains(said) && refused.contains("--directory DIR"), "{refused}");
        };
        assert!(expect_free(directory.path()).is_ok(), "an empty one");
        assert!(expect_free(&directory.path().join("new")).is_ok());
        std::fs::write(directory.path().join("file"), "").expect("ours");
        check(directory.path(), "is not empty");
        check(&directory.path().join("file"), "is no directory");
        std::fs::create_dir(directory.path().join(".git")).expect("ours");
        check(&directory.path().join("new"), "is in the git repository");
    }

    #[test]
    fn the_recording_has_a_reply_for_each_feature_of_the_goal() {
        for id in GOAL.lines().filter_map(|line| line.strip_prefix("- id: ")) {
            assert!(RECORDING.contains(&format!("\"within\":\"f-{id}/1/generate\"")), "{id}");
        }
        assert_eq!(GOAL.matches("## Feature: ").count(), 3);
    }
}
