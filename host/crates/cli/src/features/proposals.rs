//! Proposals of agents: `longhaul features --proposals`, `accept` and `reject`.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::{print_done, print_json};
use clap::Args;
use longhaul_api::features::{AcceptProposal, ListProposals, RejectProposal};
use longhaul_api::operations::FeatureOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::Page;
use longhaul_api::wire::knowledge::ProposalView;
use longhaul_config::make_whole;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::text::printable;
use longhaul_records::proposals::{Proposal, ProposalStatus, ProposedChange};
use std::path::PathBuf;

/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 300;

#[derive(Args, Debug)]
pub struct AcceptArgs {
    /// Id of the proposal.
    id: String,
    /// The directory for a proposed project. Default: its name, in this directory.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RejectArgs {
    /// Id of the proposal.
    id: String,
    /// The reason, for the record.
    #[arg(long, default_value = "rejected by the operator")]
    why: String,
}

/// `--proposals`: lists the proposals of a run.
pub async fn list(context: &Context, run: RunRef) -> fault::Result<Exit> {
    let proposals = all(context, run).await?;
    if context.json {
        print_json(&Page::whole(proposals, ProposalView::from))?;
        return Ok(Exit::Done);
    }
    if proposals.is_empty() {
        outln!("no proposals");
    }
    proposals.iter().for_each(show);
    Ok(Exit::Done)
}

/// `accept`.
pub async fn accept(context: &Context, run: RunRef, AcceptArgs { id, directory }: AcceptArgs) -> fault::Result<Exit> {
    context.client.keep();
    let found = all(context, run.clone()).await?.into_iter().find(|proposal| proposal.id == id);
    match found.map(|proposal| (proposal.standing, proposal.change)) {
        Some((ProposalStatus::Open, ProposedChange::NewProject { .. })) if context.is_of_server() => {
            bail!(
                "proposal `{id}` is of a new project, which a command makes on its own machine; accept it on the server's"
            )
        }
        Some((ProposalStatus::Open, ProposedChange::NewProject { name, goal })) => {
            let directory = context.project.join(directory.unwrap_or_else(|| PathBuf::from(&name)));
            make_whole(&directory, &name, &goal, None)?;
            if !context.json {
                outln!("made {}; choose a model in longhaul.toml, commit, then: longhaul run", directory.display());
            }
        }
        _ if directory.is_some() => {
            bail!("proposal `{id}` is no open proposal of a project, so it takes no --directory")
        }
        // The service refuses a proposal that does not exist or is not open.
        _ => {}
    }
    print_done(context, &context.accept_proposal(AcceptProposal { run, proposal: id }).await?, "accepted")
}

/// `reject`.
pub async fn reject(context: &Context, run: RunRef, RejectArgs { id, why: reason }: RejectArgs) -> fault::Result<Exit> {
    print_done(context, &context.reject_proposal(RejectProposal { run, proposal: id, reason }).await?, "rejected")
}

async fn all(context: &Context, run: RunRef) -> fault::Result<Vec<Proposal>> {
    context.proposals(ListProposals { run }).await.context("the proposals of the run")
}

fn show(proposal: &Proposal) {
    let standing = match &proposal.standing {
        ProposalStatus::Open => "open",
        ProposalStatus::Accepted { .. } => "accepted",
        ProposalStatus::Rejected { .. } => "rejected",
    };
    outln!("{:<9} {}  {}", standing, proposal.id, printable(&proposal.line(), LINE_BYTES_MAX));
    let by = printable(proposal.by.as_str(), LINE_BYTES_MAX);
    match proposal.reason.trim() {
        "" => outln!("          by {by}"),
        reason => outln!("          by {by}: {}", printable(reason, LINE_BYTES_MAX)),
    }
}
