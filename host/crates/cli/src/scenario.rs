//! `longhaul scenario`: makes tests of plugins from recorded runs.
//!
//! An invocation of a run becomes a folder that `longhaul plugin test` runs: what the plugin was told, the answers to
//! its calls, and the calls that are expected. Personal data and keys are replaced by rule before anything is written.

mod folders;
mod replace;

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::{Args, Subcommand};
use folders::ScenarioFiles;
use longhaul_api::journal::{ListCarried, RecordInvocation, RecordedCall, RecordedInvocation};
use longhaul_api::operations::JournalOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::plugins::{RecordedScenarioView, RecordedScenariosView, ReplacementView};
use longhaul_core::fault::{self, Context as _, Fault, FaultCode, bail};
use longhaul_home::{text_file, variable};
use longhaul_records::invocation::JournaledResult;
use longhaul_report::messages;
use longhaul_testkit::{RecordedEnd, RecordedTable, ScenarioPlugin, ScenarioRecordedCall, ScenarioRecording};
use replace::{Replacer, counts_in_words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest file of rules, in bytes.
const RULES_BYTES_MAX: u64 = 1 << 20;

/// The kind under which texts are counted that lost the value of a stored secret.
const SECRETS: &str = "text with a secret";

#[derive(Subcommand, Debug)]
pub enum ScenarioCommand {
    /// Record the invocations of a run as scenarios, which `longhaul plugin test` runs. Secrets, keys, e-mail
    /// addresses, IP addresses and names of users are replaced.
    Record(RecordArgs),
}

#[derive(Args, Debug)]
pub struct RecordArgs {
    #[command(flatten)]
    run: RunArg,
    /// Record this invocation only, for example `f-sum/1/generate`. Default: every one of the run.
    #[arg(long, short, value_name = "KEY")]
    invocation: Option<String>,
    /// Compare only the calls of these entries, for example `3..9`; the plugin is stopped after the last one.
    #[arg(long, value_name = "A..B", value_parser = range, requires = "invocation")]
    at: Option<(u32, u32)>,
    /// The directory of the scenarios, a folder each. It must be new or empty.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Also replace what this regular expression finds by a word.
    #[arg(long, value_name = "PATTERN=WORD")]
    replace: Vec<String>,
    /// Read more such rules from this file, one a line; lines with `#` in front are comments.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Write into a directory with files: scenarios of the same names are replaced.
    #[arg(long)]
    update: bool,
}

/// Runs the command.
pub(super) async fn run(context: &Context, command: ScenarioCommand) -> fault::Result<Exit> {
    match command {
        ScenarioCommand::Record(args) => record(context, args).await,
    }
}

async fn record(context: &Context, args: RecordArgs) -> fault::Result<Exit> {
    let RecordArgs { run, invocation, at, output, replace, rules, update } = args;
    let directory = std::path::absolute(&output).with_context(|| format!("`{}` is no path", output.display()))?;
    // All refusals come before anything is replayed.
    let mut replacer = Replacer::new(&all_rules(replace, rules.as_deref())?)?;
    folders::expect_free(&directory, update)?;
    context.client.keep();
    let found = recordings(context, context.which(run), invocation).await;
    context.client.release().await;
    let Found { mut recorded, skipped } = found?;
    let secrets: usize = recorded.iter().map(|one| one.secrets_replaced).sum();
    replacer.learn_users(own_users(context), recorded.iter().flat_map(values))?;
    let (mut files, mut views) = (ScenarioFiles::new(), Vec::new());
    for one in &mut recorded {
        clean(&mut replacer, one);
        let recording = recording(one, at)?;
        let name = folder_name(one, &files);
        files.insert(name.clone(), recording.files()?);
        views.push(view(name, one, &recording));
    }
    folders::write(&directory, &files, update)?;
    let mut counts = replacer.counts().clone();
    if secrets > 0 {
        counts.insert(SECRETS.to_owned(), secrets);
    }
    show(context, &directory, views, &counts, skipped)
}

/// The recordings of a run, and why others are left out.
struct Found {
    recorded: Vec<RecordedInvocation>,
    skipped: Vec<String>,
}

async fn recordings(context: &Context, run: RunRef, invocation: Option<String>) -> fault::Result<Found> {
    let mut found = Found { recorded: Vec::new(), skipped: Vec::new() };
    if let Some(invocation) = invocation {
        let one = context.record_invocation(RecordInvocation { run, invocation }).await?;
        if one.open.is_some() && one.calls.is_empty() {
            bail!(Fault::conflict(format!("`{}` has no answered call yet; resume its run first", one.invocation)));
        }
        found.recorded.push(one);
        return Ok(found);
    }
    for carried in context.carried_invocations(ListCarried { run: run.clone() }).await? {
        let invocation = carried.invocation.as_str().to_owned();
        match context.record_invocation(RecordInvocation { run: run.clone(), invocation }).await {
            Ok(one) if one.open.is_some() && one.calls.is_empty() => {
                found.skipped.push(format!("`{}` has no answered call yet", one.invocation));
            }
            Ok(one) => found.recorded.push(one),
            Err(error) if error.code() == Some(FaultCode::Invalid) => found.skipped.push(format!("{error:#}")),
            Err(error) => return Err(error),
        }
    }
    if found.recorded.is_empty() {
        let reasons = if found.skipped.is_empty() { "it has none".to_owned() } else { found.skipped.join("; ") };
        bail!(Fault::conflict(format!("no invocation of the run can be recorded: {reasons}")));
    }
    Ok(found)
}

/// The rules of the command line, then those of the file.
fn all_rules(mut rules: Vec<String>, file: Option<&Path>) -> fault::Result<Vec<String>> {
    if let Some(path) = file {
        let text = text_file::read(path, RULES_BYTES_MAX)
            .with_context(|| format!("cannot read the rules `{}`", path.display()))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        rules.extend(lines.map(str::to_owned));
    }
    Ok(rules)
}

/// The names of the user of this machine, where the runs are those of this machine.
fn own_users(context: &Context) -> Vec<String> {
    if context.is_of_server() {
        return Vec::new();
    }
    ["USER", "LOGNAME"].into_iter().filter_map(variable).collect()
}

/// All values of a recording that texts of people may stand in.
fn values(recorded: &RecordedInvocation) -> impl Iterator<Item = &Value> {
    let calls = recorded.calls.iter().flat_map(|call| [&call.arguments, &call.answer]);
    std::iter::once(&recorded.input).chain(calls)
}

/// Replaces in all texts that are written, but the result, which [`recording`] reads.
fn clean(replacer: &mut Replacer, recorded: &mut RecordedInvocation) {
    replacer.value(&mut recorded.input);
    for call in &mut recorded.calls {
        replacer.value(&mut call.arguments);
        replacer.value(&mut call.answer);
        if let Some(decides) = &mut call.decides {
            decides.arguments = replacer.text(&decides.arguments);
        }
    }
    if let Some(result) = &mut recorded.result {
        // A text that is no JSON is refused by its reader.
        if let Ok(mut value) = serde_json::from_str::<Value>(result) {
            replacer.value(&mut value);
            *result = value.to_string();
        }
    }
}

/// The scenario of an invocation, or of some of its entries.
fn recording(recorded: &RecordedInvocation, at: Option<(u32, u32)>) -> fault::Result<ScenarioRecording> {
    let entries = u32::try_from(recorded.calls.len()).unwrap_or(u32::MAX);
    if let Some((_, to)) = at.filter(|(_, to)| *to > entries) {
        bail!(Fault::invalid(format!(
            "`{}` has {entries} answered entries, and --at ends with {to}; `longhaul journal` lists them",
            recorded.invocation
        )));
    }
    let is_open = recorded.open.is_some();
    let last = at.map_or(entries, |(_, to)| to);
    let call = |call: &RecordedCall| ScenarioRecordedCall {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        decides: call.decides.clone(),
        asked_ms: call.asked_ms,
        answered_ms: call.answered_ms,
        answer: call.answer.clone(),
    };
    Ok(ScenarioRecording {
        plugin: ScenarioPlugin {
            name: recorded.plugin.clone(),
            version: recorded.version.clone(),
            role: recorded.export.split('.').next().unwrap_or_default().to_owned(),
            digest: Some(recorded.component),
        },
        export: recorded.export.clone(),
        input: recorded.input.clone(),
        clock_ms: recorded.at_ms,
        models: recorded.models.clone(),
        limits: recorded.limits.clone(),
        recorded: RecordedTable {
            invocation: recorded.invocation.as_str().to_owned(),
            seed: Some(recorded.seed),
            tools: recorded.tools.clone(),
            agents: recorded.agents.clone(),
            from: at.map(|(from, _)| from).filter(|from| *from > 1),
            to: Some(last).filter(|last| is_open || *last < entries),
            context: recorded.context.clone(),
        },
        calls: recorded.calls.iter().map(call).collect(),
        end: recorded.result.as_deref().map(end).transpose()?,
    })
}

/// The end of an invocation, from its journal.
fn end(result: &str) -> fault::Result<RecordedEnd> {
    let kept: JournaledResult<Value> = serde_json::from_str(result).context("the result of the invocation")?;
    Ok(match kept {
        JournaledResult::Returned(value) => RecordedEnd::Returned(value),
        JournaledResult::Refused(error) => RecordedEnd::Refused(error),
        JournaledResult::Limited(hit) => RecordedEnd::Limited(hit.name),
        JournaledResult::Trapped(_) => RecordedEnd::Trapped,
    })
}

/// The name of the folder of an invocation: its own without the run, with letters, digits, `-` and `_`.
fn folder_name(recorded: &RecordedInvocation, taken: &ScenarioFiles) -> String {
    let id = recorded.invocation.as_str();
    let own = id.split_once('/').map_or(id, |(_, own)| own);
    let clean = |char: char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '-' };
    let name: String = own.chars().map(clean).collect();
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains_key(name)).unwrap_or(name)
}

