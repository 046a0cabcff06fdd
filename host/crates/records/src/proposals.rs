//! Proposals of agents, and people's decisions on them.
//!
//! A proposal changes nothing by itself. It is a row beside the state of its run, named after the call that made it, so
//! that a call which is repeated after a kill finds it. It becomes an event of its run in the transaction that ends the
//! invocation it was made in.

use crate::approvals::rows;
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
    /// True when an event reported it.
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

    /// Adds it to a batch, in place of its earlier version.
    pub fn put(&self, batch: Batch) -> fault::Result<Batch> {
        Ok(batch.put(Table::States, key(&self.by.run()).and(&self.id), serde_json::to_vec(self)?))
    }
}

/// The id of the proposal that a call makes.
pub fn id_of(key: &str) -> String {
    format!("p-{}", &key[..key.floor_char_boundary(12)])
}

/// The proposal of that id.
pub fn get(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<Option<Proposal>> {
    let bytes = store.get(Table::States, &key(run).and(id))?;
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(|| "a proposal is damaged")).transpose()
}

/// The open proposal that a person names.
pub fn open(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<Proposal> {
    let found = get(store, run, id)?.or_unknown(|| {
        format!("there is no proposal `{}` in run {run}; `longhaul features --proposals` lists them", truncate(id, 80))
    })?;
    match found.standing {
        ProposalStatus::Open => Ok(found),
        ProposalStatus::Accepted { .. } => bail!(Fault::conflict(format!("proposal `{id}` was accepted before"))),
        ProposalStatus::Rejected { why, .. } => {
            bail!(Fault::conflict(format!("proposal `{id}` was rejected before: {why}")))
        }
    }
}

/// Every proposal of a run, oldest first.
pub fn list(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Proposal>> {
    let found = rows(store, &key(run))?;
    let read = |(_, bytes): &(Vec<u8>, Vec<u8>)| serde_json::from_slice(bytes).or_internal(|| "a proposal is damaged");
    let mut proposals = found.iter().map(read).collect::<fault::Result<Vec<Proposal>>>()?;
    proposals.sort_by(|a, b| a.at_ms.cmp(&b.at_ms).then_with(|| a.id.cmp(&b.id)));
    Ok(proposals)
}

/// The unreported events about the proposals of an invocation and of its sub-agents; with the change that marks them as
/// reported, for the transaction that stores the events.
pub fn tell(store: &dyn Store, invocation: &InvocationId, mut batch: Batch) -> fault::Result<(Vec<Event>, Batch)> {
    let below = format!("{invocation}#");
    let is_own = |by: &InvocationId| by == invocation || by.as_str().starts_with(&below);
    let mut events = Vec::new();
    for proposal in list(store, &invocation.run())? {
        if proposal.told || !is_own(&proposal.by) {
            continue;
        }
        events.push(Event::Proposed { proposal: proposal.id.clone(), what: proposal.line() });
        batch = Proposal { told: true, ..proposal }.put(batch)?;
    }
    Ok((events, batch))
}

fn key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("proposal")
}
