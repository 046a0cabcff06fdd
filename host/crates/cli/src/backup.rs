//! `longhaul backup` and `longhaul restore`.

use super::checkpoint::AcceptArgs;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::MaintenanceOperations as _;
use longhaul_api::upkeep::{RestoreOptions, WriteBackup, WrittenArchive};
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
    /// Also print the key of the signer, the digest of the audit log's last record, and each part that was left out.
    #[arg(long)]
    verbose: bool,
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
pub async fn backup(context: &Context, args: BackupArgs) -> fault::Result<Exit> {
    let BackupArgs { file, with_secrets, verbose } = args;
    let written = context.write_backup(WriteBackup { file: context.whole(file), with_secrets }).await?;
    if context.json {
        print_json(&BackupView::from(written))?;
        return Ok(Exit::Done);
    }
    lines(&written, verbose).iter().for_each(|line| outln!("{line}"));
    Ok(Exit::Done)
}

/// The facts of a backup: counts, and with `verbose` each key, digest and name.
fn lines(written: &WrittenArchive, verbose: bool) -> Vec<String> {
    let WrittenArchive { file, bytes, files, rows, has_secrets, left_out, signer, audit } = written;
    let secrets = if *has_secrets { ", with secrets: keep it as you keep them" } else { ", without secrets" };
    let (rows, files) = (counted(*rows, "row"), counted(*files, "file"));
    let mut lines = vec![format!("wrote {} ({bytes} bytes): {rows}, {files}{secrets}", file.display())];
    let records = counted(audit.records, "record");
    if !verbose {
        lines.push(format!("  signed; its audit log has {records}; --verbose prints the key and the last digest"));
        if !left_out.is_empty() {
            lines.push(format!("  left out: {}; --verbose lists them", counted(left_out.len(), "part")));
        }
        return lines;
    }
    lines.push(format!("  signed by {signer}; to restore it: longhaul restore FILE --signer {signer}"));
    lines.push(format!("  its audit log has {records}; the digest of the last one: {}", audit.last));
    lines.extend(left_out.iter().map(|part| format!("  left out: {part}")));
    lines
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

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::upkeep::AuditHead;
    use longhaul_core::Digest;

    #[test]
    fn a_backup_is_told_in_counts_and_its_key_digest_and_parts_on_request() {
        let last = Digest::of(b"record");
        let written = WrittenArchive {
            file: "a.backup".into(),
            bytes: 7,
            files: 1,
            rows: 2,
            has_secrets: false,
            left_out: vec!["trees/r-1: the run is worked on".to_owned()],
            signer: "RWKEY".to_owned(),
            audit: AuditHead { records: 3, last, is_broken: false },
        };
        assert_eq!(
            lines(&written, false),
            [
                "wrote a.backup (7 bytes): 2 rows, 1 file, without secrets",
                "  signed; its audit log has 3 records; --verbose prints the key and the last digest",
                "  left out: 1 part; --verbose lists them",
            ]
        );
        let all = lines(&written, true);
        assert_eq!(all[0], lines(&written, false)[0]);
        assert_eq!(
            all[1..],
            [
                "  signed by RWKEY; to restore it: longhaul restore FILE --signer RWKEY".to_owned(),
                format!("  its audit log has 3 records; the digest of the last one: {last}"),
                "  left out: trees/r-1: the run is worked on".to_owned(),
            ]
        );
    }
}
