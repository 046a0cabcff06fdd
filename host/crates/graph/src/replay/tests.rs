//! The machine against one namespace in which everything runs from the start, through steps of a toy language.
//!
//! A value is a list of numbers, which variables can share. `peek` looks at a name that analysis does not see, `live`
//! makes what cannot be kept.

use super::{NextStep, Replay, ReplaySettings, ReportOutcome, Skip, StepHistory};
use crate::analysis::{Analysis, NameUse, Reason, Span, StepLanguage, SyntaxError, VariableName};
use crate::graph::{Graph, StepId};
use crate::step::{Delta, Exception, KeptValues, StepEnd, StepReport, StepRequest, ValueGroup};
use longhaul_core::Digest;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

struct Toy;

impl StepLanguage for Toy {
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError> {
        let mut found: BTreeMap<VariableName, NameUse> = BTreeMap::new();
        for line in source.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = Some(Span { start: 0, end: 0, line: 1, column: 1 });
            match words[0] {
                "broken" => return Err(SyntaxError { message: "broken".into(), line: 1, column: 1 }),
                "fail" => {}
                "push" => {
                    of(&mut found, words[1]).read = read;
                    of(&mut found, words[2]).read = read;
                    of(&mut found, words[1]).mutated = Some(Box::new(Reason::MethodCall { method: "push".into() }));
                }
                "del" => {
                    let known = of(&mut found, words[1]);
                    (known.read, known.deleted, known.written) = (read, true, true);
                }
                word => {
                    let hidden = if word == "peek" { words.len() } else { 2 };
                    words[hidden..].iter().for_each(|word| of(&mut found, word).read = read);
                    of(&mut found, words[1]).written = true;
                }
            }
        }
        Ok(Analysis::new(found.into_values().collect(), None))
    }

    fn name(&self) -> &'static str {
        "toy"
    }
}

fn of<'f>(found: &'f mut BTreeMap<VariableName, NameUse>, name: &str) -> &'f mut NameUse {
    found.entry(name.into()).or_insert_with(|| NameUse::new(name.into()))
}

/// Names that share cells.
#[derive(Clone, Debug, Default)]
struct World {
    names: BTreeMap<VariableName, usize>,
    cells: Vec<(Vec<i64>, bool)>,
    read: BTreeSet<VariableName>,
    own: BTreeSet<VariableName>,
}

impl World {
    fn bind(&mut self, name: &str, numbers: Vec<i64>, is_live: bool) {
        self.cells.push((numbers, is_live));
        self.names.insert(name.into(), self.cells.len() - 1);
        self.own.insert(name.into());
    }

    fn look(&mut self, name: &str) -> Result<usize, String> {
        if !self.own.contains(name) {
            self.read.insert(name.into());
        }
        self.names.get(name).copied().ok_or_else(|| format!("no {name}"))
    }

    fn sum(&mut self, name: &str) -> Result<i64, String> {
        let cell = self.look(name)?;
        Ok(self.cells[cell].0.iter().sum())
    }

    fn run(&mut self, source: &str) -> Result<(), String> {
        for line in source.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["set", name] => self.bind(name, vec![1], false),
                ["live", name] => self.bind(name, vec![2], true),
                ["add" | "peek", name, others @ ..] => {
                    let sum = others.iter().map(|other| self.sum(other)).sum::<Result<i64, _>>()?;
                    self.bind(name, vec![sum % 7], false);
                }
                ["same", name, other] => {
                    let cell = self.look(other)?;
                    self.names.insert((*name).into(), cell);
                    self.own.insert((*name).into());
                }
                ["push", name, other] => {
                    let (cell, sum) = (self.look(name)?, self.sum(other)?);
                    self.cells[cell].0.push(sum % 5);
                }
                ["del", name] => {
                    self.look(name)?;
                    self.names.remove(*name);
                    self.own.insert((*name).into());
                }
                _ => return Err("fail".into()),
            }
        }
        Ok(())
    }

    /// Groups of names that share a cell, with what is in it.
    fn groups(&self) -> BTreeMap<BTreeSet<VariableName>, (Vec<i64>, bool)> {
        let mut names: BTreeMap<usize, BTreeSet<VariableName>> = BTreeMap::new();
        self.names.iter().for_each(|(name, cell)| {
            names.entry(*cell).or_default().insert(Arc::clone(name));
        });
        names.into_iter().map(|(cell, names)| (names, self.cells[cell].clone())).collect()
    }
}

