//! The command line: reads arguments, asks the service and prints its answers.
//!
//! It makes no decision about a run, and knows no store, no service and no server: the program does what needs one, as
//! an [`Owner`].

// What is printed goes through `terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
pub mod terminal;

mod agent;
mod answer;
mod approvals;
mod arguments;
mod ask;
mod audit;
mod backup;
pub mod bombs;
mod check;
mod checkpoint;
mod children;
mod code_file;
mod command_client;
mod confirm;
mod conform;
mod context;
mod decisions;
mod detect;
mod diff;
mod do_prompt;
mod doctor;
mod exec;
mod exit;
mod features;
mod follow;
mod gc;
mod grant_args;
mod graph;
mod help;
mod log;
mod machine;
mod manual;
mod mcp;
mod memory;
mod merge;
mod models;
mod onboard;
mod order;
mod owner;
mod plugin;
mod progress;
mod project;
mod prompt;
mod ps;
mod report;
mod revert;
mod runtimes;
mod schedule;
mod schema;
mod secrets;
mod serve;
mod show;
mod skill;
mod speech;
mod task_status;
mod token;
mod trajectories;
mod trust;
mod welcome;

use arguments::{FormArg, ModelArgs, RunArg};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use command_client::CommandClient;
use context::Context;
use follow::StartRequest;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{AbandonRun, BeginRun, PauseRun, ResumeRun};
use longhaul_core::fault::{self, Context as _};
use longhaul_home::logs::{self, LogSettings};
use longhaul_home::{Home, variable};
use order::print_done;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use exit::Exit;
pub use owner::{Owner, RunningScheduler, RunningServer, ServerStart};

/// Runs long-lived AI agents as sandboxed components, and survives being killed.
///
/// Exit codes: 0 done; 1 an error, which says what to do; 2 wrong arguments; 3 the run ended and some
/// features do not pass, or steps of a graph failed; 4 the run is paused; 5 the run waits for an answer.
#[derive(Parser, Debug)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub struct Cli {
    /// The data directory. Default: `longhaul` in the user's data directory.
    #[arg(long, global = true, env = longhaul_home::VARIABLE, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The project. Default: the current directory.
    #[arg(long, global = true, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Print JSON: one value, or one value a line while a run goes on.
    #[arg(long, global = true)]
    json: bool,
    /// Agree to the permissions that longhaul.toml asks for, without a question. For scripts.
    #[arg(long, global = true)]
    trust: bool,
    // None: the person at the terminal is told what there is to do.
    #[command(subcommand)]
    command: Option<Subcommands>,
}

