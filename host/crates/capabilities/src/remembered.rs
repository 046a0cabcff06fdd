//! Records that capabilities keep in the store, read with suspicion and ranked by words.

use crate::ctx::Ctx;
use crate::gate::Stop;
use longhaul_core::journal::Ticket;
use longhaul_core::store::{Batch, Key, Table};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Records that a search looks at, in the order of their keys. What is beyond is not found.
const SEARCHED_MAX: usize = 2_000;

impl Ctx {
    /// Answers a call whose effect is a record, both in one transaction: a kill leaves both or neither.
    pub(crate) async fn answer_keeping(
        &mut self,
        ticket: Ticket,
        table: Table,
        key: Key,
        record: &impl Serialize,
    ) -> Result<(), Stop> {
        let bytes = serde_json::to_vec(record).map_err(failed)?;
        self.answer_with(ticket, (), Batch::new().put(table, key, bytes)).await
    }

    pub(crate) fn record<T: DeserializeOwned>(&self, table: Table, key: &Key) -> Result<Option<T>, Stop> {
        let bytes = self.services.store.get(table, key).map_err(failed)?;
        bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(failed)
    }

    /// The first records under a key, in the order of their keys.
    pub(crate) fn records<T: DeserializeOwned>(&self, table: Table, prefix: &Key) -> Result<Vec<T>, Stop> {
        let found = self.services.store.scan(table, prefix, None, SEARCHED_MAX).map_err(failed)?;
        found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).map_err(failed)).collect()
    }
}

fn failed(error: impl std::fmt::Display) -> Stop {
    Stop::Broken(error.to_string())
}

/// How well a text answers a query: the share of the query's words that it has. 0: not at all.
#[expect(clippy::cast_precision_loss, reason = "counts of words in a query")]
pub(crate) fn relevance(query: &str, text: &str) -> f64 {
    let text = text.to_lowercase();
    let words: Vec<String> =
        query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let hits = words.iter().filter(|word| text.contains(word.as_str())).count();
    if words.is_empty() { 0.0 } else { hits as f64 / words.len() as f64 }
}

/// The best `limit` of the items, best first, without those that have no relevance.
pub(crate) fn ranked<T>(items: Vec<T>, limit: u32, score: impl Fn(&T) -> f64) -> Vec<(f64, T)> {
    let mut scored: Vec<(f64, T)> =
        items.into_iter().map(|item| (score(&item), item)).filter(|(score, _)| *score > 0.0).collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.truncate(limit as usize);
    scored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_without_relevance_is_not_returned() {
        let found =
            ranked(vec!["parse dates", "write files", "parse JSON dates"], 5, |text| relevance("JSON dates!", text));
        assert_eq!(found.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["parse JSON dates", "parse dates"]);
        assert!(ranked(vec!["x"], 5, |text| relevance("  ", text)).is_empty());
    }
}
