//! The number of tokens of a text: the host's estimate, and the provider's count of the same text.

/// A count above this multiple of the estimate, or below a quarter of it, is not trusted: no tokeniser is that far from
/// four characters a token, and an endpoint must not be able to claim that any conversation is full, or that none is.
const COUNT_TIMES_MAX: u64 = 8;

/// A provider's count of one request, beside the estimate of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gauge {
    counted: u64,
    estimated: u64,
}

impl Gauge {
    /// None when the provider reported nothing.
    pub(super) fn of(counted: u64, estimated: u64) -> Option<Self> {
        let estimated = estimated.max(1);
        let counted_max = estimated.saturating_mul(COUNT_TIMES_MAX);
        (counted > 0).then(|| Self { counted: counted.clamp(estimated.div_ceil(4), counted_max), estimated })
    }

    /// Tokens of a conversation that began with the counted request, or that was trimmed since.
    pub(super) fn tokens(self, estimated: u64) -> u64 {
        match estimated.checked_sub(self.estimated) {
            Some(added) => self.counted.saturating_add(added),
            None => self.counted.saturating_mul(estimated) / self.estimated,
        }
    }

    /// The estimate of a text that has this many tokens.
    pub(super) fn estimate(self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.estimated) / self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_kept_and_what_came_since_is_estimated() {
        let gauge = Gauge::of(300, 200).unwrap();
        assert_eq!([gauge.tokens(200), gauge.tokens(250), gauge.tokens(100)], [300, 350, 150]);
        assert_eq!(gauge.estimate(300), 200);
    }

    #[test]
    fn a_count_that_cannot_be_is_not_believed() {
        assert_eq!(Gauge::of(0, 100), None);
        assert_eq!(Gauge::of(u64::MAX, 100).unwrap().tokens(100), 800);
        assert_eq!(Gauge::of(1, 100).unwrap().tokens(100), 25);
        assert_eq!(Gauge::of(5, 0).unwrap().tokens(0), 0, "an empty conversation has no tokens");
    }
}
