//! `longhaul trust`: manages the trust of this data directory in files of projects and in keys of signers, and asks
//! before a file is used that nobody agreed to.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::terminal;
use clap::Subcommand;
use longhaul_api::operations::SecurityOperations as _;
use longhaul_api::security::{
    DistrustProject, ExpectTrust, IdentifyProject, ListTrusted, SetSigner, ShowTrust, TrustProject, TrustedList,
};
use longhaul_api::wire::security::{SigningKeyView, TrustListing, TrustStatusView};
use longhaul_config::FILE;
use longhaul_core::fault::{self, bail};
use longhaul_security::signing::SigningKey;
use longhaul_security::trust::TrustStatus;
use rustix::termios::isatty;
use std::io::BufRead as _;

#[derive(Subcommand, Debug)]
pub enum TrustCommand {
    /// Show the public key that signs checkpoints and backups of this data directory.
    Key,
    /// List the trusted files of projects and the trusted keys of signers.
    List,
    /// Trust the key of another data directory, so that its checkpoints and backups are accepted without a question.
    Add {
        /// The key, as `longhaul trust key` prints it there.
        key: String,
    },
    /// Revoke the trust in a key, or in the file of the project in a directory.
    Remove {
        /// The key or the directory.
        what: String,
    },
}

/// Runs the command. Without a subcommand it shows the permissions that longhaul.toml asks for, and agrees to them.
pub async fn run(context: &Context, command: Option<TrustCommand>, yes: bool) -> fault::Result<Exit> {
    match command {
        None => agree(context, yes).await,
        Some(TrustCommand::Key) => {
            let key = SigningKey::of(&context.home)?.public();
            if context.json {
                print_json(&SigningKeyView { key })?;
            } else {
                outln!("{key}");
            }
            Ok(Exit::Done)
        }
        Some(TrustCommand::List) => list(context).await,
        Some(TrustCommand::Add { key }) => {
            context.set_signer(SetSigner { key, known: true }).await?;
            Ok(Exit::Done)
        }
        Some(TrustCommand::Remove { what }) => {
            let directory = context.project.join(&what);
            let is_directory = directory.is_dir() || what.contains('/') && !what.starts_with("RW");
            match is_directory {
                true => context.distrust_project(DistrustProject { directory }).await?,
                false => context.set_signer(SetSigner { key: what, known: false }).await?,
            }
            Ok(Exit::Done)
        }
    }
}

/// Settles the trust in a project's file before work begins with it. `yes` agrees; at a terminal the person is asked;
/// otherwise the service refuses the file and names the remedy.
pub async fn ask_first(context: &Context, yes: bool) -> fault::Result<()> {
    // A server refuses a file that nobody agreed to on its machine.
    if context.is_of_server() || !context.project.join(FILE).is_file() {
        return Ok(());
    }
    let is_asked = isatty(std::io::stdin()) && isatty(std::io::stderr()) && !context.json;
    if !yes && !is_asked {
        return Ok(());
    }
    let directory = context.project.clone();
    // A file that cannot be read is reported by its next reader, with all errors.
    let Ok(standing) = context.trust_status(ShowTrust { directory }).await else { return Ok(()) };
    if standing.is_trusted {
        return Ok(());
    }
    if !yes {
        show(&standing, |line| errln!("{line}"));
        if !is_yes("use it with these powers? [y/N] ")? {
            bail!("{FILE} is not used; change it, or agree to it with `longhaul trust`");
        }
    }
    send(context, &standing).await
}

/// Like [`ask_first`], for a command that uses the file in this process: refuses a file that nobody agreed to.
pub async fn expect(context: &Context) -> fault::Result<()> {
    context.client.keep();
    ask_first(context, context.trust).await?;
    context.expect_trust(ExpectTrust { directory: context.project.clone() }).await?;
    context.client.release().await;
    Ok(())
}

async fn agree(context: &Context, yes: bool) -> fault::Result<Exit> {
    context.client.keep();
    let standing = context.trust_status(ShowTrust { directory: context.project.clone() }).await?;
    if context.json {
        print_json(&TrustStatusView::from(&standing))?;
    } else {
        show(&standing, |line| outln!("{line}"));
    }
    if standing.is_trusted {
        return Ok(Exit::Done);
    }
    if !yes {
        if context.json || !isatty(std::io::stdin()) {
            bail!("{FILE} is not trusted; in a script run: longhaul trust --trust");
        }
        if !is_yes("trust it with these powers? [y/N] ")? {
            bail!("{FILE} is not trusted");
        }
    }
    send(context, &standing).await?;
    if !context.json {
        outln!("trusted");
    }
    Ok(Exit::Done)
}

async fn send(context: &Context, standing: &TrustStatus) -> fault::Result<()> {
    // The project is known from now on, so the person hears of other projects that have or had its name.
    let identity = context.identify_project(IdentifyProject { directory: context.project.clone() }).await?;
    identity.told.iter().for_each(|told| errln!("{told}"));
    // Exactly the powers that were shown, and none that the file asked for since.
    let (directory, digest) = (context.project.clone(), Some(standing.digest));
    context.trust_project(TrustProject { directory, digest }).await.map(drop)
}

fn show(standing: &TrustStatus, tell: impl Fn(&str)) {
    if standing.powers.is_empty() {
        tell(&format!("{FILE} asks for nothing beyond the tree of a run"));
    } else {
        tell(&format!("{FILE} asks for:"));
    }
    for power in &standing.powers {
        tell(&format!("  {power}"));
    }
    if let Some(beyond) = standing.beyond.as_ref().filter(|_| !standing.is_new && !standing.is_trusted) {
        tell(&format!("since it was agreed to: {beyond}"));
    }
}

fn is_yes(question: &str) -> fault::Result<bool> {
    terminal::ask(question);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

async fn list(context: &Context) -> fault::Result<Exit> {
    let trusted = context.trusted(ListTrusted {}).await?;
    if context.json {
        print_json(&TrustListing::from(trusted))?;
        return Ok(Exit::Done);
    }
    let TrustedList { files, signers } = trusted;
    for file in &files {
        let powers = file.powers.iter().filter(|power| !power.is_guard()).count();
        outln!("{}  {powers} powers", file.directory.display());
    }
    for signer in &signers {
        outln!("signer {signer}");
    }
    Ok(Exit::Done)
}
