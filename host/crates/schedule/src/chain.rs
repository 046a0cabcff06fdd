//! Refuses agents that start each other in a circle.

use crate::{Name, Schedule, ScheduleError, Trigger};
use std::collections::{BTreeMap, BTreeSet};

/// Refuses `schedules` with a circle of `after`.
pub(crate) fn check<'a>(schedules: impl Iterator<Item = &'a Schedule>) -> Result<(), ScheduleError> {
    let starts = edges(schedules);
    let mut done = BTreeSet::new();
    for agent in starts.keys() {
        walk(agent, &starts, &mut done)?;
    }
    Ok(())
}

/// The edges: the agents that start at the end of each agent.
fn edges<'a>(schedules: impl Iterator<Item = &'a Schedule>) -> BTreeMap<Name, BTreeSet<Name>> {
    let mut starts: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    for schedule in schedules {
        let Trigger::After { agent, .. } = &schedule.trigger else { continue };
        let Ok(agent) = Name::try_from(agent.clone()) else { continue };
        starts.entry(agent).or_default().insert(schedule.agent.clone());
    }
    starts
}

/// Depth first, with the way in a list, so that a long chain takes no stack.
fn walk<'a>(
    from: &'a Name,
    starts: &'a BTreeMap<Name, BTreeSet<Name>>,
    done: &mut BTreeSet<&'a Name>,
) -> Result<(), ScheduleError> {
    let next = |agent: &Name| starts.get(agent).into_iter().flatten();
    let mut way = vec![(from, next(from))];
    while let Some((agent, rest)) = way.last_mut() {
        let Some(then) = rest.next() else {
            done.insert(*agent);
            way.pop();
            continue;
        };
        if let Some(at) = way.iter().position(|(agent, _)| *agent == then) {
            let circle = way.iter().skip(at).map(|(agent, _)| *agent).chain([then]);
            return Err(ScheduleError::Cycle { path: circle.map(ToString::to_string).collect() });
        }
        if !done.contains(then) {
            way.push((then, next(then)));
        }
    }
    Ok(())
}
