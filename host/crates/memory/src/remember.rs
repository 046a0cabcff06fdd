//! What is kept of a run when it ends: facts, an episode, and for how long.
//!
//! That a run is to be remembered is a row in the transaction that ends it, so no kill loses it. The model's answer is
//! made durable before anything is done with it, and the notes and the removal of the row are one transaction where
//! memory is in the store; elsewhere the notes are put again after a kill, which changes nothing: their keys and times
//! come from the row. So a kill repeats nothing that was finished; a request to the model that was cut off is made
//! again. What the model costs is held in the ledger of the run, and written there with its answer: where the run has
//! no room for it, the rules make do. A model or a backend that is away, or a model that takes longer than a minute, is
//! asked again when the next run of this data directory begins, and after three times the rules make do without the
//! model. Whoever waits for the run does not wait for any of this.

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
use longhaul_core::memory::{MemoryBackend, MemoryEntry, MemoryError, MemoryNote};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::supervisor::{InvocationTotals, Supervisor as _, Tries, UsageDelta};
use longhaul_core::{InvocationId, Outage, RunId};
use longhaul_harness::HarnessLimits;
use longhaul_models::set::{ModelSet, ProgramEnvironment};
use longhaul_records::ledger::Ledger;
use longhaul_records::record::{self, RunRecord};
use longhaul_security::trust;
use longhaul_toolbox::plugin_host::PluginHost;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How often a model is asked that does not answer.
const ATTEMPTS_MAX: u32 = 3;

/// How long a model may take for its answer. It writes at most 2,000 tokens; one that is slower than that is asked again
/// later, and in the end not at all.
const REPLY_MAX: Duration = Duration::from_secs(60);

/// How often a fact is made anew because somebody else noted the same key meanwhile, on another machine.
const NOTED_MAX: u32 = 20;

/// Runs that are remembered late at once.
const DUE_MAX: usize = 100;

/// Who remembers.
const BY: &str = "longhaul";

/// By what the ledger knows it.
const ACTION: &str = "remember";

/// A run that is to be remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Due {
    run: RunId,
    at_ms: u64,
    /// How it ended.
    status: String,
    attempts: u32,
    /// What the model answered, once it has.
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

/// Whether a run is still to be remembered.
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
    // What cannot be read of the configuration remembers nothing: a run must not stop for it.
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
    /// Held while a run that ended is remembered, so that nobody does it twice.
    alone: tokio::sync::Mutex<()>,
}

impl Rememberer {
    /// Over a data directory, with what the program gives to memory and to the models that it asks.
    pub fn new(host: Arc<PluginHost>, factory: Arc<dyn MemoryFactory>, environment: ProgramEnvironment) -> Self {
        Self { host, factory, environment, alone: tokio::sync::Mutex::default() }
    }

