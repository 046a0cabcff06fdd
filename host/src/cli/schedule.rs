//! `longhaul schedule`: when agents are run, what became of it, and who runs them where no server does.

mod show;

use super::task_status::StatusArg;
use super::{Context, Exit};
use crate::agents::Scheduler;
use crate::client::Door;
use crate::service::{Answer, Request};
use clap::{Args, Subcommand};
use longhaul_api::agents::{FIRES, PAGE, ScheduleAsk, ScheduleSaid};
use longhaul_core::Name;
use longhaul_core::fault::{self, bail};
use longhaul_schedule::{Cron, Missed, RETRIES_MAX, Schedule, Trigger, When};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How long another command may have the data directory.
const OWNER_WAIT: Duration = Duration::from_secs(5);

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Have an agent run at times, in intervals, or after another agent.
    Add(AddArgs),
    /// List schedules, with their next fires.
    List {
        /// At most so many.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// Without the first so many.
        #[arg(long, default_value_t = 0)]
        offset: usize,
    },
    /// Show a schedule: its next fires, and what became of those before.
    Show {
        /// The schedule.
        name: Name,
        /// So many fires ahead.
        #[arg(long, default_value_t = FIRES)]
        fires: usize,
    },
    /// Remove a schedule, with what it has waiting. What runs goes on.
    Remove {
        /// The schedule.
        name: Name,
    },
    /// Switch a schedule off: what it has waiting is noted as skipped.
    Pause {
        /// The schedule.
        name: Name,
    },
    /// Switch a schedule on.
    Resume {
        /// The schedule.
        name: Name,
    },
    /// Have a schedule fire now, also when it is off.
    RunNow {
        /// The schedule.
        name: Name,
    },
    /// List tasks: those that have not ended, then the others, the newest first.
    Tasks {
        /// Only of this agent.
        #[arg(long)]
        agent: Option<Name>,
        /// Only with this status.
        #[arg(long)]
        status: Option<StatusArg>,
        /// At most so many.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// Without the first so many.
        #[arg(long, default_value_t = 0)]
        offset: usize,
        /// Show this one whole, with what each attempt gave.
        #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "status", "limit", "offset"])]
        task: Option<String>,
    },
    /// Try a task again that failed: the same one, at most three times.
    Retry {
        /// The task.
        task: String,
    },
    /// List the fires of a schedule that became no task, and why.
    Skipped {
        /// The schedule.
        name: Name,
        /// At most so many.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
    },
    /// Say how the scheduler stands; with --at-once, how many tasks may run at once.
    Status {
        /// From now on so many tasks run at once. Default 5.
        #[arg(long, value_name = "NUMBER")]
        at_once: Option<u32>,
    },
    /// Run what is due, in the foreground, until Ctrl-C or for a time. It must own the data directory, as a server does.
    Work {
        /// End after this time, for example 60s or 2h. Default: at Ctrl-C.
        #[arg(long = "for", value_name = "TIME", value_parser = time)]
        time: Option<Duration>,
    },
}