/// The entries of `A..B`, both included.
fn range(text: &str) -> Result<(u32, u32), String> {
    let parts: Option<(u32, u32)> =
        text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match parts {
        None => Err(format!("`{text}` is no range; write A..B with numbers of entries, such as 3..9")),
        Some((0, _)) => Err("entries count from 1".to_owned()),
        Some((from, to)) if from > to => Err(format!("the range goes backwards; write {to}..{from}")),
        Some(range) => Ok(range),
    }
}

fn view(scenario: String, one: &RecordedInvocation, recording: &ScenarioRecording) -> RecordedScenarioView {
    RecordedScenarioView {
        scenario,
        invocation: one.invocation.as_str().to_owned(),
        plugin: one.plugin.clone(),
        version: one.version.clone(),
        from: recording.recorded.from.unwrap_or(1),
        to: recording.recorded.to.unwrap_or(u32::try_from(one.calls.len()).unwrap_or(u32::MAX)),
        has_end: recording.recorded.to.is_none(),
    }
}

fn show(
    context: &Context,
    directory: &Path,
    scenarios: Vec<RecordedScenarioView>,
    counts: &BTreeMap<String, usize>,
    skipped: Vec<String>,
) -> fault::Result<Exit> {
    if context.json {
        let one = |(kind, count): (&String, &usize)| ReplacementView { kind: kind.clone(), count: *count };
        let replaced = counts.iter().map(one).collect();
        let directory = directory.display().to_string();
        print_json(&RecordedScenariosView { directory, scenarios, replaced, skipped })?;
        return Ok(Exit::Done);
    }
    for RecordedScenarioView { scenario, plugin, version, from, to, has_end, .. } in &scenarios {
        let end = if *has_end { "" } else { ", without the end" };
        let calls = messages::counted(to.saturating_add(1).saturating_sub(*from), "call");
        let plugin = format!("{plugin} {version}");
        outln!("{scenario}: {}, {calls}{end}", plugin.trim_end());
    }
    for reason in skipped {
        outln!("left out: {reason}");
    }
    outln!("replaced: {}", counts_in_words(counts));
    outln!("run them with: longhaul plugin test {}", directory.display());
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_numbers_from_1_on() {
        assert_eq!(range("3..9"), Ok((3, 9)));
        assert_eq!(range("4..4"), Ok((4, 4)));
        for (wrong, words) in [
            ("9..3", "goes backwards; write 3..9"),
            ("0..3", "count from 1"),
            ("3", "is no range"),
            ("a..3", "is no range"),
            ("1..", "is no range"),
        ] {
            let refused = range(wrong).expect_err(wrong);
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn rules_come_from_arguments_and_lines_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# names\n\nacme=firm\n  x=y\n").unwrap();
        let rules = all_rules(vec!["a=b".to_owned()], Some(file.path())).unwrap();
        assert_eq!(rules, ["a=b", "acme=firm", "x=y"]);
        let missing = all_rules(Vec::new(), Some(Path::new("/none/rules"))).unwrap_err().to_string();
        assert!(missing.contains("cannot read the rules"), "{missing}");
    }
}
