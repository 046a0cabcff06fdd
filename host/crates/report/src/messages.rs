//! Words and numbers for people, whatever shows them: a terminal, a report.
//!
//! They are put together here and printed elsewhere.

use longhaul_core::event::{ContextCut, Event, ProposedCriterion, RunEvent, WorkUsage};
use longhaul_core::model::Usage;
pub use longhaul_core::text::count;
use longhaul_core::text::printable;
use longhaul_core::work::{FeatureStatus, Mark};
use longhaul_records::ledger::{LedgerView, PossiblyPaidTwice};
use serde_json::Value;

/// An event in one line, or a few of which each is the host's; none when it is of no interest to a person.
pub fn line(event: &RunEvent) -> Option<String> {
    let event = &on_one_line(event);
    Some(match &event.event {
        Event::RunStarted { project, branch } if branch.is_empty() => format!("run {} of {project}", event.run),
        Event::Dispatched { path, agent, why } => match agent {
            Some(agent) => format!("{agent} answers: {why}"),
            None => format!("{path}: {why}"),
        },
        Event::Steered { feature, text } => {
            format!("  told {} at its next step: {text}", feature.as_deref().unwrap_or("the planner"))
        }
        Event::RunStarted { project, branch } => format!("run {} of {project}, on branch {branch}", event.run),
        Event::RunResumed => format!("run {} goes on", event.run),
        Event::Planned { features, notes, proposed } => planned(features, notes, proposed),
        Event::Feature { feature, status, why } => feature_line(feature, *status, why)?,
        Event::InvocationStarted { plugin, export, feature, round, .. } => {
            format!("  {}", work_words(export, feature.as_deref(), *round, plugin))
        }
        Event::InvocationEnded { outcome, ok, used, agent, .. } => {
            let spent = spent_words(&used.usage);
            match (ok, spent.is_empty()) {
                // Its features or its verdict are the next line.
                (true, true) if is_told_next(agent) => return None,
                (true, false) if is_told_next(agent) => format!("    {spent}"),
                (true, true) => format!("    {outcome}"),
                (true, false) => format!("    {outcome} ({spent})"),
                (false, true) => format!("    ended early: {outcome}"),
                (false, false) => format!("    ended early: {outcome} ({spent})"),
            }
        }
        Event::Judged { feature, passed, judgements, .. } => judged(feature, *passed, judgements),
        Event::Committed { feature, commit, files, protected } => {
            let short = &commit[..commit.len().min(10)];
            let protected = match &protected[..] {
                [] => String::new(),
                paths => format!(" (protected, with a person's approval: {})", paths.join(", ")),
            };
            format!("  committed {feature} as {short}: {}{protected}", files.join(", "))
        }
        // For programs: people see the feature itself begin and end.
        Event::SessionStarting { .. } | Event::SessionComplete { .. } => return None,
        Event::Contract { criteria, checks, .. } if criteria.is_empty() && checks.is_empty() => return None,
        Event::Contract { feature, criteria, .. } => {
            format!("  {feature} is also judged by: {}", criteria.join(", "))
        }
        Event::Replanned { replan, features, kept, notes } => {
            let kept = if kept.is_empty() { String::new() } else { format!("; kept: {}", kept.join(", ")) };
            format!("replan {replan}{kept}; {}", planned(features, notes, &[]))
        }
        Event::Answered { answer, confidence: Some(confidence) } => {
            format!("answer ({:.0} % sure): {answer}", confidence * 100.0)
        }
        Event::Answered { answer, confidence: None } => format!("answer: {answer}"),
        Event::Reverted { to, features, .. } => {
            let back =
                if features.is_empty() { String::new() } else { format!("; taken back: {}", features.join(", ")) };
            format!("reverted to {}{back}", short(to))
        }
        Event::Parked { question, answer_with } => {
            format!("waits: {question}\n  answer with: {}", answer_with.replace("RUN", event.run.as_str()))
        }
        Event::Paused => "paused".to_owned(),
        Event::Limit { name, text } => format!("limit {name}: {text}"),
        Event::VacuousCheck { feature, check } => {
            format!("  note: check `{check}` of {feature} passed before the work began, so it proves nothing")
        }
        Event::Proposed { proposal, what } => {
            format!(
                "  proposed: {what}; `longhaul features accept {proposal}` or `longhaul features reject {proposal}`"
            )
        }
        Event::RunQueued { place, runs_max } => {
            format!("  queued: number {place} of the runs that wait, since {runs_max} work at once at most")
        }
        Event::PluginMoved { plugin, from, to, unmoved, .. } => {
            let unmoved = if unmoved.is_empty() {
                String::new()
            } else {
                format!("; on the old ones end: {}", unmoved.join(", "))
            };
            format!("moved `{plugin}` from bytes {} to {}{unmoved}", from.short(), to.short())
        }
        Event::Warning { text } => format!("  note: {text}"),
        Event::ContextCompacted { cut, .. } => format!("    context compacted{}", cut_words(cut)),
        Event::ContextReset { cut, .. } => format!("    context reset{}", cut_words(cut)),
        Event::RunEnded { status, summary, used } => format!("{status}: {summary} ({})", used_words(used)),
        _ => return None,
    })
}

