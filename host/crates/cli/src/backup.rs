//! `longhaul backup` and `longhaul restore`.

use super::checkpoint::AcceptArgs;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::MaintenanceOperations as _;
use longhaul_api::upkeep::{RestoreOptions, WriteBackup};
use longhaul_api::wire::maintenance::{BackupView, RestoreView};
use longhaul_core::fault;
use longhaul_report::messages::counted;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The file to make. An existing file is left alone.
    file: PathBuf,
    /// Include secrets, as readable as they are in the data directory.
    #[arg(long)]
    with_secrets: bool,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A file that `longhaul backup` made.
    file: PathBuf,
    #[command(flatten)]
    accept: AcceptArgs,
    /// Restore API tokens, too. Each of them gives access to the API.
    #[arg(long)]
    with_tokens: bool,
    /// Restore server.toml with the programs that it names, and the trust in files of projects.
    #[arg(long)]
    with_commands: bool,
}

/// `longhaul backup`: asks the owner of the data directory, also while runs are worked on.
pub async fn backup(context: &Context, BackupArgs { file, with_secrets }: BackupArgs) -> fault::Result<Exit> {
    let written = context.write_backup(WriteBackup { file: std::path::absolute(file)?, with_secrets }).await?;
    if context.json {
        print_json(&BackupView::from(written))?;
        return Ok(Exit::Done);
    }
    let secrets = if written.has_secrets { ", with secrets: keep it as you keep them" } else { ", without secrets" };
    outln!(
        "wrote {} ({} bytes): {} rows, {} files{secrets}",
        written.file.display(),
        written.bytes,
        written.rows,
        written.files
    );
    outln!("  signed by {0}; to restore it: longhaul restore FILE --signer {0}", written.signer);
    let records = counted(written.audit.records, "record");
    outln!("  its audit log has {records}; the digest of the last one: {}", written.audit.last);
    for left in &written.left_out {
        outln!("  left out: {left}");
    }
    Ok(Exit::Done)
}

/// `longhaul restore`: makes the data directory here, since it has no owner to ask yet.
pub async fn restore(context: &Context, args: RestoreArgs) -> fault::Result<Exit> {
    let RestoreArgs { file, accept, with_tokens, with_commands } = args;
    let (home, accepts) = (context.home.clone(), accept.accepts());
    let keeps = RestoreOptions { tokens: with_tokens, commands: with_commands };
    let restored = context.owner.restore(file, home, accepts, keeps).await?;
    if context.json {
        print_json(&RestoreView::from(restored))?;
        return Ok(Exit::Done);
    }
    outln!(
        "restored {}: {} and {}, all as they were written",
        restored.home.display(),
        counted(restored.read.rows, "row"),
        counted(restored.files, "file")
    );
    outln!("  {}", restored.signer);
    for dropped in &restored.dropped {
        outln!("  not put back: {dropped}");
    }
    for power in &restored.powers {
        outln!("  asks for: {power}");
    }
    if !restored.manifest.has_secrets {
        outln!("  it had no secrets; set them with: longhaul secrets set NAME");
    }
    for left in &restored.manifest.left_out {
        outln!("  was left out: {left}");
    }
    outln!("  runs go on from where they stood; do not go on with them in the directory that was backed up, too");
    Ok(Exit::Done)
}
