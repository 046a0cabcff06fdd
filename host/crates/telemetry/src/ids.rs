//! Ids of traces and spans, derived from those of runs and invocations: a run that continues in another process is
//! still one trace, and a signal that is sent twice has the same id.

use longhaul_core::{Digest, InvocationId, RunId};
use opentelemetry::{SpanId, TraceId};

/// The trace of a run.
pub(crate) fn trace(run: &RunId) -> TraceId {
    TraceId::from_bytes(first(&["trace", run.as_str()]))
}

/// The span of a run.
pub(crate) fn root(run: &RunId) -> SpanId {
    SpanId::from_bytes(first(&["run", run.as_str()]))
}

/// The span of an invocation.
pub(crate) fn of(invocation: &InvocationId) -> SpanId {
    SpanId::from_bytes(first(&["invocation", invocation.as_str()]))
}

/// The span of a step of an invocation.
pub(crate) fn step(invocation: &InvocationId, step: u32) -> SpanId {
    SpanId::from_bytes(first(&["step", invocation.as_str(), &step.to_string()]))
}

/// Whether a run is in the traced share. The result is the same in each process that works on it.
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
