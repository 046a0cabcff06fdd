//! Text for people: calls in a divergence, and the question of a parked run.

use longhaul_core::journal::{Began, EffectQuestion, ImportCall, NewCall};
use longhaul_core::{Digest, InvocationId, text};

/// Bytes of a summary that are kept. With the note of what was cut it stays under the 200 bytes that
/// [`ImportCall::summary`] promises.
const SUMMARY_BYTES_MAX: usize = 160;

/// The end of the journal, where a call is expected and none is recorded.
pub(crate) const END: &str = "its end";

/// A summary cut to what the journal keeps.
pub(crate) fn summary(text: &str) -> String {
    text::truncate(text, SUMMARY_BYTES_MAX)
}

/// A recorded call.
pub(crate) fn recorded(asked: &ImportCall) -> String {
    call(&asked.name, &asked.summary, &asked.arguments)
}

/// A call that is being made.
pub(crate) fn asked(new: &NewCall) -> String {
    call(new.name, &summary(&new.summary), &new.arguments)
}

/// The recorded call, for a divergence at entry 0.
pub(crate) fn began(began: &Began) -> String {
    let Began { plugin, component, export, input, .. } = began;
    format!("`{plugin}` {export} (component {}, input {})", component.short(), input.short())
}

/// The question about an effect with an unknown outcome.
pub(crate) fn question(
    invocation: &InvocationId,
    began: &Began,
    entry: u32,
    asked: &ImportCall,
    why: Option<&str>,
) -> EffectQuestion {
    let ImportCall { name, summary, at_ms, .. } = asked;
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let text = format!(
        "plugin `{}` was cut off in `{name}` {summary}, started {}, and it is unknown whether it happened{why}; \
         answer entry {entry} of {invocation} with one of: `happened` and its output, `did-not-happen` to do it now, \
         `skip` to go on without it",
        began.plugin,
        utc(*at_ms),
    );
    EffectQuestion { invocation: invocation.clone(), entry, text, approval: None, attempt: asked.attempt }
}

fn call(name: &str, summary: &str, arguments: &Digest) -> String {
    format!("`{name}` {summary} (arguments {})", arguments.short())
}

/// Seconds are enough for a person; a time out of range is shown as the number that it is.
fn utc(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).ok();
    match seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()) {
        Some(time) => time.to_string(),
        None => format!("{at_ms} ms after 1970-01-01"),
    }
}
