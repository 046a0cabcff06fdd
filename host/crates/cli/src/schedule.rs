//! `longhaul schedule`: manages the schedules of agents and their tasks, and runs them where no server does.

mod show;

use super::context::Context;
use super::exit::Exit;
use super::owner;
use super::task_status::StatusArg;
use clap::{Args, Subcommand};
use longhaul_api::agents::{
    EnableSchedule, FIRES, FireSchedule, ListSchedules, ListSkipped, ListTasks, PAGE, PutSchedule, RemoveSchedule,
    RetryTask, SetConcurrentMax, ShowSchedule, ShowScheduler, ShowTask,
};
use longhaul_api::operations::ScheduleOperations as _;
use longhaul_core::Name;
use longhaul_core::fault;
use longhaul_schedule::{
    Cron, INTERRUPTIONS_MAX, Missed, QUEUE_MAX, RETRIES_MAX, RetryBackoff, Schedule, Trigger, When,
};
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub enum ScheduleCommand {
    /// Run an agent by cron, in an interval, or after another agent.
    Add(AddArgs),
    /// List schedules, with their next fires.
    List {
        /// The most entries to list.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// The number of entries to skip.
        #[arg(long, default_value_t = 0)]
        offset: usize,
    },
    /// Show a schedule: its next fires, and counts of its tasks and skipped fires.
    Show {
        /// Name of the schedule.
        name: Name,
        /// Number of next fires to show.
        #[arg(long, default_value_t = FIRES)]
        fires: usize,
    },
    /// Remove a schedule with its waiting tasks. Running tasks go on.
    Remove {
        /// Name of the schedule.
        name: Name,
    },
    /// Switch a schedule off. Its waiting tasks are recorded as skipped.
    Pause {
        /// Name of the schedule.
        name: Name,
    },
    /// Switch a schedule on.
    Resume {
        /// Name of the schedule.
        name: Name,
    },
    /// Fire a schedule now, even if it is switched off.
    RunNow {
        /// Name of the schedule.
        name: Name,
    },
    /// List tasks: open tasks first, then ended ones, the newest first.
    Tasks {
        /// List only tasks of this agent.
        #[arg(long)]
        agent: Option<Name>,
        /// List only tasks with this status.
        #[arg(long)]
        status: Option<StatusArg>,
        /// The most entries to list.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
        /// The number of entries to skip.
        #[arg(long, default_value_t = 0)]
        offset: usize,
        /// Show this task in full, with the result of each attempt.
        #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "status", "limit", "offset"])]
        task: Option<String>,
    },
    /// Retry a failed task, however often it was tried before.
    Retry {
        /// Id of the task.
        task: String,
    },
    /// List the skipped fires of a schedule, with the reasons.
    Skipped {
        /// Name of the schedule.
        name: Name,
        /// The most entries to list.
        #[arg(long, default_value_t = PAGE)]
        limit: usize,
    },
    /// Show the state of the scheduler; with --at-once, set how many tasks may run at once.
    Status {
        /// The most tasks that run at once from now on. Default 5.
        #[arg(long, value_name = "NUMBER")]
        at_once: Option<u32>,
    },
    /// Run due schedules in the foreground, until Ctrl-C or for a given time. The process must own the data directory,
    /// as a server does.
    Work {
        /// End after this time, for example 60s or 2h. Default: at Ctrl-C.
        #[arg(long = "for", value_name = "TIME", value_parser = time)]
        time: Option<Duration>,
    },
}

