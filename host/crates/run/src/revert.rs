//! Reverts a run to an earlier commit: branch, tree, features, progress and decisions together.
//!
//! A revert is an effect with a journal. The order, and the work that would be lost, are durable before anything moves;
//! the order is removed in the transaction that stores the new state of the features. After a kill in between,
//! [`finish`] carries out the same order again. Refuses to lose work that is in no commit, and reads nothing of the
//! user's checkout.

use super::apply::{applied, next_number};
use super::step_rows::step_attempts;
use super::{carried, worktrees};
use longhaul_api::runs::RevertOutcome;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::journal::{Began, CallVerdict, EffectClass, Finished, Journal as _, NewCall};
use longhaul_core::store::{Batch, Key, Op, Table};
use longhaul_core::tool::EffectRows;
use longhaul_core::work::FeatureStatus;
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_harness::{Action, Feature, Input, Reaction, RunState, step};
use longhaul_journal::{Opened, Recorder};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::{self, RunRecord, StoredRun, put_best_effort};
use longhaul_worktree::{Branch, RevertOrder, TreeError, UserRepository, WayBack, keep_as};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of uncommitted work that a revert keeps.
const STASH_BYTES_MAX: u64 = 16 << 20;

/// Files that a refusal names at most.
const NAMED_MAX: usize = 20;

/// A revert that can be carried out.
pub struct PlannedRevert {
    noted: StoredRevert,
    /// In the order of the names in [`RevertOutcome::stashed`].
    stashes: Vec<Vec<u8>>,
}

/// The stored order; it exists until it is carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredRevert {
    /// The number of this revert in its run, from 1.
    number: u32,
    order: RevertOutcome,
}

/// Checks everything that can be refused. Changes nothing, except that a run without its tree gets it again.
///
/// # Errors
/// In one line: the word is unknown, the branch does not hold the commit, or there is work in no commit.
pub async fn look(host: &Arc<PluginHost>, stored: &StoredRun, word: &str, stash: bool) -> fault::Result<PlannedRevert> {
    let (own, record, word) = (Arc::clone(host), stored.record.clone(), word.to_owned());
    let ground = tokio::task::spawn_blocking(move || RepositoryState::look(&own, &record, &word, stash)).await??;
    let run = &stored.record.run;
    let features = passing_by(&stored.state, &all_events(host, run)?, &ground.way);
    let number = number(host, run, ground.last_kept)?;
    let WayBack { from, to, left, .. } = ground.way;
    let kept_as = (!left.is_empty()).then(|| keep_as(run.as_str(), number));
    let stashed = ground.stashes.iter().map(|(slot, _)| stash_name(&stored.state, number, *slot)).collect();
    let mut order = RevertOutcome { run: run.clone(), from, to, left, kept_as, features, stashed };
    if !order.is_nothing() {
        order.features = rehearse(&stored.state, host.clock.now_ms(), &order)?;
    }
    let stashes = ground.stashes.into_iter().map(|(_, bytes)| bytes).collect();
    Ok(PlannedRevert { noted: StoredRevert { number, order }, stashes })
}

/// Carries out the planned revert.
///
/// # Errors
/// When git, the file system or the store refuses. If the branch has not moved, nothing has happened then.
pub async fn revert(host: &Arc<PluginHost>, stored: StoredRun, looked: PlannedRevert) -> fault::Result<RevertOutcome> {
    let PlannedRevert { noted, stashes } = looked;
    if noted.order.is_nothing() {
        return Ok(noted.order);
    }
    let run = &stored.record.run;
    let mut batch = Batch::new().put(Table::States, key(run), serde_json::to_vec(&noted)?);
    for (bytes, name) in stashes.into_iter().zip(&noted.order.stashed) {
        (batch, _) = put_best_effort(batch, run, name, bytes);
    }
    host.store.commit(batch).await?;
    host.crash.reach("revert.noted");
    match carry_out(host, stored.clone(), noted.clone()).await {
        Err(error) if has_not_moved(&stored.record, &noted.order) => {
            let mut forget = Batch::new();
            forget.push(Op::Delete(Table::States, key(run)));
            host.store.commit(forget).await?;
            Err(error)
        }
        done => done,
    }
}

/// Carries out the order that was stored before a kill, if there is one.
///
/// # Errors
/// As [`revert`]; the order stays, and the next command tries again.
pub async fn finish(host: &Arc<PluginHost>, run: &RunId) -> fault::Result<Option<RevertOutcome>> {
    let Some(bytes) = host.store.get(Table::States, &key(run))? else { return Ok(None) };
    let noted = serde_json::from_slice(&bytes).or_internal(|| "the order of a revert is damaged")?;
    let stored = record::load(&*host.store, run)?.or_unknown(|| format!("there is no run {run} any more"))?;
    let done = carry_out(host, stored, noted).await;
    done.map(Some).with_context(|| format!("a revert of run {run} was cut off and cannot be finished"))
}

