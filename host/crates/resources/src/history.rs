//! The last samples of resource usage, for plots. Their number is bounded.

use crate::numbers::sum;
use crate::usage::{ProcessUsage, SystemUsage};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of stored samples: two hours with one each five seconds.
pub const SAMPLES_MAX: usize = 1_440;

/// Interval of samples, in milliseconds.
pub const SAMPLE_MS: u64 = 5_000;

/// Usage at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Time of the sample, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Used memory of the machine, in percent.
    pub memory_percent: f64,
    /// Available memory of the machine, in MB.
    pub memory_available_mb: f64,
    /// Load of the machine's processors, in percent.
    pub cpu_percent: f64,
    /// Used memory of all its graphics cards, in MB.
    pub gpu_memory_used_mb: f64,
    /// Usage of the host itself, without its children.
    pub host: ProcessUsage,
    /// Usage of all its children together; `num_children` is their number.
    pub children: ProcessUsage,
    /// Instances of components.
    pub guests: u64,
    /// Memory of instances, in MB. It is part of the host's.
    pub guests_memory_mb: f64,
}

impl Sample {
    /// Makes a sample of a measurement.
    #[must_use]
    pub fn new(at_ms: u64, system: &SystemUsage, host: ProcessUsage, children: &[ProcessUsage]) -> Self {
        let mut all = ProcessUsage::default();
        for usage in children {
            all.memory_mb += usage.memory_mb;
            all.cpu_percent += usage.cpu_percent;
            all.num_threads += usage.num_threads;
            all.num_children += usage.num_children + 1;
        }
        Self {
            at_ms,
            memory_percent: system.memory_percent,
            memory_available_mb: system.memory_available_mb,
            cpu_percent: system.cpu_percent,
            gpu_memory_used_mb: sum(system.gpus.iter().map(|gpu| gpu.memory_used_mb)),
            host,
            children: all,
            ..Self::default()
        }
    }
}

/// The last samples.
#[derive(Debug, Default)]
pub struct History(VecDeque<Sample>);

impl History {
    /// Adds a sample; the oldest is removed when there are [`SAMPLES_MAX`].
    pub fn push(&mut self, sample: Sample) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// True when the next sample is due.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.0.back().is_none_or(|last| now_ms.abs_diff(last.at_ms) >= SAMPLE_MS)
    }

    /// The samples after a time, oldest first, at most `limit`: the newest of them.
    #[must_use]
    pub fn since(&self, after_ms: u64, limit: usize) -> Vec<Sample> {
        let later = self.0.iter().rev().take_while(|sample| sample.at_ms > after_ms).take(limit);
        let mut later: Vec<Sample> = later.copied().collect();
        later.reverse();
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_keeps_the_last_samples_and_no_more() {
        let mut history = History::default();
        for number in 1..=SAMPLES_MAX as u64 + 10 {
            let at_ms = number * SAMPLE_MS;
            assert!(history.is_due(at_ms));
            history.push(Sample { at_ms, ..Sample::default() });
            assert!(!history.is_due(at_ms + SAMPLE_MS - 1));
        }
        let all = history.since(0, usize::MAX);
        assert_eq!((all.len(), all[0].at_ms), (SAMPLES_MAX, 11 * SAMPLE_MS));
        let newest = all[all.len() - 1].at_ms;
        assert_eq!(history.since(newest - SAMPLE_MS, 10).len(), 1);
        assert_eq!(history.since(0, 2).last().map(|sample| sample.at_ms), Some(newest));
    }

    #[test]
    fn children_are_summed_with_their_roots() {
        let child = ProcessUsage { memory_mb: 2.0, cpu_percent: 10.0, num_threads: 3, num_children: 1 };
        let sample = Sample::new(1, &SystemUsage::default(), ProcessUsage::default(), &[child, child]);
        assert_eq!(
            sample.children,
            ProcessUsage { memory_mb: 4.0, cpu_percent: 20.0, num_threads: 6, num_children: 4 }
        );
    }
}
