//! Rules for every role.

use crate::probe::{Hostile, Probe, meaningless};
use crate::report::RuleVerdict;
use longhaul_core::memory::MemoryEntry;
use longhaul_engine::{CallError, Cancel, Role};
use longhaul_testkit::{Call, Done, Ending, Scene, Script};
use serde_json::json;
use std::time::{Duration, Instant};

/// Most time that a cancelled call may take to return. The engine checks about every 0.3 ms; the rest is for busy
/// machines.
const STOP_MS_MAX: u64 = 1_000;

/// Wait until a call is under way, before it is cancelled.
const START: Duration = Duration::from_millis(20);

pub(crate) async fn wrong_input(probe: &Probe) -> Result<RuleVerdict, String> {
    let wrong: Vec<(&str, Call)> = match probe.role() {
        Role::Tool => {
            let of = |name: &str| {
                [
                    ("arguments that are no JSON", Call::tool_text(name, "{\"a\":")),
                    ("arguments that are a list", Call::tool(name, &json!([1, 2]))),
                    (
                        "arguments of a wrong type",
                        Call::tool(name, &json!({ "path": { "a": 1 }, "text": 1, "": null })),
                    ),
                ]
            };
            probe.functions.iter().flat_map(|function| of(&function.name)).collect()
        }
        Role::Memory => {
            let entry =
                MemoryEntry { key: "a".to_owned(), value: "{\"a\":".to_owned(), tags: Vec::new(), expires_at_ms: None };
            vec![("a value that is no JSON", Call::Put("n".to_owned(), entry))]
        }
        _ => return wrong_settings(probe).await,
    };
    let count = wrong.len();
    for (what, call) in wrong {
        let name = called(&call);
        let done = probe.call(&probe.scene(), call).await?;
        match &done.ending {
            Ending::Refused(refusal) if refusal.case.starts_with("invalid") => {}
            Ending::Refused(refusal) if refusal.case == "failed" && probe.role() == Role::Tool => {
                return Ok(RuleVerdict::Fail(format!(
                    "{name} answered {what} with `failed`; answer `invalid-arguments`"
                )));
            }
            Ending::Refused(_) => {}
            Ending::Stopped(error) if !done.is_taken() => {
                return Ok(RuleVerdict::Fail(stopped(&name, what, error)));
            }
            Ending::Returned(_) | Ending::Stopped(_) => {
                return Ok(RuleVerdict::Fail(format!("{name} took {what}; answer with a typed error")));
            }
        }
    }
    Ok(if count == 0 {
        RuleVerdict::Skip("it has no function to call".to_owned())
    } else {
        RuleVerdict::Pass(format!("{count} calls with wrong input were refused with a typed error"))
    })
}

/// The pure roles get no malformed input from the host but settings, which a person wrote.
async fn wrong_settings(probe: &Probe) -> Result<RuleVerdict, String> {
    let mut endings = Vec::new();
    for call in probe.good() {
        let name = called(&call);
        let settings = json!({ "prompt": 7, "steps_max": "many", "tries_max": -1, "temperature": {}, "": null });
        let done = probe.call(&probe.scene().settings(settings), call).await?;
        if let Some(error) = stop(&done) {
            return Ok(RuleVerdict::Fail(stopped(&name, "settings of wrong types", error)));
        }
        endings.push(done);
    }
    Ok(RuleVerdict::Pass(format!("settings of wrong types ended in {}", told(&endings))))
}

pub(crate) async fn empty_input(probe: &Probe) -> Result<RuleVerdict, String> {
    survives(probe, Hostile::Empty, "empty input").await
}

pub(crate) async fn huge_input(probe: &Probe) -> Result<RuleVerdict, String> {
    survives(probe, Hostile::Huge, "a megabyte of text").await
}

pub(crate) async fn deep_input(probe: &Probe) -> Result<RuleVerdict, String> {
    survives(probe, Hostile::Deep, "deeply nested input").await
}

pub(crate) async fn odd_input(probe: &Probe) -> Result<RuleVerdict, String> {
    survives(probe, Hostile::Odd, "characters of every kind").await
}

/// A value and a typed error are both fine, if they come from the plugin itself.
async fn survives(probe: &Probe, hostile: Hostile, what: &str) -> Result<RuleVerdict, String> {
    let mut dones = Vec::new();
    for (scene, call) in probe.hostile(hostile) {
        let name = called(&call);
        let done = probe.call(&scene, call).await?;
        if let Some(error) = stop(&done) {
            return Ok(RuleVerdict::Fail(stopped(&name, what, error)));
        }
        dones.push(done);
    }
    Ok(if dones.is_empty() {
        RuleVerdict::Skip("it has no function to call".to_owned())
    } else {
        RuleVerdict::Pass(format!("{} ended in {}", longhaul_core::text::count(dones.len(), "call"), told(&dones)))
    })
}

