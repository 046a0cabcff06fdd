//! A collector receives the spans of a run, and a run works the same without a collector.
//!
//! `cargo nextest run -p longhaul --test operations telemetry --no-capture` prints the trace of a planned run.

mod conventions;
mod messages;
mod receiver;

use crate::common::gated::{answer, open};
use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, THREE_FEATURES};
use conventions::{faults_of_metric, faults_of_span};
use receiver::{Received, Receiver, attribute};
use std::collections::BTreeSet;

/// Two features that pass; the second has helpers.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

fn config(more: &str) -> String {
    format!("{DOER_CONFIG}parallel_max = 2\n\n[telemetry]\n{more}\n")
        .replace("[run.limits]", "[run]\nstrategy = \"pipeline\"\n\n[run.limits]")
}

#[test]
fn a_planned_run_is_one_trace_with_metrics_and_logs_and_without_words() {
    let receiver = Receiver::start();
    let endpoint = format!("otlp_endpoint = \"http://{}\"\nservice_name = \"here\"", receiver.address);
    let lab = Lab::new(&config(&endpoint), goal());
    lab.run(&["run"]).expect(0);
    let received = receiver.received();
    println!("{}", received.tree());
    let traces: BTreeSet<_> = received.spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(traces.len(), 1);
    let ids: BTreeSet<_> = received.spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), received.spans.len(), "no span is sent twice");
    let roots: Vec<_> = received.spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    let [root] = roots.as_slice() else { panic!("{}", received.tree()) };
    assert_eq!(attribute(&root.attributes, "gen_ai.agent.name").as_deref(), Some("kept"));
    assert!(received.spans.iter().all(|span| span.parent_span_id.is_empty() || ids.contains(&span.parent_span_id)));
    let operations: BTreeSet<_> =
        received.spans.iter().filter_map(|span| attribute(&span.attributes, "gen_ai.operation.name")).collect();
    let expected = ["chat", "execute_tool", "invoke_agent", "invoke_workflow", "plan"];
    assert_eq!(operations.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert!(
        received
            .resources
            .iter()
            .all(|resource| resource.contains("service.name=here") && resource.contains("service.version=")),
        "{:?}",
        received.resources
    );
    let names: BTreeSet<_> = received.metrics.iter().map(|metric| metric.name.as_str()).collect();
    for name in [
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.usage.input_tokens",
        "gen_ai.execute_tool.duration",
        "longhaul.tasks",
        "longhaul.runs",
    ] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    let events = lab.run(&["--json", "attach"]).stdout.lines().count();
    assert_eq!(received.logs.len(), events, "one record an event");
    assert!(received.logs.iter().all(|log| log.trace_id == root.trace_id));
    follows_the_conventions(&received);
    for words in ["written one-1", "Do it", "line "] {
        assert!(!received.text.contains(words), "`{words}` was sent without being asked for");
    }
}

#[test]
fn words_are_sent_where_the_operator_asks_for_them() {
    let receiver = Receiver::start();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.address)),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true".to_owned()),
    ];
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let lab = Lab::new(DOER_CONFIG, goal());
    lab.start_with(&["run"], &environment).wait().expect(0);
    let received = receiver.received();
    assert!(received.text.contains("written one-1"));
    follows_the_conventions(&received);
    let all = |operation: &str, key: &str| {
        let of = received
            .spans
            .iter()
            .filter(|span| attribute(&span.attributes, "gen_ai.operation.name").as_deref() == Some(operation));
        of.filter_map(|span| attribute(&span.attributes, key)).collect::<Vec<_>>()
    };
    let requests = all("chat", "gen_ai.input.messages");
    assert_eq!(requests.len(), all("chat", "gen_ai.operation.name").len(), "each request has its messages");
    assert!(requests.iter().any(|messages| messages.contains("A line about one-1")), "{requests:?}");
    assert!(!all("chat", "gen_ai.system_instructions").is_empty());
    for (key, expected) in [("gen_ai.response.model", "fake"), ("server.address", "127.0.0.1")] {
        assert!(all("chat", key).iter().all(|value| value == expected) && !all("chat", key).is_empty(), "{key}");
    }
    assert!(all("execute_tool", "gen_ai.tool.call.arguments").iter().any(|text| text.contains("written one-1")));
    assert!(!all("execute_tool", "gen_ai.tool.call.result").is_empty());
}

