//! The rows of a run in the store, and the part of them that a fork has to share.
//!
//! The second is said here once more, from the documentation of `share.rs` of `longhaul-journal` and not by its code.

use super::guest::{Checked, text};
use longhaul_core::approval::ENTRY;
use longhaul_core::journal::{Began, Finished, JournalEntry};
use longhaul_core::store::{Key, Row, Store, Table};
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_records::record::{self, RunRecord};
use std::collections::BTreeMap;

/// All that a journal tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) began: Began,
    pub(super) entries: Vec<(u32, JournalEntry)>,
    pub(super) finished: Option<Finished>,
}

impl Told {
    /// The last entry such that it and all before it were answered by then.
    pub(super) fn answered(&self, at_ms: u64) -> u32 {
        let is_next = |(expected, (number, entry)): &(u32, &(u32, JournalEntry))| {
            number == expected && entry.answered.as_ref().is_some_and(|answered| answered.at_ms <= at_ms)
        };
        (1..).zip(&self.entries).take_while(is_next).map(|(number, _)| number).last().unwrap_or(0)
    }

    pub(super) fn entry(&self, number: u32) -> Option<&JournalEntry> {
        self.entries.iter().find(|(found, _)| *found == number).map(|(_, entry)| entry)
    }

    fn answered_ms(&self, number: u32) -> Option<u64> {
        Some(self.entry(number)?.answered.as_ref()?.at_ms)
    }

    /// True when these first entries have a decision about a call that is not among them.
    pub(super) fn permits(&self, through: u32) -> bool {
        let mut open: BTreeMap<Digest, i32> = BTreeMap::new();
        for (_, JournalEntry { asked, .. }) in self.entries.iter().filter(|(number, _)| *number <= through) {
            match asked.name.as_str() {
                ENTRY => *open.entry(asked.arguments).or_default() += 1,
                "tools.call" => *open.entry(asked.arguments).or_default() -= 1,
                _ => {}
            }
        }
        open.values().any(|more| *more > 0)
    }
}

/// The journals of a run.
pub(super) type Journals = BTreeMap<InvocationId, Told>;

pub(super) fn journals(store: &dyn Store, run: &RunId) -> Checked<Journals> {
    let mut found = Journals::new();
    for (key, _) in rows(store, Table::Journal, run)? {
        let end = key.windows(2).position(|pair| pair == [0, 0]).ok_or("a key of a journal without an end")?;
        let invocation = InvocationId::from_text(String::from_utf8_lossy(&key[..end]));
        if found.contains_key(&invocation) {
            continue;
        }
        let began = longhaul_journal::began(store, &invocation).map_err(text)?;
        let began = began.ok_or_else(|| format!("`{invocation}` has rows and no beginning"))?;
        let entries = longhaul_journal::entries(store, &invocation, 0, usize::MAX).map_err(text)?;
        let finished = longhaul_journal::finished(store, &invocation).map_err(text)?;
        found.insert(invocation, Told { began, entries, finished });
    }
    Ok(found)
}

/// The rows of a run in a table.
pub(super) fn rows(store: &dyn Store, table: Table, run: &RunId) -> Checked<Vec<Row>> {
    let prefix = match table {
        Table::Journal => Key::from_bytes(format!("{run}/").into_bytes()),
        _ => RunRecord::key(run),
    };
    store.scan(table, &prefix, None, usize::MAX).map_err(text)
}

/// All rows of a run, without those about its forks.
pub(super) fn own_rows(store: &dyn Store, run: &RunId) -> Checked<Vec<Row>> {
    let mut states = rows(store, Table::States, run)?;
    states.retain(|(key, _)| !record::is_of_forks(run, key));
    Ok([rows(store, Table::Runs, run)?, states, rows(store, Table::Journal, run)?].concat())
}

/// The rows of a run's journals as they would be without other runs.
pub(super) fn whole_rows(store: &dyn Store, run: &RunId) -> Checked<Vec<Row>> {
    longhaul_journal::whole(store, rows(store, Table::Journal, run)?).map_err(text)
}

/// The place of a cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum CutShape {
    Time(u64),
    Entry(u32),
    /// The entry has another answer.
    Answer(u32),
}

/// The part of one journal that a fork shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedPart {
    /// The last entry that is the same.
    pub(super) through: u32,
    /// True when it has ended in the fork, too.
    pub(super) has_ended: bool,
    /// The entry after that, if a person wrote its answer.
    pub(super) edited: Option<u32>,
}

/// The shared parts of the journals of one piece of work that is cut in `of`.
pub(super) fn shared(all: &Journals, of: &InvocationId, shape: CutShape) -> BTreeMap<InvocationId, SharedPart> {
    let mut found = BTreeMap::new();
    let Some(cut) = all.get(of) else { return found };
    let at_ms = match shape {
        CutShape::Time(at_ms) => at_ms,
        CutShape::Entry(through) => {
            (1..=through).filter_map(|number| cut.answered_ms(number)).fold(cut.began.at_ms, u64::max)
        }
        CutShape::Answer(entry) => cut.answered_ms(entry).unwrap_or_default(),
    };
    // By their names, callers come before what they called.
    for (one, told) in all.iter().filter(|(one, _)| one.action() == of.action()) {
        if let Some((caller, call)) = caller_of(one) {
            let (by_then, before) = (told.began.at_ms <= at_ms, told.began.at_ms < at_ms);
            let comes = match (shape, call_towards(&caller, of)) {
                (CutShape::Entry(through), _) if caller == *of => call <= through || before,
                (CutShape::Answer(edited), _) if caller == *of => call < edited || (call > edited && before),
                (_, Some(open)) => call == open || if call < open { by_then } else { before },
                _ => by_then,
            };
            if !comes || !found.contains_key(&caller) {
                continue;
            }
        }
        found.insert(one.clone(), part(one, told, of, shape, at_ms));
    }
    found
}

fn part(one: &InvocationId, told: &Told, of: &InvocationId, shape: CutShape, at_ms: u64) -> SharedPart {
    let open = |through| SharedPart { through, has_ended: false, edited: None };
    match shape {
        CutShape::Entry(through) if one == of => return open(through),
        CutShape::Answer(entry) if one == of => return SharedPart { edited: Some(entry), ..open(entry - 1) },
        _ => {}
    }
    if let Some(call) = call_towards(one, of) {
        return open(told.answered(at_ms).min(call - 1));
    }
    let has_ended = told.finished.as_ref().is_some_and(|finished| finished.at_ms <= at_ms);
    SharedPart { through: told.answered(if has_ended { u64::MAX } else { at_ms }), has_ended, edited: None }
}

/// The invocation that made a delegation, and its call.
fn caller_of(one: &InvocationId) -> Option<(InvocationId, u32)> {
    let (caller, call) = one.as_str().rsplit_once('#')?;
    Some((InvocationId::from_text(caller), call.parse().ok()?))
}

/// The call of `one` that leads to an invocation below it.
fn call_towards(one: &InvocationId, below: &InvocationId) -> Option<u32> {
    below.as_str().strip_prefix(one.as_str())?.strip_prefix('#')?.split('#').next()?.parse().ok()
}
