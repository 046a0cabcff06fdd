//! The code and the settings of an agent, as arguments of the command line.

use super::super::code_file::{self, Refusals};
use super::super::context::Context;
use super::super::grant_args;
use super::super::package_args::PackageArgs;
use base64::Engine as _;
use clap::Args;
use longhaul_agents::{
    AgentCode, AgentGrants, AgentLimits, AgentPatch, NewAgent, SOURCE_BYTES_MAX, SummaryBy, WASM_BYTES_MAX,
};
use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_core::{Digest, Name};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct CodeArgs {
    /// Run this file of Python in the sandbox.
    #[arg(long, value_name = "FILE", group = "code")]
    python: Option<PathBuf>,
    /// Run this file of JavaScript in the sandbox.
    #[arg(long, value_name = "FILE", group = "code")]
    js: Option<PathBuf>,
    /// Run this program of WASI in the sandbox.
    #[arg(long, value_name = "FILE", group = "code")]
    wasm: Option<PathBuf>,
    /// Put this question to the agents of the project, as with `longhaul ask`.
    #[arg(long, value_name = "GOAL", group = "code")]
    ask: Option<String>,
    /// Run the project, as with `longhaul run`.
    #[arg(long, group = "code")]
    run: bool,
    /// With --ask: the agent of the project that answers.
    #[arg(long, value_name = "NAME", requires = "ask")]
    by: Option<String>,
}

/// Code, and the bytes of a program.
pub struct CodeInput {
    pub code: AgentCode,
    pub wasm: Option<String>,
}

impl CodeArgs {
    /// Reads the code that the arguments name; none where they name none.
    pub fn read(self, context: &Context) -> fault::Result<Option<CodeInput>> {
        let directory = || context.project.clone();
        let code = match self {
            Self { python: Some(path), .. } => AgentCode::Python { source: source(&path)? },
            Self { js: Some(path), .. } => AgentCode::JavaScript { source: source(&path)? },
            Self { wasm: Some(path), .. } => {
                let bytes = bytes(&path, WASM_BYTES_MAX)?;
                let wasm = Some(base64::engine::general_purpose::STANDARD.encode(&bytes));
                return Ok(Some(CodeInput { code: AgentCode::Wasm { digest: Digest::of(&bytes) }, wasm }));
            }
            Self { ask: Some(goal), by, .. } => AgentCode::Ask { directory: directory(), goal, agent: by },
            Self { run: true, .. } => AgentCode::Run { directory: directory() },
            _ => return Ok(None),
        };
        Ok(Some(CodeInput { code, wasm: None }))
    }
}

fn source(path: &Path) -> fault::Result<String> {
    String::from_utf8(bytes(path, SOURCE_BYTES_MAX)?)
        .map_err(|_| Fault::msg(format!("`{}` is not UTF-8, which source is; save it as UTF-8", path.display())))
}

fn bytes(path: &Path, bytes_max: usize) -> fault::Result<Vec<u8>> {
    let refusals = Refusals {
        not_a_file: "is not a file",
        too_long: format!("has more than {bytes_max} bytes, and no more are kept; hand data over with --dir"),
    };
    code_file::read(path, bytes_max, &refusals)
}

#[derive(Args, Debug)]
pub struct SettingArgs {
    /// Purpose of the agent.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Configuration of the agent's code, `CONTEXT["config"]`; any JSON, `null` for none.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Longest wall-clock time of the agent's code, in milliseconds. Default 300000.
    #[arg(long, value_name = "NUMBER")]
    timeout_ms: Option<u64>,
    /// Most memory of the agent's code, in bytes. Default 268435456.
    #[arg(long, value_name = "NUMBER")]
    memory_bytes_max: Option<u64>,
    /// Most output of the agent's code that is kept of each stream, in bytes. Default 1048576.
    #[arg(long, value_name = "NUMBER")]
    output_bytes_max: Option<u64>,
    /// A directory for the agent's code, writable unless `:ro` follows. May be given several times.
    #[arg(long, value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    dir: Vec<DirectoryGrant>,
    /// A host that the agent's code may reach by HTTP, such as `https://api.example.com`. May be given several times.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
    #[command(flatten)]
    packages: PackageArgs,
    /// Revoke all earlier directories and hosts first.
    #[arg(long)]
    no_grants: bool,
    /// Have this model of the project's longhaul.toml summarise the output. Default: the first 200 characters.
    #[arg(long, value_name = "NAME", conflicts_with = "no_summary_model")]
    summary_model: Option<String>,
    /// Have no model summarise the output.
    #[arg(long)]
    no_summary_model: bool,
}

impl SettingArgs {
    /// An agent with these settings.
    pub fn new_agent(self, context: &Context, name: Name, code: AgentCode, active: bool) -> fault::Result<NewAgent> {
        let bare = NewAgent::new(name, code);
        let AgentPatch { description, config, limits, grants, summary_by, .. } = self.patch(context, &bare, None)?;
        Ok(NewAgent {
            description: description.unwrap_or_default(),
            config: config.unwrap_or_default(),
            limits: limits.unwrap_or_default(),
            grants: grants.unwrap_or_default(),
            summary_by: summary_by.flatten(),
            active,
            ..bare
        })
    }

    /// The changes that these settings make to an agent.
    pub fn patch(self, context: &Context, old: &NewAgent, code: Option<AgentCode>) -> fault::Result<AgentPatch> {
        let config = self.config.as_deref().map(serde_json::from_str::<Value>).transpose();
        let has_limits = self.timeout_ms.or(self.memory_bytes_max).or(self.output_bytes_max).is_some();
        let limits = AgentLimits {
            timeout_ms: self.timeout_ms.unwrap_or(old.limits.timeout_ms),
            memory_bytes_max: self.memory_bytes_max.unwrap_or(old.limits.memory_bytes_max),
            output_bytes_max: self.output_bytes_max.unwrap_or(old.limits.output_bytes_max),
        };
        let has_grants =
            self.no_grants || !self.dir.is_empty() || !self.allow_host.is_empty() || !self.packages.is_empty();
        if !self.dir.is_empty() || !self.packages.is_empty() {
            context.expect_own_machine("a directory or a package for the code of an agent")?;
        }
        let mut grants = if self.no_grants { AgentGrants::default() } else { old.grants.clone() };
        grants.hosts.extend(self.allow_host);
        for directory in self.dir.into_iter().chain(self.packages.grant()?) {
            let host =
                std::fs::canonicalize(&directory.host).with_context(|| format!("`{}`", directory.host.display()))?;
            grants.directories.retain(|other| other.guest != directory.guest);
            grants.directories.push(DirectoryGrant { host, ..directory });
        }
        let summary_by = match (self.summary_model, self.no_summary_model) {
            (Some(model), _) => Some(Some(SummaryBy { directory: context.project.clone(), model })),
            (None, true) => Some(None),
            (None, false) => None,
        };
        Ok(AgentPatch {
            description: self.description,
            code,
            active: None,
            config: config.context("--config is not JSON")?,
            limits: has_limits.then_some(limits),
            grants: has_grants.then_some(grants),
            summary_by,
        })
    }
}
