//! Sums of what runs cost, out of which the cost of a run can be taken again: in all, and by model, agent and day.
//!
//! They are exact. Tokens are whole numbers, and money is a whole number of 2^-64 millionths of a dollar. The cost of a
//! run is such a number where it is above 2^-12 millionths, and rounded down to one below. So a sum depends neither on
//! the order of its parts nor on those that were taken out of it, which a sum of floating-point numbers does.

use longhaul_api::runs::CostSum;
use longhaul_core::model::Usage;
use longhaul_records::sums::SpentSum;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Names of one kind that an answer has. The rest, those that cost least, counts under [`OTHER`].
const NAMES_MAX: usize = 1_000;

/// The name of everything beyond them.
const OTHER: &str = "other";

/// The highest cost of one part, in millionths of a dollar: about a thousand million dollars. 16,000 fit into a sum.
const COST_MAX: f64 = (1_u64 << 50) as f64;

/// Bits of the fraction of a millionth of a dollar.
const FRACTION_BITS: u32 = 64;

/// Usage that was added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsageSum {
    /// The tokens of [`tokens`]. All sums wrap around, so that taking a part out is exact whatever the parts are.
    tokens: [u64; 5],
    /// The cost, in units of 2^-64 millionths of a dollar.
    cost: u128,
    /// The number of parts whose cost is not known.
    unknown: u64,
}

impl UsageSum {
    fn add(&mut self, usage: Usage) {
        let sums = self.tokens.iter_mut().zip(tokens(usage));
        sums.for_each(|(sum, more)| *sum = sum.wrapping_add(more.into()));
        self.cost = self.cost.wrapping_add(units(usage.cost_microdollars));
        self.unknown = self.unknown.wrapping_add(usage.cost_unknown.into());
    }

    fn remove(&mut self, usage: Usage) {
        let sums = self.tokens.iter_mut().zip(tokens(usage));
        sums.for_each(|(sum, less)| *sum = sum.wrapping_sub(less.into()));
        self.cost = self.cost.wrapping_sub(units(usage.cost_microdollars));
        self.unknown = self.unknown.wrapping_sub(usage.cost_unknown.into());
    }

    fn join(&mut self, other: &Self) {
        let sums = self.tokens.iter_mut().zip(other.tokens);
        sums.for_each(|(sum, more)| *sum = sum.wrapping_add(more));
        self.cost = self.cost.wrapping_add(other.cost);
        self.unknown = self.unknown.wrapping_add(other.unknown);
    }

    /// The sum as usage, whose numbers of tokens end at the highest that it can hold.
    pub(super) fn usage(&self) -> Usage {
        let tokens = self.tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        let [input_tokens, cached_tokens, cache_written_tokens, output_tokens, reasoning_tokens] = tokens;
        Usage {
            input_tokens,
            cached_tokens,
            cache_written_tokens,
            output_tokens,
            reasoning_tokens,
            cost_microdollars: self.cost as f64 / (1_u128 << FRACTION_BITS) as f64,
            cost_unknown: self.unknown > 0,
        }
    }

    /// The order of sums by what they cost.
    fn weight(&self) -> (u128, u64) {
        (self.cost, self.tokens.iter().fold(0_u64, |sum, tokens| sum.saturating_add(*tokens)))
    }
}

fn tokens(usage: Usage) -> [u32; 5] {
    let Usage { input_tokens, cached_tokens, cache_written_tokens, output_tokens, reasoning_tokens, .. } = usage;
    [input_tokens, cached_tokens, cache_written_tokens, output_tokens, reasoning_tokens]
}

/// A cost in units of 2^-64 millionths of a dollar. What is no cost counts as nothing.
fn units(microdollars: f64) -> u128 {
    if microdollars.is_nan() || microdollars <= 0.0 {
        return 0;
    }
    // The sign is 0. A number is its mantissa times 2^(exponent - 1075).
    let bits = microdollars.min(COST_MAX).to_bits();
    let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    let (exponent, mantissa) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | (1 << 52)) };
    let zero = u64::from(1_075 - FRACTION_BITS);
    match exponent.checked_sub(zero) {
        Some(up) => u128::from(mantissa) << up,
        None => u128::from(mantissa >> (zero - exponent).min(63)),
    }
}

