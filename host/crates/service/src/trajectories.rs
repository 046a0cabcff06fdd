//! Trajectories: the messages and calls of an agent, one trajectory for each of its invocations.
//!
//! All of it is in the journal already, so that nothing is kept twice: the facts of a list are read from there, and
//! the messages are heard once more while the invocation is replayed, which executes nothing. Stored are only what a
//! person adds: a rating and a correction. Refuses a rating out of its range, and ones of what is no agent's
//! invocation or has not ended.

use super::{Service, ServiceOperations, replay};
use longhaul_api::operations::TrajectoryOperations;
use longhaul_api::trajectories::{
    AnnotateTrajectory, Annotation, InvocationEnding, ListTrajectories, ShowTrajectory, Trajectory, TrajectoryStep,
};
use longhaul_capabilities::{ConversationUpdate, Watch};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::journal::{Began, JournalEntry};
use longhaul_core::model::{Message, MessagePart, MessageRole, ModelError, ModelReply, Usage};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::tool::{ToolError, ToolOutput};
use longhaul_core::work::{Outcome, Task};
use longhaul_core::{InvocationId, RunId};
use longhaul_records::contended::change;
use longhaul_records::invocation::JournaledResult;
use longhaul_records::record::{self, RunRecord};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The worst and the best rating.
pub const RATING_MIN: u8 = 1;
/// See [`RATING_MIN`].
pub const RATING_MAX: u8 = 5;

/// Bytes of a correction. An answer that is longer is a file, and belongs into the tree.
const CORRECTION_BYTES_MAX: usize = 256 << 10;

/// Entries of one journal that are read at once; more than an invocation may have.
const ENTRIES_MAX: usize = 100_000;

#[async_trait::async_trait]
impl TrajectoryOperations for ServiceOperations<'_> {
    async fn trajectories(&self, request: ListTrajectories) -> fault::Result<Vec<Trajectory>> {
        let ListTrajectories { run, wanted } = request;
        let service = self.0;
        let record = service.find(&run)?.record;
        let records = match wanted.all_runs {
            true => {
                let all = record::records(&*service.host.store)?;
                all.into_iter().filter(|one| one.scope() == record.scope()).collect()
            }
            false => vec![record],
        };
        let mut trajectories = Vec::new();
        for record in &records {
            for invocation in service.invocations(&record.run, None)? {
                trajectories.extend(service.facts(record, &invocation)?.filter(|one| wanted.takes(one)));
            }
        }
        Ok(trajectories)
    }

    async fn trajectory(&self, request: ShowTrajectory) -> fault::Result<Trajectory> {
        let ShowTrajectory { run, invocation } = request;
        let service = self.0;
        let record = service.find(&run)?.record;
        let mut found = service.named(&record, invocation)?;
        let recorder = Arc::new(ConversationRecorder::default());
        let watch = Arc::clone(&recorder) as Arc<dyn Watch>;
        if found.ending == InvocationEnding::Unfinished {
            let heard = replay::so_far(&service.host, &record, found.id.clone(), watch).await;
            let why = heard.map_or_else(|error| format!("{error:#}"), |()| "it has not ended".to_owned());
            found.incomplete = Some(why);
        } else {
            found.incomplete = match replay::one(&service.host, &record, found.id.clone(), None, watch).await {
                Ok(replayed) => replayed.difference,
                Err(error) => Some(format!("{error:#}")),
            };
        }
        found.conversations = recorder.conversations();
        Ok(found)
    }

    async fn annotate_trajectory(&self, request: AnnotateTrajectory) -> fault::Result<Trajectory> {
        let AnnotateTrajectory { run, invocation, rating, correction } = request;
        if let Some(rating) = rating.filter(|rating| !(RATING_MIN..=RATING_MAX).contains(rating)) {
            bail!("a rating is a number from {RATING_MIN}, bad, to {RATING_MAX}, good; this one is {rating}");
        }
        if let Some(bytes) = correction.as_ref().map(String::len).filter(|bytes| *bytes > CORRECTION_BYTES_MAX) {
            bail!("a correction has at most {CORRECTION_BYTES_MAX} bytes, this one {bytes}");
        }
        let service = self.0;
        let record = service.find(&run)?.record;
        let mut found = service.named(&record, invocation)?;
        if found.ending == InvocationEnding::Unfinished {
            bail!(Fault::conflict(format!(
                "`{}` has not ended, so there is nothing to judge; resume its run",
                found.id
            )));
        }
        let said = Annotation { rating, correction, at_ms: service.host.clock.now_ms() };
        found.annotation = annotate(&*service.host.store, &key(&record.run, &found.id), &said).await?;
        Ok(found)
    }
}

