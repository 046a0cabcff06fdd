//! Who looks after an invocation from outside while it runs: what it may still spend, and what people say to it.

use crate::model::Usage;
use crate::store::Batch;
use crate::{InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// What an invocation used up, in all its attempts, as the ledger of its run keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens and money.
    pub usage: Usage,
    /// Answers of models, which are an agent's steps.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Instructions, in wasmtime's fuel, up to the last answer.
    pub fuel: u64,
    /// The highest sum of its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Bytes of requests that left for models.
    pub egress_bytes: u64,
    /// Bytes of answers that were stored in its journal.
    pub stored_bytes: u64,
}

impl Spent {
    /// Both together; the peak is the higher one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            fuel: self.fuel.saturating_add(other.fuel),
            memory_bytes_peak: self.memory_bytes_peak.max(other.memory_bytes_peak),
            egress_bytes: self.egress_bytes.saturating_add(other.egress_bytes),
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
        }
    }
}

/// Held while a call of a model is on its way; dropping it gives back what it holds.
pub trait Reservation: Send + Sync {}

/// Nothing is held.
#[derive(Clone, Copy, Debug)]
pub struct Free;

impl Reservation for Free {}

/// Nobody looks after it.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

impl Supervisor for Unsupervised {}

/// Who looks after invocations. The defaults bound nothing and say nothing.
#[async_trait::async_trait]
pub trait Supervisor: Send + Sync {
    /// Reserves the most that a call of a model may cost, before it leaves. Waits while only what others hold stands
    /// in its way.
    ///
    /// # Errors
    /// The cap of the run that has no room for it.
    async fn reserve(&self, _invocation: &InvocationId, _most: Usage) -> Result<Box<dyn Reservation>, LimitHit> {
        Ok(Box::new(Free))
    }

    /// What an invocation spent in all by now; the batch is stored with the answer that it was spent for.
    fn spent(&self, _invocation: &InvocationId, _spent: &Spent) -> Batch {
        Batch::new()
    }

    /// What people said to it that it has not heard; the batch, which forgets it, is stored with the entry that keeps
    /// it.
    fn corrections(&self, _invocation: &InvocationId) -> (Vec<String>, Batch) {
        (Vec::new(), Batch::new())
    }
}
