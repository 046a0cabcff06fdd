//! `--server`: commands that a server elsewhere carries out. Only the service is asked: no data directory is opened or
//! made here, and a directory of a project is one of the server.
//!
//! The token comes from `LONGHAUL_TOKEN` or a file, and from no argument, which other users of this machine could read.

use super::commands::Command;
use super::everywhere::EverywhereArgs;
use super::schedule::ScheduleCommand;
use super::token::TokenCommand;
use super::trust::TrustCommand;
use longhaul_client::{ServerAddress, ServerClient, ServerToken};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_home::{text_file, variable};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variable with the token.
const TOKEN: &str = "LONGHAUL_TOKEN";

/// Longest file with a token, in bytes.
const TOKEN_FILE_BYTES_MAX: u64 = 4_096;

/// The client of the server that the arguments name; none where they name none.
pub(super) fn client(everywhere: &EverywhereArgs) -> fault::Result<Option<Arc<ServerClient>>> {
    let EverywhereArgs { server_url, token_file, trust, .. } = everywhere;
    // A variable that is set to nothing names no server.
    let Some(address) = server_url.as_deref().filter(|address| !address.is_empty()) else {
        return match token_file {
            Some(_) => Err(Fault::invalid("--token-file is for a server; name it with --server URL, too")),
            None => Ok(None),
        };
    };
    if *trust {
        bail!(
            "--trust agrees on the machine of the project; leave it out, and run `longhaul trust` on the server's machine"
        );
    }
    let client = ServerClient::new(ServerAddress::parse(address)?, token(token_file.as_deref())?)?;
    Ok(Some(Arc::new(client)))
}

fn token(file: Option<&Path>) -> fault::Result<Option<ServerToken>> {
    let Some(path) = file else {
        return variable(TOKEN).map(|text| ServerToken::parse(&text, TOKEN)).transpose();
    };
    let origin = format!("the file `{}`", path.display());
    let text = text_file::read(path, TOKEN_FILE_BYTES_MAX).with_context(|| format!("the token of {origin}"))?;
    ServerToken::parse(&text, &origin).map(Some)
}

/// The directory of the project on the server; empty where none is named. It is not looked up here.
pub(super) fn project(named: Option<PathBuf>) -> fault::Result<PathBuf> {
    let Some(project) = named else { return Ok(PathBuf::new()) };
    if project.is_absolute() && project.to_str().is_some() {
        return Ok(project);
    }
    bail!(
        "`{}` is no whole path; with --server, --project names a directory on the server's machine (`longhaul projects` \
         lists them)",
        project.display()
    )
}

/// Refuses a command that does more than ask the service.
pub(super) fn expect_of_service(command: Option<&Command>) -> fault::Result<()> {
    let Some(name) = command.map_or(Some(""), work_here) else { return Ok(()) };
    let command = format!("longhaul {name}");
    let command = command.trim_end();
    bail!("`{command}` works on this machine, not on a server; leave --server out, and unset LONGHAUL_SERVER")
}

