//! `longhaul secrets`: manages the values of secrets. A value is read from a terminal without echo or from standard
//! input, never from the command line, which every user of the machine can read.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::terminal;
use clap::{Args, Subcommand};
use longhaul_api::operations::SecurityOperations as _;
use longhaul_api::security::{IdentifyProject, NoteSecret, ProjectIdentity};
use longhaul_api::wire::secrets::{SecretChange, SecretView};
use longhaul_config::secrets::{SecretConfig, check_name};
use longhaul_config::tools::mcp::sent_to;
use longhaul_config::{Config, FILE, PluginConfig, toml_text};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::HostPattern;
use longhaul_egress::Secret;
use longhaul_mcp::McpConfig;
use longhaul_security::secrets::{ListedSecret, SecretBinding, SecretStore};
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use std::io::{BufRead as _, Read as _};

/// Longest value, in bytes.
const INPUT_BYTES_MAX: u64 = 8_192;

#[derive(Subcommand, Debug)]
pub enum SecretsCommand {
    /// Set a value for the project here, from standard input or a prompt without echo.
    ///
    /// The value is bound to the tools that longhaul.toml grants it to now, and to their hosts. A later change of the
    /// file sends it nowhere else until it is set again. If the file does not grant it to any tool yet, name both with
    /// --tool and --host. The file must have the table of the tool by then, [tools.NAME] or [mcp.NAME]; it may grant
    /// the secret later.
    Set(SetArgs),
    /// List the names of secrets, with the tools and hosts that each is bound to.
    List,
    /// Delete a value.
    Remove {
        /// Name of the secret.
        name: String,
    },
}

#[derive(Args, Debug)]
pub struct SetArgs {
    /// Name of the secret in longhaul.toml.
    name: String,
    /// Bind it to the tool [tools.NAME] or the MCP server [mcp.NAME], a table that longhaul.toml must have; may be
    /// given several times.
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Bind it to this host, such as https://api.github.com; may be given several times.
    #[arg(long = "host", value_name = "HOST", value_parser = host)]
    hosts: Vec<HostPattern>,
    /// Set the value for every project of the data directory.
    #[arg(long)]
    any_project: bool,
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::try_from(text.to_owned()).map_err(|error| error.to_string())
}

/// Runs the command.
pub async fn run(context: &Context, command: SecretsCommand) -> fault::Result<Exit> {
    let secret_store = SecretStore::of(&context.home);
    match command {
        SecretsCommand::Set(args) => set(context, &secret_store, args).await?,
        SecretsCommand::Remove { name } => {
            context.client.keep();
            secret_store.remove(&name, project(context).await?.as_deref())?;
            context.note_secret(NoteSecret { name: name.clone(), bound: None }).await?;
            said(context, &SecretChange::Removed(name))?;
        }
        SecretsCommand::List => list(context, secret_store.list(project(context).await?.as_deref())?)?,
    }
    Ok(Exit::Done)
}

/// The project here; none if there is none.
async fn project(context: &Context) -> fault::Result<Option<String>> {
    if !context.project.join(FILE).is_file() {
        return Ok(None);
    }
    let request = IdentifyProject { directory: context.project.clone() };
    let ProjectIdentity { id, told } = context.identify_project(request).await?;
    told.iter().for_each(|told| errln!("{told}"));
    Ok(Some(id))
}

async fn set(context: &Context, secret_store: &SecretStore, args: SetArgs) -> fault::Result<()> {
    let SetArgs { name, tools, hosts, any_project } = args;
    check_name(&name)?;
    context.home.make()?;
    context.client.keep();
    let project = if any_project { None } else { project(context).await? };
    if project.is_none() && !any_project {
        bail!("there is no project in `{}`; name one with --project, or add --any-project", context.project.display());
    }
    let bound = bound(context, &name, tools, hosts, any_project)?;
    secret_store.set(&name, &Secret::new(&value(&name)?)?, project.as_deref(), bound.clone())?;
    let whose = if any_project { "every project, " } else { "this project, " };
    let told = format!("{whose}{bound}");
    context.note_secret(NoteSecret { name: name.clone(), bound: Some(told.clone()) }).await?;
    said(context, &SecretChange::Set(name))?;
    if !context.json {
        errln!("for {told}");
    }
    Ok(())
}

/// A tool or server that may have a value, and the hosts that it may send the value to.
struct GrantedSecret {
    table: String,
    hosts: Vec<HostPattern>,
    /// True when a program gets the value, so that its hosts are unknown.
    is_program: bool,
}

impl GrantedSecret {
    fn of_server(name: &str, server: &McpConfig) -> Self {
        let is_program = !server.command.is_empty();
        Self { table: format!("mcp.{name}"), hosts: sent_to(server), is_program }
    }
}

