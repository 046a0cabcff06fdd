//! Scenario folders: a call, its surroundings and what must come of it, as files. Adding a case adds no code.
//!
//! `scenario.toml` says what is called; `expected.json` what it returns, or `error.txt` how it ends otherwise. Where
//! they are there, `calls.txt` has a line for each import that it called, and `arguments.txt` all of its arguments. An
//! update writes the expectations and says what it changed. `recording.rs` makes such folders of journals.

use crate::arguments::in_full;
use crate::call::Call;
use crate::difference::{difference, difference_of_calls};
use crate::done::{Done, Ending, Made, refusal_line};
use crate::error::KitError;
use crate::kit::Kit;
use crate::recorded::{RecordedPart, RecordedTable};
use crate::scene::Scene;
use crate::script::Script;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_core::{Digest, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The file that makes a folder a scenario.
pub(crate) const FILE: &str = "scenario.toml";
pub(crate) const INPUT: &str = "input.json";
pub(crate) const EXPECTED: &str = "expected.json";
pub(crate) const ERROR: &str = "error.txt";
pub(crate) const ARGUMENTS: &str = "arguments.txt";
const CALLS: &str = "calls.txt";

/// Most levels of a scenario's directory, when it is copied for a plugin that writes.
const DEPTH_MAX: usize = 20;

/// The content of a `scenario.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The one export that is called. For several calls see `calls`.
    pub export: Option<String>,
    /// Input of the call. Default: the file `input.json`, or an empty object.
    pub input: Option<Value>,
    /// Calls one after the other, each in a fresh instance, over the same store and clock.
    pub calls: Vec<ScenarioCall>,
    /// The plugin's settings. Default: none.
    pub settings: Option<Value>,
    /// Limits of each call.
    pub limits: Limits,
    /// Directories of the scenario that the plugin may use; where it may write, it gets a copy.
    pub directories: Vec<ScenarioDirectory>,
    /// Models, tools, checks, sub-agents, clock and seed.
    pub script: Script,
    /// The plugin that it is for. Default: the one of the project.
    pub plugin: Option<ScenarioPlugin>,
    /// The answers of a journal, which lie in `answers.json`.
    pub recorded: Option<RecordedTable>,
}

/// The plugin of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioPlugin {
    /// Its name, by which it is found where no component is named.
    pub name: String,
    /// The version that was recorded.
    pub version: String,
    /// Its role, for example `agent`.
    pub role: String,
    /// The digest of the component that was recorded. A component with another one is tested all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// The folder of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioFolder {
    /// Its name, with that of the folder between it and `tests`, if there is one.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The plugin that it names.
    pub plugin: Option<ScenarioPlugin>,
}

/// A call of several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioCall {
    /// The name of the export.
    pub export: String,
    /// Input of the call.
    pub input: Value,
    /// Moves the clock before the call, in milliseconds.
    pub advance_ms: u64,
}

/// A directory of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioDirectory {
    /// Below the scenario's folder.
    pub host: PathBuf,
    /// Path under which the plugin sees the directory.
    pub guest: String,
    /// The allowed use: `read` or `write`.
    pub access: Access,
}

/// The outcome of one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// Name of its folder.
    pub name: String,
    /// Difference from the expectation; none: it passes.
    pub difference: Option<String>,
    /// Difference that an update wrote into the expectation; none: it was as expected, or is not updated.
    pub accepted: Option<String>,
}

/// Runs every scenario of the folder `tests` against a component, in the order of their names.
///
/// # Errors
/// [`KitError::Load`], or [`KitError::File`] when there is no scenario. What is wrong with one scenario
/// is its outcome.
pub async fn run_scenarios(
    kit: &Kit,
    component: &Path,
    tests: &Path,
    update: bool,
) -> Result<Vec<ScenarioOutcome>, KitError> {
    run_scenario_folders(kit, component, &scenario_folders(tests, "")?, update).await
}

