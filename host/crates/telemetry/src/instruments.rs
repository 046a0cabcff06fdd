//! Events as OpenTelemetry's metrics. Attributes are names of the operator's own file and of providers, never the
//! content of models or tools.

use crate::attributes::ModelNames;
use crate::draft::agent_name;
use crate::label;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::model::Usage;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

/// The bounds of durations in seconds, and of tokens, by the conventions.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The name of a counter of tokens, and its part of a usage.
type TokenCounter = (&'static str, fn(Usage) -> u32);

/// The counters of tokens.
const COUNTED: [TokenCounter; 5] = [
    ("gen_ai.client.inference.usage.input_tokens", |usage| usage.input_tokens),
    ("gen_ai.client.inference.usage.output_tokens", |usage| usage.output_tokens),
    ("gen_ai.client.inference.usage.cache_read.input_tokens", |usage| usage.cached_tokens),
    ("gen_ai.client.inference.usage.cache_write.input_tokens", |usage| usage.cache_written_tokens),
    ("gen_ai.client.inference.usage.reasoning.output_tokens", |usage| usage.reasoning_tokens),
];

/// The metrics of a process.
pub struct Instruments {
    /// The counters of [`COUNTED`], in its order.
    counted: Vec<Counter<u64>>,
    input: Histogram<u64>,
    output: Histogram<u64>,
    reply: Histogram<f64>,
    call: Histogram<f64>,
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
        let seconds =
            |name: &'static str| meter.f64_histogram(name).with_unit("s").with_boundaries(SECONDS.to_vec()).build();
        let tokens = |name: &'static str| {
            meter.u64_histogram(name).with_unit("{token}").with_boundaries(TOKENS.to_vec()).build()
        };
        let counted = COUNTED.iter().map(|(name, _)| meter.u64_counter(*name).with_unit("{token}").build());
        Self {
            counted: counted.collect(),
            input: tokens("gen_ai.client.inference.operation.input_tokens"),
            output: tokens("gen_ai.client.inference.operation.output_tokens"),
            reply: seconds("gen_ai.client.inference.duration"),
            call: seconds("gen_ai.execute_tool.duration"),
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
            Event::Observation { .. } => self.tool(&event.event),
            Event::InvocationEnded { ok, agent, .. } => {
                let agent = KeyValue::new("gen_ai.agent.name", agent_name(agent).to_owned());
                self.tasks.add(1, &[agent, KeyValue::new("ok", *ok)]);
            }
            Event::Limit { name, .. } => self.limits.add(1, &[KeyValue::new("longhaul.limit", name.clone())]),
            Event::RunEnded { status, .. } => self.runs.add(1, &[KeyValue::new("longhaul.status", status.clone())]),
            _ => {}
        }
    }

    fn chat(&self, event: &Event) {
        let Event::Thought { agent, usage, took_ms, .. } = event else { return };
        let Some(names) = ModelNames::of(event) else { return };
        let mut attributes = names.attributes();
        attributes.push(KeyValue::new("gen_ai.agent.name", agent_name(agent).to_owned()));
        self.input.record(usage.input_tokens.into(), &attributes);
        self.output.record(usage.output_tokens.into(), &attributes);
        if let Some(seconds) = seconds(*took_ms) {
            self.reply.record(seconds, &attributes);
        }
        if !usage.cost_unknown || usage.cost_microdollars > 0.0 {
            self.cost.add(usage.cost_microdollars / 1e6, &attributes);
        }
        // Providers count texts and images together.
        attributes.push(KeyValue::new("gen_ai.token.modality", "unknown"));
        for (counter, (_, tokens)) in self.counted.iter().zip(COUNTED) {
            counter.add(tokens(*usage).into(), &attributes);
        }
    }

    fn tool(&self, event: &Event) {
        let Event::Observation { tool, function, agent, ok, took_ms, .. } = event else { return };
        let name = label::of(tool);
        self.calls.add(1, &[KeyValue::new("gen_ai.tool.name", name.to_owned()), KeyValue::new("ok", *ok)]);
        let Some(seconds) = seconds(*took_ms) else { return };
        let mut attributes = vec![
            KeyValue::new("gen_ai.tool.name", format!("{name}.{}", label::of(function))),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("gen_ai.agent.name", agent_name(agent).to_owned()),
        ];
        if !ok {
            attributes.push(KeyValue::new("error.type", "tool_error"));
        }
        self.call.record(seconds, &attributes);
    }
}

fn seconds(took_ms: Option<u64>) -> Option<f64> {
    took_ms.and_then(|took| u32::try_from(took).ok()).map(|took| f64::from(took) / 1e3)
}
