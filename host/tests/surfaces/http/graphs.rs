//! Graphs of steps of code, as clients of the API meet them: looked at, run, and changed in a step.
//!
//! Needs the interpreter of `cargo xtask plugins`.

use crate::common::lab::Lab;
use crate::common::web::{Web, in_a_path, token};
use serde_json::{Value, json};

fn lab() -> Lab {
    let lab = Lab::empty();
    lab.run(&["graph", "new", "sums"]).expect(0);
    for (step, source) in
        [("rows", "rows = [1, 2]"), ("the sum", "total = sum(rows)\nprint('sum', total)"), ("apart", "5")]
    {
        lab.run(&["graph", "add", "sums", step, "--source", source]).expect(0);
    }
    lab
}

fn put(web: &Web, path: &str, body: &Value) -> Value {
    web.ask("PUT", path, &["Content-Type: application/json"], &body.to_string()).expect(200).json()
}

#[test]
fn a_graph_is_looked_at_run_changed_and_run_from_there() {
    let lab = lab();
    let web = Web::start(&lab);
    let graphs = web.get("/api/v1/graphs").expect(200).json();
    assert_eq!((&graphs["total"], &graphs["items"][0]["name"]), (&json!(1), &json!("sums")), "{graphs:#}");

    let ran = web.post("/api/v1/graphs/sums/run", &json!({})).expect(200).json();
    assert_eq!((&ran["ran"], &ran["failed"]), (&json!(["rows", "the sum", "apart"]), &json!([])), "{ran:#}");
    let outputs = json!([
        { "step": "the sum", "stdout": "sum 3\n", "value": null },
        { "step": "apart", "stdout": "", "value": "5" },
    ]);
    assert_eq!(ran["outputs"], outputs);

    let graph = web.get("/api/v1/graphs/sums").expect(200).json();
    assert_eq!((&graph["graph"]["stale"], &graph["total"]), (&json!(0), &json!(3)), "{graph:#}");
    let sum = &graph["steps"][1];
    assert_eq!((&sum["id"], &sum["state"], &sum["needs"]), (&json!("the sum"), &json!("fresh"), &json!(["rows"])));
    assert_eq!((&sum["stdout"], &sum["source"]), (&json!("sum 3\n"), &json!("total = sum(rows)\nprint('sum', total)")));
    let page = web.get("/api/v1/graphs/sums?limit=1&offset=2").expect(200).json();
    assert_eq!((&page["steps"][0]["id"], page["steps"].as_array().map(Vec::len)), (&json!("apart"), Some(1)));

    // A change alone makes stale, and one with a run runs from there.
    let changed = put(&web, "/api/v1/graphs/sums/steps/rows", &json!({ "source": "rows = [1, 2, 3]" }));
    assert_eq!((&changed["changes"]["stale"], &changed["run"]), (&json!(["rows", "the sum"]), &Value::Null));
    assert_eq!(web.get("/api/v1/graphs/sums").json()["steps"][1]["state"], "stale");
    let path = format!("/api/v1/graphs/sums/steps/{}", in_a_path("the sum"));
    let changed = put(&web, &path, &json!({ "source": "total = sum(rows) * 2\nprint(total)", "run": true }));
    assert_eq!(changed["run"]["ran"], json!(["rows", "the sum"]), "{changed:#}");
    assert_eq!(changed["run"]["outputs"][0]["stdout"], "12\n", "{changed:#}");
    let again = web.post("/api/v1/graphs/sums/run", &json!({ "from": "the sum" })).expect(200).json();
    assert_eq!(again["ran"], json!(["the sum"]), "{again:#}");

    // A source that does not parse is kept and not run.
    let broken = put(&web, "/api/v1/graphs/sums/steps/apart", &json!({ "source": "x = (", "run": true }));
    assert_eq!((&broken["changes"]["failure"]["kind"], &broken["run"]), (&json!("SyntaxError"), &Value::Null));
    assert_eq!(web.get("/api/v1/graphs/sums").json()["steps"][2]["state"], "broken");
}

#[test]
fn a_request_about_a_graph_that_is_wrong_is_refused_with_what_is_wrong() {
    let lab = lab();
    let web = Web::start(&lab);
    web.get("/api/v1/graphs/none").expect(404);
    web.post("/api/v1/graphs/none/run", &json!({})).expect(404);
    web.post("/api/v1/graphs/sums/run", &json!({ "from": "none" })).expect(404);
    let both = web.post("/api/v1/graphs/sums/run", &json!({ "from": "rows", "again": "rows" })).expect(422).json();
    assert_eq!(both["field"], "again", "{both:#}");
    web.post("/api/v1/graphs/sums/run", &json!({ "forms": "rows" })).expect(422);
    let json_header = ["Content-Type: application/json"];
    web.ask("PUT", "/api/v1/graphs/sums/steps/none", &json_header, r#"{ "source": "1" }"#).expect(404);
    web.ask("PUT", "/api/v1/graphs/sums/steps/rows", &json_header, "{}").expect(422);
    web.get("/api/v1/graphs/sums?limit=0").expect(422);
    assert_eq!(web.get("/api/v1/graphs/sums").json()["steps"][0]["source"], "rows = [1, 2]");
}

#[test]
fn a_step_that_sees_a_directory_is_changed_only_with_the_scope_that_may_grant_one() {
    let lab = lab();
    std::fs::create_dir(lab.path("data")).expect("ours");
    lab.run(&["graph", "new", "seeing", "--dir", "data:/data:ro"]).expect(0);
    lab.run(&["graph", "add", "seeing", "one", "--source", "x = 1"]).expect(0);
    let runs = token(&lab, "runs", &["--scope", "run"]);
    let admin = token(&lab, "admin", &["--scope", "admin"]);
    let web = Web::start(&lab);
    let change = |token: &str, graph: &str, step: &str| {
        let header = format!("Authorization: Bearer {token}");
        let path = format!("/api/v1/graphs/{graph}/steps/{step}");
        web.raw("PUT", &path, &[&header, "Content-Type: application/json"], br#"{ "source": "x = 2" }"#)
    };
    change(&runs, "sums", "rows").expect(200);
    change(&runs, "seeing", "one").expect(403);
    change(&admin, "seeing", "one").expect(200);
    let seeing = web.get("/api/v1/graphs/seeing").expect(200).json();
    let directory = seeing["graph"]["directories"][0].as_str().expect("a directory");
    assert!(directory.ends_with("data:/data:ro"), "{seeing:#}");
}
