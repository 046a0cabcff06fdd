//! The stored rows of agents, schedules and tasks, and their changes in a step of the scheduler. The keys are in the
//! table of `tables.rs` of `longhaul-store`.

use crate::work::BY_HAND;
use longhaul_agents::{AgentRecord, Artifact, ArtifactHead, ExecutionResult, VERSIONS_MAX};
use longhaul_api::agents::{ScheduleTally, StatusFilter};
use longhaul_core::Name;
use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_notify::{self as notify, Notifier};
use longhaul_schedule::{FireOutcome, ScheduledTask, SchedulerAction, SchedulerState, Skipped, TaskId, TaskStatus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Ended tasks that are kept of one agent, and of all; the oldest are deleted.
pub(super) const KEPT_MAX: u64 = 5_000;
const KEPT_MAX_ALL: u64 = 100_000;

/// Bytes of each output that are kept with a task.
const OUTPUT_KEPT: usize = 8_000;

/// Rows about skipped fires of one schedule. Their counts are kept for ever.
const SKIPPED_MAX: u64 = 1_000;

/// Rows that one read returns.
const PAGE_ROWS: usize = 1_000;

/// Stands for all agents in an index.
const ALL: &str = "";

/// A task that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EndedRow {
    pub(super) task: ScheduledTask,
    pub(super) ended_ms: u64,
}

/// The numbers of ended tasks that are kept.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TaskCounts {
    pub(super) completed: u64,
    pub(super) failed: u64,
}

impl TaskCounts {
    pub(super) fn of(&self, status: Option<StatusFilter>) -> u64 {
        match status {
            None => self.completed + self.failed,
            Some(StatusFilter::Completed) => self.completed,
            Some(StatusFilter::Failed) => self.failed,
            Some(StatusFilter::Pending | StatusFilter::Running) => 0,
        }
    }

    fn place(&mut self, status: TaskStatus) -> &mut u64 {
        if status == TaskStatus::Completed { &mut self.completed } else { &mut self.failed }
    }
}

/// The outcomes of the fires of a schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct FireCounts {
    tally: ScheduleTally,
    /// The number of the next row about a skipped fire.
    next_skipped: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredSettings {
    concurrent_max: u32,
}

pub(super) fn agent_key(name: &Name) -> Key {
    Key::of("agent").and(name.as_str())
}

pub(super) fn head_key(name: &Name) -> Key {
    Key::of("artifact").and(name.as_str())
}

fn versions(name: &Name) -> Key {
    Key::of("version").and(name.as_str())
}

fn schedule_key(name: &Name) -> Key {
    Key::of("schedule").and(name.as_str())
}

fn task_key(kind: &str, id: &TaskId) -> Key {
    Key::of(kind).and(id.as_str())
}

fn index_key(of: &str, row: &EndedRow) -> Key {
    index(of, row.task.status).number(u64::MAX - row.ended_ms).and(row.task.id.as_str())
}

fn index(of: &str, status: TaskStatus) -> Key {
    Key::of("index").and(of).and(status.word())
}

/// Agents in the order of their names.
pub(super) fn agents(store: &dyn Store) -> fault::Result<Vec<AgentRecord>> {
    let record = |(_, bytes): (Vec<u8>, Vec<u8>)| {
        serde_json::from_slice(&bytes).or_internal(|| "the record of an agent is damaged")
    };
    all(store, Table::Agents, &Key::of("agent"))?.into_iter().map(record).collect()
}

pub(super) fn agent(store: &dyn Store, name: &Name) -> fault::Result<Option<AgentRecord>> {
    let found = store.get(Table::Agents, &agent_key(name))?;
    Ok(found.map(|bytes| AgentRecord::read(name, &bytes)).transpose()?)
}

pub(super) fn head(store: &dyn Store, name: &Name) -> fault::Result<ArtifactHead> {
    Ok(ArtifactHead::read(name, store.get(Table::Agents, &head_key(name))?.as_deref())?)
}

/// The last stored version of an artifact, even if its head cannot be read.
pub(super) fn last_version(store: &dyn Store, name: &Name) -> fault::Result<u64> {
    let rows = store.last(Table::Agents, &versions(name), 1)?;
    Ok(rows.first().and_then(|(key, _)| Key::last_number(key)).unwrap_or_default())
}

