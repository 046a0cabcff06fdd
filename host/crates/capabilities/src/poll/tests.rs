//! Two guests that wait: one live, one answered from the journal of the first.

use super::*;
use crate::setup::{InvocationScope, InvocationSetup, Models, Services, Watch};
use longhaul_core::event::WorkUsage;
use longhaul_core::grant::Grants;
use longhaul_core::journal::{CallVerdict, EffectQuestion, EntryHandle, Journal, JournalError, NewCall};
use longhaul_core::memory::Trust;
use longhaul_core::model::Model;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_core::tool::{
    CheckError, CheckInfo, Checks, Delegate, Delegated, Interrupted, ToolCall, ToolError, ToolInfo, ToolOutput, Tools,
    Verification,
};
use longhaul_core::work::{CheckReport, Task};
use longhaul_core::{Clock, Digest, InvocationId, Limits};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::Host as _;

pub(crate) const START_MS: u64 = 1_800_000_000_000;

/// Moves a second at each read, so that the sleeps of these tests are over when they begin.
struct Seconds(AtomicU64);

impl Clock for Seconds {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
}

/// One entry: the request, the answer, and its time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    summary: String,
    arguments: Digest,
    pub(crate) answered: Option<(String, u64)>,
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) entries: Vec<Entry>,
    asked: usize,
    time_ms: u64,
}

/// A journal that lives in memory, and is full after `entries_max`.
pub(crate) struct Fake {
    pub(crate) book: Mutex<Book>,
    clock: Arc<dyn Clock>,
    entries_max: usize,
    /// The store of what is committed along with answers; without one that is dropped.
    pub(crate) beside: Mutex<Option<Arc<dyn Store>>>,
}

#[async_trait::async_trait]
impl Journal for Fake {
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError> {
        let mut book = self.book.lock().unwrap();
        let index = book.asked;
        if index == self.entries_max {
            return Err(LimitHit::new("journal_entries_max", index as u64 + 1, index as u64).into());
        }
        book.asked += 1;
        let handle =
            EntryHandle { entry: u32::try_from(index).unwrap(), key: String::new(), attempt: 1, repeated: false };
        let Some(entry) = book.entries.get(index).cloned() else {
            book.entries.push(Entry {
                name: call.name,
                summary: call.summary,
                arguments: call.arguments,
                answered: None,
            });
            return Ok(CallVerdict::Go(handle));
        };
        assert_eq!((entry.name, entry.arguments), (call.name, call.arguments), "entry {index}");
        let Some((answer, at_ms)) = entry.answered else {
            assert!(!call.class.starts_durably(), "nobody can tell here what came of entry {index}");
            return Ok(CallVerdict::Go(handle));
        };
        book.time_ms = book.time_ms.max(at_ms);
        Ok(CallVerdict::Answered(answer))
    }

    async fn prepared(&self, _: &EntryHandle, _: String) -> Result<(), JournalError> {
        Ok(())
    }

    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError> {
        let beside = self.beside.lock().unwrap().clone();
        if let Some(store) = beside {
            store.commit(also).await?;
        }
        let at_ms = self.clock.now_ms();
        let mut book = self.book.lock().unwrap();
        book.time_ms = book.time_ms.max(at_ms);
        book.entries[handle.entry as usize].answered = Some((answer, at_ms));
        Ok(())
    }

    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion {
        let EntryHandle { entry, attempt, .. } = *handle;
        let invocation = InvocationId::from_text("r-1/generate");
        EffectQuestion { invocation, entry, text: why.to_owned(), approval: None, attempt }
    }

    fn time_ms(&self) -> u64 {
        self.book.lock().unwrap().time_ms
    }

    fn is_replaying(&self) -> bool {
        let book = self.book.lock().unwrap();
        book.entries.get(book.asked).is_some_and(|entry| entry.answered.is_some())
    }

    fn upcoming(&self) -> Option<(String, Digest)> {
        let book = self.book.lock().unwrap();
        book.entries.get(book.asked).map(|entry| (entry.name.to_owned(), entry.arguments))
    }
}

/// Does nothing: these guests only wait.
struct Nobody;

impl Models for Nobody {
    fn model(&self, _: &str) -> Option<Arc<dyn Model>> {
        None
    }
}

impl Watch for Nobody {
    fn heard(&self, _: &InvocationId, _: &str) {}
}

#[async_trait::async_trait]
impl Tools for Nobody {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        unreachable!()
    }
    async fn prepare(&self, _: &ToolCall, _: &str, _: u32) -> Result<String, ToolError> {
        unreachable!()
    }
    async fn verify(&self, _: &ToolCall, _: &str, _: &str, _: u32) -> Result<Verification, ToolError> {
        unreachable!()
    }
    async fn call(&self, _: &ToolCall, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        unreachable!()
    }
}

