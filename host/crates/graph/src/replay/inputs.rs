//! The inputs of a run: the values that it looked up, alone or with all that share objects with them, and the files
//! that it read.
//!
//! Variables that share an object are one group, and most steps read one variable of it and leave the group as it is.
//! Such a run saw what that variable reaches, and would do the same whatever else shares objects with it: the value by
//! itself is its input. A step that changes or binds anything of the group, or reads more of it, depends on the group
//! as a whole.

use super::history::StepRun;
use super::namespace::{Namespace, Position};
use crate::analysis::VariableName;
use crate::graph::Observed;
use crate::step::{SHARING, StepEnd, StepReport};
use longhaul_core::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The digests of the values that a run read: none for a name that did not exist.
type Values = BTreeMap<VariableName, Option<Digest>>;

/// True when the values that a run read are the present ones.
pub(super) fn has_values_of(namespace: &Namespace, at: Position, run: &StepRun) -> bool {
    let seen = |name: &VariableName| match run.alone.contains(name) {
        true => namespace.seen_alone(name, at, |other| run.reads.contains_key(other)),
        false => namespace.seen(name, at),
    };
    run.reads.iter().all(|(name, then)| seen(name) == *then) && run.all.is_none_or(|all| namespace.seen_all(at) == all)
}

/// The values that a run read, and the names of those that mattered by themselves.
pub(super) fn values_of(namespace: &Namespace, at: Position, report: &StepReport) -> (Values, BTreeSet<VariableName>) {
    let alone = alone(namespace, at, report);
    let seen = |name: &VariableName| match alone.contains(name) {
        true => namespace.seen_alone(name, at, |other| report.reads.contains(other)),
        false => namespace.seen(name, at),
    };
    let values = report.reads.iter().map(|name| (Arc::clone(name), seen(name))).collect();
    (values, alone)
}

/// The names that a run read and whose values mattered by themselves. A run that raised may have done so since the
/// group could not be made again.
fn alone(namespace: &Namespace, at: Position, report: &StepReport) -> BTreeSet<VariableName> {
    if report.sees_all || report.ended != StepEnd::Well {
        return BTreeSet::new();
    }
    let changed: BTreeSet<&VariableName> = report.delta.names().chain(&report.rebound).collect();
    let is_alone = |name: &&VariableName| {
        let Some((left_by, group)) = namespace.find(name, at) else { return false };
        let names = namespace.names_of(group, left_by, at);
        let is_left = |one: &VariableName| !changed.contains(one) && (one == *name || !report.reads.contains(one));
        group.value_of(name).is_some() && names.iter().all(is_left)
    };
    report.reads.iter().filter(is_alone).cloned().collect()
}

/// The observation of a run for the graph. State that is no variable counts when some step left it.
///
/// A step that makes a variable share objects with another one leaves its value as it is. That matters to a later step
/// only if the group as a whole was its input, and is an edge of its own.
pub(super) fn observed(namespace: &Namespace, at: Position, run: &StepRun) -> Observed {
    let is_told = |name: &&VariableName| !name.starts_with('<') || namespace.find(name, at).is_some();
    let is_whole = |name: &&VariableName| !run.alone.contains(*name) && namespace.find(name, at).is_some();
    let mut reads: BTreeSet<VariableName> = run.reads.keys().filter(is_told).cloned().collect();
    reads.extend(run.reads.keys().filter(is_whole).map(sharing));
    let mut writes = run.report.delta.deleted.clone();
    for group in &run.report.delta.groups {
        for name in &group.names {
            let before = namespace.find(name, at).and_then(|(_, group)| group.value_of(name));
            let is_same = before.is_some() && before == group.value_of(name);
            writes.insert(if is_same { sharing(name) } else { Arc::clone(name) });
        }
    }
    Observed { reads, writes, failed: run.report.ended != StepEnd::Well }
}

fn sharing(name: &VariableName) -> VariableName {
    format!("{SHARING}{name}>").into()
}

/// The digest of everything that a run depends on.
pub(super) fn digest(
    source: &Digest,
    reads: &Values,
    all: Option<&Digest>,
    files: &BTreeMap<String, Option<Digest>>,
) -> Digest {
    let bytes = |digest: &Option<Digest>| digest.as_ref().map_or(Vec::new(), |digest| digest.as_bytes().to_vec());
    let mut parts: Vec<Vec<u8>> = vec![source.as_bytes().to_vec()];
    for (name, seen) in reads {
        parts.push(name.as_bytes().to_vec());
        parts.push(bytes(seen));
    }
    parts.extend(all.map(|digest| digest.as_bytes().to_vec()));
    for (path, content) in files {
        parts.push(path.as_bytes().to_vec());
        parts.push(bytes(content));
    }
    Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
