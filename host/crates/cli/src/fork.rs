//! `longhaul fork`: makes a run that goes on from a point of another one.
//!
//! The plan is shown first, with what the other run did after the point, and a person agrees to it. This file prints
//! the plan and decides nothing.

use super::arguments::{ModelArgs, OutputFormat, RunArg};
use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::follow::{self, StartRequest};
use super::order::print_json;
use clap::Args;
use longhaul_api::forks::{ForkOutcome, ForkPlan, ForkRun, SharedWork};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::points::Point;
use longhaul_api::runs::{ResumeRun, RunRef};
use longhaul_api::wire::forks::ForkView;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::journal::EffectClass;
use longhaul_models::set::ModelOptions;
use longhaul_report::messages;

/// Kinds of work whose shared entries are listed.
const SHARED_MAX: usize = 10;

#[derive(Args, Debug)]
pub struct ForkArgs {
    #[command(flatten)]
    run: RunArg,
    /// The point: entry:N or entry:KEY:N of an invocation, step:N of the agents, feature:ID, commit:HEX,
    /// time:2026-11-22T01:00:00Z, or event:N. `longhaul journal --at POINT` shows the run as it was there.
    #[arg(long, value_name = "POINT")]
    at: Point,
    /// Answer the entry at the point with this JSON: the output of a tool, the text of a model in quotes, or a result
    /// as `longhaul journal` prints it.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    answer: Option<String>,
    /// Tell the agents at work at the point this text, at their next step.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
    /// Have this model of longhaul.toml answer in the place of all others.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Take this plugin of longhaul.toml as it is installed now, instead of as the run pinned it. May be repeated.
    #[arg(long = "plugin", value_name = "NAME")]
    plugins: Vec<String>,
    /// The branch of the fork. Default: longhaul/NAME-fork-N.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Repeat what the other run did after the point without asking a person each time.
    #[arg(long)]
    repeat_effects: bool,
    /// Make the fork without a question.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Show the plan, and make nothing.
    #[arg(long)]
    dry_run: bool,
    /// Begin the work of the fork at once, and follow it. Default: it is paused.
    #[arg(long, conflicts_with = "dry_run")]
    resume: bool,
    #[command(flatten)]
    models: ModelArgs,
}

/// Runs the command.
pub async fn run(context: &Context, args: ForkArgs) -> fault::Result<Exit> {
    let models = args.models.options(|path| context.whole(path));
    let request = ForkRun {
        run: context.which(args.run),
        at: args.at,
        answer: args.answer,
        message: args.message,
        model: args.model,
        plugins: args.plugins,
        models: Some(models).filter(|models| *models != ModelOptions::default()),
        branch: args.branch,
        repeat_effects: args.repeat_effects,
        dry_run: true,
    };
    if args.dry_run || !args.yes {
        let planned = context.fork_run(request.clone()).await?;
        if !context.json {
            outtext!(told(&planned.plan));
        }
        if args.dry_run {
            if context.json {
                print_json(&ForkView::from(planned))?;
            }
            return Ok(Exit::Done);
        }
        agreed(context, "Make this fork?", "no fork was made", "look at it with --dry-run, and add --yes")?;
    }
    let made = context.fork_run(ForkRun { dry_run: false, ..request }).await?;
    let run = made.run.clone().context("the service made no fork")?;
    print_made(context, made, args.yes)?;
    if !args.resume {
        return Ok(Exit::Done);
    }
    let resume = ResumeRun { run: RunRef::Named(run.to_string()), retry_failing: false, sessions: None };
    let form = if context.json { OutputFormat::Json } else { OutputFormat::Words };
    follow::start(context, StartRequest::Resume(resume), form).await
}

fn print_made(context: &Context, made: ForkOutcome, tells_plan: bool) -> fault::Result<()> {
    if context.json {
        return print_json(&ForkView::from(made));
    }
    if tells_plan {
        outtext!(told(&made.plan));
    }
    if let Some(run) = &made.run {
        outln!("forked as run {run}; it is paused");
        outln!("  go on with: longhaul resume {run}");
    }
    Ok(())
}

