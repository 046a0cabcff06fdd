//! A server in the sandbox of programs: it sees its tool chain, the tree of its run or the directory that its table
//! names, and the table's grants; it reaches the granted hosts through a proxy of the host, and nothing else.
//!
//! Refuses to grant implicitly a path that contains the home or the data directory, to grant a path that a link leads
//! out of the project, and hosts for a server without a network of its own.

use crate::config::McpConfig;
use crate::environment::McpEnvironment;
use crate::inside::{PROXY_SOCKET, Spec};
use longhaul_core::grant::Grants;
use longhaul_core::process_registry::ChildKind;
use longhaul_egress::{Guard, Proxy, RequestLimits};
use longhaul_sandbox::{
    Level, Program, ProgramInput, ProgramLimits, ProgramOutput, Running, SandboxError, ScratchDirectory, granted,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::process::ChildStdout;
use tokio::task::JoinHandle;

/// Bytes that one start of a server may exchange with its hosts: more than any answers need, and a bound on a loop.
const TRAFFIC_BYTES_MAX: u64 = 4 << 30;

/// Bytes of each output of a server's standard error that are kept.
const SAID_BYTES_MAX: u64 = 4_000;

/// Processes and threads; node starts a dozen by itself.
const PROCESSES_MAX: u64 = 256;

/// Bytes of one file that a server writes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Variables that name directories of modules.
const MODULE_PATHS: [&str; 2] = ["PYTHONPATH", "NODE_PATH"];

/// A running server. Dropping it ends all its processes.
pub(crate) struct Walled {
    running: Option<Running>,
    proxy: Option<JoinHandle<()>>,
}

impl Walled {
    /// Starts the command.
    pub(crate) async fn start(
        name: &str,
        config: &McpConfig,
        around: &McpEnvironment,
        env: BTreeMap<String, String>,
    ) -> Result<(Self, ChildStdout, pipe::Sender), String> {
        let host = &around.host;
        let program = program(name, config, around, env)?;
        let room = ScratchDirectory::new(host).map_err(|error| error.to_string())?;
        let proxy = proxy(name, config, &room).map_err(|error| format!("its proxy cannot be started: {error}"))?;
        let started = longhaul_sandbox::start(host, room, &program).await;
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                proxy.inspect(JoinHandle::abort);
                return Err(refused(name, config, &error));
            }
        };
        let pipes = (running.take_stdout(), running.take_stdin());
        let walled = Self { running: Some(running), proxy };
        let (Some(stdout), Some(stdin)) = pipes else { return Err("it has no pipes".into()) };
        Ok((walled, stdout, stdin))
    }

    /// Its sandbox level.
    pub(crate) fn level(&self) -> Option<Level> {
        self.running.as_ref().map(Running::level)
    }

    /// The limit that ended it, if one did, and the end of its standard error, if it ends within `time`.
    pub(crate) async fn ended(&mut self, time: Duration) -> (Option<&'static str>, String) {
        let Some(running) = &mut self.running else { return (None, String::new()) };
        tokio::time::timeout(time, running.ended()).await.unwrap_or_default()
    }

    /// Waits for its end, but at most for `time`, and then ends it.
    pub(crate) async fn end(mut self, time: Duration) {
        self.ended(time).await;
    }
}

impl Drop for Walled {
    fn drop(&mut self) {
        if let Some(proxy) = &self.proxy {
            proxy.abort();
        }
    }
}

/// The reason why a server was not started, with the remedy.
fn refused(name: &str, config: &McpConfig, error: &SandboxError) -> String {
    match error {
        SandboxError::Refused { level_min: Level::Namespaces, why, .. } if !config.hosts.is_empty() => format!(
            "its `hosts` need a network namespace, or all of this machine could use its proxy, and there is none: {why}; \
             {}, or remove `hosts` of [mcp.{name}]",
            Level::Namespaces.remedy()
        ),
        SandboxError::Absent { .. } => format!("{error}, under [mcp.{name}]"),
        _ => format!("{error}; or let it run bare, where it can read what you can: [mcp.{name}] sandbox = \"none\""),
    }
}

/// The lowest sandbox level of a server. One with hosts has its proxy at a port of loopback, which asks for no
/// password: that must not be the machine's loopback.
fn level_min(config: &McpConfig, usual: Level) -> Level {
    let accepted = config.sandbox.unwrap_or(usual);
    if config.hosts.is_empty() { accepted } else { accepted.max(Level::Namespaces) }
}

