//! Stores the memory of a run when it ends: facts, an episode, and their lifetimes.
//!
//! The transaction that ends a run adds a row that says it is to be remembered, so no kill loses it. The model's reply
//! is made durable before it is used, and the notes and the removal of the row are one transaction where memory is in
//! the store; elsewhere the notes are put again after a kill, which changes nothing: their keys and times come from the
//! row. So a kill repeats nothing that was finished; an interrupted request to the model is made again. The model's
//! cost is reserved in the ledger of the run, and written there with its reply: without budget in the run, the rules
//! replace the model. A model or a backend that is unavailable, or a model that takes longer than a minute, is asked
//! again when the next run of this data directory begins; after three attempts the rules replace the model. Callers
//! that wait for the run do not wait for any of this.

use crate::backend;
use crate::extract::{Extracted, Fact, Material, by_rules, read_reply, request};
use crate::factory::MemoryFactory;
use crate::namespaces::{episodes_of, facts_of};
use crate::recollect::{EPISODES_KEPT, keys};
use longhaul_capabilities::{Models as _, turns};
use longhaul_config::Config;
use longhaul_config::memory::MemoryConfig;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _};
use longhaul_core::memory::{MemoryBackend, MemoryEntry, MemoryError, MemoryNote, StagedEntry};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::supervisor::{InvocationTotals, Supervisor as _, Tries, UsageDelta};
use longhaul_core::{InvocationId, Outage, RunId};
use longhaul_harness::HarnessLimits;
use longhaul_models::set::{ModelSet, ProgramEnvironment};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::contended::ChangeAttempts;
use longhaul_records::ledger::{Ledger, ProjectDay};
use longhaul_records::record::{self, RunRecord};
use longhaul_security::trust;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Attempts at a model that does not answer.
const ATTEMPTS_MAX: u32 = 3;

/// The longest time that a model may take for its reply. It writes at most 2,000 tokens; a slower one is asked again
/// later, and in the end not at all.
const REPLY_MAX: Duration = Duration::from_secs(60);

/// The number of times that a fact is made because another process noted the same key meanwhile.
const NOTED_MAX: u32 = 20;

/// Runs that are remembered late in one pass.
const DUE_MAX: usize = 100;

/// The author of the notes.
const BY: &str = "longhaul";

/// The name of this work in the ledger.
const ACTION: &str = "remember";

/// A run that is due to be remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Due {
    run: RunId,
    at_ms: u64,
    /// Its end.
    status: String,
    attempts: u32,
    /// The model's reply, once there is one.
    reply: Option<Reply>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reply {
    model: String,
    text: String,
    tokens: u64,
}

fn prefix() -> Key {
    Key::of("remember")
}

fn key(run: &RunId) -> Key {
    prefix().and(run.as_str())
}

/// True when a run is still to be remembered.
pub fn is_due(store: &dyn Store, run: &RunId) -> fault::Result<bool> {
    Ok(store.get(Table::States, &key(run))?.is_some())
}

/// Adds to the batch that ends a run that it is to be remembered.
pub fn put_due(batch: Batch, record: &RunRecord, events: &[RunEvent]) -> fault::Result<Batch> {
    let ended = events.iter().find_map(|event| match &event.event {
        Event::RunEnded { status, .. } => Some((status, event.at_ms)),
        _ => None,
    });
    let Some((status, at_ms)) = ended else { return Ok(batch) };
    // An unreadable configuration remembers nothing: a run must not stop for it.
    if !record.config_now().is_ok_and(|config| config.memory.episodic) {
        return Ok(batch);
    }
    let due = Due { run: record.run.clone(), at_ms, status: status.clone(), attempts: 0, reply: None };
    Ok(batch.put(Table::States, key(&record.run), serde_json::to_vec(&due)?))
}

/// Remembers runs that have ended, one after the other.
pub struct Rememberer {
    host: Arc<PluginHost>,
    factory: Arc<dyn MemoryFactory>,
    environment: ProgramEnvironment,
    /// Held while a run is remembered, so that it is done once.
    alone: tokio::sync::Mutex<()>,
}

impl Rememberer {
    /// The rememberer of a data directory, with the factory of memory and the environment of models.
    pub fn new(host: Arc<PluginHost>, factory: Arc<dyn MemoryFactory>, environment: ProgramEnvironment) -> Self {
        Self { host, factory, environment, alone: tokio::sync::Mutex::default() }
    }

    /// Remembers the runs that earlier processes left. Errors are logged, and the run is tried again later.
    pub async fn remember_due(&self) {
        let due = self.host.store.scan(Table::States, &prefix(), None, DUE_MAX).unwrap_or_default();
        let due = due.iter().filter_map(|(_, bytes)| serde_json::from_slice::<Due>(bytes).ok());
        for one in due {
            self.remember_run(&one.run).await;
        }
    }

    /// Remembers a run, if that is due.
    pub async fn remember_run(&self, run: &RunId) {
        if let Err(error) = self.remember(run).await {
            tracing::warn!(%run, "the outcome of the run is remembered later: {error:#}");
        }
    }