// No doc comment here: clap would take it for the description of the program.
#[derive(Subcommand, Debug)]
enum Subcommands {
    #[command(flatten)]
    Command(Box<Command>),
    #[command(flatten)]
    Manual(manual::ManualCommand),
    #[command(flatten)]
    Child(children::ChildCommand),
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Try Longhaul with a demo project that is run, killed and resumed. Asks which model writes it; nothing costs money
    /// unless a provider with a key is chosen.
    Onboard(onboard::OnboardArgs),
    /// Make an existing directory a project: write longhaul.toml and GOAL.md, and make a git repository, unless they
    /// exist.
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
    /// Show the id of a project in this data directory, or link a checkout to another project.
    Project {
        #[command(subcommand)]
        command: project::ProjectCommand,
    },
    /// Show the permissions that longhaul.toml asks for and agree to them; manage the keys of signers. Without a
    /// subcommand: ask, or agree with --trust.
    Trust {
        #[command(subcommand)]
        command: Option<trust::TrustCommand>,
    },
    /// Show the grants that each run used, and grants that no run used; show and verify the audit log.
    Audit {
        #[command(subcommand)]
        command: Option<audit::AuditCommand>,
    },
    /// Work on the goal, feature by feature, until each feature passes or its rounds are used up. The first run plans
    /// the features.
    Run {
        /// Follow this plan, JSON with `tasks`, instead of asking the planner.
        #[arg(long, value_name = "FILE")]
        plan: Option<PathBuf>,
        /// Show the features and the most that they may cost, and pause before any work on them.
        #[arg(long)]
        plan_only: bool,
        /// Pause after this number of sessions. A session is one attempt at a feature.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "plan_only")]
        sessions: Option<u32>,
        /// Start anew although the project was abandoned.
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        models: ModelArgs,
        #[command(flatten)]
        form: FormArg,
    },
    /// Check longhaul.toml, the goal and this machine for everything that would stop a run. No model is asked. Prints
    /// one line a finding and ends with exit code 1; without a finding it prints an overview of the run.
    ///
    /// A project that has no GOAL.md, and names no other goal, is checked for `longhaul ask`, which needs neither goal,
    /// checks, evaluator nor repository. What a run would need beside is listed, and is no finding.
    Check(check::CheckArgs),
    /// Ask a question: one agent answers, or a routed agent, or the tasks of a plan. Needs no git repository. The
    /// answer goes to standard output, everything else to standard error.
    Ask(ask::AskArgs),
    /// Correct an agent at work: it receives the text at its next step.
    Steer(ask::SteerArgs),
    /// Stop a task of a run, or the whole run. `resume` continues it.
    Cancel(ask::CancelArgs),
    /// Continue a run that was paused or killed, or that ended with features that do not pass.
    Resume {
        #[command(flatten)]
        run: RunArg,
        /// Retry features whose rounds are used up.
        #[arg(long)]
        retry_failing: bool,
        /// Read the goal file again first, and add, change and drop features as it says. Features that pass stay.
        #[arg(long)]
        reread_goal: bool,
        /// Pause again after this number of sessions, attempts at a feature. A session that was held back counts as the
        /// first. Default: an interrupted run keeps its earlier limit, and a paused run goes on to its end.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        sessions: Option<u32>,
        #[command(flatten)]
        form: FormArg,
    },
    /// Reset a run to one of its earlier commits: its branch, its tree and the status of its features. Later commits
    /// stay reachable.
    Revert(revert::RevertArgs),
    /// List the commits of a run, newest first.
    Log(log::LogArgs),
    /// Show the changes of a run, or of one of its features.
    Diff(diff::DiffArgs),
    /// Merge the commits of a run into the checked-out branch, by fast forward or with a merge commit of yours. Refused
    /// where files have uncommitted changes, and where both sides changed the same lines.
    Merge(merge::MergeArgs),
    /// Watch a run that another terminal started. Ctrl-C only stops watching.
    Attach {
        #[command(flatten)]
        run: RunArg,
        /// Show events after this number.
        #[arg(long, default_value_t = 0)]
        after: u64,
        /// Show events from this number on, to continue an earlier stream.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "after")]
        from: Option<u64>,
        #[command(flatten)]
        form: FormArg,
    },
    /// Pause a run. `resume` continues it.
    Pause {
        #[command(flatten)]
        run: RunArg,
    },
    /// Abandon a run.
    Abandon {
        #[command(flatten)]
        run: RunArg,
        /// The reason, for the record.
        #[arg(long, default_value = "abandoned by the operator")]
        reason: String,
    },
    /// Answer the question that a run or a feature waits for.
    Answer(answer::AnswerArgs),
    /// List, show and answer approvals of tool calls, and revoke the rules that answers made.
    Approvals(approvals::ApprovalsArgs),
    /// Show a run and its features.
    Status {
        #[command(flatten)]
        run: RunArg,
    },
    /// List every run.
    Runs,
    /// Show the resources that the machine, runs, child processes and component instances use.
    Ps(ps::PsArgs),
    /// Show the same as `ps`, refreshed until `q` or Ctrl-C.
    Top(ps::TopArgs),
    /// Print metrics of all runs as text for Prometheus.
    Metrics,
    /// Report a run: features, commits, usage by agent, caps, and events in order of time.
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
    /// Replay finished invocations from their journals without executing any effect, and compare the results.
    Replay {
        #[command(flatten)]
        run: RunArg,
        /// Replay this invocation only.
        #[arg(long, short)]
        invocation: Option<String>,
        /// Use this component instead of the one that the run pinned.
        #[arg(long, value_name = "FILE")]
        with: Option<PathBuf>,
    },
    /// List and change the features of a run, also while it is worked on.
    Features {
        #[command(flatten)]
        run: RunArg,
        /// Show the proposals of agents instead.
        #[arg(long)]
        proposals: bool,
        /// Show how each criterion is judged: by the source of a check, by a command, or by the evaluator.
        #[arg(long)]
        checks: bool,
        #[command(subcommand)]
        command: Option<features::FeaturesCommand>,
    },
    /// List and search the decisions of a project, and record their outcomes.
    Decisions {
        #[command(flatten)]
        run: RunArg,
        #[command(flatten)]
        list: decisions::ListArgs,
        #[command(subcommand)]
        command: Option<decisions::DecisionsCommand>,
    },
    /// List the checkpoints of runs, export them, and import them elsewhere.
    Checkpoint {
        #[command(subcommand)]
        command: checkpoint::CheckpointCommand,
    },
    /// Delete expired data: saved checkpoints, orphaned worktrees, unreferenced content, and old runs on request.
    Gc(gc::GcArgs),
    /// Back up the data directory into one file, also while it is in use.
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty data directory.
    Restore(backup::RestoreArgs),
    /// Run code in dependent steps: after a change, only the affected steps run again.
    Graph {
        #[command(subcommand)]
        command: graph::GraphCommand,
    },
    /// Manage named agents, which run now or on a schedule, and the artifacts that they pass to their next runs.
    Agent {
        #[command(subcommand)]
        command: agent::AgentCommand,
    },
    /// Run agents by cron, in intervals or after each other, and show their tasks.
    Schedule {
        #[command(subcommand)]
        command: schedule::ScheduleCommand,
    },
    /// Show, search, export and delete the memory of a project: facts, episodes, conversations.
    Memory {
        #[command(subcommand)]
        command: memory::MemoryCommand,
    },
    /// Show, rate, correct and export trajectories: the messages and steps of each invocation of an agent.
    Trajectories {
        #[command(subcommand)]
        command: trajectories::TrajectoriesCommand,
    },
    /// Make, build, install and inspect plugins.
    Plugin {
        #[command(subcommand)]
        command: plugin::PluginCommand,
    },
    /// Print the JSON Schema of a configuration file, for editors: longhaul.toml, server.toml, resources.toml or
    /// plugin.toml.
    Schema(schema::SchemaArgs),
    /// Manage the interpreters of generated code: Python and JavaScript as components.
    Runtimes {
        #[command(subcommand)]
        command: runtimes::RuntimesCommand,
    },
    /// Run as a server: serve the HTTP API, the web page and all other commands, and resume interrupted runs.
    Serve(serve::ServeArgs),
    /// Manage API tokens.
    Token {
        #[command(subcommand)]
        command: token::TokenCommand,
    },
    /// Run as an MCP server that offers tool plugins and the verbs of the harness.
    Mcp(mcp::McpArgs),
    /// Install the skill that teaches coding agents to use Longhaul.
    Skill {
        #[command(subcommand)]
        command: skill::SkillCommand,
    },
    /// Manage the secrets that tools authenticate with. Agents and tools never see their values.
    Secrets {
        #[command(subcommand)]
        command: secrets::SecretsCommand,
    },
    /// Test a component against the rules of the contract: one line a rule, PASS, FAIL or SKIP with the reason.
    Conform(conform::ConformArgs),
    /// List and test the configured models, and fetch a small local model.
    Models {
        #[command(subcommand)]
        command: models::ModelsCommand,
    },
    /// Run untrusted Python, JavaScript or a WASI program in a sandbox, with the directories and hosts that you grant
    /// and no others.
    ///
    /// Exit codes: 0-255 that of the code, when it ended by itself; 120 a limit without a code of its own; 121 the memory
    /// limit; 122 the fuel limit; 124 the timeout; 125 the code was not run, and the error says why; 126 the code was
    /// stopped by a fault of its own.
    ///
    /// Code may end with each of these numbers itself; `exit_code` and `limit` of `--json` tell which it was.
    Exec(exec::ExecArgs),
    /// Check this machine for the needs of a run: memory, disks, sandbox, store, plugins, keys, model servers.
    ///
    /// With `--project`, also try each tool chain of the project inside the sandbox.
    Doctor(doctor::DoctorArgs),
    /// Classify a prompt by its words: the kind of work, and whether it is worth a project. No model is asked.
    Detect {
        /// The prompt; `-` reads it from standard input.
        prompt: String,
    },
    /// Make a project from a prompt and run it, where the prompt is worth one and automatic projects are switched on.
    /// No model is asked for that decision.
    Do(do_prompt::DoArgs),
}