/// The data that is kept between processes.
#[derive(Clone, Default)]
struct Disk {
    steps: Vec<(StepId, String, bool)>,
    histories: HashMap<StepId, StepHistory>,
}

struct Runner {
    blobs: HashMap<Digest, Vec<i64>>,
    runs: Vec<StepId>,
}

impl Runner {
    fn run(&mut self, request: &StepRequest) -> StepReport {
        let mut world = World::default();
        for given in &request.given {
            world.cells.push((self.blobs[&given.blob].clone(), false));
            world.names.extend(given.names.iter().map(|name| (Arc::clone(name), world.cells.len() - 1)));
        }
        request.before.iter().for_each(|before| drop(world.run(&before.source)));
        let (before, cells) = (world.groups(), world.names.clone());
        (world.read, world.own) = (BTreeSet::new(), BTreeSet::new());
        let ended = world.run(&request.source);
        let after = world.groups();
        // A group that no step read is as it was, though it lost a variable.
        let is_untouched = |names: &BTreeSet<VariableName>| {
            let is_same = |name: &VariableName| cells.get(name) == world.names.get(name);
            let mates = before.keys().filter(|group| !group.is_disjoint(names)).flatten();
            names.iter().all(is_same) && mates.into_iter().all(|name| !world.read.contains(name))
        };
        let mut report = StepReport::of(request.step.clone());
        for (names, (numbers, is_live)) in &after {
            // A group that the step bound without reading it is the step's, even if its values are as before.
            let is_looked_at = names.iter().any(|name| world.read.contains(name));
            let is_equal = !is_live && before.get(names).is_some_and(|(old, was_live)| old == numbers && !was_live);
            if is_untouched(names) || (is_looked_at && is_equal) {
                report.rebound.extend(names.intersection(&world.own).cloned());
                continue;
            }
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let value = Digest::of(&bytes);
            self.blobs.insert(value, numbers.clone());
            let kept = if *is_live {
                KeptValues::Live { reason: "live".into(), value }
            } else {
                KeptValues::Stored { blob: value, bytes: bytes.len() as u64, value }
            };
            // All names of a group have one cell, and each reaches it alone.
            let alone = names.iter().map(|name| (Arc::clone(name), value)).collect();
            let needs = BTreeSet::new();
            report.delta.groups.push(Arc::new(ValueGroup { names: names.clone(), kept, needs, alone }));
        }
        let is_gone = |name: &&VariableName| !world.names.contains_key(*name);
        report.delta.deleted = before.keys().flatten().chain(&world.own).filter(is_gone).cloned().collect();
        report.ended = match ended {
            Ok(()) => StepEnd::Well,
            Err(message) => StepEnd::Raised(Exception { message, ..Exception::default() }),
        };
        report.reads = world.read;
        self.runs.push(request.step.clone());
        report
    }
}

fn settings(keeps_going: bool) -> ReplaySettings {
    ReplaySettings { seed: Digest::of(b"seed"), grants: Digest::of(b"none"), acts: false, keeps_going }
}

fn fresh(keeps_going: bool) -> (Replay, Runner) {
    let replay = Replay::new(Graph::new(Arc::new(Toy)), settings(keeps_going));
    (replay, Runner { blobs: HashMap::new(), runs: Vec::new() })
}

fn saved(replay: &Replay) -> Disk {
    let steps = replay.graph().steps().map(|node| {
        let is_stale = replay.graph().is_stale(&node.id).expect("a step");
        (node.id.clone(), node.source.to_string(), is_stale)
    });
    let steps: Vec<_> = steps.collect();
    let history = |id: &StepId| replay.history(id).expect("a step").map(|history| (id.clone(), history.clone()));
    let histories = steps.iter().filter_map(|(id, ..)| history(id)).collect();
    Disk { steps, histories }
}

fn restored(disk: &Disk) -> Replay {
    let mut graph = Graph::new(Arc::new(Toy));
    for (id, source, is_stale) in &disk.steps {
        graph.add_step(id.clone(), source.clone()).expect("a new step");
        if !is_stale {
            graph.mark_fresh(id).expect("a step");
        }
    }
    Replay::restore(graph, settings(true), disk.histories.clone()).expect("histories of its steps")
}

/// Walks to the end, or until so many runs and answers; answers what was skipped.
fn walk(replay: &mut Replay, runner: &mut Runner, most: usize) -> Vec<(StepId, Skip)> {
    let mut skipped = Vec::new();
    replay.start().expect("a walk");
    for _ in 0..most {
        match replay.next().expect("a step") {
            NextStep::Done => break,
            NextStep::Answered { .. } => {}
            NextStep::Skipped { step, why } => skipped.push((step, why)),
            NextStep::Run(request) => {
                let report = runner.run(&request);
                replay.ran(report).expect("a report");
            }
        }
    }
    skipped
}

