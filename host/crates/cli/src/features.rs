//! `longhaul features`: lists and changes the features of a run, also while it is worked on, and the proposals of
//! agents for them.

pub mod proposals;

use super::context::Context;
use super::exit::Exit;
use super::order::{print_done, print_json};
use super::show::feature_word;
use super::terminal;
use clap::{Args, Subcommand};
use longhaul_api::features::{AddFeature, DropFeature, EditFeature, RecheckFeatures, RecheckOutcome, ShowKept};
use longhaul_api::operations::{FeatureOperations as _, RunOperations as _};
use longhaul_api::runs::ShowRun;
use longhaul_api::runs::{FeatureRecheck, RunRef};
use longhaul_api::wire::Page;
use longhaul_api::wire::features::{FeatureSpecView, FeatureView};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::work::{CheckBody, CheckSpec, Criterion, FeatureSpec};
use longhaul_report::messages::count;
use std::path::{Path, PathBuf};

#[derive(Subcommand, Debug)]
pub enum FeaturesCommand {
    /// Show the features. The default.
    List,
    /// Show which features can be worked on in parallel, one wave a line.
    Waves,
    /// Add a feature.
    Add(FeatureArgs),
    /// Change a feature. It is then built and judged anew.
    Edit(FeatureArgs),
    /// Drop a feature from the run.
    Drop {
        /// Id of the feature.
        id: String,
    },
    /// Accept a proposal of an agent, and carry it out.
    Accept(proposals::AcceptArgs),
    /// Reject a proposal of an agent.
    Reject(proposals::RejectArgs),
    /// Run the checks of passing features again on the present commit of the branch. A feature whose check fails
    /// becomes failing, and a completed run is open again. Exit code 3 when a check fails, 1 when one could not be run.
    Recheck {
        /// Id of the feature. Default: every feature that passes.
        id: Option<String>,
    },
    /// Print the files that a failing feature, or `revert --stash`, left in the worktree, as JSON by path.
    Kept {
        /// The feature, or the name that `revert` printed.
        name: String,
    },
}

#[derive(Args, Debug)]
pub struct FeatureArgs {
    /// Id of the feature: letters, digits, `-` and `_`.
    id: String,
    /// Title in one line. Default: the present title; for a new feature, the id.
    #[arg(long)]
    title: Option<String>,
    /// The instruction for the agent.
    #[arg(long)]
    instruction: Option<String>,
    /// Category: functional, ui, performance, security, integration, testing or documentation.
    #[arg(long)]
    category: Option<String>,
    /// Priority from 1 to 10. Higher ones are worked on first.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: Option<u8>,
    /// A feature that must pass first; may be repeated.
    #[arg(long = "depends-on", value_name = "ID")]
    depends_on: Vec<String>,
    /// A criterion that the evaluator judges; may be repeated.
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Vec<String>,
    /// A Python file that must run without an error; may be repeated.
    #[arg(long = "python-check", value_name = "FILE")]
    python_checks: Vec<PathBuf>,
    /// A check of [checks] in longhaul.toml; may be repeated.
    #[arg(long = "check", value_name = "NAME")]
    native_checks: Vec<String>,
}

/// Runs the command.
pub async fn run(context: &Context, run: RunRef, command: Option<FeaturesCommand>) -> fault::Result<Exit> {
    match command.unwrap_or(FeaturesCommand::List) {
        FeaturesCommand::List => list(context, run).await,
        FeaturesCommand::Waves => waves(context, run).await,
        FeaturesCommand::Add(spec) => {
            let spec = spec.onto(None)?;
            print_done(context, &context.add_feature(AddFeature { run, spec }).await?, "added")
        }
        FeaturesCommand::Edit(spec) => {
            context.client.keep();
            let old = features(context, run.clone()).await?.into_iter().find(|old| old.id == spec.id);
            let old =
                old.with_context(|| format!("there is no feature `{}`; `longhaul features` lists them", spec.id))?;
            let spec = spec.onto(Some(old))?;
            print_done(context, &context.edit_feature(EditFeature { run, spec }).await?, "edited")
        }
        FeaturesCommand::Drop { id } => {
            print_done(context, &context.drop_feature(DropFeature { run, feature: id }).await?, "dropped")
        }
        FeaturesCommand::Accept(args) => proposals::accept(context, run, args).await,
        FeaturesCommand::Reject(args) => proposals::reject(context, run, args).await,
        FeaturesCommand::Recheck { id } => recheck(context, run, id).await,
        FeaturesCommand::Kept { name } => kept(context, run, name).await,
    }
}

/// Prints one wave a line: features that can be worked on in parallel once the lines before pass.
async fn waves(context: &Context, run: RunRef) -> fault::Result<Exit> {
    let specs = features(context, run).await?;
    let waves = longhaul_harness::select::waves(&specs);
    if context.json {
        print_json(&waves)?;
        return Ok(Exit::Done);
    }
    waves.iter().for_each(|wave| outln!("{}", wave.join("  ")));
    Ok(Exit::Done)
}