/// The stored, readable versions, the newest first.
pub(super) fn artifacts(store: &dyn Store, name: &Name) -> fault::Result<Vec<Artifact>> {
    let most = usize::try_from(VERSIONS_MAX).unwrap_or(usize::MAX);
    let rows = store.last(Table::Agents, &versions(name), most)?;
    Ok(rows.into_iter().filter_map(|(_, bytes)| serde_json::from_slice(&bytes).ok()).collect())
}

pub(super) fn skipped(store: &dyn Store, name: &Name, limit: usize) -> fault::Result<Vec<Skipped>> {
    let rows = store.last(Table::Schedules, &Key::of("skipped").and(name.as_str()), limit)?;
    let row =
        |(_, bytes): (Vec<u8>, Vec<u8>)| serde_json::from_slice(&bytes).or_internal(|| "what was skipped is damaged");
    rows.into_iter().map(row).collect()
}

pub(super) fn tally(store: &dyn Store, name: &Name) -> fault::Result<ScheduleTally> {
    Ok(book(store, name)?.tally)
}

fn book(store: &dyn Store, name: &Name) -> fault::Result<FireCounts> {
    Ok(get(store, &Key::of("tally").and(name.as_str()))?.unwrap_or_default())
}

pub(super) fn counts(store: &dyn Store, agent: Option<&Name>) -> fault::Result<TaskCounts> {
    counts_of(store, agent.map_or(ALL, Name::as_str))
}

fn counts_of(store: &dyn Store, of: &str) -> fault::Result<TaskCounts> {
    Ok(get(store, &Key::of("counts").and(of))?.unwrap_or_default())
}

pub(super) fn ended(store: &dyn Store, id: &TaskId) -> fault::Result<Option<EndedRow>> {
    get(store, &task_key("ended", id))
}

/// Ended tasks, the newest first, without the first `offset`.
pub(super) fn ended_tasks(
    store: &dyn Store,
    agent: Option<&Name>,
    status: Option<StatusFilter>,
    limit: usize,
    offset: usize,
) -> fault::Result<Vec<EndedRow>> {
    let of = agent.map_or(ALL, Name::as_str);
    let statuses = [TaskStatus::Completed, TaskStatus::Failed];
    let mut found: Vec<(Vec<u8>, TaskId)> = Vec::new();
    for one in statuses.into_iter().filter(|one| status.is_none_or(|status| status.is(*one))) {
        let prefix = index(of, one);
        let rows = store.scan(Table::Schedules, &prefix, None, limit.saturating_add(offset))?;
        // The part after the status sorts in the order of the tasks.
        found.extend(rows.into_iter().map(|(key, id)| {
            let order = key[prefix.as_bytes().len()..].to_vec();
            (order, TaskId::from_text(String::from_utf8_lossy(&id)))
        }));
    }
    found.sort();
    let page = found.into_iter().skip(offset).take(limit);
    page.filter_map(|(_, id)| ended(store, &id).transpose()).collect()
}

pub(super) fn results(store: &dyn Store, id: &TaskId) -> fault::Result<BTreeMap<u64, ExecutionResult>> {
    let rows = all(store, Table::Schedules, &task_key("result", id))?;
    let row = |(key, bytes): (Vec<u8>, Vec<u8>)| {
        let result = serde_json::from_slice(&bytes).or_internal(|| "the result of an attempt is damaged")?;
        Ok::<_, Fault>((Key::last_number(&key).unwrap_or_default(), result))
    };
    rows.into_iter().map(row).collect()
}

/// Tasks by hand that have not ended.
pub(super) fn direct(store: &dyn Store) -> fault::Result<Vec<ScheduledTask>> {
    tasks_of(store, "direct")
}

fn tasks_of(store: &dyn Store, kind: &str) -> fault::Result<Vec<ScheduledTask>> {
    let task = |(_, bytes): (Vec<u8>, Vec<u8>)| serde_json::from_slice(&bytes).or_internal(|| "a task is damaged");
    all(store, Table::Schedules, &Key::of(kind))?.into_iter().map(task).collect()
}

