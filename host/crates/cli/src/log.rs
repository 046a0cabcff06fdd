//! `longhaul log`: the commits of a run.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{CommitLog, ListCommits};
use longhaul_api::wire::runs::Log;
use longhaul_client::which;
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_report::messages;
use longhaul_worktree::Logged;

/// Most characters of a subject on a line for people. `--json` has all of it.
const SUBJECT_CHARS_MAX: usize = 100;

#[derive(Args, Debug)]
pub struct LogArgs {
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
    let LogArgs { run, limit, reverted } = args;
    let log = context.commit_log(ListCommits { run: which(run, &context.project), limit, reverted }).await?;
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
