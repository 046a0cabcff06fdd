//! Graphs drawn and exported.

use longhaul_graph::{Graph, Python, draw, export};
use std::sync::Arc;

fn graph() -> Graph {
    let mut graph = Graph::new(Arc::new(Python::default()));
    let steps = [
        ("load", "\n# read\nrows = [1, 2]"),
        ("clean \"x\"", "rows.append('\u{1b}[31m é')"),
        ("sum", "total = sum(rows)"),
        ("bad", "x = ("),
    ];
    for (id, source) in steps {
        graph.add_step(id.into(), source.to_owned()).expect("added");
    }
    graph.mark_fresh(&"load".into()).expect("known");
    graph
}

#[test]
fn a_drawing_is_plain_text_of_its_width() {
    let graph = graph();
    let lines: Vec<String> = draw::lines(&graph, 78, |node| draw::state_of(&graph, node).to_owned()).collect();
    let expected = [
        "load       fresh    # read",
        "clean \"x\"  stale    rows.append('\\u{1b}[31m \\u... <- load (rows)",
        "sum        stale    total = sum(rows)             <- load (rows), clean \"x\" (rows)",
        "bad        broken   x = (",
    ];
    let cut = |line: &str| if line.len() > 78 { format!("{}...", &line[..75]) } else { line.to_owned() };
    assert_eq!(lines, expected.map(cut));
    for width in [0, 40, 41, 60, 200] {
        for line in draw::lines(&graph, width, |_| "stale\u{7}".repeat(9)) {
            assert!(line.len() <= width.max(draw::WIDTH_MIN) && line.is_ascii(), "{line}");
            assert!(!line.contains(char::is_control), "{line}");
        }
    }
}

#[test]
fn graphviz_gets_names_that_end_no_quotes() {
    let dot = export::dot(&graph());
    let expected = r#"digraph steps {
  rankdir=LR;
  node [shape=box];
  "load" [label="load\n# read"];
  "clean \"x\"" [label="clean \"x\"\nrows.append('\\u{1b}[31m é')", style=dashed];
  "sum" [label="sum\ntotal = sum(rows)", style=dashed];
  "bad" [label="bad\nx = (", color=red];
  "load" -> "clean \"x\"" [label="rows"];
  "load" -> "sum" [label="rows"];
  "clean \"x\"" -> "sum" [label="rows"];
}
"#;
    assert_eq!(dot, expected);
}

#[test]
fn an_export_says_what_each_step_does_and_why_each_edge_is_there() {
    let exported = serde_json::to_value(export::export(&graph())).expect("JSON");
    assert_eq!(exported["version"], 1);
    assert_eq!(exported["language"], "python");
    assert_eq!(exported["steps"][0]["stale"], false);
    assert_eq!(
        exported["steps"][1]["mutates"]["rows"],
        serde_json::json!({ "kind": "method-call", "method": "append" })
    );
    assert_eq!(exported["steps"][3]["error"]["line"], 1);
    assert_eq!(exported["edges"][0]["variables"]["rows"]["kind"], "written");
    assert_eq!(exported["edges_left_out"], false);
}
