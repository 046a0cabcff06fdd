//! `longhaul agent`: named agents, which run now or on a schedule, and the artifacts of their runs.

mod code;
mod show;

use super::context::Context;
use super::exit::Exit;
use super::task_status::StatusArg;
use clap::Subcommand;
use code::{CodeArgs, SettingArgs};
use longhaul_agents::AgentPatch;
use longhaul_api::agents::{
    ActivateAgent, ClearArtifact, ExecuteAgent, ListAgents, ListArtifacts, ListTasks, PAGE, RegisterAgent, RemoveAgent,
    SetArtifact, ShowAgent, ShowArtifact, UpdateAgent,
};
use longhaul_api::operations::AgentOperations as _;
use longhaul_core::Name;
use longhaul_core::fault::{self, Context as _, bail};
use serde_json::Value;
use std::io::Read as _;
use std::path::PathBuf;

/// Longest state, and longest input, that are read, in bytes.
const JSON_BYTES_MAX: u64 = 4 << 20;

#[derive(Subcommand, Debug)]
pub enum AgentCommand {
    /// Add an agent.
    Add {
        /// Name of the agent: 1 to 64 letters, digits, `-`, `_` and `.`.
        name: Name,
        #[command(flatten)]
        code: CodeArgs,
        #[command(flatten)]
        settings: Box<SettingArgs>,
        /// Add the agent switched off.
        #[arg(long)]
        inactive: bool,
    },
    /// Change an agent. Options that are left out keep their values.
    Update {
        /// Name of the agent.
        name: Name,
        #[command(flatten)]
        code: CodeArgs,
        #[command(flatten)]
        settings: Box<SettingArgs>,
        /// Change the agent only if it has this version, as `agent show` prints it.
        #[arg(long, value_name = "NUMBER")]
        version: Option<u64>,
    },
    /// List agents.
    List {
        /// List only agents that are switched on.
        #[arg(long, conflicts_with = "inactive")]
        active: bool,
        /// List only agents that are switched off.
        #[arg(long)]
        inactive: bool,
        /// The most entries to list.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// The number of entries to skip.
        #[arg(long, default_value_t = 0)]
        offset: usize,
    },
    /// Show all of an agent.
    Show {
        /// Name of the agent.
        name: Name,
    },
    /// Switch an agent on.
    Activate {
        /// Name of the agent.
        name: Name,
    },
    /// Switch an agent off. Its waiting tasks and its later fires are recorded as skipped.
    Deactivate {
        /// Name of the agent.
        name: Name,
    },
    /// Remove an agent with its artifact. Its tasks stay.
    Remove {
        /// Name of the agent.
        name: Name,
    },
    /// Run an agent now and wait for it. Exit code 1 if it did not succeed.
    Execute {
        /// Name of the agent.
        name: Name,
        /// Input of the agent's code, `CONTEXT["input"]`; any JSON.
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
    },
    /// Show, set and clear the artifact that the next run of an agent starts from.
    Artifact {
        #[command(subcommand)]
        command: ArtifactCommand,
    },
    /// List the tasks of an agent: open tasks first, then ended ones, the newest first.
    Tasks {
        /// Name of the agent.
        name: Name,
        /// List only tasks with this status.
        #[arg(long)]
        status: Option<StatusArg>,
        /// The most entries to list.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// The number of entries to skip.
        #[arg(long, default_value_t = 0)]
        offset: usize,
    },
}

#[derive(Subcommand, Debug)]
pub enum ArtifactCommand {
    /// Show the artifact that the next run starts from.
    Show {
        /// Name of the agent.
        name: Name,
        /// Show this version instead.
        #[arg(long, value_name = "NUMBER")]
        version: Option<u64>,
    },
    /// Replace the artifact with another state.
    Set {
        /// Name of the agent.
        name: Name,
        /// The state; any JSON.
        #[arg(long, value_name = "JSON", required_unless_present = "file")]
        state: Option<String>,
        /// The file with the state; `-` reads standard input.
        #[arg(long, value_name = "FILE", conflicts_with = "state")]
        file: Option<PathBuf>,
        /// Summary of the state. Default: the present summary.
        #[arg(long)]
        summary: Option<String>,
        /// Replace the artifact only if it has this version; 0 means that there never was one.
        #[arg(long, value_name = "NUMBER")]
        version: Option<u64>,
    },
    /// Clear the artifact, so that the next run is a first one.
    Clear {
        /// Name of the agent.
        name: Name,
        /// Clear the artifact only if it has this version.
        #[arg(long, value_name = "NUMBER")]
        version: Option<u64>,
    },
    /// List the versions that are kept, the newest first.
    History {
        /// Name of the agent.
        name: Name,
    },
}

