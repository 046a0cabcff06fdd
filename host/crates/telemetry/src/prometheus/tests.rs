//! Tests of the totals of runs.

use super::*;
use longhaul_core::event::WorkUsage;
use longhaul_core::{InvocationId, RunId};

fn add(totals: &mut Totals, event: Event) {
    totals.add(&RunEvent { run: RunId::from_text("r-1"), number: 1, at_ms: 0, event });
}

fn thought(model: &str) -> Event {
    Event::Thought {
        invocation: InvocationId::from_text("r-1/plan"),
        agent: "planner".into(),
        step: 1,
        text: String::new(),
        model: model.into(),
        provider_model: "openai/x".into(),
        usage: Usage {
            input_tokens: 10,
            cached_tokens: 4,
            output_tokens: 2,
            cost_microdollars: 1_500.0,
            ..Usage::default()
        },
        took_ms: Some(250),
        route: None,
        details: None,
    }
}

#[test]
fn totals_are_prometheus_text() {
    let mut totals = Totals::default();
    let invocation = InvocationId::from_text("r-1/plan");
    add(&mut totals, Event::RunStarted { project: "p".into(), branch: "b".into() });
    add(
        &mut totals,
        Event::InvocationStarted {
            invocation: invocation.clone(),
            plugin: "initializer".into(),
            export: "planner.plan".into(),
            feature: None,
            round: 1,
            agent: "planner".into(),
        },
    );
    add(&mut totals, thought("a\"b"));
    add(&mut totals, thought("a\"b"));
    let used = WorkUsage::default();
    let agent = "planner".to_owned();
    add(&mut totals, Event::InvocationEnded { invocation, outcome: String::new(), ok: true, used, agent });
    add(&mut totals, Event::Limit { name: "fuel_max".into(), text: String::new() });
    add(
        &mut totals,
        Event::RunEnded { status: "completed".into(), summary: String::new(), used: WorkUsage::default() },
    );
    let text = totals.text();
    for line in [
        "# TYPE longhaul_runs_started_total counter",
        "longhaul_runs_started_total 1",
        "longhaul_runs_ended_total{status=\"completed\"} 1",
        "longhaul_tasks_total{agent=\"planner\",ok=\"true\"} 1",
        "longhaul_model_replies_total{model=\"a\\\"b\"} 2",
        "longhaul_model_tokens_total{model=\"a\\\"b\",type=\"cached\"} 8",
        "longhaul_model_cost_usd_total{model=\"a\\\"b\"} 0.003",
        "longhaul_model_seconds_total{model=\"a\\\"b\"} 0.5",
        "longhaul_limits_total{limit=\"fuel_max\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
    }
}

#[test]
fn names_without_end_are_counted_together() {
    let mut totals = Totals::default();
    for number in 0..300 {
        add(&mut totals, thought(&format!("m{number}")));
    }
    let text = totals.text();
    assert_eq!(text.matches("longhaul_model_replies_total{").count(), LABELS_MAX + 1);
    assert!(text.contains("longhaul_model_replies_total{model=\"other\"} 100\n"), "{text}");
}

#[test]
fn sums_of_runs_grow_as_if_their_events_were_counted_one_by_one() {
    let mut runs = [Totals::default(), Totals::default()];
    let (mut all, mut expected) = (Totals::default(), Totals::default());
    let failed = |name: &str| Event::InvocationEnded {
        invocation: InvocationId::from_text("r-1/plan"),
        outcome: String::new(),
        ok: false,
        used: WorkUsage::default(),
        agent: name.to_owned(),
    };
    for round in 0..4 {
        let before = runs.clone();
        for (number, run) in runs.iter_mut().enumerate() {
            for event in [
                thought(&format!("m{number}")),
                thought("m"),
                failed("planner"),
                Event::Limit { name: format!("limit-{round}"), text: String::new() },
                Event::RunStarted { project: "p".into(), branch: "b".into() },
            ] {
                add(run, event.clone());
                add(&mut expected, event);
            }
        }
        before.iter().zip(&runs).for_each(|(before, now)| all.grow(before, now));
        assert_eq!(all.text(), expected.text());
    }
    all.grow(&runs[0], &Totals::default());
    let mut other = Totals::default();
    add(&mut other, thought("m"));
    all.grow(&runs[0], &other);
    assert_eq!(all.text(), expected.text(), "what a run that was replaced had stays");
    let stored = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Totals>(&stored).unwrap(), all);
    assert_eq!(serde_json::from_str::<Totals>("{}").unwrap(), Totals::default(), "of an earlier version");
}
