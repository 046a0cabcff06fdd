//! The policy `halve`: what the next step is, by sizes alone.
//!
//! The older half of what is not pinned becomes one summary. After two of them that did not help, the oldest
//! messages go, one after the other.

/// Summaries that are tried before messages go.
const PASSES_MAX: u32 = 2;

/// One message, as far as this policy cares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) tokens: u64,
    pub(super) pinned: bool,
    /// Whether it answers a call that the message before asks for: neither may stand without the other.
    pub(super) glued: bool,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It fits, or nothing is left that may go.
    Done,
    /// These, by their places, become one summary.
    Summarise(Vec<usize>),
    /// These go.
    Drop(Vec<usize>),
}

/// The next step for a conversation that may have `tokens_max`, after `passes` summaries.
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

/// The first `count` of `open`, and those that are glued to the last of them.
fn oldest(open: &[usize], sizes: &[Size], count: usize) -> Vec<usize> {
    let glued = open[count..].iter().take_while(|place| sizes[**place].glued).count();
    open[..count + glued].to_vec()
}

#[cfg(test)]
mod tests;
