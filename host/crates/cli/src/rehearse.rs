//! `longhaul rehearse` and `longhaul move`: what other bytes of a plugin would ask in the place of those that runs
//! have, and the move of a run to them.
//!
//! The service replays and decides. Before a move whose rehearsal does not reach its end, a person reads what it means.

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::{JournalOperations as _, RunOperations as _};
use longhaul_api::rehearsals::{
    MoveRun, MovedRun, RehearsalReport, RehearsalVerdict, RehearseRuns, RehearsedPlugin, RequestDifference,
    RunRehearsal,
};
use longhaul_client::which;
use longhaul_core::Digest;
use longhaul_core::fault::{self, Fault};
use longhaul_core::text::printable;
use longhaul_report::messages;
use std::path::{Path, PathBuf};

/// Longest reason on a line, in bytes.
const LINE_BYTES_MAX: usize = 1_000;

#[derive(Args, Debug)]
pub struct RehearseArgs {
    /// The runs, or the beginnings of their names. Default: the newest of this project.
    #[arg(value_name = "RUN", conflicts_with = "live")]
    runs: Vec<String>,
    /// All runs that have not ended and have the plugin, at most the newest 100.
    #[arg(long)]
    live: bool,
    /// A component in a file, or an installed plugin. Default: the bytes that each run pinned, on this version of the
    /// program.
    #[arg(long, value_name = "FILE|NAME@VERSION")]
    plugin: Option<String>,
    /// The plugin of the runs whose place the file takes. Default: the name in the manifest of the file, or its own.
    #[arg(long, value_name = "NAME", requires = "plugin")]
    replaces: Option<String>,
    /// Use the settings of plugins that longhaul.toml has now, in place of those that each run began with.
    #[arg(long)]
    settings: bool,
}

#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The run, or the beginning of its name. Default: the newest of this project.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The installed plugin.
    #[arg(long, value_name = "NAME@VERSION")]
    plugin: String,
    /// Move the run without a question, also where its rehearsal differs or cannot be told.
    #[arg(long, short)]
    yes: bool,
}

/// `longhaul rehearse`.
pub async fn rehearse(context: &Context, args: RehearseArgs) -> fault::Result<Exit> {
    let RehearseArgs { runs, live, plugin, replaces, settings } = args;
    let directory = of_project(context, &runs, live);
    let (plugin, with) = match plugin {
        Some(plugin) if is_file(&plugin) => (replaces, Some(context.whole(PathBuf::from(plugin)))),
        Some(_) if replaces.is_some() => {
            return Err(Fault::invalid("--replaces is for a file; an installed plugin replaces that of its name"));
        }
        plugin => (plugin, None),
    };
    let request = RehearseRuns { runs, directory, live, plugin, with, settings, time_ms_max: None };
    let report = context.rehearse_runs(request).await?;
    let is_alike = report.runs.iter().all(|run| run.verdict == RehearsalVerdict::ReachesEnd);
    match context.json {
        true => print_json(&report)?,
        false => outtext!(told(&report)),
    }
    Ok(if is_alike { Exit::Done } else { Exit::Error })
}

/// `longhaul move`.
pub async fn move_run(context: &Context, args: MoveArgs) -> fault::Result<Exit> {
    let MoveArgs { run, plugin, yes } = args;
    context.client.keep();
    let at_boundary = yes || !context.json && !reaches_end(context, run.clone(), &plugin).await?;
    let request = MoveRun { run: which(run, &context.project), plugin, at_boundary };
    let moved = context.move_run(request).await?;
    context.client.release().await;
    match context.json {
        true => print_json(&moved)?,
        false => outtext!(told_of_move(&moved)),
    }
    Ok(Exit::Done)
}

/// Rehearses a run before it is moved. False: it does not reach its end, and the person agrees to move it all the same.
async fn reaches_end(context: &Context, run: Option<String>, plugin: &str) -> fault::Result<bool> {
    let runs: Vec<String> = run.into_iter().collect();
    let directory = of_project(context, &runs, false);
    let request = RehearseRuns { runs, directory, plugin: Some(plugin.to_owned()), ..RehearseRuns::default() };
    let report = context.rehearse_runs(request).await?;
    if report.runs.iter().all(|run| run.verdict == RehearsalVerdict::ReachesEnd) {
        return Ok(true);
    }
    outtext!(told(&report));
    outln!(
        "moved all the same, what has begun ends on the bytes that it began with, and the next round, hand-off or \
         feature begins on the new ones; a tool has them at its next call"
    );
    agreed(context, "move it?", "nothing was moved", "read what differs and add --yes")?;
    Ok(false)
}

/// The directory of the project whose newest run is meant; none where runs are named.
fn of_project(context: &Context, runs: &[String], live: bool) -> Option<PathBuf> {
    (runs.is_empty() && !live).then(|| context.project.clone())
}

/// True for the path of a component; a name of an installed plugin has neither a directory nor this extension.
fn is_file(plugin: &str) -> bool {
    plugin.contains('/') || Path::new(plugin).extension().is_some_and(|extension| extension == "wasm")
}

/// The report for a person, of several lines.
fn told(report: &RehearsalReport) -> String {
    let mut text: Vec<String> = report.runs.iter().flat_map(lines_of).collect();
    if report.runs.is_empty() {
        text.push("no run that has not ended has this plugin".to_owned());
    }
    if report.runs_left_out > 0 {
        text.push(format!("{} older live runs were not rehearsed; name them", report.runs_left_out));
    }
    let on = report.plugin.as_ref().map_or_else(|| "the pinned bytes".to_owned(), named);
    let (entries, seconds) = (messages::counted(report.entries, "entry"), seconds(report.duration_ms));
    text.push(format!("{entries} in {seconds}, {} a second, on {on}", rate(report)));
    text.join("\n")
}