#[derive(Args, Debug)]
pub struct AddArgs {
    /// Its name.
    name: Name,
    /// The agent that is run.
    #[arg(long)]
    agent: Name,
    /// At these times: minute, hour, day, month, weekday, with seconds in front if there are six, or `@hourly` and the
    /// like.
    #[arg(long, value_name = "EXPRESSION", group = "trigger")]
    cron: Option<String>,
    /// With --cron: on the clocks of this IANA zone, such as `Europe/Berlin`. Default UTC.
    #[arg(long, value_name = "ZONE", requires = "cron")]
    timezone: Option<String>,
    /// In this interval, for example 10m, 90s or 2h. Default, without another trigger: 60m.
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = time)]
    every: Option<Duration>,
    /// When a task of this agent has ended.
    #[arg(long, value_name = "AGENT", group = "trigger")]
    after: Option<Name>,
    /// With --after: on which end.
    #[arg(long, value_enum, requires = "after", default_value = "success")]
    when: WhenArg,
    /// Add it switched off.
    #[arg(long)]
    paused: bool,
    /// The agent may be run while it runs. Default: a second task waits.
    #[arg(long)]
    overlap: bool,
    /// What becomes of fires that nobody was there for.
    #[arg(long, value_enum, default_value = "once")]
    missed: MissedArg,
    /// With --missed all: run at most so many of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    missed_max: u32,
    /// A fire waits for up to this long, in milliseconds; at most an hour.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    jitter_ms: u64,
    /// Try a task that failed again so often, after 2, 4 and 8 seconds; at most 3.
    #[arg(long, value_name = "NUMBER", default_value_t = RETRIES_MAX)]
    retries_max: u32,
    /// Put it in the place of a schedule of this name.
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WhenArg {
    /// It completed.
    Success,
    /// It failed, and is not tried again.
    Failure,
    /// Either.
    Always,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MissedArg {
    /// They are noted.
    Skip,
    /// The last of them is run.
    Once,
    /// The last of them are run, one after the other.
    All,
}

/// A time such as 90s.
fn time(text: &str) -> Result<Duration, String> {
    let units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let unit = units.into_iter().find(|(letter, _)| text.ends_with(*letter));
    let parsed =
        unit.and_then(|(letter, seconds)| text.strip_suffix(letter)?.parse::<u64>().ok()?.checked_mul(seconds));
    parsed.map(Duration::from_secs).ok_or_else(|| "write a number and d, h, m or s, for example 10m".to_owned())
}

impl AddArgs {
    fn schedule(self) -> fault::Result<Schedule> {
        let trigger = match (self.cron, self.every, self.after) {
            (Some(cron), ..) => Trigger::Cron(Cron::parse(&cron, self.timezone.as_deref().unwrap_or("UTC"))?),
            (None, Some(every), _) => Trigger::interval(every.as_secs())?,
            (None, None, Some(agent)) => {
                let when = match self.when {
                    WhenArg::Success => When::Success,
                    WhenArg::Failure => When::Failure,
                    WhenArg::Always => When::Always,
                };
                Trigger::After { agent: agent.into(), when }
            }
            (None, None, None) => Trigger::interval(longhaul_schedule::DEFAULT_INTERVAL_MINUTES * 60)?,
        };
        Ok(Schedule {
            enabled: !self.paused,
            overlap: self.overlap,
            missed: match self.missed {
                MissedArg::Skip => Missed::Skip,
                MissedArg::Once => Missed::Once,
                MissedArg::All => Missed::All,
            },
            missed_max: self.missed_max,
            jitter_ms: self.jitter_ms,
            retries_max: self.retries_max,
            ..Schedule::new(self.name, self.agent, trigger)
        })
    }
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> fault::Result<Exit> {
    match command {
        Command::Add(args) => {
            let replace = args.replace;
            let wanted = ScheduleAsk::Put { schedule: Box::new(args.schedule()?), replace };
            let said = ask(context, wanted).await?;
            show::schedule(context, &said, "is there")?;
            hint(context).await
        }
        Command::List { limit, offset } => {
            show::schedules(context, &ask(context, ScheduleAsk::List { limit, offset }).await?)
        }
        Command::Show { name, fires } => {
            show::schedule_whole(context, &ask(context, ScheduleAsk::Show { name, fires }).await?)
        }
        Command::Remove { name } => {
            show::schedule(context, &ask(context, ScheduleAsk::Remove { name }).await?, "removed")
        }
        Command::Pause { name } => {
            let wanted = ScheduleAsk::Enable { name, enabled: false };
            show::schedule(context, &ask(context, wanted).await?, "switched off")
        }
        Command::Resume { name } => {
            let wanted = ScheduleAsk::Enable { name, enabled: true };
            show::schedule(context, &ask(context, wanted).await?, "switched on")
        }
        Command::RunNow { name } => {
            show::task(context, &ask(context, ScheduleAsk::RunNow { name }).await?)?;
            hint(context).await
        }
        Command::Tasks { task: Some(id), .. } => {
            show::task_whole(context, &ask(context, ScheduleAsk::Task { id }).await?)
        }
        Command::Tasks { agent, status, limit, offset, task: None } => {
            let status = status.map(Into::into);
            tasks(context, ScheduleAsk::Tasks { agent, status, limit, offset }).await
        }
        Command::Retry { task } => {
            show::task(context, &ask(context, ScheduleAsk::Retry { id: task }).await?)?;
            hint(context).await
        }
        Command::Skipped { name, limit } => {
            show::skipped(context, &ask(context, ScheduleAsk::Skipped { name, limit }).await?)
        }
        Command::Status { at_once: Some(max) } => {
            show::status(context, &ask(context, ScheduleAsk::ConcurrentMax { max }).await?)
        }
        Command::Status { at_once: None } => show::status(context, &ask(context, ScheduleAsk::Status).await?),
        Command::Work { time } => work(context, time).await,
    }
}

/// Lists tasks.
pub async fn tasks(context: &Context, wanted: ScheduleAsk) -> fault::Result<Exit> {
    show::tasks(context, &ask(context, wanted).await?)
}

/// Runs what is due. Whoever owns the data directory already has to do that.
async fn work(context: &Context, time: Option<Duration>) -> fault::Result<Exit> {
    // Heard from here on, so that whoever waits for the line below can end it.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let door = owned(context).await?;
    let Door::Own { service, .. } = &door else { bail!("the data directory is not ours") };
    service.send_letters();
    let scheduler = match Scheduler::start(service.agents_desk(), service.hands()).await {
        Ok(scheduler) => scheduler,
        Err(error) => {
            door.close().await;
            return Err(error);
        }
    };
    if !context.json {
        outln!("working; Ctrl-C ends it");
    }
    let over = async {
        match time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = over => {}
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    scheduler.stop().await;
    door.close().await;
    Ok(Exit::Done)
}

/// The data directory as its owner. A command that has it for a moment is waited for.
async fn owned(context: &Context) -> fault::Result<Door> {
    let since = Instant::now();
    loop {
        let door = context.door().await?;
        if door.is_owner() {
            return Ok(door);
        }
        if since.elapsed() > OWNER_WAIT {
            bail!(
                "another longhaul owns `{}`, and a scheduler works only in its owner; end that one, or let it be the server",
                context.home.path().display()
            );
        }
        tokio::time::sleep(super::OWNER_PAUSE).await;
    }
}

/// That nobody runs what is due, where that is so.
async fn hint(context: &Context) -> fault::Result<Exit> {
    if !context.json
        && let ScheduleSaid::Status(status) = ask(context, ScheduleAsk::Status).await?
        && !status.working
    {
        errln!("longhaul: no scheduler works now, and what is due waits for one: `longhaul schedule work`");
    }
    Ok(Exit::Done)
}

/// Asked once: a task that was asked for twice would be two.
async fn ask(context: &Context, wanted: ScheduleAsk) -> fault::Result<ScheduleSaid> {
    match context.ask_once(Request::Schedules { wanted }).await? {
        Answer::Schedules { said } => Ok(*said),
        _ => bail!("the service answered something else"),
    }
}