/// The plan for people.
fn told(plan: &ForkPlan) -> String {
    let mut lines = vec![format!(
        "a fork of run {} at {}: {} of {} features pass there",
        plan.parent, plan.at, plan.passing.0, plan.passing.1
    )];
    if !plan.branch.is_empty() {
        lines.push(format!("  branch {} from {}", plan.branch, messages::short(&plan.commit)));
    }
    lines.extend(shared(&plan.shared));
    lines.push(format!("  inherited, and not paid again: {}", messages::used_words(&plan.inherited)));
    lines.extend(plan.model.iter().map(|model| format!("  model {model} answers in the place of all others")));
    lines
        .extend(plan.replaced_plugins.iter().map(|table| format!("  [{table}] has its plugin as it is installed now")));
    lines.extend(later(plan));
    lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
    lines.join("\n")
}

fn shared(shared: &[SharedWork]) -> Vec<String> {
    let one = |work: &SharedWork| {
        let edited = if work.edited { ", the last of them with your answer" } else { "" };
        format!("  {}: {} from the journal{edited}", work.key, messages::counted(work.entries, "answer"))
    };
    let mut lines: Vec<String> = shared.iter().take(SHARED_MAX).map(one).collect();
    if shared.len() > SHARED_MAX {
        lines.push(format!("  and {} more pieces of work from the journal", shared.len() - SHARED_MAX));
    }
    lines
}

/// What the other run did after the point.
fn later(plan: &ForkPlan) -> Vec<String> {
    if plan.effects.is_empty() {
        return vec!["  the run had no effects after that point".to_owned()];
    }
    let mut lines = vec!["  what the run did after that point, which no fork undoes:".to_owned()];
    for effects in &plan.effects {
        let class = match effects.effect {
            EffectClass::Acts => "acts, cannot be undone",
            EffectClass::Verifiable => "verifiable",
            EffectClass::Idempotent => "idempotent",
            EffectClass::ReadOnly => "read-only",
        };
        lines.push(format!("    {} {} ({class})", effects.count, effects.call));
    }
    if plan.effects_left_out > 0 {
        lines.push(format!("    and {} more", plan.effects_left_out));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::forks::LaterEffects;
    use longhaul_core::RunId;
    use longhaul_core::event::WorkUsage;

    fn plan() -> ForkPlan {
        ForkPlan {
            parent: RunId::from_text("r-1"),
            at: "feature:two".to_owned(),
            event: 9,
            at_ms: 1,
            branch: "longhaul/p-fork-1".to_owned(),
            commit: "0123456789abcdef".to_owned(),
            passing: (1, 2),
            shared: vec![SharedWork { key: "f-one/1/generate".to_owned(), entries: 1, edited: true }],
            inherited: WorkUsage::default(),
            effects: Vec::new(),
            effects_left_out: 0,
            model: None,
            replaced_plugins: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_plan_tells_what_is_shared_and_what_is_not_undone() {
        let quiet = told(&plan());
        assert!(quiet.contains("fork of run r-1 at feature:two: 1 of 2 features pass there"), "{quiet}");
        assert!(quiet.contains("branch longhaul/p-fork-1 from 0123456789\n"), "{quiet}");
        assert!(
            quiet.contains("f-one/1/generate: 1 answer from the journal, the last of them with your answer"),
            "{quiet}"
        );
        assert!(quiet.ends_with("the run had no effects after that point"), "{quiet}");
        let sent = LaterEffects { effect: EffectClass::Acts, call: "mail.send".to_owned(), count: 2 };
        let busy = told(&ForkPlan { effects: vec![sent], effects_left_out: 1, ..plan() });
        assert!(busy.contains("    2 mail.send (acts, cannot be undone)\n    and 1 more"), "{busy}");
    }
}