/// The scenarios of the folder `tests` whose names have `part` in them, in the order of their names. A folder that is
/// no scenario may hold some.
///
/// # Errors
/// [`KitError::File`] when there is no scenario, or no name has it.
pub fn scenario_folders(tests: &Path, part: &str) -> Result<Vec<ScenarioFolder>, KitError> {
    let paths = paths(tests)?;
    let name = |path: &Path| path.strip_prefix(tests).unwrap_or(path).to_string_lossy().into_owned();
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    if !names.iter().any(|name| name.contains(part)) {
        let there = longhaul_core::text::truncate(&names.join(", "), 500);
        return Err(file(tests, format!("no scenario has `{part}` in its name; there are: {there}")));
    }
    let named = names.into_iter().zip(paths).filter(|(name, _)| name.contains(part));
    Ok(named
        .map(|(name, path)| {
            // A file that cannot be read is the outcome of its scenario.
            let plugin = scenario(&path).ok().and_then(|scenario| scenario.plugin);
            ScenarioFolder { name, path, plugin }
        })
        .collect())
}

/// Runs scenarios against a component.
///
/// # Errors
/// [`KitError::Load`]. What is wrong with one scenario is its outcome.
pub async fn run_scenario_folders(
    kit: &Kit,
    component: &Path,
    folders: &[ScenarioFolder],
    update: bool,
) -> Result<Vec<ScenarioOutcome>, KitError> {
    let scene = kit.load(component).await?;
    let mut outcomes = Vec::new();
    for ScenarioFolder { name, path, .. } in folders {
        let (difference, accepted) = match run(&scene, path, update).await {
            Ok(compared) => compared,
            Err(error) => (Some(error.to_string()), None),
        };
        outcomes.push(ScenarioOutcome { name: name.clone(), difference, accepted });
    }
    Ok(outcomes)
}

/// The folders of scenarios in `tests`, and in the folders of it that are none.
fn paths(tests: &Path) -> Result<Vec<PathBuf>, KitError> {
    let entries = fs::read_dir(tests).map_err(|error| file(tests, error))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if is_scenario(&path) {
            found.push(path);
        } else if let Ok(below) = fs::read_dir(&path) {
            found.extend(below.flatten().map(|entry| entry.path()).filter(|path| is_scenario(path)));
        }
    }
    if !found.iter().any(|path| path.join(FILE).is_file()) {
        return Err(file(tests, format!("there is no folder with a {FILE} in it")));
    }
    found.sort();
    Ok(found)
}

/// One that expects something and calls nothing would never fail, so it is run to say so.
fn is_scenario(path: &Path) -> bool {
    [FILE, EXPECTED, ERROR].iter().any(|name| path.join(name).is_file())
}

fn scenario(folder: &Path) -> Result<Scenario, KitError> {
    let path = folder.join(FILE);
    toml::from_str(&read(&path)?).map_err(|error| file(&path, error))
}

/// Runs one: its difference, and the difference that an update accepted.
async fn run(scene: &Scene, folder: &Path, update: bool) -> Result<(Option<String>, Option<String>), KitError> {
    let scenario = scenario(folder)?;
    let calls = calls(&scenario, folder)?;
    let (scene, _copies) = staged(scene.clone(), &scenario, folder)?;
    let mut dones = Vec::new();
    for (call, advance_ms) in calls {
        scene.clock().advance_ms(advance_ms);
        dones.push(scene.call(call).await?);
    }
    let expectations = Expectations::of(&scenario, &dones);
    let differences = expectations.differences(folder)?;
    // No expectation makes a broken contract right.
    let breaches = breaches(&dones);
    if update {
        expectations.write(folder)?;
        let accepted = (!differences.is_empty()).then(|| differences.join("\n"));
        return Ok((breaches, accepted));
    }
    let failed = (!differences.is_empty()).then(|| failure(&scenario, &scene, differences, &dones));
    Ok((failed.or(breaches), None))
}

/// The text of a scenario that fails. The end of the call says more than a file that is not as expected.
fn failure(scenario: &Scenario, scene: &Scene, mut differences: Vec<String>, dones: &[Done]) -> String {
    let recorded = scenario.plugin.as_ref().and_then(|plugin| plugin.digest);
    if let Some(digest) = recorded.filter(|digest| *digest != scene.component()) {
        let (before, now) = (digest.short(), scene.component().short());
        differences.push(format!("the component is another one: {before} was recorded, this is {now}"));
    }
    differences.extend(dones.last().map(|done| format!("it ended so:\n{done}")));
    differences.join("\n")
}

