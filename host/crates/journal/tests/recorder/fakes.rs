//! Fakes: a store in memory that can stop, and a clock that the test moves.

use longhaul_core::journal::{
    Began, CallVerdict, EffectClass, EntryHandle, Finished, Journal as _, JournalError, NewCall, Resolution,
};
use longhaul_core::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use longhaul_core::{Clock, Digest, InvocationId, Limits};
use longhaul_journal::{Opened, Recorder, ResolveError, resolution};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A fake store: nothing of it is durable, and it accepts a given number of commits.
#[derive(Default)]
pub(crate) struct MemoryStore {
    data: Mutex<Data>,
    /// What it answers, one after the other, when it is asked for the rest of its lease; then it has none.
    leases: Mutex<VecDeque<u64>>,
}

#[derive(Clone, Default)]
struct Data {
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    commits: usize,
    blobs_written: usize,
    stop: Option<Stop>,
}

/// The moment at which a fake store stops, as a kill would stop a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// After this many commits; the next one is not made.
    Before(usize),
    /// The store stops within this commit: the commit is made, and its caller does not learn of it.
    Within(usize),
    /// Not for long: the next commit is not made, and those after it are.
    Once,
    /// Not at all: the next commit panics, and is not made.
    Panic,
}

impl MemoryStore {
    pub(crate) fn stop(&self, stop: Stop) {
        self.data.lock().unwrap().stop = Some(stop);
    }

    /// The store as a new process finds it.
    pub(crate) fn restart(&self) -> Arc<Self> {
        let data = self.data.lock().unwrap().clone();
        Arc::new(Self { data: Mutex::new(Data { stop: None, commits: 0, ..data }), leases: Mutex::default() })
    }

    pub(crate) fn lease(&self, left_ms: &[u64]) {
        *self.leases.lock().unwrap() = left_ms.iter().copied().collect();
    }

    pub(crate) fn commits(&self) -> usize {
        self.data.lock().unwrap().commits
    }

    pub(crate) fn blobs_written(&self) -> usize {
        self.data.lock().unwrap().blobs_written
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let data = self.data.lock().unwrap();
        data.rows.iter().map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    pub(crate) fn overwrite(&self, table: Table, key: &[u8], value: Vec<u8>) {
        self.data.lock().unwrap().rows.insert((table, key.to_vec()), value);
    }
}

impl Data {
    fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        if matches!(self.stop, Some(Stop::Before(commits)) if self.commits >= commits) || self.stopped() {
            return Err(killed());
        }
        if self.stop == Some(Stop::Once) {
            self.stop = None;
            return Err(killed());
        }
        let mut next = self.clone();
        batch.ops.into_iter().try_for_each(|op| next.apply(op))?;
        next.commits += 1;
        *self = next;
        if self.stopped() { Err(killed()) } else { Ok(()) }
    }

    fn stopped(&self) -> bool {
        matches!(self.stop, Some(Stop::Within(commits)) if self.commits >= commits)
    }

    fn apply(&mut self, op: Op) -> Result<(), StoreError> {
        let held = match &op {
            Op::Insert(table, key, _) => !self.rows.contains_key(&(*table, key.as_bytes().to_vec())),
            Op::Swap(table, key, old, _) => {
                self.rows.get(&(*table, key.as_bytes().to_vec())).is_some_and(|value| Digest::of(value) == *old)
            }
            _ => true,
        };
        match op {
            Op::Put(table, key, _) | Op::Insert(table, key, _) | Op::Swap(table, key, ..) if !held => {
                return Err(StoreError::Conflict { table, key: String::from_utf8_lossy(key.as_bytes()).into_owned() });
            }
            Op::Put(table, key, value) | Op::Insert(table, key, value) | Op::Swap(table, key, _, value) => {
                self.rows.insert((table, key.as_bytes().to_vec()), value);
            }
            Op::Delete(table, key) => drop(self.rows.remove(&(table, key.as_bytes().to_vec()))),
            Op::Blob(digest, bytes) => {
                self.blobs_written += usize::from(self.blobs.insert(digest, bytes).is_none());
            }
        }
        Ok(())
    }
}

/// Stores a person's resolution of an entry.
pub(crate) async fn resolve(store: &dyn Store, entry: u32, said: Resolution) -> Result<(), ResolveError> {
    let op = resolution(store, &invocation(), entry, &said)?;
    store.commit(Batch { ops: vec![op] }).await.unwrap();
    Ok(())
}

fn killed() -> StoreError {
    StoreError::Failed { path: "memory".to_owned(), detail: "killed".to_owned() }
}