/// The scheduler's state.
pub(super) fn load(store: &dyn Store) -> fault::Result<SchedulerState> {
    let mut state = SchedulerState::default();
    if let Some(StoredSettings { concurrent_max }) = get(store, &Key::of("settings"))? {
        state.concurrent_max = concurrent_max.max(1);
    }
    for (_, bytes) in all(store, Table::Schedules, &Key::of("schedule"))? {
        let entry: longhaul_schedule::ScheduleEntry =
            serde_json::from_slice(&bytes).or_internal(|| "a schedule is damaged")?;
        state.schedules.insert(entry.schedule.name.clone(), entry);
    }
    for task in tasks_of(store, "open")? {
        state.tasks.insert(task.id.clone(), task);
    }
    let inactive = agents(store)?.into_iter().filter(|record| !record.agent.active);
    state.inactive = inactive.map(|record| record.agent.name).collect();
    Ok(state)
}

fn all(store: &dyn Store, table: Table, prefix: &Key) -> fault::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut rows = Vec::new();
    loop {
        let after = rows.last().map(|(key, _): &(Vec<u8>, Vec<u8>)| key.clone());
        let page = store.scan(table, prefix, after.as_deref(), PAGE_ROWS)?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

fn get<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> fault::Result<Option<T>> {
    let found = store.get(Table::Schedules, key)?;
    let read = |bytes: Vec<u8>| {
        serde_json::from_slice(&bytes)
            .or_internal(|| format!("what is stored as `{}` is damaged", String::from_utf8_lossy(key.as_bytes())))
    };
    found.map(read).transpose()
}

/// A transaction under construction.
pub(super) struct ScheduleTransaction<'a> {
    store: &'a dyn Store,
    now_ms: u64,
    batch: Batch,
    counts: BTreeMap<String, TaskCounts>,
    books: BTreeMap<Name, FireCounts>,
    dropped: BTreeSet<TaskId>,
    kept_max: u64,
}

impl<'a> ScheduleTransaction<'a> {
    pub(super) fn new(store: &'a dyn Store, now_ms: u64) -> Self {
        let (counts, books, dropped) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { store, now_ms, batch: Batch::new(), counts, books, dropped, kept_max: KEPT_MAX }
    }

    /// Sets another number of tasks that are kept of one agent.
    #[cfg(test)]
    pub(super) fn keeping(self, kept_max: u64) -> Self {
        Self { kept_max, ..self }
    }

    /// The finished batch.
    pub(super) fn finish(mut self) -> fault::Result<Batch> {
        for (of, counts) in std::mem::take(&mut self.counts) {
            self.put(Key::of("counts").and(&of), &counts)?;
        }
        for (name, book) in std::mem::take(&mut self.books) {
            self.put(Key::of("tally").and(name.as_str()), &book)?;
        }
        Ok(self.batch)
    }

    /// Adds the difference between two states.
    pub(super) fn state(&mut self, before: &SchedulerState, after: &SchedulerState) -> fault::Result<()> {
        if before.concurrent_max != after.concurrent_max {
            self.put(Key::of("settings"), &StoredSettings { concurrent_max: after.concurrent_max })?;
        }
        for (name, entry) in &after.schedules {
            if before.schedules.get(name) != Some(entry) {
                self.put(schedule_key(name), entry)?;
            }
        }
        for name in before.schedules.keys().filter(|name| !after.schedules.contains_key(*name)) {
            self.delete(schedule_key(name));
        }
        for (id, task) in &after.tasks {
            if before.tasks.get(id) != Some(task) {
                self.put(task_key("open", id), task)?;
            }
        }
        for id in before.tasks.keys().filter(|id| !after.tasks.contains_key(*id)) {
            self.delete(task_key("open", id));
        }
        Ok(())
    }