/// True when the order of a revert is stored, and is not carried out yet.
///
/// # Errors
/// When the store cannot be read.
pub fn is_cut_off(host: &PluginHost, run: &RunId) -> fault::Result<bool> {
    Ok(host.store.get(Table::States, &key(run))?.is_some())
}

fn key(run: &RunId) -> Key {
    Key::of(run.as_str()).and("revert")
}

async fn carry_out(host: &Arc<PluginHost>, stored: StoredRun, noted: StoredRevert) -> fault::Result<RevertOutcome> {
    let StoredRevert { number, order } = noted;
    let recorder = open_journal(host, &stored.record, number, &order)?;
    let call = NewCall {
        name: "git.revert",
        summary: format!("{} to {}", stored.record.branch, order.to),
        arguments: Digest::of(&serde_json::to_vec(&order)?),
        // The same order always leads to the same state.
        class: EffectClass::Idempotent,
        fuel_used: 0,
    };
    match recorder.ask(call).await? {
        CallVerdict::Answered(_) => {}
        CallVerdict::Go(handle)
        | CallVerdict::Verify(handle, _)
        | CallVerdict::Happened(handle, _)
        | CallVerdict::Skipped(handle) => {
            let (own, record, wanted) = (Arc::clone(host), stored.record.clone(), order.clone());
            tokio::task::spawn_blocking(move || move_back(&own, &record, &wanted)).await??;
            let EffectRows { batch, held: _until_stored } = moved_rows(host, &stored.record).await?;
            recorder.answer_with(handle, serde_json::to_string(&order)?, batch).await?;
        }
    }
    host.crash.reach("revert.moved");
    let result = serde_json::to_string(&order)?;
    let finished = Finished { result, fuel_used: 0, interrupted: false, at_ms: host.clock.now_ms() };
    let mut attempts = step_attempts();
    let first = next_number(host, &stored)?;
    loop {
        let mut batch = applied(host, &stored, first, input(&order))?;
        batch.push(Op::Delete(Table::States, key(&order.run)));
        match recorder.finish(finished.clone(), batch).await {
            Ok(()) => break,
            Err(error) => attempts.again(error.into()).await?,
        }
    }
    host.crash.reach("revert.closed");
    Ok(order)
}

/// The rows of the moved refs. The trees are at the commit that the branch is at, so nothing but that has to be told.
async fn moved_rows(host: &PluginHost, record: &RunRecord) -> fault::Result<EffectRows> {
    let Some(commits) = carried::carrier(host, record)? else { return Ok(EffectRows::default()) };
    let mut rows = commits.rows().await?;
    record::forget_carried_trees(&*host.store, &mut rows.batch, &record.run)?;
    Ok(rows)
}

fn input(order: &RevertOutcome) -> Input {
    let RevertOutcome { to, left, kept_as, features, .. } = order.clone();
    Input::Reverted { features, left, to, kept_as }
}

fn open_journal(host: &PluginHost, record: &RunRecord, number: u32, order: &RevertOutcome) -> fault::Result<Recorder> {
    let began = Began {
        plugin: "longhaul".to_owned(),
        table: String::new(),
        component: Digest::of(b"longhaul"),
        export: "git.revert".to_owned(),
        input: Digest::of(&serde_json::to_vec(order)?),
        seed: host.fresh_seed(),
        fingerprint: host.engine.fingerprint().to_owned(),
        context: None,
        told: None,
        at_ms: host.clock.now_ms(),
    };
    let (store, clock) = (Arc::clone(&host.store), Arc::clone(&host.clock));
    let limits = record.config()?.limits;
    match Recorder::open(store, clock, invocation(&record.run, number), began, &limits)? {
        Opened::Running(recorder) => Ok(recorder),
        // The end of the effect and the removal of the order are one transaction.
        Opened::Finished { .. } => {
            bail!(Fault::conflict(format!("revert {number} of run {} has happened before", record.run)))
        }
    }
}

fn invocation(run: &RunId, number: u32) -> InvocationId {
    InvocationId::of_action(run, &format!("revert/{number}"))
}

/// The first number after `last` without a journal: a failed revert has left its own.
fn number(host: &PluginHost, run: &RunId, last: u32) -> fault::Result<u32> {
    for number in last.saturating_add(1)..u32::MAX {
        if longhaul_journal::began(&*host.store, &invocation(run, number))?.is_none() {
            return Ok(number);
        }
    }
    bail!("run {run} was reverted {} times, which is enough", u32::MAX)
}

/// The state of the repository and of the trees.
struct RepositoryState {
    way: WayBack,
    last_kept: u32,
    /// Uncommitted work, by the number of its tree.
    stashes: Vec<(u32, Vec<u8>)>,
}