#[async_trait::async_trait]
impl Store for MemoryStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.data.lock().unwrap().rows.get(&(table, key.as_bytes().to_vec())).cloned())
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let data = self.data.lock().unwrap();
        let rows = data.rows.iter().filter(|((of, key), _)| *of == table && key.starts_with(prefix.as_bytes()));
        let rows = rows.filter(|((_, key), _)| after.is_none_or(|after| key.as_slice() > after));
        Ok(rows.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.data.lock().unwrap().blobs.get(digest).cloned())
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        // As a disk does, it lets others run meanwhile.
        tokio::task::yield_now().await;
        let panics = self.data.lock().unwrap().stop.take_if(|stop| *stop == Stop::Panic).is_some();
        assert!(!panics, "a defect of the store");
        self.data.lock().unwrap().commit(batch)
    }

    fn lease_left_ms(&self) -> Option<u64> {
        self.leases.lock().unwrap().pop_front()
    }
}

/// A fake clock, which only the test moves.
pub(crate) struct HandClock(AtomicU64);

impl HandClock {
    pub(crate) fn at(ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(ms)))
    }

    pub(crate) fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The time 2026-11-22T01:00:00Z.
pub(crate) const START_MS: u64 = 1_795_309_200_000;

/// A host process: a store, a clock and the caps of one invocation.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) limits: Limits,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self { store: Arc::default(), clock: HandClock::at(START_MS), limits: Limits::default() }
    }

    /// Another process with the durable data.
    pub(crate) fn restart(&self) -> Self {
        Self { store: self.store.restart(), ..self.clone() }
    }

    pub(crate) fn open(&self) -> Result<Opened, JournalError> {
        Recorder::open(self.store.clone(), self.clock.clone(), invocation(), began(), &self.limits)
    }

    #[track_caller]
    pub(crate) fn run(&self) -> Recorder {
        match self.open().unwrap() {
            Opened::Running(recorder) => recorder,
            Opened::Finished { .. } => panic!("it has finished"),
        }
    }

    /// The journal of another invocation, which has not ended.
    #[track_caller]
    pub(crate) fn run_as(&self, invocation: &InvocationId) -> Recorder {
        match Recorder::open(self.store.clone(), self.clock.clone(), invocation.clone(), began(), &self.limits).unwrap()
        {
            Opened::Running(recorder) => recorder,
            Opened::Finished { .. } => panic!("{invocation} has finished"),
        }
    }

    /// Commits these changes.
    pub(crate) async fn commit(&self, ops: Vec<Op>) {
        self.store.commit(Batch { ops }).await.unwrap();
    }

    #[track_caller]
    pub(crate) fn replay(&self, fingerprint: &str) -> Recorder {
        Recorder::replay(self.store.clone(), invocation(), fingerprint, &self.limits).unwrap().unwrap()
    }
}

pub(crate) fn invocation() -> InvocationId {
    InvocationId::from_text("r-3f9c02d1a4be/f1/1/generate")
}

pub(crate) fn began() -> Began {
    Began {
        plugin: "coder".to_owned(),
        table: "agents.coder".to_owned(),
        component: Digest::of(b"component"),
        export: "agent.run".to_owned(),
        input: Digest::of(b"input"),
        seed: [7; 32],
        fingerprint: "engine 1".to_owned(),
        context: None,
        told: None,
        at_ms: START_MS,
    }
}

pub(crate) fn finished(result: &str) -> Finished {
    Finished { result: result.to_owned(), fuel_used: 10, interrupted: false, at_ms: START_MS }
}

pub(crate) fn call(class: EffectClass, arguments: &str) -> NewCall {
    NewCall {
        name: "tools.call",
        summary: arguments.to_owned(),
        arguments: Digest::of(arguments.as_bytes()),
        class,
        fuel_used: 1_000,
    }
}

/// Expects a new call.
#[track_caller]
pub(crate) fn go(next: CallVerdict) -> EntryHandle {
    match next {
        CallVerdict::Go(handle) => handle,
        other => panic!("it should go: {other:?}"),
    }
}

pub(crate) async fn asked(recorder: &Recorder, class: EffectClass, arguments: &str) -> EntryHandle {
    go(recorder.ask(call(class, arguments)).await.unwrap())
}

/// The journal's verdict, in a line for a table.
pub(crate) fn said(next: &Result<CallVerdict, JournalError>) -> String {
    let of =
        |handle: &EntryHandle| format!("attempt {}{}", handle.attempt, if handle.repeated { ", repeated" } else { "" });
    match next {
        Ok(CallVerdict::Answered(answer)) => format!("answered {answer}"),
        Ok(CallVerdict::Go(handle)) => format!("go, {}", of(handle)),
        Ok(CallVerdict::Verify(handle, prepared)) => format!("verify {prepared}, {}", of(handle)),
        Ok(CallVerdict::Happened(handle, output)) => format!("happened {output}, {}", of(handle)),
        Ok(CallVerdict::Skipped(handle)) => format!("skipped, {}", of(handle)),
        Err(JournalError::Parked(question)) => format!("parked at entry {}", question.entry),
        Err(why) => format!("error: {why}"),
    }
}
