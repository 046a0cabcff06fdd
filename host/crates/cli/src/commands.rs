//! The definition of the commands: the name and the `--help` text of each, and short lists of arguments. A longer list
//! is in the file of its command.
//!
//! It carries out no command, which [`super::dispatch`] does, and no example stands here, which `help` adds.

use super::arguments::{FormArg, ModelArgs, RunArg};
use super::{
    agent, answer, approvals, ask, audit, backup, check, checkpoint, compare, conform, crashtest, decisions, diff,
    do_prompt, doctor, exec, features, fork, gc, graph, log, mcp, memory, merge, models, onboard, packages, plugin,
    project, ps, rehearse, report, revert, runs, runtimes, scenario, schedule, schema, secrets, serve, skill, store,
    token, trajectories, trust,
};
use clap::Subcommand;
use longhaul_api::points::Point;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Try Longhaul with a demo project that is run, killed and resumed. Asks which model writes it; nothing costs
    /// money unless a provider with a key is chosen.
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
    /// Make a run that goes on from a point of another one, and shares what that run was answered until then. Nothing
    /// that had ended is done again, and the other run stays as it is.
    Fork(fork::ForkArgs),
    /// List the commits of a run, newest first, or show one of them with its changes.
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
    /// List the runs, archive runs that nobody needs in the list, and take them back.
    Runs(runs::RunsArgs),
    /// Show the resources that the machine, runs, child processes and component instances use.
    Ps(ps::PsArgs),
    /// Show the same as `ps`, refreshed until `q` or Ctrl-C.
    Top(ps::TopArgs),
    /// List the servers that work on runs of the same database, with their runs, and the runs that wait for one.
    Workers,
    /// Print metrics of all runs as text for Prometheus.
    Metrics,
    /// Report a run: features, commits, usage by agent, caps, and events in order of time.
    Report(report::ReportArgs),
    /// Compare runs step by step: the first difference, answers, files, verdicts, cost and time.
    Compare(compare::CompareArgs),
    /// List the invocations of a run, show the journal of one, or show the run as it was at a point of its past.
    Journal {
        #[command(flatten)]
        run: RunArg,
        /// The invocation, for example `f-sum/1/generate`.
        #[arg(long, short)]
        invocation: Option<String>,
        /// Show entries after this number.
        #[arg(long, default_value_t = 0)]
        after: u32,
        /// Show the run as it was at a point: entry:N or entry:KEY:N of an invocation, step:N of its agents,
        /// feature:ID, commit:HEX, time:2026-11-22T01:00:00Z, or event:N.
        #[arg(long, value_name = "POINT", conflicts_with_all = ["invocation", "after"])]
        at: Option<Point>,
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
    /// Replay runs on other bytes of a plugin, other settings or this version of the program, also while they go on.
    /// Nothing is executed. Says of each run that it reaches its end, differs at an entry, or cannot be told.
    Rehearse(rehearse::RehearseArgs),
    /// Move a run that no process works on to other bytes of a plugin, after a rehearsal. What has begun ends on the
    /// old ones where the rehearsal differs.
    Move(rehearse::MoveArgs),
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
    /// Move all state from the data directory into PostgreSQL, or back.
    Store {
        #[command(subcommand)]
        command: store::StoreCommand,
    },
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
    /// Make tests of plugins from recorded runs.
    Scenario {
        #[command(subcommand)]
        command: scenario::ScenarioCommand,
    },
    /// Print the JSON Schema of a configuration file, for editors: longhaul.toml, server.toml, resources.toml or
    /// plugin.toml.
    Schema(schema::SchemaArgs),
    /// Manage the interpreters of generated code: Python and JavaScript as components.
    Runtimes {
        #[command(subcommand)]
        command: runtimes::RuntimesCommand,
    },
    /// Lock and list the packages of Python that tools of a project import.
    Packages {
        #[command(subcommand)]
        command: packages::PackagesCommand,
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
    /// Kill a run of the project at every durable point that it reaches, resume it, and compare its end with that of a
    /// run that was not killed.
    ///
    /// Runs in copies, on a recording of the models, with a stand-in for every host: nothing is sent, and neither the
    /// checkout nor the data directory is changed. Exit code 1: a kill was not survived.
    Crashtest(crashtest::CrashtestArgs),
    /// List and test the configured models, and fetch a small local model.
    Models {
        #[command(subcommand)]
        command: models::ModelsCommand,
    },
    /// Run untrusted Python, JavaScript or a WASI program in a sandbox, with the directories and hosts that you grant
    /// and no others.
    ///
    /// Exit codes: 0-255 that of the code, when it ended by itself; 120 a limit without a code of its own; 121 the
    /// memory limit; 122 the fuel limit; 124 the timeout; 125 the code was not run, and the error says why; 126 the
    /// code was stopped by a fault of its own; 130 it was interrupted.
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
    /// True when the command uses the powers that longhaul.toml asks for. A server asks about them itself, once it owns
    /// the data directory.
    pub(super) fn works_with_the_file(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::Resume { .. } | Self::Ask(_))
    }

    pub(super) fn needs_one_thread(&self) -> bool {
        matches!(self, Self::Exec(args) if args.needs_one_thread())
    }

    pub(super) fn prints_events(&self) -> bool {
        match self {
            Self::Run { form, .. } | Self::Resume { form, .. } | Self::Attach { form, .. } => form.events,
            _ => false,
        }
    }
}
