//! Points in the past of a run, found in its events, states and journals.
//!
//! A run changes its state by whole steps, and each step stores several events. So a point is never within a step: an
//! event, a commit or a time there means the end of the step. A point at an entry of a journal is the exception where
//! the invocation ended in the same millisecond: it is before the step that ended it, so that the work is in flight.
//! Nothing is guessed: a point that the run does not have, or that lies before its kept history, is refused.

use longhaul_api::points::Point;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::Store;
use longhaul_core::text::printable;
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::RunState;
use longhaul_records::record::{self, RunRecord};

/// Events that are read at once.
const PAGE: usize = 1_000;

/// Entries that are read at once, with their answers.
const ENTRIES_PAGE: usize = 100;

/// Longest foreign text in a message, in bytes.
const WORD_BYTES_MAX: usize = 100;

/// Features that a refusal names.
const NAMED_MAX: usize = 20;

/// A point that was found in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct PointInRun {
    /// The number of the last event at the point.
    pub event: u64,
    /// The time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The last entry of the invocation that the point is in. None: the point names no entry.
    pub invocation: Option<(InvocationId, u32)>,
    /// The state of the run.
    pub state: RunState,
}

/// Finds a point in a run.
///
/// # Errors
/// In one line: there is no such run, it has no such point, the text means several, or the kept history begins later.
pub fn resolve(store: &dyn Store, run: &RunId, point: &Point) -> fault::Result<PointInRun> {
    let record = record::record(store, run)?.or_unknown(|| format!("there is no run {run}"))?;
    let past = Past { store, run };
    match point {
        Point::Entry { invocation, entry } => past.entry(invocation.as_deref(), *entry),
        Point::Step(number) => past.at(past.agent_step(*number)?),
        Point::Feature(id) => past.at(past.first_session(id)?),
        Point::Commit(digits) => past.at(past.commit(&record, digits)?),
        Point::Time(at_ms) => past.time(*at_ms),
        Point::Event(number) => past.at(past.event(*number)?),
    }
}

/// The newest commit of the branch of a run at an event: the one that the run began from until it made one.
///
/// # Errors
/// The events cannot be read.
pub fn newest_commit(store: &dyn Store, record: &RunRecord, event: u64) -> fault::Result<String> {
    let mut until = event;
    while until > 0 {
        let after = until.saturating_sub(PAGE as u64);
        let page = record::events_after(store, &record.run, after, PAGE)?;
        let newest_first = page.into_iter().rev().filter(|event| event.number <= until);
        if let Some(commit) = newest_first.map(|event| event.event).find_map(head_of_branch) {
            return Ok(commit);
        }
        until = after;
    }
    Ok(record.base.clone())
}

/// The number of the last entry of an invocation that was answered by a time, as was each one before it.
///
/// # Errors
/// The journal cannot be read.
pub fn answered_until(store: &dyn Store, invocation: &InvocationId, at_ms: u64) -> fault::Result<u32> {
    let mut last = 0;
    loop {
        let page = longhaul_journal::entries(store, invocation, last, ENTRIES_PAGE)?;
        let is_last_page = page.len() < ENTRIES_PAGE;
        for (number, entry) in page {
            let is_next = number.checked_sub(1) == Some(last);
            if !is_next || entry.answered.is_none_or(|answered| answered.at_ms > at_ms) {
                return Ok(last);
            }
            last = number;
        }
        if is_last_page {
            return Ok(last);
        }
    }
}

/// A run whose past is read.
struct Past<'a> {
    store: &'a dyn Store,
    run: &'a RunId,
}

