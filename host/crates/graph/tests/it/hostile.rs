//! Sources made to end the host, and graphs too large to be drawn whole.

use longhaul_graph::analysis::{LEANING_MAX, NESTING_MAX, SOURCE_BYTES_MAX};
use longhaul_graph::{Graph, Python, Settled, StepLanguage, SyntaxError, draw, export};
use std::sync::Arc;

fn analyse(source: &str) -> Result<(), SyntaxError> {
    Python::default().analyse(source).map(|_| ())
}

#[track_caller]
fn refused(source: &str, why: &str) {
    let error = analyse(source).expect_err("it is refused");
    assert!(error.message.contains(why), "{error}");
}

#[test]
fn a_source_of_a_million_bytes_is_read_and_one_byte_more_is_refused() {
    let line = "value_1 = value_0 + 1\n";
    let mut source = line.repeat(SOURCE_BYTES_MAX / line.len());
    source.push_str(&"#".repeat(SOURCE_BYTES_MAX - source.len()));
    analyse(&source).expect("a million bytes are read");
    source.push('#');
    refused(&source, "1000001 bytes; the most is 1000000");
}

#[test]
fn many_names_on_one_line_are_read() {
    let names: Vec<String> = (0..90_000).map(|number| format!("n{number}")).collect();
    let found = Python::default().analyse(&format!("x = [{}]", names.join(","))).expect("it is read");
    assert_eq!(found.reads().count(), 90_000);
    assert_eq!(found.of("n1").and_then(|known| known.read).map(|span| span.line), Some(1));
}

#[test]
fn a_long_source_of_any_form_ends_in_an_answer() {
    for (source, is_python) in [
        ("x = [".to_owned() + &"a, ".repeat(300_000) + "]", true),
        ("a = ".repeat(200_000) + "1", true),
        ("x = '".to_owned() + &"a".repeat(900_000), false),
        ("a, ".repeat(300_000) + "\nif", false),
        ("a".repeat(990_000), true),
        ("(".repeat(990_000), false),
        ("f(".repeat(400_000), false),
        ("'a' ".repeat(240_000), true),
        ("x = 1\n".repeat(150_000), true),
    ] {
        assert_eq!(analyse(&source).is_ok(), is_python, "{}...", &source[..20]);
    }
}

#[test]
fn brackets_and_blocks_are_refused_beyond_what_cpython_takes() {
    let brackets = |count: usize| format!("x = {}1{}", "(".repeat(count), ")".repeat(count));
    analyse(&brackets(NESTING_MAX)).expect("as many as CPython takes");
    refused(&brackets(NESTING_MAX + 1), "brackets and blocks");
    refused(&brackets(100_000), "brackets and blocks");
    let error = analyse(&brackets(NESTING_MAX + 1)).expect_err("refused");
    assert_eq!((error.line, error.column), (1, 5 + 200));
    for open in ["[", "{", "f(", "a[", "f'{", "lambda: (", "{0: ", "x if (", "[x for x in "] {
        refused(&open.repeat(50_000), "");
    }
    let blocks = |count: usize| {
        (0..count).map(|depth| " ".repeat(depth) + "if x:\n").collect::<String>() + &" ".repeat(count) + "y"
    };
    analyse(&blocks(100)).expect("as many as CPython takes");
    refused(&blocks(1_000), "brackets and blocks");
    let functions: String = (0..1_000).map(|depth| " ".repeat(depth) + "def f():\n").collect();
    refused(&functions, "brackets and blocks");
}

#[test]
fn operators_that_lean_on_each_other_are_refused_beyond_their_cap() {
    let chain = |link: &str, count: usize| format!("x = a{}", link.repeat(count));
    for link in [" + a", ".b", "[0]", "()", " ** a", " if a else a"] {
        analyse(&chain(link, 4_000)).unwrap_or_else(|error| panic!("{link}: {error}"));
        refused(&chain(link, 80_000), "lean on each other");
    }
    analyse(&chain(" + a", LEANING_MAX)).expect("at the cap");
    refused(&chain(" + a", LEANING_MAX + 1), "lean on each other");
    for begin in ["not ", "-", "~", "await ", "lambda: ", "lambda a, b: ", "a if b else ", "a ** ", "*"] {
        refused(&(begin.repeat(90_000) + "a"), "");
    }
    let flat = format!("x = {}", vec!["a"; 100_000].join(" and "));
    analyse(&flat).expect("`and` does not nest");
    analyse(&format!("x = [{}]", "a + b,".repeat(50_000))).expect("a list does not nest");
    analyse(&format!("x = {}", "'a' ".repeat(100_000))).expect("texts side by side do not nest");
}

