//! The policy `halve`: its next step, by sizes alone.
//!
//! The older half of the unpinned messages becomes one summary. After two summaries that did not help, the oldest
//! messages are dropped, one after the other.

/// Summaries that are tried before messages are dropped.
const PASSES_MAX: u32 = 2;

/// The size of one message, for this policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) tokens: u64,
    pub(super) pinned: bool,
    /// True when it answers a call in the message before: the two must stay together.
    pub(super) glued: bool,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It fits, or nothing is left to drop.
    Done,
    /// These, by their places, become one summary.
    Summarise(Vec<usize>),
    /// These are dropped.
    Drop(Vec<usize>),
}

/// The next step for a conversation of at most `tokens_max`, after `passes` summaries.
pub(super) fn next(sizes: &[Size], tokens_max: u64, passes: u32) -> Step {
    let open: Vec<usize> = (0..sizes.len()).filter(|place| !sizes[*place].pinned).collect();
    let total: u64 = sizes.iter().map(|size| size.tokens).sum();
    if total <= tokens_max || open.is_empty() {
        return Step::Done;
    }
    if passes < PASSES_MAX {
        return Step::Summarise(oldest(&open, sizes, (open.len() / 2).max(1)));
    }
    Step::Drop(oldest(&open, sizes, 1))
}

/// The first `count` of `open`, and those that belong to the last of them.
fn oldest(open: &[usize], sizes: &[Size], count: usize) -> Vec<usize> {
    let glued = open[count..].iter().take_while(|place| sizes[**place].glued).count();
    open[..count + glued].to_vec()
}

#[cfg(test)]
mod tests;
