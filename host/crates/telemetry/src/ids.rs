//! Ids of traces and spans, derived from those of runs and invocations: a run that continues in another process is
//! still one trace, and a signal that is sent twice has the same id.

use longhaul_core::{Digest, InvocationId, RunId};
use opentelemetry::{SpanId, TraceId};

/// The trace of a run.
pub(crate) fn trace(run: &RunId) -> TraceId {
    TraceId::from_bytes(first(&["trace", run.as_str()]))
}

/// The span of the stretch of a run's work that began after the event of this number.
pub(crate) fn stretch(run: &RunId, after: u64) -> SpanId {
    match after {
        0 => SpanId::from_bytes(first(&["run", run.as_str()])),
        after => SpanId::from_bytes(first(&["run", run.as_str(), &after.to_string()])),
    }
}

/// The first span of an invocation.
pub(crate) fn of(invocation: &InvocationId) -> SpanId {
    SpanId::from_bytes(first(&["invocation", invocation.as_str()]))
}

/// The span of an invocation that goes on in a stretch.
pub(crate) fn going_on(invocation: &InvocationId, after: u64) -> SpanId {
    SpanId::from_bytes(first(&["invocation", invocation.as_str(), &after.to_string()]))
}

/// The span of a step of an invocation.
pub(crate) fn step(invocation: &InvocationId, step: u32) -> SpanId {
    SpanId::from_bytes(first(&["step", invocation.as_str(), &step.to_string()]))
}

/// True when a run is in the traced share. The result is the same in each process that works on it.
pub(crate) fn is_sampled(run: &RunId, ratio: f64) -> bool {
    let drawn = u32::from_be_bytes(first(&["sample", run.as_str()]));
    f64::from(drawn) < ratio * (f64::from(u32::MAX) + 1.0)
}

fn first<const N: usize>(parts: &[&str]) -> [u8; N] {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let mut bytes = [0; N];
    bytes.copy_from_slice(&Digest::of_parts(&parts).as_bytes()[..N]);
    bytes
}
