//! `longhaul secrets`: values are read from a terminal that does not show them, or from standard input; never from the
//! command line, which every user of the machine can read.

use super::{Context, Exit, terminal};
use crate::config::{Config, FILE};
use crate::secrets::{Bound, Listed, Vault, check_name};
use crate::service::{SecurityAsk, SecurityDone};
use crate::toolbox::mcp;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use longhaul_core::grant::HostPattern;
use longhaul_egress::Secret;
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use serde_json::json;
use std::io::{BufRead as _, Read as _};

/// Bytes that are read as a value.
const INPUT_BYTES_MAX: u64 = 8_192;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Keep a value for the project here, from standard input or a prompt that does not show it.
    ///
    /// It is bound to the tools that longhaul.toml grants it to now, and to their hosts; a file that is changed later
    /// sends it nowhere else until it is set again.
    Set(SetArgs),
    /// List the names, and what each is bound to.
    List,
    /// Forget a value.
    Remove {
        /// Its name.
        name: String,
    },
}

#[derive(Args, Debug)]
pub struct SetArgs {
    /// The name that longhaul.toml grants it by.
    name: String,
    /// Bind it to this tool or MCP server, by its name in longhaul.toml; may be given several times.
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Bind it to this host, such as https://api.github.com; may be given several times.
    #[arg(long = "host", value_name = "HOST", value_parser = host)]
    hosts: Vec<HostPattern>,
    /// Keep it for every project of the data directory.
    #[arg(long)]
    any_project: bool,
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::try_from(text.to_owned()).map_err(|error| error.to_string())
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> anyhow::Result<Exit> {
    let vault = Vault::of(&context.home);
    match command {
        Command::Set(args) => set(context, &vault, args).await?,
        Command::Remove { name } => {
            vault.remove(&name, project(context).await?.as_deref())?;
            context.security(SecurityAsk::SecretChanged { name: name.clone(), bound: None }).await?;
            said(context, "removed", &name);
        }
        Command::List => list(context, &vault.list(project(context).await?.as_deref())?),
    }
    Ok(Exit::Done)
}

/// The project here; none where there is none.
async fn project(context: &Context) -> anyhow::Result<Option<String>> {
    if !context.project.join(FILE).is_file() {
        return Ok(None);
    }
    let wanted = SecurityAsk::Project { directory: context.project.clone() };
    let SecurityDone::Project { id, told } = context.security(wanted).await? else {
        bail!("the service answered something else")
    };
    told.iter().for_each(|told| errln!("{told}"));
    Ok(Some(id))
}

async fn set(context: &Context, vault: &Vault, args: SetArgs) -> anyhow::Result<()> {
    let SetArgs { name, tools, hosts, any_project } = args;
    check_name(&name)?;
    context.home.make()?;
    let project = if any_project { None } else { project(context).await? };
    if project.is_none() && !any_project {
        bail!("there is no project in `{}`; name one with --project, or add --any-project", context.project.display());
    }
    let bound = bound(context, &name, tools, hosts, any_project)?;
    vault.set(&name, &Secret::new(&value(&name)?)?, project.as_deref(), bound.clone())?;
    let whose = if any_project { "every project, " } else { "this project, " };
    let told = format!("{whose}{bound}");
    context.security(SecurityAsk::SecretChanged { name: name.clone(), bound: Some(told.clone()) }).await?;
    said(context, "set", &name);
    if !context.json {
        errln!("for {told}");
    }
    Ok(())
}

/// What was named; where nothing was, what longhaul.toml grants now.
fn bound(
    context: &Context,
    name: &str,
    tools: Vec<String>,
    hosts: Vec<HostPattern>,
    any_project: bool,
) -> anyhow::Result<Bound> {
    if any_project && tools.is_empty() {
        return Ok(Bound { tables: Vec::new(), hosts });
    }
    let config = Config::read(&context.project)?;
    let servers = config.mcp.iter().map(|(server, it)| (format!("mcp.{server}"), it));
    let mut granted: Vec<(String, Vec<HostPattern>)> = config
        .parts()
        .flat_map(|(table, part)| part.secrets.iter().map(move |secret| (table.clone(), secret)))
        .filter(|(_, secret)| secret.name == name)
        .map(|(table, secret)| (table, secret.hosts.clone()))
        .chain(
            servers
                .filter(|(_, it)| it.secrets().any(|secret| secret == name))
                .map(|(table, it)| (table, mcp::sent_to(it))),
        )
        .collect();
    let is_named = |table: &str| tools.iter().any(|tool| table.split_once('.').is_some_and(|(_, name)| name == tool));
    if let Some(tool) = tools.iter().find(|tool| !config.tools.contains_key(*tool) && !config.mcp.contains_key(*tool)) {
        bail!("there is no [tools.{tool}] and no [mcp.{tool}] in {FILE}");
    }
    if !tools.is_empty() {
        granted.retain(|(table, _)| is_named(table));
        let known: Vec<String> = granted.iter().map(|(table, _)| table.clone()).collect();
        // A tool that is not granted it yet may be later.
        let later = tools.iter().map(|tool| {
            let kind = if config.tools.contains_key(tool) { "tools" } else { "mcp" };
            format!("{kind}.{tool}")
        });
        let later: Vec<String> = later.filter(|table| !known.contains(table)).collect();
        granted.extend(later.into_iter().map(|table| (table, Vec::new())));
    }
    let own_hosts = granted.iter().flat_map(|(_, hosts)| hosts.clone()).collect();
    let tables = granted.into_iter().map(|(table, _)| table).collect();
    Ok(Bound { tables, hosts: if hosts.is_empty() { own_hosts } else { hosts } })
}

fn said(context: &Context, what: &str, name: &str) {
    if context.json {
        outln!("{}", json!({ what: name }));
    } else {
        outln!("{what} {name}");
    }
}

fn list(context: &Context, listed: &[Listed]) {
    if context.json {
        outln!("{}", json!(listed));
        return;
    }
    for Listed { name, any_project, bound } in listed {
        let whose = if *any_project { "every project, " } else { "" };
        outln!("{name}  {whose}{bound}");
    }
}

fn value(name: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if isatty(&stdin) {
        return prompted(name);
    }
    let mut text = String::new();
    stdin.lock().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("the value cannot be read as text")?;
    Ok(text)
}

/// One line from the terminal, which shows nothing of it.
fn prompted(name: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    terminal::ask(&format!("value of {name}: "));
    let before = tcgetattr(&stdin)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
    let mut text = String::new();
    let read = stdin.lock().take(INPUT_BYTES_MAX).read_line(&mut text);
    tcsetattr(&stdin, OptionalActions::Now, &before)?;
    errln!("");
    read.context("the value cannot be read as text")?;
    Ok(text)
}
