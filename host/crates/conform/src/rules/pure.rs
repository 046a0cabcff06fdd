//! Rules for planners, agents and evaluators, whose runs the host must be able to repeat.

use crate::probe::Probe;
use crate::report::RuleVerdict;
use crate::rules::every::called;
use longhaul_engine::CallError;
use longhaul_testkit::{Call, Done, Ending};

/// The seeds of two invocations.
const SEEDS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

pub(crate) async fn deterministic(probe: &Probe) -> Result<RuleVerdict, String> {
    let mut calls = 0;
    let mut fuel = 0;
    for call in probe.good() {
        let name = called(&call);
        let first = seeded(probe, call.clone(), SEEDS[0]).await?;
        if let Some(clock) = clock_that_ended(&first) {
            return Ok(RuleVerdict::Fail(format!(
                "{name} was ended by `{clock}`, a clock, so at another instruction each time; state a fuel_max that ends it first"
            )));
        }
        let second = seeded(probe, call, SEEDS[0]).await?;
        if let Some(what) = differs(&first, &second, true) {
            return Ok(RuleVerdict::Fail(format!("{name} twice with the same input and seed: {what}")));
        }
        calls += first.calls.len();
        fuel += first.used.fuel;
    }
    Ok(RuleVerdict::Pass(format!("twice the same results, {calls} calls and {fuel} fuel")))
}

pub(crate) async fn fresh_randomness(probe: &Probe) -> Result<RuleVerdict, String> {
    for call in probe.good() {
        let name = called(&call);
        let first = seeded(probe, call.clone(), SEEDS[0]).await?;
        let second = seeded(probe, call, SEEDS[1]).await?;
        if differs(&first, &second, false).is_some() {
            return Ok(RuleVerdict::Pass(format!("{name} followed the seed of its invocation")));
        }
    }
    Ok(if probe.subject.random {
        let text = "its manifest says that its answers are random, and two seeds gave the same: randomness was drawn when it was built; draw it in the call";
        RuleVerdict::Fail(text.to_owned())
    } else if probe.imports("wasi:random/") {
        RuleVerdict::Skip("nothing that it answered depends on randomness".to_owned())
    } else {
        RuleVerdict::Skip("it imports no randomness".to_owned())
    })
}

async fn seeded(probe: &Probe, call: Call, seed: [u8; 32]) -> Result<Done, String> {
    probe.call(&probe.scene().with_seed(seed), call).await
}

/// Fuel ends a call at the same instruction each time.
pub(super) fn clock_that_ended(done: &Done) -> Option<&str> {
    match &done.ending {
        Ending::Stopped(CallError::Limit { hit, .. }) => {
            ["cpu_ms_max", "wall_ms_max"].into_iter().find(|clock| hit.name == *clock)
        }
        _ => None,
    }
}

/// The first thing in which two calls differ.
pub(super) fn differs(first: &Done, second: &Done, fuel_too: bool) -> Option<String> {
    if let Some((at, (one, other))) = first
        .calls
        .iter()
        .zip(&second.calls)
        .enumerate()
        .find(|(_, (one, other))| (&one.name, &one.arguments) != (&other.name, &other.arguments))
    {
        return Some(format!("call {} was `{one}` and then `{other}`", at + 1));
    }
    if first.calls.len() != second.calls.len() {
        return Some(format!("{} calls and then {}", first.calls.len(), second.calls.len()));
    }
    if first.ending_json() != second.ending_json() {
        return Some("the results differ".to_owned());
    }
    if first.log != second.log {
        return Some("the logs differ".to_owned());
    }
    let (one, other) = (first.used.fuel, second.used.fuel);
    (fuel_too && one != other).then(|| format!("{one} fuel and then {other}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use longhaul_core::event::WorkUsage;
    use longhaul_testkit::Made;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn done() -> Done {
        Done {
            export: "run",
            ending: Ending::Returned(json!({ "output": 1 })),
            used: WorkUsage { fuel: 100, ..WorkUsage::default() },
            calls: vec![made("timer.sleep"), made("tools.call")],
            events: Vec::new(),
            log: serde_json::from_value(json!([{ "level": "info", "text": "begun" }])).unwrap(),
            log_dropped: 0,
            wall: Duration::ZERO,
        }
    }

    fn made(name: &str) -> Made {
        let (name, summary) = (name.to_owned(), "once".to_owned());
        Made { name, summary, arguments: Digest::of(b"{}"), in_full: Value::Null, fuel_used: 10, answer: None }
    }

    /// Checks what the rule says of a call and a changed copy of it.
    #[track_caller]
    fn check(change: fn(&mut Done), fuel_too: bool, expected: Option<&str>) {
        let mut other = done();
        change(&mut other);
        assert_eq!(differs(&done(), &other, fuel_too).as_deref(), expected);
    }

    #[test]
    fn a_call_differs_in_what_it_asks_answers_logs_and_uses() {
        check(|_| (), true, None);
        check(|other| other.wall = Duration::from_secs(9), true, None);
        let other_call = Some("call 2 was `tools.call once` and then `tools.list once`");
        check(|other| other.calls[1] = made("tools.list"), true, other_call);
        let same_name = Some("call 2 was `tools.call once` and then `tools.call once`");
        check(|other| other.calls[1].arguments = Digest::of(b"[]"), true, same_name);
        check(|other| drop(other.calls.pop()), true, Some("2 calls and then 1"));
        check(|other| other.ending = Ending::Returned(json!({ "output": 2 })), true, Some("the results differ"));
        check(|other| other.log.clear(), true, Some("the logs differ"));
        check(|other| other.used.fuel += 1, true, Some("100 fuel and then 101"));
        // Another seed may lead to another path.
        check(|other| other.used.fuel += 1, false, None);
    }
}
