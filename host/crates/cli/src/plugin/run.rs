//! `longhaul plugin run`: calls one export of a plugin under limits, and shows the result and the calls.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::grant_args;
use super::source;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::{ImportCallView, LogLineView, PluginCallView};
use longhaul_capabilities::LogLine;
use longhaul_core::Limits;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_home::{cache, own_program};
use longhaul_testkit::{Call, Done, Ending, HandClock, Kit, Made, Scene, Script};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Text after the options in the long help.
const INPUTS: &str = "\
Exports and their inputs; a field with a value here may be left out, and has that value:
  tool       describe    {}
             call        {\"function\", \"arguments\": {}, \"idempotency_key\": \"testkit-1\", \"attempt\": 1}
                         (\"arguments_text\" hands a text over that need not be JSON)
             prepare     {\"function\", \"arguments\": {}}
             verify      {\"function\", \"arguments\": {}, \"prepared\": {}}
  planner    plan        {\"text\": \"\", \"context\": {}, \"settings\": {}, \"criteria\": []}
             replan      {\"goal\": {..}, \"plan\": {\"steps\": [], \"notes\": \"\"}, \"results\": []}
             synthesize  {\"goal\": {..}, \"results\": []}
  agent      run         {\"id\": \"task\", \"instruction\": \"\", \"context\": {}, \"settings\": {},
                          \"criteria\": [], \"feedback\": [], \"round\": 1}
  evaluator  judge       {\"subject\": {\"instruction\": \"\", \"output\": null, \"evidence\": []},
                          \"rubric\": {\"criteria\": [], \"settings\": {}}}
  memory     put         {\"namespace\": \"\", \"entry\": {\"key\", \"value\": null, \"tags\": [],
                          \"expires_at_ms\": null}}
             get, delete {\"namespace\": \"\", \"key\"}
             search      {\"namespace\": \"\", \"query\", \"limit\": 100}
             list        {\"namespace\": \"\", \"prefix\": \"\", \"cursor\": null, \"limit\": 100}
A criterion is {\"id\", \"text\": \"\", \"check\": null}, an evidence {\"name\", \"content\"}, feedback
{\"criterion\": null, \"text\"}, a result {\"step\", \"passed\", \"outcome\": null, \"issues\": []}, an outcome
{\"output\": null, \"summary\": \"\", \"confidence\": null, \"unknowns\": []}, and a step {\"id\", \"title\": \"\",
\"instruction\": \"\", \"category\": \"functional\", \"priority\": 5, \"agent\": null, \"criteria\": [], \"checks\": [],
\"depends_on\": [], \"on_failure\": {\"retry\": 1}}.

Exit code 0 when the export returned a value, 1 when it returned an error or was stopped.";

#[derive(Args, Debug)]
#[command(after_long_help = INPUTS)]
pub struct RunArgs {
    /// A `.wasm` file, or the name of a plugin.
    file: String,
    /// The export: `describe`, `call`, `plan`, `replan`, `synthesize`, `run`, `judge`, `put`, `get`,
    /// `search`, `delete`, `list`, `prepare` or `verify`; `--help` has the input of each.
    export: String,
    /// The input as JSON, or `@FILE` to read it from a file.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// Settings of the plugin, a JSON object. Default: none, so that the plugin uses its defaults.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    settings: String,
    /// Answers of models, tools, checks and sub-agents, as TOML or JSON. Default: no answers.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Keep the plugin's store in this directory for the next call. Default: in memory.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// A directory that a tool or a memory backend may use, for example `./data:/work:ro`.
    #[arg(long = "dir", value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    directories: Vec<DirectoryGrant>,
    /// A host that a tool or a memory backend may reach, for example `https://api.example.com`.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
    /// Most fuel, in units of wasmtime.
    #[arg(long, value_name = "N")]
    fuel_max: Option<u64>,
    /// Most memory, in bytes.
    #[arg(long, value_name = "N")]
    memory_bytes_max: Option<u64>,
    /// Longest wall-clock time, in milliseconds.
    #[arg(long, value_name = "N")]
    wall_ms_max: Option<u64>,
}

/// Runs the command.
pub async fn run(context: &Context, args: RunArgs) -> fault::Result<Exit> {
    let path = source::file_of(context, &args.file)?;
    let call = Call::from_json(&args.export, input(&args.input)?)?;
    let scene = staged(kit()?.load(&path).await?, &args)?;
    let done = scene.call(call).await?;
    show(context, &done)?;
    Ok(if matches!(done.ending, Ending::Returned(_)) { Exit::Done } else { Exit::Error })
}

/// A kit that compiles with this same program, into the cache of runs.
pub(crate) fn kit() -> fault::Result<Kit> {
    Ok(Kit::with_program(own_program()?, cache()?.join("compiled"))?)
}

fn input(text: &str) -> fault::Result<Value> {
    let read = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read the input `{file}`"))?,
        None => text.to_owned(),
    };
    serde_json::from_str(&read).context("the input is not JSON")
}

fn staged(scene: Scene, args: &RunArgs) -> fault::Result<Scene> {
    let settings: Value = serde_json::from_str(&args.settings).context("the settings are not JSON")?;
    if !settings.is_object() {
        bail!("the settings are a JSON object, for example {{\"limit\": 3}}");
    }
    let mut scene = match &args.script {
        Some(file) => scene.script(Script::read(file)?),
        None => scene.with_clock(HandClock::running_from(now_ms())),
    };
    let defaults = Limits::default();
    scene = scene.settings(settings).limits(Limits {
        fuel_max: args.fuel_max.unwrap_or(defaults.fuel_max),
        memory_bytes_max: args.memory_bytes_max.unwrap_or(defaults.memory_bytes_max),
        wall_ms_max: args.wall_ms_max.unwrap_or(defaults.wall_ms_max),
        ..defaults
    });
    if !(args.directories.is_empty() && args.allow_host.is_empty()) && scene.role().is_pure() {
        bail!("the role {} has no directories and no hosts; only tools and memory backends do", scene.role().name());
    }
    for directory in &args.directories {
        scene = scene.directory(directory.clone());
    }
    for pattern in &args.allow_host {
        scene = scene.host(pattern.clone());
    }
    if let Some(directory) = &args.state {
        scene = scene.state_in(directory)?;
    }
    Ok(scene)
}

fn show(context: &Context, done: &Done) -> fault::Result<()> {
    if context.json {
        return print_json(&view(done)?);
    }
    outtext!(done.to_string());
    Ok(())
}

fn view(done: &Done) -> fault::Result<PluginCallView> {
    let call = |Made { name, summary, .. }: &Made| ImportCallView { name: name.clone(), summary: summary.clone() };
    let line = |LogLine { level, text }: &LogLine| LogLineView { level: level.clone(), text: text.clone() };
    Ok(PluginCallView {
        end: serde_json::from_value(done.ending_json())?,
        export: done.export.to_owned(),
        limit: done.limit().cloned().map(Into::into),
        fuel: done.used.fuel,
        memory_bytes_peak: done.used.memory_bytes_peak,
        host_calls: done.used.host_calls,
        model_calls: done.used.model_calls,
        wall_ms: done.wall.as_secs_f64() * 1_000.0,
        calls: done.calls.iter().map(call).collect(),
        events: done.events.clone(),
        log: done.log.iter().map(line).collect(),
        log_dropped: done.log_dropped,
    })
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