/// The namespace that the machine has at its end.
fn namespace(replay: &Replay, runner: &Runner) -> BTreeMap<BTreeSet<VariableName>, Vec<i64>> {
    let names = replay.namespace.names(u64::MAX);
    let (given, _) = replay.namespace.groups(&names, u64::MAX);
    given.into_iter().map(|given| (given.names, runner.blobs[&given.blob].clone())).collect()
}

#[track_caller]
fn equals_running_everything(replay: &Replay, runner: &Runner, shown: &str) {
    let mut world = World::default();
    for node in replay.graph().steps() {
        world.own.clear();
        let ended = world.run(&node.source);
        let history = replay.history(&node.id).expect("a step").expect("a history");
        let found = match &history.current.as_ref().expect("a run").report.ended {
            StepEnd::Raised(exception) => Err(exception.message.clone()),
            _ => Ok(()),
        };
        assert_eq!(found, ended, "step {} of {shown}", node.id);
    }
    let kept = world.groups().into_iter().filter(|(_, (_, is_live))| !is_live);
    let expected: BTreeMap<_, _> = kept.map(|(names, (numbers, _))| (names, numbers)).collect();
    assert_eq!(namespace(replay, runner), expected, "{shown}");
}

fn with(steps: &[(&str, &str)]) -> (Replay, Runner) {
    let (mut replay, runner) = fresh(false);
    for (id, source) in steps {
        replay.add_step(StepId::from(*id), (*source).to_owned()).expect("a new step");
    }
    (replay, runner)
}

fn ids(list: &[&str]) -> Vec<StepId> {
    list.iter().map(|&id| StepId::from(id)).collect()
}

#[test]
fn only_what_a_change_reaches_runs() {
    let (mut replay, mut runner) =
        with(&[("a", "set x"), ("b", "set y"), ("c", "add z x"), ("d", "add w y"), ("e", "add v z")]);
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["a", "b", "c", "d", "e"]));
    runner.runs.clear();
    replay.change_step(&StepId::from("a"), "set x\npush x x".into()).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["a", "c", "e"]));
    // A state of before is answered from kept results.
    runner.runs.clear();
    replay.change_step(&StepId::from("a"), "set x".into()).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert!(runner.runs.is_empty(), "{:?}", runner.runs);
    equals_running_everything(&replay, &runner, "after both");
}

#[test]
fn a_walk_stops_where_values_stay_the_same() {
    let (mut replay, mut runner) = with(&[("a", "set x"), ("b", "set y"), ("c", "add z x"), ("d", "add w z")]);
    walk(&mut replay, &mut runner, 99);
    runner.runs.clear();
    replay.change_step(&StepId::from("a"), "set t\nadd x t".into()).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["a"]));
    assert!(replay.graph().stale().is_empty());
}

#[test]
fn a_missed_read_is_given_told_and_followed() {
    let (mut replay, mut runner) = with(&[("a", "set x"), ("b", "peek y x"), ("c", "add z y")]);
    replay.start().expect("a walk");
    let mut missed = Vec::new();
    loop {
        match replay.next().expect("a step") {
            NextStep::Done => break,
            NextStep::Run(request) => match replay.ran(runner.run(&request)).expect("a report") {
                ReportOutcome::Kept { missed: found, .. } => missed.extend(found),
                ReportOutcome::Again { missing } => {
                    assert_eq!(missing.into_iter().collect::<Vec<_>>(), [VariableName::from("x")])
                }
            },
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(runner.runs, ids(&["a", "b", "b", "c"]));
    assert!(missed.iter().any(|edge| (edge.from.as_str(), edge.to.as_str()) == ("a", "b")), "{missed:?}");
    replay.change_step(&StepId::from("a"), "set x\npush x x".into()).expect("a step");
    runner.runs.clear();
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["a", "b", "c"]));
}

#[test]
fn what_depends_on_a_failure_waits_until_it_is_mended() {
    let (mut replay, mut runner) = with(&[("a", "set x\nfail"), ("b", "add y x"), ("c", "add z y"), ("d", "set w")]);
    let blocked = |by: &str| Skip::Blocked { by: StepId::from(by) };
    let skipped = walk(&mut replay, &mut runner, 99);
    assert_eq!(skipped, [(StepId::from("b"), blocked("a")), (StepId::from("c"), blocked("a"))]);
    // It stays so, and the failure does not run again for nothing.
    runner.runs.clear();
    assert_eq!(walk(&mut replay, &mut runner, 99).len(), 2);
    assert!(runner.runs.is_empty(), "{:?}", runner.runs);
    replay.change_step(&StepId::from("a"), "set x".into()).expect("a step");
    assert!(walk(&mut replay, &mut runner, 99).is_empty());
    equals_running_everything(&replay, &runner, "mended");
}

