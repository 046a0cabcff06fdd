//! The last entries that a fork shares of the journals of the work that was under way at its point.
//!
//! Shared is what was answered at the point, and of the invocation that the point names what that says. A permission
//! that a person gave for a call which was not made then is not taken along: the journal is cut before it, and the
//! person is asked again. It is cut before a list of calls, too, of which one that acts is not shared: its question has
//! no place within the list. A commit is taken over as a whole or made anew. Refused are cuts that no fork can go on
//! from.

use crate::answers::{self, TOOL_CALL};
use crate::points::PointInRun;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::{EffectClass, ImportCall, JournalEntry};
use longhaul_core::store::{Key, Op, Store, Table};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Work, WorkKind};
use longhaul_records::invocation::APPROVAL;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// The part of the journals of one piece of work that a fork takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalCut {
    /// The key of the work.
    pub(crate) key: String,
    /// The invocation of the other run that is cut: that of the work, or a delegation of it.
    pub(crate) of: InvocationId,
    /// The last entry that is answered in the fork.
    pub(crate) through: u32,
    /// The time of the cut, in milliseconds since 1970-01-01 UTC.
    pub(crate) at_ms: u64,
    /// The place of the cut.
    place: CutPlace,
    /// The commit that the work had made at the point.
    pub(crate) made: Option<MadeCommit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CutPlace {
    /// The entries that were answered by this time, in milliseconds since 1970-01-01 UTC.
    Time(u64),
    /// The entry itself.
    Entry,
    /// The entry, with this answer.
    Answer(String),
}

/// The answer of a commit, as far as a fork depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct MadeCommit {
    /// The commit. None: there was nothing to commit.
    pub(crate) commit: Option<String>,
    /// True when the branch had moved, so that there was no commit.
    #[serde(default)]
    moved: bool,
    /// The reasons why a person refused the commit.
    #[serde(default)]
    refused: Vec<String>,
}

impl JournalCut {
    /// True when a person wrote the last answer.
    pub(crate) fn is_edited(&self) -> bool {
        matches!(self.place, CutPlace::Answer(_))
    }

    /// The last shared entry of each journal of the other run; [`u32::MAX`] for one that is shared with its end.
    pub(crate) fn shared(&self, store: &dyn Store) -> fault::Result<BTreeMap<InvocationId, u32>> {
        // With the names of the other run, so these rows are never stored.
        Ok(longhaul_journal::shared_through(&self.rows(store, &self.of.run())?))
    }

    /// The rows by which the journals of the fork begin.
    pub(crate) fn rows(&self, store: &dyn Store, fork: &RunId) -> fault::Result<Vec<Op>> {
        let into = in_fork(&self.of, fork);
        Ok(match &self.place {
            CutPlace::Time(at_ms) => longhaul_journal::share_at(store, &self.of, &into, *at_ms)?,
            CutPlace::Entry => longhaul_journal::share(store, &self.of, &into, self.through)?,
            CutPlace::Answer(answer) => {
                longhaul_journal::share_with_answer(store, &self.of, &into, self.through, answer)?
            }
        })
    }
}

/// The same invocation in a fork.
pub(crate) fn in_fork(of: &InvocationId, fork: &RunId) -> InvocationId {
    let run = of.run();
    let own = of.as_str().strip_prefix(run.as_str()).unwrap_or_default();
    InvocationId::from_text(format!("{fork}{own}"))
}

