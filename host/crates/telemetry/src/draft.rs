//! One span under construction, and the small parts of spans: conversations, names of agents, statuses, times.

use crate::ids;
use longhaul_core::{InvocationId, RunId};
use opentelemetry::trace::{Link, SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::{Duration, SystemTime};

/// A span without its parent and its times.
pub(crate) struct SpanDraft {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) id: SpanId,
    /// The span of an earlier stretch, which this one goes on from.
    pub(crate) previous: Option<SpanId>,
    pub(crate) attributes: Vec<KeyValue>,
}

impl SpanDraft {
    /// The whole span, from `began_ms` to `ended_ms`.
    pub(crate) fn finish(
        self,
        run: &RunId,
        scope: &InstrumentationScope,
        parent: SpanId,
        status: Status,
        (began_ms, ended_ms): (u64, u64),
    ) -> SpanData {
        let mut links = SpanLinks::default();
        links.links.extend(self.previous.map(|id| Link::with_context(context(run, id))));
        SpanData {
            span_context: context(run, self.id),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: self.kind,
            name: self.name.into(),
            start_time: time(began_ms),
            end_time: time(ended_ms),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status,
            instrumentation_scope: scope.clone(),
        }
    }
}

fn context(run: &RunId, id: SpanId) -> SpanContext {
    SpanContext::new(ids::trace(run), id, TraceFlags::SAMPLED, false, TraceState::default())
}

/// The invocation that delegated to this one.
pub(crate) fn caller(invocation: &InvocationId) -> Option<InvocationId> {
    invocation.as_str().rsplit_once('#').map(|(caller, _)| InvocationId::from_text(caller))
}

/// An invocation has one conversation with its models, whose id stays when the run continues elsewhere.
pub(crate) fn conversation(invocation: &InvocationId) -> KeyValue {
    KeyValue::new("gen_ai.conversation.id", invocation.as_str().to_owned())
}

/// The name of an agent without the name of its kind of table.
pub(crate) fn agent_name(table: &str) -> &str {
    table.strip_prefix("agents.").unwrap_or(table)
}

/// Without text: a description is content.
pub(crate) fn status(ok: bool) -> Status {
    if ok { Status::Ok } else { Status::error("") }
}

pub(crate) fn time(at_ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms)
}
