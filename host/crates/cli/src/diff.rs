//! `longhaul diff`: shows the changes of a run, or of one of its features.
//!
//! The command reads objects of the repository and writes nothing. A program gets the bytes as `git apply` takes them.
//! A terminal gets colours, and no control characters of the files.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::terminal;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{CommitLog, ListCommits, ShowRun};
use longhaul_api::runs::{RunRef, Status};
use longhaul_api::wire::changes::DiffView;
use longhaul_config::Config;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::text::printable;
use longhaul_home::variable;
use longhaul_worktree::{DiffForm, Logged, Protected, UserRepository};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The run, or the beginning of its name; a name without the prefix `r-` is a feature. Default: the newest run of
    /// this project.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Show only the commit of this feature.
    feature: Option<String>,
    /// Show the files and the number of their changed lines, instead of the lines.
    #[arg(long)]
    stat: bool,
}

/// The commits of a run, and their repository.
pub(super) struct RunCommits {
    pub run: RunId,
    pub status: Status,
    pub directory: PathBuf,
    pub branch: String,
    pub base: String,
    /// Newest first.
    pub commits: Vec<Logged>,
}

/// Longest line of names of protected files, in bytes.
const PROTECTED_BYTES_MAX: usize = 2_000;

/// The most commits of a run that are searched.
const COMMITS_MAX: usize = 100_000;

/// Runs the command.
pub async fn run(context: &Context, args: DiffArgs) -> fault::Result<Exit> {
    let DiffArgs { run, feature, stat } = args;
    let (run, feature) = match (run, feature) {
        (Some(word), None) if !word.starts_with("r-") => (None, Some(word)),
        named => named,
    };
    let found = RunCommits::ask(context, RunArg { named: run }).await?;
    let project = UserRepository::open(&found.directory)?;
    let (from, to) = match &feature {
        None => (found.base.clone(), found.end()?),
        Some(feature) => {
            let commit = found.of_feature(feature)?;
            (project.parent_of(&commit)?.unwrap_or_else(|| found.base.clone()), commit)
        }
    };
    let form = if stat { DiffForm::Stat } else { DiffForm::Patch };
    let text = project.diff(&from, &to, form)?;
    let protected = protected(&found.directory, &project.changed_paths(&from, &to)?);
    if context.json {
        let (run, diff) = (found.run.to_string(), String::from_utf8_lossy(&text).into_owned());
        print_json(&DiffView { run, feature, from, to, diff, protected })?;
        return Ok(Exit::Done);
    }
    if !protected.is_empty() {
        // On standard error, since a program may apply the bytes on standard output.
        errln!("protected files are changed: {}", printable(&protected.join(", "), PROTECTED_BYTES_MAX));
    }
    print(&text);
    Ok(Exit::Done)
}

/// The protected paths among `paths`, by the project's configuration if it can be read.
pub(super) fn protected(directory: &Path, paths: &[String]) -> Vec<String> {
    let rules = Config::read(directory).map(|config| longhaul_config::protect::protected(&config, directory));
    rules.unwrap_or_else(|_| Protected::new(&[], &[])).among_paths(paths)
}

impl RunCommits {
    pub(super) async fn ask(context: &Context, run: RunArg) -> fault::Result<Self> {
        context.client.keep();
        let status = context.run_status(ShowRun { run: context.which(run) }).await?;
        let run = status.summary.run.clone();
        let which = RunRef::Named(run.to_string());
        let log = context.commit_log(ListCommits { run: which, limit: COMMITS_MAX, reverted: false }).await?;
        context.client.release().await;
        let CommitLog { branch, base, commits } = log;
        let directory = status.summary.directory.clone();
        Ok(Self { run, status, directory, branch, base, commits })
    }

    /// The newest commit of this run. A later run may have added commits to its branch.
    fn end(&self) -> fault::Result<String> {
        let is_own = |commit: &&Logged| commit.run.as_deref().is_none_or(|run| run == self.run.as_str());
        match self.commits.iter().find(is_own) {
            Some(newest) => Ok(newest.commit.clone()),
            None => {
                bail!("run {} has committed nothing yet; `longhaul status {}` shows its features", self.run, self.run)
            }
        }
    }

    fn of_feature(&self, id: &str) -> fault::Result<String> {
        let Some(feature) = self.status.features.iter().find(|feature| feature.spec.id == id) else {
            let known: Vec<&str> = self.status.features.iter().map(|feature| feature.spec.id.as_str()).collect();
            bail!("run {} has no feature `{id}`; it has {}", self.run, known.join(", "));
        };
        let is_its = |commit: &&Logged| {
            commit.feature.as_deref() == Some(id) && commit.run.as_deref().is_none_or(|run| run == self.run.as_str())
        };
        let newest = self.commits.iter().find(is_its).map(|commit| commit.commit.clone());
        newest.or_else(|| feature.commit.clone()).with_context(|| {
            let word = super::show::feature_word(feature.status);
            format!("feature `{id}` of run {} has no commit: it is {word}", self.run)
        })
    }
}

/// Prints a diff: as it is for a program, in colours and cleaned for a terminal.
pub(super) fn print(text: &[u8]) {
    if !std::io::stdout().is_terminal() {
        return terminal::out_bytes(text);
    }
    let has_colours = has_colours(&variable);
    for line in String::from_utf8_lossy(text).lines() {
        terminal::out_coloured(line, colour(line).filter(|_| has_colours));
    }
}

/// True when the terminal has colours and its user wants them.
fn has_colours(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    // https://no-color.org: any value but an empty one.
    let is_refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && variable("TERM").is_none_or(|term| term != "dumb")
}

/// The colour that git gives to a line of a diff.
fn colour(line: &str) -> Option<&'static str> {
    match line {
        _ if line.starts_with("+++ ") || line.starts_with("--- ") || line.starts_with("diff ") => Some("1"),
        _ if line.starts_with("@@") => Some("36"),
        _ if line.starts_with('+') => Some("32"),
        _ if line.starts_with('-') => Some("31"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_colours_of_git() {
        let found = ["+a", "-a", "@@ -1 +1 @@", "+++ b/a", "diff --git a/a b/a", " a"].map(colour);
        assert_eq!(found, [Some("32"), Some("31"), Some("36"), Some("1"), Some("1"), None]);
    }

    #[test]
    fn colours_are_for_those_who_want_them() {
        let with =
            |name: &'static str, value: &'static str| move |asked: &str| (asked == name).then(|| value.to_owned());
        assert!(has_colours(&|_| None) && has_colours(&with("NO_COLOR", "")));
        assert!(!has_colours(&with("NO_COLOR", "1")) && !has_colours(&with("TERM", "dumb")));
    }
}