/// The cut of one piece of work; none if the fork does it from its beginning. `repeat_effects`: nobody is asked about
/// the effects that come after it.
pub(crate) fn cut(
    store: &dyn Store,
    run: &RunId,
    work: &Work,
    at: &PointInRun,
    answer: Option<&str>,
    repeat_effects: bool,
) -> fault::Result<Option<JournalCut>> {
    let own = InvocationId::of_action(run, &work.key());
    if longhaul_journal::began(store, &own)?.is_none_or(|began| began.at_ms > at.at_ms) {
        return Ok(None);
    }
    if let WorkKind::Commit { .. } = work.job {
        return commit(store, own, work, at.at_ms);
    }
    refuse_graph(store, &own)?;
    let named = at.invocation.as_ref().filter(|(named, _)| named.run() == *run && named.action() == own.action());
    let (of, through, place) = match named {
        Some((named, entry)) => (named.clone(), *entry, named_place(store, named, *entry, answer)?),
        None => {
            let through = longhaul_journal::answered_through(store, &own, at.at_ms)?;
            (own, through, CutPlace::Time(at.at_ms))
        }
    };
    let cut = JournalCut { key: work.key(), of, through, at_ms: at.at_ms, place, made: None };
    whole_lists(store, cut, repeat_effects).map(Some)
}

/// The cut of work that had ended at the point, and whose result later work reads.
pub(crate) fn whole(store: &dyn Store, run: &RunId, key: &str, at_ms: u64) -> fault::Result<Option<JournalCut>> {
    let of = InvocationId::of_action(run, key);
    if longhaul_journal::began(store, &of)?.is_none_or(|began| began.at_ms > at_ms) {
        return Ok(None);
    }
    let through = longhaul_journal::answered_through(store, &of, at_ms)?;
    Ok(Some(JournalCut { key: key.to_owned(), of, through, at_ms, place: CutPlace::Time(at_ms), made: None }))
}

fn named_place(store: &dyn Store, named: &InvocationId, entry: u32, answer: Option<&str>) -> fault::Result<CutPlace> {
    let Some(answer) = answer else { return Ok(CutPlace::Entry) };
    let found = longhaul_journal::entries(store, named, entry.saturating_sub(1), 1)?;
    match found.into_iter().next().filter(|(number, _)| *number == entry) {
        Some((_, found)) => {
            let checked = answers::checked(&found.asked, answer).map_err(|fault| fault.at("answer"))?;
            Ok(CutPlace::Answer(checked))
        }
        None => bail!(Fault::unknown(format!(
            "`{named}` has no entry {entry}; `longhaul journal {} --invocation {}` lists them",
            named.run(),
            named.action()
        ))),
    }
}

/// A commit that was answered is in the other run's history, and the fork begins behind it. Another one is made anew,
/// on the branch of the fork.
fn commit(store: &dyn Store, of: InvocationId, work: &Work, at_ms: u64) -> fault::Result<Option<JournalCut>> {
    let through = longhaul_journal::answered_through(store, &of, at_ms)?;
    let last = through.checked_sub(1).map(|before| longhaul_journal::entries(store, &of, before, 1)).transpose()?;
    let Some((_, last)) = last.into_iter().flatten().next() else { return Ok(None) };
    // A decision about protected files is no commit.
    let answered = last.answered.filter(|_| last.asked.name != APPROVAL);
    let Some(answered) = answered else { return Ok(None) };
    let made: MadeCommit = serde_json::from_str(&answered.answer)?;
    if made.moved || !made.refused.is_empty() {
        return Ok(None);
    }
    Ok(Some(JournalCut { key: work.key(), of, through, at_ms, place: CutPlace::Time(at_ms), made: Some(made) }))
}

/// The cut, moved before the first permission that a person gave and that no shared call used, and before a list of
/// which a call that acts is not shared.
fn whole_lists(store: &dyn Store, cut: JournalCut, repeat_effects: bool) -> fault::Result<JournalCut> {
    let all = entries(store, &cut.of, cut.through)?;
    let kept = kept(store, &cut.of, &all, repeat_effects)?;
    let through = kept.last().map_or(0, |(number, _)| *number);
    if through < cut.through && cut.is_edited() {
        bail!(Fault::conflict(format!(
            "entry {entry} of `{}` belongs to a call that comes after the edited answer; name an entry before {entry}",
            cut.of,
            entry = through.saturating_add(1)
        )));
    }
    if repeat_effects && all[kept.len()..].iter().any(|(_, entry)| acts(&entry.asked)) {
        bail!(Fault::conflict(format!(
            "the fork has to begin after entry {through} of `{}`, and effects before the point would be repeated \
             without a question; name that entry, or let the fork ask",
            cut.of
        )));
    }
    let place = if through == cut.through { cut.place } else { CutPlace::Entry };
    let at_ms = match place {
        CutPlace::Time(_) | CutPlace::Answer(_) => cut.at_ms,
        // Of calls that were made together, an earlier one may have been answered later.
        CutPlace::Entry => {
            let began_ms = longhaul_journal::began(store, &cut.of)?.map_or(0, |began| began.at_ms);
            let answered = kept.iter().filter_map(|(_, entry)| entry.answered.as_ref());
            answered.map(|answered| answered.at_ms).fold(began_ms, u64::max)
        }
    };
    let cut = JournalCut { through, at_ms, place, ..cut };
    refuse_open(store, &cut, repeat_effects)?;
    Ok(cut)
}