impl Service {
    /// The one that is meant, by the name of its invocation or the beginning of it.
    fn named(&self, record: &RunRecord, named: String) -> fault::Result<Trajectory> {
        let [id] = &self.invocations(&record.run, Some(named.clone()))?[..] else {
            bail!(Fault::internal("name one invocation"))
        };
        match self.facts(record, id)? {
            Some(found) => Ok(found),
            None => bail!(Fault::unknown(format!(
                "there is no trajectory `{named}`; `longhaul trajectories {}` lists them",
                record.run
            ))),
        }
    }

    /// The facts that the journal has of an agent's invocation; none for others.
    fn facts(&self, record: &RunRecord, id: &InvocationId) -> fault::Result<Option<Trajectory>> {
        let store = &*self.host.store;
        let Some(began) = longhaul_journal::began(store, id)?.filter(|began| began.export == "agent.run") else {
            return Ok(None);
        };
        let task = task(store, &began)?;
        let finished = longhaul_journal::finished(store, id)?;
        let kept = finished
            .as_ref()
            .map(|finished| serde_json::from_str::<JournaledResult<Outcome>>(&finished.result))
            .transpose()?;
        let (ending, answer, summary, confidence) = ended(kept);
        let mut found = Trajectory {
            id: id.clone(),
            run: record.run.clone(),
            project: record.project.clone(),
            agent: began.table,
            plugin: began.plugin,
            component: began.component,
            task: task.id,
            instruction: task.instruction,
            ending,
            answer,
            summary,
            confidence,
            steps: Vec::new(),
            model_calls: 0,
            usage: Usage::default(),
            summarizations: 0,
            from_ms: began.at_ms,
            until_ms: finished.map(|finished| finished.at_ms),
            annotation: annotation(store, &record.run, id)?,
            conversations: Vec::new(),
            incomplete: None,
        };
        for (number, entry) in longhaul_journal::entries(store, id, 0, ENTRIES_MAX)? {
            count(&mut found, number, &entry);
        }
        Ok(Some(found))
    }
}

/// Takes an entry of the journal into the facts.
fn count(found: &mut Trajectory, number: u32, entry: &JournalEntry) {
    let answer = entry.answered.as_ref().map(|answered| answered.answer.as_str()).unwrap_or_default();
    match entry.asked.name.as_str() {
        "conversation.complete" => {
            if let Ok(Ok(reply)) = serde_json::from_str::<Result<ModelReply, ModelError>>(answer) {
                found.model_calls += 1;
                found.usage = found.usage.plus(reply.usage);
            }
        }
        "conversation.compact" | "conversation.halve" | "conversation.reset" => found.summarizations += 1,
        name if name.starts_with("conversation.") => {}
        name => {
            let answer = serde_json::from_str::<Result<ToolOutput, ToolError>>(answer);
            found.steps.push(TrajectoryStep {
                entry: number,
                name: name.to_owned(),
                summary: entry.asked.summary.clone(),
                failed: matches!(answer, Ok(Err(_))),
            });
        }
    }
}

fn task(store: &dyn Store, began: &Began) -> fault::Result<Task> {
    let input = store.blob(&began.input)?.or_internal(|| "the store lost the input of the invocation")?;
    Ok(serde_json::from_slice(&input)?)
}

fn ended(kept: Option<JournaledResult<Outcome>>) -> (InvocationEnding, Option<String>, String, Option<f64>) {
    match kept {
        None => (InvocationEnding::Unfinished, None, String::new(), None),
        Some(JournaledResult::Returned(outcome)) => {
            (InvocationEnding::Returned, Some(outcome.output), outcome.summary, outcome.confidence)
        }
        Some(JournaledResult::Refused(error)) => (InvocationEnding::Refused, None, error.to_string(), None),
        Some(JournaledResult::Limited(hit)) => (InvocationEnding::Limited, None, hit.to_string(), None),
        Some(JournaledResult::Trapped(why)) => (InvocationEnding::Trapped, None, why, None),
    }
}

/// A row beside the state of its run.
fn key(run: &RunId, id: &InvocationId) -> Key {
    Key::of(run.as_str()).and("annotation").and(id.as_str())
}