#[test]
fn long_chains_of_branches_are_read() {
    let mut source = String::from("if a: x = 1\n");
    for number in 0..10_000 {
        source.push_str(&format!("elif a == {number}: x = {number}\n"));
    }
    source.push_str("else: x = 2\ny = x");
    let found = Python::default().analyse(&source).expect("it is read");
    assert!(found.of("x").is_some_and(|known| known.settled == Some(Settled::Bound) && known.read.is_none()));
    let walrus: String = (0..20_000).map(|number| format!("elif (n{number} := a): b{number} = 1\n")).collect();
    analyse(&format!("if a: b = 1\n{walrus}")).expect("it is read");
    let breaks: String = (0..20_000).map(|number| format!(" n{number} = 1\n if a: break\n")).collect();
    analyse(&format!("for i in a:\n{breaks}else: b = 1\n")).expect("it is read");
    let cases: String = (0..20_000).map(|number| format!(" case {number}: n{number} = 1\n")).collect();
    analyse(&format!("match a:\n{cases}")).expect("it is read");
    let handlers: String = (0..20_000).map(|number| format!("except A{number} as n{number}: pass\n")).collect();
    analyse(&format!("try: pass\n{handlers}")).expect("it is read");
    let functions: String =
        (0..20_000).map(|number| format!("def f{number}(): return g{number}\nf{number}()\n")).collect();
    assert_eq!(Python::default().analyse(&functions).expect("it is read").reads().count(), 20_000);
}

#[test]
fn bytes_that_are_no_python_are_refused_with_a_place() {
    refused("x = 1\0", "null byte");
    for source in [
        "\u{1b}[2J",
        "$",
        "?",
        "`a`",
        "\u{202e}",
        "x = 'a\nb'",
        "\"\"\"",
        "\\",
        "0777",
        "1__0",
        "'\\N{no such}'",
        "f'{'",
    ] {
        let error = analyse(source).expect_err(source);
        assert!(error.line >= 1 && error.column >= 1);
        assert!(!error.message.is_empty() && error.message.len() < 500, "{error}");
    }
}

#[test]
fn a_graph_of_fifty_thousand_steps_is_changed_drawn_and_exported() {
    let mut graph = Graph::new(Arc::new(Python::default()));
    graph.add_step("first".into(), "xs = []".to_owned()).expect("added");
    for number in 0..50_000 {
        graph.add_step(format!("s{number}").as_str().into(), "xs.append(1)".to_owned()).expect("added");
    }
    // As many edges as pairs of steps: nothing here may walk them all.
    assert_eq!(graph.change_step(&"first".into(), "xs = [1]".to_owned()).expect("changed").len(), 50_001);
    assert_eq!(graph.ancestors(&"s49999".into(), None).expect("known").len(), 50_000);
    assert_eq!(draw::lines(&graph, 80, |node| draw::state_of(&graph, node).to_owned()).count(), 50_001);
    let exported = export::export(&graph);
    assert!(exported.edges_left_out && exported.edges.len() == export::EXPORT_EDGES_MAX);
    assert!(export::dot(&graph).contains("left out"));
}

#[test]
fn a_graph_of_steps_that_see_everything_is_changed_and_drawn() {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for number in 0..20_000 {
        graph.add_step(format!("s{number}").as_str().into(), "exec(code)".to_owned()).expect("added");
    }
    assert_eq!(graph.replay_from(&"s0".into()).expect("known").len(), 20_000);
    assert_eq!(graph.ancestors(&"s19999".into(), None).expect("known").len(), 19_999);
    assert_eq!(draw::lines(&graph, 80, |_| "stale".to_owned()).count(), 20_000);
}
