//! Steps added at once, held against the same steps added one after another.

use crate::cases::cases_of;
use crate::oracle::program;
use crate::random::{count, first_seed};
use longhaul_graph::graph::STEPS_MAX;
use longhaul_graph::{Analysis, AnalysisMode, Graph, Python, StepGraphError, StepId, StepLanguage, SyntaxError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Steps = Vec<(StepId, String)>;

fn steps<'a>(sources: impl IntoIterator<Item = &'a str>) -> Steps {
    sources.into_iter().enumerate().map(|(at, source)| (StepId::new(format!("s{at}")), source.to_owned())).collect()
}

fn one_by_one(graph: &mut Graph, steps: Steps) -> Result<(), StepGraphError> {
    steps.into_iter().try_for_each(|(id, source)| graph.add_step(id, source))
}

/// All that can be asked of a graph.
fn everything(graph: &Graph) -> String {
    let nodes: Vec<_> = graph.steps().collect();
    let edges: Vec<_> = graph.edges().collect();
    let replays: Vec<_> = nodes.iter().map(|node| graph.replay_from(&node.id).expect("known")).collect();
    let found: Vec<_> = nodes.iter().map(|node| graph.node(&node.id).expect("known").position).collect();
    format!("{nodes:#?} {edges:#?} {replays:?} {found:?} {:?} {}", graph.stale(), graph.len())
}

/// Adds all, both ways, to a graph that has steps already, and then as many again.
#[track_caller]
fn check(language: impl StepLanguage + 'static, sources: &[String]) {
    let steps = steps(sources.iter().map(String::as_str));
    let (first, second) = steps.split_at(steps.len() / 2);
    let mut one = Graph::new(Arc::new(language));
    one.add_step("before".into(), "a = b = 1".to_owned()).expect("added");
    one.add_step("gone".into(), "c = a".to_owned()).expect("added");
    one.remove_step(&"gone".into()).expect("removed");
    let mut many = one.clone();
    for half in [first, second] {
        one_by_one(&mut one, half.to_vec()).expect("added");
        many.add_steps(half.to_vec()).expect("added");
        assert_eq!(everything(&one), everything(&many));
    }
}

#[test]
fn the_cases_give_the_same_graphs() {
    let programs = cases_of("esg_programs").into_iter().map(|case| case["steps"].clone());
    let programs = programs.map(|steps| {
        let sources = steps.as_array().expect("steps").iter().map(|step| step[1].as_str().expect("a source"));
        sources.map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    let alone = cases_of("esg_reads_writes");
    let alone = alone.iter().map(|case| case["source"].as_str().expect("a source").to_owned()).collect();
    for sources in programs.chain([alone]) {
        check(Python { mode: AnalysisMode::Precise }, &sources);
    }
}

/// `LONGHAUL_SEED` says where to begin.
#[test]
fn programs_drawn_at_random_give_the_same_graph_also_those_that_do_not_parse() {
    let first = first_seed("LONGHAUL_SEED");
    let drawn = (first..first + count("LONGHAUL_GRAPHS", 300) as u64).map(program);
    // So deep that another thread parses them, and one too deep for any.
    let deep = |count: usize| format!("d = {}a{}", "(".repeat(count), ")".repeat(count));
    let sources: Vec<String> = drawn.chain([deep(100), deep(200), deep(201), "x = (".to_owned()]).collect();
    check(Python::default(), &sources);
    let broken = sources.iter().filter(|source| Python::default().analyse(source).is_err()).count();
    assert!(broken > 10 && broken < sources.len() - 10, "{broken} of {} do not parse", sources.len());
}

/// The first error that adding one after another would meet, and nothing is added.
#[track_caller]
fn check_refused(graph: &Graph, steps: &Steps, error: &StepGraphError) {
    let (mut one, mut many) = (graph.clone(), graph.clone());
    assert_eq!(one_by_one(&mut one, steps.clone()).as_ref(), Err(error));
    assert_eq!(many.add_steps(steps.clone()).as_ref(), Err(error));
    assert_eq!(format!("{many:?} {:?}", many.stale()), format!("{graph:?} {:?}", graph.stale()));
    for (id, _) in steps {
        assert_eq!(many.node(id).is_ok(), graph.node(id).is_ok());
    }
    // A refused step has taken no name and no position.
    one_by_one(&mut many, self::steps(["last = 1"])).expect("added");
    let last = many.node(&"s0".into()).expect("known").position;
    assert_eq!(last, graph.steps().last().map_or(0, |node| node.position + 1));
}

#[test]
fn steps_of_which_one_has_a_name_that_is_taken_are_not_added() {
    let mut graph = Graph::new(Arc::new(Python::default()));
    graph.add_step("there".into(), "a = 1".to_owned()).expect("added");
    let many: Vec<String> = (0..500).map(|at| format!("v{at} = a")).collect();
    for (at, id) in [(0, "there"), (250, "there"), (499, "there"), (499, "s3")] {
        let mut steps = steps(many.iter().map(String::as_str));
        steps[at].0 = id.into();
        // The names that are free again are asked for by the check.
        check_refused(&graph, &steps, &StepGraphError::DuplicateStep { id: id.into() });
    }
}

#[test]
fn steps_that_do_not_all_fit_are_not_added() {
    let named = |at: usize| (StepId::new(format!("n{at}")), String::new());
    let mut graph = Graph::new(Arc::new(Python::default()));
    graph.add_steps((0..STEPS_MAX - 2).map(named)).expect("they fit");
    let two = steps(["a = 1", "b = a"]);
    check_refused(&graph, &steps(["a = 1", "b = a", "c = b"]), &StepGraphError::TooManySteps { steps_max: STEPS_MAX });
    graph.add_steps(two).expect("they fit");
    assert_eq!(graph.len(), STEPS_MAX);
    graph.add_steps([]).expect("none always fit");
}

/// Fails in one of many sources.
struct Failing;

impl StepLanguage for Failing {
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError> {
        assert_ne!(source, "v300 = 1", "here");
        Ok(Analysis::default())
    }

    fn name(&self) -> &'static str {
        "failing"
    }
}

#[test]
fn a_language_that_panics_does_so_where_the_steps_were_added() {
    let sources: Vec<String> = (0..1_000).map(|at| format!("v{at} = 1")).collect();
    for _ in 0..20 {
        let mut graph = Graph::new(Arc::new(Failing));
        graph.add_step("before".into(), String::new()).expect("added");
        let add = AssertUnwindSafe(|| graph.add_steps(steps(sources.iter().map(String::as_str))));
        assert!(catch_unwind(add).is_err(), "nothing was added, and nobody was told");
        assert_eq!(graph.node(&"before".into()).map(|node| node.position), Ok(0));
    }
    check(Python::default(), &sources);
}
