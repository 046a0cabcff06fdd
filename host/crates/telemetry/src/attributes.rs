//! Attributes of spans and metrics that have no words of people, models or tools.

use crate::conventions::{finish_reason, provider};
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::model::{ReplyDetails, ReplyEndpoint, Usage};
use opentelemetry::{Array, KeyValue, StringValue, Value};

/// The model of a reply, as the conventions name it.
pub(crate) struct ModelNames<'a> {
    /// The name at the provider, or that of `longhaul.toml` if the provider's is unknown.
    pub(crate) id: &'a str,
    provider: &'a str,
    endpoint: Option<&'a ReplyEndpoint>,
}

impl<'a> ModelNames<'a> {
    /// The attributes of a thought. None: the event is another one.
    pub(crate) fn of(event: &'a Event) -> Option<Self> {
        let Event::Thought { model, provider_model, details, .. } = event else { return None };
        let endpoint = details.as_ref().and_then(|details| details.endpoint.as_ref());
        let (protocol, id) = provider_model.split_once('/').unwrap_or(("", provider_model));
        let server = endpoint.and_then(|endpoint| endpoint.server.as_deref());
        let id = if id.is_empty() { model } else { id };
        Some(Self { id, provider: provider(protocol, server), endpoint })
    }

    /// The attributes that spans and metrics have in common.
    pub(crate) fn attributes(&self) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", self.provider.to_owned()),
            KeyValue::new("gen_ai.request.model", self.id.to_owned()),
        ];
        let Some(endpoint) = self.endpoint else { return attributes };
        attributes.extend(endpoint.model.clone().map(|model| KeyValue::new("gen_ai.response.model", model)));
        if let Some(server) = &endpoint.server {
            attributes.push(KeyValue::new("server.address", server.clone()));
            attributes.extend(endpoint.port.map(|port| number("server.port", port.into())));
        }
        attributes
    }
}

/// The attributes of one reply.
pub(crate) fn of_reply(details: &ReplyDetails) -> Vec<KeyValue> {
    let mut attributes = vec![texts("gen_ai.response.finish_reasons", &[finish_reason(details.reason)])];
    attributes.extend(details.seed.map(|seed| number("gen_ai.request.seed", seed.into())));
    if details.json {
        attributes.push(KeyValue::new("gen_ai.output.type", "json"));
    }
    if let Some(endpoint) = &details.endpoint {
        attributes.extend(endpoint.id.clone().map(|id| KeyValue::new("gen_ai.response.id", id)));
        if endpoint.streamed {
            attributes.push(KeyValue::new("gen_ai.request.stream", true));
        }
    }
    attributes
}

/// The tokens of one reply, with their kinds.
pub(crate) fn of_usage(usage: Usage) -> Vec<KeyValue> {
    let mut attributes = vec![
        number("gen_ai.usage.input_tokens", usage.input_tokens.into()),
        number("gen_ai.usage.output_tokens", usage.output_tokens.into()),
        number("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens.into()),
        number("gen_ai.usage.cache_write.input_tokens", usage.cache_written_tokens.into()),
        number("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens.into()),
    ];
    attributes.extend(cost(usage));
    attributes
}

/// The resources of a run or an invocation. The conventions give sums over several replies no kinds of tokens.
pub(crate) fn of_work(used: WorkUsage) -> Vec<KeyValue> {
    let mut attributes = vec![
        number("gen_ai.usage.input_tokens", used.usage.input_tokens.into()),
        number("gen_ai.usage.output_tokens", used.usage.output_tokens.into()),
    ];
    attributes.extend(of_resources(used));
    attributes
}

/// The resources without the tokens, for a span that must not have these.
pub(crate) fn of_resources(used: WorkUsage) -> Vec<KeyValue> {
    let mut attributes = vec![
        number("longhaul.fuel", used.fuel),
        number("longhaul.memory_bytes_peak", used.memory_bytes_peak),
        number("longhaul.host_calls", used.host_calls),
        number("longhaul.model_calls", used.model_calls.into()),
    ];
    attributes.extend(cost(used.usage));
    attributes
}

/// An unknown cost is no attribute: 0 would mean that nothing was paid.
fn cost(usage: Usage) -> Option<KeyValue> {
    usage.cost().map(|cost| KeyValue::new("longhaul.cost_usd", cost / 1e6))
}

pub(crate) fn number(name: &'static str, value: u64) -> KeyValue {
    KeyValue::new(name, Value::I64(i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(crate) fn texts(name: &'static str, values: &[&'static str]) -> KeyValue {
    KeyValue::new(name, Value::Array(Array::String(values.iter().map(|text| StringValue::from(*text)).collect())))
}
