//! Space for the data that a guest keeps in the store beside its journal, and the journal's answer about it.
//!
//! [`longhaul_core::counted`] counts that data. Nothing is removed here.

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::LimitHit;
use longhaul_core::counted::{CountReservation, CountedKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An answer in the journal that may be a refusal. A journal of an earlier version has no refusals in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredReply<T> {
    Refused { refused: LimitHit },
    Fine(T),
}

impl<T> StoredReply<T> {
    pub(crate) fn into_result(self) -> Result<T, LimitHit> {
        match self {
            Self::Fine(value) => Ok(value),
            Self::Refused { refused } => Err(refused),
        }
    }
}

impl Ctx {
    /// Reserves space for the guest's data.
    pub(crate) async fn room(
        &mut self,
        kind: CountedKind,
        bytes: u64,
        before: Option<u64>,
    ) -> Result<Result<CountReservation, LimitHit>, Stop> {
        let (store, run) = (Arc::clone(&self.services.store), self.invocation.run());
        let found = CountReservation::find(&*store, &run, &self.limits, kind, bytes, before).await;
        found.map_err(|error| Stop::Broken(error.to_string()))
    }
}
