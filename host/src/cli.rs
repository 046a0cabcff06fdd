//! The command line: reads arguments, asks the service, prints answers. It takes no decision.

#[macro_use]
pub mod terminal;

mod agent;
mod answer;
mod approvals;
mod ask;
mod audit;
mod backup;
mod check;
mod checkpoint;
mod children;
mod conform;
mod decisions;
mod detect;
mod diff;
mod do_prompt;
mod doctor;
mod exec;
mod features;
mod follow;
mod gc;
mod given;
mod graph;
mod log;
mod mcp;
mod memory;
mod merge;
mod models;
mod owner;
mod plugin;
mod progress;
mod project;
mod prompt;
mod ps;
pub(crate) mod report;
mod revert;
mod runtimes;
mod schedule;
mod secrets;
mod serve;
mod show;
mod speech;
mod task_status;
mod token;
mod trajectories;
mod trust;
mod words;

use crate::client::wire::OwnerGone;
use crate::client::{Door, which};
use crate::home::Home;
use crate::logs::{self, LogSettings};
use crate::service::{Answer, Request, SecurityAsk, SecurityDone, Which};
use crate::wiring::{self, variable};
use clap::{Args, Parser, Subcommand};
use follow::Form;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_models::set::ModelOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs long-lived AI agents as sandboxed WebAssembly components, and survives being killed.
///
/// Exit codes: 0 done; 1 an error, which says what to do; 2 wrong arguments; 3 the run ended and some
/// features do not pass, or steps of a graph failed; 4 the run is paused; 5 the run waits for an answer.
#[derive(Parser, Debug)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub struct Cli {
    /// The data directory. Default: `longhaul` in the user's data directory.
    #[arg(long, global = true, env = crate::home::VARIABLE, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The project. Default: the current directory.
    #[arg(long, global = true, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Print JSON: one value, or one a line while a run goes on.
    #[arg(long, global = true)]
    json: bool,
    /// Agree to what longhaul.toml asks for, without a question: for scripts.
    #[arg(long, global = true)]
    trust: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make an existing directory a project: writes longhaul.toml and GOAL.md, and makes a git repository, where
    /// they are missing.
    Init {
        /// The project's name. Default: the directory's.
        #[arg(long)]
        name: Option<String>,
    },
    /// Make a new project with its own git repository.
    New {
        /// The directory to make.
        directory: PathBuf,
        /// The project's name. Default: the directory's.
        #[arg(long)]
        name: Option<String>,
    },
    /// List every project with its status: initializing, active, paused, completed or abandoned.
    Projects,
    /// Say which project a checkout is, by the id that this data directory gave it.
    Project {
        #[command(subcommand)]
        command: project::Command,
    },
    /// Show what longhaul.toml asks for and agree to it; keys of signers. Without a word: asks, or with --trust agrees.
    Trust {
        #[command(subcommand)]
        command: Option<trust::Command>,
    },
    /// Show grants that no run used, and what each run could do and did; or the audit log, and whether it is whole.
    Audit {
        #[command(subcommand)]
        command: Option<audit::Command>,
    },
    /// Turn the goal into features and work on them until each passes or its rounds are used up.
    Run {
        /// Follow this plan, JSON with `tasks`, instead of asking the planner.
        #[arg(long, value_name = "FILE")]
        plan: Option<PathBuf>,
        /// Show the features and what they may cost, and pause before any work on them.
        #[arg(long)]
        plan_only: bool,
        /// Pause after so many sessions: attempts at a feature.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "plan_only")]
        sessions: Option<u32>,
        /// Start anew although the project was given up.
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        models: ModelArgs,
        #[command(flatten)]
        form: FormArg,
    },
    /// Look for all that would stop a run before a model is asked: what longhaul.toml and the goal say, and what of it is
    /// there. One line a finding, and 1 as the exit code; otherwise what would run.
    Check(check::CheckArgs),
    /// Ask something: one agent answers, or a routed one, or the tasks of a plan do. Needs no git repository. The answer
    /// goes to standard output, everything else to standard error.
    Ask(ask::AskArgs),
    /// Correct what is worked on: the agent hears it at its next step.
    Steer(ask::SteerArgs),
    /// Stop a task of a run, or the run; `resume` goes on with it.
    Cancel(ask::CancelArgs),
    /// Go on with a run that was paused, killed, or ended with features that do not pass.
    Resume {
        #[command(flatten)]
        run: RunArg,
        /// Try features again whose rounds were used up.
        #[arg(long)]
        retry_failing: bool,
        /// Read the goal's file again before: features that it writes are added, changed and dropped; what passes stays.
        #[arg(long)]
        reread_goal: bool,
        /// Pause again after so many sessions: attempts at a feature. One that was held back is the first. Without it a
        /// run that broke off goes as far as it was asked to, and one that paused to its end.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        sessions: Option<u32>,
        #[command(flatten)]
        form: FormArg,
    },
    /// Go back to an earlier commit of a run: its branch, its tree, and what passed since. What is left behind
    /// stays reachable.
    Revert(revert::RevertArgs),
    /// List the commits of a run, newest first.
    Log(log::LogArgs),
    /// Show what a run changed, or the commit of one of its features.
    Diff(diff::DiffArgs),
    /// Merge the commits of a run into the branch that is checked out: fast forward, or with a commit of yours. Refused
    /// where files have changes that are not committed, and where both changed the same lines.
    Merge(merge::MergeArgs),
    /// Watch a run that another terminal started. Ctrl-C only stops watching.
    Attach {
        #[command(flatten)]
        run: RunArg,
        /// Show events after this number.
        #[arg(long, default_value_t = 0)]
        after: u64,
        /// Show events from this number on, as one that reconnects.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "after")]
        from: Option<u64>,
        #[command(flatten)]
        form: FormArg,
    },
    /// Stop the work of a run; `resume` goes on with it.
    Pause {
        #[command(flatten)]
        run: RunArg,
    },
    /// Give a run up.
    Abandon {
        #[command(flatten)]
        run: RunArg,
        /// Why, for the record.
        #[arg(long, default_value = "given up by the operator")]
        reason: String,
    },
    /// Answer the question that a run, or a feature, waits with.
    Answer(answer::AnswerArgs),
    /// List, show and answer what agents must not do without being asked about, and revoke rules that came of it.
    Approvals(approvals::ApprovalsArgs),
    /// Show a run and its features.
    Status {
        #[command(flatten)]
        run: RunArg,
    },
    /// List every run.
    Runs,
    /// List what runs, and what it uses: the machine, runs, children, instances of components.
    Ps(ps::PsArgs),
    /// The same again and again, until `q` or Ctrl-C.
    Top(ps::TopArgs),
    /// Sum all runs up, as text for Prometheus.
    Metrics,
    /// Report a run: features, commits, what was used and by whom, caps, and what happened when.
    Report(report::ReportArgs),
    /// List the invocations of a run, or show the journal of one.
    Journal {
        #[command(flatten)]
        run: RunArg,
        /// The invocation, for example `f-sum/1/generate`.
        #[arg(long, short)]
        invocation: Option<String>,
        /// Show entries after this number.
        #[arg(long, default_value_t = 0)]
        after: u32,
    },
    /// Run finished invocations again from their journals, execute nothing, and compare.
    Replay {
        #[command(flatten)]
        run: RunArg,
        /// Only this invocation.
        #[arg(long, short)]
        invocation: Option<String>,
        /// Use this component in place of the one that the run pinned.
        #[arg(long, value_name = "FILE")]
        with: Option<PathBuf>,
    },
    /// List and change the features of a run, also while it goes on.
    Features {
        #[command(flatten)]
        run: RunArg,
        /// Show what agents proposed instead.
        #[arg(long)]
        proposals: bool,
        /// Show what decides each criterion: the source of its check, its command, or the evaluator.
        #[arg(long)]
        checks: bool,
        #[command(subcommand)]
        command: Option<features::Command>,
    },
    /// Look at the decisions of a project, and say what came of them.
    Decisions {
        #[command(flatten)]
        run: RunArg,
        #[command(flatten)]
        list: decisions::ListArgs,
        #[command(subcommand)]
        command: Option<decisions::Command>,
    },
    /// Runs as they stand: list where they can be gone on from, export them, take them up elsewhere.
    Checkpoint {
        #[command(subcommand)]
        command: checkpoint::Command,
    },
    /// Remove what nobody needs: what is over, trees of nobody, content that nothing names, and old runs if you say so.
    Gc(gc::GcArgs),
    /// Write the data directory into one file, also while it is in use.
    Backup(backup::BackupArgs),
    /// Make a data directory of such a file, in a place that is empty.
    Restore(backup::RestoreArgs),
    /// Code in steps that build on each other: change one, and only what it touches runs again.
    Graph {
        #[command(subcommand)]
        command: graph::Command,
    },
    /// Code that is kept under a name, to be run now or on a schedule, and what its runs hand on.
    Agent {
        #[command(subcommand)]
        command: agent::Command,
    },
    /// Run agents at times, in intervals and after each other; look at what became of it.
    Schedule {
        #[command(subcommand)]
        command: schedule::Command,
    },
    /// Look at what a project remembers of its runs: facts, episodes, conversations; export it, or forget it.
    Memory {
        #[command(subcommand)]
        command: memory::Command,
    },
    /// What agents were told, said and did: look at it, rate it, correct it, export it for training.
    Trajectories {
        #[command(subcommand)]
        command: trajectories::Command,
    },
    /// Make, build and look at plugins.
    Plugin {
        #[command(subcommand)]
        command: plugin::Command,
    },
    /// The interpreters for generated code: Python and JavaScript as components.
    Runtimes {
        #[command(subcommand)]
        command: runtimes::Command,
    },
    /// Own the data directory: serve the HTTP API, the web page and all other commands, and go on with runs that were
    /// broken off.
    Serve(serve::ServeArgs),
    /// Say who is let in over HTTP.
    Token {
        #[command(subcommand)]
        command: token::Command,
    },
    /// Be an MCP server: tool plugins, and the verbs of the harness.
    Mcp(mcp::McpArgs),
    /// Keep what tools authenticate with; agents and tools never see the values.
    Secrets {
        #[command(subcommand)]
        command: secrets::Command,
    },
    /// Hold the contract's rules against a component: one line a rule, PASS, FAIL or SKIP with the reason.
    Conform(conform::ConformArgs),
    /// Look at models, test whether they work, and fetch a small one.
    Models {
        #[command(subcommand)]
        command: models::Command,
    },
    /// Run Python, JavaScript or a WASI program that nobody trusts; it sees nothing but what you name.
    Exec(exec::ExecArgs),
    /// Look for what a run would need: memory, disks, a sandbox, a store that is whole, plugins, keys, model servers.
    ///
    /// With `--project`, each tool chain that the project uses is tried inside of the sandbox.
    Doctor(doctor::DoctorArgs),
    /// Say what kind of work a prompt asks for, and whether it is worth a project; no model is asked.
    Detect {
        /// The prompt; `-` reads it from standard input.
        prompt: String,
    },
    /// Make a project of a prompt and run it, where it is worth one and that is switched on; no model is asked
    /// whether it is.
    Do(do_prompt::DoArgs),
    #[command(hide = true)]
    CompileChild(children::CompileArgs),
    #[command(hide = true)]
    CheckChild(children::CheckArgs),
    #[command(hide = true)]
    BrowserChild(children::BrowserArgs),
    #[command(hide = true)]
    McpChild(children::McpArgs),
    #[command(hide = true)]
    KeepChild(children::KeepArgs),
    #[command(hide = true)]
    BombChild(children::BombArgs),
    #[command(hide = true)]
    ModelChild(children::ModelArgs),
}