/// Those of the first entries of an invocation that a fork can begin with. Of a list that is cut, the earlier
/// permissions are not used any more either.
fn kept<'a>(
    store: &dyn Store,
    of: &InvocationId,
    shared: &'a [(u32, JournalEntry)],
    repeat_effects: bool,
) -> fault::Result<&'a [(u32, JournalEntry)]> {
    let mut kept = shared;
    while let Some(entry) = first_open(store, of, kept, repeat_effects)? {
        kept = &kept[..kept.partition_point(|(number, _)| *number < entry)];
    }
    Ok(kept)
}

/// The first entry that a fork cannot begin with, since something that belongs to it is not among these.
fn first_open(
    store: &dyn Store,
    of: &InvocationId,
    shared: &[(u32, JournalEntry)],
    repeat_effects: bool,
) -> fault::Result<Option<u32>> {
    let split = if repeat_effects { None } else { split_list(store, of, shared)? };
    Ok(unused_permission(shared).into_iter().chain(split).min())
}

/// The first entry of the list of calls in which these entries end, if a later call of that list acts. Calls of one
/// list are made at one place of the component, and so with the same fuel.
fn split_list(store: &dyn Store, of: &InvocationId, shared: &[(u32, JournalEntry)]) -> fault::Result<Option<u32>> {
    let Some((last, JournalEntry { asked, .. })) = shared.last() else { return Ok(None) };
    let is_in_list = |entry: &JournalEntry| {
        entry.asked.fuel_used == asked.fuel_used && [APPROVAL, TOOL_CALL].contains(&entry.asked.name.as_str())
    };
    let later = longhaul_journal::entries(store, of, *last, PAGE)?;
    let list: Vec<_> = shared.iter().rev().take_while(|(_, entry)| is_in_list(entry)).collect();
    // A refusal is the answer of its call before the next call is announced, so that one need not be known yet.
    let is_decision = |one: &ImportCall| one.name == APPROVAL && one.arguments == asked.arguments;
    let may_go_on = later.is_empty()
        && asked.class == EffectClass::ReadOnly
        && list.iter().any(|(_, entry)| is_decision(&entry.asked));
    let goes_on = later.iter().take_while(|(_, entry)| is_in_list(entry)).any(|(_, entry)| acts(&entry.asked));
    Ok(list.last().filter(|_| goes_on || may_go_on).map(|(number, _)| *number))
}

/// True for the call of a tool that acts.
fn acts(asked: &ImportCall) -> bool {
    asked.class == EffectClass::Acts && asked.name == TOOL_CALL
}

/// Refuses a cut with another journal, of an invocation at work, that has a permission for a call which was not made,
/// or that ends amid a list of calls of which one that acts had no answer yet.
fn refuse_open(store: &dyn Store, cut: &JournalCut, repeat_effects: bool) -> fault::Result<()> {
    for (of, through) in cut.shared(store)? {
        // An ended invocation makes no call any more.
        if of == cut.of || through == 0 || through == u32::MAX {
            continue;
        }
        let shared = entries(store, &of, through)?;
        if unused_permission(&shared).is_some() {
            bail!(Fault::conflict(format!(
                "at this point `{of}` was permitted a call that it had not made, and a permission is not taken along; \
                 name a point before or after it"
            )));
        }
        // An invocation that leads to the cut is in a call of another one, and so behind its lists.
        if !repeat_effects && !leads_to(&of, &cut.of) && split_list(store, &of, &shared)?.is_some() {
            bail!(Fault::conflict(format!(
                "at this point `{of}` was amid a list of calls, and nobody could be asked about the others; name a \
                 point before or after it"
            )));
        }
    }
    Ok(())
}