fn program(
    name: &str,
    config: &McpConfig,
    around: &McpEnvironment,
    env: BTreeMap<String, String>,
) -> Result<Program, String> {
    let one = |field: &str, path: &Path| {
        granted(&around.base, path).map_err(|error| format!("[mcp.{name}] {field}: {error}"))
    };
    let all = |field: &str, paths: &[PathBuf]| {
        paths.iter().map(|path| one(field, path)).collect::<Result<Vec<PathBuf>, String>>()
    };
    let elsewhere = config.elsewhere().map(|named| one("directory", named)).transpose()?;
    let spec = Spec { argv: config.command.clone(), directory: elsewhere.clone(), has_proxy: !config.hosts.is_empty() };
    let argv = if elsewhere.is_some() || spec.has_proxy {
        let spec = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        // The link leads to this very binary even if its directory is hidden.
        std::iter::once("/proc/self/exe".to_owned()).chain(around.inside.clone()).chain([spec]).collect()
    } else {
        config.command.clone()
    };
    let mut program = Program::new(format!("MCP server `{name}`"), argv);
    program.kind = ChildKind::McpServer;
    program.level_min = level_min(config, around.host.level_min);
    program.starts = config.command.first().cloned();
    program.tree = elsewhere.is_none().then(|| around.tree.clone());
    program.write = all("write", &config.write)?;
    program.read = all("read", &config.read)?;
    program.read.extend(named(config, around, &env));
    program.env = env;
    if let Some(directory) = elsewhere {
        // Inside, read-only files belong to another user when the host is root, and git refuses those.
        let trusted = [("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", "*")];
        let trusted = trusted.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value.to_owned()));
        for (name, value) in trusted {
            program.env.entry(name).or_insert(value);
        }
        program.read.extend(Some(directory).filter(|directory| !program.write.contains(directory)));
    }
    (program.input, program.output) = (ProgramInput::Pipe, ProgramOutput::Pipe);
    // The monitor of the machine's children has limits of memory and processors for servers (`resources.toml`), and a
    // server lives as long as its run.
    program.limits = ProgramLimits {
        wall_ms_max: u64::MAX,
        grace_ms: 0,
        cpu_seconds_max: u64::MAX,
        memory_bytes_max: u64::MAX,
        output_bytes_max: SAID_BYTES_MAX,
        processes_max: PROCESSES_MAX,
        file_bytes_max: FILE_BYTES_MAX.min(config.disk_bytes()),
        disk_bytes_max: config.disk_bytes(),
    };
    Ok(program)
}

/// Paths that the command itself names: scripts with the files beside them, packages of node with their dependencies,
/// and directories of modules.
fn named(config: &McpConfig, around: &McpEnvironment, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let words = config.command.iter().map(Path::new).filter(|word| word.is_absolute()).map(with_its_files);
    let modules = MODULE_PATHS.iter().filter_map(|name| env.get(*name)).flat_map(std::env::split_paths);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_too_much = |path: &Path| {
        let kept_out = around.host.hidden.iter().chain(&home);
        path.parent().is_none() || path == std::env::temp_dir() || kept_out.into_iter().any(|out| out.starts_with(path))
    };
    let is_hidden = |path: &Path| around.host.hidden.iter().any(|hidden| path.starts_with(hidden));
    let leads_out = |path: &Path| granted(&around.base, path).is_err();
    let found = words.chain(modules.map(|path| (path.clone(), path)));
    let narrowed = found.map(|(whole, word)| if is_too_much(&whole) { word } else { whole });
    let is_shown = |path: &PathBuf| {
        path.is_absolute() && path.exists() && !is_too_much(path) && !is_hidden(path) && !leads_out(path)
    };
    narrowed.filter(is_shown).collect()
}

/// A path in the command, and the directory around it that is shown.
fn with_its_files(word: &Path) -> (PathBuf, PathBuf) {
    let whole = if word.is_dir() {
        word
    } else {
        let packages = word.ancestors().filter(|dir| dir.ends_with("node_modules")).last();
        packages.or(word.parent()).unwrap_or(word)
    };
    (whole.to_owned(), word.to_owned())
}

/// Serves the hosts of a server at a socket in its scratch directory; nothing without hosts.
fn proxy(name: &str, config: &McpConfig, room: &ScratchDirectory) -> std::io::Result<Option<JoinHandle<()>>> {
    if config.hosts.is_empty() {
        return Ok(None);
    }
    let grants = Grants { table: format!("mcp.{name}"), hosts: config.hosts.clone(), ..Grants::default() };
    let proxy = Arc::new(Proxy::new(Guard::new(grants, RequestLimits::default()), TRAFFIC_BYTES_MAX));
    let listener = longhaul_egress::listen_in(&room.shared(), PROXY_SOCKET)?;
    Ok(Some(tokio::spawn(proxy.serve_all(listener))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_hosts_has_a_network_of_its_own_whatever_is_accepted() {
        let hosts = "hosts = [\"https://a.com\"]\n";
        let with = |level: &str| format!("{hosts}sandbox = \"{level}\"");
        let (landlock, runsc) = (with("landlock"), with("runsc"));
        for (table, usual, expected) in [
            ("", Level::None, Level::None),
            ("sandbox = \"landlock\"", Level::Full, Level::Landlock),
            (hosts, Level::None, Level::Namespaces),
            (hosts, Level::Landlock, Level::Namespaces),
            (hosts, Level::Namespaces, Level::Namespaces),
            (hosts, Level::Full, Level::Full),
            (landlock.as_str(), Level::Full, Level::Namespaces),
            (runsc.as_str(), Level::Full, Level::Runsc),
        ] {
            let config: McpConfig = toml::from_str(table).unwrap();
            let least = level_min(&config, usual);
            assert_eq!(least, expected, "{table}: {usual}");
            assert!(config.hosts.is_empty() || least.has_namespaces(), "{table}: {usual}");
        }
    }
}
