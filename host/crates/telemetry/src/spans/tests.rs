//! Tests of the spans of a run, and of parallel tasks, which stay apart.

use super::*;
use longhaul_core::model::Route;

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

fn spans(events: &[RunEvent], content: bool) -> Vec<SpanData> {
    let mut spans = Spans::new(RunId::from_text("r-1"), content);
    events.iter().flat_map(|event| spans.take(event)).collect()
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
fn a_run_that_goes_on_elsewhere_has_the_same_spans() {
    let (events, whole) = (run(), spans(&run(), false));
    // The process died after event 7, and the run repeated its open invocations.
    let mut again = events[..7].to_vec();
    again.push(at(8, 1_000, Event::RunResumed));
    again.push(at(9, 1_001, started("f-a/1/generate", "agents.code", "agent.run")));
    again.extend(events[7..].iter().map(|event| RunEvent { number: event.number + 2, ..event.clone() }));
    let after = spans(&again, false);
    assert_eq!(shown(&after), shown(&whole));
    let ids = |spans: &[SpanData]| spans.iter().map(|span| span.span_context.span_id()).collect::<Vec<_>>();
    assert_eq!(ids(&after), ids(&whole));
}

#[test]
fn a_part_of_the_runs_is_sampled_and_each_always_or_never() {
    let sampled = |ratio| (0..1_000).filter(|n| ids::is_sampled(&RunId::from_text(format!("r-{n}")), ratio)).count();
    assert_eq!((sampled(0.0), sampled(1.0)), (0, 1_000));
    assert!((400..600).contains(&sampled(0.5)), "{}", sampled(0.5));
}