/// True for an invocation that another one works for.
fn leads_to(one: &InvocationId, below: &InvocationId) -> bool {
    below.as_str().strip_prefix(one.as_str()).is_some_and(|rest| rest.starts_with('#'))
}

/// The first decision about a call that does not follow among these entries.
fn unused_permission(entries: &[(u32, JournalEntry)]) -> Option<u32> {
    let mut open: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (number, JournalEntry { asked, .. }) in entries {
        // Both have the digest of the same call.
        match asked.name.as_str() {
            APPROVAL => open.entry(asked.arguments).or_default().push(*number),
            TOOL_CALL => {
                if let Some(decided) = open.get_mut(&asked.arguments) {
                    decided.pop();
                }
            }
            _ => {}
        }
    }
    open.into_values().flatten().min()
}

/// The first entries of a journal.
pub(crate) fn entries(store: &dyn Store, of: &InvocationId, through: u32) -> fault::Result<Vec<(u32, JournalEntry)>> {
    let mut found: Vec<(u32, JournalEntry)> = Vec::new();
    loop {
        let after = found.last().map_or(0, |(number, _)| *number);
        let page = longhaul_journal::entries(store, of, after, PAGE)?;
        let is_last = page.len() < PAGE || page.last().is_some_and(|(number, _)| *number >= through);
        found.extend(page.into_iter().filter(|(number, _)| *number <= through));
        if is_last {
            return Ok(found);
        }
    }
}

