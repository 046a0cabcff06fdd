//! Proposals of agents, and people's decisions on them.
//!
//! A proposal changes nothing by itself. It is a row beside the state of its run, named after the call that made it, so
//! that a call which is repeated after a kill finds it. It becomes an event of its run in the transaction that ends the
//! invocation it was made in. A person may decide meanwhile, in another process, so this is noted in a row beside it.

use crate::approvals::rows;
use crate::contended::change;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureSpec;
use longhaul_core::{InvocationId, RunId};
use serde::{Deserialize, Serialize};

/// Open proposals of one run. A further one is refused, because a person does not read a hundred.
pub const PROPOSALS_MAX: usize = 100;

/// Longest line about a proposal, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// A change that an agent proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// `p-` and 12 digits; the same for every attempt of the call that made it.
    pub id: String,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The invocation that proposed it.
    pub by: InvocationId,
    /// The proposed change.
    pub change: ProposedChange,
    /// The agent's reason.
    pub reason: String,
    /// The person's decision, if there is one.
    pub standing: ProposalStatus,
    /// True when an event reported it, in a row of an earlier version. Now a row beside it says so.
    #[serde(default)]
    pub told: bool,
}

/// A proposed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ProposedChange {
    /// One more feature.
    AddFeature {
        /// The definition of the feature.
        spec: FeatureSpec,
    },
    /// Removes a feature from the list.
    DropFeature {
        /// The id of the feature.
        feature: String,
    },
    /// Restores a feature that was dropped.
    RestoreFeature {
        /// The id of the feature.
        feature: String,
    },
    /// Starts a project of its own.
    NewProject {
        /// The project's name.
        name: String,
        /// The goal of the new project.
        goal: String,
    },
}

/// The status of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum ProposalStatus {
    /// It waits for a decision.
    Open,
    /// A person accepted it.
    Accepted {
        /// The time, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// A person rejected it.
    Rejected {
        /// The time, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// The person's reason.
        why: String,
    },
}

impl Proposal {
    /// The proposed change, in one line.
    pub fn line(&self) -> String {
        let text = match &self.change {
            ProposedChange::AddFeature { spec } => format!("add feature `{}`: {}", spec.id, spec.title),
            ProposedChange::DropFeature { feature } => format!("drop feature `{feature}`"),
            ProposedChange::RestoreFeature { feature } => format!("take feature `{feature}` back onto the list"),
            ProposedChange::NewProject { name, .. } => format!("start a project `{name}`"),
        };
        truncate(&text, LINE_BYTES_MAX)
    }

    /// Adds a new one to a batch, which fails if another attempt of its call stored it.
    pub fn insert(&self, batch: Batch) -> fault::Result<Batch> {
        Ok(batch.insert(Table::States, key(&self.by.run()).and(&self.id), serde_json::to_vec(self)?))
    }
}

/// The id of the proposal that a call makes.
pub fn id_of(key: &str) -> String {
    format!("p-{}", &key[..key.floor_char_boundary(12)])
}

/// The proposal of that id.
pub fn get(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<Option<Proposal>> {
    let bytes = store.get(Table::States, &key(run).and(id))?;
    bytes.map(|bytes| read(&bytes)).transpose()
}

/// The open proposal that a person names.
pub fn open(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<Proposal> {
    Ok(open_row(store, run, id)?.0)
}

/// Stores a person's decision on an open proposal. Of two at once the first counts.
pub async fn decide(store: &dyn Store, run: &RunId, id: &str, standing: &ProposalStatus) -> fault::Result<()> {
    change(store, || {
        let (proposal, row) = open_row(store, run, id)?;
        Ok((with_standing(proposal, &row, run, standing.clone())?, ()))
    })
    .await
}

/// Notes that a proposal was accepted, after its change was made: a rejection that came meanwhile does not hold.
pub async fn accepted(store: &dyn Store, run: &RunId, id: &str, at_ms: u64) -> fault::Result<()> {
    change(store, || {
        let (proposal, row) = any_row(store, run, id)?;
        if matches!(proposal.standing, ProposalStatus::Accepted { .. }) {
            return Ok((Batch::new(), ()));
        }
        Ok((with_standing(proposal, &row, run, ProposalStatus::Accepted { at_ms })?, ()))
    })
    .await
}

/// The batch that gives a proposal a standing, on the condition that its row is still the one that was read.
fn with_standing(proposal: Proposal, row: &[u8], run: &RunId, standing: ProposalStatus) -> fault::Result<Batch> {
    let key = key(run).and(&proposal.id);
    let decided = serde_json::to_vec(&Proposal { standing, ..proposal })?;
    Ok(Batch::new().replace(Table::States, key, Some(row), decided))
}

/// The open proposal that a person names, and its row.
fn open_row(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<(Proposal, Vec<u8>)> {
    let (found, row) = any_row(store, run, id)?;
    match found.standing {
        ProposalStatus::Open => Ok((found, row)),
        ProposalStatus::Accepted { .. } => bail!(Fault::conflict(format!("proposal `{id}` was accepted before"))),
        ProposalStatus::Rejected { why, .. } => {
            bail!(Fault::conflict(format!("proposal `{id}` was rejected before: {why}")))
        }
    }
}

/// The proposal that a person names, whatever was decided, and its row.
fn any_row(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<(Proposal, Vec<u8>)> {
    let row = store.get(Table::States, &key(run).and(id))?.or_unknown(|| {
        format!("there is no proposal `{}` in run {run}; `longhaul features --proposals` lists them", truncate(id, 80))
    })?;
    Ok((read(&row)?, row))
}

/// Every proposal of a run, oldest first.
pub fn list(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Proposal>> {
    let found = rows(store, &key(run))?;
    let mut proposals = found.iter().map(|(_, bytes)| read(bytes)).collect::<fault::Result<Vec<Proposal>>>()?;
    proposals.sort_by(|a, b| a.at_ms.cmp(&b.at_ms).then_with(|| a.id.cmp(&b.id)));
    Ok(proposals)
}

/// The unreported events about the proposals of an invocation and of its sub-agents; with the rows that mark them as
/// reported, for the transaction that stores the events. The proposals' own rows stay: a person may decide meanwhile.
pub fn tell(store: &dyn Store, invocation: &InvocationId, mut batch: Batch) -> fault::Result<(Vec<Event>, Batch)> {
    let below = format!("{invocation}#");
    let is_own = |by: &InvocationId| by == invocation || by.as_str().starts_with(&below);
    let mut events = Vec::new();
    let run = invocation.run();
    for proposal in list(store, &run)? {
        let told = told_key(&run, &proposal.id);
        if proposal.told || !is_own(&proposal.by) || store.get(Table::States, &told)?.is_some() {
            continue;
        }
        batch = batch.put(Table::States, told, "proposed");
        events.push(Event::Proposed { what: proposal.line(), proposal: proposal.id });
    }
    Ok((events, batch))
}

fn read(bytes: &[u8]) -> fault::Result<Proposal> {
    serde_json::from_slice(bytes).or_internal(|| "a proposal is damaged")
}

fn key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("proposal")
}

fn told_key(run: &RunId, id: &str) -> Key {
    Key::of(run.as_str()).and("proposal-told").and(id)
}

#[cfg(test)]
mod tests;