/// A sum under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NamedSum {
    /// The number of parts. Without any, the name is removed.
    parts: u64,
    /// The number of replies.
    count: u64,
    usage: UsageSum,
}

/// Sums by name.
#[derive(Debug, PartialEq, Eq)]
struct NamedSums<K>(BTreeMap<K, NamedSum>);

impl<K> Default for NamedSums<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> NamedSums<K> {
    fn add<Q>(&mut self, name: &Q, count: u64, usage: Usage)
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        // Most names are there, and are not copied.
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), NamedSum::default());
        }
        if let Some(sum) = self.0.get_mut(name) {
            sum.parts += 1;
            sum.count = sum.count.wrapping_add(count);
            sum.usage.add(usage);
        }
    }

    fn remove<Q>(&mut self, name: &Q, count: u64, usage: Usage)
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let Some(sum) = self.0.get_mut(name) else { return };
        sum.parts -= 1;
        sum.count = sum.count.wrapping_sub(count);
        sum.usage.remove(usage);
        if sum.parts == 0 {
            self.0.remove(name);
        }
    }
}

/// The costs of some runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CostSums {
    sum: UsageSum,
    models: NamedSums<String>,
    agents: NamedSums<String>,
    days: NamedSums<u64>,
}

impl CostSums {
    /// Adds a run: the sum of its ledger, and its replies.
    pub(super) fn add(&mut self, ledger: Usage, spent: &[SpentSum]) {
        self.sum.add(ledger);
        for SpentSum { day, model, agent, replies, usage } in spent {
            self.models.add(model.as_str(), *replies, *usage);
            self.agents.add(agent.as_str(), *replies, *usage);
            self.days.add(day, *replies, *usage);
        }
    }

    /// Takes out a run that was added.
    pub(super) fn remove(&mut self, ledger: Usage, spent: &[SpentSum]) {
        self.sum.remove(ledger);
        for SpentSum { day, model, agent, replies, usage } in spent {
            self.models.remove(model.as_str(), *replies, *usage);
            self.agents.remove(agent.as_str(), *replies, *usage);
            self.days.remove(day, *replies, *usage);
        }
    }

    /// The sum of the ledgers.
    pub(super) fn sum(&self) -> &UsageSum {
        &self.sum
    }

    /// The replies by model.
    pub(super) fn by_model(&self) -> Vec<CostSum> {
        by_name(&self.models)
    }

    /// The replies by agent.
    pub(super) fn by_agent(&self) -> Vec<CostSum> {
        by_name(&self.agents)
    }

    /// The replies by day in UTC, the oldest first.
    pub(super) fn by_day(&self) -> Vec<CostSum> {
        let days = self.days.0.iter();
        days.map(|(day, sum)| CostSum { name: date(*day), count: sum.count, usage: sum.usage.usage() }).collect()
    }
}

fn by_name(sums: &NamedSums<String>) -> Vec<CostSum> {
    listed(sums.0.iter().map(|(name, sum)| (name.as_str(), sum.count, &sum.usage)))
}

/// Sums in the order of their names, with [`NAMES_MAX`] names and [`OTHER`] for the rest.
pub(super) fn listed<'a>(sums: impl Iterator<Item = (&'a str, u64, &'a UsageSum)>) -> Vec<CostSum> {
    let mut sums: Vec<_> = sums.collect();
    if sums.len() > NAMES_MAX {
        sums.sort_by_key(|(_, _, usage)| Reverse(usage.weight()));
    }
    let mut listed: BTreeMap<&str, (u64, UsageSum)> = BTreeMap::new();
    for (at, (name, count, usage)) in sums.into_iter().enumerate() {
        let sum = listed.entry(if at < NAMES_MAX { name } else { OTHER }).or_default();
        sum.0 = sum.0.saturating_add(count);
        sum.1.join(usage);
    }
    let named = listed.into_iter();
    named.map(|(name, (count, usage))| CostSum { name: name.to_owned(), count, usage: usage.usage() }).collect()
}