impl Command {
    /// Whether the powers of longhaul.toml are used by it.
    fn works_with_the_file(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::Resume { .. } | Self::Ask(_) | Self::Serve(_))
    }

    fn prints_events(&self) -> bool {
        match self {
            Self::Run { form, .. } | Self::Resume { form, .. } | Self::Attach { form, .. } => form.events,
            _ => false,
        }
    }
}

#[derive(Args, Debug)]
struct RunArg {
    /// The run, or the beginning of its name. Default: the newest of this project.
    #[arg(id = "run", value_name = "RUN")]
    named: Option<String>,
}

#[derive(Args, Debug)]
struct FormArg {
    /// Print the stream of the run as JSON lines: every event with its number, and what models say as they say it.
    #[arg(long)]
    events: bool,
}

impl FormArg {
    fn form(&self, context: &Context) -> Form {
        match (self.events, context.json) {
            (true, _) => Form::Stream,
            (false, true) => Form::Json,
            (false, false) => Form::Words,
        }
    }
}

#[derive(Args, Debug)]
struct ModelArgs {
    /// Answer every model from this recording; nothing is sent anywhere.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    recorded: Option<PathBuf>,
    /// Write what the models reply to this recording.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl ModelArgs {
    fn options(self) -> ModelOptions {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        ModelOptions { replay_from: self.recorded.map(absolute), record_to: self.record.map(absolute) }
    }
}