#[test]
fn a_source_that_does_not_parse_holds_up_its_dependants_alone() {
    let (mut replay, mut runner) = with(&[("a", "set x"), ("b", "add y x"), ("c", "set z")]);
    walk(&mut replay, &mut runner, 99);
    replay.change_step(&StepId::from("a"), "broken".into()).expect("a step");
    let skipped = walk(&mut replay, &mut runner, 99);
    assert_eq!(skipped[0], (StepId::from("a"), Skip::Broken));
    assert!(skipped.iter().all(|(step, _)| step.as_str() != "c"), "{skipped:?}");
}

#[test]
fn reports_that_nobody_asked_for_or_that_are_none_change_nothing() {
    let (mut replay, mut runner) = with(&[("a", "set x")]);
    assert!(replay.ran(StepReport::of(StepId::from("a"))).is_err());
    replay.start().expect("a walk");
    let NextStep::Run(request) = replay.next().expect("a step") else { panic!("a runs") };
    let mut report = runner.run(&request);
    report.delta.groups.push(Arc::clone(&report.delta.groups[0]));
    assert!(replay.ran(report).is_err());
    assert!(replay.history(&StepId::from("a")).expect("a step").is_none_or(|history| history.current.is_none()));
    let NextStep::Run(request) = replay.next().expect("a step") else { panic!("a is still to be run") };
    let mut stopped = StepReport::of(request.step);
    stopped.ended = StepEnd::Stopped { limit: Some("fuel_max".into()), message: String::new() };
    stopped.delta = Delta { deleted: BTreeSet::from(["x".into()]), ..Delta::default() };
    assert!(replay.ran(stopped).is_err());
}

#[test]
fn what_may_act_is_not_asked_for_a_second_time_after_a_crash() {
    let (mut replay, mut runner) = with(&[("a", "set x"), ("b", "add y x")]);
    replay.set_settings(ReplaySettings { acts: true, ..settings(false) });
    replay.start().expect("a walk");
    let NextStep::Run(request) = replay.next().expect("a step") else { panic!("a runs") };
    assert_eq!((request.acts, replay.take_changed()), (true, ids(&["a"])));
    let disk = saved(&replay);
    let mut replay = restored(&disk);
    let skipped = walk(&mut replay, &mut runner, 99);
    assert_eq!(skipped, [(StepId::from("a"), Skip::Unknown)]);
    assert!(!runner.runs.contains(&StepId::from("a")));
    replay.again(&StepId::from("a")).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert!(runner.runs.contains(&StepId::from("a")));
}

#[test]
fn a_step_that_only_shares_a_value_makes_no_reader_of_it_run() {
    // `b` has `row` share what `a` made. `c` and `e` read it alone, and `d` changes it.
    let steps =
        [("a", "set rows"), ("b", "same row rows"), ("c", "add n rows"), ("d", "push rows n"), ("e", "add m rows")];
    let (mut replay, mut runner) = with(&steps);
    walk(&mut replay, &mut runner, 99);
    equals_running_everything(&replay, &runner, "at first");
    let needs = |replay: &Replay, id: &str| -> Vec<String> {
        let edges = replay.graph().edges_into(&StepId::from(id)).expect("a step");
        edges.iter().map(|edge| edge.from.to_string()).collect()
    };
    assert_eq!(needs(&replay, "c"), ["a"]);
    assert_eq!(needs(&replay, "d"), ["a", "b", "c"], "what it leaves has `row` in it");
    runner.runs.clear();
    replay.change_step(&StepId::from("b"), "set row".into()).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["b", "d"]), "the value of `rows` is as it was for `c` and, after `d`, for `e`");
    equals_running_everything(&replay, &runner, "apart");
}

#[test]
fn a_step_that_reads_two_variables_depends_on_what_they_share() {
    let (mut replay, mut runner) = with(&[("a", "set x\nset y"), ("b", "add z x y"), ("c", "push x z")]);
    walk(&mut replay, &mut runner, 99);
    runner.runs.clear();
    replay.change_step(&StepId::from("a"), "set x\nsame y x".into()).expect("a step");
    walk(&mut replay, &mut runner, 99);
    assert_eq!(runner.runs, ids(&["a", "b", "c"]));
    equals_running_everything(&replay, &runner, "one list under two names");
}

