//! What a run spends, and what it still may: one book a run, with a row for each invocation and sub-agent.
//!
//! A row is written in the transaction of the answer that was paid for, so the book is as old as the journals and
//! survives a kill with them. A call of a model holds the most that it may cost before it leaves: calls side by side
//! cannot pass a cap together. What is held is not stored, since a call that a kill cut off is made, and held for,
//! again. Refuses to guess a price: a model without one costs nothing.

use super::record::RunRecord;
use anyhow::Context as _;
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::supervisor::{Reservation, Spent, Supervisor};
use longhaul_core::{InvocationId, LimitHit, RunId};
use longhaul_harness::HarnessLimits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Rows of one run that are read: more invocations than any run has.
const ROWS_MAX: usize = 1_000_000;

/// Corrections that an invocation hears at once; the others it hears at its next step.
const CORRECTIONS_MAX: usize = 20;

/// One row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Whose.
    pub invocation: InvocationId,
    /// What it spent, in all its attempts.
    pub spent: Spent,
}

/// The book of a run, as it stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LedgerView {
    /// All rows together.
    pub total: Spent,
    /// How long the run worked, in milliseconds, while something was worked on.
    pub wall_ms: u64,
    /// How often its planner planned again.
    pub replans: u32,
    /// Of `wall_ms`, the most; none: no cap.
    pub wall_ms_max: Option<u64>,
    /// Of money in millionths of a US dollar, the most; none: no cap.
    pub cost_microdollars_max: Option<u64>,
    /// Of tokens, the most; none: no cap.
    pub tokens_max: Option<u64>,
    /// One for each invocation that spent anything.
    pub rows: Vec<LedgerRow>,
}

/// The book of a run while it is worked on.
pub struct Ledger {
    run: RunId,
    store: Arc<dyn Store>,
    book: Arc<Mutex<Book>>,
    /// Something that was held is free again.
    freed: Arc<Notify>,
}

#[derive(Default)]
struct Book {
    rows: BTreeMap<InvocationId, Spent>,
    total: Spent,
    held: BTreeMap<u64, Usage>,
    next: u64,
    caps: Caps,
}

#[derive(Clone, Copy, Default)]
struct Caps {
    tokens: Option<u64>,
    cost_microdollars: Option<u64>,
}

/// Whether there is room.
enum Room {
    Held(u64),
    /// Not as long as others hold what they do.
    Taken,
    Over(LimitHit),
}

impl Ledger {
    /// The book as it was left.
    pub fn open(store: Arc<dyn Store>, run: &RunId) -> anyhow::Result<Self> {
        let rows: BTreeMap<_, _> = rows(&*store, run)?.into_iter().map(|row| (row.invocation, row.spent)).collect();
        let total = rows.values().fold(Spent::default(), |sum, spent| sum.plus(*spent));
        let book = Arc::new(Mutex::new(Book { rows, total, ..Book::default() }));
        Ok(Self { run: run.clone(), store, book, freed: Arc::default() })
    }

    /// The caps as they are now.
    pub fn set_caps(&self, limits: &HarnessLimits) {
        let caps = Caps { tokens: limits.tokens_max, cost_microdollars: limits.cost_microdollars_max };
        self.book().caps = caps;
    }

    /// An invocation has ended: what it used in all stands in its row.
    pub fn close(&self, invocation: &InvocationId, fuel: u64, memory_bytes_peak: u64) -> Batch {
        let mut book = self.book();
        let spent = book.rows.get(invocation).copied().unwrap_or_default();
        let more = Spent { fuel: fuel.saturating_sub(spent.fuel), memory_bytes_peak, ..Spent::default() };
        self.put(&mut book, invocation, &more)
    }

