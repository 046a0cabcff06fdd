//! Tests of the spans of a run, of parallel tasks, which stay apart, and of the stretches of a run's work.

use super::*;
use longhaul_core::model::{ReplyDetails, ReplyEndpoint, Route, StopReason, Usage};
use std::time::SystemTime;

fn at(number: u64, at_ms: u64, event: Event) -> RunEvent {
    RunEvent { run: RunId::from_text("r-1"), number, at_ms, event }
}

fn id(key: &str) -> InvocationId {
    InvocationId::of_action(&RunId::from_text("r-1"), key)
}

fn started(key: &str, agent: &str, export: &str) -> Event {
    Event::InvocationStarted {
        invocation: id(key),
        plugin: "react".into(),
        export: export.into(),
        feature: None,
        round: 1,
        agent: agent.into(),
    }
}

fn ended(key: &str, ok: bool) -> Event {
    let (outcome, used, agent) = ("secret words".to_owned(), WorkUsage::default(), String::new());
    Event::InvocationEnded { invocation: id(key), outcome, ok, used, agent }
}

fn thought(key: &str, step: u32) -> Event {
    Event::Thought {
        invocation: id(key),
        agent: "agents.code".into(),
        step,
        text: "secret words".into(),
        model: "gpt".into(),
        provider_model: "openai/gpt-5".into(),
        usage: Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() },
        took_ms: Some(40),
        route: Some(Box::new(Route { failed: vec![("claude".into(), "secret words".into())], ..Route::default() })),
        details: Some(Box::new(ReplyDetails {
            reason: StopReason::Tools,
            seed: Some(7),
            json: true,
            endpoint: Some(ReplyEndpoint {
                model: Some("gpt-5-2026-01-01".into()),
                id: Some("reply-1".into()),
                server: Some("api.openai.com".into()),
                port: Some(443),
                streamed: true,
            }),
        })),
    }
}

fn action(key: &str, step: u32) -> Event {
    Event::Action {
        invocation: id(key),
        agent: "agents.code".into(),
        step,
        tool: "files".into(),
        function: "write".into(),
        arguments: "secret words".into(),
        line: "secret words".into(),
    }
}

fn observation(key: &str, of: u32) -> Event {
    Event::Observation {
        invocation: id(key),
        agent: "agents.code".into(),
        step: of + 1,
        of,
        tool: "files".into(),
        function: "write".into(),
        ok: false,
        output: "secret words".into(),
        line: "secret words".into(),
        took_ms: None,
    }
}

/// Two parallel tasks of one agent, the second of which asks another agent.
fn run() -> Vec<RunEvent> {
    let happened = [
        (0, Event::RunStarted { project: "p".into(), branch: "b".into() }),
        (10, started("plan", "planner", "planner.plan")),
        (20, ended("plan", true)),
        (30, started("f-a/1/generate", "agents.code", "agent.run")),
        (31, started("f-b/1/generate", "agents.code", "agent.run")),
        (80, thought("f-b/1/generate", 1)),
        (90, thought("f-a/1/generate", 1)),
        (91, action("f-a/1/generate", 2)),
        (95, observation("f-a/1/generate", 2)),
        (
            96,
            Event::Delegated {
                invocation: id("f-b/1/generate").child(4),
                agent: "agents.research".into(),
                plugin: "react".into(),
                instruction: "secret words".into(),
            },
        ),
        (99, ended("f-b/1/generate#4", true)),
        (100, ended("f-a/1/generate", false)),
        (110, ended("f-b/1/generate", true)),
        (111, Event::Warning { text: "secret words".into() }),
        (
            120,
            Event::RunEnded { status: "completed".into(), summary: "secret words".into(), used: WorkUsage::default() },
        ),
    ];
    (1..).zip(happened).map(|(number, (ms, event))| at(number, ms, event)).collect()
}

fn stretches(starts: &[u64]) -> Stretches {
    let mut stretches = Stretches::default();
    starts.iter().for_each(|after| stretches.begin(*after));
    stretches
}

fn new(content: bool, stretches: &Stretches) -> Spans {
    Spans::new(RunId::from_text("r-1"), content.then_some(65_536), stretches)
}

fn spans(events: &[RunEvent], content: bool) -> Vec<SpanData> {
    let mut spans = new(content, &stretches(&[0]));
    events.iter().flat_map(|event| spans.take(event, None)).collect()
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|pair| pair.key.as_str() == key)?;
    Some(found.value.as_str().into_owned())
}

fn ids(spans: &[SpanData]) -> Vec<SpanId> {
    spans.iter().map(|span| span.span_context.span_id()).collect()
}