/// The event with each of its texts on one line: agents and models wrote them, and none must pass for a line of the
/// host.
fn on_one_line(event: &RunEvent) -> RunEvent {
    fn each(value: &mut Value) {
        match value {
            Value::String(text) => *text = printable(text, usize::MAX),
            Value::Array(values) => values.iter_mut().for_each(each),
            Value::Object(fields) => fields.values_mut().for_each(each),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut value = serde_json::to_value(event).unwrap_or_default();
    each(&mut value);
    serde_json::from_value(value).unwrap_or_else(|_| event.clone())
}

fn cut_words(cut: &ContextCut) -> String {
    let ContextCut { policy, tokens_before, tokens_after, messages_replaced, texts_referred, .. } = cut;
    let mut text = format!(
        " ({}): {tokens_before} to {}, {} replaced, {} put away",
        policy.name(),
        counted(*tokens_after, "token"),
        counted(*messages_replaced, "message"),
        counted(*texts_referred, "text")
    );
    if let Some(why) = &cut.unsummarised {
        text.push_str(&format!("; without a summary: {why}"));
    }
    text
}

fn planned(features: &[(String, String)], notes: &str, proposed: &[ProposedCriterion]) -> String {
    let mut text = count(features.len(), "feature");
    for (id, title) in features {
        text.push_str(&format!("\n  {id}: {title}"));
        for ProposedCriterion { text: criterion, check, .. } in proposed.iter().filter(|one| one.feature == *id) {
            let by = check.as_ref().map_or("the evaluator reads it".to_owned(), |check| format!("check {check}"));
            text.push_str(&format!("\n    - {criterion} ({by})"));
        }
    }
    if proposed.iter().any(|one| one.check.is_some()) {
        text.push_str("\n  the planner wrote these checks; `longhaul features --checks` shows them");
    }
    if !notes.trim().is_empty() {
        text.push_str(&format!("\n  {}", notes.trim()));
    }
    text
}

fn feature_line(feature: &str, status: FeatureStatus, why: &str) -> Option<String> {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    Some(match status {
        FeatureStatus::NotStarted => return None,
        FeatureStatus::InProgress => format!("feature {feature}"),
        FeatureStatus::Passing => format!("  PASS {feature}{why}"),
        FeatureStatus::Failing => format!("  FAIL {feature}{why}"),
        FeatureStatus::Blocked => format!("  BLOCKED {feature}{why}"),
        FeatureStatus::Dropped => format!("  dropped {feature}{why}"),
    })
}

fn judged(feature: &str, passed: bool, judgements: &[longhaul_core::work::Judgement]) -> String {
    let mut text = format!("    {feature} {}", if passed { "passes" } else { "does not pass" });
    for judgement in judgements.iter().filter(|judgement| judgement.mark != Mark::Pass) {
        text.push_str(&format!("\n      {}: {}", judgement.criterion, judgement.why));
    }
    text
}

fn verb(export: &str) -> &'static str {
    match export {
        "planner.plan" => "plan",
        "planner.replan" => "plan again",
        "planner.synthesize" => "sum up",
        "agent.run" => "work on",
        "evaluator.judge" => "judge",
        "model.choose" => "choose",
        _ => "call",
    }
}

/// True when what a component of this table hands back is an event of its own.
fn is_told_next(agent: &str) -> bool {
    matches!(agent, "planner" | "evaluator")
}

/// The work of a component: `work on sum, round 2: react`.
pub fn work_words(export: &str, feature: Option<&str>, round: u32, plugin: &str) -> String {
    let of = match feature {
        None => String::new(),
        // Before the first round it is about what the feature is judged by.
        Some(feature) if round == 0 => format!(" the rubric of {feature}"),
        Some(feature) => format!(" {feature}, round {round}"),
    };
    format!("{}{of}: {plugin}", verb(export))
}

/// Tokens and what they cost; nothing where no model was asked.
pub fn spent_words(usage: &Usage) -> String {
    let mut parts = Vec::new();
    if usage.tokens() > 0 {
        parts.push(counted(usage.tokens(), "token"));
    }
    parts.extend(cost_words(*usage));
    parts.join(", ")
}

/// JSON as a person reads it: a string without its quotes.
pub fn plain(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

/// The usage: tokens, money, fuel. What was possibly paid twice is in [`ledger_words`], which alone knows it.
pub fn used_words(used: &WorkUsage) -> String {
    let mut parts = vec![spent_words(&used.usage), format!("{} fuel", short_number(used.fuel))];
    for (number, of) in [(used.context_resets, "context reset"), (used.context_compactions, "compaction")] {
        if number > 0 {
            parts.push(counted(number, of));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// The cost of models; none when it is zero.
pub fn cost_words(usage: Usage) -> Option<String> {
    match usage.cost() {
        Some(cost) => (cost > 0.0).then(|| usage.cost_text()),
        None if usage.cost_microdollars > 0.0 => Some(usage.cost_text()),
        None => Some("cost unknown".to_owned()),
    }
}

/// The usage of a run, and its limits.
pub fn ledger_words(ledger: &LedgerView) -> String {
    let LedgerView { total, wall_ms, replans, wall_ms_max, caps, .. } = ledger;
    let of = |max: Option<String>| max.map_or(String::new(), |max| format!(" of {max}"));
    let of_bytes = |max: Option<u64>| of(max.map(short_bytes));
    let of_count = |max: Option<u64>| of(max.map(|max| max.to_string()));
    let dollars = |micro: f64| format!("${:.4}", micro / 1e6);
    let micro = |max: u64| f64::from(u32::try_from(max).unwrap_or(u32::MAX));
    let seconds = |ms: u64| format!("{} s", ms.div_ceil(1_000));
    [
        format!(
            "ledger: {}{}",
            if total.usage.cost_unknown {
                format!("cost {}", total.usage.cost_text())
            } else {
                total.usage.cost_text()
            },
            of(caps.cost_microdollars_max.map(micro).map(dollars))
        ),
        format!("{}{} tokens", total.usage.tokens(), of_count(caps.tokens_max)),
        format!("{}{} worked", seconds(*wall_ms), of(wall_ms_max.map(seconds))),
        format!("{}{}", count(total.model_calls as usize, "step"), of_count(caps.model_calls_max)),
        format!("{}{}", count(total.tool_calls as usize, "tool call"), of_count(caps.tool_calls_max)),
        count(*replans as usize, "replan"),
        format!("{}{} fuel", short_number(total.fuel), of(caps.fuel_max.map(short_number))),
        format!("{}{} sent", short_bytes(total.egress_bytes), of_bytes(caps.egress_bytes_max)),
        format!("{}{} of answers stored", short_bytes(total.stored_bytes), of_bytes(caps.stored_bytes_max)),
        format!("peak memory {}{}", short_bytes(memory_peak(ledger)), of_bytes(caps.memory_bytes_max)),
        possibly_paid_twice(ledger.possibly_paid_twice(|_| true)),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join(", ")
}

/// A run from before this was kept has only the most of one component.
fn memory_peak(ledger: &LedgerView) -> u64 {
    ledger.memory_bytes_at_once_peak.max(ledger.total.memory_bytes_peak)
}

/// Calls of models that were cut off, and what stays charged for them.
fn possibly_paid_twice(PossiblyPaidTwice { calls, usage_max }: PossiblyPaidTwice) -> String {
    if calls == 0 {
        return String::new();
    }
    let cost = if usage_max.cost_unknown { "an unknown sum".to_owned() } else { usage_max.cost_text() };
    format!("possibly paid twice: {calls} (up to {cost} and {}, charged)", counted(usage_max.tokens(), "token"))
}

/// A moment as people write it, in UTC.
pub fn moment(at_ms: u64) -> String {
    i64::try_from(at_ms)
        .ok()
        .and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok())
        .map_or_else(|| format!("{at_ms} ms"), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A commit's name, short.
pub fn short(commit: &str) -> &str {
    &commit[..commit.floor_char_boundary(10)]
}

/// As [`count`], of a number of any kind.
pub fn counted(number: impl TryInto<usize>, of: &str) -> String {
    count(number.try_into().unwrap_or(usize::MAX), of)
}

/// A number in three or four digits: `950`, `12.3 k`, `4.5 M`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub fn short_number(number: u64) -> String {
    let value = number as f64;
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1} k", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", value / 1e6),
        _ => format!("{:.1} G", value / 1e9),
    }
}

/// A number of bytes in three or four digits: `950 B`, `12.3 kB`, `4.5 MB`.
pub fn short_bytes(bytes: u64) -> String {
    let number = short_number(bytes);
    let unit = if bytes < 1_000 { " B" } else { "B" };
    number + unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_bytes_has_its_unit_in_one_word() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (4_100_000, "4.1 MB"),
            (999_999, "1000.0 kB"),
            (2_500_000_000, "2.5 GB"),
        ] {
            assert_eq!(short_bytes(bytes), expected);
        }
    }

    #[test]
    fn the_peak_of_memory_is_told_with_its_cap() {
        let mut ledger = LedgerView { memory_bytes_at_once_peak: 4_100_000, ..LedgerView::default() };
        assert!(ledger_words(&ledger).ends_with("peak memory 4.1 MB"), "{}", ledger_words(&ledger));
        ledger.caps.memory_bytes_max = Some(256_000_000);
        assert!(ledger_words(&ledger).ends_with("peak memory 4.1 MB of 256.0 MB"), "{}", ledger_words(&ledger));
    }
}
