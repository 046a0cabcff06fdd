//! The rows of a run's states, present and past, by the number of the last event of the step that stored each.
//!
//! A row is written once, with its step, and stays until the run is deleted. A step without events of its own replaces
//! the row of the step before. This module finds rows and reads none.

use super::run::RunRecord;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Key, Store, Table};

/// A row with the number of its event.
pub(super) type NumberedRow = (u64, Vec<u8>);

/// The key of the state that the step with this last event stored.
pub(super) fn key(run: &RunId, event: u64) -> Key {
    prefix(run).number(event)
}

/// The first row at or after an event.
pub(super) fn next(store: &dyn Store, run: &RunId, event: u64) -> fault::Result<Option<NumberedRow>> {
    let prefix = prefix(run);
    let after = event.checked_sub(1).map(|before| key(run, before));
    let found = store.scan(Table::States, &prefix, after.as_ref().map(Key::as_bytes), 1)?;
    let Some((key, row)) = found.into_iter().next() else { return Ok(None) };
    let rest = key.strip_prefix(prefix.as_bytes()).and_then(|rest| <[u8; 8]>::try_from(rest).ok());
    let number = rest.or_internal(|| format!("the history of run {run} is damaged"))?;
    Ok(Some((u64::from_be_bytes(number), row)))
}

/// The newest row at or before an event. A store reads forward only, so the place is halved until it is found.
pub(super) fn newest(store: &dyn Store, run: &RunId, event: u64) -> fault::Result<Option<NumberedRow>> {
    let is_early = |found: &NumberedRow| found.0 <= event;
    let Some(mut found) = next(store, run, 0)?.filter(is_early) else { return Ok(None) };
    let mut last = event;
    while found.0 < last {
        let middle = last - (last - found.0) / 2;
        match next(store, run, middle)?.filter(is_early) {
            Some(later) => found = later,
            None => last = middle - 1,
        }
    }
    Ok(Some(found))
}

fn prefix(run: &RunId) -> Key {
    RunRecord::key(run).and("past")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::Batch;

    #[tokio::test]
    async fn the_newest_row_at_or_before_an_event_is_found_wherever_rows_are() {
        let (run, other) = (RunId::from_text("r-1"), RunId::from_text("r-12"));
        let all: [&[u64]; 6] = [&[], &[0], &[1], &[3, 4, 9], &[2, 1_000, 1_001, 65_536], &[5, u64::MAX - 1, u64::MAX]];
        for numbers in all {
            let store = longhaul_testkit::MemoryStore::new();
            let mut batch = Batch::new().put(Table::States, key(&other, 2), "other");
            batch = batch.put(Table::States, RunRecord::key(&run).and("pasta").number(1), "another kind");
            for number in numbers {
                batch = batch.put(Table::States, key(&run, *number), number.to_string());
            }
            store.commit(batch).await.unwrap();
            let around =
                numbers.iter().flat_map(|number| [number.saturating_sub(1), *number, number.saturating_add(1)]);
            for event in around.chain([0, 7, u64::MAX]) {
                let expected = numbers.iter().rev().find(|number| **number <= event);
                let expected = expected.map(|number| (*number, number.to_string().into_bytes()));
                assert_eq!(newest(&store, &run, event).unwrap(), expected, "{event} of {numbers:?}");
            }
        }
    }
}