/// The run whose process died after its seventh event, and which goes on two seconds later.
fn killed_run() -> Vec<RunEvent> {
    let events = run();
    let mut again = events[..7].to_vec();
    again.push(at(8, 1_000, Event::RunResumed));
    again.push(at(9, 1_001, started("f-a/1/generate", "agents.code", "agent.run")));
    again.extend(events[7..].iter().map(|event| RunEvent {
        number: event.number + 2,
        at_ms: event.at_ms + 2_000,
        ..event.clone()
    }));
    again
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()
}

/// Each span as `name from-to in PARENT`.
fn shown(spans: &[SpanData]) -> Vec<String> {
    let name = |id: SpanId| {
        spans.iter().find(|span| span.span_context.span_id() == id).map(|span| {
            let task = span.attributes.iter().find(|pair| pair.key.as_str() == "longhaul.task_id");
            let task = task.map(|pair| format!(" of {}", pair.value.as_str())).unwrap_or_default();
            format!("{}{task}", span.name)
        })
    };
    let line = |span: &SpanData| {
        let parent = name(span.parent_span_id).unwrap_or_else(|| "-".to_owned());
        let own = name(span.span_context.span_id()).unwrap();
        format!("{own} {}-{} in {parent}", millis(span.start_time), millis(span.end_time))
    };
    spans.iter().map(line).collect()
}

#[test]
fn a_run_is_one_trace_and_tasks_of_one_agent_do_not_mix() {
    let spans = spans(&run(), false);
    assert_eq!(
        shown(&spans),
        [
            "plan planner 10-20 in invoke_workflow p",
            "chat gpt-5 40-80 in invoke_agent code of b",
            "chat gpt-5 50-90 in invoke_agent code of a",
            "execute_tool files.write 91-95 in invoke_agent code of a",
            "invoke_agent research of b 96-99 in invoke_agent code of b",
            "invoke_agent code of a 30-100 in invoke_workflow p",
            "invoke_agent code of b 31-110 in invoke_workflow p",
            "invoke_workflow p 0-120 in -",
        ]
    );
    let traces: Vec<_> = spans.iter().map(|span| span.span_context.trace_id()).collect();
    assert!(traces.iter().all(|trace| *trace == traces[0]));
}

#[test]
fn content_is_sent_only_where_it_is_wanted() {
    let words = |content| format!("{:?}", spans(&run(), content)).matches("secret words").count();
    assert_eq!(words(false), 0);
    assert!(words(true) > 5);
}

#[test]
fn a_run_that_goes_on_has_a_span_for_each_stretch_of_its_work_and_each_leads_to_the_one_before() {
    let mut spans = new(false, &stretches(&[0, 7]));
    let made: Vec<_> = killed_run().iter().flat_map(|event| spans.take(event, None)).collect();
    assert_eq!(
        shown(&made),
        [
            "plan planner 10-20 in invoke_workflow p",
            "chat gpt-5 40-80 in invoke_agent code of b",
            "chat gpt-5 50-90 in invoke_agent code of a",
            "invoke_agent code of a 30-90 in invoke_workflow p",
            "invoke_agent code of b 31-90 in invoke_workflow p",
            "invoke_workflow p 0-90 in -",
            "execute_tool files.write 2091-2095 in invoke_agent code of a",
            "invoke_agent research of b 2096-2099 in invoke_agent code of b",
            "invoke_agent code of a 1001-2100 in invoke_workflow p",
            "invoke_agent code of b 2096-2110 in invoke_workflow p",
            "invoke_workflow p 1000-2120 in -",
        ]
    );
    let known = ids(&made);
    assert!(made.iter().all(|span| span.parent_span_id == SpanId::INVALID || known.contains(&span.parent_span_id)));
    let links = |at: usize| made[at].links.iter().map(|link| link.span_context.span_id()).collect::<Vec<_>>();
    assert_eq!((links(5), links(10), links(8), links(9)), (vec![], vec![known[5]], vec![known[3]], vec![known[4]]));
    assert_eq!(made[6].parent_span_id, known[8], "what follows is in the span of its own stretch");
    let traces: Vec<_> = made.iter().map(|span| span.span_context.trace_id()).collect();
    assert!(traces.iter().all(|trace| *trace == traces[0]));
    let statuses = [5, 10].map(|place| attribute(&made[place], "longhaul.status").unwrap());
    assert_eq!(statuses, ["interrupted", "completed"]);
}

