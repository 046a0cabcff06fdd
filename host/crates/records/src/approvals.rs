//! The stored approvals: a row for each question, and one for each rule of a run.
//!
//! A question is stored before its run waits, its answer before any notification, and the approval is consumed in the
//! transaction that stores the decision in the journal. Each change is a compare-and-swap: of two answers the first
//! counts. A question with unreported news is also on a list of its own, so that the end of an invocation reads those
//! and not all of its run.

use crate::contended::change;
use crate::record;
use longhaul_approval::{Approval, ApprovalStatus, RunRule};
use longhaul_core::approval::CallDecision;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Row, Store, Table};
use longhaul_core::text::truncate;
use longhaul_core::{Digest, InvocationId, RunId};
use std::cmp::Ordering;

/// Rows that one read returns; a longer list is read in pages.
const PAGE: usize = 1_000;

/// The approval of that id.
pub fn get(store: &dyn Store, run: &RunId, id: &str) -> fault::Result<Option<Approval>> {
    let bytes = store.get(Table::States, &key(run).and(id))?;
    bytes.map(|bytes| read(&bytes)).transpose()
}

/// Every approval of a run, oldest first.
pub fn list(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Approval>> {
    let found = rows(store, &key(run))?;
    let mut approvals = found.iter().map(|(_, bytes)| read(bytes)).collect::<fault::Result<Vec<Approval>>>()?;
    approvals.sort_by(in_order);
    Ok(approvals)
}

/// True when a person was asked about a call of a run.
pub fn has_any(store: &dyn Store, run: &RunId) -> fault::Result<bool> {
    Ok(!store.scan(Table::States, &key(run), None, 1)?.is_empty())
}

/// The approvals without an answer.
pub fn open(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Approval>> {
    Ok(list(store, run)?.into_iter().filter(|approval| approval.standing == ApprovalStatus::Open).collect())
}

/// The approval that a person names by its id, or by the beginning of it, in any run.
pub fn find(store: &dyn Store, named: &str) -> fault::Result<Approval> {
    let mut found = Vec::new();
    for record in record::records(store)? {
        found.extend(list(store, &record.run)?.into_iter().filter(|approval| approval.id.starts_with(named)));
    }
    let shown = truncate(named, 80);
    match (found.pop(), found.is_empty()) {
        (Some(one), true) if named.len() > 2 => Ok(one),
        (None, _) => bail!(Fault::unknown(format!("there is no approval `{shown}`; `longhaul approvals` lists them"))),
        _ => bail!(Fault::conflict(format!("several approvals begin with `{shown}`; write more of the id"))),
    }
}

/// The unreported events about the questions of an invocation, and of the invocations that it delegated to; with the
/// rows that mark them as reported, for the transaction that stores the events. The questions' own rows stay: a person
/// may answer meanwhile.
pub fn tell(store: &dyn Store, invocation: &InvocationId, mut batch: Batch) -> fault::Result<(Vec<Event>, Batch)> {
    let below = format!("{invocation}#");
    let mut events = Vec::new();
    for approval in with_news(store, &invocation.run())? {
        let by = &approval.subject.invocation;
        if by != invocation && !by.as_str().starts_with(&below) {
            continue;
        }
        let told = store.get(Table::States, &told_key(&approval))?;
        let news = news_of(&approval, told.as_deref());
        if let Some(word) = news.iter().map(|(word, _)| *word).next_back() {
            batch = batch.put(Table::States, told_key(&approval), word);
        }
        events.extend(news.into_iter().map(|(_, event)| event));
        if matches!(approval.standing, ApprovalStatus::Used { .. } | ApprovalStatus::Withdrawn) {
            // This approval does not change any more.
            batch.push(Op::Delete(Table::States, news_key_of(&approval)));
        }
    }
    Ok((events, batch))
}

/// The approvals that may have news, oldest first.
fn with_news(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Approval>> {
    let mut found = Vec::new();
    for (_, id) in rows(store, &news_key(run))? {
        found.extend(get(store, run, &String::from_utf8_lossy(&id))?);
    }
    found.sort_by(in_order);
    Ok(found)
}

fn in_order(a: &Approval, b: &Approval) -> Ordering {
    (a.at_ms, a.subject.entry, &a.id).cmp(&(b.at_ms, b.subject.entry, &b.id))
}

const TOLD_ASKED: &str = "asked";
const TOLD_ANSWERED: &str = "answered";

fn news_of(approval: &Approval, told: Option<&[u8]>) -> Vec<(&'static str, Event)> {
    let Approval { id, subject, standing, .. } = approval;
    let mut news = Vec::new();
    if told.is_none() {
        let call = truncate(&format!("{}.{}", subject.tool, subject.function), 200);
        let invocation = subject.invocation.clone();
        news.push((TOLD_ASKED, Event::ApprovalAsked { approval: id.clone(), invocation, call }));
    }
    let decision = match standing {
        ApprovalStatus::Open | ApprovalStatus::Answered { .. } => return news,
        ApprovalStatus::Used { decision, .. } => word_of(decision),
        ApprovalStatus::Withdrawn => "withdrawn",
    };
    if told != Some(TOLD_ANSWERED.as_bytes()) {
        let decision = decision.to_owned();
        news.push((TOLD_ANSWERED, Event::ApprovalAnswered { approval: id.clone(), decision }));
    }
    news
}

fn word_of(decision: &CallDecision) -> &'static str {
    match decision {
        CallDecision::Allowed(_) => "allowed",
        CallDecision::Denied(_) => "denied",
        CallDecision::Rejected(_) => "rejected",
        CallDecision::Corrected(_) => "corrected",
        CallDecision::Stopped => "stopped",
        CallDecision::Replied(_) => "replied",
    }
}

/// A new question.
pub fn insert(batch: Batch, approval: &Approval) -> fault::Result<Batch> {
    let batch = batch.insert(Table::States, key_of(approval), serde_json::to_vec(approval)?);
    Ok(batch.put(Table::States, news_key_of(approval), approval.id.as_str()))
}

/// Replaces `before` by `now`; the batch fails if the row was changed in between.
pub fn swap(mut batch: Batch, before: &Approval, now: &Approval) -> fault::Result<Batch> {
    let before = Digest::of(&serde_json::to_vec(before)?);
    batch.push(Op::Swap(Table::States, key_of(now), before, serde_json::to_vec(now)?));
    Ok(batch.put(Table::States, news_key_of(now), now.id.as_str()))
}

/// The rules of a run, oldest first, the revoked ones included.
pub fn rules(store: &dyn Store, run: &RunId) -> fault::Result<Vec<RunRule>> {
    let found = rows(store, &rule_key(run))?;
    let mut rules = found.iter().map(|(_, bytes)| read_rule(bytes)).collect::<fault::Result<Vec<RunRule>>>()?;
    rules.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
    Ok(rules)
}

/// Revokes a rule of a run that holds.
pub async fn revoke(store: &dyn Store, run: &RunId, id: &str, at_ms: u64) -> fault::Result<RunRule> {
    change(store, || {
        let key = rule_key(run).and(id);
        let row = store.get(Table::States, &key)?;
        let rule = row.as_deref().map(read_rule).transpose()?.filter(|rule| rule.revoked_ms.is_none());
        let rule = rule.or_unknown(|| {
            let shown = truncate(id, 80);
            format!("there is no rule `{shown}` in run {run} that holds; `longhaul approvals list {run}` shows them")
        })?;
        let revoked = RunRule { revoked_ms: Some(at_ms), ..rule };
        let bytes = serde_json::to_vec(&revoked)?;
        Ok((Batch::new().replace(Table::States, key, row.as_deref(), bytes), revoked))
    })
    .await
}

/// Writes the rule of an answer. Only the answer that counts has one, by the condition on its approval.
pub fn put_rule(batch: Batch, run: &RunId, rule: &RunRule) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, rule_key(run).and(&rule.id), serde_json::to_vec(rule)?))
}