#[async_trait::async_trait]
impl Checks for Nobody {
    fn list(&self) -> Vec<CheckInfo> {
        unreachable!()
    }
    async fn run(&self, _: &str) -> Result<CheckReport, CheckError> {
        unreachable!()
    }
}

#[async_trait::async_trait]
impl longhaul_core::graph::Graphs for Nobody {
    async fn ask(
        &self,
        _: &InvocationId,
        _: &str,
        _: longhaul_core::graph::GraphOperation,
    ) -> longhaul_core::graph::StagedAnswer {
        unreachable!()
    }
}

#[async_trait::async_trait]
impl Delegate for Nobody {
    async fn run(&self, _: InvocationId, _: &str, _: Task, _: Trust) -> Result<Delegated, Interrupted> {
        unreachable!()
    }
}

#[async_trait::async_trait]
impl Store for Nobody {
    fn get(&self, _: Table, _: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn scan(&self, _: Table, _: &Key, _: Option<&[u8]>, _: usize) -> Result<Vec<Row>, StoreError> {
        unreachable!()
    }
    fn blob(&self, _: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        unreachable!()
    }
    async fn commit(&self, _: Batch) -> Result<(), StoreError> {
        unreachable!()
    }
}

/// A guest whose journal holds `entries` already and accepts `entries_max`.
pub(crate) fn guest(entries: Vec<Entry>, entries_max: usize, clock_ms: u64) -> (Ctx, Arc<Fake>) {
    let clock: Arc<dyn Clock> = Arc::new(Seconds(AtomicU64::new(clock_ms)));
    let book = Mutex::new(Book { entries, asked: 0, time_ms: START_MS });
    let journal = Arc::new(Fake { book, clock: Arc::clone(&clock), entries_max, beside: Mutex::default() });
    let services = Services {
        models: Arc::new(Nobody),
        tools: Arc::new(Nobody),
        checks: Arc::new(Nobody),
        delegate: Arc::new(Nobody),
        graphs: Arc::new(Nobody),
        approvals: Arc::new(longhaul_core::approval::AllFree),
        supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
        store: Arc::new(Nobody),
        memory: Arc::new(longhaul_core::memory::Embedded::new(Arc::new(Nobody), Arc::clone(&clock))),
        clock,
        watch: Arc::new(Nobody),
        exchange: None,
    };
    let ctx = Ctx::new(InvocationSetup {
        invocation: InvocationId::from_text("r-1/generate"),
        scope: InvocationScope { project: "p".into(), plugin: "code".into() },
        grants: Grants::default(),
        limits: Limits::default(),
        services,
        journal: Some(Arc::clone(&journal) as Arc<dyn Journal>),
        context: None,
        seed: [7; 32],
        console: None,
        placeholders: Arc::default(),
        told: None,
    });
    (ctx.unwrap(), journal)
}

fn borrow(pollable: &Resource<DynPollable>) -> Resource<DynPollable> {
    Resource::new_borrow(pollable.rep())
}

/// A program that waits for two moments and reads the clock between; returns what it read.
async fn program(ctx: &mut Ctx) -> Vec<u64> {
    let mut saw = vec![ctx.now().unwrap()];
    let late = ctx.subscribe_duration(5_000_000_000).unwrap();
    let soon = ctx.subscribe_duration(5_000_000).unwrap();
    for _ in 0..2 {
        let ready = poll::Host::poll(ctx, vec![borrow(&late), borrow(&soon)]).await.unwrap();
        saw.extend(ready.iter().map(|index| u64::from(*index)));
        saw.push(ctx.now().unwrap());
    }
    poll::HostPollable::drop(ctx, soon).unwrap();
    poll::HostPollable::block(ctx, borrow(&late)).await.unwrap();
    saw.push(ctx.now().unwrap());
    saw
}

#[tokio::test]
async fn the_earliest_deadline_wins_and_a_replay_sees_the_same_times() {
    let (mut live, journal) = guest(Vec::new(), 100, START_MS);
    let saw = program(&mut live).await;
    let (first, after, last) = (saw[0], saw[2], saw[saw.len() - 1]);
    // The second of the list is ready, twice, and the clock is past its deadline.
    assert_eq!((saw[1], saw[3]), (1, 1), "{saw:?}");
    assert!(after >= first + 5_000_000 && last >= first + 5_000_000_000, "{saw:?}");
    let entries = journal.book.lock().unwrap().entries.clone();
    // One sleep for each deadline: a past one costs no entry.
    let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["timer.until", "timer.sleep", "timer.until", "timer.sleep"]);

