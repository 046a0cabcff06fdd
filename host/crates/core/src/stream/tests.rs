//! Lines are parsed as they were written, and match their schema.

use super::*;
use crate::event::WorkUsage;
use crate::model::Usage;

fn line(number: u64, event: Event) -> StreamLine {
    StreamLine::of(RunEvent { run: RunId::from_text("r-1"), number, at_ms: 5, event })
}

fn thought() -> Event {
    Event::Thought {
        invocation: InvocationId::from_text("r-1/f-sum/1/generate"),
        agent: "agents.code".into(),
        step: 1,
        text: "so".into(),
        model: "gpt".into(),
        provider_model: "openai/gpt-5".into(),
        usage: Usage { input_tokens: 3, ..Usage::default() },
        took_ms: None,
        route: None,
        details: None,
    }
}

#[test]
fn a_line_says_of_which_run_task_and_agent_it_is_and_is_read_as_it_was_written() {
    let written = serde_json::to_value(line(7, thought())).unwrap();
    let expected = json!({
        "version": 1, "run": "r-1", "number": 7, "at_ms": 5, "task": "sum", "agent": "agents.code", "type": "thought",
        "payload": {
            "invocation": "r-1/f-sum/1/generate", "agent": "agents.code", "step": 1, "text": "so", "model": "gpt",
            "provider_model": "openai/gpt-5",
            "usage": { "input_tokens": 3, "cached_tokens": 0, "output_tokens": 0, "cost_microdollars": 0.0 },
        },
    });
    assert_eq!(written, expected);
    let token = StreamToken {
        invocation: InvocationId::from_text("r-1/plan"),
        after: 3,
        part: 2,
        text: "a".into(),
        whole: true,
    };
    let ended =
        |status: &str| Event::RunEnded { status: status.into(), summary: "s".into(), used: WorkUsage::default() };
    let live = |content| StreamLine { run: RunId::from_text("r-1"), content };
    let asked = Event::ApprovalAsked {
        approval: "a-1".into(),
        invocation: InvocationId::from_text("r-1/plan"),
        call: "files.write".into(),
    };
    let answered = Event::ApprovalAnswered { approval: "a-1".into(), decision: "allowed".into() };
    let lines = [
        (line(7, thought()), "thought"),
        (line(7, asked), "approval"),
        (line(8, answered), "approval"),
        (line(8, Event::RunResumed), "resumed"),
        (line(8, Event::RunQueued { place: 3, runs_max: 2 }), "queued"),
        (line(9, ended("completed")), "done"),
        (line(9, ended("failed")), "error"),
        (live(Content::Token(token)), "token"),
        (live(Content::Lagged { after: 3 }), "lagged"),
        (live(Content::Dropped { after: 3 }), "dropped"),
        (live(Content::End { after: 3, error: None }), "end"),
        (live(Content::End { after: 3, error: Some("disk".into()) }), "error"),
    ];
    for (line, kind) in lines {
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(&format!("\"type\":\"{kind}\"")), "{text}");
        assert_eq!(serde_json::from_str::<StreamLine>(&text).unwrap(), line, "{text}");
    }
}

#[test]
fn a_line_that_nobody_of_ours_wrote_is_an_error_and_no_panic() {
    for (kind, payload) in [("approval", "{}"), ("thought", "[]"), ("done", "\"x\""), ("token", "3"), ("lagged", "{}")]
    {
        let text = format!(r#"{{"version":1,"run":"r-1","number":1,"type":"{kind}","payload":{payload}}}"#);
        assert!(serde_json::from_str::<StreamLine>(&text).is_err(), "{text}");
    }
}

#[test]
fn every_event_has_a_kind_and_its_place_in_the_schema() {
    let schema = schema();
    let lines = schema["oneOf"].as_array().unwrap();
    let kinds: Vec<&str> = lines.iter().map(|line| line["properties"]["type"]["const"].as_str().unwrap()).collect();
    // Each tag once, the end of a run twice, and five live ones.
    assert_eq!(kinds.len(), KINDS.len() + 1 + 5, "{kinds:?}");
    for (tag, kind) in KINDS {
        assert!(kinds.contains(&serde_json::to_value(kind).unwrap().as_str().unwrap()), "{tag}");
    }
    let thought = &lines[kinds.iter().position(|kind| *kind == "thought").unwrap()]["properties"]["payload"];
    assert!(thought["required"].as_array().unwrap().contains(&json!("text")), "{thought}");
    assert!(thought["properties"].get("type").is_none(), "{thought}");
}

/// Programs of others rely on that file. When it changes, the version may have to change, too.
#[test]
fn the_schema_in_the_repository_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/events.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "the schema changed; look at the difference after: UPDATE_EXPECT=1 cargo nextest run -p longhaul-core"
    );
}
