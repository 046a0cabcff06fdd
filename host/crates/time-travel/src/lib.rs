//! Runs beside each other: which steps are the same, which differ, and which differs first.
//!
//! Pure: the caller reads journals and events, and hands them in one by one ([`RunTrace`]); [`compare`] makes the
//! comparison of them. Works are matched by their keys (feature, session, round), whatever the order in which they ran;
//! within a work steps are aligned by what they are. What runs do anew each time, such as looking at a clock, is no
//! step. All of it is bounded, and what is cut is counted. Reads no store and no repository, and calls no run better
//! than another.
//!
//! | file | holds |
//! |---|---|
//! | `step.rs` | one step, made of an entry of a journal |
//! | `trace.rs` | the steps and verdicts of one run |
//! | `align.rs` | the alignment of two sequences of steps |
//! | `rows.rs` | the steps of several runs as rows |
//! | `listed.rs` | the rows that are listed, with their text |
//! | `features.rs` | features and verdicts |

mod align;
mod features;
mod listed;
mod rows;
mod step;
mod trace;

pub use trace::{RunTrace, TracedRun};

use longhaul_api::comparison::{ComparedRun, FileComparison, RunComparison};

/// The comparison of runs in their order. `files` are compared by the caller, which has the repositories.
#[must_use]
pub fn compare(runs: Vec<TracedRun>, files: Vec<FileComparison>) -> RunComparison {
    let traces: Vec<&RunTrace> = runs.iter().map(|run| &run.trace).collect();
    let listed = listed::list(&rows::of(&traces));
    let (features, features_left_out) = features::of(&runs);
    RunComparison {
        counts: listed.counts,
        first_difference: listed.first_difference,
        steps: listed.steps,
        steps_left_out: listed.left_out,
        features,
        features_left_out,
        files,
        runs: runs.into_iter().map(compared).collect(),
    }
}

fn compared(TracedRun { status, trace }: TracedRun) -> ComparedRun {
    ComparedRun {
        steps: trace.steps(),
        steps_left_out: trace.left_out(),
        resource_usage: status.resource_usage,
        answer: status.synthesis,
        summary: status.summary,
    }
}

#[cfg(test)]
mod tests;
