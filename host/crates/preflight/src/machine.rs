//! The references of `longhaul.toml` to this machine: directories, programs, keys, secrets, the goal and the
//! repository.
//!
//! Refuses to start a program that it finds, and to contact a server.

use crate::finding::Findings;
use crate::scope::CheckScope;
use longhaul_api::checks::Finding;
use longhaul_config::notify::NotifyConfig;
use longhaul_config::tools::mcp::{is_wanted, sent_to};
use longhaul_config::{Config, PluginConfig, powers};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_home::{Home, text_file, variable};
use longhaul_mcp::McpConfig;
use longhaul_models::set::{ModelOptions, ModelSet, ProgramEnvironment};
use longhaul_security::secrets::{SecretConsumer, SecretStore};
use longhaul_worktree::{Branch, NativeCheck, UserRepository};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The search path for programs when the environment has none, as for a check.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Bytes of a goal.
const GOAL_BYTES_MAX: u64 = 1 << 20;

/// Refuses an unavailable sentence model: there is none of that name, it is not on this machine, or the program was
/// built without sentence models.
pub type EmbeddingsCheck = dyn Fn(Option<&str>) -> fault::Result<()> + Send + Sync;

/// The resources of this program for the projects of a data directory.
pub(super) struct Program<'a> {
    /// The data directory, with its secrets and plugins.
    pub(super) home: &'a Home,
    /// The environment of models.
    pub(super) environment: &'a ProgramEnvironment,
    /// Refuses an unavailable sentence model of `[memory]`.
    pub(super) check_embeddings: &'a EmbeddingsCheck,
}

/// Examines all references.
pub(super) fn look(
    found: &mut Findings,
    program: &Program<'_>,
    config: &Config,
    directory: &Path,
    options: &ModelOptions,
    scope: &CheckScope,
) {
    let Program { home, environment, check_embeddings } = *program;
    limits(found, config, scope);
    models(found, config, directory, options, environment);
    for (table, part) in config.parts().filter(|(table, _)| !scope.leaves_out(table)) {
        directories(found, &table, part, directory);
        secrets(found, home, config.scope(), &table, part);
    }
    if !matches!(scope, CheckScope::Ask) {
        config.checks.iter().for_each(|(name, check)| program_of_check(found, name, check));
    }
    for (name, server) in config.mcp.iter().filter(|(name, _)| is_wanted(config, name)) {
        mcp(found, home, config.scope(), name, server, directory);
    }
    if let Some(notify) = &config.notify {
        notified(found, notify, directory);
    }
    embeddings(found, config, check_embeddings);
    if matches!(scope, CheckScope::Run | CheckScope::Planned) {
        if let Err(error) = config.check_run() {
            found.at("agents", &format!("{error:#}"));
        }
        if let Err(error) = goal(directory, config) {
            found.in_file(&config.project.goal.display().to_string(), None, &format!("{error:#}"));
        }
    }
}

/// The goal of a project.
pub fn goal(directory: &Path, config: &Config) -> fault::Result<String> {
    let path = directory.join(&config.project.goal);
    let size = std::fs::metadata(&path)
        .or_invalid(|| format!("cannot read the goal `{}`; write what is to be built", path.display()))?
        .len();
    if size > GOAL_BYTES_MAX {
        bail!("the goal `{}` has {size} bytes, more than {GOAL_BYTES_MAX}; split the project", path.display());
    }
    let text = text_file::read(&path, GOAL_BYTES_MAX)
        .or_invalid(|| format!("the goal `{}` cannot be read", path.display()))?;
    // Models see its text; a path that leads out of the project by its words is a power, which a person agreed to.
    if !powers::leads_out(&config.project.goal) && !path.canonicalize()?.starts_with(directory.canonicalize()?) {
        bail!("the goal `{}` leads out of the project by a link; write the path of the file itself", path.display());
    }
    if text.trim().is_empty() {
        bail!("the goal `{}` is empty; write what is to be built", path.display());
    }
    Ok(text)
}

fn limits(found: &mut Findings, config: &Config, scope: &CheckScope) {
    let (limits, table) = match scope {
        CheckScope::Ask => (config.ask_limits(), "ask.limits"),
        CheckScope::Run | CheckScope::Planned | CheckScope::Resume(_) => (config.run.limits.clone(), "run.limits"),
    };
    if let Some(limit) = limits.unusable() {
        let text = format!("[{table}] `{limit}` is 0, so nothing could ever be done; set it to 1 or more");
        found.at(&format!("{table}.{limit}"), &text);
    }
}

fn models(
    found: &mut Findings,
    config: &Config,
    directory: &Path,
    options: &ModelOptions,
    environment: &ProgramEnvironment,
) {
    for (name, error) in ModelSet::faults(&config.models, config.used_models(), directory, options, environment) {
        match name {
            Some(name) => found.at(&format!("models.{name}"), &error),
            None => found.of_machine(&error),
        }
    }
}

fn directories(found: &mut Findings, table: &str, part: &PluginConfig, directory: &Path) {
    for given in part.directories.iter().filter(|given| !given.is_tree()) {
        let path = directory.join(&given.host);
        if !path.is_dir() {
            let (guest, host, path) = (&given.guest, given.host.display(), path.display());
            let text = format!(
                "[{table}] directories gives `{guest}` the directory `{host}`, and there is no `{path}`; make it, or correct host"
            );
            found.at(&format!("{table}.directories"), &text);
        }
    }
}