impl Command {
    /// Whether the command uses the powers that longhaul.toml asks for. A server asks about them itself, once it owns
    /// the data directory.
    fn works_with_the_file(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::Resume { .. } | Self::Ask(_))
    }

    fn prints_events(&self) -> bool {
        match self {
            Self::Run { form, .. } | Self::Resume { form, .. } | Self::Attach { form, .. } => form.events,
            _ => false,
        }
    }
}

/// The command line, with the help and the examples of every command, for programs that describe it.
pub fn command() -> clap::Command {
    help::dressed(Cli::command(), false)
}

/// Reads the arguments of this process. Carries out `longhaul help`, for which it returns the end.
///
/// # Errors
/// When the arguments are wrong, or ask for help or the version.
pub fn parse() -> Result<Result<Cli, Exit>, clap::Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = words_of_help(&arguments) {
        return Ok(Err(help::run(Cli::command(), words)));
    }
    let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut command = help::dressed(Cli::command(), at_terminal);
    let cli = Cli::from_arg_matches(&command.try_get_matches_from_mut(arguments)?)?;
    if cli.command.is_none() && cli.json {
        return Err(
            command.error(ErrorKind::MissingSubcommand, "`--json` needs a command, such as `status` or `doctor`")
        );
    }
    Ok(Ok(cli))
}

