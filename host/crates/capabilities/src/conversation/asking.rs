//! A request that needs space in the context, and the cut that makes the space.
//!
//! Plain data: `cut.rs` and `summary.rs` do the cutting.

use super::messages::HeldMessage;
use longhaul_core::context::Budget;
use longhaul_core::{Denial, Digest};

/// A request that needs space in the context.
#[derive(Clone)]
pub(super) struct Asking {
    /// The conversation.
    pub(super) at: usize,
    /// The chosen model at present, or why none is allowed.
    pub(super) chosen: Result<String, Denial>,
    /// The chosen model at the beginning of the invocation: the decisions must be the same on a resume, whatever was
    /// granted since.
    pub(super) pinned: String,
    /// The estimated tokens of the offered functions.
    pub(super) tools_tokens: u64,
}

/// One cut in progress. Sizes are estimates: the rules' numbers, in tokens of the model, are converted to these once.
pub(super) struct Cut {
    pub(super) asking: Asking,
    pub(super) budget: Budget,
    pub(super) messages_replaced: u32,
    pub(super) texts_referred: u32,
    pub(super) replaced: Option<Digest>,
    pub(super) unsummarised: Option<String>,
}

impl Asking {
    /// The name for a request; it is sent only if a model was chosen.
    pub(super) fn model(&self) -> String {
        self.chosen.clone().unwrap_or_default()
    }
}

impl Cut {
    pub(super) fn new(asking: Asking, budget: Budget) -> Self {
        Self { asking, budget, messages_replaced: 0, texts_referred: 0, replaced: None, unsummarised: None }
    }

    pub(super) fn count(&mut self, replaced: &[HeldMessage]) {
        self.messages_replaced =
            self.messages_replaced.saturating_add(u32::try_from(replaced.len()).unwrap_or(u32::MAX));
    }
}
