//! The demands of OpenTelemetry's conventions for generative AI on spans and metrics, and a check of received ones.
//!
//! The tables are written from github.com/open-telemetry/semantic-conventions-genai, version 0.1.0: from `model/gen-ai`
//! as of commit e9de14ba, with the renames that the changelog and the pages of 0.1.0 have. They say names, types,
//! requirement levels and units, and hold all that may stand on a span of an operation, also what Longhaul does not
//! send. The check refuses a name of the conventions where they do not have it; names of Longhaul's own begin
//! with `longhaul.`.

use super::messages;
use super::receiver::attribute;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use serde_json::Value as Json;

/// The type of an attribute.
#[derive(Clone, Copy, Debug)]
enum Type {
    Text,
    Int,
    Double,
    Bool,
    Texts,
    /// Any value; on spans it may be JSON text.
    Any,
    /// JSON text of a form, which is checked.
    Json(fn(&Json) -> Result<(), String>),
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

const OPERATIONS: &[&str] = &[
    "chat",
    "create_agent",
    "create_memory",
    "create_memory_store",
    "delete_memory",
    "delete_memory_store",
    "embeddings",
    "execute_tool",
    "fetch_response",
    "generate_content",
    "invoke_agent",
    "invoke_workflow",
    "plan",
    "retrieval",
    "search_memory",
    "text_completion",
    "update_memory",
    "upsert_memory",
];

/// All attributes that the operations below may have.
const ATTRIBUTES: &[(&str, Type)] = &[
    ("error.type", Type::Text),
    ("gen_ai.agent.description", Type::Text),
    ("gen_ai.agent.name", Type::Text),
    ("gen_ai.conversation.compacted", Type::Bool),
    ("gen_ai.conversation.id", Type::Text),
    ("gen_ai.data_source.id", Type::Text),
    ("gen_ai.input.messages", Type::Json(messages::input)),
    ("gen_ai.operation.name", Type::OneOf(OPERATIONS)),
    ("gen_ai.output.messages", Type::Json(messages::output)),
    ("gen_ai.output.type", Type::OneOf(&["text", "json", "image", "speech"])),
    ("gen_ai.provider.name", Type::Text),
    ("gen_ai.request.choice.count", Type::Int),
    ("gen_ai.request.frequency_penalty", Type::Double),
    ("gen_ai.request.max_tokens", Type::Int),
    ("gen_ai.request.model", Type::Text),
    ("gen_ai.request.presence_penalty", Type::Double),
    ("gen_ai.request.reasoning.level", Type::Text),
    ("gen_ai.request.seed", Type::Int),
    ("gen_ai.request.stop_sequences", Type::Texts),
    ("gen_ai.request.stream", Type::Bool),
    ("gen_ai.request.temperature", Type::Double),
    ("gen_ai.request.top_k", Type::Int),
    ("gen_ai.request.top_p", Type::Double),
    ("gen_ai.response.finish_reasons", Type::Texts),
    ("gen_ai.response.id", Type::Text),
    ("gen_ai.response.model", Type::Text),
    ("gen_ai.response.time_to_first_chunk", Type::Double),
    ("gen_ai.system_instructions", Type::Json(messages::instructions)),
    ("gen_ai.token.modality", Type::OneOf(&["text", "image", "audio", "video", "document", "unknown"])),
    ("gen_ai.tool.call.arguments", Type::Any),
    ("gen_ai.tool.call.id", Type::Text),
    ("gen_ai.tool.call.result", Type::Any),
    ("gen_ai.tool.definitions", Type::Json(messages::definitions)),
    ("gen_ai.tool.description", Type::Text),
    ("gen_ai.tool.name", Type::Text),
    ("gen_ai.tool.type", Type::Text),
    ("gen_ai.usage.cache_read.input_tokens", Type::Int),
    ("gen_ai.usage.cache_write.input_tokens", Type::Int),
    ("gen_ai.usage.input_tokens", Type::Int),
    ("gen_ai.usage.output_tokens", Type::Int),
    ("gen_ai.usage.reasoning.output_tokens", Type::Int),
    ("server.address", Type::Text),
    ("server.port", Type::Int),
];

/// A span of some operations.
struct SpanType {
    operations: &'static [&'static str],
    kinds: &'static [SpanKind],
    /// The attribute after the operation in the name.
    named_by: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const SPANS: &[SpanType] = &[
    SpanType {
        operations: &["chat"],
        kinds: &[SpanKind::Client, SpanKind::Internal],
        named_by: "gen_ai.request.model",
        required: &["gen_ai.operation.name", "gen_ai.provider.name"],
        optional: &[
            "error.type",
            "gen_ai.conversation.compacted",
            "gen_ai.conversation.id",
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.output.type",
            "gen_ai.request.choice.count",
            "gen_ai.request.frequency_penalty",
            "gen_ai.request.max_tokens",
            "gen_ai.request.model",
            "gen_ai.request.presence_penalty",
            "gen_ai.request.reasoning.level",
            "gen_ai.request.seed",
            "gen_ai.request.stop_sequences",
            "gen_ai.request.stream",
            "gen_ai.request.temperature",
            "gen_ai.request.top_k",
            "gen_ai.request.top_p",
            "gen_ai.response.finish_reasons",
            "gen_ai.response.id",
            "gen_ai.response.model",
            "gen_ai.response.time_to_first_chunk",
            "gen_ai.system_instructions",
            "gen_ai.tool.definitions",
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.reasoning.output_tokens",
            "server.address",
            "server.port",
        ],
    },
    SpanType {
        operations: &["invoke_agent", "invoke_workflow"],
        kinds: &[SpanKind::Internal],
        named_by: "gen_ai.agent.name",
        required: &["gen_ai.operation.name"],
        optional: &[
            "error.type",
            "gen_ai.agent.description",
            "gen_ai.agent.name",
            "gen_ai.conversation.id",
            "gen_ai.data_source.id",
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.output.type",
            "gen_ai.request.choice.count",
            "gen_ai.request.frequency_penalty",
            "gen_ai.request.max_tokens",
            "gen_ai.request.model",
            "gen_ai.request.presence_penalty",
            "gen_ai.request.seed",
            "gen_ai.request.stop_sequences",
            "gen_ai.request.temperature",
            "gen_ai.request.top_p",
            "gen_ai.response.finish_reasons",
            "gen_ai.system_instructions",
            "gen_ai.tool.definitions",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
        ],
    },
    SpanType {
        operations: &["plan"],
        kinds: &[SpanKind::Internal],
        named_by: "gen_ai.agent.name",
        required: &["gen_ai.operation.name"],
        optional: &["error.type", "gen_ai.agent.name"],
    },
    SpanType {
        operations: &["execute_tool"],
        kinds: &[SpanKind::Internal],
        named_by: "gen_ai.tool.name",
        required: &["gen_ai.operation.name", "gen_ai.tool.name"],
        optional: &[
            "error.type",
            "gen_ai.agent.name",
            "gen_ai.conversation.id",
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.call.id",
            "gen_ai.tool.call.result",
            "gen_ai.tool.description",
            "gen_ai.tool.type",
        ],
    },
];

/// A metric: its name, whether it is a histogram or else a counter, its unit, and the attributes that it must have.
const METRICS: &[(&str, bool, &str, &[&str])] = &[
    ("gen_ai.client.inference.duration", true, "s", INFERENCE),
    ("gen_ai.client.inference.operation.input_tokens", true, "{token}", INFERENCE),
    ("gen_ai.client.inference.operation.output_tokens", true, "{token}", INFERENCE),
    ("gen_ai.client.inference.usage.cache_read.input_tokens", false, "{token}", COUNTED),
    ("gen_ai.client.inference.usage.cache_write.input_tokens", false, "{token}", COUNTED),
    ("gen_ai.client.inference.usage.input_tokens", false, "{token}", COUNTED),
    ("gen_ai.client.inference.usage.output_tokens", false, "{token}", COUNTED),
    ("gen_ai.client.inference.usage.reasoning.output_tokens", false, "{token}", COUNTED),
    ("gen_ai.execute_tool.duration", true, "s", &["gen_ai.tool.name"]),
];

const INFERENCE: &[&str] = &["gen_ai.operation.name", "gen_ai.provider.name"];
const COUNTED: &[&str] = &["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.token.modality"];

/// The faults of a span. None: it follows the conventions.
pub fn faults_of_span(span: &Span) -> Vec<String> {
    let operation = attribute(&span.attributes, "gen_ai.operation.name").unwrap_or_default();
    let Some(known) = SPANS.iter().find(|known| known.operations.contains(&operation.as_str())) else {
        return vec![format!("`{}` is of the unknown operation `{operation}`", span.name)];
    };
    let mut faults = faults_of(&span.attributes, |key| known.required.contains(&key) || known.optional.contains(&key));
    faults.extend(missing(&span.attributes, known.required));
    let named = attribute(&span.attributes, known.named_by).unwrap_or_default();
    if span.name != format!("{operation} {named}") {
        faults.push("the name is not the operation and what it is about".to_owned());
    }
    if !known.kinds.iter().any(|kind| *kind as i32 == span.kind) {
        faults.push(format!("the kind is {}", span.kind));
    }
    let failed = span.status.as_ref().is_some_and(|status| status.code == 2);
    if failed != attribute(&span.attributes, "error.type").is_some() {
        faults.push("`error.type` stands on a span if and only if it failed".to_owned());
    }
    faults.into_iter().map(|fault| format!("`{}`: {fault}", span.name)).collect()
}

/// The faults of a metric of the conventions. Metrics of Longhaul's own have no demands.
pub fn faults_of_metric(metric: &Metric) -> Vec<String> {
    if metric.name.starts_with("longhaul.") {
        return Vec::new();
    }
    let Some((_, is_histogram, unit, required)) = METRICS.iter().find(|(name, ..)| *name == metric.name) else {
        return vec![format!("`{}` is no metric of the conventions", metric.name)];
    };
    let points: Vec<&[KeyValue]> = match &metric.data {
        Some(Data::Sum(sum)) if !is_histogram && sum.is_monotonic => {
            sum.data_points.iter().map(|point| point.attributes.as_slice()).collect()
        }
        Some(Data::Histogram(histogram)) if *is_histogram => {
            histogram.data_points.iter().map(|point| point.attributes.as_slice()).collect()
        }
        other => return vec![format!("`{}` is another kind of metric: {other:?}", metric.name)],
    };
    let mut faults: Vec<String> = points
        .iter()
        .flat_map(|point| faults_of(point, |_| true).into_iter().chain(missing(point, required)))
        .collect();
    if metric.unit != *unit {
        faults.push(format!("the unit is `{}`", metric.unit));
    }
    faults.into_iter().map(|fault| format!("`{}`: {fault}", metric.name)).collect()
}

fn missing(attributes: &[KeyValue], required: &[&str]) -> Vec<String> {
    let is_missing = |key: &&&str| !attributes.iter().any(|pair| pair.key == **key);
    required.iter().filter(is_missing).map(|key| format!("`{key}` is missing")).collect()
}

fn faults_of(attributes: &[KeyValue], may_stand: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in attributes.iter().filter(|pair| !pair.key.starts_with("longhaul.")) {
        match ATTRIBUTES.iter().find(|(key, _)| *key == pair.key) {
            None => faults.push(format!("`{}` is no attribute of the conventions", pair.key)),
            Some(_) if !may_stand(&pair.key) => faults.push(format!("`{}` does not belong here", pair.key)),
            Some((key, expected)) => {
                let value = pair.value.as_ref().and_then(|value| value.value.as_ref());
                faults.extend(fault_of_value(*expected, value).map(|fault| format!("`{key}`: {fault}")));
            }
        }
    }
    let has = |key: &str| attributes.iter().any(|pair| pair.key == key);
    if has("server.address") != has("server.port") {
        faults.push("`server.address` and `server.port` stand together".to_owned());
    }
    faults
}

fn fault_of_value(expected: Type, value: Option<&Value>) -> Option<String> {
    let is_text =
        |value: &opentelemetry_proto::tonic::common::v1::AnyValue| matches!(&value.value, Some(Value::StringValue(_)));
    match (expected, value) {
        (Type::Text, Some(Value::StringValue(text))) if !text.is_empty() => None,
        (Type::Any, Some(_)) => None,
        (Type::Int, Some(Value::IntValue(number))) if *number >= 0 => None,
        (Type::Double, Some(Value::DoubleValue(_))) => None,
        (Type::Bool, Some(Value::BoolValue(_))) => None,
        (Type::Texts, Some(Value::ArrayValue(all))) if all.values.iter().all(is_text) => None,
        (Type::OneOf(values), Some(Value::StringValue(text))) if values.contains(&text.as_str()) => None,
        (Type::Json(check), Some(Value::StringValue(text))) => match serde_json::from_str(text) {
            Ok(json) => check(&json).err(),
            Err(error) => Some(format!("it is no JSON: {error}")),
        },
        (expected, value) => Some(format!("{value:?} is not of the type {expected:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::AnyValue;

    fn pair(key: &str, value: Value) -> KeyValue {
        KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
    }

    fn text(key: &str, value: &str) -> KeyValue {
        pair(key, Value::StringValue(value.into()))
    }

    fn call(more: Vec<KeyValue>) -> Span {
        let mut attributes =
            vec![text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", "files.read")];
        attributes.extend(more);
        let name = "execute_tool files.read".to_owned();
        Span { name, kind: SpanKind::Internal as i32, attributes, ..Span::default() }
    }

    #[test]
    fn a_span_that_leaves_the_conventions_is_found() {
        assert_eq!(faults_of_span(&call(vec![text("longhaul.own", "x")])), Vec::<String>::new());
        for (more, expected) in [
            (pair("gen_ai.tool.call.id", Value::IntValue(2)), "is not of the type Text"),
            (text("gen_ai.agent.id", "a"), "is no attribute of the conventions"),
            (text("gen_ai.provider.name", "openai"), "does not belong here"),
            (text("error.type", "x"), "if and only if it failed"),
        ] {
            let faults = faults_of_span(&call(vec![more]));
            assert!(faults.len() == 1 && faults[0].contains(expected), "{faults:?}");
        }
        let nameless = Span { attributes: vec![text("gen_ai.operation.name", "chat")], ..Span::default() };
        let faults = faults_of_span(&nameless).join("; ");
        assert!(faults.contains("`gen_ai.provider.name` is missing") && faults.contains("the kind is 0"), "{faults}");
        let messages = text("gen_ai.output.messages", "[{\"role\":\"assistant\"}]");
        let chat = Span { attributes: vec![text("gen_ai.operation.name", "chat"), messages], ..Span::default() };
        assert!(faults_of_span(&chat).join("; ").contains("has no `parts`"));
    }
}