    async fn remember(&self, run: &RunId) -> fault::Result<()> {
        let store = &*self.host.store;
        // A run that only rests does not wait for the model that remembers another one.
        if store.get(Table::States, &key(run))?.is_none() {
            return Ok(());
        }
        let _alone = self.alone.lock().await;
        let Some(bytes) = store.get(Table::States, &key(run))? else { return Ok(()) };
        let due: Due = serde_json::from_slice(&bytes).context("the stored order to remember a run is damaged")?;
        let stored = record::load(store, run)?.with_context(|| format!("run {run} is gone"))?;
        let config = stored.record.config_now()?;
        trust::expect(store, &stored.record.directory, &config)?;
        let material = Material::of(store, &stored, &config, &due.status)?;
        let (record, limits) = (&stored.record, &stored.state.limits);
        let memorist = Memorist { with: self, record, limits, config: &config, material: &material };
        let (due, extracted) = memorist.extract(due).await?;
        memorist.keep(&due, extracted).await
    }
}

/// Remembers one run.
struct Memorist<'a> {
    with: &'a Rememberer,
    record: &'a RunRecord,
    limits: &'a HarnessLimits,
    config: &'a Config,
    material: &'a Material,
}

impl Memorist<'_> {
    async fn extract(&self, mut due: Due) -> fault::Result<(Due, Extracted)> {
        let MemoryConfig { model, .. } = &self.config.memory;
        if let (Some(model), None) = (model, &due.reply)
            && due.attempts < ATTEMPTS_MAX
        {
            // Counted before the request is sent: a model that takes the process down with it is not asked for ever.
            due.attempts += 1;
            self.put(&due, Batch::new()).await?;
            self.with.host.crash.reach("memory.before-extract");
            let (reply, spent) = self.ask(model, due.attempts > 1).await?;
            due.reply = Some(reply);
            self.put(&due, spent).await?;
            self.with.host.crash.reach("memory.extracted");
        }
        let extracted = match &due.reply {
            Some(Reply { model, text, tokens }) => read_reply(text, self.material)
                .map(|found| found.made_by(&format!("model {model}, {tokens} tokens")))
                .unwrap_or_else(|why| by_rules(self.material, &format!("rules, since the model {why}"))),
            None if model.is_some() => by_rules(self.material, "rules, since the model did not answer"),
            None => by_rules(self.material, "rules"),
        };
        Ok((due, extracted))
    }

    /// The model's reply, and its entry in the ledger. `again`: it may have been asked before.
    async fn ask(&self, name: &str, again: bool) -> fault::Result<(Reply, Batch)> {
        let (used, options) = (self.config.used_models(), &self.record.models);
        let environment = &self.with.environment;
        let models = ModelSet::build(&self.config.models, used, &self.record.directory, options, environment)?;
        let model = models.model(name).with_context(|| format!("there is no [models.{name}]"))?;
        let host = &self.with.host;
        let day = ProjectDay::of(self.record, self.config, Arc::clone(&host.clock));
        let ledger = Ledger::open(Arc::clone(&host.store), &self.record.run, day)?;
        ledger.set_caps(self.limits);
        let invocation = InvocationId::of_action(&self.record.run, ACTION);
        let asked = request(name, self.material);
        let answered = |text: String, tokens: u64| Reply { model: name.to_owned(), text, tokens };
        let held = match ledger.reserve(&invocation, model.cost_most(&asked), again).await {
            Ok(held) => held,
            Err(hit) => return Ok((answered(format!("no answer: {hit}"), 0), Batch::new())),
        };
        let tries = Tries::new(&*held);
        let mut unheard = |_: &str| {};
        let replied = tokio::time::timeout(REPLY_MAX, model.ask(&asked, &mut unheard, &tries)).await;
        let (tally, _) = tries.end();
        let reply = replied.with_context(|| format!("model `{name}` took longer than {REPLY_MAX:?}"))?;
        let usage = reply.as_ref().map(|reply| reply.usage).unwrap_or_default();
        let done = InvocationTotals { model_calls: u32::from(reply.is_ok()), ..InvocationTotals::default() };
        let more = UsageDelta {
            usage: usage.plus(tally.wasted()),
            egress_bytes: tally.sent_bytes(),
            stored_bytes: reply.as_ref().map_or(0, |reply| reply.text.len() as u64),
            ..UsageDelta::default()
        };
        let spent = ledger.spent(&invocation, done, more);
        held.settle();
        match reply {
            Ok(reply) => Ok((answered(reply.text, usage.tokens()), spent)),
            Err(longhaul_core::model::ModelError::Unavailable(outage)) => {
                self.with.host.store.commit(spent).await?;
                Err(outage.into())
            }
            // The same request would get the same answer.
            Err(error) => Ok((answered(format!("no answer: {error}"), 0), spent)),
        }
    }

    async fn put(&self, due: &Due, batch: Batch) -> fault::Result<()> {
        let batch = batch.put(Table::States, key(&due.run), serde_json::to_vec(due)?);
        Ok(self.with.host.store.commit(batch).await?)
    }

    /// Stores the notes, and finally deletes the row. Where another process notes one of the facts meanwhile, nothing
    /// of it was written, and the notes are made again.
    async fn keep(&self, due: &Due, extracted: Extracted) -> fault::Result<()> {
        let RunRecord { pins, directory, .. } = self.record;
        let project = self.record.scope();
        let memory = backend::open(&self.with.host, &*self.with.factory, self.config, pins, directory).await?;
        // Held until the notes are durable, so that an agent of this process that notes one of them meanwhile finds it.
        let keys = extracted.facts.iter().map(|fact| fact.key.as_str());
        let _turns = turns(&facts_of(project), keys).await;
        self.with.host.crash.reach("memory.before-put");
        let mut attempts = ChangeAttempts::in_table(Table::Memory);
        loop {
            let mut batch = self.notes(&*memory, due, &extracted).await?;
            self.with.host.crash.reach("memory.after-put");
            batch.push(Op::Delete(Table::States, key(&due.run)));
            match self.with.host.store.commit(batch).await {
                Ok(()) => break,
                Err(error) => attempts.again(error.into()).await?,
            }
        }
        forget_oldest(&*memory, project).await?;
        Ok(())
    }

    /// The rows of the notes; those of a backend elsewhere are stored by then.
    async fn notes(&self, memory: &dyn MemoryBackend, due: &Due, extracted: &Extracted) -> fault::Result<Batch> {
        let (project, mut batch) = (self.record.scope(), Batch::new());
        // A model may name a key twice.
        let mut facts: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
        for fact in &extracted.facts {
            facts.entry(&fact.key).or_default().push(fact);
        }
        for facts in facts.values() {
            match note_facts(memory, &mut batch, &facts_of(project), due, facts).await {
                // The same notes would be refused again, and the run would never be remembered.
                Err(error @ (MemoryError::Denied(_) | MemoryError::Limit(_) | MemoryError::Invalid(_))) => {
                    tracing::warn!(run = %due.run, "a fact is not remembered: {error}");
                }
                other => other?,
            }
        }
        let episode = &extracted.episode;
        let note = MemoryNote::new(json!(episode), BY, due.run.as_str(), "", episode.trust, due.at_ms);
        // Under the time of its beginning: a run that continues and ends again has one episode.
        let place = format!("{:014}-{}", self.record.created_ms, due.run);
        put(memory, &mut batch, &episodes_of(project), note.entry(&place, Vec::new(), None)).await?;
        Ok(batch)
    }
}

