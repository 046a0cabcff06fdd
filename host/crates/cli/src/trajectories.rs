//! `longhaul trajectories`: shows, rates and corrects the messages and steps of agents, and exports them for training.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::terminal;
use clap::{Args, Subcommand, ValueEnum};
use longhaul_api::operations::TrajectoryOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::trajectories::{AnnotateTrajectory, ListTrajectories, ShowTrajectory};
use longhaul_api::trajectories::{Annotation, InvocationEnding, Trajectory, TrajectoryFilter};
use longhaul_api::wire::Page;
use longhaul_api::wire::knowledge::{ConversationsView, TrajectoryView};
use longhaul_api::wire::training::TrainingFormat;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::text::printable;
use longhaul_report::messages;
use std::io::Write as _;
use std::path::PathBuf;

/// Longest text on a line of the list, in bytes.
const LINE_BYTES_MAX: usize = 120;

/// Longest message that `show` prints for people, in bytes. `--json` has all of it.
const MESSAGE_BYTES_MAX: usize = 2_000;

#[derive(Subcommand, Debug)]
pub enum TrajectoriesCommand {
    /// List trajectories, one for each invocation of an agent.
    List {
        #[command(flatten)]
        run: RunArg,
        #[command(flatten)]
        wanted: TrajectoryFilterArgs,
    },
    /// Show a trajectory with its messages.
    Show {
        #[command(flatten)]
        one: TrajectoryArg,
    },
    /// Rate a trajectory.
    Rate {
        /// The rating, from 1, bad, to 5, good.
        rating: u8,
        #[command(flatten)]
        one: TrajectoryArg,
    },
    /// Record the answer that the agent should have given.
    Correct {
        #[command(flatten)]
        one: TrajectoryArg,
        /// The right answer; `-` reads it from standard input.
        #[arg(long, value_name = "TEXT")]
        answer: String,
    },
    /// Export trajectories as JSON, one a line, in a format that training tools read.
    Export {
        #[command(flatten)]
        run: RunArg,
        #[command(flatten)]
        wanted: TrajectoryFilterArgs,
        /// The format.
        #[arg(long, default_value = "full")]
        format: ExportFormat,
        /// Write to this file, which must not exist yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct TrajectoryArg {
    /// The invocation, for example `f-sum/1/generate`.
    invocation: String,
    #[command(flatten)]
    run: RunArg,
}

#[derive(Args, Debug)]
pub struct TrajectoryFilterArgs {
    /// Take all runs of the project.
    #[arg(long)]
    all_runs: bool,
    /// Take only trajectories of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Take only trajectories with a rating or a correction.
    #[arg(long, conflicts_with = "unannotated")]
    annotated: bool,
    /// Take only trajectories without a rating or a correction.
    #[arg(long)]
    unannotated: bool,
    /// Take only trajectories with this rating or a better one.
    #[arg(long, value_name = "1-5")]
    rating_min: Option<u8>,
    /// Take only trajectories with this rating or a worse one.
    #[arg(long, value_name = "1-5")]
    rating_max: Option<u8>,
    /// Take only trajectories with this end.
    #[arg(long)]
    ending: Option<EndingWord>,
}

/// The ends of trajectories, as words of the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EndingWord {
    Returned,
    Refused,
    Limited,
    Trapped,
    Unfinished,
}

impl From<EndingWord> for InvocationEnding {
    fn from(word: EndingWord) -> Self {
        match word {
            EndingWord::Returned => Self::Returned,
            EndingWord::Refused => Self::Refused,
            EndingWord::Limited => Self::Limited,
            EndingWord::Trapped => Self::Trapped,
            EndingWord::Unfinished => Self::Unfinished,
        }
    }
}

/// Formats of exports.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportFormat {
    /// The whole trajectory.
    Full,
    /// TRL's conversational preference format: `prompt`, `chosen` (the correction), `rejected` (the answer). Only
    /// corrected trajectories.
    Preference,
    /// TRL's conversational unpaired preference format: `prompt`, `completion`, `label`. Ratings of 4 and 5 are true, 1
    /// and 2 are false. Trajectories rated 3 or not at all are left out.
    Unpaired,
}

impl From<ExportFormat> for TrainingFormat {
    fn from(word: ExportFormat) -> Self {
        match word {
            ExportFormat::Full => Self::Full,
            ExportFormat::Preference => Self::Preference,
            ExportFormat::Unpaired => Self::Unpaired,
        }
    }
}

impl From<TrajectoryFilterArgs> for TrajectoryFilter {
    fn from(args: TrajectoryFilterArgs) -> Self {
        let TrajectoryFilterArgs { all_runs, agent, annotated, unannotated, rating_min, rating_max, ending } = args;
        let annotated = (annotated || unannotated).then_some(annotated);
        Self { all_runs, agent, annotated, rating_min, rating_max, ending: ending.map(InvocationEnding::from) }
    }
}

