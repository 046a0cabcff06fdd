//! `longhaul decisions`: lists and searches the decisions of a project, and records their outcomes.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::{Args, Subcommand, ValueEnum};
use longhaul_api::decisions::{JudgeDecision, ListDecisions, ShowDecision};
use longhaul_api::operations::DecisionOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::knowledge::{DecisionView, Decisions};
use longhaul_core::decision::{Decision, DecisionHit, DecisionOutcome};
use longhaul_core::fault::{self, bail};
use longhaul_core::text::printable;

/// Default number of decisions in a list.
const LIMIT: usize = 20;

/// Longest text on a line of the list, in bytes.
const LINE_BYTES_MAX: usize = 160;

/// Longest text of a decision that is shown in full, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

#[derive(Subcommand, Debug)]
pub enum DecisionsCommand {
    /// List decisions, the newest first. The default.
    List(ListArgs),
    /// Show a decision in full.
    Show {
        /// Id of the decision, or the beginning of it.
        id: String,
    },
    /// Record the outcome of a decision. Later searches weigh the decision by it.
    Feedback(FeedbackArgs),
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// List only decisions that bear on this question, the best first, each with the reason.
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// The most entries to list.
    #[arg(long, default_value_t = LIMIT)]
    limit: usize,
}

#[derive(Args, Debug)]
pub struct FeedbackArgs {
    /// Id of the decision, or the beginning of it.
    id: String,
    /// The outcome.
    #[arg(long)]
    outcome: Option<OutcomeArg>,
    /// The quality of the outcome, from -1 to 1. Values beyond are clamped.
    #[arg(long, allow_negative_numbers = true)]
    score: Option<f64>,
    /// The lesson for later decisions.
    #[arg(long, value_name = "TEXT")]
    lesson: Option<String>,
}

/// The outcomes, as words of the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutcomeArg {
    Open,
    Success,
    Partial,
    Failure,
    Reverted,
}

impl From<OutcomeArg> for DecisionOutcome {
    fn from(word: OutcomeArg) -> Self {
        match word {
            OutcomeArg::Open => Self::Open,
            OutcomeArg::Success => Self::Success,
            OutcomeArg::Partial => Self::Partial,
            OutcomeArg::Failure => Self::Failure,
            OutcomeArg::Reverted => Self::Reverted,
        }
    }
}

/// Runs the command.
pub async fn run(
    context: &Context,
    run: RunRef,
    list: ListArgs,
    command: Option<DecisionsCommand>,
) -> fault::Result<Exit> {
    match command.unwrap_or(DecisionsCommand::List(list)) {
        DecisionsCommand::List(ListArgs { query, limit }) => {
            let hits = context.decisions(ListDecisions { run, question: query, limit }).await?;
            if context.json {
                print_json(&Decisions::from(hits))?;
                return Ok(Exit::Done);
            }
            if hits.is_empty() {
                outln!("no decisions");
            }
            hits.iter().for_each(show_line);
        }
        DecisionsCommand::Show { id } => {
            show_whole(context, context.decision(ShowDecision { run, id }).await?)?;
        }
        DecisionsCommand::Feedback(FeedbackArgs { id, outcome, score, lesson }) => {
            if outcome.is_none() && score.is_none() && lesson.is_none() {
                bail!("give the outcome: --outcome success, --score 0.5 or --lesson TEXT");
            }
            if score.is_some_and(f64::is_nan) {
                bail!("a score is a number from -1 to 1");
            }
            let request = JudgeDecision { run, id, outcome: outcome.map(DecisionOutcome::from), score, lesson };
            show_whole(context, context.judge_decision(request).await?)?;
        }
    }
    Ok(Exit::Done)
}

fn show_line(DecisionHit { decision, why, .. }: &DecisionHit) {
    let Decision { id, by, feature, decision, outcome, .. } = decision;
    let feature = feature.as_deref().map(|feature| format!(" for {feature}")).unwrap_or_default();
    outln!("{:<9} {} ({by}{feature})", outcome.as_str(), printable(decision, LINE_BYTES_MAX));
    outln!("          {}", printable(id, LINE_BYTES_MAX));
    if !why.is_empty() {
        outln!("          {}", printable(why, LINE_BYTES_MAX));
    }
}

fn show_whole(context: &Context, hit: DecisionHit) -> fault::Result<()> {
    if context.json {
        return print_json(&DecisionView::from(hit));
    }
    let Decision { id, run, by, feature, context, decision, reasoning, tags, outcome, score, lesson, .. } =
        &hit.decision;
    let rows = [
        ("id", id.clone()),
        ("run", run.clone()),
        ("by", by.clone()),
        ("feature", feature.clone().unwrap_or_default()),
        ("about", context.clone()),
        ("decided", decision.clone()),
        ("because", reasoning.clone()),
        ("tags", tags.join(", ")),
        ("outcome", outcome.as_str().to_owned()),
        ("score", score.map(|score| score.to_string()).unwrap_or_default()),
        ("lesson", lesson.clone().unwrap_or_default()),
    ];
    for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        outln!("{name:<8} {}", printable(text, TEXT_BYTES_MAX));
    }
    Ok(())
}