fn annotation(store: &dyn Store, run: &RunId, id: &InvocationId) -> fault::Result<Annotation> {
    read_annotation(store.get(Table::States, &key(run, id))?.as_deref())
}

/// Adds what a person says to what was said before, and to what another person says meanwhile.
async fn annotate(store: &dyn Store, key: &Key, said: &Annotation) -> fault::Result<Annotation> {
    change(store, || {
        let row = store.get(Table::States, key)?;
        let before = read_annotation(row.as_deref())?;
        let annotation = Annotation {
            rating: said.rating.or(before.rating),
            correction: said.correction.clone().or(before.correction),
            at_ms: said.at_ms,
        };
        let bytes = serde_json::to_vec(&annotation)?;
        Ok((Batch::new().replace(Table::States, key.clone(), row.as_deref(), bytes), annotation))
    })
    .await
}

fn read_annotation(row: Option<&[u8]>) -> fault::Result<Annotation> {
    let read = |row: &[u8]| serde_json::from_slice(row).or_internal(|| "an annotation is damaged");
    Ok(row.map(read).transpose()?.unwrap_or_default())
}

/// Hears what is said in the conversations of a replay.
#[derive(Default)]
struct ConversationRecorder(Mutex<Vec<Vec<Value>>>);

impl ConversationRecorder {
    fn conversations(&self) -> Vec<Vec<Value>> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().filter(|messages| !messages.is_empty()).cloned().collect()
    }
}

impl Watch for ConversationRecorder {
    fn heard(&self, _invocation: &InvocationId, _text: &str) {}

    fn said(&self, conversation: usize, said: ConversationUpdate<'_>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= conversation {
            all.resize_with(conversation + 1, Vec::new);
        }
        match said {
            ConversationUpdate::System("") => {}
            ConversationUpdate::System(text) => all[conversation].push(json!({ "role": "system", "content": text })),
            ConversationUpdate::Message(message) => all[conversation].extend(chat(message)),
        }
    }
}

/// A message as chat endpoints have it: one for each answer of a tool.
pub(super) fn chat(message: &Message) -> Vec<Value> {
    let text: Vec<String> = message.parts.iter().filter_map(shown).collect();
    let role = match message.speaker {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    };
    let calls: Vec<Value> = message.parts.iter().filter_map(requested).collect();
    let mut said: Vec<Value> = message.parts.iter().filter_map(answered).collect();
    if !text.is_empty() || !calls.is_empty() {
        let mut own = json!({ "role": role, "content": text.join("\n") });
        if !calls.is_empty() {
            own["tool_calls"] = calls.into();
        }
        said.insert(0, own);
    }
    said
}

/// Words, and a placeholder for a picture.
fn shown(part: &MessagePart) -> Option<String> {
    match part {
        MessagePart::Text(text) => Some(text.clone()),
        MessagePart::Image { media_type, data } => Some(format!("[image {media_type}, {} bytes]", data.len())),
        MessagePart::Requested(_) | MessagePart::Answered { .. } | MessagePart::Thought(_) => None,
    }
}

fn requested(part: &MessagePart) -> Option<Value> {
    let MessagePart::Requested(call) = part else { return None };
    let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
    let name = format!("{}.{}", call.tool, call.function);
    Some(json!({ "id": call.id, "type": "function", "function": { "name": name, "arguments": arguments } }))
}

fn answered(part: &MessagePart) -> Option<Value> {
    let MessagePart::Answered { id, output, .. } = part else { return None };
    Some(json!({ "role": "tool", "tool_call_id": id, "content": output }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::{MemoryStore, ProcessStore};

    #[tokio::test]
    async fn a_rating_and_a_correction_that_come_at_once_are_both_kept() {
        let (store, key) = (Arc::new(MemoryStore::new()), Key::of("a"));
        let rates = Annotation { rating: Some(2), correction: None, at_ms: 1 };
        let corrects = Annotation { rating: None, correction: Some("42".into()), at_ms: 2 };
        let (one, other) = (ProcessStore::of(&store), ProcessStore::of(&store));
        let (rated, corrected) = tokio::join!(biased; annotate(&one, &key, &rates), annotate(&other, &key, &corrects));
        assert_eq!(rated.unwrap(), rates, "it was the first");
        let both = Annotation { rating: Some(2), ..corrects };
        assert_eq!(corrected.unwrap(), both);
        let stored = store.get(Table::States, &key).unwrap();
        assert_eq!(read_annotation(stored.as_deref()).unwrap(), both);
    }
}
