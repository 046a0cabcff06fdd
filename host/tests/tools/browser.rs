//! The browser in a run: asked about before it acts, and gone with the host. Chromium has to be installed.

#[path = "../../crates/browser/tests/it/site.rs"]
mod site;

use crate::common::gated::{answer, answers, error, the_open};
use crate::common::in_toml;
use crate::common::lab::Lab;
use serde_json::{Value, json};
use site::Site;

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["browser"]
settings = {settings}

[tools.browser]
plugin = "builtin:browser"
hosts = ["{site}"]
{policy}

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

fn site() -> Site {
    let html = "content-type: text/html; charset=utf-8\r\n";
    Site::serve(vec![("/", html, "<h1>Hello</h1><a href='/next'>next</a>".into()), ("/next", html, "Next".into())])
}

/// A project whose agent makes these calls of a browser.
fn lab(site: &Site, policy: &str, calls: &[(&str, Value)]) -> Lab {
    let call = |(function, arguments): &(&str, Value)| json!({ "tool": "browser", "function": function, "arguments": arguments });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    let config = CONFIG.replace("{settings}", &in_toml(&json!({ "calls": calls })));
    let config = config.replace("{site}", &site.url("")).replace("{policy}", policy);
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

const FREE: &str = "approval = { default = \"allow\", when_heard = \"allow\" }";

/// Processes that have this word in their command line, but for this one.
fn running(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

#[test]
fn a_person_is_asked_before_a_page_is_opened_and_not_about_what_is_read_there() {
    let site = site();
    let lab =
        lab(&site, "", &[("open", json!({ "url": site.url("/") })), ("read", json!({})), ("screenshot", json!({}))]);
    let ran = lab.run(&["run"]).expect(5);
    assert!(ran.stdout.contains("browser.open") && ran.stdout.contains(&site.url("/")), "{}", ran.said());
    assert!(site.asked().is_empty(), "asked before the effect");
    answer(&lab, &the_open(&lab), "y").expect(0);
    lab.run(&["resume"]).expect(0);
    let answers = answers(&lab);
    assert_eq!((&answers[0]["status"], &answers[1]["text"]), (&json!(200), &json!("Hello\nnext")));
    assert!(answers[2]["data_url"].as_str().is_some_and(|url| url.starts_with("data:image/png;base64,")), "no picture");
    lab.run(&["replay"]).expect(0);
}

#[test]
fn a_browser_ends_with_a_host_that_is_killed_and_its_task_is_told_to_open_the_page_again() {
    let site = site();
    let open = || ("open", json!({ "url": site.url("/") }));
    let lab = lab(&site, FREE, &[open(), ("read", json!({})), ("read", json!({})), open(), ("read", json!({}))]);
    let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", "tool.before-call:3")]).wait();
    assert!(killed.was_killed(), "{}", killed.said());
    let home = lab.home().display().to_string();
    let begun = std::time::Instant::now();
    while running(&home) > 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "the browser goes on");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    lab.run(&["resume"]).expect(0);
    let answers = answers(&lab);
    assert_eq!(answers[1]["text"], "Hello\nnext");
    error(&answers[2], "no page is open");
    error(&answers[2], "call `open` again");
    assert_eq!(answers[4]["text"], "Hello\nnext");
    let opened = site.asked().iter().filter(|line| line.starts_with("GET / ")).count();
    assert_eq!(opened, 2, "what was opened before the kill was not opened again by itself: {:?}", site.asked());
    lab.run(&["replay"]).expect(0);
}

#[test]
fn a_page_that_was_being_opened_at_a_kill_is_asked_about() {
    let site = site();
    let lab = lab(&site, FREE, &[("open", json!({ "url": site.url("/") })), ("read", json!({}))]);
    let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", "tool.after-call:1")]).wait();
    assert!(killed.was_killed(), "{}", killed.said());
    let asked = lab.run(&["resume"]).expect(5);
    assert!(asked.stdout.contains("browser.open"), "{}", asked.said());
    assert_eq!(site.asked().iter().filter(|line| line.starts_with("GET / ")).count(), 1);
}

#[test]
fn an_address_that_was_not_granted_is_refused_with_the_line_that_would_allow_it() {
    let site = site();
    let lab = lab(&site, FREE, &[("open", json!({ "url": "https://example.com/" }))]);
    lab.run(&["run"]).expect(0);
    error(&answers(&lab)[0], "[tools.browser] hosts = [\"https://example.com\"]");
}
