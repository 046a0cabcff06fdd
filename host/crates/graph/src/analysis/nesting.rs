//! The depth that a parser would reach in a source, found without recursion.
//!
//! Three depths add up: brackets that are open, blocks that are open, and operators that lean on each other within one
//! bracket (`a.b.c`, `a + b + c`, `not not a`), since each of those is a level of the tree too.

use super::{LEANING_MAX, NESTING_MAX};

/// The effect of a token on the depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    /// Opens a bracket.
    Open,
    /// Closes a bracket.
    Close,
    /// Opens a block.
    Indent,
    /// Closes a block.
    Dedent,
    /// A comma: ends the chain of operators within the bracket.
    Separate,
    /// Ends a statement, and with it everything but its block.
    End,
    /// One more level within the bracket.
    Lean,
    /// One more level that a comma does not end, as `lambda`.
    LeanOn,
    /// No effect.
    None,
}

/// The depth so far.
#[derive(Default)]
pub(super) struct Depth {
    /// For each open bracket, the levels outside of it, and the part of them that a comma does not end.
    open: Vec<(usize, usize)>,
    blocks: usize,
    leaning: usize,
    leaning_on: usize,
    outside: usize,
    deepest: usize,
}

/// A source that is too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooDeep {
    Nesting,
    Leaning,
}

impl Depth {
    /// Takes in the next token.
    pub(super) fn add(&mut self, weight: Weight) -> Result<(), TooDeep> {
        match weight {
            Weight::Open => self.open(),
            Weight::Close => self.close(),
            Weight::Indent => self.blocks += 1,
            Weight::Dedent => self.blocks = self.blocks.saturating_sub(1),
            Weight::Separate => self.leaning = self.leaning_on,
            Weight::End => self.end(),
            Weight::Lean => self.leaning += 1,
            Weight::LeanOn => {
                self.leaning += 1;
                self.leaning_on += 1;
            }
            Weight::None => return Ok(()),
        }
        let leaning = self.outside + self.leaning;
        self.deepest = self.deepest.max(leaning + self.blocks);
        if self.open.len() + self.blocks > NESTING_MAX {
            return Err(TooDeep::Nesting);
        }
        if leaning > LEANING_MAX { Err(TooDeep::Leaning) } else { Ok(()) }
    }

    /// The most levels that were open at once.
    pub(super) fn deepest(&self) -> usize {
        self.deepest
    }

    /// A bracket is one more level on the expression before it, as in `f()()()`.
    fn open(&mut self) {
        self.leaning += 1;
        self.open.push((self.leaning, self.leaning_on));
        self.outside += self.leaning;
        self.leaning = 0;
        self.leaning_on = 0;
    }

    fn close(&mut self) {
        if let Some((leaning, leaning_on)) = self.open.pop() {
            self.outside -= leaning;
            self.leaning = leaning;
            self.leaning_on = leaning_on;
        }
    }

    fn end(&mut self) {
        self.open.clear();
        self.outside = 0;
        self.leaning = 0;
        self.leaning_on = 0;
    }
}

impl TooDeep {
    pub(super) fn message(self) -> String {
        match self {
            Self::Nesting => format!("more than {NESTING_MAX} brackets and blocks are open at once"),
            Self::Leaning => format!("more than {LEANING_MAX} operators of one expression lean on each other"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Depth, TooDeep, Weight};
    use crate::analysis::{LEANING_MAX, NESTING_MAX};

    #[track_caller]
    fn check(tokens: impl IntoIterator<Item = Weight>, expected: Result<usize, TooDeep>) {
        let mut depth = Depth::default();
        let met = tokens.into_iter().try_for_each(|token| depth.add(token)).map(|()| depth.deepest());
        assert_eq!(met, expected);
    }

    #[test]
    fn brackets_and_operators_are_refused_one_above_their_caps() {
        check(std::iter::repeat_n(Weight::Open, NESTING_MAX), Ok(NESTING_MAX));
        check(std::iter::repeat_n(Weight::Open, NESTING_MAX + 1), Err(TooDeep::Nesting));
        check(std::iter::repeat_n(Weight::Lean, LEANING_MAX), Ok(LEANING_MAX));
        check(std::iter::repeat_n(Weight::Lean, LEANING_MAX + 1), Err(TooDeep::Leaning));
    }

    #[test]
    fn a_comma_ends_what_leans_but_no_lambda() {
        check([Weight::Lean, Weight::Separate, Weight::Lean], Ok(1));
        check([Weight::LeanOn, Weight::Separate, Weight::LeanOn], Ok(2));
        check([Weight::Close, Weight::Indent, Weight::Close, Weight::Indent], Ok(2));
    }
}
