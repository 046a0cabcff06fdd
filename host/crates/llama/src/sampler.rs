//! Choosing the next token from the model's logits.
//!
//! Temperature first, then the `top_k` likeliest, then the `top_p` mass, as the model's own
//! recipe has it. The random numbers are this file's own, since the same seed must give the same
//! text in every version. There is no repetition penalty: it would fight a schema.

use crate::LlamaError;
use crate::protocol::Completion;

/// Chooses tokens for one completion.
pub(crate) struct Sampler {
    temperature: f64,
    top_p: f64,
    top_k: usize,
    random: SplitMix64,
}

impl Sampler {
    /// # Errors
    /// [`LlamaError::BadRequest`] when a number is out of its range.
    pub(crate) fn new(request: &Completion) -> Result<Self, LlamaError> {
        let (temperature, top_p) = (request.temperature, request.top_p);
        if !(0.0..=100.0).contains(&temperature) {
            let reason = format!("`temperature` is {temperature}; use 0 to 100");
            return Err(LlamaError::BadRequest { reason });
        }
        if !(0.0..=1.0).contains(&top_p) {
            let reason = format!("`top_p` is {top_p}; use 0 to 1");
            return Err(LlamaError::BadRequest { reason });
        }
        Ok(Sampler {
            temperature: f64::from(temperature),
            top_p: f64::from(top_p),
            top_k: usize::try_from(request.top_k).unwrap_or(usize::MAX),
            random: SplitMix64(request.seed),
        })
    }

    /// The next token among those that `allows` lets through; equal ones by the lower id.
    ///
    /// # Errors
    /// [`LlamaError::Compute`] when no allowed token has a finite logit.
    pub(crate) fn choose(&mut self, logits: &[f32], allows: impl Fn(u32) -> bool) -> Result<u32, LlamaError> {
        let mut candidates: Vec<(u32, f32)> =
            (0_u32..).zip(logits.iter().copied()).filter(|(id, logit)| logit.is_finite() && allows(*id)).collect();
        self.keep_likeliest(&mut candidates);
        let Some((best, highest)) = candidates.first().copied() else {
            let reason = "no token has a finite logit".into();
            return Err(LlamaError::Compute { reason });
        };
        if self.temperature == 0.0 {
            return Ok(best);
        }
        let weights: Vec<f64> =
            candidates.iter().map(|(_, logit)| (f64::from(logit - highest) / self.temperature).exp()).collect();
        let kept = mass(&weights, self.top_p);
        Ok(candidates[self.draw(&weights[..kept])].0)
    }

    /// Sorts by logit and cuts to `top_k`; only the best one matters at temperature 0.
    fn keep_likeliest(&self, candidates: &mut Vec<(u32, f32)>) {
        let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let keep = match (self.temperature == 0.0, self.top_k) {
            (true, _) => 1,
            (false, 0) => candidates.len(),
            (false, top_k) => top_k,
        };
        if keep < candidates.len() {
            candidates.select_nth_unstable_by(keep, order);
            candidates.truncate(keep);
        }
        candidates.sort_unstable_by(order);
    }

    /// An index drawn in proportion to its weight.
    fn draw(&mut self, weights: &[f64]) -> usize {
        let mut left = self.random.fraction() * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding can leave a crumb at the end of the row.
        weights.len() - 1
    }
}

/// Number of the sorted weights that together reach `share` of the total; at least one.
fn mass(weights: &[f64], share: f64) -> usize {
    let mut left = share * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return index + 1;
        }
    }
    weights.len()
}

/// Steele, Lea and Flood's generator: tiny, well mixed, and any seed is a good one.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number of at least 0 and below 1.
    fn fraction(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "the 53 bits that are left fit a double exactly")]
        let bits = (self.next() >> 11) as f64;
        bits / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(temperature: f32, top_p: f32, top_k: u32, seed: u64) -> Sampler {
        let request = Completion { temperature, top_p, top_k, seed, ..Completion::default() };
        Sampler::new(&request).expect("sampler")
    }

    fn draws(mut sampler: Sampler, logits: &[f32]) -> Vec<u32> {
        let draw = |_| sampler.choose(logits, |_| true).expect("choose");
        (0..200).map(draw).collect()
    }

    #[test]
    fn temperature_zero_takes_the_best_and_the_lower_id_of_equals() {
        let mut greedy = sampler(0.0, 0.95, 40, 1);
        assert_eq!(greedy.choose(&[1.0, 3.0, 3.0], |_| true).expect("choose"), 1);
        assert_eq!(greedy.choose(&[1.0, 3.0, 2.0], |id| id != 1).expect("choose"), 2);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_seed_does_not() {
        let logits = [1.0, 1.1, 0.9, 1.2];
        let first = draws(sampler(1.0, 1.0, 0, 7), &logits);
        assert_eq!(first, draws(sampler(1.0, 1.0, 0, 7), &logits));
        assert_ne!(first, draws(sampler(1.0, 1.0, 0, 8), &logits));
        assert!((0..4).all(|id| first.contains(&id)), "{first:?}");
    }

    #[test]
    fn top_k_and_top_p_cut_the_unlikely() {
        let logits = [0.0, 1.0, 2.0, 3.0];
        let by_count = draws(sampler(1.0, 1.0, 2, 1), &logits);
        assert!(by_count.iter().all(|id| *id >= 2), "{by_count:?}");
        // The two best have 0.64 and 0.24 of the mass.
        let by_mass = draws(sampler(1.0, 0.7, 0, 1), &logits);
        assert!(by_mass.iter().all(|id| *id >= 2), "{by_mass:?}");
        let only_best = draws(sampler(1.0, 0.0, 0, 1), &logits);
        assert!(only_best.iter().all(|id| *id == 3), "{only_best:?}");
    }

    #[test]
    fn logits_that_are_no_numbers_are_an_error_and_no_panic() {
        let mut greedy = sampler(0.0, 1.0, 0, 1);
        assert!(greedy.choose(&[f32::NAN, f32::INFINITY], |_| true).is_err());
        assert!(greedy.choose(&[1.0], |_| false).is_err());
        for temperature in [-1.0, f32::NAN, f32::INFINITY] {
            let request = Completion { temperature, ..Completion::default() };
            assert!(Sampler::new(&request).is_err(), "{temperature}");
        }
    }
}