impl Past<'_> {
    /// The point at the end of the step that stored an event.
    fn at(&self, event: u64) -> fault::Result<PointInRun> {
        let event = *record::step_of(self.store, self.run, event)?.end();
        let (_, state) = self.state(event)?;
        Ok(PointInRun { event, at_ms: self.time_of(event)?, invocation: None, state })
    }

    fn event(&self, number: u64) -> fault::Result<u64> {
        let last = record::last_event(self.store, self.run)?;
        if number > last {
            bail!(Fault::unknown(format!("run {} has {last} events, and no event {number}", self.run)));
        }
        Ok(number)
    }

    fn time(&self, at_ms: u64) -> fault::Result<PointInRun> {
        let event = record::last_event_until(self.store, self.run, at_ms)?;
        if event == 0 {
            let (run, begun) = (self.run, Point::Time(self.time_of(1)?));
            bail!(Fault::unknown(format!("run {run} began later, at {begun}; name that time or a later one")));
        }
        Ok(PointInRun { at_ms, ..self.at(event)? })
    }

    /// The event of a step of an agent, by its number over all agents.
    fn agent_step(&self, number: u64) -> fault::Result<u64> {
        let mut seen = 0;
        let found = self.find(|event| {
            let is_step =
                matches!(event.event, Event::Thought { .. } | Event::Action { .. } | Event::Observation { .. });
            seen += u64::from(is_step);
            (is_step && seen == number).then_some(event.number)
        })?;
        found.or_unknown(|| format!("the agents of run {} made {seen} steps, and no step {number}", self.run))
    }

    /// The event by which the first session of a feature began.
    fn first_session(&self, id: &str) -> fault::Result<u64> {
        let found = self.find(|event| match &event.event {
            Event::SessionStarting { feature, .. } if feature == id => Some(event.number),
            _ => None,
        })?;
        if let Some(number) = found {
            return Ok(number);
        }
        let (run, shown) = (self.run, printable(id, WORD_BYTES_MAX));
        let stored = record::load(self.store, run)?.or_unknown(|| format!("there is no run {run}"))?;
        if stored.state.feature(id).is_some() {
            bail!(Fault::unknown(format!("no work on feature `{shown}` of run {run} has begun")));
        }
        let ids = stored.state.features.iter().map(|feature| printable(&feature.spec.id, WORD_BYTES_MAX));
        let ids: Vec<String> = ids.take(NAMED_MAX).collect();
        let has = if ids.is_empty() { "it has none".to_owned() } else { format!("it has {}", ids.join(", ")) };
        bail!(Fault::unknown(format!("run {run} has no feature `{shown}`; {has}")))
    }

    /// The event that tells of a commit. The one that the run began from is at its first event.
    fn commit(&self, record: &RunRecord, digits: &str) -> fault::Result<u64> {
        let mut made: Vec<(String, u64)> = Vec::new();
        self.find(|event| {
            if let Event::Committed { commit, .. } = event.event
                && commit.starts_with(digits)
                && made.iter().all(|(known, _)| *known != commit)
            {
                made.push((commit, event.number));
            }
            (made.len() > 1).then_some(())
        })?;
        let run = self.run;
        match &made[..] {
            [(_, number)] => Ok(*number),
            [] if record.base.starts_with(digits) => Ok(1),
            [] => bail!(Fault::unknown(format!(
                "run {run} made no commit `{digits}`; `longhaul log --run {run}` lists those that it made"
            ))),
            _ => bail!(Fault::conflict(format!("several commits of run {run} start with `{digits}`; add digits"))),
        }
    }

    fn entry(&self, named: Option<&str>, entry: u32) -> fault::Result<PointInRun> {
        let invocation = match named {
            Some(named) => self.invocation(named)?,
            None => self.only_invocation()?,
        };
        let found = longhaul_journal::entries(self.store, &invocation, entry.saturating_sub(1), 1)?;
        let found = found.into_iter().find(|(number, _)| *number == entry);
        let answered = found.and_then(|(_, entry)| entry.answered).or_unknown(|| {
            let (run, key) = (self.run, invocation_key(&invocation));
            format!(
                "entry {entry} of `{invocation}` was not answered; `longhaul journal {run} --invocation {key}` lists \
                 its entries"
            )
        })?;
        let (event, state) = self.in_flight(&invocation, answered.at_ms)?;
        Ok(PointInRun { event, at_ms: answered.at_ms, invocation: Some((invocation, entry)), state })
    }

    /// The last event until a time, and the state there. The steps of that millisecond that came after the work of an
    /// invocation are left out.
    fn in_flight(&self, invocation: &InvocationId, at_ms: u64) -> fault::Result<(u64, RunState)> {
        let mut event = record::last_event_until(self.store, self.run, at_ms)?;
        loop {
            let (number, state) = self.state(event)?;
            let mut lanes = state.lanes.iter().chain(&state.set_aside);
            let is_there = lanes.any(|lane| lane.work.key() == invocation.action());
            if is_there || self.time_of(number)? != at_ms {
                return Ok((event, state));
            }
            match record::step_of(self.store, self.run, number)?.start().checked_sub(1) {
                Some(before) => event = before,
                None => return Ok((event, state)),
            }
        }
    }

    /// The invocation of a key, with or without the id of the run.
    fn invocation(&self, named: &str) -> fault::Result<InvocationId> {
        let run = self.run;
        let is_whole = named.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let invocation = if is_whole { InvocationId::from_text(named) } else { InvocationId::of_action(run, named) };
        if longhaul_journal::began(self.store, &invocation)?.is_none() {
            let shown = printable(named, WORD_BYTES_MAX);
            bail!(Fault::unknown(format!(
                "run {run} has no invocation `{shown}` with a journal; `longhaul journal {run}` lists them"
            )));
        }
        Ok(invocation)
    }

    fn only_invocation(&self) -> fault::Result<InvocationId> {
        let mut found: Vec<InvocationId> = Vec::new();
        self.find(|event| {
            if let Event::InvocationStarted { invocation, .. } = event.event
                && !found.contains(&invocation)
            {
                found.push(invocation);
            }
            (found.len() > 1).then_some(())
        })?;
        let run = self.run;
        match found.pop() {
            Some(only) if found.is_empty() => Ok(only),
            Some(_) => bail!(Fault::conflict(format!(
                "run {run} has several invocations; write entry:KEY:N with the KEY of one that `longhaul journal \
                 {run}` lists"
            ))),
            None => bail!(Fault::unknown(format!("run {run} has no invocation, and so no entry of a journal"))),
        }
    }

    /// The first thing that is made of an event of the run.
    fn find<T>(&self, mut made_of: impl FnMut(RunEvent) -> Option<T>) -> fault::Result<Option<T>> {
        let mut after = 0;
        loop {
            let page = record::events_after(self.store, self.run, after, PAGE)?;
            // An import may bring events with other numbers than their keys have. Each page has to lead on.
            let Some(last) = page.last().map(|event| event.number).filter(|last| *last > after) else {
                return Ok(None);
            };
            if let Some(found) = page.into_iter().find_map(&mut made_of) {
                return Ok(Some(found));
            }
            after = last;
        }
    }

    fn time_of(&self, event: u64) -> fault::Result<u64> {
        let time = record::event_ms(self.store, self.run, event)?;
        time.or_internal(|| format!("event {event} of run {} is missing", self.run))
    }

    /// The newest state at or before an event, with the last event of the step that stored it.
    fn state(&self, event: u64) -> fault::Result<(u64, RunState)> {
        if let Some(found) = record::state_at(self.store, self.run, event)? {
            return Ok(found);
        }
        let run = self.run;
        bail!(Fault::unknown(match record::history_begins(self.store, run)? {
            Some(begins) => format!(
                "the kept history of run {run} begins at event {begins}, and the point is at event {event}; name a \
                 later one"
            ),
            None => format!(
                "run {run} has no kept history, since an earlier longhaul worked on it; its history begins when it is \
                 resumed"
            ),
        }))
    }
}

/// The commit at which an event left the branch.
fn head_of_branch(event: Event) -> Option<String> {
    match event {
        Event::Committed { commit: head, .. } | Event::Reverted { to: head, .. } => Some(head),
        _ => None,
    }
}

/// An invocation as a person types it: without the id of its run.
fn invocation_key(invocation: &InvocationId) -> &str {
    invocation.as_str().split_once('/').map_or(invocation.as_str(), |(_, key)| key)
}

#[cfg(test)]
mod tests;
