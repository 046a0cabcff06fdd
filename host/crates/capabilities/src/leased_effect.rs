//! Effects that last no longer than the lease on the store.
//!
//! Whoever takes the store over verifies the effects that were in flight, and makes those anew that it does not find.
//! One that is still on its way here would then happen twice. So it is dropped when the lease has run out, and the
//! invocation ends as by a kill: the next one verifies.

use longhaul_core::store::{Store, StoreError};
use std::time::Duration;

/// The longest time between two looks at the lease. The clock of a sleep stands still while the machine sleeps, and
/// that of a lease does not.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The output of an effect.
///
/// # Errors
/// [`StoreError::LeaseEnds`] where the lease ran out before; the effect was dropped.
pub(crate) async fn while_held<T>(store: &dyn Store, effect: impl Future<Output = T>) -> Result<T, StoreError> {
    let mut effect = std::pin::pin!(effect);
    loop {
        let left = match store.lease_left_ms() {
            None => return Ok(effect.await),
            Some(0) => return Err(StoreError::LeaseEnds { left_ms: 0 }),
            Some(left_ms) => Duration::from_millis(left_ms),
        };
        tokio::select! {
            output = &mut effect => return Ok(output),
            () = tokio::time::sleep(left.min(LOOK_MAX)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use longhaul_core::store::{Batch, Key, Row, Table};
    use std::sync::Mutex;

    /// A store that answers these, the last one first, when it is asked for the rest of its lease.
    struct Leased(Mutex<Vec<Option<u64>>>);

    #[async_trait::async_trait]
    impl Store for Leased {
        fn get(&self, _: Table, _: &Key) -> Result<Option<Vec<u8>>, StoreError> {
            unreachable!("it is asked for its lease alone")
        }

        fn scan(&self, _: Table, _: &Key, _: Option<&[u8]>, _: usize) -> Result<Vec<Row>, StoreError> {
            unreachable!("it is asked for its lease alone")
        }

        fn blob(&self, _: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
            unreachable!("it is asked for its lease alone")
        }

        async fn commit(&self, _: Batch) -> Result<(), StoreError> {
            unreachable!("it is asked for its lease alone")
        }

        fn lease_left_ms(&self) -> Option<u64> {
            self.0.lock().unwrap().pop().expect("asked so often")
        }
    }

    fn leased(left: &[Option<u64>]) -> Leased {
        Leased(Mutex::new(left.iter().rev().copied().collect()))
    }

    #[tokio::test]
    async fn an_effect_is_dropped_once_the_lease_has_run_out() {
        let store = leased(&[Some(1), Some(1), Some(0)]);
        let dropped = while_held(&store, std::future::pending::<()>()).await;
        assert_eq!(dropped, Err(StoreError::LeaseEnds { left_ms: 0 }));
        assert!(store.0.lock().unwrap().is_empty(), "it was renewed once");
    }

    #[tokio::test]
    async fn an_effect_of_a_store_that_is_held_goes_on_to_its_end() {
        for left in [None, Some(60_000)] {
            assert_eq!(while_held(&leased(&[left]), async { 7 }).await, Ok(7));
        }
    }
}