#[test]
fn a_file_that_changed_makes_its_readers_run_and_one_that_is_back_is_answered() {
    let (mut replay, mut runner) = with(&[("a", "set x"), ("b", "add y x"), ("c", "set z")]);
    let content = |text: &str| BTreeMap::from([("/data/a.csv".to_owned(), Some(Digest::of(text.as_bytes())))]);
    let mut now = content("one");
    // The walk of a runner whose step `a` reads the file.
    let mut run = |replay: &mut Replay, now: &BTreeMap<String, Option<Digest>>| {
        runner.runs.clear();
        replay.start().expect("a walk");
        loop {
            match replay.next().expect("a step") {
                NextStep::Done => return runner.runs.clone(),
                NextStep::Run(request) => {
                    let mut report = runner.run(&request);
                    if request.step.as_str() == "a" {
                        report.files = now.clone();
                    }
                    replay.ran(report).expect("a report");
                }
                NextStep::Answered { .. } | NextStep::Skipped { .. } => {}
            }
        }
    };
    assert_eq!(run(&mut replay, &now), ids(&["a", "b", "c"]));
    assert_eq!(replay.files().into_iter().collect::<Vec<_>>(), ["/data/a.csv"]);
    assert!(replay.set_files(now.clone()).expect("known").is_empty());
    now = content("two");
    assert_eq!(replay.set_files(now.clone()).expect("known"), ids(&["a", "b"]));
    // The step leaves the same value, so that nothing behind it runs.
    assert_eq!(run(&mut replay, &now), ids(&["a"]));
    assert!(replay.graph().stale().is_empty());
    now = content("one");
    assert_eq!(replay.set_files(now.clone()).expect("known"), ids(&["a", "b"]));
    assert!(run(&mut replay, &now).is_empty());
    assert_eq!(replay.set_files(BTreeMap::from([("/data/a.csv".to_owned(), None)])).expect("known"), ids(&["a", "b"]));
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap_or(0)
    }

    fn name(&mut self) -> &'static str {
        ["p", "q", "r", "s", "t"][self.below(5)]
    }

    fn source(&mut self) -> String {
        let lines: Vec<String> = (0..=self.below(3)).map(|_| self.line()).collect();
        lines.join("\n")
    }

    fn line(&mut self) -> String {
        let (one, two, three) = (self.name(), self.name(), self.name());
        match self.below(14) {
            0 | 1 => format!("set {one}"),
            2 | 3 => format!("add {one} {two} {three}"),
            4 | 5 => format!("peek {one} {two}"),
            6 | 7 => format!("same {one} {two}"),
            8..11 => format!("push {one} {two}"),
            11 => format!("del {one}"),
            12 => format!("live {one}"),
            _ => "fail".to_owned(),
        }
    }
}

/// `LONGHAUL_REPLAYS` says how many graphs, 300 by default.
#[test]
fn random_edits_and_crashes_end_as_running_everything_does() {
    let count = std::env::var("LONGHAUL_REPLAYS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for seed in 0..count {
        let mut random = Random(seed);
        let (mut replay, mut runner) = fresh(true);
        for at in 0..2 + random.below(7) {
            replay.add_step(StepId::from(format!("s{at}").as_str()), random.source()).expect("a new step");
        }
        for edit in 0..6 {
            // A crash: what was kept so far is all there is.
            let most = random.below(12);
            walk(&mut replay, &mut runner, most);
            replay = restored(&saved(&replay));
            walk(&mut replay, &mut runner, 1_000);
            let sources: Vec<String> = replay
                .graph()
                .steps()
                .map(|node| format!("{}: {}", node.id, node.source.replace('\n', "; ")))
                .collect();
            equals_running_everything(&replay, &runner, &format!("seed {seed}, edit {edit}\n{}", sources.join("\n")));
            assert!(replay.graph().stale().is_empty(), "seed {seed}, edit {edit}");
            let steps: Vec<StepId> = replay.graph().steps().map(|node| node.id.clone()).collect();
            let id = &steps[random.below(steps.len())];
            match random.below(8) {
                0 if steps.len() > 2 => drop(replay.remove_step(id).expect("a step")),
                1 => replay.add_step(StepId::from(format!("n{edit}").as_str()), random.source()).expect("a new step"),
                _ => drop(replay.change_step(id, random.source()).expect("a step")),
            }
        }
    }
}
