//! Graphs of steps of code, as clients of the API meet them: made, looked at, run, changed step by step, diagnosed and
//! removed.
//!
//! Needs the interpreter of `cargo xtask plugins`.

use crate::common::lab::Lab;
use crate::common::web::{Frame, Web, in_a_path, token};
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
fn a_step_is_added_removed_and_its_failure_diagnosed() {
    let lab = lab();
    let web = Web::start(&lab);
    let added = web
        .post("/api/v1/graphs/sums/steps", &json!({ "step": "half", "source": "half = total / nothing" }))
        .expect(200)
        .json();
    assert_eq!(added["stale"].as_array().and_then(|stale| stale.last()), Some(&json!("half")), "{added:#}");
    assert_eq!(web.get("/api/v1/graphs/sums").json()["total"], 4);
    web.post("/api/v1/graphs/sums/steps", &json!({ "step": "half", "source": "1" })).expect(422);
    web.post("/api/v1/graphs/sums/diagnose", &json!({})).expect(422);

    let ran = web.post("/api/v1/graphs/sums/run", &json!({})).expect(200).json();
    assert_eq!(ran["failed"], json!(["half"]), "{ran:#}");
    for body in [json!({}), json!({ "step": "half" })] {
        let found = web.post("/api/v1/graphs/sums/diagnose", &body).expect(200).json();
        assert_eq!((&found["step"], &found["failure"]["kind"]), (&json!("half"), &json!("NameError")), "{found:#}");
        assert_eq!(found["frame"]["line"], 1, "{found:#}");
    }
    web.post("/api/v1/graphs/sums/diagnose", &json!({ "step": "none" })).expect(404);

    web.ask("DELETE", "/api/v1/graphs/sums/steps/rows", &[], "").expect(200);
    let graph = web.get("/api/v1/graphs/sums").expect(200).json();
    assert_eq!((&graph["total"], &graph["steps"][0]["state"]), (&json!(3), &json!("stale")), "{graph:#}");
    web.ask("DELETE", "/api/v1/graphs/sums/steps/rows", &[], "").expect(404);
}

#[test]
fn a_graph_is_made_with_its_first_steps_and_removed() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let steps = json!([{ "step": "rows", "source": "rows = [1, 2]" }, { "step": "the sum", "source": "sum(rows)" }]);
    let body = json!({ "name": "first sums", "language": "python", "steps": steps, "timeout_ms": 60_000 });
    let answer = web.post("/api/v1/graphs", &body).expect(201);
    assert_eq!(answer.header("location"), Some("/api/v1/graphs/first%20sums"));
    let made = answer.json();
    assert_eq!(
        (&made["name"], &made["steps"], &made["stale"]),
        (&json!("first sums"), &json!(2), &json!(2)),
        "{made:#}"
    );
    assert_eq!((&made["directories"], &made["hosts"]), (&json!([]), &json!([])), "{made:#}");
    let ran = web.post("/api/v1/graphs/first%20sums/run", &json!({})).expect(200).json();
    assert_eq!((&ran["ran"], &ran["outputs"][0]["value"]), (&json!(["rows", "the sum"]), &json!("3")), "{ran:#}");
    // Without steps, in the language that all have.
    let made = web.post("/api/v1/graphs", &json!({ "name": "empty" })).expect(201).json();
    assert_eq!((&made["steps"], &made["language"]), (&json!(0), &json!("python")), "{made:#}");

    let removed = web.ask("DELETE", "/api/v1/graphs/first%20sums", &[], "").expect(200).json();
    assert_eq!(removed["name"], "first sums", "{removed:#}");
    web.get("/api/v1/graphs/first%20sums").expect(404);
    web.ask("DELETE", "/api/v1/graphs/first%20sums", &[], "").expect(404);
    assert_eq!(web.get("/api/v1/graphs").json()["total"], 1);
}