/// Merges facts of one key into the existing one, as it is when they are written.
async fn note_facts(
    memory: &dyn MemoryBackend,
    batch: &mut Batch,
    namespace: &str,
    due: &Due,
    facts: &[&Fact],
) -> Result<(), MemoryError> {
    let Some(last) = facts.last() else { return Ok(()) };
    let until_ms = last.ttl_s.map(|ttl_s| due.at_ms.saturating_add(ttl_s.saturating_mul(1_000)));
    for _ in 0..NOTED_MAX {
        let before = memory.get(namespace, &last.key).await?;
        let over = |note: Option<MemoryNote>, fact: &&Fact| Some(note_of(due, fact).over(note));
        let Some(note) = facts.iter().fold(before.as_ref().map(MemoryNote::read), over) else { return Ok(()) };
        let entry = note.entry(&last.key, Vec::new(), until_ms);
        let kept = match memory.staged_replace(namespace, before.as_ref(), &entry)? {
            StagedEntry::Rows(staged) => {
                batch.ops.extend(staged.ops);
                true
            }
            StagedEntry::Changed => false,
            StagedEntry::Elsewhere => memory.replace(namespace, before.as_ref(), entry).await?,
        };
        if kept {
            return Ok(());
        }
    }
    let reason = format!("others note `{}` all the time", last.key);
    Err(MemoryError::Unavailable(Outage { reason, retry_after_ms: None }))
}

fn note_of(due: &Due, fact: &Fact) -> MemoryNote {
    let value = serde_json::Value::String(fact.value.clone());
    MemoryNote::new(value, BY, due.run.as_str(), &fact.step, fact.trust, due.at_ms)
}

/// Into the transaction when the backend is the store itself, and at once elsewhere.
async fn put(
    memory: &dyn MemoryBackend,
    batch: &mut Batch,
    namespace: &str,
    entry: MemoryEntry,
) -> Result<(), MemoryError> {
    match memory.staged(namespace, &entry)? {
        Some(staged) => batch.ops.extend(staged.ops),
        None => memory.put(namespace, entry).await?,
    }
    Ok(())
}

/// Deletes episodes beyond the cap, the oldest first.
async fn forget_oldest(memory: &dyn MemoryBackend, project: &str) -> Result<(), MemoryError> {
    let namespace = episodes_of(project);
    let keys = keys(memory, &namespace).await?;
    for key in keys.iter().take(keys.len().saturating_sub(EPISODES_KEPT)) {
        memory.delete(&namespace, key).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