    fn put(&self, book: &mut Book, invocation: &InvocationId, more: &Spent) -> Batch {
        book.total = book.total.plus(*more);
        let row = book.rows.entry(invocation.clone()).or_default();
        *row = row.plus(*more);
        let row = LedgerRow { invocation: invocation.clone(), spent: *row };
        // Plain data has JSON.
        let bytes = serde_json::to_vec(&row).unwrap_or_default();
        Batch::new().put(Table::States, rows_key(&self.run).and(invocation.as_str()), bytes)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn hold(&mut self, most: Usage) -> Room {
        let spent = self.total.usage;
        let held = self.held.values().fold(Usage::default(), |sum, held| sum.plus(*held));
        if let Some(hit) = self.caps.over(spent.plus(most)) {
            return Room::Over(hit);
        }
        if self.caps.over(spent.plus(held).plus(most)).is_some() {
            return Room::Taken;
        }
        self.next += 1;
        self.held.insert(self.next, most);
        Room::Held(self.next)
    }
}

impl Caps {
    fn over(self, usage: Usage) -> Option<LimitHit> {
        let (tokens, cost) = (usage.tokens(), microdollars(usage.cost_microdollars));
        let tokens = self.tokens.filter(|max| tokens > *max).map(|max| LimitHit::new("tokens_max", tokens, max));
        let cost = || {
            let max = self.cost_microdollars.filter(|max| cost > *max)?;
            Some(LimitHit::new("cost_microdollars_max", cost, max))
        };
        tokens.or_else(cost)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as a cap wants it")]
fn microdollars(cost: f64) -> u64 {
    cost.ceil() as u64
}

/// What a call holds while it is on its way.
struct Held {
    number: u64,
    book: Arc<Mutex<Book>>,
    freed: Arc<Notify>,
}

impl Reservation for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).held.remove(&self.number);
        self.freed.notify_waiters();
    }
}

#[async_trait::async_trait]
impl Supervisor for Ledger {
    async fn reserve(&self, _invocation: &InvocationId, most: Usage) -> Result<Box<dyn Reservation>, LimitHit> {
        loop {
            // Listens before it looks, so that nothing is freed in between unheard.
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let room = self.book().hold(most);
            match room {
                Room::Over(hit) => return Err(hit),
                Room::Taken => freed.await,
                Room::Held(number) => {
                    let (book, freed) = (Arc::clone(&self.book), Arc::clone(&self.freed));
                    return Ok(Box::new(Held { number, book, freed }));
                }
            }
        }
    }

    fn spent(&self, invocation: &InvocationId, spent: &Spent) -> Batch {
        let mut book = self.book();
        self.put(&mut book, invocation, spent)
    }

    /// An evaluator is never steered, and a sub-agent is its caller's to correct.
    fn corrections(&self, invocation: &InvocationId) -> (Vec<String>, Batch) {
        let Some(addressee) = addressee(invocation) else { return Default::default() };
        let key = corrections_key(&self.run, addressee);
        // What cannot be read now is heard at the next step.
        let rows = self.store.scan(Table::States, &key, None, CORRECTIONS_MAX).unwrap_or_default();
        let mut forgets = Batch::new();
        let mut said = Vec::with_capacity(rows.len());
        for (key, text) in rows {
            said.push(String::from_utf8_lossy(&text).into_owned());
            forgets.push(Op::Delete(Table::States, Key::from_bytes(key)));
        }
        (said, forgets)
    }
}

/// The feature whose agent an invocation is, or an empty text for the planner.
fn addressee(invocation: &InvocationId) -> Option<&str> {
    let action = invocation.action();
    let is_planner = ["plan", "replan"].contains(&action.split('/').next().unwrap_or_default());
    match invocation.feature() {
        _ if invocation.depth() > 0 => None,
        Some(feature) => action.contains("/generate").then_some(feature),
        None => is_planner.then_some(""),
    }
}

/// Keeps what a person said until the invocation that it is for hears it.
pub fn put_correction(batch: Batch, run: &RunId, feature: Option<&str>, number: u64, text: &str) -> Batch {
    batch.put(Table::States, corrections_key(run, feature.unwrap_or_default()).number(number), text)
}

fn corrections_key(run: &RunId, feature: &str) -> Key {
    RunRecord::key(run).and("steer").and(feature)
}

fn rows_key(run: &RunId) -> Key {
    RunRecord::key(run).and("ledger")
}

fn rows(store: &dyn Store, run: &RunId) -> anyhow::Result<Vec<LedgerRow>> {
    let found = store.scan(Table::States, &rows_key(run), None, ROWS_MAX)?;
    found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).context("a row of the ledger is damaged")).collect()
}

/// The book of a run.
pub fn view(store: &dyn Store, run: &RunId, limits: &HarnessLimits, replans: u32) -> anyhow::Result<LedgerView> {
    let rows = rows(store, run)?;
    Ok(LedgerView {
        total: rows.iter().fold(Spent::default(), |sum, row| sum.plus(row.spent)),
        wall_ms: wall_ms(store, run)?,
        replans,
        wall_ms_max: limits.wall_ms_max,
        cost_microdollars_max: limits.cost_microdollars_max,
        tokens_max: limits.tokens_max,
        rows,
    })
}

