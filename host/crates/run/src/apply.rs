//! Inputs to a run that has no actor: an edit, an answer, a pause, each as one step of the harness and one transaction.
//!
//! The work that follows from an input stays in the state. Nothing here starts it; the next resume of the run does.

use crate::step_rows::{put_step, step_attempts};
use longhaul_core::event::RunEvent;
use longhaul_core::fault;
use longhaul_core::store::Batch;
use longhaul_harness::{Action, Input, Reaction, step};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::project;
use longhaul_records::record::{self, StoredRun};

/// Applies one input to a run without an actor: an edit, an answer, a pause. The next resume finds the resulting work
/// in the state and does it.
///
/// # Errors
/// The refusal of the harness, or the store's error.
pub async fn apply(host: &PluginHost, stored: StoredRun, input: Input) -> fault::Result<()> {
    apply_with(host, stored, input, Batch::new()).await
}

/// As [`apply`], with rows that are stored in the same transaction as the step.
///
/// # Errors
/// As [`apply`]; then nothing of `also` was written.
pub async fn apply_with(host: &PluginHost, stored: StoredRun, input: Input, also: Batch) -> fault::Result<()> {
    let mut attempts = step_attempts();
    let first = next_number(host, &stored)?;
    loop {
        let mut batch = applied(host, &stored, first, input.clone())?;
        if batch.is_empty() {
            return Ok(());
        }
        batch.ops.extend(also.ops.iter().cloned());
        match host.store.commit(batch).await {
            Ok(()) => return Ok(()),
            Err(error) => attempts.again(error.into()).await?,
        }
    }
}

/// The number of the next event of a run. It is read once for all attempts at a step: an event that another process
/// adds meanwhile follows from another state, and has to be a conflict.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn next_number(host: &PluginHost, stored: &StoredRun) -> fault::Result<u64> {
    Ok(record::last_event(&*host.store, &stored.record.run)? + 1)
}

/// The rows that [`apply`] stores, for a caller that stores more with them; `first` is the number of their first event.
///
/// # Errors
/// As [`apply`].
pub(super) fn applied(host: &PluginHost, stored: &StoredRun, first: u64, input: Input) -> fault::Result<Batch> {
    let StoredRun { record, state: before } = stored;
    let mut state = before.clone();
    let Reaction::Acted(actions) = step(&mut state, host.clock.now_ms(), input)? else { return Ok(Batch::new()) };
    let events =
        actions.into_iter().filter_map(|action| if let Action::Emit(event) = action { Some(event) } else { None });
    let events = events.chain(project::changes_by(record, before, &state));
    let at_ms = host.clock.now_ms();
    let events: Vec<RunEvent> = (first..)
        .zip(events)
        .map(|(number, event)| RunEvent { run: record.run.clone(), number, at_ms, event })
        .collect();
    let mut batch = Batch::new();
    put_step(&*host.store, &mut batch, record, &state, &events)?;
    Ok(batch)
}