/// The arguments of `help`, where that is the command. Options of every command may stand before it.
fn words_of_help(arguments: &[OsString]) -> Option<&[OsString]> {
    let mut rest = arguments.get(1..)?;
    loop {
        rest = match rest {
            [word, words @ ..] if word == "help" => return Some(words),
            [option, _, below @ ..] if option == "--home" || option == "--project" => below,
            [option, below @ ..] if option.as_encoded_bytes().starts_with(b"--") => below,
            _ => return None,
        };
    }
}

/// Carries out a command. `owner` does what needs the store, the service or the servers.
///
/// # Errors
/// With a text that says what to do.
pub fn main(cli: Cli, owner: Arc<dyn Owner>) -> fault::Result<Exit> {
    let command = match cli.command {
        Some(Subcommands::Command(command)) => Some(command),
        Some(Subcommands::Manual(command)) => return manual::run(command, self::command()),
        Some(Subcommands::Child(child)) => children::run(child),
        None => None,
    };
    logs::start(&LogSettings::from_environment(&variable)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // A guest that yields counts as one poll; without this, timers and sockets wait for 61 of them.
        .event_interval(1)
        .enable_all()
        .build()?;
    // A stream is for programs, too: no other text is printed between its lines.
    let json = cli.json || command.as_ref().is_some_and(|command| command.prints_events());
    let (project, names_project) = (cli.project.as_deref().unwrap_or(Path::new(".")), cli.project.is_some());
    let (home, project) = (Home::find(cli.home)?, whole(project)?);
    let client = CommandClient::new(&home, &project, &owner);
    let context = Context { home, project, names_project, json, trust: cli.trust, client, owner };
    let exit = runtime.block_on(async {
        let exit = match command {
            Some(command) => dispatch(*command, &context).await,
            None => welcome::run(&context).await,
        };
        context.client.release().await;
        exit
    });
    // A guest that does not yield must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    exit
}

/// The directory of a project as an absolute path, since the owner of the data directory may have another working
/// directory. A directory that a command is about to make has an absolute path, too.
fn whole(project: &Path) -> fault::Result<PathBuf> {
    project
        .canonicalize()
        .or_else(|_| std::path::absolute(project))
        .with_context(|| format!("`{}` is no path", project.display()))
}

async fn dispatch(command: Command, context: &Context) -> fault::Result<Exit> {
    if command.works_with_the_file() {
        context.client.keep();
        trust::ask_first(context, context.trust).await?;
    }
    match command {
        Command::Onboard(args) => onboard::run(context, args).await,
        Command::Init { name } => project::init(context, name).await,
        Command::New { directory, name } => project::new(context, &directory, name).await,
        Command::Projects => project::list(context).await,
        Command::Project { command } => project::run(context, command).await,
        Command::Trust { command } => trust::run(context, command, context.trust).await,
        Command::Audit { command } => audit::run(context, command).await,
        Command::Run { plan, plan_only, sessions, again, models, form } => {
            let form = form.form(context.json);
            let directory = context.project.clone();
            let models = models.options();
            let plan = plan.as_deref().map(grant_args::plan).transpose()?;
            let request = BeginRun { directory, models, plan, plan_only, sessions, again };
            follow::start(context, StartRequest::Run(request), form).await
        }
        Command::Ask(args) => ask::ask(context, args).await,
        Command::Steer(args) => ask::steer(context, args).await,
        Command::Cancel(args) => ask::cancel(context, args).await,
        Command::Check(args) => check::run(context, args).await,
        Command::Resume { run, retry_failing, reread_goal, sessions, form } => {
            let (run, form) = (context.which(run), form.form(context.json));
            if reread_goal {
                check::reread(context, run.clone(), form.is_for_programs()).await?;
            }
            follow::start(context, StartRequest::Resume(ResumeRun { run, retry_failing, sessions }), form).await
        }
        Command::Revert(args) => revert::run(context, args).await,
        Command::Log(args) => log::run(context, args).await,
        Command::Diff(args) => diff::run(context, args).await,
        Command::Merge(args) => merge::run(context, args).await,
        Command::Attach { run, after, from, form } => {
            let after = from.map_or(after, |from| from - 1);
            follow::attach(context, context.which(run), after, form.form(context.json)).await
        }
        Command::Pause { run } => {
            print_done(context, &context.pause_run(PauseRun { run: context.which(run) }).await?, "paused")
        }
        Command::Abandon { run, reason } => {
            let request = AbandonRun { run: context.which(run), reason };
            print_done(context, &context.abandon_run(request).await?, "abandoned")
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
        Command::Serve(args) => owner::serve::run(context, args).await,
        Command::Token { command } => token::run(context, command).await,
        Command::Mcp(args) => mcp::run(context, args).await,
        Command::Skill { command } => skill::run(context, command),
        Command::Schema(args) => schema::run(context, &args),
        Command::Secrets { command } => secrets::run(context, command).await,
        Command::Runtimes { command } => runtimes::run(context, command),
        Command::Models { command } => models::run(context, command).await,
        Command::Exec(args) => exec::run(context, args).await,
        Command::Doctor(args) => doctor::run(context, args).await,
        Command::Detect { prompt } => detect::run(context, prompt),
        Command::Do(args) => do_prompt::run(context, args).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README used to name a form of the command that was refused.
    #[test]
    fn a_question_to_the_decisions_needs_no_word_before_it() {
        for words in
            [&["decisions", "--query", "why"][..], &["decisions", "r-1", "--limit", "3"], &["decisions", "list"]]
        {
            let parsed = Cli::try_parse_from([&["longhaul"], words].concat()).map(|cli| cli.command);
            let Ok(Some(Subcommands::Command(command))) = parsed else { panic!("{words:?}") };
            assert!(matches!(*command, Command::Decisions { .. }), "{words:?}");
        }
    }

    #[test]
    fn the_short_help_fits_a_screen_and_has_every_command_in_one_group() {
        help::tests::check_groups(&Cli::command());
    }

    #[test]
    fn the_help_of_every_command_ends_with_two_examples_that_are_read() {
        help::tests::check_examples(&Cli::command(), "");
        let command = command();
        let lines = help::tests::examples_in(&command);
        assert!(lines.len() > 200, "{}", lines.len());
        for line in lines {
            let read = command.clone().try_get_matches_from(help::tests::split(&line));
            assert!(read.is_ok(), "`{line}`: {}", read.err().map(|error| error.to_string()).unwrap_or_default());
        }
    }

    #[test]
    fn help_is_found_behind_the_options_of_every_command() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found =
                words_of_help(&arguments).map(|words| words.iter().map(|word| word.to_string_lossy().into_owned()));
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(found.map(Iterator::collect::<Vec<_>>), expected, "{line}");
        };
        check("longhaul help", Some(&[]));
        check("longhaul --home help --json help run", Some(&["run"]));
        check("longhaul plugin help", None);
        check("longhaul", None);
    }

    #[test]
    fn without_a_command_the_help_is_an_error_unless_a_person_is_there() {
        let missing = command().try_get_matches_from(["longhaul"]).map(drop).map_err(|error| error.kind());
        assert_eq!(missing, Err(ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand));
        let allowed = help::dressed(Cli::command(), true).try_get_matches_from(["longhaul"]);
        let cli = allowed.and_then(|matches| Cli::from_arg_matches(&matches));
        assert!(cli.is_ok_and(|cli| cli.command.is_none()));
    }
}
