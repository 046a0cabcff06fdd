//! The steps of several runs as rows: in each row one step of each run that has it.
//!
//! Works are matched by their keys and stand in the order of the first run; works that only later runs have stand
//! behind the one that they followed there.

use crate::align::align;
use crate::step::{Step, StepKey};
use crate::trace::{RunTrace, WorkSteps};
use longhaul_api::comparison::StepChange;
use longhaul_core::Digest;
use std::collections::BTreeMap;

/// One step beside its likes.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) work: &'a WorkSteps,
    /// The step of each run, in the order of the runs.
    pub(crate) sides: Vec<Option<&'a Step>>,
    pub(crate) change: StepChange,
}

/// The rows of runs, in the order of the first one's works.
pub(crate) fn of<'a>(traces: &[&'a RunTrace]) -> Vec<Row<'a>> {
    let by_name: Vec<BTreeMap<&str, &WorkSteps>> = traces.iter().copied().map(by_name).collect();
    let mut rows = Vec::new();
    for work in works(traces) {
        let lanes = by_name.iter().map(|works| works.get(work.work.as_str()).copied());
        let aligned = aligned(lanes);
        rows.extend(aligned.into_iter().map(|sides| Row { work, change: change_of(&sides), sides }));
    }
    rows
}

fn by_name(trace: &RunTrace) -> BTreeMap<&str, &WorkSteps> {
    trace.works().iter().map(|work| (work.work.as_str(), work)).collect()
}

/// Every work once, as the first run that has it knows it.
fn works<'a>(traces: &[&'a RunTrace]) -> Vec<&'a WorkSteps> {
    let mut works: Vec<&WorkSteps> = Vec::new();
    for trace in traces {
        let mut next = 0;
        for work in trace.works() {
            let is_it = |known: &&WorkSteps| known.work == work.work;
            // Mostly it is the next one: runs of one goal do the same in the same order.
            let ahead = works[next..].iter().position(is_it).map(|at| next + at);
            let found = ahead.or_else(|| works[..next].iter().position(is_it));
            next = match found {
                Some(at) => at + 1,
                None => {
                    works.insert(next, work);
                    next + 1
                }
            };
        }
    }
    works
}

/// The steps of one work beside each other, run after run.
fn aligned<'a>(lanes: impl Iterator<Item = Option<&'a WorkSteps>>) -> Vec<Vec<Option<&'a Step>>> {
    let mut rows: Vec<Vec<Option<&Step>>> = Vec::new();
    for (place, lane) in lanes.enumerate() {
        let steps = lane.map_or(&[][..], |lane| lane.steps.as_slice());
        let known: Vec<StepKey> =
            rows.iter().filter_map(|sides| sides.iter().flatten().next()).map(|step| step.key).collect();
        let keys: Vec<StepKey> = steps.iter().map(|step| step.key).collect();
        let pairs = align(&known, &keys).into_iter();
        let row = |(row, step): (Option<usize>, Option<usize>)| {
            let mut sides = row.map_or_else(|| vec![None; place], |row| std::mem::take(&mut rows[row]));
            sides.push(step.map(|step| &steps[step]));
            sides
        };
        rows = pairs.map(row).collect();
    }
    rows
}

fn change_of(sides: &[Option<&Step>]) -> StepChange {
    let Some(steps) = sides.iter().copied().collect::<Option<Vec<&Step>>>() else { return StepChange::Missing };
    let all = |of: fn(&StepKey) -> Digest| steps.windows(2).all(|pair| of(&pair[0].key) == of(&pair[1].key));
    let (same, same_call) = (all(|key| key.same), all(|key| key.call));
    match (same, same_call) {
        (true, true) => StepChange::Same,
        (true, false) => StepChange::Request,
        (false, true) => StepChange::Answer,
        // Another reply is what tells, and not the request, which differs wherever anything did before.
        (false, false) if steps.iter().all(|step| step.is_reply()) => StepChange::Answer,
        (false, false) => StepChange::Call,
    }
}