fn secrets(found: &mut Findings, home: &Home, project: &str, table: &str, part: &PluginConfig) {
    for granted in &part.secrets {
        if let Err(error) =
            SecretStore::of(home).get(&granted.name, &SecretConsumer { project, table, hosts: &granted.hosts })
        {
            found.at(&format!("{table}.secrets"), &format!("[{table}] secrets: {error:#}"));
        }
    }
}

fn program_of_check(found: &mut Findings, name: &str, check: &NativeCheck) {
    let Some(program) = check.argv.first() else { return };
    // A program in the tree may be the result of the work.
    if program.contains('/') && !program.starts_with('/') {
        return;
    }
    let path = check.env.get("PATH").cloned().or_else(|| variable("PATH"));
    if !is_program(program, path.as_deref(), Path::new("/")) {
        let place = format!("checks.{name}");
        found.at(
            &place,
            &format!("[checks] {name} cannot find the program `{program}`; install it, or give its full path"),
        );
    }
}

fn mcp(found: &mut Findings, home: &Home, project: &str, name: &str, server: &McpConfig, directory: &Path) {
    let place = format!("mcp.{name}");
    for secret in server.secrets() {
        let hosts = sent_to(server);
        if let Err(error) = SecretStore::of(home).get(secret, &SecretConsumer { project, table: &place, hosts: &hosts })
        {
            found.at(&place, &format!("[mcp.{name}] {error:#}"));
        }
    }
    let Some(program) = server.command.first() else { return };
    // The tree of a run holds the project's commits, so the program is looked for in the project.
    let at = server.directory_in(directory, directory);
    if !at.is_dir() {
        let text = format!("[mcp.{name}] directory: there is no `{}`; make it, or correct the line", at.display());
        return found.at(&format!("{place}.directory"), &text);
    }
    if !is_program(program, variable("PATH").as_deref(), &at) {
        let text =
            format!("[mcp.{name}] command cannot find the program `{program}`; install it, or give its full path");
        found.at(&format!("{place}.command"), &text);
    }
}

fn notified(found: &mut Findings, notify: &NotifyConfig, directory: &Path) {
    let sendmail = notify.email.as_ref().map(|email| ("notify.email", "sendmail", &email.sendmail));
    let programs = [Some(("notify", "command", &notify.command)), sendmail];
    for (table, key, command) in programs.into_iter().flatten() {
        let Some(program) = command.first() else { continue };
        if !is_program(program, variable("PATH").as_deref(), directory) {
            let text =
                format!("[{table}] {key} cannot find the program `{program}`; install it, or give its full path");
            found.at(&format!("{table}.{key}"), &text);
        }
    }
    if let Some(name) = notify.webhook_env.as_ref().filter(|name| variable(name).is_none()) {
        let text = format!("[notify] webhook_env: the environment has no `{name}`; export it, or correct the name");
        found.at("notify.webhook_env", &text);
    }
}

fn embeddings(found: &mut Findings, config: &Config, check: &EmbeddingsCheck) {
    if let Err(error) = check(config.memory.embeddings.as_deref()) {
        found.at("memory.embeddings", &format!("{error:#}"));
    }
}

/// True when a project has no goal, so that only asks can begin in it. A goal's file that `longhaul.toml` names must
/// exist.
pub(super) fn is_for_asks(directory: &Path, config: &Config) -> bool {
    let is_missing = |path: &Path| std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound);
    config.project.has_default_goal() && is_missing(&directory.join(&config.project.goal))
}

/// The needs of a run that a project for asks lacks, one line each.
pub(super) fn run_needs(directory: &Path, config: &Config, repository: fault::Result<()>) -> Vec<String> {
    let found = [config.check_run(), goal(directory, config).map(drop), repository];
    let faults = found.into_iter().filter_map(Result::err);
    faults.map(|error| Finding::new(None, None, &format!("{error:#}")).text).collect()
}

/// Refuses a repository in which no run can begin.
pub(super) fn repository(project: &str, directory: &Path) -> fault::Result<()> {
    let repository = UserRepository::open(directory)?;
    repository.check_clean()?;
    repository.start(&Branch::new(&format!("longhaul/{project}"))?)?;
    Ok(())
}

/// True when `program` can be started in `directory` with this `PATH`.
fn is_program(program: &str, path: Option<&str>, directory: &Path) -> bool {
    let is_executable = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(&directory.join(program));
    }
    let directories = std::env::split_paths(path.unwrap_or(PATH_DEFAULT));
    directories.map(|one| directory.join(one).join(program)).any(|path| is_executable(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, mode) in [("tool", 0o755), ("text", 0o644)] {
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let listed = folder.path().display().to_string();
        let full = path("tool").display().to_string();
        for (program, path, expected) in [
            ("tool", Some(listed.as_str()), true),
            ("text", Some(listed.as_str()), false),
            ("tool", Some("/nowhere"), false),
            ("./tool", None, true),
            ("./gone", None, false),
            (full.as_str(), None, true),
            (".", None, false),
        ] {
            assert_eq!(is_program(program, path, folder.path()), expected, "{program} {path:?}");
        }
    }
}