impl RepositoryState {
    fn look(host: &PluginHost, record: &RunRecord, word: &str, stash: bool) -> fault::Result<Self> {
        let project = UserRepository::open(&record.directory)?;
        let branch = Branch::new(&record.branch)?;
        let way = project.way_back(&branch, &record.base, word)?;
        if !way.left.is_empty() {
            project.check_movable(&branch)?;
        }
        let (mut loose, mut stashes) = (Vec::new(), Vec::new());
        for (number, tree) in worktrees::trees(host, record, &project, &way.from)? {
            let found = worktrees::loose(&tree, &project, &way.from)?;
            if !found.is_empty() {
                let at = tree.at().unwrap_or_else(|| way.from.clone());
                stashes.push((number, tree.best_effort(&project, &at, STASH_BYTES_MAX)?));
            }
            loose.extend(found);
        }
        if !loose.is_empty() && !stash {
            let run = &record.run;
            bail!(Fault::conflict(format!(
                "run {run} has work that is in no commit: {}; keep it in the store with --stash, or finish it with `longhaul resume {run}`",
                named(&loose)
            )));
        }
        let last_kept = project.last_kept(record.run.as_str())?;
        Ok(Self { way, last_kept, stashes })
    }
}

/// Moves branch and trees back. Blocks.
fn move_back(host: &PluginHost, record: &RunRecord, order: &RevertOutcome) -> Result<(), TreeError> {
    let project = UserRepository::open(&record.directory)?;
    let branch = Branch::new(&record.branch)?;
    let tree = worktrees::tree(host, record, &project, &order.from)?;
    let keep_as = order.kept_as.as_deref();
    let order = RevertOrder { branch: &branch, from: &order.from, to: &order.to, keep_as };
    // The trees of parallel sessions are made anew when they are needed.
    let forgotten = host.home.forget_trees_beside(&record.run);
    forgotten.map_err(|source| TreeError::Io { doing: "remove", path: host.home.tree(&record.run), source })?;
    tree.revert(&project, &order, &|point| host.crash.reach(point))
}

fn named(paths: &[String]) -> String {
    let mut text = paths.iter().take(NAMED_MAX).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", paths.len() - NAMED_MAX));
    }
    text
}

/// Nothing was lost if the branch has not moved: the order may be forgotten.
fn has_not_moved(record: &RunRecord, order: &RevertOutcome) -> bool {
    let tip = || UserRepository::open(&record.directory)?.tip(&Branch::new(&record.branch)?);
    tip().is_ok_and(|tip| tip.as_deref() != Some(order.to.as_str()) || order.from == order.to)
}

/// Names the stash: it is the best effort of the current feature, or the revert's own without one.
fn stash_name(state: &RunState, number: u32, slot: u32) -> String {
    let session = state.lanes.iter().filter_map(|lane| lane.session.as_ref()).find(|session| session.slot == slot);
    let own = || if slot == 0 { format!("revert-{number}") } else { format!("revert-{number}-{slot}") };
    session.map_or_else(own, |session| session.feature.clone())
}

/// The features that the harness would take back, or its refusal.
fn rehearse(state: &RunState, at_ms: u64, order: &RevertOutcome) -> fault::Result<Vec<String>> {
    let Reaction::Acted(actions) = step(&mut state.clone(), at_ms, input(order))? else { return Ok(Vec::new()) };
    let of_event = |action| match action {
        Action::Emit(Event::Reverted { features, .. }) => Some(features),
        _ => None,
    };
    Ok(actions.into_iter().find_map(of_event).unwrap_or_default())
}

/// The features whose work is among the abandoned commits. A feature that passed without a change has no commit: it is
/// among them when it was judged on a tree with one of those commits.
fn passing_by(state: &RunState, events: &[RunEvent], way: &WayBack) -> Vec<String> {
    let is_of_left =
        |event: &&RunEvent| matches!(&event.event, Event::Committed { commit, .. } if way.left.contains(commit));
    let first_left = events.iter().find(is_of_left).map_or(u64::MAX, |event| event.number);
    let passed: BTreeMap<&str, u64> = events.iter().filter_map(passed).collect();
    let is_left = |feature: &&Feature| match &feature.commit {
        Some(commit) => way.left.contains(commit),
        None => {
            let at = passed.get(feature.spec.id.as_str());
            feature.status == FeatureStatus::Passing && at.is_some_and(|at| *at > first_left)
        }
    };
    state.features.iter().filter(is_left).map(|feature| feature.spec.id.clone()).collect()
}

/// When several are collected, the last one wins.
fn passed(event: &RunEvent) -> Option<(&str, u64)> {
    match &event.event {
        Event::Feature { feature, status: FeatureStatus::Passing, .. } => Some((feature, event.number)),
        _ => None,
    }
}

fn all_events(host: &PluginHost, run: &RunId) -> fault::Result<Vec<RunEvent>> {
    let mut events: Vec<RunEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.number);
        let page = record::events_after(&*host.store, run, after, 1_000)?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}