pub(crate) async fn within_limits(probe: &Probe) -> Result<RuleVerdict, String> {
    let scene = probe.scene();
    let (mut fuel, mut memory) = (0, 0);
    for call in probe.good() {
        let name = called(&call);
        let done = probe.call(&scene, call).await?;
        if let Some(error) = stop(&done) {
            return Ok(RuleVerdict::Fail(stopped(&name, "a good call", error)));
        }
        fuel = fuel.max(done.used.fuel);
        memory = memory.max(done.used.memory_bytes_peak);
    }
    let limits = &probe.subject.limits;
    Ok(RuleVerdict::Pass(format!(
        "at most {fuel} of {} fuel and {memory} of {} bytes of memory",
        limits.fuel_max, limits.memory_bytes_max
    )))
}

/// A model that never answers, and otherwise the largest input, keep a call under way.
pub(crate) async fn cancel(probe: &Probe) -> Result<RuleVerdict, String> {
    let silent = probe.scene_with(Script::new().silent_model());
    let waiting = probe.good().into_iter().map(|call| (silent.clone(), call));
    let working = probe.hostile(Hostile::Huge);
    let mut longest = None;
    for (scene, call) in waiting.chain(working) {
        let took = stopped_after(&scene, call).await?;
        longest = longest.max(took);
    }
    Ok(promptly(longest))
}

/// Time from the cancel to the return of the call, with any end; none when it had ended before.
async fn stopped_after(scene: &Scene, call: Call) -> Result<Option<Duration>, String> {
    let cancel = Cancel::default();
    let own = cancel.clone();
    // On a thread of its own: a guest that never yields this one would be cancelled only after its end.
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(START);
        let at = Instant::now();
        own.cancel();
        at
    });
    let done = scene.call_until(call, &cancel).await;
    let returned = Instant::now();
    let at = canceller.join().map_err(|_| "the thread that cancels has ended".to_owned())?;
    done.map_err(|error| error.to_string())?;
    Ok(returned.checked_duration_since(at))
}

fn promptly(longest: Option<Duration>) -> RuleVerdict {
    let Some(longest) = longest else {
        return RuleVerdict::Skip(format!("every call was over within {} ms", START.as_millis()));
    };
    let ms = longest.as_secs_f64() * 1_000.0;
    if longest > Duration::from_millis(STOP_MS_MAX) {
        RuleVerdict::Fail(format!("it returned {ms:.1} ms after it was cancelled; {STOP_MS_MAX} are allowed"))
    } else {
        RuleVerdict::Pass(format!("it returned at most {ms:.1} ms after it was cancelled"))
    }
}

pub(crate) async fn answers_json(probe: &Probe) -> Result<RuleVerdict, String> {
    // A model's reply gets into outputs, so this checks more than a good call.
    let scene = probe.scene_with(meaningless("no JSON: \" \\ \u{1}"));
    for call in probe.good() {
        probe.call(&scene, call).await?;
    }
    let wrong = probe.breaches();
    Ok(if wrong.is_empty() {
        RuleVerdict::Pass("every value was what the contract says".to_owned())
    } else {
        RuleVerdict::Fail(wrong.join("; "))
    })
}

/// The call, for people.
pub(crate) fn called(call: &Call) -> String {
    match call {
        Call::Tool { call, .. } => {
            let name: String = call.function.chars().take(40).flat_map(char::escape_debug).collect();
            format!("function `{name}`")
        }
        other => format!("`{}`", other.export()),
    }
}

/// The error that ended a call without a value. Breaches of the contract belong to another rule.
fn stop(done: &Done) -> Option<&CallError> {
    match &done.ending {
        Ending::Stopped(error) if !done.is_taken() => Some(error),
        _ => None,
    }
}

fn stopped(name: &str, what: &str, error: &CallError) -> String {
    let text = error.to_string();
    let line: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
    format!("{name} did not survive {what}: {line}")
}

/// Counts the ends of calls, by kind.
fn told(dones: &[Done]) -> String {
    let values = dones.iter().filter(|done| done.is_taken()).count();
    let errors = dones.len() - values;
    match (values, errors) {
        (_, 0) => "values".to_owned(),
        (0, _) => "typed errors".to_owned(),
        _ => format!("{values} values and {errors} typed errors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_goes_on_after_its_cancel_fails() {
        assert_eq!(promptly(None).word(), "SKIP");
        assert_eq!(promptly(Some(Duration::from_millis(STOP_MS_MAX))).word(), "PASS");
        assert_eq!(promptly(Some(Duration::from_millis(STOP_MS_MAX + 1))).word(), "FAIL");
    }
}