/// The date of a day that is counted from 1970-01-01.
fn date(day: u64) -> String {
    let second = i64::try_from(day).ok().and_then(|day| day.checked_mul(86_400));
    let moment = second.and_then(|second| jiff::Timestamp::from_second(second).ok());
    moment.map_or_else(|| format!("day {day}"), |moment| moment.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(microdollars: f64) -> Usage {
        Usage { cost_microdollars: microdollars, ..Usage::default() }
    }

    fn spent(day: u64, model: &str, usage: Usage) -> SpentSum {
        SpentSum { day, model: model.to_owned(), agent: "agents.code".to_owned(), replies: 1, usage }
    }

    #[test]
    fn the_cost_of_one_run_is_summed_up_to_itself() {
        for microdollars in [0.0, 0.001, 0.1, 1.0 / 3.0, 1.0, 12_345.678, 9_007_199_254_740_991.0 / 8.0, COST_MAX] {
            let mut sum = UsageSum::default();
            sum.add(cost(microdollars));
            assert_eq!(sum.usage(), cost(microdollars), "{microdollars}");
        }
    }

    #[test]
    fn what_is_no_cost_counts_as_nothing_and_what_is_too_much_as_the_most() {
        for microdollars in [-0.0, -1.0, f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::from_bits(1), 1e-20] {
            assert_eq!(units(microdollars), 0, "{microdollars}");
        }
        assert_eq!((units(f64::INFINITY), units(f64::MAX)), (units(COST_MAX), units(COST_MAX)));
        assert_eq!((units(1.0), units(0.5)), (1 << 64, 1 << 63));
    }

    #[test]
    fn what_was_added_and_taken_out_leaves_nothing_behind() {
        let (large, small) = (cost(1e15), cost(0.1));
        let mut sums = CostSums::default();
        sums.add(small, &[spent(1, "a", small)]);
        sums.add(large, &[spent(1, "a", large), spent(2, "b", large)]);
        sums.remove(large, &[spent(1, "a", large), spent(2, "b", large)]);
        let mut anew = CostSums::default();
        anew.add(small, &[spent(1, "a", small)]);
        assert_eq!(sums, anew, "a sum of floating-point numbers would be 0.125");
        sums.remove(small, &[spent(1, "a", small)]);
        assert_eq!(sums, CostSums::default());
    }

    #[test]
    fn tokens_end_at_the_highest_number_and_come_back_from_it() {
        let most = Usage { output_tokens: u32::MAX, cost_unknown: true, ..Usage::default() };
        let one = Usage { output_tokens: 1, ..Usage::default() };
        let mut sum = UsageSum::default();
        sum.add(one);
        sum.add(most);
        assert_eq!((sum.usage().output_tokens, sum.usage().cost()), (u32::MAX, None));
        sum.remove(most);
        assert_eq!(sum.usage(), one);
    }

    #[test]
    fn of_names_without_end_those_that_cost_least_are_summed_up_together() {
        let mut sums = CostSums::default();
        for number in 0..NAMES_MAX + 50 {
            let costs = if number < 50 { 1.0 } else { 2.0 };
            sums.add(cost(costs), &[spent(number as u64, &format!("m{number}"), cost(costs))]);
        }
        let list = sums.by_model();
        assert_eq!((list.len(), sums.by_day().len()), (NAMES_MAX + 1, NAMES_MAX + 50));
        let other = list.iter().find(|one| one.name == OTHER).map(|one| (one.count, one.usage.cost_microdollars));
        assert_eq!(other, Some((50, 50.0)));
        assert!(list.is_sorted_by_key(|one| one.name.clone()) && list.iter().all(|one| one.name != "m7"));
    }
}