#[derive(Args, Debug)]
pub struct AddArgs {
    /// Name of the schedule.
    name: Name,
    /// The agent to run.
    #[arg(long)]
    agent: Name,
    /// Run at these times: minute, hour, day, month, weekday, with seconds in front if there are six fields, or
    /// `@hourly` and the like.
    #[arg(long, value_name = "EXPRESSION", group = "trigger")]
    cron: Option<String>,
    /// With --cron: the IANA time zone of the times, such as `Europe/Berlin`. Default UTC.
    #[arg(long, value_name = "ZONE", requires = "cron")]
    timezone: Option<String>,
    /// Run in this interval, for example 10m, 90s or 2h. Default, without another trigger: 60m.
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = time)]
    every: Option<Duration>,
    /// Run after a task of this agent has ended.
    #[arg(long, value_name = "AGENT", group = "trigger")]
    after: Option<Name>,
    /// With --after: the ends that count.
    #[arg(long, value_enum, requires = "after", default_value = "success")]
    when: WhenArg,
    /// Add the schedule switched off.
    #[arg(long)]
    paused: bool,
    /// Allow the agent's tasks to overlap. Default: a second task waits.
    #[arg(long)]
    overlap: bool,
    /// The policy for fires that were missed while no scheduler worked.
    #[arg(long, value_enum, default_value = "once")]
    missed: MissedArg,
    /// With --missed all: the most missed fires to run.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    missed_max: u32,
    /// Delay each fire by a random time up to this, in milliseconds; at most an hour.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    jitter_ms: u64,
    /// The most automatic retries of a failed task; at most 100.
    #[arg(long, value_name = "NUMBER", default_value_t = RETRIES_MAX)]
    retries_max: u32,
    /// Wait so long before the first retry, in milliseconds; at most a day. Default 2000.
    #[arg(long, value_name = "NUMBER")]
    backoff_ms_first: Option<u64>,
    /// Wait at most so long before a retry, in milliseconds; at most a day. Default 600000.
    #[arg(long, value_name = "NUMBER")]
    backoff_ms_max: Option<u64>,
    /// Make each wait so many times as long as the one before; at most 10. Default 2.
    #[arg(long, value_name = "NUMBER")]
    backoff_factor: Option<u32>,
    /// The most times in a row that the host may end while a task runs, without progress between them; at most 100.
    /// They cost no retries.
    #[arg(long, value_name = "NUMBER", default_value_t = INTERRUPTIONS_MAX)]
    interruptions_max: u32,
    /// The most waiting tasks of the schedule; a fire beyond them is skipped. At most 10000.
    #[arg(long, value_name = "NUMBER", default_value_t = QUEUE_MAX)]
    queue_max: u32,
    /// Replace a schedule with this name.
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WhenArg {
    /// The task completed.
    Success,
    /// The task failed, and is not retried.
    Failure,
    /// The task completed or failed.
    Always,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MissedArg {
    /// Only record them.
    Skip,
    /// Run the last one.
    Once,
    /// Run the last ones, one after the other.
    All,
}

/// Parses a time such as 90s.
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
        let usual = RetryBackoff::default();
        let ms_first = self.backoff_ms_first.unwrap_or(usual.ms_first);
        let backoff = RetryBackoff {
            ms_first,
            ms_max: self.backoff_ms_max.unwrap_or_else(|| usual.ms_max.max(ms_first)),
            factor: self.backoff_factor.unwrap_or(usual.factor),
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
            backoff,
            interruptions_max: self.interruptions_max,
            queue_max: self.queue_max,
            ..Schedule::new(self.name, self.agent, trigger)
        })
    }
}

/// Runs the command.
pub async fn run(context: &Context, command: ScheduleCommand) -> fault::Result<Exit> {
    match command {
        ScheduleCommand::Add(args) => {
            let replace = args.replace;
            let request = PutSchedule { schedule: args.schedule()?, replace };
            context.client.keep();
            show::schedule(context, &context.put_schedule(request).await?, "is there")?;
            hint(context).await
        }
        ScheduleCommand::List { limit, offset } => {
            show::schedules(context, &context.schedules(ListSchedules { limit, offset }).await?)
        }
        ScheduleCommand::Show { name, fires } => {
            show::schedule_whole(context, &context.schedule(ShowSchedule { name, fires }).await?)
        }
        ScheduleCommand::Remove { name } => {
            show::ended(context, &context.remove_schedule(RemoveSchedule { name }).await?, "removed")
        }
        ScheduleCommand::Pause { name } => {
            let request = EnableSchedule { name, enabled: false };
            show::ended(context, &context.enable_schedule(request).await?, "switched off")
        }
        ScheduleCommand::Resume { name } => {
            let request = EnableSchedule { name, enabled: true };
            show::schedule(context, &context.enable_schedule(request).await?, "switched on")
        }
        ScheduleCommand::RunNow { name } => {
            context.client.keep();
            show::task(context, &context.fire_schedule(FireSchedule { name }).await?)?;
            hint(context).await
        }
        ScheduleCommand::Tasks { task: Some(id), .. } => {
            show::task_whole(context, &context.task(ShowTask { id }).await?)
        }
        ScheduleCommand::Tasks { agent, status, limit, offset, task: None } => {
            let status = status.map(Into::into);
            tasks(context, ListTasks { agent, status, limit, offset }).await
        }
        ScheduleCommand::Retry { task } => {
            context.client.keep();
            show::task(context, &context.retry_task(RetryTask { id: task }).await?)?;
            hint(context).await
        }
        ScheduleCommand::Skipped { name, limit } => {
            show::skipped(context, &context.skipped_fires(ListSkipped { name, limit }).await?)
        }
        ScheduleCommand::Status { at_once: Some(max) } => {
            show::status(context, &context.set_concurrent_max(SetConcurrentMax { max }).await?)
        }
        ScheduleCommand::Status { at_once: None } => {
            show::status(context, &context.scheduler_status(ShowScheduler {}).await?)
        }
        ScheduleCommand::Work { time } => owner::work::run(context, time).await,
    }
}

/// Lists tasks.
async fn tasks(context: &Context, request: ListTasks) -> fault::Result<Exit> {
    show::tasks(context, &context.tasks(request).await?)
}

/// Lists the tasks of one agent.
pub async fn tasks_of_agent(context: &Context, request: ListTasks) -> fault::Result<Exit> {
    show::tasks_of_agent(context, &context.tasks(request).await?)
}

/// Tells that no scheduler works, if that is so.
async fn hint(context: &Context) -> fault::Result<Exit> {
    if !context.json && !context.scheduler_status(ShowScheduler {}).await?.working {
        errln!("longhaul: no scheduler works now, and what is due waits for one: `longhaul schedule work`");
    }
    Ok(Exit::Done)
}
