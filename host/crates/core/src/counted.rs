//! Counts of the data that a run's agents keep in the store beside their journals: decisions, progress, and memory.
//!
//! For each kind, a row of the run holds the number and the bytes, changed in the transaction that stores the data:
//! data that a kill cuts off is neither stored nor counted. So all invocations together stay within the limit of one.
//! Data from before that row existed is not counted, and nothing is removed here.
//!
//! It is here, with locks of `futures-util`, because every other crate below both capabilities and the toolbox is about
//! HTTP, or would add dependencies to embedders of `longhaul-exec`: `longhaul-journal` adds itself and `jiff`.

use crate::store::{Batch, Key, Store, StoreError, Table};
use crate::{LimitHit, Limits, RunId};
use futures_util::lock::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

/// A kind of data that is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountedKind {
    /// The log of decisions.
    Decisions,
    /// The log of progress.
    Progress,
    /// Working memory of the run, and facts of its project.
    Memory,
}

/// A reservation for one more item, until it is dropped; no other invocation of the run gets one meanwhile.
pub struct CountReservation {
    row: (Key, Vec<u8>),
    _turn: MutexGuard<'static, ()>,
}

/// The row of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct KindRow {
    count: u64,
    bytes: u64,
}

/// Locks for runs and kinds. Two that share one wait for each other without need.
static TURNS: LazyLock<[Mutex<()>; 16]> = LazyLock::new(|| std::array::from_fn(|_| Mutex::new(())));

impl CountedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Decisions => "decisions",
            Self::Progress => "progress",
            Self::Memory => "memory",
        }
    }

    /// The caps on number and bytes.
    fn caps(self, limits: &Limits) -> [(&'static str, u64); 2] {
        match self {
            Self::Decisions => {
                [("decisions_max", limits.decisions_max.into()), ("decisions_bytes_max", limits.decisions_bytes_max)]
            }
            Self::Progress => [
                ("progress_entries_max", limits.progress_entries_max.into()),
                ("progress_bytes_max", limits.progress_bytes_max),
            ],
            Self::Memory => {
                [("memories_max", limits.memories_max.into()), ("memories_bytes_max", limits.memories_bytes_max)]
            }
        }
    }
}

impl CountReservation {
    /// Reserves `bytes` more of a kind, in place of `before`; or returns the cap that is full.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find(
        store: &dyn Store,
        run: &RunId,
        limits: &Limits,
        kind: CountedKind,
        bytes: u64,
        before: Option<u64>,
    ) -> Result<Result<Self, LimitHit>, StoreError> {
        let turn = TURNS[place(run, kind)].lock().await;
        let key = Key::of(run.as_str()).and("kept").and(kind.name());
        // An unreadable row is begun again: it is only a count.
        let held: KindRow =
            store.get(Table::States, &key)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let count = held.count.saturating_add(u64::from(before.is_none()));
        let bytes = held.bytes.saturating_sub(before.unwrap_or(0)).saturating_add(bytes);
        let [(count_max, most), (bytes_max, most_bytes)] = kind.caps(limits);
        for (name, was, used, max) in [(count_max, held.count, count, most), (bytes_max, held.bytes, bytes, most_bytes)]
        {
            // A decrease is accepted even if a lower cap was set since.
            if used > max && used > was {
                return Ok(Err(LimitHit::new(name, used, max)));
            }
        }
        let row = serde_json::to_vec(&KindRow { count, bytes }).unwrap_or_default();
        Ok(Ok(Self { row: (key, row), _turn: turn }))
    }

    /// The batch that stores the data, with the count.
    #[must_use]
    pub fn counted(&self, batch: Batch) -> Batch {
        let (key, row) = self.row.clone();
        batch.put(Table::States, key, row)
    }
}

fn place(run: &RunId, kind: CountedKind) -> usize {
    let mut hasher = DefaultHasher::new();
    (run.as_str(), kind).hash(&mut hasher);
    usize::try_from(hasher.finish() % TURNS.len() as u64).unwrap_or_default()
}