/// Breaches of the contract in returned values.
fn breaches(dones: &[Done]) -> Option<String> {
    let lines: Vec<&str> = dones.iter().filter_map(Done::breach).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn calls(scenario: &Scenario, folder: &Path) -> Result<Vec<(Call, u64)>, KitError> {
    let Some(export) = &scenario.export else {
        if scenario.calls.is_empty() {
            return Err(file(&folder.join(FILE), "it calls nothing; write export = \"...\" or [[calls]]"));
        }
        let read = |one: &ScenarioCall| Ok((Call::from_json(&one.export, one.input.clone())?, one.advance_ms));
        return scenario.calls.iter().map(read).collect();
    };
    if !scenario.calls.is_empty() {
        return Err(file(&folder.join(FILE), "it has both `export` and [[calls]]; write one of them"));
    }
    let path = folder.join(INPUT);
    let input = match &scenario.input {
        Some(input) => input.clone(),
        None if path.is_file() => serde_json::from_str(&read(&path)?).map_err(|error| file(&path, error))?,
        None => json!({}),
    };
    Ok(vec![(Call::from_json(export, input)?, 0)])
}

/// The scene of a scenario, with a store of its own, and the copies that live as long as it.
fn staged(scene: Scene, scenario: &Scenario, folder: &Path) -> Result<(Scene, Vec<TempDir>), KitError> {
    let settings = scenario.settings.clone().unwrap_or_else(|| json!({}));
    let mut scene = scene.fresh().script(scenario.script.clone()).limits(scenario.limits.clone()).settings(settings);
    if let Some(table) = &scenario.recorded {
        scene = scene.recorded(RecordedPart::read(table, folder)?);
    }
    let mut copies = Vec::new();
    for ScenarioDirectory { host, guest, access } in &scenario.directories {
        let from = folder.join(host);
        let host = match access {
            Access::Read => from,
            Access::Write => {
                let copy = tempfile::tempdir().map_err(|error| file(&from, error))?;
                copied(&from, copy.path(), DEPTH_MAX).map_err(|error| file(&from, error))?;
                let path = copy.path().to_owned();
                copies.push(copy);
                path
            }
        };
        scene = scene.directory(DirectoryGrant { guest: guest.clone(), host, access: *access });
    }
    Ok((scene, copies))
}

/// Copies files and folders; links are left out.
fn copied(from: &Path, to: &Path, depth: usize) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let target = to.join(entry.file_name().unwrap_or_default());
        if kind.is_file() {
            fs::copy(&entry, target)?;
        } else if kind.is_dir() && depth > 0 {
            fs::create_dir(&target)?;
            copied(&entry, &target, depth - 1)?;
        }
    }
    Ok(())
}

/// The texts of the files that say what is expected; one of the first two.
struct Expectations {
    returned: Option<String>,
    error: Option<String>,
    calls: String,
    /// The calls in full, of the range that is compared.
    arguments: String,
    /// The number of the first call of `arguments`.
    first: u32,
}

impl Expectations {
    fn of(scenario: &Scenario, dones: &[Done]) -> Self {
        let made = || dones.iter().flat_map(|done| &done.calls);
        let calls = made().map(|made| format!("{made}\n")).collect();
        let default = RecordedTable::default();
        let table = scenario.recorded.as_ref().unwrap_or(&default);
        let range = (1..).zip(made()).filter(|(entry, _)| table.compares(*entry)).map(|(_, made)| made);
        let arguments = in_full(range.map(|Made { name, in_full, .. }| (name.as_str(), in_full)));
        let (returned, error) = ends(scenario, table, dones);
        Self { returned, error, calls, arguments, first: table.first() }
    }

