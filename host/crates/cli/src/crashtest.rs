//! `longhaul crashtest`: kills processes that run a project on its recording, resumes each, and compares the ends.
//!
//! Everything happens in copies below a temporary directory, with data directories of their own; the user's checkout
//! and data directory are only read. What leaves a process goes to a receiver on loopback. The plan and the judgement
//! are [`longhaul_crashtest`]'s; here are the processes.

mod child;
mod lab;
mod observe;
mod outside;
mod receiver;
mod trial;

use super::command_client::CommandClient;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::trust;
use clap::Args;
use futures_util::stream::{self, StreamExt as _};
use lab::{LabSettings, Stage};
use longhaul_config::Config;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_crashtest::{CrashReport, CrashTrial, PlannedKill, Reference, plan, points};
use longhaul_egress::stand_in;
use longhaul_models::Recording;
use receiver::HostAnswers;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use trial::Undisturbed;

/// The recording of a project that names no other.
const RECORDING_FILE: &str = "recording.jsonl";

/// Exit code after Ctrl-C: 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

#[derive(Args, Debug)]
pub struct CrashtestArgs {
    /// The project. Default: that of --project, or the current directory.
    #[arg(value_name = "PROJECT")]
    directory: Option<PathBuf>,
    /// The recording that answers every model. Default: `recording.jsonl` in the project.
    #[arg(long, value_name = "FILE")]
    recorded: Option<PathBuf>,
    /// Answers of hosts to the requests of tools, as JSON lines: `{"method": "POST", "url": "https://...", "status":
    /// 200, "body": ...}`. The first line whose method and beginning of the address fit is taken. Default: `{}` for
    /// all.
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Kill at these points only: names with `*` for any text, separated by commas. Default: every point that the run
    /// reaches.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    points: Vec<String>,
    /// Beside the first, the middle and the last occurrence of each point, kill at this number of random ones.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    random: u32,
    /// Repeat the random kills of an earlier test by its seed.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Test this number of kills at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Longest time of one process, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 600_000, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
    /// Also write the report to this file, as one page of HTML.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Keep the temporary directory with all copies, and print its path.
    #[arg(long)]
    keep: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: CrashtestArgs) -> fault::Result<Exit> {
    let project = match &args.directory {
        Some(directory) => {
            directory.canonicalize().with_context(|| format!("there is no directory `{}`", directory.display()))?
        }
        None => context.project.clone(),
    };
    expect_trust(context, &project).await?;
    // Nothing that this process opens from now on may send anything: port 0 refuses every connection.
    stand_in::send_all_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let settings = settings(context, &args, project)?;
    let (stop, stopped) = watch::channel(false);
    let interrupts = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(true);
        }
        // The sender lives as long as this task: without it every wait for an interrupt would end.
        std::future::pending::<()>().await;
    });
    let tested = test(context, &args, settings, stopped.clone()).await;
    interrupts.abort();
    if *stopped.borrow() {
        errln!("interrupted; its processes were ended, and its copies deleted unless --keep was given");
        return Ok(Exit::OfCode(INTERRUPTED));
    }
    let report = tested?;
    if let Some(file) = &args.html {
        let page = longhaul_report::crash_page(&report);
        std::fs::write(file, page).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    match context.json {
        true => print_json(&report.published())?,
        false => outtext!(report.to_text()),
    }
    Ok(if report.holds() { Exit::Done } else { Exit::Error })
}

/// A crash test executes what the project's file grants, so a person has to have agreed to that.
async fn expect_trust(context: &Context, project: &Path) -> fault::Result<()> {
    let client = CommandClient::new(&context.home, project, &context.owner);
    let of_project = Context {
        home: context.home.clone(),
        project: project.to_owned(),
        names_project: true,
        json: context.json,
        trust: context.trust,
        client,
        owner: Arc::clone(&context.owner),
    };
    trust::expect(&of_project).await
}

/// The settings of all runs of the test, with their files.
fn settings(context: &Context, args: &CrashtestArgs, project: PathBuf) -> fault::Result<LabSettings> {
    let config = Config::read(&project)?;
    outside::refuse(&config)?;
    let recording = args.recorded.clone().map_or_else(|| project.join(RECORDING_FILE), |file| context.whole(file));
    if !recording.is_file() {
        bail!(
            "there is no recording `{}`, and a crash test asks no model; make one with `longhaul run --record \
             {RECORDING_FILE}` in the project and commit it, or name another with --recorded",
            recording.display()
        );
    }
    Recording::read(&recording)?;
    let answers = args.answers.as_deref().map(HostAnswers::read).transpose()?.unwrap_or_default();
    Ok(LabSettings {
        project,
        recording,
        config,
        answers: Arc::new(answers),
        jobs: args.jobs,
        timeout: Duration::from_millis(args.timeout_ms),
        keep: args.keep,
    })
}

async fn test(
    context: &Context,
    args: &CrashtestArgs,
    settings: LabSettings,
    stopped: watch::Receiver<bool>,
) -> fault::Result<CrashReport> {
    let project = settings.project.display().to_string();
    let stage = Stage::new(context, settings, stopped)?;
    if args.keep {
        errln!("the copies stay in {}", stage.path().display());
    }
    errln!("running the project twice without a kill");
    let first = trial::undisturbed(&stage).await?;
    let second = trial::undisturbed(&stage).await?;
    let reference = reference(&first, &second)?;
    let reached = points::counts(&first.points);
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let kills = plan::plan(&reached, &args.points, args.random, seed).map_err(Fault::invalid)?;
    errln!("{} kills at {} points, with --seed {seed}", kills.len(), reached.len());
    let trials = kill_all(&stage, &reference, &kills, args.jobs).await?;
    Ok(CrashReport {
        project,
        seed,
        ends_as: first.ends_as(),
        effects: reference.totals(),
        reached,
        varying: reference.varying(),
        trials,
    })
}

/// The common part of the two runs. Two runs that end differently have nothing to compare a third one with.
fn reference(first: &Undisturbed, second: &Undisturbed) -> fault::Result<Reference> {
    if first.ends_as() != second.ends_as() {
        bail!(
            "two runs without a kill ended differently, {} and {}, so there is nothing to compare with; make the \
             project's checks and tools answer alike each time",
            first.ends_as(),
            second.ends_as()
        );
    }
    Ok(Reference::of(first.witnessed(), second.witnessed()))
}

/// Makes all kills, so many at once, and returns them in the order of the plan.
async fn kill_all(
    stage: &Stage<'_>,
    reference: &Reference,
    kills: &[PlannedKill],
    jobs: u32,
) -> fault::Result<Vec<CrashTrial>> {
    let count = kills.len();
    let one = |(number, kill): (usize, PlannedKill)| async move {
        let trial = trial::killed(stage, reference, kill).await?;
        let word = match (trial.killed, trial.findings.is_clean()) {
            (false, _) => "not reached this time",
            (true, true) => "survived",
            (true, false) => "NOT survived",
        };
        errln!("{} of {count}: {}: {word}", number + 1, trial.kill.at);
        Ok::<_, Fault>((number, trial))
    };
    let at_once = usize::try_from(jobs).unwrap_or(1);
    let mut made = stream::iter(kills.iter().cloned().enumerate()).map(one).buffer_unordered(at_once);
    let mut trials = Vec::with_capacity(count);
    while let Some(trial) = made.next().await {
        trials.push(trial?);
    }
    trials.sort_by_key(|(number, _)| *number);
    Ok(trials.into_iter().map(|(_, trial)| trial).collect())
}

/// A seed that is another one each time.
fn fresh_seed() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ u64::from(std::process::id()) << 32
}
