//! The suite `schedule` of `$LONGHAUL_CASES`, and the cases of `executor_tasks` about retries.

use longhaul_schedule::{
    Cron, Name, RetryBackoff, Schedule, SchedulerInput, SchedulerState, Trigger, retry_again, step,
};
use serde_json::Value;
use std::path::PathBuf;

fn directory() -> PathBuf {
    let own = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from)
}

fn cases_of(suite: &str) -> Vec<Value> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(directory()).expect("the directory of cases").flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("read a file of cases");
        let file: Value = serde_json::from_str(&text).expect("a file of cases is JSON");
        if file["suite"] == suite {
            cases.extend(file["cases"].as_array().cloned().unwrap_or_default());
        }
    }
    assert!(!cases.is_empty(), "no case of the suite `{suite}`");
    cases
}

#[track_caller]
fn every_case(suite: &str, run: impl Fn(&Value) -> Result<(), String>) {
    let cases = cases_of(suite);
    let wrong: Vec<String> =
        cases.iter().filter_map(|case| run(case).err().map(|error| format!("{}: {error}", case["id"]))).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_case_of_the_suite_schedule_holds() {
    every_case("schedule", |case| match (&case["expr"], &case["schedule"]) {
        (Value::String(expression), _) => expression_case(expression, case),
        (_, Value::Object(_)) => configuration_case(case),
        _ => Err("a case of no known kind".to_owned()),
    });
}

fn expression_case(expression: &str, case: &Value) -> Result<(), String> {
    let cron = Cron::parse(expression, case["tz"].as_str().unwrap_or("UTC"));
    if let Some(expected) = case["expected"].as_str() {
        let found = cron.err().map(|error| format!("error: {error}")).unwrap_or_default();
        return if found.starts_with(expected) { Ok(()) } else { Err(format!("{expected}, but {found}")) };
    }
    let cron = cron.map_err(|error| error.to_string())?;
    let mut at = milliseconds(&case["after"])?;
    for expected in case["expected_next"].as_array().ok_or("no expected_next")? {
        at = cron.next_after(at).map_err(|error| error.to_string())?;
        let expected_ms = milliseconds(expected)?;
        if at != expected_ms {
            return Err(format!("{expected}, but {at} ms"));
        }
    }
    Ok(())
}

fn milliseconds(time: &Value) -> Result<u64, String> {
    let time: jiff::Timestamp = time.as_str().ok_or("a time is text")?.parse().map_err(|error| format!("{error}"))?;
    u64::try_from(time.as_millisecond()).map_err(|error| error.to_string())
}

/// The schedule that results from the configuration of an agent.
fn configuration_case(case: &Value) -> Result<(), String> {
    let mut written = case["schedule"].clone();
    let enabled = written.as_object_mut().and_then(|fields| fields.remove("enabled")) != Some(Value::Bool(false));
    let trigger: Trigger = serde_json::from_value(written).map_err(|error| error.to_string())?;
    let mut schedule = Schedule::new(name("s"), name("a"), trigger.clone());
    let mut state = SchedulerState::default();
    step(&mut state, SchedulerInput::Put(schedule.clone()), 0).map_err(|error| error.to_string())?;
    schedule.enabled = enabled;
    step(&mut state, SchedulerInput::Put(schedule), 1).map_err(|error| error.to_string())?;
    let found: Value = match (state.wake_ms(), trigger) {
        (None, _) => "not scheduled; an existing schedule is removed".into(),
        (Some(_), Trigger::Interval { seconds }) => seconds.into(),
        (Some(_), Trigger::Cron(cron)) => format!("cron {}", cron.expression()).into(),
        (Some(_), after @ Trigger::After { .. }) => after.to_string().into(),
    };
    if found == case["expected"] { Ok(()) } else { Err(format!("{}, but {found}", case["expected"])) }
}

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).expect("a name")
}

#[test]
fn cases_of_retries_hold() {
    let cases: Vec<Value> = cases_of("executor_tasks")
        .into_iter()
        .filter(|case| case["attempt"].is_number() || case["retry_count"].is_number())
        .collect();
    assert!(!cases.is_empty());
    for case in cases {
        let figure = |field: &str| case[field].as_u64().and_then(|figure| u32::try_from(figure).ok());
        if let Some(attempt) = figure("attempt") {
            let delay_ms = RetryBackoff::default().delay_ms(attempt);
            assert_eq!(Some(delay_ms), case["expected_delay_s"].as_u64().map(|s| s * 1000), "{case}");
        } else {
            let (count, max) = (figure("retry_count").expect("a count"), figure("max").expect("a max"));
            let found = retry_again(count, max).map_err(|error| format!("error: {error}"));
            assert_eq!(found.err().as_deref(), case["expected"].as_str(), "{case}");
        }
    }
}
