//! The rows about objects outside of the database: what each of them is for, so that none is lost and none is left.
//!
//! Each upload of content has a generation of its own, drawn at random, and the object of a digest and a generation is
//! written once. Its row is in `kv` under a number that no table of a store has:
//!
//! | state | means | becomes |
//! |---|---|---|
//! | uploading, since a time | committed before the object is put | kept, in the statement that adds the content's row; condemned by the removal of content, after the grace |
//! | kept | a row of `blob` names the object | condemned, in the statement that removes that row |
//! | condemned, since a time | nothing names the object, and nothing ever will | nothing, once the object was deleted after the grace |
//!
//! So an object is there before and after any row that names it, whoever dies when. A writer and a removal that meet
//! change the same row, and one of them finds a broken condition: neither needs a clock for that. The grace is for reads
//! that found the row before, and for backups of the database. The times are the database's.

use longhaul_core::Digest;
use std::fmt;
use std::time::Duration;

/// The number of the rows in `kv`.
pub(crate) const OBJECTS_NO: i16 = 1_000;

/// The length of a generation.
pub(crate) const GENERATION_BYTES: usize = 16;

const DIGEST_BYTES: usize = 32;

const UPLOADING: u8 = 1;
const KEPT: u8 = 2;
const CONDEMNED: u8 = 3;

/// The number that tells an upload of content from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) [u8; GENERATION_BYTES]);

impl Generation {
    /// Draws one.
    pub(crate) fn fresh() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; GENERATION_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An object: the content with this digest, of this upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectKey {
    pub(crate) digest: Digest,
    pub(crate) generation: Generation,
}

impl ObjectKey {
    /// The name of the object, in one of 256 folders.
    pub(crate) fn name(&self) -> String {
        format!("blobs/{:02x}/{}-{}", self.digest.as_bytes()[0], self.digest, self.generation)
    }

    /// The object of a row; none for a key of another form.
    pub(crate) fn of_row(key: &[u8]) -> Option<Self> {
        let (digest, generation) = key.split_first_chunk::<DIGEST_BYTES>()?;
        Some(Self { digest: Digest::from(*digest), generation: Generation(generation.try_into().ok()?) })
    }

    fn row(&self) -> Vec<u8> {
        [&self.digest.as_bytes()[..], &self.generation.0].concat()
    }
}

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectState {
    /// It is about to be put, or was, and nothing names it yet. Since a time of the database, in milliseconds.
    Uploading(u64),
    /// A row names it.
    Kept,
    /// Nothing names it, and nothing will. Since a time of the database, in milliseconds.
    Condemned(u64),
}

impl ObjectState {
    /// The state of a row; none for a value of another form.
    pub(crate) fn of_row(value: &[u8]) -> Option<Self> {
        let (state, since) = value.split_first()?;
        let since = u64::from_be_bytes(since.try_into().ok()?);
        match *state {
            UPLOADING => Some(Self::Uploading(since)),
            KEPT => Some(Self::Kept),
            CONDEMNED => Some(Self::Condemned(since)),
            _ => None,
        }
    }

    /// True when it has lasted for the grace.
    pub(crate) fn is_over(self, now_ms: u64, grace: Duration) -> bool {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::Uploading(since) | Self::Condemned(since) => now_ms.saturating_sub(since) >= grace_ms,
            Self::Kept => false,
        }
    }

    fn row(self) -> Vec<u8> {
        let (state, since) = match self {
            Self::Uploading(since) => (UPLOADING, since),
            // No time, so that every kept object has the same value.
            Self::Kept => (KEPT, 0),
            Self::Condemned(since) => (CONDEMNED, since),
        };
        [&[state][..], &since.to_be_bytes()].concat()
    }
}

/// The condition of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// There is no row.
    Absent,
    /// The row has the value with this digest.
    Is(Digest),
    /// Any.
    Any,
}

/// A change of the row of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectChange {
    pub(crate) key: Vec<u8>,
    pub(crate) before: Before,
    /// The new value; none to remove the row.
    pub(crate) after: Option<Vec<u8>>,
}

impl ObjectChange {
    /// Adds the row of an upload that begins.
    pub(crate) fn begin(object: ObjectKey, now_ms: u64) -> Self {
        Self { key: object.row(), before: Before::Absent, after: Some(ObjectState::Uploading(now_ms).row()) }
    }

    /// Changes a state. It is the one that was read, or nothing is changed.
    pub(crate) fn from_to(object: ObjectKey, from: ObjectState, to: ObjectState) -> Self {
        Self { key: object.row(), before: Before::Is(Digest::of(&from.row())), after: Some(to.row()) }
    }

    /// Condemns an object in the statement that removes the row which names it.
    pub(crate) fn condemn(object: ObjectKey, now_ms: u64) -> Self {
        Self { key: object.row(), before: Before::Any, after: Some(ObjectState::Condemned(now_ms).row()) }
    }

    /// Removes the row of an object that was deleted.
    pub(crate) fn forget(object: ObjectKey, from: ObjectState) -> Self {
        Self { key: object.row(), before: Before::Is(Digest::of(&from.row())), after: None }
    }

    /// The length of its parts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.after.as_ref().map_or(0, Vec::len) + DIGEST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written_and_others_are_none() {
        let object = ObjectKey { digest: Digest::of(b"a"), generation: Generation([7; GENERATION_BYTES]) };
        for state in [ObjectState::Uploading(5), ObjectState::Kept, ObjectState::Condemned(u64::MAX)] {
            let change = ObjectChange::from_to(object, ObjectState::Kept, state);
            assert_eq!(ObjectKey::of_row(&change.key), Some(object));
            assert_eq!(change.after.as_deref().and_then(ObjectState::of_row), Some(state));
        }
        assert_eq!(ObjectKey::of_row(&[0; 47]), None);
        assert_eq!(ObjectKey::of_row(&[0; 49]), None);
        assert_eq!(ObjectState::of_row(&[]), None);
        assert_eq!(ObjectState::of_row(&[9; 9]), None);
        // The digest of `a` begins with ca.
        assert_eq!(object.name(), format!("blobs/ca/{}-{}", Digest::of(b"a"), "07".repeat(16)));
    }

    #[test]
    fn a_grace_ends_at_its_last_millisecond_and_never_for_a_kept_object() {
        let grace = Duration::from_millis(100);
        for state in [ObjectState::Uploading(50), ObjectState::Condemned(50)] {
            assert!(!state.is_over(149, grace) && state.is_over(150, grace));
            assert!(!state.is_over(0, grace), "a clock that was set back");
        }
        assert!(!ObjectState::Kept.is_over(u64::MAX, grace));
    }
}