/// The words of a command about plugins on live runs: those that differ or cannot be told, and the number of the rest.
pub(super) fn told_of_live(report: &RehearsalReport) -> Vec<String> {
    let (alike, others): (Vec<_>, Vec<_>) =
        report.runs.iter().partition(|run| run.verdict == RehearsalVerdict::ReachesEnd);
    let mut lines = Vec::new();
    if !alike.is_empty() {
        let runs: Vec<&str> = alike.iter().map(|run| run.run.as_str()).collect();
        lines.push(format!("on these bytes reach their ends: {}", runs.join(", ")));
    }
    lines.extend(others.into_iter().map(headline));
    if report.runs_left_out > 0 {
        lines.push(format!("{} older live runs were not rehearsed", report.runs_left_out));
    }
    lines
}

fn lines_of(run: &RunRehearsal) -> Vec<String> {
    let mut lines = vec![headline(run)];
    if let Some(RequestDifference { recorded, asked, lines: changed, .. }) = &run.difference {
        lines.push(format!("  the journal has {}", printable(recorded, LINE_BYTES_MAX)));
        lines.push(format!("  the rehearsal asked {}", printable(asked, LINE_BYTES_MAX)));
        lines.extend(changed.iter().map(|line| format!("    {}", printable(line, LINE_BYTES_MAX))));
    }
    lines
}

fn headline(run: &RunRehearsal) -> String {
    let RunRehearsal { run, verdict, invocations, entries, difference, reason } = run;
    let known =
        format!("{} of {}", messages::counted(*entries, "entry"), messages::counted(*invocations, "invocation"));
    match (verdict, difference, reason) {
        (RehearsalVerdict::Differs, Some(found), _) => {
            format!("run {run}: differs at entry {} of {}", found.entry, found.invocation)
        }
        (RehearsalVerdict::CannotTell, _, Some(reason)) => {
            format!("run {run}: cannot be told: {} ({known} alike)", printable(reason, LINE_BYTES_MAX))
        }
        _ => format!("run {run}: reaches its end, {known}"),
    }
}

fn told_of_move(moved: &MovedRun) -> String {
    let MovedRun { run, plugin, proved, unmoved, rehearsal, .. } = moved;
    let mut text = vec![format!("run {run} has {} now", named(plugin))];
    if rehearsal.verdict == RehearsalVerdict::ReachesEnd {
        text.push(format!("  its past is the same on it: {}", messages::counted(rehearsal.entries, "entry")));
    }
    for (invocation, entries) in proved {
        text.push(format!("  {invocation} goes on with it after entry {entries}"));
    }
    for invocation in unmoved {
        text.push(format!("  {invocation} ends on the bytes that it began with"));
    }
    text.push(format!("go on with: longhaul resume {run}"));
    text.join("\n")
}

fn named(RehearsedPlugin { name, version, digest }: &RehearsedPlugin) -> String {
    let version = if version.is_empty() { String::new() } else { format!(" {version}") };
    format!("{name}{version} (sha256:{})", Digest::short(digest))
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
}

/// Entries a second.
fn rate(report: &RehearsalReport) -> u64 {
    report.entries.saturating_mul(1_000) / report.duration_ms.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;

    fn run(verdict: RehearsalVerdict) -> RunRehearsal {
        let lines = vec!["- a".to_owned(), "+ \u{1b}b".to_owned()];
        let difference = RequestDifference {
            invocation: "r-1/f-a/1/generate".into(),
            entry: 6,
            recorded: "one".into(),
            asked: "other".into(),
            lines,
        };
        RunRehearsal {
            run: RunId::from_text("r-1"),
            verdict,
            invocations: 2,
            entries: 5,
            difference: (verdict == RehearsalVerdict::Differs).then_some(difference),
            reason: (verdict == RehearsalVerdict::CannotTell).then(|| "it is gone".to_owned()),
        }
    }

    fn report(runs: Vec<RunRehearsal>) -> RehearsalReport {
        RehearsalReport { plugin: None, entries: 10, runs, duration_ms: 2_540, runs_left_out: 0 }
    }

    #[test]
    fn each_verdict_has_a_line_and_a_difference_both_requests() {
        use RehearsalVerdict::{CannotTell, Differs, ReachesEnd};
        let text = told(&report([ReachesEnd, Differs, CannotTell].map(run).into()));
        let expected = "run r-1: reaches its end, 5 entries of 2 invocations\n\
                        run r-1: differs at entry 6 of r-1/f-a/1/generate\n  \
                        the journal has one\n  the rehearsal asked other\n    - a\n    + \\u001bb\n\
                        run r-1: cannot be told: it is gone (5 entries of 2 invocations alike)\n\
                        10 entries in 2.5 s, 3 a second, on the pinned bytes";
        assert_eq!(text, expected);
        let live = told_of_live(&report(vec![run(ReachesEnd), run(Differs)]));
        assert_eq!(live.len(), 2, "{live:?}");
        assert!(live[0].ends_with("their ends: r-1") && live[1].contains("differs at entry 6"), "{live:?}");
    }

    #[test]
    fn a_file_is_told_from_a_name() {
        for (plugin, expected) in
            [("coder", false), ("coder@1.2.0", false), ("coder.wasm", true), ("./coder", true), ("/srv/x.wasm", true)]
        {
            assert_eq!(is_file(plugin), expected, "{plugin}");
        }
    }
}