#[test]
fn a_graph_that_cannot_be_made_is_refused_by_its_field_and_leaves_nothing() {
    let lab = lab();
    let web = Web::start(&lab);
    let named = |name: &str| json!({ "name": name });
    let stepped = |step: &str, source: &str| {
        let steps = json!([{ "step": "one", "source": "1" }, { "step": step, "source": source }]);
        json!({ "name": "new", "steps": steps })
    };
    let refused = [
        (named("sums"), 409, "name"),
        (named(""), 422, "name"),
        (named(&"x".repeat(201)), 422, "name"),
        (named("a\nb"), 422, "name"),
        (named("r-1/f/1#own"), 422, "name"),
        (json!({}), 422, "name"),
        (json!({ "name": "new", "language": "cobol" }), 422, "language"),
        (json!({ "name": "new", "timeout_ms": 0 }), 422, "timeout_ms"),
        (json!({ "name": "new", "timeout_ms": 3_600_001 }), 422, "timeout_ms"),
        (json!({ "name": "new", "hosts": ["ftp://x"] }), 422, "hosts[0]"),
        (json!({ "name": "new", "directories": [{ "host": "/nowhere", "guest": "/n" }] }), 422, "directories[0].host"),
        (stepped("", "2"), 422, "steps[1].step"),
        (stepped("one", "2"), 422, "steps[1].step"),
        (stepped("two", &"#".repeat(1_000_001)), 422, "steps[1].source"),
    ];
    for (body, status, field) in refused {
        let problem = web.post("/api/v1/graphs", &body).expect(status).json();
        assert_eq!(problem["field"], field, "{problem:#}");
    }
    web.get("/api/v1/graphs/new").expect(404);
    let problem = web.post("/api/v1/graphs/sums/steps", &json!({ "step": "", "source": "1" })).expect(422).json();
    assert_eq!(problem["field"], "step", "{problem:#}");
    // A source that does not parse is kept, and told by its step.
    web.post("/api/v1/graphs", &stepped("two", "x = (")).expect(201);
    assert_eq!(web.get("/api/v1/graphs/new").json()["steps"][1]["state"], "broken");
}

