//! Recordings of invocations, which tests of plugins play: the input, the calls with their arguments, the answers.
//!
//! The journal has all but the arguments, which a replay says once more; it executes nothing. The values of known
//! secrets leave this module in no text. Refuses an invocation that no plugin carried out, and one whose replay differs
//! from its journal: a test of it would expect what never happened.

use super::journal::full_name;
use super::{Service, replay};
use longhaul_api::journal::{RecordInvocation, RecordedCall, RecordedInvocation};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::journal::{Began, Finished, JournalEntry};
use longhaul_core::redact::Redact;
use longhaul_core::tool::ToolCall;
use longhaul_core::watch::Watch;
use longhaul_core::{Digest, InvocationId, Limits};
use longhaul_journal::{AskedCall, AskedCalls};
use longhaul_plugins::manifest::PluginManifest;
use longhaul_records::record::RunRecord;
use serde_json::Value;
use std::sync::Arc;

/// Entries of one journal that are read at once; more than an invocation may have.
const ENTRIES_MAX: usize = 100_000;

/// Exports whose invocations are those of plugins.
const EXPORTS: [&str; 5] = ["planner.plan", "planner.replan", "planner.synthesize", "agent.run", "evaluator.judge"];

impl Service {
    /// Records an invocation.
    pub(super) async fn recorded_invocation(&self, request: RecordInvocation) -> fault::Result<RecordedInvocation> {
        let record = self.find(&request.run)?.record;
        let id = full_name(&record.run, &request.invocation);
        let store = &*self.host.store;
        let Some(began) = longhaul_journal::began(store, &id)? else {
            bail!(Fault::unknown(format!(
                "there is no invocation `{id}`; `longhaul journal {}` lists them",
                record.run
            )));
        };
        if !EXPORTS.contains(&began.export.as_str()) {
            bail!(Fault::invalid(format!(
                "`{id}` is `{}`, which longhaul itself did; only calls of plugins can be recorded",
                began.export
            )));
        }
        let finished = longhaul_journal::finished(store, &id)?;
        let asked = self.asked(&record, &id, &began, finished.as_ref()).await?;
        let entries = longhaul_journal::entries(store, &id, 0, ENTRIES_MAX)?;
        let (calls, cut_off) = calls(&id, asked, entries)?;
        let open = match &finished {
            None => Some("it has not ended".to_owned()),
            Some(finished) if finished.interrupted => Some("time, a cancel or the machine ended it".to_owned()),
            Some(_) => cut_off,
        };
        let result = finished.filter(|_| open.is_none()).map(|finished| finished.result);
        self.described(&record, id, began, calls, result, open)
    }

    /// The calls that a replay makes. One of an invocation that has not ended fails where its journal ends.
    async fn asked(
        &self,
        record: &RunRecord,
        id: &InvocationId,
        began: &Began,
        finished: Option<&Finished>,
    ) -> fault::Result<Vec<AskedCall>> {
        let asked = Arc::new(AskedCalls::default());
        let watch = Arc::clone(&asked) as Arc<dyn Watch>;
        let Some(finished) = finished else {
            replay::so_far(&self.host, record, id.clone(), watch).await?;
            return Ok(asked.all());
        };
        let difference = replay::difference_of(&self.host, record, id, began, finished, watch).await?;
        // The clock or a person ended it, so a replay ends elsewhere.
        if let Some(difference) = difference.filter(|_| !finished.interrupted) {
            bail!(Fault::conflict(format!("the replay of `{id}` differs from its journal: {difference}")));
        }
        Ok(asked.all())
    }

