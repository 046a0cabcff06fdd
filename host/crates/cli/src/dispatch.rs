//! Carries out a command that was read: each arm hands the arguments to the file of its command.
//!
//! It does no work of a command, and prints nothing but that a run was paused or abandoned.

use super::commands::Command;
use super::context::Context;
use super::exit::Exit;
use super::follow::StartRequest;
use super::order::print_done;
use super::{
    agent, answer, approvals, ask, audit, backup, check, checkpoint, compare, conform, crashtest, decisions, detect,
    diff, do_prompt, doctor, exec, features, follow, fork, gc, grant_args, graph, log, mcp, memory, merge, models,
    onboard, owner, packages, plugin, project, ps, rehearse, report, revert, runs, runtimes, scenario, schedule,
    schema, secrets, show, skill, store, token, trajectories, trust, workers,
};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{AbandonRun, BeginRun, PauseRun, ResumeRun};
use longhaul_core::fault;

/// Carries out a command. A command that works with the powers of longhaul.toml asks for the agreement to them first.
pub(super) async fn run(command: Command, context: &Context) -> fault::Result<Exit> {
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
            let models = models.options(|path| context.whole(path));
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
        Command::Fork(args) => fork::run(context, args).await,
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
        Command::Runs(args) => runs::run(context, args).await,
        Command::Ps(args) => ps::ps(context, args).await,
        Command::Top(args) => ps::top(context, args).await,
        Command::Workers => workers::run(context).await,
        Command::Metrics => show::metrics(context).await,
        Command::Report(args) => report::run(context, args).await,
        Command::Compare(args) => compare::run(context, args).await,
        Command::Journal { run, at: Some(point), .. } => show::journal_at(context, context.which(run), point).await,
        Command::Journal { run, invocation, after, at: None } => {
            show::journal(context, context.which(run), invocation, after).await
        }
        Command::Replay { run, invocation, with } => show::replay(context, context.which(run), invocation, with).await,
        Command::Rehearse(args) => rehearse::rehearse(context, args).await,
        Command::Move(args) => rehearse::move_run(context, args).await,
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
        Command::Store { command } => store::run(context, command).await,
        Command::Graph { command } => graph::run(context, command).await,
        Command::Agent { command } => agent::run(context, command).await,
        Command::Schedule { command } => schedule::run(context, command).await,
        Command::Memory { command } => memory::run(context, command).await,
        Command::Trajectories { command } => trajectories::run(context, command).await,
        Command::Plugin { command } => plugin::run(context, command).await,
        Command::Scenario { command } => scenario::run(context, command).await,
        Command::Conform(args) => conform::run(context, args).await,
        Command::Crashtest(args) => crashtest::run(context, args).await,
        Command::Serve(args) => owner::serve::run(context, args).await,
        Command::Token { command } => token::run(context, command).await,
        Command::Mcp(args) => mcp::run(context, args).await,
        Command::Skill { command } => skill::run(context, command),
        Command::Schema(args) => schema::run(context, &args),
        Command::Secrets { command } => secrets::run(context, command).await,
        Command::Runtimes { command } => runtimes::run(context, command),
        Command::Packages { command } => packages::run(context, command),
        Command::Models { command } => models::run(context, command).await,
        Command::Exec(args) => exec::run(context, args).await,
        Command::Doctor(args) => doctor::run(context, args).await,
        Command::Detect { prompt } => detect::run(context, prompt),
        Command::Do(args) => do_prompt::run(context, args).await,
    }
}
