//! Admission by free resources: one more is admitted where the machine has capacity for it.
//!
//! A recently admitted newcomer has not taken its memory yet, so its need counts as used for a while. Refuses to admit
//! anything into the reserve, and to say "wait" without naming the missing resource.

use crate::numbers::sum;
use crate::usage::SystemUsage;
use longhaul_core::capacity::{AdmissionVerdict, Need};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time for which an admitted newcomer counts as used in addition to the machine's own figures, in milliseconds. After
/// that it has started, and the figures include its memory.
pub const SETTLES_MS: u64 = 30_000;

/// The resources that stay free for the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reserve {
    /// Memory, in MB. Default 256.
    pub memory_mb: f64,
    /// Memory of each graphics card, in MB. Default 0.
    pub gpu_memory_mb: f64,
}

impl Default for Reserve {
    fn default() -> Self {
        Self { memory_mb: 256.0, gpu_memory_mb: 0.0 }
    }
}

/// Runs that work at once for each core: most of their time they wait for models.
const RUNS_A_CORE: u32 = 4;

/// Memory of the machine for each of them, in MB, beside the reserve.
const RUN_MEMORY_MB: f64 = 256.0;

/// Runs that work at once at least, however small the machine is.
const RUNS_MIN: u32 = 2;

/// The default number of runs that work at once: four for each core, as far as the memory beside the reserve has 256 MB
/// for each of them, and at least 2.
#[must_use]
pub fn runs_max(cores: usize, memory_total_mb: f64, reserve: &Reserve) -> u32 {
    let by_cores = u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(RUNS_A_CORE).min(RUNS_MAX);
    let fits = |runs: &u32| f64::from(*runs) * RUN_MEMORY_MB + reserve.memory_mb <= memory_total_mb;
    (RUNS_MIN..=by_cores).rev().find(fits).unwrap_or(RUNS_MIN)
}

/// Runs that work at once at most, whatever a file says.
pub const RUNS_MAX: u32 = 10_000;

/// Newcomers that were admitted and have not settled.
#[derive(Debug, Default)]
pub struct PromisedResources {
    /// Their needs and the times of their admission, by name.
    promised: BTreeMap<String, (Need, u64)>,
}

impl PromisedResources {
    /// Admits a newcomer, or returns the reason to wait. A new one counts with its need for [`SETTLES_MS`]; one that
    /// was admitted before and continues has its memory already, and is not counted again.
    pub fn admit(
        &mut self,
        who: &str,
        begins: bool,
        need: Need,
        reserve: &Reserve,
        system: &SystemUsage,
        now_ms: u64,
    ) -> AdmissionVerdict {
        // A clock that was set back must not keep a promise forever.
        self.promised.retain(|_, (_, at_ms)| now_ms.abs_diff(*at_ms) < SETTLES_MS);
        let own = self.promised.remove(who);
        let promised = |of: fn(&Need) -> f64| sum(self.promised.values().map(|(need, _)| of(need)));
        let (memory, gpu) = (promised(|need| need.memory_mb), promised(|need| need.gpu_memory_mb));
        if let Some(why) = memory_fits(need, reserve, system, memory).or_else(|| gpu_fits(need, reserve, system, gpu)) {
            return AdmissionVerdict::Wait(why);
        }
        if let Some(promise) = if begins { Some((need, now_ms)) } else { own } {
            self.promised.insert(who.to_owned(), promise);
        }
        AdmissionVerdict::Admit
    }
}

/// The reason why the memory does not fit; none if it does.
fn memory_fits(need: Need, reserve: &Reserve, system: &SystemUsage, promised: f64) -> Option<String> {
    let (wanted, kept, total) = (need.memory_mb, reserve.memory_mb, system.memory_total_mb);
    if wanted + kept > total {
        return Some(format!(
            "it needs {wanted:.0} MB of memory and {kept:.0} are kept free, more than the {total:.0} MB of this machine"
        ));
    }
    let free = system.memory_available_mb - promised;
    let held =
        if promised > 0.0 { format!(", {promised:.0} of them promised to what has just begun") } else { String::new() };
    (wanted + kept > free).then(|| {
        let available = system.memory_available_mb;
        format!("it needs {wanted:.0} MB of memory, and {kept:.0} are kept free; {available:.0} MB can be had{held}")
    })
}

