//! Totals of runs as Prometheus text. Labels are names of the operator's own file, of limits and of statuses; above a
//! cap for one kind, the rest is counted as `other`.

use crate::label;
use crate::metrics_writer::MetricsWriter;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::model::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of one label.
const LABELS_MAX: usize = 200;

/// Sums over events of any runs, each from its first event on. The sums of a run are stored with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    runs_started: u64,
    runs_ended: BTreeMap<String, u64>,
    tasks: BTreeMap<String, (u64, u64)>,
    calls: BTreeMap<String, (u64, u64)>,
    models: BTreeMap<String, OfModel>,
    limits: BTreeMap<String, u64>,
    features_committed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct OfModel {
    replies: u64,
    usage: [u64; 5],
    /// The cost; none until one is known.
    microdollars: Option<f64>,
    seconds: f64,
}

impl Totals {
    /// Adds an event.
    pub fn add(&mut self, event: &RunEvent) {
        match &event.event {
            Event::RunStarted { .. } => self.runs_started += 1,
            Event::RunEnded { status, .. } => {
                *slot(&mut self.runs_ended, status) += 1;
            }
            Event::InvocationEnded { agent, ok, .. } => count(slot(&mut self.tasks, agent), *ok),
            Event::Observation { tool, ok, .. } => count(slot(&mut self.calls, label::of(tool)), *ok),
            Event::Thought { model, usage, took_ms, .. } => {
                slot(&mut self.models, model).add(*usage, took_ms.unwrap_or(0));
            }
            Event::Limit { name, .. } => *slot(&mut self.limits, name) += 1,
            Event::Committed { .. } => self.features_committed += 1,
            _ => {}
        }
    }

    /// Adds what the sums of a run have more than they had `before`. Where they have less, as those of a run that an
    /// import replaced, nothing is taken out: a counter never falls.
    pub fn grow(&mut self, before: &Self, now: &Self) {
        self.runs_started += now.runs_started.saturating_sub(before.runs_started);
        self.features_committed += now.features_committed.saturating_sub(before.features_committed);
        grow_counts(&mut self.runs_ended, &before.runs_ended, &now.runs_ended);
        grow_counts(&mut self.limits, &before.limits, &now.limits);
        grow_outcomes(&mut self.tasks, &before.tasks, &now.tasks);
        grow_outcomes(&mut self.calls, &before.calls, &now.calls);
        for (model, now) in &now.models {
            let before = before.models.get(model).copied().unwrap_or_default();
            slot(&mut self.models, model).grow(before, *now);
        }
    }

    /// The text, in Prometheus' format 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = MetricsWriter::default();
        text.counter("longhaul_runs_started_total", "Runs that were started.");
        text.line("longhaul_runs_started_total", &[], self.runs_started);
        text.counter("longhaul_runs_ended_total", "Runs that ended, by status.");
        for (status, count) in &self.runs_ended {
            text.line("longhaul_runs_ended_total", &[("status", status)], count);
        }
        text.counter("longhaul_features_committed_total", "Features that passed and were committed.");
        text.line("longhaul_features_committed_total", &[], self.features_committed);
        outcomes(&mut text, "longhaul_tasks_total", "Invocations that ended, by agent.", "agent", &self.tasks);
        outcomes(&mut text, "longhaul_tool_calls_total", "Calls of tools that were answered.", "tool", &self.calls);
        self.models(&mut text);
        text.counter("longhaul_limits_total", "Limits that were reached, by name.");
        for (name, count) in &self.limits {
            text.line("longhaul_limits_total", &[("limit", name)], count);
        }
        text.finish()
    }

    fn models(&self, text: &mut MetricsWriter) {
        text.counter("longhaul_model_replies_total", "Replies of models, by their names in longhaul.toml.");
        for (model, of) in &self.models {
            text.line("longhaul_model_replies_total", &[("model", model)], of.replies);
        }
        text.counter(
            "longhaul_model_tokens_total",
            "Tokens, by model; cached ones are among input, reasoning among output.",
        );
        for (model, of) in &self.models {
            for (kind, tokens) in ["input", "cached", "cache_written", "output", "reasoning"].iter().zip(of.usage) {
                text.line("longhaul_model_tokens_total", &[("model", model), ("type", kind)], tokens);
            }
        }
        text.counter("longhaul_model_cost_usd_total", "What replies cost, in US dollars, as far as prices are known.");
        for (model, cost) in self.models.iter().filter_map(|(model, of)| Some((model, of.microdollars?))) {
            text.line("longhaul_model_cost_usd_total", &[("model", model)], cost / 1e6);
        }
        text.counter("longhaul_model_seconds_total", "Time that replies took, waiting for a turn included.");
        for (model, of) in &self.models {
            text.line("longhaul_model_seconds_total", &[("model", model)], of.seconds);
        }
    }
}

impl OfModel {
    fn grow(&mut self, before: Self, now: Self) {
        self.replies += now.replies.saturating_sub(before.replies);
        for (sum, (before, now)) in self.usage.iter_mut().zip(before.usage.into_iter().zip(now.usage)) {
            *sum = sum.saturating_add(now.saturating_sub(before));
        }
        if let Some(microdollars) = now.microdollars {
            *self.microdollars.get_or_insert(0.0) += (microdollars - before.microdollars.unwrap_or(0.0)).max(0.0);
        }
        self.seconds += (now.seconds - before.seconds).max(0.0);
    }

    fn add(&mut self, usage: Usage, took_ms: u64) {
        let Usage { input_tokens, cached_tokens, cache_written_tokens, output_tokens, reasoning_tokens, .. } = usage;
        self.replies += 1;
        let more = [input_tokens, cached_tokens, cache_written_tokens, output_tokens, reasoning_tokens];
        for (sum, more) in self.usage.iter_mut().zip(more) {
            *sum = sum.saturating_add(more.into());
        }
        if !usage.cost_unknown || usage.cost_microdollars > 0.0 {
            *self.microdollars.get_or_insert(0.0) += usage.cost_microdollars;
        }
        self.seconds += f64::from(u32::try_from(took_ms).unwrap_or(u32::MAX)) / 1e3;
    }
}

fn grow_counts(sum: &mut BTreeMap<String, u64>, before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) {
    for (label, now) in now {
        *slot(sum, label) += now.saturating_sub(before.get(label).copied().unwrap_or(0));
    }
}

type Outcomes = BTreeMap<String, (u64, u64)>;

fn grow_outcomes(sum: &mut Outcomes, before: &Outcomes, now: &Outcomes) {
    for (label, now) in now {
        let before = before.get(label).copied().unwrap_or_default();
        let sum = slot(sum, label);
        sum.0 += now.0.saturating_sub(before.0);
        sum.1 += now.1.saturating_sub(before.1);
    }
}

/// The entry of a label, of which there is a bounded number.
fn slot<'a, T: Default>(map: &'a mut BTreeMap<String, T>, label: &str) -> &'a mut T {
    let label = if map.len() >= LABELS_MAX && !map.contains_key(label) { "other" } else { label };
    map.entry(label.to_owned()).or_default()
}

fn count(slot: &mut (u64, u64), ok: bool) {
    if ok { slot.0 += 1 } else { slot.1 += 1 }
}

fn outcomes(text: &mut MetricsWriter, name: &str, help: &str, label: &str, of: &BTreeMap<String, (u64, u64)>) {
    text.counter(name, help);
    for (value, (ok, failed)) in of {
        text.line(name, &[(label, value), ("ok", "true")], ok);
        text.line(name, &[(label, value), ("ok", "false")], failed);
    }
}

#[cfg(test)]
mod tests;
