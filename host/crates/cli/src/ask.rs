//! `longhaul ask`, and the commands for work in progress: `steer` and `cancel`.

use super::arguments::{FormArg, ModelArgs, RunArg};
use super::context::Context;
use super::exit::Exit;
use super::follow::{self, StartRequest};
use super::grant_args;
use super::order::print_done;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{AskRequest, RunRef};
use longhaul_api::runs::{CancelTask, PauseRun, SteerRun};
use longhaul_core::fault;
use longhaul_harness::Dispatch;
use std::io::Read as _;
use std::path::PathBuf;

/// Longest goal on standard input, in bytes.
const GOAL_BYTES_MAX: u64 = 1 << 20;

#[derive(Args, Debug)]
pub struct AskArgs {
    /// The question or goal; `-` reads it from standard input.
    goal: String,
    /// Have this agent answer.
    #[arg(long, value_name = "NAME", group = "who")]
    agent: Option<String>,
    /// Have one agent answer that a model chooses.
    #[arg(long, group = "who")]
    route: bool,
    /// Have a planner split the goal into tasks and sum up their answers.
    #[arg(long, group = "who")]
    plan: bool,
    /// Do the tasks of this file, JSON with `tasks`, and have the planner sum up their answers.
    #[arg(long, value_name = "FILE", group = "who")]
    tasks: Option<PathBuf>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    form: FormArg,
}

#[derive(Args, Debug)]
pub struct SteerArgs {
    /// The run, or RUN:TASK for one task or feature of it. `:TASK` names a task of the newest run of this project.
    #[arg(value_name = "RUN[:TASK]")]
    to: String,
    /// The text that the agent receives at its next step.
    text: String,
}

#[derive(Args, Debug)]
pub struct CancelArgs {
    /// The run to pause, or RUN:TASK for one task or feature of it.
    #[arg(value_name = "RUN[:TASK]")]
    what: String,
}

/// `longhaul ask`.
pub(super) async fn ask(context: &Context, args: AskArgs) -> fault::Result<Exit> {
    let plan = args.tasks.as_deref().map(grant_args::plan).transpose()?;
    let dispatch = match (args.agent, args.route, args.plan || plan.is_some()) {
        (Some(agent), ..) => Dispatch::Agent(agent),
        (None, true, _) => Dispatch::Route,
        (None, false, true) => Dispatch::Plan,
        (None, false, false) => Dispatch::Auto,
    };
    let goal = if args.goal == "-" { read_goal()? } else { args.goal };
    let directory = context.project.clone();
    let models = args.models.options(|path| context.whole(path));
    let question = AskRequest { directory, goal, dispatch, plan, models };
    follow::start(context, StartRequest::Ask(question), args.form.form(context.json)).await
}

fn read_goal() -> fault::Result<String> {
    let mut goal = String::new();
    // One byte more than the limit, so that a longer goal is refused and not cut.
    std::io::stdin().take(GOAL_BYTES_MAX + 1).read_to_string(&mut goal)?;
    Ok(goal)
}

/// `longhaul steer`.
pub(super) async fn steer(context: &Context, args: SteerArgs) -> fault::Result<Exit> {
    let (run, task) = named(context, &args.to);
    let affected = context.steer_run(SteerRun { run, task, text: args.text }).await?;
    print_done(context, &affected, "gets the text at its next step")
}

/// `longhaul cancel`.
pub(super) async fn cancel(context: &Context, args: CancelArgs) -> fault::Result<Exit> {
    match named(context, &args.what) {
        (run, None) => {
            print_done(context, &context.pause_run(PauseRun { run }).await?, "paused; go on with `longhaul resume`")
        }
        (run, Some(task)) => print_done(
            context,
            &context.cancel_task(CancelTask { run, task }).await?,
            "stopped; `longhaul resume` goes on with a task where it was, and begins a feature anew",
        ),
    }
}

/// The run and the task that `RUN:TASK` names.
fn named(context: &Context, text: &str) -> (RunRef, Option<String>) {
    let (run, task) = match text.split_once(':') {
        Some((run, task)) => (run, Some(task.to_owned()).filter(|task| !task.is_empty())),
        None => (text, None),
    };
    let run = RunArg { named: Some(run.to_owned()).filter(|run| !run.is_empty()) };
    (context.which(run), task)
}
