//! `longhaul graph`: code in steps. After a change, only the affected steps run again.

mod cells;
mod live;
mod show;

use super::context::Context;
use super::exit::Exit;
use super::package_args::PackageArgs;
use super::{grant_args, terminal};
use clap::{Args, Subcommand, ValueEnum};
use longhaul_api::graphs::{
    AddSteps, CreateGraph, DiagnoseStep, DrawGraph, ExportGraph, Language, ListGraphs, ListSteps, ModelChoice,
    OperateGraph, PatchStep, RemoveGraph, RunGraph, ShowHistory, TRIES_MAX,
};
use longhaul_api::operations::GraphOperations as _;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_core::graph::{self, GraphAnswer, GraphFormat, GraphOperation, StepEnvironment, StepLimits};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum GraphCommand {
    /// Make a graph.
    New {
        /// Name of the graph.
        name: String,
        /// The language of the steps.
        #[arg(long, default_value = "python")]
        lang: LanguageArg,
        #[command(flatten)]
        sees: StepGrantArgs,
    },
    /// List all graphs.
    List,
    /// Remove a graph, or one step of it.
    Remove {
        /// Name of the graph.
        name: String,
        /// Remove only this step.
        step: Option<String>,
    },
    /// Add a step, or all cells of a file.
    Add {
        /// Name of the graph.
        name: String,
        /// Name of the step. Without it each cell of --file becomes a step; a line `# %% NAME` begins a cell.
        step: Option<String>,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Replace the source of a step.
    Change {
        /// Name of the graph.
        name: String,
        /// Name of the step.
        step: String,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Run the stale steps, and print their output while they run.
    Run {
        /// Name of the graph.
        name: String,
        /// Also run steps that need a failed step, as a notebook would.
        #[arg(long)]
        keep_going: bool,
        /// Run this interrupted step again, although its effects may have happened.
        #[arg(long, value_name = "STEP")]
        again: Option<String>,
    },
    /// List the steps that would run, in their order.
    Stale {
        /// Name of the graph.
        name: String,
    },
    /// Run a step again, and the steps that its new values affect.
    Replay {
        /// Name of the graph.
        name: String,
        /// Name of the step.
        step: String,
        /// Also run steps that need a failed step.
        #[arg(long)]
        keep_going: bool,
    },
    /// Explain why a step failed, and which step is likely at fault.
    Diagnose {
        /// Name of the graph.
        name: String,
        /// Name of the step. Default: the first that failed.
        step: Option<String>,
        #[command(flatten)]
        model: ModelArg,
    },
    /// Try other sources on a copy of the graph, and keep one that removes the failure and breaks no other step.
    Patch {
        /// Name of the graph.
        name: String,
        /// Name of the step. Default: the first that failed.
        step: Option<String>,
        #[command(flatten)]
        model: ModelArg,
        /// The most sources to try.
        #[arg(long, default_value_t = TRIES_MAX)]
        tries: u32,
    },
    /// Show the steps with their states and the steps that they need.
    Show {
        /// Name of the graph.
        name: String,
        /// Show only this step, in full.
        step: Option<String>,
        /// Width of a line, in columns.
        #[arg(long, default_value_t = 100)]
        width: u32,
    },
    /// List the changes, the newest first.
    History {
        /// Name of the graph.
        name: String,
    },
    /// Export the graph as JSON, or for Graphviz.
    Export {
        /// Name of the graph.
        name: String,
        /// The format, `json` or `dot`.
        #[arg(long, default_value = "json", value_parser = format)]
        format: GraphFormat,
        /// Write to this file, which must not exist yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct StepGrantArgs {
    /// A directory for the steps, writable unless `:ro` follows. May be given several times. With a writable one, steps
    /// have effects, and an interrupted step is not repeated by itself.
    #[arg(long, value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    dir: Vec<DirectoryGrant>,
    /// A host that the steps may reach by HTTP, such as `https://api.example.com`. Steps then have effects. May be
    /// given several times.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
    #[command(flatten)]
    packages: PackageArgs,
    /// Longest wall-clock time of a step, in milliseconds.
    #[arg(long, default_value_t = StepLimits::default().timeout_ms)]
    timeout_ms: u64,
    /// Most memory of a step, in bytes.
    #[arg(long, default_value_t = StepLimits::default().memory_bytes_max)]
    memory_bytes_max: u64,
    /// Most fuel of a step, in units of wasmtime.
    #[arg(long, default_value_t = StepLimits::default().fuel_max)]
    fuel_max: u64,
}

impl StepGrantArgs {
    fn surroundings(self, context: &Context) -> fault::Result<StepEnvironment> {
        if !self.dir.is_empty() || !self.packages.is_empty() {
            context.expect_own_machine("a directory or a package for the steps of a graph")?;
        }
        let absolute = |grant: DirectoryGrant| {
            let host = std::fs::canonicalize(&grant.host).with_context(|| format!("`{}`", grant.host.display()))?;
            Ok::<_, Fault>(DirectoryGrant { host, ..grant })
        };
        let packages = self.packages.grant()?;
        Ok(StepEnvironment {
            directories: self.dir.into_iter().chain(packages).map(absolute).collect::<fault::Result<_>>()?,
            hosts: self.allow_host,
            limits: StepLimits {
                timeout_ms: self.timeout_ms,
                memory_bytes_max: self.memory_bytes_max,
                fuel_max: self.fuel_max,
            },
        })
    }
}

#[derive(Args, Debug)]
pub struct SourceArgs {
    /// The file with the source; `-` reads standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "source")]
    file: Option<PathBuf>,
    /// The source.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    source: Option<String>,
}

impl SourceArgs {
    fn text(self, bytes_max: usize) -> fault::Result<String> {
        match (self.source, self.file) {
            (Some(text), _) => Ok(text),
            (None, Some(path)) => cells::read(&path, bytes_max),
            (None, None) => bail!("there is no source; give one with --file or --source"),
        }
    }
}

#[derive(Args, Debug)]
pub struct ModelArg {
    /// Also ask this model, by its name in the project's longhaul.toml. Default: the project's first model, if it has
    /// one.
    #[arg(long, value_name = "NAME", conflicts_with = "no_model")]
    model: Option<String>,
    /// Ask no model.
    #[arg(long)]
    no_model: bool,
}

/// The names of the languages.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LanguageArg {
    /// CPython, in WebAssembly.
    Python,
}

impl From<LanguageArg> for Language {
    fn from(argument: LanguageArg) -> Self {
        match argument {
            LanguageArg::Python => Self::Python,
        }
    }
}

impl ModelArg {
    fn choice(self, context: &Context) -> Option<ModelChoice> {
        let project = &context.project;
        let has_config = match context.is_of_server() {
            true => context.names_project,
            false => project.join(longhaul_config::FILE).is_file(),
        };
        if self.no_model || (self.model.is_none() && !has_config) {
            return None;
        }
        Some(ModelChoice { directory: project.to_owned(), model: self.model })
    }
}

fn format(text: &str) -> Result<GraphFormat, String> {
    match text {
        "json" => Ok(GraphFormat::Json),
        "dot" => Ok(GraphFormat::Dot),
        other => Err(format!("`{other}` is no format; there are json and dot")),
    }
}

/// Runs the command. Exit code 3 if a step failed or could not run.
pub async fn run(context: &Context, command: GraphCommand) -> fault::Result<Exit> {
    // The service recognises by it a request that was carried out and is repeated because the owner of the data
    // directory stopped before it could answer.
    let token = token();
    match command {
        GraphCommand::New { name, lang, sees } => {
            let (language, surroundings) = (lang.into(), sees.surroundings(context)?);
            let request = CreateGraph { name, language, surroundings, steps: Vec::new(), token };
            show::summary(context, &context.create_graph(request).await?)
        }
        GraphCommand::List => show::summaries(context, &context.graphs(ListGraphs {}).await?),
        GraphCommand::Remove { name, step: None } => {
            show::summary(context, &context.remove_graph(RemoveGraph { name }).await?)
        }
        GraphCommand::Remove { name, step: Some(step) } => {
            operate(context, OperateGraph { name, operation: GraphOperation::Remove { step }, token }).await
        }
        GraphCommand::Add { name, step: Some(step), source } => {
            let source = source.text(graph::SOURCE_BYTES_MAX)?;
            operate(context, OperateGraph { name, operation: GraphOperation::Add { step, source }, token }).await
        }
        GraphCommand::Add { name, step: None, source } => {
            let steps = cells::split(&source.text(cells::FILE_BYTES_MAX)?)?;
            show::answer(context, &context.add_steps(AddSteps { name, steps, token }).await?)
        }
        GraphCommand::Change { name, step, source } => {
            let source = source.text(graph::SOURCE_BYTES_MAX)?;
            operate(context, OperateGraph { name, operation: GraphOperation::Change { step, source }, token }).await
        }
        GraphCommand::Run { name, keep_going, again } => {
            let request = RunGraph { name: name.clone(), keep_going, again, token: token.clone() };
            run_live(context, &name, &token, context.run_graph(request)).await
        }
        GraphCommand::Stale { name } => {
            operate(context, OperateGraph { name, operation: GraphOperation::Stale, token }).await
        }
        GraphCommand::Replay { name, step, keep_going } => {
            let operation = GraphOperation::Replay { step, keep_going };
            let request = OperateGraph { name: name.clone(), operation, token: token.clone() };
            run_live(context, &name, &token, context.operate_graph(request)).await
        }
        GraphCommand::Diagnose { name, step, model } => {
            let model = model.choice(context);
            show::answer(context, &context.diagnose_step(DiagnoseStep { name, step, model, token }).await?)
        }
        GraphCommand::Patch { name, step, model, tries: tries_max } => {
            let model = model.choice(context);
            show::answer(context, &context.patch_step(PatchStep { name, step, model, tries_max, token }).await?)
        }
        GraphCommand::Show { name, step: None, width } if !context.json => {
            show::drawing(&context.draw_graph(DrawGraph { name, width }).await?)
        }
        GraphCommand::Show { name, step, .. } => show_steps(context, name, step).await,
        GraphCommand::History { name } => show::versions(context, &context.graph_history(ShowHistory { name }).await?),
        GraphCommand::Export { name, format, output } => export(context, name, format, output).await,
    }
}

async fn show_steps(context: &Context, name: String, step: Option<String>) -> fault::Result<Exit> {
    let steps = context.graph_steps(ListSteps { name }).await?;
    let Some(step) = step else { return show::steps(&steps) };
    let found = steps.iter().find(|one| one.id == step);
    show::step(context, found.with_context(|| format!("there is no step `{step}` in this graph"))?)
}

async fn export(context: &Context, name: String, format: GraphFormat, output: Option<PathBuf>) -> fault::Result<Exit> {
    let text = context.export_graph(ExportGraph { name, format }).await?;
    match output {
        Some(path) => {
            let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let mut file = file.with_context(|| format!("cannot make `{}`", path.display()))?;
            writeln!(file, "{}", text.trim_end())?;
        }
        None => terminal::document(text.trim_end()),
    }
    Ok(Exit::Done)
}

async fn operate(context: &Context, request: OperateGraph) -> fault::Result<Exit> {
    show::answer(context, &context.operate_graph(request).await?)
}

/// Waits for the answer to a run, and prints the output of the steps meanwhile. JSON is the answer alone.
async fn run_live(
    context: &Context,
    name: &str,
    token: &str,
    run: impl Future<Output = fault::Result<GraphAnswer>>,
) -> fault::Result<Exit> {
    if context.json {
        return show::answer(context, &run.await?);
    }
    let (answer, printed) = live::follow(context, name, token, run).await;
    show::answer_to_run(context, &answer?, &printed)
}

fn token() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}
