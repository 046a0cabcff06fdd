//! A public type has its name alone, so that a reader who sees the name knows the thing, whatever crate it is from.
//!
//! Names that macros make are not seen, and types that only a crate or a module sees may be called alike.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules;
use crate::packages::packages;
use crate::tree::{none, shown, source};

/// A crate beside the workspace whose names its users read with those of the workspace.
const BESIDE: &str = "sdk/rust/src/lib.rs";

/// Names that the types below a folder may share, with the reason; together these count as one.
const SHARED: &[(&str, &str, &str)] = &[(
    "Command",
    "host/src/cli/",
    "the subcommands of each command, under clap's own word; always named with its module, `agent::Command`",
)];

/// How often a name still stands that has to be given to one thing; exactly as often, so that the numbers only fall.
/// The end is an empty table.
const TO_BE_RENAMED: &[(&str, usize)] = &[
    ("Action", 3),
    ("Admission", 2),
    ("Agent", 2),
    ("Annotation", 2),
    ("Answer", 6),
    ("Answered", 3),
    ("Approval", 2),
    ("Artifact", 3),
    ("Asked", 2),
    ("Asks", 3),
    ("Attempt", 2),
    ("Bound", 2),
    ("Call", 3),
    ("Caps", 4),
    ("Cause", 2),
    ("Change", 4),
    ("Changes", 2),
    ("Check", 2),
    ("CheckArgs", 2),
    ("Checkout", 2),
    ("Checkpoint", 2),
    ("Code", 3),
    ("Command", 3),
    ("Criterion", 2),
    ("Decision", 3),
    ("Desk", 3),
    ("Dispatch", 2),
    ("Done", 3),
    ("End", 3),
    ("Ended", 4),
    ("Ending", 2),
    ("Entry", 7),
    ("ExecutionResult", 2),
    ("Failure", 4),
    ("Feature", 2),
    ("FeatureSpec", 2),
    ("File", 2),
    ("Files", 2),
    ("Finding", 2),
    ("Finished", 2),
    ("Form", 2),
    ("Format", 3),
    ("Found", 3),
    ("Given", 2),
    ("Grants", 3),
    ("Graph", 2),
    ("GraphError", 2),
    ("Group", 2),
    ("Guest", 2),
    ("Head", 2),
    ("Heard", 2),
    ("Hit", 2),
    ("Input", 3),
    ("Issue", 2),
    ("Job", 2),
    ("Judgement", 2),
    ("Kept", 2),
    ("Key", 3),
    ("Kind", 7),
    ("Language", 5),
    ("Ledger", 2),
    ("Limits", 4),
    ("Line", 2),
    ("Listed", 2),
    ("Made", 2),
    ("Manifest", 2),
    ("McpArgs", 2),
    ("Memory", 3),
    ("Message", 2),
    ("Mode", 2),
    ("Model", 2),
    ("Name", 2),
    ("NewAgent", 2),
    ("Next", 2),
    ("Note", 2),
    ("OnFailure", 2),
    ("OpenQuestion", 2),
    ("Outcome", 5),
    ("Page", 2),
    ("Part", 2),
    ("Pins", 2),
    ("Plan", 2),
    ("PlanStep", 2),
    ("Plugin", 2),
    ("Policy", 2),
    ("Project", 3),
    ("Proposal", 2),
    ("Question", 2),
    ("Ran", 2),
    ("Read", 2),
    ("Rechecked", 2),
    ("Recorder", 2),
    ("Refusal", 2),
    ("Replay", 2),
    ("Replayed", 3),
    ("Reply", 3),
    ("Report", 5),
    ("Repository", 2),
    ("Resolution", 2),
    ("Resources", 2),
    ("Reverted", 2),
    ("Role", 2),
    ("Room", 2),
    ("Row", 2),
    ("Rule", 5),
    ("Run", 2),
    ("Said", 3),
    ("Sample", 2),
    ("Schedule", 2),
    ("SchedulerStatus", 2),
    ("Scope", 3),
    ("Secret", 2),
    ("Seen", 2),
    ("Settings", 5),
    ("Setup", 2),
    ("Shelf", 2),
    ("Shown", 2),
    ("Skipped", 2),
    ("Spent", 2),
    ("Standing", 4),
    ("Start", 2),
    ("State", 4),
    ("Step", 4),
    ("StepReport", 2),
    ("StopReason", 2),
    ("Subject", 3),
    ("Summary", 2),
    ("SummaryBy", 2),
    ("Surroundings", 3),
    ("Table", 2),
    ("Tally", 3),
    ("Task", 3),
    ("TaskStatus", 2),
    ("Todo", 2),
    ("Token", 2),
    ("Trajectory", 2),
    ("Usage", 3),
    ("Used", 2),
    ("Verdict", 5),
    ("Version", 2),
    ("Wanted", 6),
    ("Way", 2),
];

#[test]
fn a_public_type_stands_once_in_the_workspace() {
    let mut listed: BTreeMap<&str, usize> = TO_BE_RENAMED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, places) in public_types() {
        let allowed = listed.remove(name.as_str()).unwrap_or(1);
        let count = stands(&name, &places);
        if count != allowed {
            let places = places.into_iter().collect::<Vec<_>>().join(", ");
            wrong.push(format!("`{name}` stands {count} times; the tables in this test say {allowed}: {places}"));
        }
    }
    wrong.extend(listed.into_keys().map(|name| format!("`{name}` is in the table and gone")));
    none(&wrong, "public types: rename one of those that are called alike, or lower the number if there are fewer");
}

#[test]
fn a_name_that_may_stand_often_does() {
    let types = public_types();
    let is_idle = |name: &str, folder: &str| types.get(name).is_none_or(|places| below(places, folder) < 2);
    let idle = SHARED.iter().filter(|(name, folder, _)| is_idle(name, folder));
    none(&idle.map(|(name, folder, _)| format!("`{name}` in {folder}")).collect::<Vec<_>>(), "needs no exception");
}

/// Each name of a public type, with the places where such a type is defined.
fn public_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    let packages = packages();
    let roots = packages.iter().flat_map(|package| package.roots()).map(shown);
    for root in roots.chain([BESIDE.to_owned()]) {
        for module in modules::read(Path::new(&root), &source) {
            for (name, line) in module.public_types {
                found.entry(name).or_default().insert(format!("{}:{line}", module.file.display()));
            }
        }
    }
    found
}

/// How often a name stands, where all that may share it count as one.
fn stands(name: &str, places: &BTreeSet<String>) -> usize {
    let shared = SHARED.iter().filter(|(shared, _, _)| *shared == name);
    let spared = shared.map(|(_, folder, _)| below(places, folder).saturating_sub(1)).sum::<usize>();
    places.len() - spared
}

fn below(places: &BTreeSet<String>, folder: &str) -> usize {
    places.iter().filter(|place| place.starts_with(folder)).count()
}
