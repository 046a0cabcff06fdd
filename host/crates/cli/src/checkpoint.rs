//! `longhaul checkpoint`: lists, shows, exports and imports checkpoints of runs.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::terminal;
use clap::{Args, Subcommand};
use longhaul_api::checkpoints::{
    CheckpointDescription, CheckpointDocument, CheckpointList, ExportCheckpoint, ImportCheckpoint, ImportedRun,
    ListCheckpoints, ListShared, SaveCheckpoint, ShowCheckpoint, ShowSaved, SnapshotOrigin, TakeOverRun,
};
use longhaul_api::operations::CheckpointOperations as _;
use longhaul_api::wire::checkpoints::{CheckpointListing, CheckpointView, ImportedRunView};
use longhaul_core::event::CheckpointCause;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::text::printable;
use longhaul_report::messages::counted;
use longhaul_security::signing::AcceptedRisks;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Default time to live of a saved checkpoint, in seconds.
const TTL_S: u64 = 86_400;

/// Longest text on a line, in bytes.
const LINE_BYTES_MAX: usize = 160;

/// Longest checkpoint that is read, in bytes.
const SNAPSHOT_BYTES_MAX: u64 = 512 << 20;

#[derive(Subcommand, Debug)]
pub enum CheckpointCommand {
    /// List the checkpoints of a run, and the saved checkpoints.
    List {
        #[command(flatten)]
        run: RunArg,
        /// List one checkpoint each so many steps, instead of the configured interval.
        #[arg(long, value_name = "STEPS")]
        every: Option<u32>,
        /// List the checkpoints on the shared server instead, of all machines.
        #[arg(long)]
        shared: bool,
    },
    /// Describe the checkpoint that a key or a file names.
    Show {
        /// A run, or RUN:AGENT, or a file that `export` wrote.
        key: String,
    },
    /// Export a run as one JSON value, which `import` reads on this or another machine.
    Export {
        /// A run, or RUN:AGENT.
        key: String,
        /// Write to this file, which must not exist yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Save the checkpoint in the data directory under this name instead. Any text is a name.
        #[arg(long, value_name = "NAME", conflicts_with = "output")]
        save: Option<String>,
        /// Time to live of the saved checkpoint, in seconds; with 0 it expires at once.
        #[arg(long, default_value_t = TTL_S, requires = "save")]
        ttl_s: u64,
    },
    /// Import a run from a checkpoint; `resume` continues it.
    Import(ImportArgs),
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The file; `-` reads standard input. With --saved or --shared: the name of the checkpoint.
    from: String,
    /// Import a checkpoint that was saved in the data directory.
    #[arg(long, conflicts_with = "shared")]
    saved: bool,
    /// Import from the shared server and take the run over, so that no other machine continues it.
    #[arg(long)]
    shared: bool,
    /// Import also if the run exists here. The present state of the run is lost.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// The signers that are accepted for a file from elsewhere.
#[derive(Args, Clone, Debug)]
pub(super) struct AcceptArgs {
    /// Accept a file that this key signed, as `longhaul trust key` prints it there. The key is known from then on.
    #[arg(long, value_name = "KEY")]
    signer: Option<String>,
    /// Accept a file without a signature.
    #[arg(long, conflicts_with = "signer")]
    unsigned: bool,
}

impl AcceptArgs {
    pub(super) fn accepts(self) -> AcceptedRisks {
        AcceptedRisks { unsigned: self.unsigned, signer: self.signer }
    }
}

/// Parses an age, in milliseconds.
pub(super) fn age_ms(text: &str) -> Result<u64, String> {
    let units = [('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];
    let unit = units.into_iter().find(|(letter, _)| text.ends_with(*letter));
    let parsed = unit.and_then(|(letter, ms)| text.strip_suffix(letter)?.parse::<u64>().ok()?.checked_mul(ms));
    parsed.ok_or_else(|| "write a number and d, h, m or s, for example 7d".to_owned())
}

/// Runs the command.
pub async fn run(context: &Context, command: CheckpointCommand) -> fault::Result<Exit> {
    match command {
        CheckpointCommand::List { run, every, shared } => list(context, run, every, shared).await,
        CheckpointCommand::Show { key } => show(context, &key).await,
        CheckpointCommand::Export { key, save: Some(name), ttl_s, .. } => {
            print_list(context, &context.save_checkpoint(SaveCheckpoint { key, name, ttl_s }).await?)
        }
        CheckpointCommand::Export { key, output, .. } => export(context, key, output).await,
        CheckpointCommand::Import(args) => import(context, args).await,
    }
}

async fn list(context: &Context, run: RunArg, every: Option<u32>, shared: bool) -> fault::Result<Exit> {
    let list = if shared {
        context.shared_checkpoints(ListShared { directory: context.project.clone() }).await?
    } else {
        context.checkpoints(ListCheckpoints { run: context.which(run), every }).await?
    };
    print_list(context, &list)
}

fn print_list(context: &Context, list: &CheckpointList) -> fault::Result<Exit> {
    if context.json {
        print_json(&CheckpointListing::from(list.clone()))?;
        return Ok(Exit::Done);
    }
    let CheckpointList { checkpoints, saved, shared } = list;
    if checkpoints.is_empty() && saved.is_empty() && shared.is_empty() {
        outln!("no checkpoints");
    }
    for one in checkpoints {
        let cause = match one.cause {
            CheckpointCause::Step => "step",
            CheckpointCause::Approval => "approval",
        };
        let open = if one.open { "" } else { " (has ended)" };
        outln!("{}  step {} before entry {} ({cause}){open}", one.invocation, one.step, one.entries + 1);
    }
    for one in saved {
        outln!("saved  {}  {} bytes", printable(&one.key, LINE_BYTES_MAX), one.bytes);
    }
    for key in shared {
        outln!("shared {}", printable(key, LINE_BYTES_MAX));
    }
    Ok(Exit::Done)
}

async fn show(context: &Context, key: &str) -> fault::Result<Exit> {
    let is_file = !context.is_of_server() && Path::new(key).is_file();
    let document =
        if is_file { read(context, key)? } else { context.checkpoint(ShowCheckpoint { key: key.to_owned() }).await? };
    // A checkpoint that is read from this data directory has no signature yet.
    let described = context.owner.describe_checkpoint(document, is_file.then_some(&context.home))?;
    if context.json {
        print_json(&CheckpointView::from(described))?;
        return Ok(Exit::Done);
    }
    print_description(&described);
    Ok(Exit::Done)
}

fn print_description(described: &CheckpointDescription) {
    let CheckpointDescription { key, origin, run, project, status, branch, left_out, signer, powers } = described;
    outln!(
        "{}  project {}, {status}, branch {branch}",
        printable(key, LINE_BYTES_MAX),
        printable(project, LINE_BYTES_MAX)
    );
    match origin {
        SnapshotOrigin::Plan { features, passing } => {
            outln!("  all of run {run}: {passing} of {features} features pass")
        }
        SnapshotOrigin::Agent { agent_id, invocation, step, pending } => {
            outln!(
                "  {agent_id} in {invocation}, after {}, {} open",
                counted(*step, "step"),
                counted(pending.len(), "approval")
            );
        }
    }
    if !left_out.is_empty() {
        outln!("  {} paths of the tree are no files and would be left out", left_out.len());
    }
    if let Some(signer) = signer {
        outln!("  {signer}");
    }
    outln!("  its longhaul.toml asks for (an import uses the file that is here, and never that one):");
    for power in powers {
        outln!("    {power}");
    }
}

async fn export(context: &Context, key: String, output: Option<PathBuf>) -> fault::Result<Exit> {
    // The fields keep their order, which the signature covers.
    let text = serde_json::to_vec(&context.export_checkpoint(ExportCheckpoint { key }).await?.snapshot)?;
    match output {
        Some(path) => {
            // The file holds prompts, and files that the agent wrote.
            let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let mut file = file.with_context(|| format!("cannot make `{}`", path.display()))?;
            file.write_all(&text)?;
            file.sync_all()?;
        }
        None => terminal::document(&String::from_utf8_lossy(&text)),
    }
    Ok(Exit::Done)
}

async fn import(context: &Context, args: ImportArgs) -> fault::Result<Exit> {
    let ImportArgs { from, saved, shared, replace, accept } = args;
    let accepts = accept.accepts();
    let directory = context.project.clone();
    let imported = if shared {
        context.take_over_run(TakeOverRun { key: from, directory, replace, accepts }).await?
    } else {
        let document = if saved {
            context.client.keep();
            context.saved_checkpoint(ShowSaved { name: from }).await?
        } else {
            read(context, &from)?
        };
        let snapshot = document.snapshot;
        context.import_checkpoint(ImportCheckpoint { snapshot, directory, replace, accepts }).await?
    };
    if context.json {
        print_json(&ImportedRunView::from(imported))?;
        return Ok(Exit::Done);
    }
    let ImportedRun { run, signer, powers } = imported;
    // Printed after the import: a refusal is one line, and an imported run does nothing before a resume.
    errln!("the checkpoint is {signer}");
    for power in &powers {
        errln!("its longhaul.toml, which is not used here, asks for: {power}");
    }
    outln!("run {run} is here; go on with it with `longhaul resume {run}`");
    Ok(Exit::Done)
}

fn read(context: &Context, from: &str) -> fault::Result<CheckpointDocument> {
    let mut bytes = Vec::new();
    if from == "-" {
        std::io::stdin().take(SNAPSHOT_BYTES_MAX).read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(from).with_context(|| format!("cannot read `{from}`"))?;
        file.take(SNAPSHOT_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    context.owner.read_checkpoint(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age_ms("7d"), Ok(604_800_000));
        assert_eq!((age_ms("12h"), age_ms("30m"), age_ms("0s")), (Ok(43_200_000), Ok(1_800_000), Ok(0)));
        for wrong in ["", "7", "d", "-1d", "1.5h", "7 d", "99999999999999999999d", "7w"] {
            assert!(age_ms(wrong).is_err(), "{wrong}");
        }
    }
}