/// The name of a command that works on this machine; none for one that asks the service alone.
fn work_here(command: &Command) -> Option<&'static str> {
    match command {
        Command::Onboard(_) => Some("onboard"),
        Command::Init { .. } => Some("init"),
        Command::New { .. } => Some("new"),
        Command::Trust { command: None } => Some("trust"),
        Command::Trust { command: Some(TrustCommand::Key) } => Some("trust key"),
        Command::Trust { command: Some(TrustCommand::Add { .. }) } => Some("trust add"),
        Command::Token { command: TokenCommand::Add { .. } } => Some("token add"),
        Command::Schedule { command: ScheduleCommand::Work { .. } } => Some("schedule work"),
        Command::Diff(_) => Some("diff"),
        Command::Merge(_) => Some("merge"),
        Command::Restore(_) => Some("restore"),
        Command::Store { .. } => Some("store"),
        Command::Plugin { .. } => Some("plugin"),
        Command::Schema(_) => Some("schema"),
        Command::Runtimes { .. } => Some("runtimes"),
        Command::Packages { .. } => Some("packages"),
        Command::Serve(_) => Some("serve"),
        Command::Mcp(_) => Some("mcp"),
        Command::Skill { .. } => Some("skill"),
        Command::Secrets { .. } => Some("secrets"),
        Command::Conform(_) => Some("conform"),
        Command::Crashtest(_) => Some("crashtest"),
        Command::Models { .. } => Some("models"),
        Command::Exec(_) => Some("exec"),
        Command::Doctor(_) => Some("doctor"),
        Command::Detect { .. } => Some("detect"),
        Command::Do(_) => Some("do"),
        Command::Projects
        | Command::Project { .. }
        | Command::Trust { command: Some(TrustCommand::List | TrustCommand::Remove { .. }) }
        | Command::Audit { .. }
        | Command::Run { .. }
        | Command::Check(_)
        | Command::Ask(_)
        | Command::Steer(_)
        | Command::Cancel(_)
        | Command::Resume { .. }
        | Command::Revert(_)
        | Command::Log(_)
        | Command::Attach { .. }
        | Command::Pause { .. }
        | Command::Abandon { .. }
        | Command::Answer(_)
        | Command::Approvals(_)
        | Command::Status { .. }
        | Command::Runs(_)
        | Command::Ps(_)
        | Command::Top(_)
        | Command::Workers
        | Command::Metrics
        | Command::Report(_)
        | Command::Fork(_)
        | Command::Compare(_)
        | Command::Journal { .. }
        | Command::Replay { .. }
        | Command::Rehearse(_)
        | Command::Move(_)
        | Command::Features { .. }
        | Command::Decisions { .. }
        | Command::Checkpoint { .. }
        | Command::Gc(_)
        | Command::Backup(_)
        | Command::Graph { .. }
        | Command::Agent { .. }
        | Command::Schedule { .. }
        | Command::Memory { .. }
        | Command::Trajectories { .. }
        | Command::Scenario { .. }
        | Command::Token { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everywhere(server: Option<&str>, token_file: Option<PathBuf>, trust: bool) -> EverywhereArgs {
        let server_url = server.map(str::to_owned);
        EverywhereArgs { home: None, project: None, server_url, token_file, json: false, trust }
    }

    #[track_caller]
    fn refused(everywhere: &EverywhereArgs, words: &str) {
        let refusal = client(everywhere).map(drop).expect_err(words);
        assert!(format!("{refusal:#}").contains(words), "{refusal:#}");
    }

    #[test]
    fn a_server_is_named_with_an_address_and_a_token_that_is_in_no_error() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("token");
        let address = Some("http://127.0.0.1:7717");
        std::fs::write(&path, "lh_1_secret\n").expect("ours");
        assert!(client(&everywhere(address, Some(path.clone()), false)).is_ok_and(|client| client.is_some()));
        assert!(client(&everywhere(None, None, true)).is_ok_and(|client| client.is_none()));
        assert!(client(&everywhere(Some(""), None, true)).is_ok_and(|client| client.is_none()));
        refused(&everywhere(None, Some(path.clone()), false), "--token-file is for a server");
        refused(&everywhere(address, Some(path.clone()), true), "--trust agrees on the machine of the project");
        refused(&everywhere(address, Some(folder.path().join("none")), false), "the token of the file `");
        std::fs::write(&path, "lh_1 secret").expect("ours");
        let refusal = client(&everywhere(address, Some(path), false)).map(drop).expect_err("two words").to_string();
        assert!(refusal.contains("holds no token") && !refusal.contains("secret"), "{refusal}");
    }

    #[test]
    fn a_project_of_a_server_is_a_whole_path_or_none() {
        let found = |path: &str| project(Some(path.into())).map_err(|refusal| refusal.to_string());
        assert_eq!(found("/srv/shop"), Ok(PathBuf::from("/srv/shop")));
        assert_eq!(project(None).ok(), Some(PathBuf::new()));
        assert!(found(".").is_err_and(|refusal| refusal.contains("`.` is no whole path; with --server")));
    }
}
