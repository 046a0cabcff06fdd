//! `longhaul checkpoint`: runs as they stand, to look at, to keep, and to go on with elsewhere.

use super::words::counted;
use super::{Context, Exit, RunArg, terminal};
use crate::checkpoint::{Cause, Origin, Snapshot};
use crate::service::{Answer, CheckpointAsk, Request};
use crate::signing::{self, Accepts};
use clap::{Args, Subcommand};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::text::printable;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// For how long a saved snapshot is kept where nobody says for how long, in seconds.
const TTL_S: u64 = 86_400;

/// Longest text on a line, in bytes.
const LINE_BYTES_MAX: usize = 160;

/// Bytes of a snapshot that is read.
const SNAPSHOT_BYTES_MAX: u64 = 512 << 20;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the checkpoints of a run, and what is saved.
    List {
        #[command(flatten)]
        run: RunArg,
        /// One each so many steps, in place of what is configured.
        #[arg(long, value_name = "STEPS")]
        every: Option<u32>,
        /// List what is on the server instead, whoever left it there.
        #[arg(long)]
        shared: bool,
    },
    /// Say in words what a key names, and how it stands.
    Show {
        /// A run, or RUN:AGENT, or a file of `export`.
        key: String,
    },
    /// Write a run as one JSON value, which `import` takes on this or another machine.
    Export {
        /// A run, or RUN:AGENT.
        key: String,
        /// Into this file, which must not be there yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Keep it in the data directory under this name instead; any text will do.
        #[arg(long, value_name = "NAME", conflicts_with = "output")]
        save: Option<String>,
        /// For how long it is kept there, in seconds; 0 is over at once.
        #[arg(long, default_value_t = TTL_S, requires = "save")]
        ttl_s: u64,
    },
    /// Put a run here as a checkpoint has it; `resume` goes on with it.
    Import(ImportArgs),
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The file; `-` reads standard input. With --saved or --shared: the name.
    from: String,
    /// It is one that was saved in the data directory.
    #[arg(long, conflicts_with = "shared")]
    saved: bool,
    /// It is on the server: take the run over, so that nobody else goes on with it.
    #[arg(long)]
    shared: bool,
    /// Also when the run is here; what is here of it is lost.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// Who may have written something that comes from elsewhere.
#[derive(Args, Clone, Debug)]
pub(super) struct AcceptArgs {
    /// Take it from whoever has this key, as `longhaul trust key` shows it there; the key is known from then on.
    #[arg(long, value_name = "KEY")]
    signer: Option<String>,
    /// Take it though nobody signed it.
    #[arg(long, conflicts_with = "signer")]
    unsigned: bool,
}

impl AcceptArgs {
    pub(super) fn accepts(self) -> Accepts {
        Accepts { unsigned: self.unsigned, signer: self.signer }
    }
}