#[test]
fn another_process_gives_the_spans_of_its_stretch_the_same_ids() {
    let events = killed_run();
    let mut whole = new(false, &stretches(&[0, 7]));
    let whole: Vec<_> = events.iter().flat_map(|event| whole.take(event, None)).collect();
    let mut first = new(false, &stretches(&[0]));
    let before: Vec<_> = events[..7].iter().flat_map(|event| first.take(event, None)).collect();
    assert_eq!(ids(&before), ids(&whole)[..3]);
    assert_eq!(ids(&first.close()), ids(&whole)[3..6]);
}

#[test]
fn a_parked_run_has_its_spans_although_it_never_goes_on() {
    let mut spans = new(false, &stretches(&[0]));
    let mut events = run()[..7].to_vec();
    let question = Event::Parked { question: "secret words".into(), answer_with: "secret words".into() };
    events.push(at(8, 95, question));
    let mut made: Vec<_> = events.iter().flat_map(|event| spans.take(event, None)).collect();
    made.extend(spans.close());
    assert!(spans.close().is_empty(), "a stretch ends once");
    let known = ids(&made);
    assert!(made.iter().all(|span| span.parent_span_id == SpanId::INVALID || known.contains(&span.parent_span_id)));
    let last = made.last().unwrap();
    assert_eq!(attribute(last, "longhaul.status").as_deref(), Some("parked"));
    assert_eq!(attribute(last, "longhaul.stretch").as_deref(), Some("1"));
    // The process that goes on makes only its own.
    let mut row = stretches(&[0, 8]);
    row.close();
    let mut next = new(false, &row);
    events.iter().for_each(|event| drop(next.take(event, None)));
    assert!(next.take(&at(9, 9_000, Event::RunResumed), None).is_empty());
    let closed = next.close();
    assert_eq!(shown(&closed), ["invoke_workflow p 9000-9000 in -"]);
    assert_eq!(closed[0].links[0].span_context.span_id(), *known.last().unwrap());
}

#[test]
fn a_reply_has_the_attributes_of_the_conventions() {
    let spans = spans(&run(), false);
    let chat = spans.iter().find(|span| span.name == "chat gpt-5").unwrap();
    for (key, expected) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-5"),
        ("gen_ai.request.seed", "7"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.output.type", "json"),
        ("gen_ai.response.model", "gpt-5-2026-01-01"),
        ("gen_ai.response.id", "reply-1"),
        ("gen_ai.response.finish_reasons", "[\"tool_call\"]"),
        ("gen_ai.conversation.id", "r-1/f-b/1/generate"),
        ("server.address", "api.openai.com"),
        ("server.port", "443"),
    ] {
        assert_eq!(attribute(chat, key).as_deref(), Some(expected), "{key}");
    }
    let tool = spans.iter().find(|span| span.name == "execute_tool files.write").unwrap();
    assert_eq!(attribute(tool, "gen_ai.agent.name").as_deref(), Some("code"));
    let id = tool.attributes.iter().find(|pair| pair.key.as_str() == "gen_ai.tool.call.id").unwrap();
    assert!(matches!(&id.value, opentelemetry::Value::String(text) if text.as_str() == "2"), "{id:?}");
}

#[test]
fn whole_contents_go_before_the_beginnings_in_events() {
    let mut spans = new(true, &stretches(&[0]));
    let mut made = Vec::new();
    for event in run() {
        let content = match &event.event {
            Event::Action { .. } => Some(StepContent::Arguments("{\"whole\":1}".into())),
            _ => None,
        };
        made.extend(spans.take(&event, content));
    }
    let tool = made.iter().find(|span| span.name == "execute_tool files.write").unwrap();
    assert_eq!(attribute(tool, "gen_ai.tool.call.arguments").as_deref(), Some("{\"whole\":1}"));
    assert_eq!(attribute(tool, "gen_ai.tool.call.result"), None, "a call that failed has no result");
    assert_eq!(attribute(tool, "longhaul.error").as_deref(), Some("secret words"));
    let chat = made.iter().find(|span| span.name == "chat gpt-5").unwrap();
    let output = attribute(chat, "gen_ai.output.messages").unwrap();
    assert!(output.contains("secret words") && output.contains("\"finish_reason\":\"tool_call\""), "{output}");
}

#[test]
fn a_part_of_the_runs_is_sampled_and_each_always_or_never() {
    let sampled = |ratio| (0..1_000).filter(|n| ids::is_sampled(&RunId::from_text(format!("r-{n}")), ratio)).count();
    assert_eq!((sampled(0.0), sampled(1.0)), (0, 1_000));
    assert!((400..600).contains(&sampled(0.5)), "{}", sampled(0.5));
}
