//! Chance that is the same for a seed on every machine.

/// A linear congruential generator, with Knuth's constants; the low bits are weak and dropped.
pub(super) struct Dice(u64);

impl Dice {
    /// For one question about a seed.
    pub(super) fn of(seed: u64, question: &str) -> Self {
        let mut dice = Self(mixed(seed, question));
        for _ in 0..4 {
            dice.below(2);
        }
        dice
    }

    pub(super) fn below(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).expect("below a u32")
    }

    pub(super) fn one_in(&mut self, sides: u32) -> bool {
        self.below(sides) == 0
    }

    /// One of some, unless there are none.
    pub(super) fn pick<T: Clone>(&mut self, some: &[T]) -> Option<T> {
        let sides = u32::try_from(some.len()).ok().filter(|sides| *sides > 0)?;
        some.get(self.below(sides) as usize).cloned()
    }

    /// The numbers below this one, in any order.
    pub(super) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..count).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(one) = self.pick(&left) {
            left.retain(|other| *other != one);
            order.push(one);
        }
        order
    }
}

/// A number that depends on all of a text, FNV-1a.
pub(super) fn mixed(seed: u64, text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