    /// Remembers what earlier processes did not come to. What goes wrong is told in the log and tried again later.
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
            tracing::warn!(%run, "what the run came to is remembered later: {error:#}");
        }
    }

    async fn remember(&self, run: &RunId) -> fault::Result<()> {
        let store = &*self.host.store;
        // A run that only rests does not wait for the model that another one is remembered with.
        if store.get(Table::States, &key(run))?.is_none() {
            return Ok(());
        }
        let _alone = self.alone.lock().await;
        let Some(bytes) = store.get(Table::States, &key(run))? else { return Ok(()) };
        let due: Due = serde_json::from_slice(&bytes).context("what is to be remembered is damaged")?;
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

/// Who remembers one run.
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
            // Counted before it leaves: a model that takes the process down with it is not asked for ever.
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

    /// What the model answered, and what that adds to the ledger.
    /// `again`: it may have been asked before.
    async fn ask(&self, name: &str, again: bool) -> fault::Result<(Reply, Batch)> {
        let (used, options) = (self.config.used_models(), &self.record.models);
        let environment = &self.with.environment;
        let models = ModelSet::build(&self.config.models, used, &self.record.directory, options, environment)?;
        let model = models.model(name).with_context(|| format!("there is no [models.{name}]"))?;
        let ledger = Ledger::open(Arc::clone(&self.with.host.store), &self.record.run)?;
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
            // To ask the same again would be answered the same.
            Err(error) => Ok((answered(format!("no answer: {error}"), 0), spent)),
        }
    }

    async fn put(&self, due: &Due, batch: Batch) -> fault::Result<()> {
        let batch = batch.put(Table::States, key(&due.run), serde_json::to_vec(due)?);
        Ok(self.with.host.store.commit(batch).await?)
    }

    /// Puts the notes, and last takes the row away.
    async fn keep(&self, due: &Due, extracted: Extracted) -> fault::Result<()> {
        let RunRecord { pins, directory, .. } = self.record;
        let project = self.record.scope();
        let memory = backend::open(&self.with.host, &*self.with.factory, self.config, pins, directory).await?;
        let mut batch = Batch::new();
        let namespace = facts_of(project);
        // Until they are durable, so that an agent that notes one of them meanwhile finds it there.
        let _turns = turns(&namespace, extracted.facts.iter().map(|fact| fact.key.as_str())).await;
        self.with.host.crash.reach("memory.before-put");
        for fact in &extracted.facts {
            match note_fact(&*memory, &mut batch, &namespace, due, fact).await {
                // To put the same again would be refused again, and nothing of the run would ever be remembered.
                Err(error @ (MemoryError::Denied(_) | MemoryError::Limit(_) | MemoryError::Invalid(_))) => {
                    tracing::warn!(run = %due.run, "a fact is not remembered: {error}");
                }
                other => other?,
            }
        }
        let episode = extracted.episode;
        let note = MemoryNote::new(json!(episode), BY, due.run.as_str(), "", episode.trust, due.at_ms);
        // By the time of its beginning: a run that goes on and ends again has one episode.
        let place = format!("{:014}-{}", self.record.created_ms, due.run);
        put(&*memory, &mut batch, &episodes_of(project), note.entry(&place, Vec::new(), None)).await?;
        self.with.host.crash.reach("memory.after-put");
        batch.push(Op::Delete(Table::States, key(&due.run)));
        self.with.host.store.commit(batch).await?;
        forget_oldest(&*memory, project).await?;
        Ok(())
    }
}

/// Over what is there, as it is when it is written.
async fn note_fact(
    memory: &dyn MemoryBackend,
    batch: &mut Batch,
    namespace: &str,
    due: &Due,
    fact: &Fact,
) -> Result<(), MemoryError> {
    let (run, value) = (due.run.as_str(), serde_json::Value::String(fact.value.clone()));
    let note = MemoryNote::new(value, BY, run, &fact.step, fact.trust, due.at_ms);
    let until_ms = fact.ttl_s.map(|ttl_s| due.at_ms.saturating_add(ttl_s.saturating_mul(1_000)));
    for _ in 0..NOTED_MAX {
        let before = memory.get(namespace, &fact.key).await?;
        let entry = note.clone().over(before.as_ref().map(MemoryNote::read)).entry(&fact.key, Vec::new(), until_ms);
        if let Some(staged) = memory.staged(namespace, &entry)? {
            batch.ops.extend(staged.ops);
            return Ok(());
        }
        if memory.replace(namespace, before.as_ref(), entry).await? {
            return Ok(());
        }
    }
    let reason = format!("others note `{}` all the time", fact.key);
    Err(MemoryError::Unavailable(Outage { reason, retry_after_ms: None }))
}

/// Into the transaction where the backend is the store itself, and at once elsewhere.
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

/// Episodes beyond the cap go, the oldest first.
async fn forget_oldest(memory: &dyn MemoryBackend, project: &str) -> Result<(), MemoryError> {
    let namespace = episodes_of(project);
    let keys = keys(memory, &namespace).await?;
    for key in keys.iter().take(keys.len().saturating_sub(EPISODES_KEPT)) {
        memory.delete(&namespace, key).await?;
    }
    Ok(())
}
