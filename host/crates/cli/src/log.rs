//! `longhaul log`: the commits of a run, and the changes of one of them.

use super::context::Context;
use super::diff;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::commits::ShowCommit;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{CommitLog, ListCommits};
use longhaul_api::wire::commits::CommitChanges;
use longhaul_api::wire::runs::Log;
use longhaul_client::which;
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_report::messages;
use longhaul_worktree::{CommitDiff, CommitFile, Logged};

/// Most characters of a subject on a line for people. `--json` has all of it.
const SUBJECT_CHARS_MAX: usize = 100;

#[derive(Args, Debug)]
pub struct LogArgs {
    /// Show this commit with the lines that it changed: its name, or the beginning of it.
    #[arg(conflicts_with_all = ["limit", "reverted"])]
    commit: Option<String>,
    /// The run, or the beginning of its name. Default: the newest of this project.
    #[arg(long)]
    run: Option<String>,
    /// The most commits to list, the newest first.
    #[arg(long, default_value_t = 1_000)]
    limit: usize,
    /// Show commits that reverts removed.
    #[arg(long)]
    reverted: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: LogArgs) -> fault::Result<Exit> {
    let LogArgs { commit, run, limit, reverted } = args;
    let run = which(run, &context.project);
    if let Some(commit) = commit {
        return show(context, ShowCommit { run, commit }).await;
    }
    let log = context.commit_log(ListCommits { run, limit, reverted }).await?;
    if context.json {
        print_json(&Log::from(log))?;
        return Ok(Exit::Done);
    }
    let CommitLog { base, commits, .. } = &log;
    commits.iter().for_each(|commit| outln!("{}", line(commit)));
    if !reverted {
        outln!("{}  the run began here", messages::short(base));
    }
    Ok(Exit::Done)
}

async fn show(context: &Context, request: ShowCommit) -> fault::Result<Exit> {
    let shown = context.commit_diff(request).await?;
    if context.json {
        print_json(&CommitChanges::from(shown))?;
        return Ok(Exit::Done);
    }
    diff::print(text_of(&shown).as_bytes());
    if let Some(missing) = missing(&shown) {
        // On standard error, since a program may read the lines on standard output.
        errln!("{missing}");
    }
    Ok(Exit::Done)
}

/// The commit as git shows one: its head, its message, and the changes of each file.
fn text_of(shown: &CommitDiff) -> String {
    let CommitDiff { logged, message, files, counts, .. } = shown;
    let mut text = format!("commit {}\nDate: {}\n\n", logged.commit, messages::moment(logged.at_ms));
    message.lines().for_each(|line| text += &format!("    {line}\n"));
    let files_words = messages::counted(counts.files, "file");
    text += &format!("\n{files_words}, +{} -{}\n", counts.added_lines, counts.removed_lines);
    for file in files {
        text += &match file {
            CommitFile { is_binary: true, path, .. } => format!("Binary {path}\n"),
            CommitFile { patch, path, .. } if patch.is_empty() => format!("Not shown: {path}\n"),
            CommitFile { patch, .. } if patch.ends_with('\n') => patch.clone(),
            CommitFile { patch, .. } => format!("{patch}\n"),
        };
    }
    text
}

/// The changes that the text does not have, and the command that has them.
fn missing(shown: &CommitDiff) -> Option<String> {
    let cut = shown.files.iter().filter(|file| file.is_cut).count();
    let missing = cut + shown.files_left_out;
    (missing > 0).then(|| {
        format!(
            "{missing} of {} are not shown whole; `git show {}` shows them",
            messages::counted(shown.counts.files, "file"),
            shown.logged.commit
        )
    })
}

fn line(commit: &Logged) -> String {
    let Logged { commit, at_ms, subject, feature, outcome, .. } = commit;
    let or_none = |text: &Option<String>| text.as_deref().map_or("-".to_owned(), shown);
    format!(
        "{}  {}  {}  {}  {}",
        messages::short(commit),
        messages::moment(*at_ms),
        or_none(feature),
        or_none(outcome),
        shown(subject)
    )
}

/// The text on one line, cut to a length.
fn shown(text: &str) -> String {
    let mut shown = printable(&text.chars().take(SUBJECT_CHARS_MAX).collect::<String>(), usize::MAX);
    if text.chars().count() > SUBJECT_CHARS_MAX {
        shown.push_str(" ...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_worktree::{CommitChange, CommitCounts};

    fn changes(files: Vec<CommitFile>, files_left_out: usize) -> CommitDiff {
        let counts = CommitCounts {
            files: files.len() + files_left_out,
            added_lines: 2,
            removed_lines: 1,
            ..CommitCounts::default()
        };
        let logged = Logged {
            commit: "0123456789abcdef".into(),
            at_ms: 1_700_000_000_000,
            subject: "Add it".into(),
            feature: None,
            outcome: None,
            run: None,
        };
        CommitDiff { logged, parent: None, message: "Add it\n\nAs asked.\n".into(), files, files_left_out, counts }
    }

    fn changed(path: &str, patch: &str, is_binary: bool, is_cut: bool) -> CommitFile {
        CommitFile {
            path: path.into(),
            old_path: None,
            change: CommitChange::Modified,
            patch: patch.into(),
            added_lines: 1,
            removed_lines: 0,
            is_binary,
            is_cut,
        }
    }

    #[test]
    fn a_commit_is_shown_with_its_message_and_its_files() {
        let files = vec![
            changed("a", "diff --git a/a b/a\n+one\n", false, false),
            changed("b", "", true, false),
            changed("c", "", false, true),
            changed("d", "diff --git a/d b/d\n+tw", false, true),
        ];
        let shown = changes(files, 3);
        assert_eq!(
            text_of(&shown),
            "commit 0123456789abcdef\nDate: 2023-11-14 22:13:20\n\n    Add it\n    \n    As asked.\n\n7 files, +2 -1\n\
             diff --git a/a b/a\n+one\nBinary b\nNot shown: c\ndiff --git a/d b/d\n+tw\n"
        );
        let told = missing(&shown).expect("some are missing");
        assert_eq!(told, "5 of 7 files are not shown whole; `git show 0123456789abcdef` shows them");
        assert_eq!(missing(&changes(vec![changed("a", "+one\n", false, false)], 0)), None);
    }

    #[test]
    fn a_commit_is_one_line_whatever_its_subject() {
        let of = |subject: &str| {
            line(&Logged {
                commit: "0123456789abcdef".into(),
                at_ms: 1_700_000_000_000,
                subject: subject.into(),
                feature: Some("a".into()),
                outcome: None,
                run: None,
            })
        };
        assert_eq!(
            of("x | \u{1b}[31my\r\u{202e}z \u{1f600}"),
            "0123456789  2023-11-14 22:13:20  a  -  x | \\u001b[31my \\u202ez \u{1f600}"
        );
        assert_eq!(of(&"x".repeat(10_240)).len(), "0123456789  2023-11-14 22:13:20  a  -  ".len() + 104);
        assert!(of(&"x".repeat(100)).ends_with("xx"), "all of it, where it fits");
    }
}
