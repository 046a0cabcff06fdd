//! Graphs under edits.

use crate::random::{Random, count, first_seed};
use longhaul_graph::{
    AnalysisMode, Graph, MissedEdge, NameUse, Node, NodeState, Observed, Python, Reason, StepGraphError, StepId,
    VariableName,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

fn graph(steps: &[(&str, &str)]) -> Graph {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for (id, source) in steps {
        graph.add_step((*id).into(), (*source).to_owned()).expect("a new step");
    }
    graph
}

fn ids(ids: &[StepId]) -> String {
    ids.iter().map(StepId::as_str).collect::<Vec<_>>().join(" ")
}

fn names(names: &[&str]) -> BTreeSet<VariableName> {
    names.iter().map(|name| VariableName::from(*name)).collect()
}

#[test]
fn a_change_makes_stale_what_depended_before_and_what_depends_now() {
    let mut graph = graph(&[("a", "x = 1"), ("b", "y = x"), ("c", "z = w"), ("d", "print(y, z)")]);
    for id in ["a", "b", "c", "d"] {
        graph.mark_fresh(&id.into()).expect("known");
    }
    assert_eq!(ids(&graph.change_step(&"a".into(), "w = 1".into()).expect("changed")), "a b c d");
    assert_eq!(ids(&graph.stale()), "a b c d");
    assert_eq!(ids(&graph.change_step(&"a".into(), "w = 1".into()).expect("the same")), "");
    graph.mark_fresh(&"b".into()).expect("known");
    assert_eq!(ids(&graph.stale()), "a c d");
    assert_eq!(ids(&graph.remove_step(&"c".into()).expect("removed")), "d");
    assert_eq!(graph.node(&"c".into()).expect_err("gone"), StepGraphError::UnknownStep { id: "c".into() });
}

#[test]
fn a_step_that_does_not_parse_keeps_what_it_wrote_and_harms_no_other() {
    let mut graph = graph(&[("a", "x = 1"), ("b", "y = x"), ("c", "z = 1")]);
    assert_eq!(ids(&graph.change_step(&"a".into(), "x = (".into()).expect("kept")), "a b");
    let NodeState::Broken(error) = &graph.node(&"a".into()).expect("known").state else { panic!("it parses") };
    assert_eq!((error.line, error.column), (1, 6));
    assert_eq!(graph.edges_into(&"b".into()).expect("known")[0].from, "a".into());
    assert_eq!(ids(&graph.change_step(&"a".into(), "w = 1".into()).expect("mended")), "a b");
    assert!(graph.edges_into(&"b".into()).expect("known").is_empty());
}

#[test]
fn a_run_that_raised_leaves_what_it_writes_uncertain() {
    let mut graph = graph(&[("a", "x = 1"), ("b", "x = f()"), ("c", "print(x)")]);
    let from = |graph: &Graph| {
        graph.edges_into(&"c".into()).expect("known").iter().map(|edge| edge.from.to_string()).collect::<String>()
    };
    assert_eq!(from(&graph), "b");
    graph.observe(&"b".into(), &Observed { failed: true, ..Observed::default() }).expect("known");
    assert_eq!(from(&graph), "ab");
    graph.observe(&"b".into(), &Observed::default()).expect("known");
    assert_eq!(from(&graph), "b");
}

#[test]
fn what_analysis_missed_becomes_an_edge_when_it_is_seen() {
    let mut graph = graph(&[("a", "xs = []"), ("b", "ys = xs"), ("c", "ys.append(1)"), ("d", "print(xs)")]);
    let seen = Observed { reads: names(&["ys", "len"]), writes: names(&["ys", "xs"]), failed: false };
    let missed = graph.observe(&"c".into(), &seen).expect("known");
    assert_eq!(missed, [MissedEdge { from: "c".into(), to: "d".into(), variable: "xs".into() }]);
    let edge = &graph.edges_into(&"d".into()).expect("known")[1];
    assert!(edge.observed && edge.variables.get("xs") == Some(&Reason::Observed));
    assert_eq!(ids(&graph.replay_from(&"c".into()).expect("known")), "c d");
    assert!(graph.observe(&"c".into(), &seen).expect("known").is_empty());
    graph.change_step(&"c".into(), "ys.append(2)".into()).expect("changed");
    assert_eq!(graph.edges_into(&"d".into()).expect("known").len(), 1);
}

#[test]
fn a_builtin_that_a_step_shadows_is_an_edge() {
    let graph = graph(&[("a", "len = 3"), ("b", "k = len"), ("c", "print(1)")]);
    assert_eq!(ids(&graph.descendants(&"a".into()).expect("known")), "b");
}

#[test]
fn steps_that_may_see_everything_depend_on_all_before_and_are_depended_on_by_all_after() {
    let graph =
        graph(&[("a", "x = 1"), ("b", "1 + 1"), ("c", "exec(s)"), ("d", "print(y)"), ("e", "2"), ("f", "globals()")]);
    assert_eq!(ids(&graph.ancestors(&"c".into(), None).expect("known")), "a");
    assert_eq!(ids(&graph.descendants(&"c".into()).expect("known")), "d f");
    assert_eq!(ids(&graph.descendants(&"a".into()).expect("known")), "c d f");
    let star = self::graph(&[("a", "from math import *"), ("b", "r = sqrt(2)")]);
    let edges: Vec<_> = star.edges().collect();
    assert_eq!(edges[0].variables.get("sqrt"), Some(&Reason::StarImport { module: "math".into() }));
}

#[test]
fn ancestors_of_some_variables_are_those_that_they_come_from() {
    let graph = graph(&[("a", "x = 1"), ("b", "y = 1"), ("c", "z = x"), ("d", "print(y, z)")]);
    let of = |variables: &[&str]| ids(&graph.ancestors(&"d".into(), Some(&names(variables))).expect("known"));
    assert_eq!(of(&["z"]), "a c");
    assert_eq!(of(&["y"]), "b");
    assert_eq!(of(&["unknown"]), "");
    assert_eq!(ids(&graph.readers_of(&"b".into(), &names(&["y", "z"])).expect("known")), "d");
}

#[test]
fn edges_against_insertion_order_are_followed_and_close_no_cycle() {
    let mut graph = graph(&[("a", "print(p)"), ("b", "x = 1"), ("c", "print(x)")]);
    graph.add_edge(&"c".into(), &"a".into(), BTreeSet::new()).expect("no cycle");
    assert_eq!(ids(&graph.replay_from(&"b".into()).expect("known")), "b c a");
    assert_eq!(ids(&graph.ancestors(&"a".into(), None).expect("known")), "b c");
    let before: Vec<_> = graph.edges().collect();
    assert!(matches!(graph.add_edge(&"a".into(), &"b".into(), BTreeSet::new()), Err(StepGraphError::Cycle { .. })));
    assert!(graph.change_step(&"a".into(), "y = 1".into()).is_ok());
    assert!(matches!(graph.change_step(&"c".into(), "print(x, y)".into()), Err(StepGraphError::Cycle { .. })));
    assert_eq!(graph.edges().collect::<Vec<_>>(), before);
    assert_eq!(graph.node(&"c".into()).expect("known").source, "print(x)");
    let observed = Observed { reads: names(&["y"]), ..Observed::default() };
    assert!(graph.observe(&"c".into(), &observed).expect("known").is_empty());
}

/// A graph after random edits, and what was done to it, in words.
struct Edited {
    graph: Graph,
    edges: BTreeMap<(StepId, StepId), BTreeSet<VariableName>>,
    told: Vec<String>,
}

const SOURCES: &[&str] = &[
    "{a} = {b}",
    "{a} += 1",
    "if {b}:\n    {a} = 1",
    "del {a}",
    "{a}.append({b})",
    "{a}[0] = {b}",
    "print({a}, {b})",
    "def {a}(x): return {b}(x)",
    "import m as {a}",
    "{a}({b})",
    "{b} = {a}.get(1)",
    "exec({b})",
    "from m import *",
    "{a} = (",
    "globals()",
    "for {a} in {b}: pass",
    "1",
];

fn source(random: &mut Random) -> String {
    let name = |random: &mut Random| format!("v{}", random.below(5));
    let (a, b) = (name(random), name(random));
    // Sources that see everything make edges of all others; few of them.
    let most = if random.below(5) == 0 { SOURCES.len() } else { 11 };
    SOURCES[random.below(most)].replace("{a}", &a).replace("{b}", &b)
}

impl Edited {
    fn new(random: &mut Random) -> Self {
        let mode = if random.below(2) == 0 { AnalysisMode::Sound } else { AnalysisMode::Precise };
        let graph = Graph::new(Arc::new(Python { mode }));
        let mut edited = Self { graph, edges: BTreeMap::new(), told: Vec::new() };
        for edit in 0..5 + random.below(40) {
            edited.edit(edit, random);
        }
        edited
    }

    fn any(&self, random: &mut Random) -> Option<StepId> {
        let at = random.below(self.graph.len().max(1));
        self.graph.steps().nth(at).map(|node| node.id.clone())
    }

    fn edit(&mut self, edit: usize, random: &mut Random) {
        let source = source(random);
        let (Some(one), Some(other), kind) = (self.any(random), self.any(random), random.below(10)) else {
            self.graph.add_step(format!("s{edit}").as_str().into(), source).expect("a new step");
            return;
        };
        self.told.push(format!("{kind} {one} {other} {source:?}"));
        match kind {
            0..=3 => self.graph.add_step(format!("s{edit}").as_str().into(), source).expect("a new step"),
            4..=6 => self.unharmed_by(|graph| graph.change_step(&one, source).map(|_| ())),
            7 => {
                if self.graph.remove_step(&one).is_ok() {
                    self.edges.retain(|(from, to), _| *from != one && *to != one);
                }
            }
            8 => {
                let variables = names(&["v0"]);
                if self.graph.add_edge(&one, &other, variables.clone()).is_ok() {
                    self.edges.entry((one, other)).or_default().extend(variables);
                }
            }
            _ => {
                let observed = Observed { reads: names(&["v1"]), writes: names(&["v2"]), failed: random.below(2) == 0 };
                self.graph.observe(&one, &observed).expect("known");
            }
        }
    }

    /// An edit that is refused changes nothing.
    fn unharmed_by(&mut self, edit: impl FnOnce(&mut Graph) -> Result<(), StepGraphError>) {
        let before = (self.graph.edges().collect::<Vec<_>>(), self.graph.stale());
        if edit(&mut self.graph).is_err() {
            assert_eq!((self.graph.edges().collect::<Vec<_>>(), self.graph.stale()), before);
        }
    }

    /// The same graph, made at once.
    fn made_at_once(&self) -> Graph {
        let mut graph = Graph::new(self.graph.language().clone());
        for node in self.graph.steps() {
            let first = node.last_good.as_deref().unwrap_or(&node.source);
            graph.add_step(node.id.clone(), first.to_string()).expect("a new step");
            graph.change_step(&node.id, node.source.to_string()).expect("no edge was asked for yet");
        }
        for ((from, to), variables) in &self.edges {
            graph.add_edge(from, to, variables.clone()).expect("it was there");
        }
        for node in self.graph.steps() {
            let (reads, writes) = (node.observed().reads.clone(), node.observed().writes.clone());
            graph.observe(&node.id, &Observed { reads, writes, failed: node.observed().failed }).expect("known");
        }
        graph
    }
}

/// The edges by the definition: back from a reader over every writer to the first that settles.
fn defined_edges(edited: &Edited) -> BTreeSet<(StepId, StepId)> {
    let nodes: Vec<&Node> = edited.graph.steps().collect();
    let parsed = |node: &Node| node.state == NodeState::Parsed;
    let all = |node: &Node, reads: bool| {
        node.analysis
            .sees_all()
            .is_some_and(|reason| !reads || (parsed(node) && !matches!(reason, Reason::StarImport { .. })))
    };
    // Which changes in place the steps together prove not to happen, the tests of the proofs say.
    let changed: BTreeMap<&StepId, BTreeSet<VariableName>> =
        nodes.iter().map(|node| (&node.id, edited.graph.changed_by(&node.id).expect("known"))).collect();
    let writes = |node: &Node, name: &VariableName| {
        let analysis = &node.analysis;
        all(node, false)
            || analysis.of(name).is_some_and(NameUse::is_changed_for_certain)
            || (analysis.mutates().any(|one| one == name) && changed[&node.id].contains(name))
            || node.observed().writes.contains(name)
    };
    let universe: BTreeSet<VariableName> = (0..5).map(|number| VariableName::from(format!("v{number}"))).collect();
    let mut edges: BTreeSet<_> = edited.edges.keys().cloned().collect();
    for (at, reader) in nodes.iter().enumerate() {
        let analysis = &reader.analysis;
        let mut read: BTreeSet<VariableName> = BTreeSet::new();
        if parsed(reader) {
            read.extend(analysis.reads().chain(analysis.builtins()).chain(&reader.observed().reads).cloned());
        }
        if all(reader, true) {
            read.extend(universe.iter().cloned());
            edges.extend(
                nodes[..at].iter().filter(|node| all(node, false)).map(|node| (node.id.clone(), reader.id.clone())),
            );
        }
        for name in &read {
            for writer in nodes[..at].iter().rev() {
                if writes(writer, name) {
                    edges.insert((writer.id.clone(), reader.id.clone()));
                }
                if parsed(writer)
                    && !writer.observed().failed
                    && writer.analysis.of(name).is_some_and(|known| known.settled.is_some())
                {
                    break;
                }
            }
        }
    }
    edges
}

fn reached(edges: &BTreeSet<(StepId, StepId)>, from: &StepId, back: bool) -> BTreeSet<StepId> {
    let (mut found, mut open) = (BTreeSet::new(), VecDeque::from([from.clone()]));
    while let Some(at) = open.pop_front() {
        for (start, end) in edges {
            let (here, there) = if back { (end, start) } else { (start, end) };
            if *here == at && found.insert(there.clone()) {
                open.push_back(there.clone());
            }
        }
    }
    found
}

fn holds(edited: &Edited) {
    let graph = &edited.graph;
    let scratch = edited.made_at_once();
    assert_eq!(graph.edges().collect::<Vec<_>>(), scratch.edges().collect::<Vec<_>>());
    let edges: BTreeSet<_> = graph.edges().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(edges, defined_edges(edited));
    let out: BTreeSet<_> = graph
        .steps()
        .flat_map(|node| graph.edges_out(&node.id).expect("known"))
        .map(|edge| (edge.from, edge.to))
        .collect();
    assert_eq!(out, edges);
    for node in graph.steps() {
        let set = |ids: Vec<StepId>| ids.into_iter().collect::<BTreeSet<_>>();
        let after = set(graph.descendants(&node.id).expect("known"));
        assert_eq!(after, reached(&edges, &node.id, false), "after {}", node.id);
        let before = set(graph.ancestors(&node.id, None).expect("known"));
        assert_eq!(before, reached(&edges, &node.id, true), "before {}", node.id);
        let order = graph.replay_from(&node.id).expect("known");
        assert_eq!(order.len(), after.len() + 1);
        for (at, later) in order.iter().enumerate() {
            assert!(order[..at].iter().all(|earlier| !edges.contains(&(later.clone(), earlier.clone()))));
        }
    }
}

/// `LONGHAUL_GRAPHS` says how many graphs, `LONGHAUL_SEED` where to begin.
#[test]
fn a_graph_after_any_edits_is_the_graph_made_at_once() {
    let first = first_seed("LONGHAUL_SEED");
    for seed in first..first + count("LONGHAUL_GRAPHS", 300) as u64 {
        let edited = Edited::new(&mut Random::new(seed));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| holds(&edited)));
        assert!(checked.is_ok(), "LONGHAUL_SEED={seed}: after {:#?}", edited.told);
    }
}

#[test]
fn an_edge_that_was_asked_for_is_told_as_one_also_where_more_were_than_are_told() {
    let mut graph = Graph::new(Arc::new(Python::default()));
    let many: Vec<StepId> = (0..10).map(|at| StepId::new(format!("s{at}"))).collect();
    many.iter().for_each(|id| graph.add_step(id.clone(), "y = 1".to_owned()).expect("a new step"));
    let reader: StepId = "t".into();
    graph.add_step(reader.clone(), "print(y, z)".to_owned()).expect("a new step");
    for id in &many {
        graph.add_edge(id, &reader, [VariableName::from("z")].into()).expect("no cycle");
    }
    let (edges, _) = graph.nearest_edges_into(&reader, 8).expect("known");
    let nearest = edges.last().expect("it reads `y`");
    assert!(nearest.from == many[9] && nearest.explicit, "{nearest:?}");
    assert_eq!(nearest.variables.keys().map(|name| &**name).collect::<Vec<_>>(), ["y", "z"]);
}
