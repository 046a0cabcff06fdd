//! Two runs of a project beside each other: the first difference, the files, and the same over HTTP; and what cannot
//! be compared.

use crate::common::lab::Lab;
use crate::common::web::Web;
use crate::common::{in_toml, refused};
use serde_json::{Value, json};
use std::fs;

/// An agent that writes what its settings say, and asks no model.
const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["files"]
settings = {settings}

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

fn goal(instruction: &str) -> String {
    format!("# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\n{instruction}\n")
}

/// Writes two files, the first with this text.
fn config(text: &str) -> String {
    let write = |path: &str, content: &str| {
        let arguments = json!({ "path": path, "content": content });
        json!({ "tool": "files", "function": "write", "arguments": arguments })
    };
    let calls = json!([write("notes.txt", text), write("end.txt", "the end\n")]);
    CONFIG.replace("{settings}", &in_toml(&json!({ "calls": calls })))
}

/// Two runs of one project that wrote different texts, the older one first.
fn two_runs() -> (Lab, String, String) {
    let lab = Lab::new(&config("one\n"), &goal("Do it."));
    lab.run(&["run"]).expect(0);
    fs::write(lab.project().join("longhaul.toml"), config("two\n")).expect("ours");
    // Another text, or the feature would pass by the run before.
    fs::write(lab.project().join("GOAL.md"), goal("Do it again.")).expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "changed"]);
    lab.run(&["run"]).expect(0);
    let [one, two] = <[String; 2]>::try_from(lab.runs()).expect("two runs");
    (lab, one, two)
}

#[test]
fn two_runs_are_shown_beside_each_other_from_their_first_difference_on() {
    let (lab, one, two) = two_runs();
    let compared = lab.json(&["compare", &one, &two]);
    let names: Vec<&Value> = compared["runs"].as_array().expect("a list").iter().map(|run| &run["run"]).collect();
    assert_eq!(names, [&json!(one), &json!(two)]);
    let first = &compared["first_difference"];
    assert_eq!((&first["change"], &first["kind"]), (&json!("answer"), &json!("result")), "{first:#}");
    assert_eq!((&first["feature"], &first["work"]), (&Value::Null, &json!("plan")), "by the goal: {first:#}");
    let steps = compared["steps"].as_array().expect("a list");
    let call = steps.iter().find(|step| step["change"] == "call").unwrap_or_else(|| panic!("{compared:#}"));
    assert_eq!((&call["kind"], &call["work"]), (&json!("tools.call"), &json!("f-one/1/generate")), "{call:#}");
    let calls: Vec<&str> = sides(call).iter().filter_map(|side| side["call"].as_str()).collect();
    assert!(calls.len() == 2 && calls.iter().all(|call| call.contains("notes.txt")), "{call:#}");
    assert!(compared["counts"]["same"].as_u64() >= Some(1), "the verdict is the same: {compared:#}");
    assert_eq!(compared["counts"]["missing"], 0, "{compared:#}");
    let feature = &compared["features"][0];
    assert_eq!((&feature["feature"], &feature["is_same"]), (&json!("one"), &json!(true)), "{feature:#}");
    assert_eq!(sides(feature)[1]["verdict"]["judgements"][0]["mark"], "pass", "{feature:#}");
    let diff = &compared["files"][0]["diff"];
    let notes = diff["files"].as_array().expect("a list").iter().find(|file| file["path"] == "notes.txt");
    assert!(
        notes.is_some_and(|file| file["patch"].as_str().is_some_and(|text| text.contains("-one\n+two\n"))),
        "{diff:#}"
    );

    let text = lab.run(&["compare", &one, &two]).expect(0).stdout;
    for part in
        [format!("A  {one} of kept").as_str(), "The first difference: step", "the answer differs", "M notes.txt +1 -1"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let page = lab.path("runs.html");
    lab.run(&["compare", &one, &two, "--html", page.to_str().expect("text")]).expect(0);
    let html = fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("<h2>The first difference") && !html.contains("http:") && !html.contains("https:"), "{html}");

    let web = Web::start(&lab);
    assert_eq!(web.get(&format!("/api/v1/comparison?run={one}&run={two}")).expect(200).json(), compared);
    for (query, status, words) in [
        (format!("run={one}"), 422, "one is named"),
        (format!("run={one}&run={one}"), 422, "is named twice"),
        (String::new(), 422, "no run is named"),
        (format!("run={one}&with={two}"), 422, "unknown field `with`"),
        (format!("run={one}&run=nothing"), 404, "no such run"),
        (format!("run={one}&run=r-0000"), 404, "there is no run `r-0000`"),
    ] {
        let problem = web.get(&format!("/api/v1/comparison?{query}")).expect(status).json();
        assert!(problem["detail"].as_str().is_some_and(|text| text.contains(words)), "{query}: {problem:#}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line_and_runs_of_two_projects_but_for_their_files() {
    let lab = Lab::new(&config("one\n"), &goal("Do it."));
    lab.make_project("other", &config("one\n").replace("\"kept\"", "\"other\""), &goal("Do it."));
    lab.run(&["run"]).expect(0);
    let other = lab.path("other");
    lab.run(&["--project", other.to_str().expect("text"), "run"]).expect(0);
    let [one, two] = <[String; 2]>::try_from(lab.runs()).expect("two runs");
    refused(&lab.run(&["compare", &one]), &["two runs or more", "longhaul runs"]);
    refused(&lab.run(&["compare", &one, &one[..8]]), &[&one, "is named twice"]);
    refused(&lab.run(&["compare", &one, "r-none"]), &["there is no run `r-none`"]);
    let nine = [&["compare"][..], &[one.as_str(); 9][..]].concat();
    refused(&lab.run(&nine), &["9 runs are named, and at most 8 are compared"]);
    refused(&lab.run(&["compare", &one, &two, "--html", "/nowhere/a.html"]), &["cannot write `/nowhere/a.html`"]);

    let compared = lab.json(&["compare", &one, &two]);
    assert_eq!(compared["first_difference"], Value::Null, "{compared:#}");
    let files = &compared["files"][0];
    let reason = files["reason"].as_str().unwrap_or_default();
    assert!(files["diff"].is_null() && reason.starts_with("the runs are of two directories"), "{files:#}");
    let text = lab.run(&["compare", &one, &two]).expect(0).stdout;
    assert!(text.contains("No step differs.") && text.contains("Files of B are not compared"), "{text}");
}

fn sides(of: &Value) -> &[Value] {
    of["sides"].as_array().map_or(&[], Vec::as_slice)
}
