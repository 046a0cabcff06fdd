//! The output of steps while a graph runs: at once, in order, alone and through a server that may be killed.
//!
//! Needs the interpreter of `cargo xtask plugins`.

use crate::common::lab::{Lab, Ran};
use crate::common::web::Web;
use crate::graph::{Graph, text};
use std::fs;

/// A graph whose second step prints, waits for the file `out/go`, and prints again.
fn waiting() -> Graph {
    let lab = Lab::empty();
    fs::create_dir(lab.path("out")).expect("ours");
    let graph = Graph::over(lab, &["--dir", "out:/out:ro"]);
    let waits = "import os, sys, time\nprint('first', 1)\nprint('warned\\x1b[2J', file=sys.stderr)\n\
                 while not os.path.exists('/out/go'): time.sleep(0.01)\nprint('last', end='')\n'value'";
    for (step, source) in [("before", "print('before')"), ("waits", waits), ("after", "x = 1")] {
        graph.ask(&["add", "g", step, "--source", source]).expect(0);
    }
    graph
}

/// Runs the graph, and lets its second step go once what it printed was seen.
fn run_and_look(graph: &Graph) -> Ran {
    let mut run = graph.lab.start(&["graph", "run", "g"]);
    run.wait_for("[2/3] waits\n");
    run.wait_for("before:\n  before\nwaits:\n  first 1\n");
    run.wait_for("  warned\\u001b[2J\n");
    assert!(run.is_running() && !run.printed().contains("last"), "{}", run.printed());
    fs::write(graph.lab.path("out/go"), "").expect("ours");
    run.wait().expect(0)
}

/// The lines of standard error about the steps, without their times.
fn progress(ran: &Ran) -> Vec<&str> {
    let lines = ran.stderr.lines().filter(|line| line.starts_with('['));
    lines.map(|line| line.split(" in ").next().unwrap_or_default()).collect()
}

#[test]
fn the_output_of_a_step_is_shown_while_it_runs_alone_and_through_a_server() {
    let expected = "before:\n  before\nwaits:\n  first 1\n  last\n  => 'value'\nran: before, waits, after\n\
                    skipped: 0 fresh steps\n";
    let steps =
        ["[1/3] before", "[1/3] before: done", "[2/3] waits", "[2/3] waits: done", "[3/3] after", "[3/3] after: done"];
    let alone = waiting();
    let ran = run_and_look(&alone);
    assert_eq!((ran.stdout.as_str(), progress(&ran)), (expected, steps.to_vec()), "{}", ran.stderr);
    assert_eq!(text(&alone.step("waits"), "stdout"), "first 1\nlast");
    assert_eq!(text(&alone.step("waits"), "stderr"), "warned\u{1b}[2J\n");
    // Nothing is left to run, and nothing is printed again.
    let again = alone.ask(&["run", "g"]).expect(0);
    assert_eq!((again.stdout.as_str(), progress(&again)), ("ran: nothing\nskipped: 3 fresh steps\n", vec![]));

    let served = waiting();
    let _server = Web::start(&served.lab);
    let ran = run_and_look(&served);
    assert_eq!((ran.stdout.as_str(), progress(&ran)), (expected, steps.to_vec()), "{}", ran.stderr);
    // JSON is the answer alone.
    let ran = served.lab.run(&["--json", "graph", "replay", "g", "before"]).expect(0);
    assert_eq!((ran.stdout.lines().count(), progress(&ran)), (1, vec![]), "{}", ran.said());
}

#[test]
fn a_run_whose_server_is_killed_goes_on_and_shows_no_step_that_ended_again() {
    let graph = waiting();
    let mut server = Web::start(&graph.lab).server;
    let mut run = graph.lab.start(&["graph", "run", "g"]);
    run.wait_for("waits:\n  first 1\n");
    assert!(server.kill(), "it was at work");
    server.wait();
    fs::write(graph.lab.path("out/go"), "").expect("ours");
    let ran = run.wait().expect(0);
    // The step that was cut off runs again, and its new output stands below its name again.
    let expected = "before:\n  before\nwaits:\n  first 1\nwaits:\n  first 1\n  last\n  => 'value'\n\
                    ran: waits, after\nskipped: 1 fresh step\n";
    assert_eq!(ran.stdout, expected, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("before: done in ").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_step_that_fails_is_told_with_its_time_and_what_it_printed() {
    let graph = Graph::with(&[("bad", "print('so far')\n1 / 0"), ("next", "print('next')")]);
    let ran = graph.ask(&["run", "g"]).expect(3);
    assert!(ran.stdout.starts_with("bad:\n  so far\nnext:\n  next\nran: bad, next\nfailed: bad\n"), "{}", ran.said());
    assert!(ran.stderr.contains("[1/2] bad: failed after "), "{}", ran.stderr);
    let ran = graph.ask(&["replay", "g", "next"]).expect(3);
    assert!(ran.stdout.starts_with("next:\n  next\n"), "{}", ran.said());
}