async fn recheck(context: &Context, run: RunRef, feature: Option<String>) -> fault::Result<Exit> {
    let outcome = context.recheck_features(RecheckFeatures { run, feature }).await?;
    let RecheckOutcome { run, features } = &outcome;
    let fails = features.iter().any(|feature| !feature.failed.is_empty());
    if context.json {
        print_json(&outcome)?;
    } else {
        features.iter().for_each(|feature| outln!("{}", rechecked(feature)));
        if fails {
            outln!("go on with: longhaul resume {run}");
        }
    }
    Ok(match features.iter().all(|feature| feature.error.is_none()) {
        _ if fails => Exit::Incomplete,
        true => Exit::Done,
        false => Exit::Error,
    })
}

fn rechecked(of: &FeatureRecheck) -> String {
    let FeatureRecheck { feature, checks, failed, error } = of;
    match error {
        Some(why) => format!("not run {feature}: {why}"),
        None if checks.is_empty() => format!("passes  {feature}: it has no checks"),
        None if failed.is_empty() => format!("passes  {feature}: {}", checks.join(", ")),
        None => format!("fails   {feature}: {}", failed.join(", ")),
    }
}

async fn kept(context: &Context, run: RunRef, name: String) -> fault::Result<Exit> {
    terminal::document(&context.kept_work(ShowKept { run, name }).await?.text);
    Ok(Exit::Done)
}

async fn features(context: &Context, run: RunRef) -> fault::Result<Vec<FeatureSpec>> {
    let status = context.run_status(ShowRun { run }).await?;
    Ok(status.features.into_iter().map(|feature| feature.spec).collect())
}

async fn list(context: &Context, run: RunRef) -> fault::Result<Exit> {
    let status = context.run_status(ShowRun { run }).await?;
    if context.json {
        print_json(&Page::whole(status.features, FeatureView::from))?;
        return Ok(Exit::Done);
    }
    for feature in &status.features {
        outln!("{:<12} {}: {}", feature_word(feature.status), feature.spec.id, feature.spec.title);
        for criterion in &feature.spec.criteria {
            outln!("             - {}", criterion.text);
        }
    }
    outln!(
        "{}; at most {} tokens{}",
        count(status.features.len(), "feature"),
        status.tokens_max,
        match status.cost_microdollars_max {
            Some(cost) => format!(" and {} millionths of a US dollar", cost),
            None => String::new(),
        }
    );
    Ok(Exit::Done)
}

/// `--checks`: prints how each criterion is judged.
pub async fn list_checks(context: &Context, run: RunRef) -> fault::Result<Exit> {
    let specs = features(context, run).await?;
    if context.json {
        print_json(&Page::whole(specs, FeatureSpecView::from))?;
        return Ok(Exit::Done);
    }
    for FeatureSpec { id, title, criteria, checks, .. } in specs {
        outln!("{id}: {title}");
        for Criterion { text, check, .. } in criteria {
            outln!("  - {text}");
            match check.and_then(|name| checks.iter().find(|check| check.name == name)) {
                None => outln!("    the evaluator reads the work"),
                Some(CheckSpec { name, body: CheckBody::Native(native) }) => {
                    outln!("    check {name}: the command `{native}` of [checks]");
                }
                Some(CheckSpec { name, body: CheckBody::Python(source) }) => {
                    outln!("    check {name}, in Python:");
                    source.lines().for_each(|line| outln!("      {line}"));
                }
            }
        }
    }
    Ok(Exit::Done)
}

impl FeatureArgs {
    /// The given fields, over those of the old feature.
    fn onto(self, old: Option<FeatureSpec>) -> fault::Result<FeatureSpec> {
        let mut spec = old.unwrap_or_else(|| FeatureSpec {
            id: self.id.clone(),
            title: self.id.clone(),
            instruction: String::new(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        });
        spec.title = self.title.unwrap_or(spec.title);
        spec.instruction = self.instruction.unwrap_or(spec.instruction);
        spec.category = self.category.unwrap_or(spec.category);
        spec.priority = self.priority.unwrap_or(spec.priority);
        if !self.depends_on.is_empty() {
            spec.depends_on = self.depends_on;
        }
        // Criteria and checks are one contract: any new one replaces all.
        if !(self.criteria.is_empty() && self.python_checks.is_empty() && self.native_checks.is_empty()) {
            (spec.criteria, spec.checks) = contract(self.criteria, &self.python_checks, self.native_checks)?;
        }
        if spec.instruction.trim().is_empty() {
            bail!("feature `{}` has no instruction; add --instruction TEXT", spec.id);
        }
        Ok(spec)
    }
}

fn contract(
    texts: Vec<String>,
    python: &[PathBuf],
    native: Vec<String>,
) -> fault::Result<(Vec<Criterion>, Vec<CheckSpec>)> {
    let mut checks = Vec::new();
    for path in python {
        let source = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        checks.push(CheckSpec { name: stem(path), body: CheckBody::Python(source) });
    }
    checks.extend(native.into_iter().map(|name| CheckSpec { name: name.clone(), body: CheckBody::Native(name) }));
    let mut criteria: Vec<Criterion> =
        (1..).zip(texts).map(|(number, text)| Criterion { id: format!("c{number}"), text, check: None }).collect();
    for check in &checks {
        let text = format!("the check `{}` passes", check.name);
        criteria.push(Criterion { id: check.name.clone(), text, check: Some(check.name.clone()) });
    }
    Ok((criteria, checks))
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "check".to_owned(), |stem| stem.to_string_lossy().into_owned())
}
