//! Conversations whose tokens are already computed.
//!
//! A session is taken out for a completion and put back after it. The pool keeps the most recent
//! ones within a number of bytes; the others are dropped, which costs time and changes no answer.

use crate::transformer::{Cache, Config};

/// Sessions kept at most, however small they are.
const SESSIONS_MAX: usize = 16;

/// A conversation: the ids that the cache holds, in order.
pub(crate) struct Session {
    name: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) cache: Cache,
}

impl Session {
    fn new(name: &str) -> Self {
        Session { name: name.to_owned(), ids: Vec::new(), cache: Cache::new() }
    }

    /// Cuts back to what `prompt` begins with, and returns how many tokens that is.
    ///
    /// The last token of the prompt is always computed again: its logits are the first answer.
    pub(crate) fn reuse(&mut self, prompt: &[u32]) -> usize {
        let limit = prompt.len().saturating_sub(1);
        let kept = self.ids.iter().zip(&prompt[..limit]);
        let kept = kept.take_while(|(old, new)| old == new).count();
        self.ids.truncate(kept);
        self.cache.truncate(kept);
        kept
    }
}

/// The sessions that wait for their next turn, the most recent last.
pub(crate) struct Sessions {
    waiting: Vec<Session>,
    bytes_max: u64,
}

impl Sessions {
    /// A pool whose caches, the one in use included, have up to `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Sessions { waiting: Vec::new(), bytes_max }
    }

    /// The session of that name, or a new one.
    pub(crate) fn take(&mut self, name: &str) -> Session {
        let found = self.waiting.iter().position(|session| session.name == name);
        found.map_or_else(|| Session::new(name), |index| self.waiting.remove(index))
    }

    /// Drops the oldest sessions until a session of `bytes` fits beside the others.
    pub(crate) fn make_room(&mut self, bytes: u64, config: &Config) {
        let size = |session: &Session| session.cache.bytes(config);
        let mut total = bytes + self.waiting.iter().map(size).sum::<u64>();
        let mut drop_count = self.waiting.len().saturating_sub(SESSIONS_MAX - 1);
        for (index, session) in self.waiting.iter().enumerate() {
            if index < drop_count || total > self.bytes_max {
                total -= size(session);
                drop_count = drop_count.max(index + 1);
            }
        }
        self.waiting.drain(..drop_count);
    }

    /// Keeps the session for its next turn, unless it has no name.
    pub(crate) fn put(&mut self, session: Session, config: &Config) {
        if session.name.is_empty() {
            return;
        }
        self.make_room(session.cache.bytes(config), config);
        self.waiting.push(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model;

    fn session(name: &str, ids: &[u32], config: &Config) -> Session {
        let mut session = Session::new(name);
        session.ids = ids.to_vec();
        session.cache.reserve(64, 64, config).expect("reserve");
        session
    }

    #[track_caller]
    fn check_reuse(old: &[u32], prompt: &[u32], kept: usize) {
        let mut session = Session::new("s");
        session.ids = old.to_vec();
        assert_eq!(session.reuse(prompt), kept);
        assert_eq!(session.ids, &prompt[..kept]);
    }

    #[test]
    fn the_common_beginning_is_reused_but_never_the_last_token() {
        check_reuse(&[], &[1, 2], 0);
        check_reuse(&[1, 2, 3], &[1, 2, 4, 5], 2);
        check_reuse(&[1, 2, 3], &[1, 2, 3, 4], 3);
        check_reuse(&[1, 2, 3], &[1, 2, 3], 2);
        check_reuse(&[1, 2, 3], &[1], 0);
        check_reuse(&[1, 2, 3], &[], 0);
    }

    #[test]
    fn the_oldest_session_goes_when_the_bytes_are_full() {
        let config = test_model::transformer().config().clone();
        let one = 64 * config.cache_token_bytes();
        let mut sessions = Sessions::new(2 * one);
        for name in ["a", "b", "c"] {
            sessions.put(session(name, &[7], &config), &config);
        }
        assert!(sessions.take("a").ids.is_empty());
        assert_eq!(sessions.take("b").ids, [7]);
        sessions.put(session("b", &[7], &config), &config);
        sessions.put(session("d", &[7], &config), &config);
        assert!(sessions.take("c").ids.is_empty());
        assert_eq!(sessions.take("b").ids, [7]);
    }

    #[test]
    fn a_session_without_a_name_is_not_kept() {
        let config = test_model::transformer().config().clone();
        let mut sessions = Sessions::new(u64::MAX);
        sessions.put(session("", &[7], &config), &config);
        assert!(sessions.take("").ids.is_empty());
    }

    #[test]
    fn there_are_never_more_sessions_than_the_limit() {
        let config = test_model::transformer().config().clone();
        let mut sessions = Sessions::new(u64::MAX);
        for index in 0..SESSIONS_MAX + 3 {
            sessions.put(session(&index.to_string(), &[7], &config), &config);
        }
        assert_eq!(sessions.waiting.len(), SESSIONS_MAX);
        assert!(sessions.take("2").ids.is_empty());
        assert_eq!(sessions.take("3").ids, [7]);
    }
}
