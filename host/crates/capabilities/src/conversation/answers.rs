//! The lengths of a model's answers, and the detection of suspiciously short ones.

use longhaul_core::context::Anxiety;
use longhaul_core::model::ModelReply;
use std::collections::VecDeque;

/// Earlier answers that the next one is compared with.
const ANSWERS: usize = 5;

/// The lengths of the last answers of one conversation.
#[derive(Debug, Default)]
pub(super) struct Answers {
    chars: VecDeque<u64>,
    /// True when the last one was short: a row of short answers counts as one sign.
    was_short: bool,
}

impl Answers {
    /// Adds the next answer; returns a sign when it has less than half the median length of the five before.
    pub(super) fn next(&mut self, reply: &ModelReply) -> Option<Anxiety> {
        let chars = chars_of(reply);
        let median_chars = self.median();
        let is_short = median_chars.is_some_and(|median| chars.saturating_mul(2) < median);
        self.chars.push_back(chars);
        if self.chars.len() > ANSWERS {
            self.chars.pop_front();
        }
        let was_short = std::mem::replace(&mut self.was_short, is_short);
        let median_chars = median_chars.filter(|_| is_short && !was_short)?;
        Some(Anxiety::ShortAnswer { chars, median_chars })
    }

    fn median(&self) -> Option<u64> {
        let mut sorted: Vec<u64> = self.chars.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() == ANSWERS).then(|| sorted[ANSWERS / 2])
    }
}

fn chars_of(reply: &ModelReply) -> u64 {
    let asked: usize = reply.calls.iter().map(|call| call.arguments.chars().count()).sum();
    (reply.text.chars().count() + asked) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lengths: &[usize], expected: &[Option<(u64, u64)>]) {
        let mut answers = Answers::default();
        let mut heard = |length: &usize| {
            let reply = ModelReply { text: "é".repeat(*length), ..ModelReply::default() };
            match answers.next(&reply) {
                Some(Anxiety::ShortAnswer { chars, median_chars }) => Some((chars, median_chars)),
                Some(other) => panic!("{other:?}"),
                None => None,
            }
        };
        let signs: Vec<_> = lengths.iter().map(&mut heard).collect();
        assert_eq!(signs[lengths.len() - expected.len()..], *expected);
    }

    #[test]
    fn under_half_the_median_of_five_is_a_sign() {
        check(&[100, 100, 100, 100, 100, 49], &[Some((49, 100))]);
        check(&[100, 100, 100, 100, 100, 50], &[None]);
        check(&[100, 100, 100, 100, 1], &[None; 5]);
        check(&[1, 1, 100, 100, 1_000, 49], &[Some((49, 100))]);
    }

    #[test]
    fn a_row_of_short_answers_is_one_sign() {
        check(&[100, 100, 100, 100, 100, 10, 10, 100, 10], &[Some((10, 100)), None, None, Some((10, 100))]);
    }
}