    // Years later, and with a journal that accepts nothing more.
    let (mut replayed, journal) = guest(entries.clone(), 4, START_MS * 2);
    assert_eq!(program(&mut replayed).await, saw);
    assert_eq!(journal.book.lock().unwrap().entries, entries);
}

#[tokio::test]
async fn a_sleep_that_was_cut_off_goes_on_with_the_same_deadline() {
    let (mut live, journal) = guest(Vec::new(), 100, START_MS);
    let saw = program(&mut live).await;
    let mut entries = journal.book.lock().unwrap().entries.clone();
    entries.truncate(2);
    entries[1].answered = None;
    // Past the deadline already: nothing is left to sleep, and nothing is asked anew.
    let (mut resumed, journal) = guest(entries.clone(), 100, START_MS + 2_000);
    assert_eq!(program(&mut resumed).await, saw);
    let finished = journal.book.lock().unwrap().entries.clone();
    assert_eq!((finished.len(), &finished[0], finished[1].arguments), (4, &entries[0], entries[1].arguments));
}

#[tokio::test]
async fn what_is_ready_needs_no_sleep() {
    let (mut ctx, journal) = guest(Vec::new(), 0, START_MS);
    let past = ctx.subscribe_instant(1).unwrap();
    let zero = ctx.subscribe_duration(0).unwrap();
    let never = ctx.subscribe_duration(u64::MAX).unwrap();
    let ready = poll::Host::poll(&mut ctx, vec![borrow(&never), borrow(&zero), borrow(&past)]).await.unwrap();
    assert_eq!(ready, [1, 2]);
    assert!(poll::HostPollable::ready(&mut ctx, borrow(&past)).await.unwrap());
    assert!(!poll::HostPollable::ready(&mut ctx, borrow(&never)).await.unwrap());
    assert!(journal.book.lock().unwrap().entries.is_empty());
}

#[tokio::test]
async fn a_wait_that_cannot_end_well_ends_the_invocation_at_once() {
    for (wait_ns, entries_max, limit) in [(u64::MAX, 100, "wall_ms_max"), (1_000_000, 0, "journal_entries_max")] {
        let (mut ctx, _) = guest(Vec::new(), entries_max, START_MS);
        let pollable = ctx.subscribe_duration(wait_ns).unwrap();
        let error = poll::HostPollable::block(&mut ctx, pollable).await.unwrap_err();
        let stop = error.downcast_ref::<Stop>().unwrap().to_string();
        assert!(stop.contains(limit), "{stop}");
        assert_eq!(ctx.used, WorkUsage::default());
    }
}

#[tokio::test]
async fn a_handle_that_is_used_again_forgets_its_deadline() {
    let (mut ctx, _) = guest(Vec::new(), 0, START_MS);
    for _ in 0..Limits::default().handles_max * 2 {
        let pollable = ctx.subscribe_duration(1).unwrap();
        poll::HostPollable::drop(&mut ctx, pollable).unwrap();
    }
    assert!(ctx.timers.is_empty());
}

/// A guest that waits for 5 ms on the interfaces of WASI, as any language's run time does.
const WAITING_GUEST: &str = r#"(component
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $p (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $p))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $outer))
        (export "pollable" (type $p (eq $outer)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
    (core func $block (canon lower (func $poll "[method]pollable.block")))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core module $m
        (import "" "block" (func $block (param i32)))
        (import "" "subscribe" (func $subscribe (param i64) (result i32)))
        (func (export "run") (call $block (call $subscribe (i64.const 5000000)))))
    (core instance $i (instantiate $m (with "" (instance
        (export "block" (func $block)) (export "subscribe" (func $subscribe))))))
    (func (export "run") (canon lift (core func $i "run"))))"#;

#[tokio::test]
async fn a_pure_world_is_linked_with_the_durable_clock_and_others_with_the_real_one() {
    let engine = wasmtime::Engine::default();
    let component = wasmtime::component::Component::new(&engine, wat::parse_str(WAITING_GUEST).unwrap()).unwrap();
    for (pure, entries) in [(true, 2), (false, 0)] {
        let mut linker = Linker::new(&engine);
        crate::wasi::add_to_linker(&mut linker, pure).unwrap();
        if !pure {
            crate::http::add_to_linker(&mut linker).unwrap();
        }
        let (ctx, journal) = guest(Vec::new(), 100, START_MS);
        let mut store = wasmtime::Store::new(&engine, ctx);
        let instance = linker.instantiate_async(&mut store, &component).await.unwrap();
        let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
        run.call_async(&mut store, ()).await.unwrap();
        assert_eq!(journal.book.lock().unwrap().entries.len(), entries, "pure: {pure}");
    }
}