    fn described(
        &self,
        record: &RunRecord,
        id: InvocationId,
        began: Began,
        calls: Vec<RecordedCall>,
        result: Option<String>,
        open: Option<String>,
    ) -> fault::Result<RecordedInvocation> {
        let store = &*self.host.store;
        let input = store.blob(&began.input)?.or_internal(|| "the store lost the input of the invocation")?;
        let config = record.config()?;
        self.host.secrets.learn(&config, &record.directory);
        let part = config.part(&began.table);
        let mut recorded = RecordedInvocation {
            invocation: id,
            version: store.blob(&began.component)?.map(|bytes| version(&began.plugin, &bytes)).unwrap_or_default(),
            plugin: began.plugin,
            component: began.component,
            table: began.table,
            export: began.export,
            input: serde_json::from_slice(&input)?,
            seed: Digest::from(began.seed),
            at_ms: began.at_ms,
            context: began.context,
            limits: part.map_or_else(Limits::default, |part| config.limits_of(part)),
            models: part.map(|part| part.models.clone()).unwrap_or_default(),
            tools: part.map(|part| part.tools.clone()).unwrap_or_default(),
            agents: part.map(|part| part.agents.clone()).unwrap_or_default(),
            calls,
            result,
            open,
            secrets_replaced: 0,
        };
        let redactor = self.host.secrets.redactor();
        let mut without = WithoutSecrets { redactor: &redactor, replaced: 0 };
        without.recording(&mut recorded);
        recorded.secrets_replaced = without.replaced;
        Ok(recorded)
    }
}

/// The version that a component's manifest names; empty where it has none.
fn version(plugin: &str, bytes: &[u8]) -> String {
    let manifest = longhaul_engine::sections(plugin, bytes).ok().and_then(|sections| sections.manifest);
    manifest.and_then(|text| PluginManifest::parse(&text).ok()).map(|manifest| manifest.version).unwrap_or_default()
}

/// The answered calls up to the first without an answer, and the reason if there is such a call.
fn calls(
    id: &InvocationId,
    asked: Vec<AskedCall>,
    entries: Vec<(u32, JournalEntry)>,
) -> fault::Result<(Vec<RecordedCall>, Option<String>)> {
    let mut calls = Vec::new();
    let mut asked = asked.into_iter();
    for ((number, entry), expected) in entries.into_iter().zip(1..) {
        let answered = entry.answered.filter(|_| number == expected);
        let Some(answered) = answered else {
            return Ok((calls, Some(format!("the call of entry {expected} was not answered"))));
        };
        let Some(AskedCall { name, arguments, exact }) = asked.next() else {
            bail!(Fault::conflict(format!("the replay of `{id}` ended before entry {number} of its journal")));
        };
        calls.push(RecordedCall {
            name,
            arguments,
            decides: exact.map(|exact| serde_json::from_str::<ToolCall>(&exact)).transpose()?,
            asked_ms: entry.asked.at_ms,
            answered_ms: answered.at_ms,
            answer: serde_json::from_str(&answered.answer)
                .or_internal(|| format!("the answer of entry {number} of `{id}` is not JSON"))?,
        });
    }
    Ok((calls, None))
}

/// Removes the values of secrets from texts, and counts the texts.
struct WithoutSecrets<'a> {
    redactor: &'a dyn Redact,
    replaced: usize,
}

impl WithoutSecrets<'_> {
    fn recording(&mut self, recorded: &mut RecordedInvocation) {
        self.value(&mut recorded.input);
        for call in &mut recorded.calls {
            self.value(&mut call.arguments);
            self.value(&mut call.answer);
            if let Some(decides) = &mut call.decides {
                self.text(&mut decides.arguments);
            }
        }
        if let Some(result) = &mut recorded.result {
            self.text(result);
        }
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                let before = std::mem::take(fields);
                for (mut name, mut value) in before {
                    self.text(&mut name);
                    self.value(&mut value);
                    fields.insert(name, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &mut String) {
        let Some(mut stream) = self.redactor.stream() else { return };
        let mut clean = stream.push(text.as_bytes());
        clean.extend(stream.finish());
        if clean != text.as_bytes() {
            *text = String::from_utf8_lossy(&clean).into_owned();
            self.replaced += 1;
        }
    }
}