#[test]
fn a_graph_whose_steps_see_something_is_made_and_removed_only_with_the_scope_that_may_grant_it() {
    let lab = Lab::empty();
    std::fs::create_dir(lab.path("data")).expect("ours");
    std::fs::write(lab.path("data/rows"), "7").expect("ours");
    let runs = token(&lab, "runs", &["--scope", "run"]);
    let admin = token(&lab, "admin", &["--scope", "admin"]);
    let web = Web::start(&lab);
    let asked = |token: &str, method: &str, path: &str, body: &str| {
        let header = format!("Authorization: Bearer {token}");
        web.raw(method, path, &[&header, "Content-Type: application/json"], body.as_bytes())
    };
    let data = lab.path("data");
    let steps = json!([{ "step": "reads", "source": "open('/data/rows').read()" }]);
    let directories = json!([{ "host": data, "guest": "/data" }]);
    let seeing = json!({ "name": "seeing", "steps": steps, "directories": directories }).to_string();
    asked(&runs, "POST", "/api/v1/graphs", r#"{ "name": "plain" }"#).expect(201);
    asked(&runs, "POST", "/api/v1/graphs", r#"{ "name": "far", "hosts": ["https://example.com"] }"#).expect(403);
    asked(&runs, "POST", "/api/v1/graphs", &seeing).expect(403);
    asked(&admin, "POST", "/api/v1/graphs", &seeing).expect(201);
    let ran = asked(&runs, "POST", "/api/v1/graphs/seeing/run", "{}").expect(200).json();
    assert_eq!(ran["outputs"][0]["value"], "'7'", "{ran:#}");
    asked(&runs, "DELETE", "/api/v1/graphs/seeing", "").expect(403);
    asked(&admin, "DELETE", "/api/v1/graphs/seeing", "").expect(200);
    asked(&runs, "DELETE", "/api/v1/graphs/plain", "").expect(200);
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
    let asked = |token: &str, method: &str, path: &str, body: &str| {
        let header = format!("Authorization: Bearer {token}");
        web.raw(method, path, &[&header, "Content-Type: application/json"], body.as_bytes())
    };
    let steps = "/api/v1/graphs/seeing/steps";
    asked(&runs, "POST", steps, r#"{ "step": "two", "source": "y = x" }"#).expect(403);
    asked(&admin, "POST", steps, r#"{ "step": "two", "source": "y = x" }"#).expect(200);
    asked(&runs, "DELETE", &format!("{steps}/two"), "").expect(403);
    asked(&admin, "DELETE", &format!("{steps}/two"), "").expect(200);
    let seeing = web.get("/api/v1/graphs/seeing").expect(200).json();
    let directory = seeing["graph"]["directories"][0].as_str().expect("a directory");
    assert!(directory.ends_with("data:/data:ro"), "{seeing:#}");
}

/// The frames that have numbers, as their types and data without what is measured.
fn numbered(frames: &[Frame]) -> Vec<Value> {
    let numbered = frames.iter().filter(|frame| frame.id.is_some());
    let plain = numbered.map(|frame| {
        assert_eq!(frame.data["number"].as_u64(), frame.id, "{frame:?}");
        assert_eq!(frame.data["type"], frame.event, "{frame:?}");
        let mut data = frame.data.clone();
        let fields = data.as_object_mut().expect("an object");
        for measured in ["number", "duration_ms"] {
            fields.remove(measured);
        }
        data
    });
    plain.collect()
}

#[test]
fn the_output_of_a_step_streams_while_it_runs_and_from_any_number() {
    let lab = Lab::empty();
    std::fs::create_dir(lab.path("out")).expect("ours");
    lab.run(&["graph", "new", "slow", "--dir", "out:/out:ro"]).expect(0);
    let source = "import os, sys, time\nprint('first', 1)\nprint('warned', file=sys.stderr)\n\
                  while not os.path.exists('/out/go'): time.sleep(0.01)\nprint('last', end='')\n7";
    lab.run(&["graph", "add", "slow", "waits", "--source", source]).expect(0);
    let web = Web::start(&lab);
    let path = "/api/v1/graphs/slow/output";
    let mut frames = web.stream(&format!("{path}?after=0"), &[]);
    let idle = frames.until(|frame| frame.event == "idle");
    assert_eq!(numbered(&idle), Vec::<Value>::new(), "nothing has run");
    let (before, after) = std::thread::scope(|scope| {
        let run = scope.spawn(|| web.post("/api/v1/graphs/slow/run", &json!({})).expect(200).json());
        let before = frames.until(|frame| frame.data["stream"] == "stderr");
        assert!(!run.is_finished(), "the step waits for the file");
        std::fs::write(lab.path("out/go"), "").expect("ours");
        let after = frames.until(|frame| frame.event == "end");
        let ran = run.join().expect("it answers");
        assert_eq!(ran["outputs"], json!([{ "step": "waits", "stdout": "first 1\nlast", "value": "7" }]), "{ran:#}");
        (before, after)
    });
    let began = json!({ "step": "waits", "type": "begin", "place": 1, "steps": 1 });
    let first = json!({ "step": "waits", "type": "output", "stream": "stdout", "text": "first 1\n" });
    let warned = json!({ "step": "waits", "type": "output", "stream": "stderr", "text": "warned\n" });
    let last = json!({ "step": "waits", "type": "output", "stream": "stdout", "text": "last" });
    let ended = json!({ "step": "waits", "type": "end", "outcome": "done", "value": "7" });
    assert_eq!(numbered(&before), [began, first, warned]);
    assert_eq!(numbered(&after), [last, ended]);
    assert_eq!(frames.until(|frame| frame.event == "idle").len(), 1, "it stays open for the next run");

    // A client that lost its connection gets the rest, and one that comes late gets all.
    let number = before.iter().find_map(|frame| frame.id).expect("a number");
    let mut rest = web.stream(&format!("{path}?follow=false"), &[&format!("Last-Event-ID: {number}")]);
    let rest_frames = rest.until(|frame| frame.event == "idle");
    assert_eq!(numbered(&rest_frames), [&numbered(&before)[1..], &numbered(&after)[..]].concat());
    assert_eq!(rest.next(), None, "it ends when nothing runs");
    let all =
        web.stream(&format!("{path}?follow=false&after={}", number - 1), &[]).until(|frame| frame.event == "idle");
    assert_eq!(numbered(&all), [numbered(&before), numbered(&after)].concat());

    web.get("/api/v1/graphs/none/output").expect(404);
    web.ask("GET", path, &["Last-Event-ID: x"], "").expect(422);
    web.get(&format!("{path}?from=1")).expect(422);
}

#[test]
fn a_stream_of_output_ends_when_its_graph_is_removed() {
    let lab = lab();
    let web = Web::start(&lab);
    let mut frames = web.stream("/api/v1/graphs/sums/output", &[]);
    frames.until(|frame| frame.event == "idle");
    lab.run(&["graph", "remove", "sums"]).expect(0);
    let end = frames.until(|frame| frame.event == "problem");
    let problem = &end[end.len() - 1].data;
    assert!(
        problem["detail"].as_str().is_some_and(|detail| detail.contains("there is no graph `sums`")),
        "{problem:#}"
    );
    assert_eq!(frames.next(), None);
}