/// An age in milliseconds.
pub(super) fn age_ms(text: &str) -> Result<u64, String> {
    let units = [('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];
    let unit = units.into_iter().find(|(letter, _)| text.ends_with(*letter));
    let parsed = unit.and_then(|(letter, ms)| text.strip_suffix(letter)?.parse::<u64>().ok()?.checked_mul(ms));
    parsed.ok_or_else(|| "write a number and d, h, m or s, for example 7d".to_owned())
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> fault::Result<Exit> {
    match command {
        Command::List { run, every, shared } => list(context, run, every, shared).await,
        Command::Show { key } => show(context, &key).await,
        Command::Export { key, save: Some(name), ttl_s, .. } => {
            let answer = ask(context, CheckpointAsk::Save { key, name, ttl_s }).await?;
            print_list(context, answer)
        }
        Command::Export { key, output, .. } => export(context, key, output).await,
        Command::Import(args) => import(context, args).await,
    }
}

async fn ask(context: &Context, wanted: CheckpointAsk) -> fault::Result<Answer> {
    context.ask(Request::Checkpoints { wanted }).await
}

async fn list(context: &Context, run: RunArg, every: Option<u32>, shared: bool) -> fault::Result<Exit> {
    let wanted = if shared {
        CheckpointAsk::ListShared { directory: context.project.clone() }
    } else {
        CheckpointAsk::List { run: context.which(run), every }
    };
    print_list(context, ask(context, wanted).await?)
}

fn print_list(context: &Context, answer: Answer) -> fault::Result<Exit> {
    if context.json {
        outln!("{}", serde_json::to_string(&answer)?);
        return Ok(Exit::Done);
    }
    let Answer::Checkpoints { checkpoints, saved, shared } = answer else {
        bail!("the service answered something else")
    };
    if checkpoints.is_empty() && saved.is_empty() && shared.is_empty() {
        outln!("no checkpoints");
    }
    for one in &checkpoints {
        let cause = match one.cause {
            Cause::Step => "step",
            Cause::Approval => "approval",
        };
        let open = if one.open { "" } else { " (has ended)" };
        outln!("{}  step {} before entry {} ({cause}){open}", one.invocation, one.step, one.entries + 1);
    }
    for one in &saved {
        outln!("saved  {}  {} bytes", printable(&one.key, LINE_BYTES_MAX), one.bytes);
    }
    for key in &shared {
        outln!("shared {}", printable(key, LINE_BYTES_MAX));
    }
    Ok(Exit::Done)
}

async fn snapshot(context: &Context, wanted: CheckpointAsk) -> fault::Result<Box<Snapshot>> {
    match ask(context, wanted).await? {
        Answer::Snapshot { snapshot } => Ok(Box::new(serde_json::from_value(snapshot)?)),
        _ => bail!("the service answered something else"),
    }
}

async fn show(context: &Context, key: &str) -> fault::Result<Exit> {
    let file = Path::new(key);
    let (mut snapshot, is_file) = if file.is_file() {
        (Box::new(read(key)?), true)
    } else {
        (snapshot(context, CheckpointAsk::Show { key: key.to_owned() }).await?, false)
    };
    // What is read of this data directory has no signature yet.
    let signer = if is_file {
        let (signed, bytes) = snapshot.take_signature()?;
        Some(signing::signer_of(&context.home, signed.as_ref(), &bytes).context("the checkpoint")?)
    } else {
        None
    };
    let powers = snapshot.powers()?;
    let Snapshot { key, origin, run, project, status, branch, left_out, .. } = &*snapshot;
    if context.json {
        let about =
            serde_json::json!({ "key": key, "run": run, "project": project, "status": status, "branch": branch });
        let mut about = about;
        if let (Some(fields), serde_json::Value::Object(of)) = (about.as_object_mut(), serde_json::to_value(origin)?) {
            fields.extend(of);
            fields.insert("signer".into(), serde_json::to_value(&signer)?);
            fields.insert("powers".into(), powers.iter().map(ToString::to_string).collect());
        }
        outln!("{about}");
        return Ok(Exit::Done);
    }
    outln!(
        "{}  project {}, {status}, branch {branch}",
        printable(key, LINE_BYTES_MAX),
        printable(project, LINE_BYTES_MAX)
    );
    match origin {
        Origin::Plan { features, passing } => outln!("  all of run {run}: {passing} of {features} features pass"),
        Origin::Agent { agent_id, invocation, step, pending } => {
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
    for power in &powers {
        outln!("    {power}");
    }
    Ok(Exit::Done)
}

async fn export(context: &Context, key: String, output: Option<PathBuf>) -> fault::Result<Exit> {
    let text = snapshot(context, CheckpointAsk::Export { key }).await?.write()?;
    match output {
        Some(path) => {
            // It holds prompts, and whatever files the agent wrote.
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
    let wanted = if shared {
        CheckpointAsk::TakeOver { key: from, directory, replace, accepts }
    } else {
        let snapshot = if saved {
            self::snapshot(context, CheckpointAsk::Saved { name: from }).await?
        } else {
            Box::new(read(&from)?)
        };
        CheckpointAsk::Import { snapshot: serde_json::to_value(snapshot)?, directory, replace, accepts }
    };
    let Answer::Imported { run, signer, powers } = ask(context, wanted).await? else {
        bail!("the service answered something else")
    };
    if context.json {
        outln!("{}", serde_json::json!({ "run": run, "signer": signer, "powers": powers }));
        return Ok(Exit::Done);
    }
    // After it is taken: a refusal is one line, and nothing that was taken acts before a resume.
    errln!("the checkpoint is {signer}");
    for power in &powers {
        errln!("its longhaul.toml, which is not used here, asks for: {power}");
    }
    outln!("run {run} is here; go on with it with `longhaul resume {run}`");
    Ok(Exit::Done)
}

fn read(from: &str) -> fault::Result<Snapshot> {
    let mut bytes = Vec::new();
    if from == "-" {
        std::io::stdin().take(SNAPSHOT_BYTES_MAX).read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(from).with_context(|| format!("cannot read `{from}`"))?;
        file.take(SNAPSHOT_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Snapshot::read(&bytes)
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