/// True when an imported row of a run may be stored here. No rule may, and no approval except an open question and one
/// that is history: no person here gave an answer that was not used yet, or whose call was not made (`undecided`). A
/// row under another key than its own would be found by a query for another approval.
pub fn is_ours(run: &RunId, at: &Key, value: &[u8], undecided: &[(InvocationId, u32)]) -> fault::Result<bool> {
    let bytes = at.as_bytes();
    if bytes.starts_with(rule_key(run).as_bytes()) {
        return Ok(false);
    }
    if !bytes.starts_with(key(run).as_bytes()) {
        return Ok(true);
    }
    let approval = read(value)?;
    let Approval { id, subject, standing, .. } = &approval;
    let is_own = subject.invocation.run() == *run && *id == subject.id() && key_of(&approval) == *at;
    let is_undecided = undecided.iter().any(|(of, entry)| (of, *entry) == (&subject.invocation, subject.entry));
    Ok(match standing {
        ApprovalStatus::Open => is_own,
        ApprovalStatus::Answered { .. } => false,
        ApprovalStatus::Used { .. } | ApprovalStatus::Withdrawn => is_own && !is_undecided,
    })
}

fn read(bytes: &[u8]) -> fault::Result<Approval> {
    serde_json::from_slice(bytes).or_internal(|| "an approval is damaged")
}

fn read_rule(bytes: &[u8]) -> fault::Result<RunRule> {
    serde_json::from_slice(bytes).or_internal(|| "a rule of a run is damaged")
}

/// All rows below a key.
pub fn rows(store: &dyn Store, key: &Key) -> fault::Result<Vec<Row>> {
    let mut found: Vec<Row> = Vec::new();
    loop {
        let page = store.scan(Table::States, key, found.last().map(|(key, _)| key.as_slice()), PAGE)?;
        let is_last = page.len() < PAGE;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

fn news_key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("approval-news")
}

fn news_key_of(approval: &Approval) -> Key {
    news_key(&approval.subject.invocation.run()).and(&approval.id)
}

fn key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("approval")
}

fn key_of(approval: &Approval) -> Key {
    key(&approval.subject.invocation.run()).and(&approval.id)
}

fn told_key(approval: &Approval) -> Key {
    Key::of(approval.subject.invocation.run().as_str()).and("approval-told").and(&approval.id)
}

fn rule_key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("approval-rule")
}

#[cfg(test)]
mod tests;