/// A graph of code steps belongs to the invocation that made it, and a fork has no copy of it.
fn refuse_graph(store: &dyn Store, of: &InvocationId) -> fault::Result<()> {
    let heads = longhaul_graph::record::heads();
    let own = Key::from_bytes([heads.as_bytes(), of.as_str().as_bytes()].concat());
    if store.scan(Table::Graphs, &own, None, 1)?.is_empty() {
        return Ok(());
    }
    bail!(Fault::conflict(format!(
        "`{of}` keeps a graph of code steps, which a fork in the middle of its work would not have; name a point before \
         it began, such as `feature:ID`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::journal::{Began, CallVerdict, Journal as _, NewCall};
    use longhaul_core::store::Batch;
    use longhaul_core::{Clock, Digest, Limits};
    use longhaul_journal::{Opened, Recorder};
    use longhaul_testkit::{HandClock, MemoryStore};
    use std::sync::Arc;

    fn entry(number: u32, name: &str, call: &str) -> (u32, JournalEntry) {
        let asked = ImportCall {
            name: name.to_owned(),
            summary: call.to_owned(),
            arguments: Digest::of(call.as_bytes()),
            class: EffectClass::Acts,
            prepared: None,
            fuel_used: 0,
            at_ms: u64::from(number),
            attempt: 1,
        };
        (number, JournalEntry { asked, answered: None, resolution: None })
    }

    #[test]
    fn a_permission_is_unused_until_its_own_call_follows() {
        let (permit, call) = (|number, of| entry(number, APPROVAL, of), |number, of| entry(number, TOOL_CALL, of));
        assert_eq!(unused_permission(&[]), None);
        assert_eq!(unused_permission(&[permit(1, "a"), call(2, "a")]), None);
        assert_eq!(unused_permission(&[permit(1, "a"), call(2, "b")]), Some(1));
        assert_eq!(unused_permission(&[call(1, "a"), permit(2, "a")]), Some(2));
        // A batch is decided about before any of it is made.
        let batch = [permit(1, "a"), permit(2, "b"), call(3, "a"), call(4, "b")];
        assert_eq!(unused_permission(&batch), None);
        assert_eq!(unused_permission(&batch[..3]), Some(2));
        // Of two equal calls one is made.
        assert_eq!(unused_permission(&[permit(1, "a"), permit(2, "a"), call(3, "a")]), Some(1));
        // A cut in the middle of a batch is before all of its permissions.
        let (store, of) = (MemoryStore::new(), InvocationId::from_text("r-1/f-a/1/generate"));
        let kept = |entries: &[(u32, JournalEntry)]| kept(&store, &of, entries, true).expect("entries").len();
        assert_eq!(kept(&batch[..3]), 0);
        assert_eq!(kept(&batch), 4);
        let after = [permit(1, "a"), call(2, "a"), permit(3, "b"), permit(4, "c"), call(5, "b")];
        assert_eq!(kept(&after), 2);
    }

    /// Writes a journal of these calls, each answered at the same time.
    async fn journal(store: &Arc<MemoryStore>, of: &InvocationId, calls: &[(&'static str, &str)]) {
        let began = Began {
            plugin: "p".into(),
            table: String::new(),
            component: Digest::of(b"p"),
            export: "agent.run".into(),
            input: Digest::of(b""),
            seed: [0; 32],
            fingerprint: "f".into(),
            context: None,
            told: None,
            at_ms: 5,
        };
        let (shared, clock) = (Arc::clone(store) as Arc<dyn Store>, Arc::new(HandClock::at(5)) as Arc<dyn Clock>);
        let opened = Recorder::open(shared, clock, of.clone(), began, &Limits::default()).expect("a journal");
        let Opened::Running(recorder) = opened else { panic!("it is new") };
        for (name, call) in calls {
            let (summary, arguments) = ((*call).to_owned(), Digest::of(call.as_bytes()));
            let call = NewCall { name, summary, arguments, class: EffectClass::Acts, fuel_used: 0 };
            let CallVerdict::Go(handle) = recorder.ask(call).await.expect("asked") else { panic!("it is new") };
            recorder.answer(handle, "null".to_owned()).await.expect("answered");
        }
    }

    fn cut_at(of: &InvocationId, through: u32) -> JournalCut {
        let (key, of) = ("f-a/1/generate".to_owned(), of.clone());
        JournalCut { key, of, through, at_ms: 5, place: CutPlace::Time(5), made: None }
    }

    #[tokio::test]
    async fn a_permission_of_a_sub_agent_is_found_though_its_caller_does_not_have_the_call_yet() {
        let own = InvocationId::from_text("r-1/f-a/1/generate");
        let child = own.child(2);
        let store = Arc::new(MemoryStore::new());
        journal(&store, &own, &[(TOOL_CALL, "a")]).await;
        journal(&store, &child, &[(APPROVAL, "b"), (TOOL_CALL, "b")]).await;
        let cut = whole_lists(&*store, cut_at(&own, 1), false).expect("it is used");
        assert_eq!(cut, cut_at(&own, 1));
        let shared = cut.shared(&*store).expect("journals");
        assert_eq!(shared.into_iter().collect::<Vec<_>>(), [(own.clone(), 1), (child, 2)]);

        let store = Arc::new(MemoryStore::new());
        journal(&store, &own, &[(TOOL_CALL, "a")]).await;
        journal(&store, &own.child(2), &[(APPROVAL, "b")]).await;
        let why = whole_lists(&*store, cut_at(&own, 1), false).expect_err("it is open").to_string();
        assert!(why.contains("`r-1/f-a/1/generate#2` was permitted"), "{why}");
        // So is one beside the sub-agent that is cut.
        journal(&store, &own.child(3), &[(TOOL_CALL, "c")]).await;
        let beside = JournalCut { place: CutPlace::Entry, ..cut_at(&own.child(3), 1) };
        assert!(whole_lists(&*store, beside, false).is_err());
    }

    #[tokio::test]
    async fn a_cut_before_a_permission_takes_no_later_call_along() {
        let own = InvocationId::from_text("r-1/f-a/1/generate");
        let store = Arc::new(MemoryStore::new());
        let batch = [(APPROVAL, "a"), (APPROVAL, "b"), (TOOL_CALL, "a"), (TOOL_CALL, "b")];
        journal(&store, &own, &batch).await;
        let cut = whole_lists(&*store, cut_at(&own, 3), false).expect("a cut");
        assert_eq!((cut.through, &cut.place), (0, &CutPlace::Entry), "the first permission is not used either");
        assert_eq!(cut.shared(&*store).expect("journals")[&own], 0);
        assert_eq!(whole_lists(&*store, cut_at(&own, 4), false).expect("a cut"), cut_at(&own, 4));
    }

    #[tokio::test]
    async fn a_list_is_shared_as_a_whole_where_a_call_of_it_acts() {
        let (store, of) = (MemoryStore::new(), InvocationId::from_text("r-1/f-a/1/generate"));
        let mut batch = Batch::new();
        // Two calls with the same fuel, and one later.
        for (number, fuel_used) in [(1, 10), (2, 20), (3, 20), (4, 30)] {
            let asked = ImportCall { fuel_used, ..entry(number, TOOL_CALL, "a").1.asked };
            let key = Key::of(of.as_str()).number(number.into()).and("asked").number(1);
            batch = batch.put(Table::Journal, key, serde_json::to_vec(&asked).unwrap());
        }
        store.commit(batch).await.unwrap();
        let all = longhaul_journal::entries(&store, &of, 0, 10).unwrap();
        let open: Vec<_> = (0..=4).map(|through| first_open(&store, &of, &all[..through], false).unwrap()).collect();
        assert_eq!(open, [None, None, Some(2), None, None]);
        assert_eq!(first_open(&store, &of, &all[..2], true).unwrap(), None, "it may be repeated");
    }

    #[tokio::test]
    async fn a_moved_cut_repeats_nothing_unasked_and_a_sub_agent_amid_a_list_is_refused() {
        let own = InvocationId::from_text("r-1/f-a/1/generate");
        let store = Arc::new(MemoryStore::new());
        journal(&store, &own, &[(APPROVAL, "a"), (APPROVAL, "b"), (TOOL_CALL, "a"), (TOOL_CALL, "b")]).await;
        let why = whole_lists(&*store, cut_at(&own, 3), true).expect_err("it was made").to_string();
        assert!(why.contains("has to begin after entry 0") && why.contains("let the fork ask"), "{why}");
        assert_eq!(whole_lists(&*store, cut_at(&own, 1), true).expect("none was made").through, 0);
        let edited = |through| JournalCut { place: CutPlace::Answer("1".to_owned()), ..cut_at(&own, through) };
        let why = whole_lists(&*store, edited(3), false).expect_err("another one follows").to_string();
        assert!(why.contains("entry 1 of `r-1/f-a/1/generate` belongs"), "{why}");
        assert_eq!(whole_lists(&*store, edited(4), false).expect("the last of its list"), edited(4));

        // The second call of the sub-agent is announced and not answered.
        let (store, child) = (Arc::new(MemoryStore::new()), own.child(2));
        journal(&store, &own, &[(TOOL_CALL, "a")]).await;
        journal(&store, &child, &[(TOOL_CALL, "b")]).await;
        let asked = entry(2, TOOL_CALL, "c").1.asked;
        let key = Key::of(child.as_str()).number(2).and("asked").number(1);
        let row = Batch::new().put(Table::Journal, key, serde_json::to_vec(&asked).unwrap());
        store.commit(row).await.unwrap();
        let why = whole_lists(&*store, cut_at(&own, 1), false).expect_err("it is amid a list").to_string();
        assert!(why.contains("`r-1/f-a/1/generate#2` was amid a list"), "{why}");
        assert!(whole_lists(&*store, cut_at(&own, 1), true).is_ok(), "it may be repeated");
    }

    #[test]
    fn an_invocation_has_its_name_in_the_fork() {
        let of = InvocationId::from_text("r-1/f-r-1/2/generate#7");
        assert_eq!(in_fork(&of, &RunId::from_text("r-22")).as_str(), "r-22/f-r-1/2/generate#7");
    }
}
