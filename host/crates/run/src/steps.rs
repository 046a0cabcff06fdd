//! Converts the steps of running components into events, each exactly once.
//!
//! A component that continues after a kill runs again from its start and reports its first steps again, under the same
//! numbers. So the last number of each invocation is stored with the events, and a step up to that number is known
//! already. A step that was not stored when the process died is reported again, and stored then.
//!
//! A fork reports the steps that it shares with another run as its own, so that its events tell all of its work. Their
//! usage is the other run's, and counts there alone.

use longhaul_core::event::Event;
use longhaul_core::fault::{self, Context};
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::{InvocationId, RunId};
use longhaul_records::bus::PendingStep;
use longhaul_records::record::{self, RunRecord};
use std::collections::BTreeMap;

/// The last stored number of each invocation that this actor asked about.
#[derive(Default)]
pub struct EventMarks {
    last: BTreeMap<InvocationId, Option<u32>>,
    /// True when the run is a fork. None: nobody asked yet.
    is_fork: Option<bool>,
}

/// New events in order, and the batch that stores them with the new marks.
pub struct NewEvents {
    /// The events.
    pub events: Vec<Event>,
    /// The rows of the marks.
    pub batch: Batch,
    /// The marks, for [`EventMarks::stored`].
    pub marks: BTreeMap<InvocationId, u32>,
}

impl EventMarks {
    /// The steps that are not stored yet.
    pub(super) fn fresh(
        &mut self,
        store: &dyn Store,
        run: &RunId,
        steps: Vec<PendingStep>,
        mut batch: Batch,
    ) -> fault::Result<NewEvents> {
        let mut events = Vec::new();
        let mut marks: BTreeMap<InvocationId, u32> = BTreeMap::new();
        for PendingStep { invocation, number, event } in steps {
            let last = match marks.get(&invocation) {
                Some(last) => Some(*last),
                None => self.last(store, run, &invocation)?,
            };
            if last.is_none_or(|last| number > last) {
                marks.insert(invocation, number);
                events.push(self.own(store, run, event)?);
            }
        }
        for (invocation, number) in &marks {
            batch = batch.put(Table::States, key(run, invocation), number.to_string());
        }
        Ok(NewEvents { events, batch, marks })
    }

    /// Call this after the new events are stored.
    pub(super) fn stored(&mut self, marks: BTreeMap<InvocationId, u32>) {
        self.last.extend(marks.into_iter().map(|(invocation, number)| (invocation, Some(number))));
    }

    /// The event without usage that is another run's: that of a reply which a fork found in its journal.
    fn own(&mut self, store: &dyn Store, run: &RunId, mut event: Event) -> fault::Result<Event> {
        if let Event::Thought { usage, took_ms: None, .. } = &mut event {
            let is_fork = match self.is_fork {
                Some(known) => known,
                None => record::forked(store, run)?.is_some(),
            };
            self.is_fork = Some(is_fork);
            if is_fork {
                *usage = Usage::default();
            }
        }
        Ok(event)
    }

    fn last(&mut self, store: &dyn Store, run: &RunId, invocation: &InvocationId) -> fault::Result<Option<u32>> {
        if let Some(known) = self.last.get(invocation) {
            return Ok(*known);
        }
        let bytes = store.get(Table::States, &key(run, invocation))?;
        let read =
            |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).parse().or_internal(|| "the mark of a step is damaged");
        let last = bytes.map(read).transpose()?;
        self.last.insert(invocation.clone(), last);
        Ok(last)
    }
}

fn key(run: &RunId, invocation: &InvocationId) -> Key {
    RunRecord::key(run).and("steps").and(invocation.as_str())
}
