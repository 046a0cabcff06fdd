//! `longhaul plugin test`: runs the scenario folders of a plugin's project.

use super::super::context::Context;
use super::super::exit::Exit;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::ScenarioView;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_plugins::manifest::PluginManifest;
use longhaul_testkit::run_scenarios_named;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct TestArgs {
    /// The project: the folder with plugin.toml and `tests`.
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// The component. Default: NAME.wasm of the project, where `longhaul plugin build` puts it.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Run only the scenarios with this text in their names.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// With `1`, expectations are written instead of compared, as in the tests of this repository.
const UPDATE_VARIABLE: &str = "UPDATE_EXPECT";

/// Folders of a project that may hold its component.
const BUILT: [&str; 3] = ["", "target", "target/plugins"];

/// Runs the command.
pub async fn run(context: &Context, args: TestArgs) -> fault::Result<Exit> {
    let component = match args.component {
        Some(component) => component,
        None => built(&args.directory)?,
    };
    let update = std::env::var(UPDATE_VARIABLE).is_ok_and(|value| value == "1");
    let tests = args.directory.join("tests");
    let outcomes = run_scenarios_named(&super::run::kit()?, &component, &tests, &args.filter, update).await?;
    let mut failed = 0;
    for outcome in &outcomes {
        let word = if outcome.difference.is_some() { "FAIL" } else { "PASS" };
        if context.json {
            let (scenario, difference) = (outcome.name.clone(), outcome.difference.clone());
            print_json(&ScenarioView { scenario, result: word.to_owned(), difference })?;
        } else {
            outln!("{word} {}", outcome.name);
            for line in outcome.difference.iter().flat_map(|text| text.lines()) {
                outln!("    {line}");
            }
        }
        failed += usize::from(outcome.difference.is_some());
    }
    if failed > 0 {
        bail!(
            "{failed} of {} scenarios fail; where the new result is right, run it with {UPDATE_VARIABLE}=1",
            outcomes.len()
        );
    }
    Ok(Exit::Done)
}

/// Finds the component of a project.
fn built(project: &Path) -> fault::Result<PathBuf> {
    let path = project.join("plugin.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read `{}`; name the project's folder", path.display()))?;
    let name = PluginManifest::parse(&text).with_context(|| format!("`{}`", path.display()))?.name;
    let found = BUILT.iter().map(|place| project.join(place).join(format!("{name}.wasm"))).find(|path| path.is_file());
    found.with_context(|| {
        format!(
            "there is no {name}.wasm in `{}`; build it with `longhaul plugin build`, or name it with --component",
            project.display()
        )
    })
}