/// How long a run worked before this process.
pub fn wall_ms(store: &dyn Store, run: &RunId) -> anyhow::Result<u64> {
    let bytes = store.get(Table::States, &wall_key(run))?;
    Ok(bytes.and_then(|bytes| String::from_utf8_lossy(&bytes).parse().ok()).unwrap_or(0))
}

/// Keeps how long a run worked by now.
pub fn put_wall(batch: Batch, run: &RunId, wall_ms: u64) -> Batch {
    batch.put(Table::States, wall_key(run), wall_ms.to_string())
}

fn wall_key(run: &RunId) -> Key {
    RunRecord::key(run).and("wall")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::MemoryStore;

    fn cost(microdollars: f64) -> Usage {
        Usage { cost_microdollars: microdollars, input_tokens: 1, ..Usage::default() }
    }

    fn ledger(store: &Arc<dyn Store>, max: u64) -> Ledger {
        let ledger = Ledger::open(Arc::clone(store), &RunId::from_text("r-1")).expect("a book");
        ledger.set_caps(&HarnessLimits { cost_microdollars_max: Some(max), ..HarnessLimits::default() });
        ledger
    }

    fn invocation(name: &str) -> InvocationId {
        InvocationId::from_text(format!("r-1/{name}"))
    }

    fn spent(microdollars: f64) -> Spent {
        Spent { usage: cost(microdollars), model_calls: 1, ..Spent::default() }
    }

    /// The most that is spent when every call costs what it held, side by side.
    #[tokio::test]
    async fn calls_side_by_side_never_pass_a_cap_together() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let ledger = Arc::new(ledger(&store, 1_000));
        let most = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let calls: Vec<_> = (0..50)
            .map(|number| {
                let (ledger, most) = (Arc::clone(&ledger), Arc::clone(&most));
                tokio::spawn(async move {
                    let who = invocation(&format!("f-{number}/1/generate"));
                    let held = ledger.reserve(&who, cost(100.0)).await?;
                    tokio::task::yield_now().await;
                    let _ = ledger.spent(&who, &spent(60.0));
                    drop(held);
                    let now = microdollars(ledger.book().total.usage.cost_microdollars);
                    most.fetch_max(now, std::sync::atomic::Ordering::SeqCst);
                    Ok::<(), LimitHit>(())
                })
            })
            .collect();
        let mut refused = 0;
        for call in calls {
            match call.await.expect("no panic") {
                Ok(()) => {}
                Err(hit) => {
                    assert_eq!(hit.name, "cost_microdollars_max");
                    refused += 1;
                }
            }
        }
        // 16 calls of 60 leave less than the 100 that the next one would have to hold.
        assert_eq!((most.load(std::sync::atomic::Ordering::SeqCst), refused), (960, 34));
        assert!(ledger.book().held.is_empty());
    }

    #[tokio::test]
    async fn what_was_spent_is_there_after_a_restart_and_an_end_counts_once() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (one, two) = (invocation("f-a/1/generate"), invocation("plan"));
        let before = ledger(&store, 1_000);
        for batch in [before.spent(&one, &spent(300.0)), before.spent(&two, &spent(400.0))] {
            store.commit(batch).await.expect("stored");
        }
        store.commit(before.close(&one, 70, 5)).await.expect("stored");
        store.commit(before.close(&one, 70, 5)).await.expect("stored");
        let after = ledger(&store, 1_000);
        assert_eq!(after.book().total, before.book().total);
        assert_eq!(after.book().total.fuel, 70);
        assert!(after.reserve(&one, cost(301.0)).await.is_err());
        assert!(after.reserve(&one, cost(300.0)).await.is_ok());
    }

    #[test]
    fn a_correction_reaches_the_agent_of_its_feature_or_the_planner_and_nobody_who_judges() {
        let of = |action: &str| addressee(&invocation(action)).map(str::to_owned);
        assert_eq!(of("f-a/1/generate"), Some("a".into()));
        assert_eq!(of("f-a/e2/1/generate/h1"), Some("a".into()));
        assert_eq!((of("plan/t2"), of("replan/1")), (Some(String::new()), Some(String::new())));
        assert_eq!((of("f-a/1/judge"), of("f-a/1/generate#4"), of("synthesize/1")), (None, None, None));
    }
}