fn gpu_fits(need: Need, reserve: &Reserve, system: &SystemUsage, promised: f64) -> Option<String> {
    let wanted = need.gpu_memory_mb;
    if wanted <= 0.0 {
        return None;
    }
    let Some(most) = system.gpus.iter().map(|gpu| gpu.memory_free_mb()).max_by(f64::total_cmp) else {
        return Some(format!("it needs {wanted:.0} MB of a graphics card, and this machine tells of none"));
    };
    let free = (most - promised - reserve.gpu_memory_mb).max(0.0);
    (wanted > free).then(|| format!("it needs {wanted:.0} MB of a graphics card, and {free:.0} MB of one are free"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::GpuUsage;

    fn machine(available: f64) -> SystemUsage {
        let gpu = GpuUsage { name: "card0".into(), memory_total_mb: 8_000.0, memory_used_mb: 6_000.0 };
        SystemUsage {
            memory_total_mb: 4_000.0,
            memory_available_mb: available,
            gpus: vec![gpu],
            ..SystemUsage::default()
        }
    }

    #[track_caller]
    fn check(need: (f64, f64), available: f64, expected: Option<&str>) {
        let (need, reserve) =
            (Need { memory_mb: need.0, gpu_memory_mb: need.1 }, Reserve { memory_mb: 500.0, gpu_memory_mb: 0.0 });
        match (PromisedResources::default().admit("one", true, need, &reserve, &machine(available), 0), expected) {
            (AdmissionVerdict::Admit, None) => {}
            (AdmissionVerdict::Wait(why), Some(part)) => assert!(why.contains(part), "{why}"),
            (verdict, _) => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn what_fits_beside_the_reserve_may_begin_and_the_rest_hears_why_not() {
        check((500.0, 0.0), 1_000.0, None);
        check((501.0, 0.0), 1_000.0, Some("1000 MB can be had"));
        check((3_600.0, 0.0), 4_000.0, Some("more than the 4000 MB of this machine"));
        check((1.0, 2_000.0), 1_000.0, None);
        check((1.0, 2_001.0), 1_000.0, Some("2000 MB of one are free"));
    }

    #[test]
    fn the_runs_at_once_follow_the_cores_as_far_as_there_is_memory() {
        let reserve = Reserve { memory_mb: 500.0, gpu_memory_mb: 0.0 };
        for (cores, memory_mb, expected) in [
            (2, 8_000.0, 8),
            (2, 2_548.0, 8),
            (2, 2_547.0, 7),
            (2, 100.0, 2),
            (0, 8_000.0, 2),
            (64, 1_000_000.0, 256),
            (usize::MAX, f64::MAX, RUNS_MAX),
        ] {
            assert_eq!(runs_max(cores, memory_mb, &reserve), expected, "{cores} cores, {memory_mb} MB");
        }
    }

    #[test]
    fn a_machine_without_a_card_says_so() {
        let need = Need { memory_mb: 1.0, gpu_memory_mb: 1.0 };
        let verdict = PromisedResources::default().admit(
            "one",
            true,
            need,
            &Reserve::default(),
            &SystemUsage { gpus: Vec::new(), ..machine(4_000.0) },
            0,
        );
        assert!(matches!(verdict, AdmissionVerdict::Wait(why) if why.contains("tells of none")));
    }

    #[test]
    fn two_that_begin_at_once_do_not_get_the_same_memory() {
        let (mut room, reserve) = (PromisedResources::default(), Reserve::default());
        let need = Need { memory_mb: 600.0, gpu_memory_mb: 0.0 };
        let mut ask = |who: &str, now_ms| room.admit(who, true, need, &reserve, &machine(1_000.0), now_ms);
        assert_eq!(ask("one", 0), AdmissionVerdict::Admit);
        assert!(matches!(ask("two", 1_000), AdmissionVerdict::Wait(why) if why.contains("promised")));
        // After that the first one's memory is part of the used memory, or it took none.
        assert_eq!(ask("two", SETTLES_MS), AdmissionVerdict::Admit);
    }

    #[test]
    fn who_goes_on_again_and_again_is_counted_once() {
        let (mut room, reserve) = (PromisedResources::default(), Reserve::default());
        let need = Need { memory_mb: 300.0, gpu_memory_mb: 0.0 };
        let mut ask = |who: &str, begins, now_ms| room.admit(who, begins, need, &reserve, &machine(1_000.0), now_ms);
        assert_eq!(ask("one", true, 0), AdmissionVerdict::Admit);
        for piece in 1..100 {
            assert_eq!(ask("one", false, piece), AdmissionVerdict::Admit, "{piece}");
        }
        assert_eq!(ask("two", true, 100), AdmissionVerdict::Admit);
        assert!(matches!(ask("three", true, 100), AdmissionVerdict::Wait(_)), "two have begun");
        // The one that continued did not start again.
        assert_eq!(ask("three", true, SETTLES_MS), AdmissionVerdict::Admit);
    }
}
