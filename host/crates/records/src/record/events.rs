//! The stored events of a run: pages of them, one of them, and the last one, also at a time.

use super::run::RunRecord;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Store, Table};
use serde::Deserialize;

/// Events of a run after a number, at most `limit`.
pub fn events_after(store: &dyn Store, run: &RunId, after: u64, limit: usize) -> fault::Result<Vec<RunEvent>> {
    let prefix = RunRecord::key(run);
    let last = prefix.clone().number(after);
    let found = store.scan(Table::Events, &prefix, Some(last.as_bytes()), limit)?;
    found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).or_internal(|| "an event is damaged")).collect()
}

/// The number of the last event.
pub fn last_event(store: &dyn Store, run: &RunId) -> fault::Result<u64> {
    let last = store.last(Table::Events, &RunRecord::key(run), 1)?;
    Ok(last.first().and_then(|(key, _)| Key::last_number(key)).unwrap_or(0))
}

/// The time of the last event of a run.
pub fn last_event_ms(store: &dyn Store, run: &RunId) -> fault::Result<Option<u64>> {
    let last = store.last(Table::Events, &RunRecord::key(run), 1)?;
    last.first().map(|(_, bytes)| time_of(bytes)).transpose()
}

/// The time of an event, in milliseconds since 1970-01-01 UTC; none if the run has no such event.
pub fn event_ms(store: &dyn Store, run: &RunId, number: u64) -> fault::Result<Option<u64>> {
    let bytes = store.get(Table::Events, &RunRecord::key(run).number(number))?;
    bytes.map(|bytes| time_of(&bytes)).transpose()
}

/// The number of the last event at or before a time; 0 if there is none so early. The times of a run's events do not
/// go back, unless a person put the clock back; then it is one of the events around that.
pub fn last_event_until(store: &dyn Store, run: &RunId, at_ms: u64) -> fault::Result<u64> {
    let (mut found, mut last) = (0, last_event(store, run)?);
    while found < last {
        let middle = last - (last - found) / 2;
        let time = event_ms(store, run, middle)?;
        match time.or_internal(|| format!("event {middle} of run {run} is missing"))? <= at_ms {
            true => found = middle,
            false => last = middle - 1,
        }
    }
    Ok(found)
}

/// Adds events without another change to a batch.
pub fn put_events(batch: &mut Batch, run: &RunId, events: &[RunEvent]) -> fault::Result<()> {
    for event in events {
        let key = RunRecord::key(run).number(event.number);
        *batch = std::mem::take(batch).insert(Table::Events, key, serde_json::to_vec(event)?);
    }
    Ok(())
}

/// The part of an event that tells its time.
#[derive(Deserialize)]
struct EventTime {
    at_ms: u64,
}

fn time_of(event: &[u8]) -> fault::Result<u64> {
    let event: EventTime = serde_json::from_slice(event).or_internal(|| "an event is damaged")?;
    Ok(event.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::event::Event;

    #[tokio::test]
    async fn the_last_event_until_a_time_is_the_last_of_those_at_that_time() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        assert_eq!(last_event_until(&store, &run, u64::MAX).unwrap(), 0);
        let events: Vec<RunEvent> = (1..)
            .zip([5, 5, 7, 7, 7, 9])
            .map(|(number, at_ms)| RunEvent { run: run.clone(), number, at_ms, event: Event::Paused })
            .collect();
        let mut batch = Batch::new();
        put_events(&mut batch, &run, &events).unwrap();
        store.commit(batch).await.unwrap();
        for (at_ms, expected) in [(0, 0), (4, 0), (5, 2), (6, 2), (7, 5), (8, 5), (9, 6), (u64::MAX, 6)] {
            assert_eq!(last_event_until(&store, &run, at_ms).unwrap(), expected, "at {at_ms}");
        }
        assert_eq!((event_ms(&store, &run, 3).unwrap(), event_ms(&store, &run, 7).unwrap()), (Some(7), None));
    }
}