/// Runs the command.
pub async fn run(context: &Context, command: TrajectoriesCommand) -> fault::Result<Exit> {
    match command {
        TrajectoriesCommand::List { run, wanted } => {
            let request = ListTrajectories { run: context.which(run), wanted: wanted.into() };
            let found = context.trajectories(request).await?;
            if context.json {
                print_json(&Page::whole(found, TrajectoryView::from))?;
            } else if found.is_empty() {
                outln!("no trajectories");
            } else {
                found.iter().for_each(show_line);
            }
        }
        TrajectoriesCommand::Show { one } => {
            show(context, whole(context, context.which(one.run), one.invocation).await?)?
        }
        TrajectoriesCommand::Rate { rating, one } => annotate(context, one, Some(rating), None).await?,
        TrajectoriesCommand::Correct { one, answer } => {
            let answer = if answer == "-" { std::io::read_to_string(std::io::stdin())? } else { answer };
            annotate(context, one, None, Some(answer)).await?;
        }
        TrajectoriesCommand::Export { run, wanted, format, output } => {
            let run = context.which(run);
            context.client.keep();
            let found = context.trajectories(ListTrajectories { run, wanted: wanted.into() }).await?;
            export(context, &found, format.into(), output).await?;
        }
    }
    Ok(Exit::Done)
}

/// Shows the conversations of a trajectory.
pub async fn conversation(context: &Context, one: TrajectoryArg) -> fault::Result<Exit> {
    let found = whole(context, context.which(one.run), one.invocation).await?;
    if context.json {
        print_json(&ConversationsView::from(found))?;
    } else {
        show_conversations(&found);
        if let Some(why) = &found.incomplete {
            outln!("not whole: {why}");
        }
    }
    Ok(Exit::Done)
}

async fn whole(context: &Context, run: RunRef, invocation: String) -> fault::Result<Trajectory> {
    context.trajectory(ShowTrajectory { run, invocation }).await
}

async fn annotate(
    context: &Context,
    one: TrajectoryArg,
    rating: Option<u8>,
    correction: Option<String>,
) -> fault::Result<()> {
    let run = context.which(one.run);
    let request = AnnotateTrajectory { run, invocation: one.invocation, rating, correction };
    let found = context.annotate_trajectory(request).await?;
    if context.json {
        print_json(&TrajectoryView::from(found))?;
    } else {
        show_line(&found);
    }
    Ok(())
}

fn show_line(one: &Trajectory) {
    let Annotation { rating, correction, .. } = &one.annotation;
    let rating = rating.map_or("-".to_owned(), |rating| rating.to_string());
    let corrected = if correction.is_some() { " corrected" } else { "" };
    let ending = one.ending.word();
    outln!(
        "{}  {}  {ending:<10} rated {rating}{corrected}  {}, {} tokens  {}",
        one.id,
        one.agent,
        messages::count(one.steps.len(), "step"),
        messages::short_number(one.usage.tokens()),
        printable(&one.summary, LINE_BYTES_MAX)
    );
}

fn show(context: &Context, one: Trajectory) -> fault::Result<()> {
    if context.json {
        return print_json(&TrajectoryView::from(one));
    }
    show_line(&one);
    show_conversations(&one);
    for step in &one.steps {
        let failed = if step.failed { " (failed)" } else { "" };
        outln!("  step {} {} {}{failed}", step.entry, step.name, printable(&step.summary, LINE_BYTES_MAX));
    }
    if let Some(answer) = &one.answer {
        outln!("  answer: {}", printable(answer, MESSAGE_BYTES_MAX));
    }
    if let Some(correction) = &one.annotation.correction {
        outln!("  should be: {}", printable(correction, MESSAGE_BYTES_MAX));
    }
    if let Some(why) = &one.incomplete {
        outln!("  not whole: {why}");
    }
    Ok(())
}

fn show_conversations(one: &Trajectory) {
    for (number, messages) in one.conversations.iter().enumerate() {
        outln!("conversation {}", number + 1);
        for message in messages {
            let text = message["content"].as_str().unwrap_or_default();
            outln!("  {}: {}", message["role"].as_str().unwrap_or_default(), printable(text, MESSAGE_BYTES_MAX));
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                outln!("    asks for {}", printable(&call["function"].to_string(), MESSAGE_BYTES_MAX));
            }
        }
    }
}

async fn export(
    context: &Context,
    found: &[Trajectory],
    format: TrainingFormat,
    output: Option<PathBuf>,
) -> fault::Result<()> {
    let mut file = match &output {
        Some(path) => {
            Some(std::fs::File::create_new(path).with_context(|| format!("cannot make `{}`", path.display()))?)
        }
        None => None,
    };
    for one in found.iter().filter(|one| format.takes(one)) {
        let whole = whole(context, RunRef::Named(one.run.to_string()), one.id.to_string()).await?;
        // It may have been annotated since the list was made.
        let Some(line) = format.line(whole)? else { continue };
        match &mut file {
            Some(file) => writeln!(file, "{line}")?,
            None => terminal::document(&line),
        }
    }
    Ok(())
}
