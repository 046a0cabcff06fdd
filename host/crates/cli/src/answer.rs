//! `longhaul answer`: answers the questions of a run that waits, and shows the questions that stay open.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_done;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{AffectedRun, AnswerRun, ShowRun, TakeBackAnswer};
use longhaul_api::runs::{OpenQuestion, RunRef, Status};
use longhaul_core::fault;
use longhaul_core::journal::Resolution;

#[derive(Args, Debug)]
pub struct AnswerArgs {
    #[command(flatten)]
    run: RunArg,
    /// The feature whose question is answered. Default: the only open question.
    #[arg(long)]
    feature: Option<String>,
    /// The question about an effect, by its id.
    #[arg(long, value_name = "ID", conflicts_with = "feature")]
    question: Option<String>,
    /// The effect happened, and this JSON is its result.
    #[arg(long, value_name = "JSON", group = "known")]
    happened: Option<String>,
    /// The effect did not happen: execute it.
    #[arg(long, group = "known")]
    did_not_happen: bool,
    /// Do not execute the effect; the agent gets an error.
    #[arg(long, group = "known")]
    skip: bool,
    /// Take back an answer about an effect, possible until the run has used it.
    #[arg(long, group = "known", conflicts_with = "text")]
    take_back: bool,
    /// The answer in words.
    #[arg(long, default_value = "")]
    text: String,
}

/// Runs the command.
pub async fn run(context: &Context, args: AnswerArgs) -> fault::Result<Exit> {
    let AnswerArgs { run, feature, question, happened, did_not_happen, skip, take_back, text } = args;
    let run = context.which(run);
    context.client.keep();
    if take_back {
        let affected = context.take_back_answer(TakeBackAnswer { run, feature, question }).await?;
        return told(context, &affected, "taken back", None).await;
    }
    let resolution = match happened {
        Some(output) => Some(Resolution::Happened(output)),
        None if did_not_happen => Some(Resolution::DidNotHappen),
        None if skip => Some(Resolution::Skip),
        None => None,
    };
    let undo = resolution.is_some().then(|| match (&question, &feature) {
        (Some(question), _) => format!(" --question {question}"),
        (None, Some(feature)) => format!(" --feature {feature}"),
        (None, None) => String::new(),
    });
    let affected = context.answer_run(AnswerRun { run, feature, question, resolution, text }).await?;
    told(context, &affected, "answered", undo).await
}

/// Prints the outcome, the questions that are still open, and how to continue. `undo` names the answer that can be
/// taken back.
async fn told(context: &Context, affected: &AffectedRun, done: &str, undo: Option<String>) -> fault::Result<Exit> {
    print_done(context, affected, done)?;
    let AffectedRun { run } = affected;
    if context.json {
        return Ok(Exit::Done);
    }
    let Status { summary, questions, .. } =
        &context.run_status(ShowRun { run: RunRef::Named(run.to_string()) }).await?;
    questions.iter().for_each(show);
    if summary.active {
        return Ok(Exit::Done);
    }
    if questions.is_empty() {
        outln!("go on with: longhaul resume {run}");
    }
    if let Some(which) = undo {
        outln!("until then it can be taken back: longhaul answer {run}{which} --take-back");
    }
    Ok(Exit::Done)
}

/// Shows a question and the commands that answer it.
pub fn show(question: &OpenQuestion) {
    let OpenQuestion { id, feature, text, answer_command } = question;
    let of = feature.as_ref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    outln!("  asks{of} {id}: {text}");
    outln!("  answer with: {answer_command}");
}
