//! `longhaul approvals`: approvals of tool calls, answered from any terminal.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::{print_done, print_json};
use clap::{Args, Subcommand};
use longhaul_api::approvals::{AnswerApproval, ApprovalList, ApprovalOutcome, ListApprovals, RevokeRule, ShowApproval};
use longhaul_api::operations::ApprovalOperations as _;
use longhaul_api::wire::approvals::{ApprovalListing, ApprovalView, Approved};
use longhaul_approval::{Approval, ApprovalKind, ApprovalStatus, RunRule, banner, visible};
use longhaul_core::fault;

#[derive(Args, Debug)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
}

#[derive(Subcommand, Debug)]
enum ApprovalsCommand {
    /// List the open approvals of all runs; of one run, list its answered ones and its rules, too.
    List {
        #[command(flatten)]
        run: RunArg,
        /// List the answered approvals and the revoked rules of all runs, too.
        #[arg(long, conflicts_with = "run")]
        all: bool,
    },
    /// Show one approval in full.
    Show {
        /// Id of the approval, or the beginning of it.
        id: String,
    },
    /// Answer an approval: `y` allows the call once, `n [reason]` denies it, `a` allows such calls for the rest of the
    /// run, any other text tells the agent what to do instead.
    Answer {
        /// Id of the approval, or the beginning of it.
        id: String,
        /// The answer. An empty text is no answer.
        #[arg(required = true, num_args = 1.., allow_hyphen_values = true)]
        answer: Vec<String>,
    },
    /// Revoke a rule that an `a` made: such calls are asked about again.
    Revoke {
        /// The run, or the beginning of its name.
        run: String,
        /// Id of the rule.
        rule: String,
    },
}

/// Runs the command.
pub async fn run(context: &Context, args: ApprovalsArgs) -> fault::Result<Exit> {
    match args.command {
        None => list(context, None, false).await,
        Some(ApprovalsCommand::List { run, all }) => list(context, run.named.is_some().then_some(run), all).await,
        Some(ApprovalsCommand::Show { id }) => show(context, id).await,
        Some(ApprovalsCommand::Answer { id, answer }) => answer_one(context, id, answer.join(" ")).await,
        Some(ApprovalsCommand::Revoke { run, rule }) => {
            let run = context.which(RunArg { named: Some(run) });
            let done = format!("revoked rule {rule}");
            print_done(context, &context.revoke_rule(RevokeRule { run, rule }).await?, &done)
        }
    }
}

/// Lists approvals and rules: of one run all of them, of all runs those that are open and hold, or all.
async fn list(context: &Context, run: Option<RunArg>, all: bool) -> fault::Result<Exit> {
    let all = all || run.is_some();
    let request = ListApprovals { run: run.map(|run| context.which(run)), open: false };
    let ApprovalList { mut approvals, mut rules } = context.approvals(request).await?;
    approvals.retain(|one| all || one.standing == ApprovalStatus::Open);
    rules.retain(|(_, rule)| all || rule.revoked_ms.is_none());
    if context.json {
        print_json(&ApprovalListing::from(ApprovalList { approvals, rules }))?;
        return Ok(Exit::Done);
    }
    if approvals.is_empty() {
        outln!("{}", if all { "there are no approvals" } else { "no approvals are open" });
    }
    for one in &approvals {
        outln!("{}  {}  {}: {}", one.id, one.subject.invocation.run(), line(one), visible(&one.words()));
    }
    for (run, rule) in &rules {
        let revoked = if rule.revoked_ms.is_some() { " (revoked)" } else { "" };
        outln!("rule {}  {run}  {}{revoked}", rule.id, rule.text());
    }
    Ok(Exit::Done)
}

fn line(one: &Approval) -> String {
    let call = format!("{}.{}", visible(&one.subject.tool), visible(&one.subject.function));
    let what = if one.asks == ApprovalKind::Question { "question by" } else { "asked by" };
    format!("{call} {what} {}", visible(&one.agent))
}

async fn show(context: &Context, id: String) -> fault::Result<Exit> {
    let one = context.approval(ShowApproval { id }).await?;
    if context.json {
        print_json(&ApprovalView::from(one))?;
    } else {
        outtext!(banner(&one));
        outln!("{}", visible(&one.words()));
    }
    Ok(Exit::Done)
}

async fn answer_one(context: &Context, id: String, text: String) -> fault::Result<Exit> {
    let outcome = context.answer_approval(AnswerApproval { id, text }).await?;
    if context.json {
        print_json(&Approved::from(outcome))?;
        return Ok(Exit::Done);
    }
    let ApprovalOutcome { approval, rule, active } = outcome;
    tell(&approval, rule.as_ref());
    let run = approval.subject.invocation.run();
    if !active {
        outln!("go on with: longhaul resume {run}");
    }
    Ok(Exit::Done)
}

/// Prints the outcome of an answer, and the rule that it made.
pub fn tell(approval: &Approval, rule: Option<&RunRule>) {
    outln!("{}: {}", approval.id, visible(&approval.words()));
    if let Some(rule) = rule {
        let run = approval.subject.invocation.run();
        outln!("rule {}: {}; revoke it with: longhaul approvals revoke {run} {}", rule.id, rule.text(), rule.id);
    }
}