    /// Adds the rows for the actions that have to be stored.
    pub(super) fn take(&mut self, actions: &[SchedulerAction]) -> fault::Result<()> {
        for action in actions {
            match action {
                SchedulerAction::Start(task) if task.is_retry() => self.book(&task.schedule)?.tally.retries += 1,
                SchedulerAction::Start(_) | SchedulerAction::Note(FireOutcome::Task(_)) => {}
                SchedulerAction::Note(FireOutcome::Skipped(skipped)) => self.skip(skipped)?,
                SchedulerAction::Ended(task) => {
                    self.end(task.clone())?;
                    if task.attempts.is_empty() {
                        // A withdrawn task is stored as skipped.
                        continue;
                    }
                    let tally = &mut self.book(&task.schedule)?.tally;
                    tally.tasks += 1;
                    *if task.status == TaskStatus::Completed { &mut tally.completed } else { &mut tally.failed } += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds the notifications for tasks that these actions end for good because an attempt failed with this result. A
    /// task by hand, whose caller has the result, and a withdrawn one make no notification.
    pub(super) fn tell(
        &mut self,
        notifier: &Notifier,
        actions: &[SchedulerAction],
        result: &ExecutionResult,
    ) -> fault::Result<()> {
        for action in actions {
            let SchedulerAction::Ended(task) = action else { continue };
            if task.status == TaskStatus::Failed && task.schedule.as_str() != BY_HAND {
                let batch = std::mem::take(&mut self.batch);
                self.batch = notify::put_notification_of(batch, notifier, task, result, self.now_ms)?;
            }
        }
        Ok(())
    }

    fn skip(&mut self, skipped: &Skipped) -> fault::Result<()> {
        let book = self.book(&skipped.schedule)?;
        *book.tally.skipped.entry(skipped.why.word().to_owned()).or_default() += u64::from(skipped.count);
        let number = book.next_skipped;
        book.next_skipped += 1;
        let rows = Key::of("skipped").and(skipped.schedule.as_str());
        if let Some(old) = number.checked_sub(SKIPPED_MAX) {
            self.delete(rows.clone().number(old));
        }
        self.put(rows.number(number), skipped)
    }

    /// Adds the beginning of a task by hand.
    pub(super) fn begin_by_hand(&mut self, task: &ScheduledTask) -> fault::Result<()> {
        self.put(task_key("direct", &task.id), task)
    }

    /// Adds the end of a task by hand.
    pub(super) fn ended_by_hand(&mut self, task: ScheduledTask) -> fault::Result<()> {
        self.delete(task_key("direct", &task.id));
        self.end(task)
    }

    fn end(&mut self, task: ScheduledTask) -> fault::Result<()> {
        // A schedule that was recreated under a clock that went back may fire at a moment that had its task already.
        if let Some(earlier) = ended(self.store, &task.id)?.filter(|row| !self.dropped.contains(&row.task.id)) {
            self.drop_ended(&earlier)?;
        }
        let row = EndedRow { ended_ms: self.now_ms, task };
        for of in [row.task.agent.to_string(), ALL.to_owned()] {
            self.batch.push(Op::Put(Table::Schedules, index_key(&of, &row), row.task.id.as_str().as_bytes().to_vec()));
            *self.counts(&of)?.place(row.task.status) += 1;
            let max = if of == ALL { KEPT_MAX_ALL } else { self.kept_max };
            if self.counts(&of)?.of(None) > max {
                self.drop_oldest(&of)?;
            }
        }
        self.put(task_key("ended", &row.task.id), &row)
    }

    fn drop_oldest(&mut self, of: &str) -> fault::Result<()> {
        let mut oldest: Option<EndedRow> = None;
        for status in [TaskStatus::Completed, TaskStatus::Failed] {
            let rows = self.store.last(Table::Schedules, &index(of, status), self.dropped.len() + 1)?;
            let ids = rows.into_iter().map(|(_, id)| TaskId::from_text(String::from_utf8_lossy(&id)));
            let Some(id) = ids.into_iter().find(|id| !self.dropped.contains(id)) else { continue };
            let Some(row) = ended(self.store, &id)? else { continue };
            if oldest.as_ref().is_none_or(|oldest| row.ended_ms < oldest.ended_ms) {
                oldest = Some(row);
            }
        }
        match oldest {
            Some(row) => {
                self.drop_results(&row.task.id)?;
                self.drop_ended(&row)
            }
            None => Ok(()),
        }
    }

    /// Deletes an ended task; the results of its attempts stay.
    pub(super) fn drop_ended(&mut self, row: &EndedRow) -> fault::Result<()> {
        for of in [row.task.agent.to_string(), ALL.to_owned()] {
            self.delete(index_key(&of, row));
            let place = self.counts(&of)?.place(row.task.status);
            *place = place.saturating_sub(1);
        }
        self.delete(task_key("ended", &row.task.id));
        self.dropped.insert(row.task.id.clone());
        Ok(())
    }

    /// Restores the task to its state before it failed.
    pub(super) fn revive(&mut self, row: &EndedRow) -> fault::Result<()> {
        self.drop_ended(row)?;
        if row.task.schedule.as_str() != BY_HAND && !row.task.attempts.is_empty() {
            let tally = &mut self.book(&row.task.schedule)?.tally;
            tally.tasks = tally.tasks.saturating_sub(1);
            tally.failed = tally.failed.saturating_sub(1);
        }
        Ok(())
    }

    fn drop_results(&mut self, id: &TaskId) -> fault::Result<()> {
        for (key, _) in all(self.store, Table::Schedules, &task_key("result", id))? {
            self.delete(Key::from_bytes(key));
        }
        Ok(())
    }

    /// Adds the result of a task's last attempt, with a part of its output.
    pub(super) fn result(&mut self, task: &ScheduledTask, result: &ExecutionResult) -> fault::Result<()> {
        let number = task.attempts.len() as u64;
        self.put(task_key("result", &task.id).number(number), &result.kept(OUTPUT_KEPT))
    }

    /// Adds the current version of a record.
    pub(super) fn agent(&mut self, record: &AgentRecord) -> fault::Result<()> {
        let bytes = serde_json::to_vec(record)?;
        self.batch.push(Op::Put(Table::Agents, agent_key(&record.agent.name), bytes));
        Ok(())
    }

    /// Removes an agent, with all its artifacts.
    pub(super) fn remove_agent(&mut self, name: &Name) -> fault::Result<()> {
        self.batch.push(Op::Delete(Table::Agents, agent_key(name)));
        self.batch.push(Op::Delete(Table::Agents, head_key(name)));
        for (key, _) in all(self.store, Table::Agents, &versions(name))? {
            self.batch.push(Op::Delete(Table::Agents, Key::from_bytes(key)));
        }
        Ok(())
    }

    /// Content that a record names by its digest.
    pub(super) fn blob(&mut self, bytes: Vec<u8>) {
        self.batch.blob(bytes);
    }

    /// Adds an agent's current artifact, and the versions before.
    pub(super) fn head(&mut self, name: &Name, head: &ArtifactHead) -> fault::Result<()> {
        self.batch.push(Op::Put(Table::Agents, head_key(name), serde_json::to_vec(head)?));
        if let Some(artifact) = &head.artifact {
            let bytes = serde_json::to_vec(artifact)?;
            self.batch.push(Op::Put(Table::Agents, versions(name).number(head.version), bytes));
        }
        if let Some(old) = head.version.checked_sub(VERSIONS_MAX) {
            self.batch.push(Op::Delete(Table::Agents, versions(name).number(old)));
        }
        Ok(())
    }

    fn counts(&mut self, of: &str) -> fault::Result<&mut TaskCounts> {
        if !self.counts.contains_key(of) {
            self.counts.insert(of.to_owned(), counts_of(self.store, of)?);
        }
        Ok(self.counts.entry(of.to_owned()).or_default())
    }

    fn book(&mut self, name: &Name) -> fault::Result<&mut FireCounts> {
        if !self.books.contains_key(name) {
            self.books.insert(name.clone(), book(self.store, name)?);
        }
        Ok(self.books.entry(name.clone()).or_default())
    }

    fn put(&mut self, key: Key, value: &impl Serialize) -> fault::Result<()> {
        self.batch.push(Op::Put(Table::Schedules, key, serde_json::to_vec(value)?));
        Ok(())
    }

    fn delete(&mut self, key: Key) {
        self.batch.push(Op::Delete(Table::Schedules, key));
    }
}
