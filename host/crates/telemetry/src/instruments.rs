//! Events as OpenTelemetry's metrics. Attributes are names of the operator's own file and of providers, never the
//! content of models or tools.

use crate::label;
use longhaul_core::event::{Event, RunEvent};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

/// The metrics of a process.
pub struct Instruments {
    tokens: Histogram<u64>,
    duration: Histogram<f64>,
    cost: Counter<f64>,
    tasks: Counter<u64>,
    calls: Counter<u64>,
    limits: Counter<u64>,
    runs: Counter<u64>,
}

impl Instruments {
    /// Made by a meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self {
            tokens: meter.u64_histogram("gen_ai.client.token.usage").with_unit("{token}").build(),
            duration: meter.f64_histogram("gen_ai.client.operation.duration").with_unit("s").build(),
            cost: meter.f64_counter("longhaul.cost").with_unit("{USD}").build(),
            tasks: meter.u64_counter("longhaul.tasks").with_unit("{task}").build(),
            calls: meter.u64_counter("longhaul.tool.calls").with_unit("{call}").build(),
            limits: meter.u64_counter("longhaul.limits").with_unit("{limit}").build(),
            runs: meter.u64_counter("longhaul.runs").with_unit("{run}").build(),
        }
    }

    /// Counts an event.
    pub fn take(&self, event: &RunEvent) {
        match &event.event {
            Event::Thought { .. } => self.chat(&event.event),
            Event::Observation { tool, ok, .. } => {
                self.calls
                    .add(1, &[KeyValue::new("gen_ai.tool.name", label::of(tool).to_owned()), KeyValue::new("ok", *ok)]);
            }
            Event::InvocationEnded { ok, agent, .. } => {
                self.tasks.add(1, &[KeyValue::new("gen_ai.agent.name", agent.clone()), KeyValue::new("ok", *ok)]);
            }
            Event::Limit { name, .. } => self.limits.add(1, &[KeyValue::new("longhaul.limit", name.clone())]),
            Event::RunEnded { status, .. } => self.runs.add(1, &[KeyValue::new("longhaul.status", status.clone())]),
            _ => {}
        }
    }

    fn chat(&self, event: &Event) {
        let Event::Thought { agent, provider_model, usage, took_ms, .. } = event else { return };
        let (provider, model) = provider_model.split_once('/').unwrap_or(("", provider_model));
        let common = [
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", provider.to_owned()),
            KeyValue::new("gen_ai.request.model", model.to_owned()),
            KeyValue::new("gen_ai.agent.name", agent.clone()),
        ];
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            let mut attributes = common.to_vec();
            attributes.push(KeyValue::new("gen_ai.token.type", kind));
            self.tokens.record(tokens.into(), &attributes);
        }
        if let Some(took_ms) = took_ms.and_then(|took| u32::try_from(took).ok()) {
            self.duration.record(f64::from(took_ms) / 1e3, &common);
        }
        if !usage.cost_unknown || usage.cost_microdollars > 0.0 {
            self.cost.add(usage.cost_microdollars / 1e6, &common);
        }
    }
}