    /// Writes them. Of the calls, those that are written already.
    fn write(&self, folder: &Path) -> Result<(), KitError> {
        for (name, text) in [(EXPECTED, &self.returned), (ERROR, &self.error)] {
            let path = folder.join(name);
            match text {
                Some(text) => fs::write(&path, text).map_err(|error| file(&path, error))?,
                None if path.exists() => fs::remove_file(&path).map_err(|error| file(&path, error))?,
                None => {}
            }
        }
        for (name, text) in [(CALLS, &self.calls), (ARGUMENTS, &self.arguments)] {
            let path = folder.join(name);
            if path.exists() {
                fs::write(&path, text).map_err(|error| file(&path, error))?;
            }
        }
        Ok(())
    }

    /// The differences from the files.
    fn differences(&self, folder: &Path) -> Result<Vec<String>, KitError> {
        let mut differences = Vec::new();
        let of_end = [(EXPECTED, &self.returned), (ERROR, &self.error)];
        let is_new = of_end.iter().all(|(name, _)| !folder.join(name).exists());
        if is_new {
            differences.push(format!("there is neither {EXPECTED} nor {ERROR}; `--update` writes it"));
        }
        for (name, got) in of_end {
            let got = got.as_deref().unwrap_or_default();
            if !is_new && !folder.join(name).exists() {
                differences.extend(difference("", got).map(|lines| format!("{name} is new:\n{lines}")));
            }
            differences.extend(of_file(folder, name, |expected| difference(&normal(name, expected), got))?);
        }
        differences.extend(of_file(folder, CALLS, |expected| difference(expected, &self.calls))?);
        let in_full = |expected: &str| difference_of_calls(expected, &self.arguments, self.first);
        differences.extend(of_file(folder, ARGUMENTS, in_full)?);
        Ok(differences)
    }
}

/// The difference from a file, if it is there.
fn of_file(
    folder: &Path,
    name: &str,
    compared: impl FnOnce(&str) -> Option<String>,
) -> Result<Option<String>, KitError> {
    let path = folder.join(name);
    if !path.exists() {
        return Ok(None);
    }
    Ok(compared(&read(&path)?).map(|lines| format!("{name} differs:\n{lines}")))
}

/// The texts of the value that was returned, and of an end without one: one of them.
fn ends(scenario: &Scenario, table: &RecordedTable, dones: &[Done]) -> (Option<String>, Option<String>) {
    let is_cut = |done: &Done| table.to.filter(|to| done.calls.len() >= usize::try_from(*to).unwrap_or(usize::MAX));
    match dones {
        [done] if scenario.calls.is_empty() => match (is_cut(done), &done.ending) {
            (Some(to), _) => (None, Some(format!("{}\n", range_line(to)))),
            (None, Ending::Returned(value)) => (Some(pretty(value)), None),
            (None, _) => (None, Some(format!("{}\n", line(done)))),
        },
        _ => {
            let all = dones.iter().map(|done| match &done.ending {
                Ending::Returned(value) => json!({ "result": value }),
                _ => json!({ "error": line(done) }),
            });
            (Some(pretty(&all.collect())), None)
        }
    }
}

/// JSON as a file of a scenario has it.
pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The end of a scenario that has a last entry.
pub(crate) fn range_line(to: u32) -> String {
    format!("range: the scenario ends with entry {to}")
}

/// An end without a value in one line. The words of a trap are the engine's, and not compared.
fn line(done: &Done) -> String {
    match &done.ending {
        Ending::Returned(_) => String::new(),
        Ending::Refused(refusal) => refusal_line(refusal),
        Ending::Stopped(_) => match done.limit() {
            Some(hit) => format!("limit: {}", hit.name),
            None => done.ending_json()["stopped"]["by"].as_str().unwrap_or_default().to_owned(),
        },
    }
}

/// JSON may be laid out as its author likes.
fn normal(name: &str, text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if name == EXPECTED => pretty(&value),
        _ => text.to_owned(),
    }
}

fn read(path: &Path) -> Result<String, KitError> {
    fs::read_to_string(path).map_err(|error| file(path, error))
}

fn file(path: &Path, reason: impl ToString) -> KitError {
    KitError::File { path: path.to_owned(), reason: reason.to_string() }
}