#[test]
fn a_run_that_waits_for_a_person_has_whole_traces_before_and_after_the_answer() {
    let receiver = Receiver::start();
    let asks = DOER_CONFIG.replace("when_heard = \"allow\"", "when_heard = \"allow\", functions = { post = \"ask\" }");
    let lab = Lab::new(&format!("{asks}\n[telemetry]\notlp_endpoint = \"http://{}\"\n", receiver.address), goal());
    let mut ran = lab.run(&["run"]);
    let mut waited = 0;
    while ran.code() == Some(5) {
        waited += 1;
        let statuses = whole_traces(&receiver.received());
        assert_eq!(statuses.last().map(String::as_str), Some("parked"), "{}", receiver.received().tree());
        for one in open(&lab) {
            answer(&lab, one["id"].as_str().expect("an id"), "y").expect(0);
        }
        ran = lab.run(&["resume"]);
    }
    ran.expect(0);
    assert!(waited > 0);
    let received = receiver.received();
    println!("{}", received.tree());
    let statuses = whole_traces(&received);
    assert!(statuses.len() > waited && statuses.last().is_some_and(|last| last == "completed"), "{statuses:?}");
    follows_the_conventions(&received);
}

/// Each span has its parent, and each stretch leads to the one before. Returns the statuses of the stretches, in order.
fn whole_traces(received: &Received) -> Vec<String> {
    let ids: BTreeSet<_> = received.spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), received.spans.len(), "no span is sent twice");
    let traces: BTreeSet<_> = received.spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(traces.len(), 1);
    let has_parent = |parent: &Vec<u8>| parent.is_empty() || ids.contains(parent);
    assert!(received.spans.iter().all(|span| has_parent(&span.parent_span_id)), "{}", received.tree());
    let mut stretches: Vec<_> = received.spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    stretches.sort_by_key(|span| span.start_time_unix_nano);
    for (place, stretch) in stretches.iter().enumerate() {
        let links: Vec<_> = stretch.links.iter().map(|link| link.span_id.clone()).collect();
        let before: Vec<_> = stretches[..place].iter().rev().take(1).map(|before| before.span_id.clone()).collect();
        assert_eq!(links, before, "{}", received.tree());
    }
    stretches.iter().filter_map(|span| attribute(&span.attributes, "longhaul.status")).collect()
}

fn follows_the_conventions(received: &Received) {
    let spans = received.spans.iter().flat_map(faults_of_span);
    let faults: Vec<String> = spans.chain(received.metrics.iter().flat_map(faults_of_metric)).collect();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named_and_the_totals_are_there_all_the_same() {
    let receiver = Receiver::start();
    let lab = Lab::new(DOER_CONFIG, goal());
    lab.start_with(&["run"], &[("OTEL_SERVICE_NAME", "here")]).wait().expect(0);
    assert_eq!(receiver.received().requests, 0);
    let text = lab.run(&["metrics"]).expect(0).stdout;
    for line in [
        "longhaul_runs_ended_total{status=\"completed\"} 1",
        "longhaul_features_committed_total 2",
        "longhaul_tasks_total{agent=\"planner\",ok=\"true\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
    }
    assert!(text.contains("longhaul_model_tokens_total{model=\"fake\",type=\"input\"} "), "{text}");
}

#[test]
fn a_collector_that_is_not_there_or_never_answers_changes_nothing_of_a_run() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let silent = format!("http://{}", silent.local_addr().expect("bound"));
    for endpoint in ["http://127.0.0.1:1", &silent] {
        let more = format!("otlp_endpoint = \"{endpoint}\"\nflush_ms_max = 500");
        let lab = Lab::new(&config(&more), goal());
        lab.run(&["run"]).expect(0);
        assert_eq!(lab.newest().expect("a run")["status"], "completed");
    }
}