/// Returns the named tools and hosts; if none are named, those that longhaul.toml grants the secret to now. Refuses to
/// bind a value to everybody, or to every host, because nothing is granted yet.
fn bound(
    context: &Context,
    name: &str,
    tools: Vec<String>,
    hosts: Vec<HostPattern>,
    any_project: bool,
) -> fault::Result<SecretBinding> {
    if any_project && tools.is_empty() {
        return Ok(SecretBinding { tables: Vec::new(), hosts });
    }
    let config = Config::read(&context.project)?;
    let granted = if tools.is_empty() { granted_now(&config, name) } else { granted_to(&config, name, &tools)? };
    if granted.is_empty() {
        bail!(
            "{FILE} grants the secret `{name}` to no plugin yet; name the table and the host: longhaul secrets set \
             {name} --tool NAME --host https://HOST; or write first, under [tools.NAME]: \
             secrets = [{{ name = \"{name}\", hosts = [\"https://HOST\"] }}]"
        );
    }
    if let Some(bare) = config.mcp.iter().find(|(server, it)| {
        it.is_bare() && !hosts.is_empty() && granted.iter().any(|one| one.table == format!("mcp.{server}"))
    }) {
        bail!("[mcp.{}] runs outside of the sandbox, so nothing holds it to a host; remove --host", bare.0);
    }
    let own_hosts: Vec<HostPattern> = granted.iter().flat_map(|one| one.hosts.clone()).collect();
    let hosts = if hosts.is_empty() { own_hosts } else { hosts };
    if let Some(one) = granted.iter().find(|one| hosts.is_empty() && !one.is_program) {
        bail!(
            "[{}] is not granted the secret `{name}` yet, so its hosts are unknown; add --host https://HOST",
            one.table
        );
    }
    Ok(SecretBinding { tables: granted.into_iter().map(|one| one.table).collect(), hosts })
}

/// Tools and servers that longhaul.toml grants a secret to now.
fn granted_now(config: &Config, name: &str) -> Vec<GrantedSecret> {
    let to_part = |(table, part): (String, &PluginConfig)| {
        let secrets = part.secrets.iter().filter(|secret| secret.name == name);
        let of = move |secret: &SecretConfig| GrantedSecret {
            table: table.clone(),
            hosts: secret.hosts.clone(),
            is_program: false,
        };
        secrets.map(of).collect::<Vec<_>>()
    };
    let servers = config.mcp.iter().filter(|(_, server)| server.secrets().any(|secret| secret == name));
    config
        .parts()
        .flat_map(to_part)
        .chain(servers.map(|(name, server)| GrantedSecret::of_server(name, server)))
        .collect()
}

/// The named tools and servers. longhaul.toml may grant them the secret later.
fn granted_to(config: &Config, name: &str, tools: &[String]) -> fault::Result<Vec<GrantedSecret>> {
    let mut granted = granted_now(config, name);
    granted.retain(|one| one.table.split_once('.').is_some_and(|(_, tool)| tools.iter().any(|named| named == tool)));
    for tool in tools {
        let later = match (config.tools.contains_key(tool), config.mcp.get(tool)) {
            (true, _) => GrantedSecret { table: format!("tools.{tool}"), hosts: Vec::new(), is_program: false },
            (false, Some(server)) => GrantedSecret::of_server(tool, server),
            (false, None) => {
                let known: Vec<&String> = config.tools.keys().chain(config.mcp.keys()).collect();
                let make = format!(
                    "write the table of the tool first, such as [tools.{tool}] plugin = \"http-fetch\", and set the \
                     secret then"
                );
                let or = toml_text::or_make(tool, &known, &make);
                bail!("there is no [tools.{tool}] and no [mcp.{tool}] in {FILE}{or}")
            }
        };
        if !granted.iter().any(|one| one.table == later.table) {
            granted.push(later);
        }
    }
    Ok(granted)
}

fn said(context: &Context, change: &SecretChange) -> fault::Result<()> {
    match change {
        _ if context.json => print_json(change)?,
        SecretChange::Set(name) => outln!("set {name}"),
        SecretChange::Removed(name) => outln!("removed {name}"),
    }
    Ok(())
}

fn list(context: &Context, listed: Vec<ListedSecret>) -> fault::Result<()> {
    if context.json {
        return print_json(&listed.into_iter().map(SecretView::from).collect::<Vec<_>>());
    }
    for ListedSecret { name, any_project, bound } in listed {
        let whose = if any_project { "every project, " } else { "" };
        outln!("{name}  {whose}{bound}");
    }
    Ok(())
}

fn value(name: &str) -> fault::Result<String> {
    let stdin = std::io::stdin();
    if isatty(&stdin) {
        return prompted(name);
    }
    let mut text = String::new();
    stdin.lock().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("the value cannot be read as text")?;
    Ok(text)
}

/// Reads one line from the terminal without echo.
fn prompted(name: &str) -> fault::Result<String> {
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
