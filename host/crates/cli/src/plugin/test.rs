//! `longhaul plugin test`: runs the scenario folders of a plugin's project, or of a recording.

use super::super::context::Context;
use super::super::exit::Exit;
use super::source;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::ScenarioView;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_plugins::manifest::PluginManifest;
use longhaul_testkit::{ScenarioFolder, ScenarioOutcome, run_scenario_folders, scenario_folders};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct TestArgs {
    /// The project: the folder with plugin.toml and `tests`. Or a folder of scenarios that name their plugins, as
    /// `longhaul scenario record` writes it.
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// The component. Default: NAME.wasm of the project, where `longhaul plugin build` puts it; for a scenario that
    /// names another plugin, the one that a run would find.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Run only the scenarios with this text in their names.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Write the expectations where the new result differs, and show what was written.
    #[arg(long)]
    update: bool,
}

/// With `1`, expectations are written as with `--update`, as in the tests of this repository.
const UPDATE_VARIABLE: &str = "UPDATE_EXPECT";

/// Folders of a project that may hold its component.
const BUILT: [&str; 3] = ["", "target", "target/plugins"];

/// The file of a plugin's project.
const MANIFEST: &str = "plugin.toml";

/// Runs the command.
pub async fn run(context: &Context, args: TestArgs) -> fault::Result<Exit> {
    let update = args.update || std::env::var(UPDATE_VARIABLE).is_ok_and(|value| value == "1");
    let folders = scenario_folders(&tests(&args.directory), &args.filter)?;
    let kit = super::run::kit()?;
    let mut outcomes = Vec::new();
    for (component, folders) in by_component(context, &args, folders)? {
        outcomes.extend(run_scenario_folders(&kit, &component, &folders, update).await?);
    }
    outcomes.sort_by(|a, b| a.name.cmp(&b.name));
    outcomes.iter().try_for_each(|outcome| print(context, outcome))?;
    let failed = outcomes.iter().filter(|outcome| outcome.difference.is_some()).count();
    if failed > 0 {
        bail!("{failed} of {} scenarios fail; where the new result is right, run it with --update", outcomes.len());
    }
    Ok(Exit::Done)
}

fn print(context: &Context, outcome: &ScenarioOutcome) -> fault::Result<()> {
    let ScenarioOutcome { name, difference, accepted } = outcome.clone();
    let word = match (&difference, &accepted) {
        (Some(_), _) => "FAIL",
        (None, Some(_)) => "UPDATE",
        (None, None) => "PASS",
    };
    if context.json {
        return print_json(&ScenarioView { scenario: name, result: word.to_owned(), difference, accepted });
    }
    outln!("{word} {name}");
    for line in accepted.iter().chain(&difference).flat_map(|text| text.lines()) {
        outln!("    {line}");
    }
    Ok(())
}

/// The folder of the scenarios: `tests` of a project, or the folder itself.
fn tests(directory: &Path) -> PathBuf {
    let tests = directory.join("tests");
    if tests.is_dir() || directory.join(MANIFEST).is_file() { tests } else { directory.to_owned() }
}

/// The scenarios of each component.
fn by_component(
    context: &Context,
    args: &TestArgs,
    folders: Vec<ScenarioFolder>,
) -> fault::Result<BTreeMap<PathBuf, Vec<ScenarioFolder>>> {
    let mut found: BTreeMap<PathBuf, Vec<ScenarioFolder>> = BTreeMap::new();
    let mut known: BTreeMap<Option<String>, PathBuf> = BTreeMap::new();
    for folder in folders {
        let name = folder.plugin.as_ref().map(|plugin| plugin.name.clone());
        let component = match (&args.component, known.get(&name)) {
            (Some(named), _) => named.clone(),
            (None, Some(component)) => component.clone(),
            (None, None) => component_of(context, &args.directory, name.as_deref())?,
        };
        known.insert(name, component.clone());
        found.entry(component).or_default().push(folder);
    }
    Ok(found)
}

/// The component of the project, unless a scenario names a plugin that the project does not make.
fn component_of(context: &Context, project: &Path, plugin: Option<&str>) -> fault::Result<PathBuf> {
    match plugin {
        Some(plugin) if !project.join(MANIFEST).is_file() => source::file_of(context, plugin),
        Some(plugin) => match own_name(project)? {
            own if own == plugin => built(project, &own),
            _ => source::file_of(context, plugin),
        },
        None => built(project, &own_name(project)?),
    }
}

/// The name of the plugin that a project makes.
fn own_name(project: &Path) -> fault::Result<String> {
    let path = project.join(MANIFEST);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read `{}`; name the project's folder", path.display()))?;
    Ok(PluginManifest::parse(&text).with_context(|| format!("`{}`", path.display()))?.name)
}

/// Finds the component of a project.
fn built(project: &Path, name: &str) -> fault::Result<PathBuf> {
    let found = BUILT.iter().map(|place| project.join(place).join(format!("{name}.wasm"))).find(|path| path.is_file());
    found.with_context(|| {
        format!(
            "there is no {name}.wasm in `{}`; build it with `longhaul plugin build`, or name it with --component",
            project.display()
        )
    })
}