/// What the process says at its end; see the help of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything is done.
    Done,
    /// An error.
    Error,
    /// Features do not pass.
    Incomplete,
    /// The run is paused.
    Paused,
    /// The run waits for an answer.
    Waiting,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Incomplete => 3,
            Self::Paused => 4,
            Self::Waiting => 5,
        }
    }
}

/// Carries a command out.
///
/// # Errors
/// With a text that says what to do.
pub fn main(cli: Cli) -> fault::Result<Exit> {
    let command = match children::run(cli.command) {
        Ok(exit) => return Ok(exit),
        Err(command) => command,
    };
    logs::start(&LogSettings::from_environment(&variable)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // A guest that yields counts as one poll; without this, timers and sockets wait for 61 of them.
        .event_interval(1)
        .enable_all()
        .build()?;
    // A stream is for programs, too: nothing else is printed between its lines.
    let json = cli.json || command.prints_events();
    let (project, names_project) = (cli.project.as_deref().unwrap_or(Path::new(".")), cli.project.is_some());
    let context =
        Context { home: Home::find(cli.home)?, project: whole(project)?, names_project, json, trust: cli.trust };
    let exit = runtime.block_on(dispatch(*command, &context));
    // A guest that does not yield must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    exit
}

/// A project's directory as every process understands it: whoever owns the data directory stands somewhere else. One
/// that is not there yet, which a command may be about to make, has a whole path all the same.
fn whole(project: &Path) -> fault::Result<PathBuf> {
    project
        .canonicalize()
        .or_else(|_| std::path::absolute(project))
        .with_context(|| format!("`{}` is no path", project.display()))
}

/// Owners of a data directory that may stop one after the other while a command asks.
const OWNERS_MAX: u32 = 10;

/// How long an owner that has just stopped takes to be gone.
const OWNER_PAUSE: Duration = Duration::from_millis(50);

/// What every command needs.
struct Context {
    home: Home,
    /// The whole path, see [`whole`].
    project: PathBuf,
    /// Whether the command line has `--project`.
    names_project: bool,
    json: bool,
    /// Whether longhaul.toml is agreed to without a question.
    trust: bool,
}

impl Context {
    async fn security(&self, wanted: SecurityAsk) -> fault::Result<SecurityDone> {
        let Answer::Security { done } = self.ask(Request::Security { wanted }).await? else {
            bail!("the service answered something else")
        };
        Ok(*done)
    }

    async fn door(&self) -> fault::Result<Door> {
        wiring::open(&self.home, Some(&self.project)).await
    }

    /// Asks for something that may be asked twice: an owner that stops meanwhile is succeeded.
    async fn ask(&self, request: Request) -> fault::Result<Answer> {
        let mut tries = OWNERS_MAX;
        loop {
            let door = self.door().await?;
            let answered = door.ask(request.clone()).await;
            owner::hand_over(door).await;
            tries -= 1;
            match answered {
                Err(error) if error.is::<OwnerGone>() && tries > 0 => tokio::time::sleep(OWNER_PAUSE).await,
                other => return other,
            }
        }
    }

    /// Asks for something that would be done twice if it was asked twice.
    async fn ask_once(&self, request: Request) -> fault::Result<Answer> {
        let door = self.door().await?;
        let answered = door.ask(request).await;
        owner::hand_over(door).await;
        answered
    }

    fn which(&self, run: RunArg) -> Which {
        which(run.named, &self.project)
    }
}

async fn dispatch(command: Command, context: &Context) -> fault::Result<Exit> {
    if command.works_with_the_file() {
        trust::ask_first(context, context.trust).await?;
    }
    match command {
        Command::Init { name } => project::init(context, name).await,
        Command::New { directory, name } => project::new(context, &directory, name).await,
        Command::Projects => project::list(context).await,
        Command::Project { command } => project::run(context, command).await,
        Command::Trust { command } => trust::run(context, command, context.trust).await,
        Command::Audit { command } => audit::run(context, command).await,
        Command::Run { plan, plan_only, sessions, again, models, form } => {
            let form = form.form(context);
            let directory = context.project.clone();
            let models = models.options();
            let plan = plan.as_deref().map(given::plan).transpose()?;
            follow::start(context, Request::Run { directory, models, plan, plan_only, sessions, again }, form).await
        }
        Command::Ask(args) => ask::ask(context, args).await,
        Command::Steer(args) => ask::steer(context, args).await,
        Command::Cancel(args) => ask::cancel(context, args).await,
        Command::Check(args) => check::run(context, args).await,
        Command::Resume { run, retry_failing, reread_goal, sessions, form } => {
            let (run, form) = (context.which(run), form.form(context));
            if reread_goal {
                check::reread(context, run.clone(), form.is_for_programs()).await?;
            }
            follow::start(context, Request::Resume { run, retry_failing, sessions }, form).await
        }
        Command::Revert(args) => revert::run(context, args).await,
        Command::Log(args) => log::run(context, args).await,
        Command::Diff(args) => diff::run(context, args).await,
        Command::Merge(args) => merge::run(context, args).await,
        Command::Attach { run, after, from, form } => {
            let after = from.map_or(after, |from| from - 1);
            follow::attach(context, context.which(run), after, form.form(context)).await
        }
        Command::Pause { run } => order(context, Request::Pause { run: context.which(run) }, "paused").await,
        Command::Abandon { run, reason } => {
            order(context, Request::Abandon { run: context.which(run), reason }, "abandoned").await
        }
        Command::Answer(args) => answer::run(context, args).await,
        Command::Approvals(args) => approvals::run(context, args).await,
        Command::Status { run } => show::status(context, context.which(run)).await,
        Command::Runs => show::runs(context).await,
        Command::Ps(args) => ps::ps(context, args).await,
        Command::Top(args) => ps::top(context, args).await,
        Command::Metrics => show::metrics(context).await,
        Command::Report(args) => report::run(context, args).await,
        Command::Journal { run, invocation, after } => {
            show::journal(context, context.which(run), invocation, after).await
        }
        Command::Replay { run, invocation, with } => show::replay(context, context.which(run), invocation, with).await,
        Command::Features { run, proposals: true, command: None, .. } => {
            features::proposals::list(context, context.which(run)).await
        }
        Command::Features { run, checks: true, command: None, .. } => {
            features::list_checks(context, context.which(run)).await
        }
        Command::Features { run, command, .. } => features::run(context, context.which(run), command).await,
        Command::Decisions { run, list, command } => decisions::run(context, context.which(run), list, command).await,
        Command::Checkpoint { command } => checkpoint::run(context, command).await,
        Command::Gc(args) => gc::run(context, args).await,
        Command::Backup(args) => backup::backup(context, args).await,
        Command::Restore(args) => backup::restore(context, args).await,
        Command::Graph { command } => graph::run(context, command).await,
        Command::Agent { command } => agent::run(context, command).await,
        Command::Schedule { command } => schedule::run(context, command).await,
        Command::Memory { command } => memory::run(context, command).await,
        Command::Trajectories { command } => trajectories::run(context, command).await,
        Command::Plugin { command } => plugin::run(context, command).await,
        Command::Conform(args) => conform::run(context, args).await,
        Command::Serve(args) => serve::run(context, args).await,
        Command::Token { command } => token::run(context, command).await,
        Command::Mcp(args) => mcp::run(context, args).await,
        Command::Secrets { command } => secrets::run(context, command).await,
        Command::Runtimes { command } => runtimes::run(context, command),
        Command::Models { command } => models::run(context, command).await,
        Command::Exec(args) => exec::run(context, args).await,
        Command::Doctor(args) => doctor::run(context, args).await,
        Command::Detect { prompt } => detect::run(context, prompt),
        Command::Do(args) => do_prompt::run(context, args).await,
        Command::CompileChild(_)
        | Command::CheckChild(_)
        | Command::BrowserChild(_)
        | Command::McpChild(_)
        | Command::KeepChild(_)
        | Command::BombChild(_)
        | Command::ModelChild(_) => Ok(Exit::Error),
    }
}

/// An order that is done when it is answered.
async fn order(context: &Context, request: Request, done: &str) -> fault::Result<Exit> {
    words::print_answer(context.json, &context.ask(request).await?, done)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README used to name a way that was refused.
    #[test]
    fn a_question_to_the_decisions_needs_no_word_before_it() {
        for words in
            [&["decisions", "--query", "why"][..], &["decisions", "r-1", "--limit", "3"], &["decisions", "list"]]
        {
            let parsed = Cli::try_parse_from([&["longhaul"], words].concat());
            assert!(parsed.is_ok_and(|cli| matches!(cli.command, Command::Decisions { .. })), "{words:?}");
        }
    }
}
