//! The seats of a store that several processes share: who has one, and taking one away.
//!
//! The owner of the store gives work to workers. Each of them commits by a seat of its own, so that one whose lease ran
//! out loses its seat, and nobody else does. What a worker works on is no concern of a seat.

use super::StoreError;

/// A worker's place in a store that several processes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The id of the worker's data directory.
    pub name: String,
    /// The number of its claims and evictions so far. It tells a claim from the one before it and from the next.
    pub epoch: u64,
    /// The process that has it, for people; empty where none has it.
    pub holder: String,
    /// The time until its lease ends unless it is renewed, in milliseconds; 0 where it ran out or was given back.
    pub left_ms: u64,
    /// The number of commits by this seat so far. It goes up with each.
    pub commits: u64,
}

/// The seats of a store.
#[async_trait::async_trait]
pub trait Seats: Send + Sync {
    /// All workers that ever joined, by name.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], [`StoreError::Unreachable`] or [`StoreError::Failed`].
    fn seats(&self) -> Result<Vec<Seat>, StoreError>;

    /// Takes the seat of a worker away whose lease ran out: nothing that it sent or still sends is carried out, and
    /// what was carried out is seen by every read from then on. False where the worker renewed its lease or joined anew
    /// since `seat` was read.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], [`StoreError::Unreachable`] or [`StoreError::Failed`]; the seat may be taken away all
    /// the same, and a further call tells.
    async fn evict(&self, seat: &Seat) -> Result<bool, StoreError>;
}