/// Runs the command.
pub async fn run(context: &Context, command: AgentCommand) -> fault::Result<Exit> {
    match command {
        AgentCommand::Add { name, code, settings, inactive } => {
            let code = code
                .read(context)?
                .context("there is no code; name a --python, --js or --wasm file, an --ask, or --run")?;
            let agent = settings.new_agent(context, name, code.code, !inactive)?;
            let added = context.register_agent(RegisterAgent { agent, wasm: code.wasm }).await?;
            show::agent(context, &added, "added")
        }
        AgentCommand::Update { name, code, settings, version } => {
            let code = code.read(context)?;
            let (code, wasm) = code.map_or((None, None), |code| (Some(code.code), code.wasm));
            context.client.keep();
            let old = context.agent(ShowAgent { name: name.clone() }).await?;
            let patch = settings.patch(context, &old.record.agent, code)?;
            if patch == AgentPatch::default() {
                bail!("nothing is to be changed; `longhaul agent update --help` lists what can be");
            }
            // Unchanged limits are copied from the version that was read, so the update may only meet that version.
            let version = Some(version.unwrap_or(old.record.version));
            let changed = context.update_agent(UpdateAgent { name, patch, wasm, version }).await?;
            show::agent(context, &changed, "changed")
        }
        AgentCommand::List { active, inactive, limit, offset } => {
            let active = if active || inactive { Some(active) } else { None };
            show::agents(context, &context.agents(ListAgents { active, limit, offset }).await?)
        }
        AgentCommand::Show { name } => show::agent_whole(context, &context.agent(ShowAgent { name }).await?),
        AgentCommand::Activate { name } => {
            let request = ActivateAgent { name, active: true };
            show::agent(context, &context.activate_agent(request).await?, "switched on")
        }
        AgentCommand::Deactivate { name } => {
            let request = ActivateAgent { name, active: false };
            show::agent(context, &context.activate_agent(request).await?, "switched off")
        }
        AgentCommand::Remove { name } => {
            show::agent(context, &context.remove_agent(RemoveAgent { name }).await?, "removed")
        }
        AgentCommand::Execute { name, input } => {
            let input = input.map(|text| json(&text, "--input")).transpose()?;
            show::executed(context, &context.execute_agent(ExecuteAgent { name, input }).await?)
        }
        AgentCommand::Artifact { command } => artifact(context, command).await,
        AgentCommand::Tasks { name, status, limit, offset } => {
            let status = status.map(Into::into);
            let request = ListTasks { agent: Some(name), status, limit, offset };
            super::schedule::tasks_of_agent(context, request).await
        }
    }
}

async fn artifact(context: &Context, command: ArtifactCommand) -> fault::Result<Exit> {
    let artifact = match command {
        ArtifactCommand::Show { name, version } => context.artifact(ShowArtifact { name, version }).await?,
        ArtifactCommand::Set { name, state, file, summary, version } => {
            let state = match (state, file) {
                (Some(text), _) => json(&text, "--state")?,
                (None, Some(path)) => json(&read(&path)?, "the file")?,
                (None, None) => bail!("there is no state; give one with --state or --file"),
            };
            context.set_artifact(SetArtifact { name, state, summary, version }).await?
        }
        ArtifactCommand::Clear { name, version } => context.clear_artifact(ClearArtifact { name, version }).await?,
        ArtifactCommand::History { name } => {
            return show::artifacts(context, &context.artifacts(ListArtifacts { name }).await?);
        }
    };
    show::artifact(context, &artifact)
}

fn json(text: &str, what: &str) -> fault::Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{what} is not JSON"))
}

fn read(path: &std::path::Path) -> fault::Result<String> {
    let mut text = String::new();
    let name = || format!("read `{}`", path.display());
    let most = JSON_BYTES_MAX + 1;
    if path == std::path::Path::new("-") {
        std::io::stdin().lock().take(most).read_to_string(&mut text).context("read standard input")?;
    } else {
        if !std::fs::metadata(path).with_context(name)?.is_file() {
            bail!("`{}` is not a file", path.display());
        }
        std::fs::File::open(path).with_context(name)?.take(most).read_to_string(&mut text).with_context(name)?;
    }
    if text.len() as u64 > JSON_BYTES_MAX {
        bail!("`{}` has more than {JSON_BYTES_MAX} bytes", path.display());
    }
    Ok(text)
}
