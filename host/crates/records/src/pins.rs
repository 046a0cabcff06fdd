//! The plugins of a run, pinned by the digest of their bytes.
//!
//! A person may move a run to other bytes of a plugin. The pin then keeps what it was before, since an invocation that
//! has begun ends on the bytes that it began with, unless the new ones were proved to answer its past alike.

use longhaul_config::asks::RequestedGrants;
use longhaul_core::{Digest, InvocationId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part that runs checks written in Python; it exists without being configured.
pub const PYTHON_CHECKS: &str = "checks.python";

/// A plugin that a run pinned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PinnedPlugin {
    /// The name in the configuration.
    pub plugin: String,
    /// The digest of its bytes, which the store keeps.
    pub digest: Digest,
    /// The grants that it requested when it was pinned.
    pub asks: RequestedGrants,
    /// The world that its manifest names.
    #[serde(default)]
    pub world: Option<String>,
    /// The lock of the packages that its interpreter imports, as text; empty: none. Runs that were begun before there
    /// were packages have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub packages: String,
    /// The pins before the run was moved to other bytes, the oldest first; none of them has earlier ones
    /// itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<PinnedPlugin>,
    /// The invocations that began on earlier bytes and go on with later ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proved: BTreeMap<InvocationId, ProvedPast>,
}

/// The past of an unfinished invocation, which other bytes answered as those did that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvedPast {
    /// The digest of the bytes in the first record of its journal.
    pub began: Digest,
    /// The digest of the bytes that go on with it.
    pub goes_on: Digest,
    /// The number of entries that were proved.
    pub entries: u32,
}

impl PinnedPlugin {
    /// The digest of the bytes that carry out an invocation whose journal began with the bytes `began`.
    #[must_use]
    pub fn runs_on(&self, invocation: &InvocationId, began: Digest) -> Digest {
        self.proved.get(invocation).filter(|past| past.began == began).map_or(began, |past| past.goes_on)
    }

    /// The pin that an invocation has: the newest, or the earlier one with the bytes that carry it out. `began` is the
    /// digest in its journal; none: it has no journal yet.
    #[must_use]
    pub fn of_invocation(&self, invocation: &InvocationId, began: Option<Digest>) -> &Self {
        let Some(digest) = began.map(|began| self.runs_on(invocation, began)) else { return self };
        if digest == self.digest {
            return self;
        }
        // Bytes that the run never had are refused by the journal, as before there were moves.
        self.earlier.iter().find(|earlier| earlier.digest == digest).unwrap_or(self)
    }

    /// This pin after a move to the bytes and the requests of `next`.
    #[must_use]
    pub fn moved_to(mut self, next: Self, proved: BTreeMap<InvocationId, ProvedPast>) -> Self {
        let mut earlier = std::mem::take(&mut self.earlier);
        let mut known = std::mem::take(&mut self.proved);
        known.extend(proved);
        earlier.push(self);
        earlier.retain(|pin| pin.digest != next.digest);
        Self { earlier, proved: known, ..next }
    }
}

/// The pins of a run, by the tables of `longhaul.toml`.
pub type PinnedPlugins = BTreeMap<String, PinnedPlugin>;

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(bytes: &[u8]) -> PinnedPlugin {
        PinnedPlugin {
            plugin: "coder".into(),
            digest: Digest::of(bytes),
            asks: RequestedGrants::default(),
            world: None,
            packages: String::new(),
            earlier: Vec::new(),
            proved: BTreeMap::new(),
        }
    }

    fn id(text: &str) -> InvocationId {
        InvocationId::from_text(text)
    }

    #[test]
    fn an_invocation_ends_on_the_bytes_that_it_began_with_unless_its_past_was_proved() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        let (proved, held) = (id("r-1/f-x/1/generate"), id("r-1/f-y/1/generate"));
        let past = ProvedPast { began: a, goes_on: b, entries: 7 };
        let moved = pin(b"a").moved_to(pin(b"b"), BTreeMap::from([(proved.clone(), past)]));
        let on = |pin: &PinnedPlugin, invocation: &InvocationId, began| pin.of_invocation(invocation, began).digest;
        assert_eq!((on(&moved, &proved, Some(a)), on(&moved, &held, Some(a))), (b, a));
        assert_eq!(on(&moved, &id("r-1/f-z/1/generate"), None), b);
        assert_eq!(on(&moved, &held, Some(c)), b, "bytes that it never had are not made up");

        // A second move proves nothing: each goes on as it does.
        let again = moved.clone().moved_to(pin(b"c"), BTreeMap::new());
        assert_eq!((on(&again, &proved, Some(a)), on(&again, &held, Some(a)), on(&again, &held, None)), (b, a, c));
        // Back to the first bytes, which are kept once.
        let back = again.moved_to(pin(b"a"), BTreeMap::new());
        let earlier: Vec<Digest> = back.earlier.iter().map(|pin| pin.digest).collect();
        assert_eq!((back.digest, earlier), (a, vec![b, c]));
        assert_eq!(on(&back, &proved, Some(a)), b);
        assert!(back.earlier.iter().all(|pin| pin.earlier.is_empty() && pin.proved.is_empty()));
    }

    /// Content of the store is kept as long as a row names its digest.
    #[test]
    fn a_pin_names_all_bytes_that_an_invocation_may_need_and_one_of_an_earlier_version_is_read() {
        let moved = pin(b"a").moved_to(pin(b"b"), BTreeMap::new());
        let text = serde_json::to_string(&moved).expect("plain data");
        for bytes in [b"a", b"b"] {
            assert!(text.contains(&Digest::of(bytes).to_string()), "{text}");
        }
        let text = serde_json::to_string(&pin(b"a")).expect("plain data");
        assert!(!text.contains("earlier") && !text.contains("proved"), "{text}");
        let read: PinnedPlugin = serde_json::from_str(&text).expect("its own form");
        assert!(read.earlier.is_empty() && read.proved.is_empty());
    }
}
