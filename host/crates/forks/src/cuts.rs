//! How far a fork shares the journals of the work that was under way at its point.
//!
//! Shared is what was answered at the point, and of the invocation that the point names what that says. A permission
//! that a person gave for a call which was not made then is not taken along: the journal is cut before it, and the
//! person is asked again. A commit is taken over as a whole or made anew. Refused are cuts that no fork can go on from.

use crate::answers::{self, TOOL_CALL};
use crate::points::PointInRun;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::JournalEntry;
use longhaul_core::store::{Key, Op, Store, Table};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Work, WorkKind};
use longhaul_records::invocation::APPROVAL;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// What a fork takes of the journals of one piece of work.
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
    /// What was answered by this time, in milliseconds since 1970-01-01 UTC.
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

/// The cut of one piece of work; none if the fork does it from its beginning.
pub(crate) fn cut(
    store: &dyn Store,
    run: &RunId,
    work: &Work,
    at: &PointInRun,
    answer: Option<&str>,
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
    without_permissions(store, cut).map(Some)
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

/// The cut, moved before the first permission that a person gave and that no shared call used.
fn without_permissions(store: &dyn Store, cut: JournalCut) -> fault::Result<JournalCut> {
    let all = entries(store, &cut.of, cut.through)?;
    let through = before_permissions(&all, cut.through);
    let cut = match through < cut.through {
        false => cut,
        true if cut.is_edited() => bail!(Fault::conflict(format!(
            "entry {entry} of `{}` permits a call that comes after the edited answer; name an entry before {entry}",
            cut.of,
            entry = through.saturating_add(1)
        ))),
        true => {
            let answered =
                all.iter().filter(|(number, _)| *number <= through).filter_map(|(_, one)| one.answered.as_ref());
            let began_ms = longhaul_journal::began(store, &cut.of)?.map_or(0, |began| began.at_ms);
            let at_ms = answered.map(|answered| answered.at_ms).fold(began_ms, u64::max);
            JournalCut { through, at_ms, place: CutPlace::Entry, ..cut }
        }
    };
    refuse_permissions(store, &cut)?;
    Ok(cut)
}

/// The last entry up to which each permission was used. Of a batch that is cut, the earlier permissions are not used
/// any more either.
fn before_permissions(entries: &[(u32, JournalEntry)], through: u32) -> u32 {
    let (mut entries, mut through) = (entries, through);
    while let Some(entry) = unused_permission(entries) {
        through = entry.saturating_sub(1);
        entries = &entries[..entries.partition_point(|(number, _)| *number <= through)];
    }
    through
}

/// Refuses a cut with another journal, of a sub-agent at work, that has a permission for a call which was not made.
fn refuse_permissions(store: &dyn Store, cut: &JournalCut) -> fault::Result<()> {
    for (of, through) in cut.shared(store)? {
        // What has ended makes no call any more.
        if of == cut.of || through == 0 || through == u32::MAX {
            continue;
        }
        if unused_permission(&entries(store, &of, through)?).is_some() {
            bail!(Fault::conflict(format!(
                "at this point `{of}` was permitted a call that it had not made, and a permission is not taken along; \
                 name a point before or after it"
            )));
        }
    }
    Ok(())
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
    use longhaul_core::journal::{Began, CallVerdict, EffectClass, ImportCall, Journal as _, NewCall};
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
        assert_eq!(before_permissions(&batch[..3], 3), 0);
        assert_eq!(before_permissions(&batch, 4), 4);
        let after = [permit(1, "a"), call(2, "a"), permit(3, "b"), permit(4, "c"), call(5, "b")];
        assert_eq!(before_permissions(&after, 5), 2);
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
            let call = NewCall { name: *name, summary, arguments, class: EffectClass::Acts, fuel_used: 0 };
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
        let cut = without_permissions(&*store, cut_at(&own, 1)).expect("it is used");
        assert_eq!(cut, cut_at(&own, 1));
        let shared = cut.shared(&*store).expect("journals");
        assert_eq!(shared.into_iter().collect::<Vec<_>>(), [(own.clone(), 1), (child, 2)]);

        let store = Arc::new(MemoryStore::new());
        journal(&store, &own, &[(TOOL_CALL, "a")]).await;
        journal(&store, &own.child(2), &[(APPROVAL, "b")]).await;
        let why = without_permissions(&*store, cut_at(&own, 1)).expect_err("it is open").to_string();
        assert!(why.contains("`r-1/f-a/1/generate#2` was permitted"), "{why}");
        // So is one beside the sub-agent that is cut.
        journal(&store, &own.child(3), &[(TOOL_CALL, "c")]).await;
        let beside = JournalCut { place: CutPlace::Entry, ..cut_at(&own.child(3), 1) };
        assert!(without_permissions(&*store, beside).is_err());
    }

    #[tokio::test]
    async fn a_cut_before_a_permission_takes_no_later_call_along() {
        let own = InvocationId::from_text("r-1/f-a/1/generate");
        let store = Arc::new(MemoryStore::new());
        let batch = [(APPROVAL, "a"), (APPROVAL, "b"), (TOOL_CALL, "a"), (TOOL_CALL, "b")];
        journal(&store, &own, &batch).await;
        let cut = without_permissions(&*store, cut_at(&own, 3)).expect("a cut");
        assert_eq!((cut.through, &cut.place), (0, &CutPlace::Entry), "the first permission is not used either");
        assert_eq!(cut.shared(&*store).expect("journals")[&own], 0);
        assert_eq!(without_permissions(&*store, cut_at(&own, 4)).expect("a cut"), cut_at(&own, 4));
    }

    #[test]
    fn an_invocation_has_its_name_in_the_fork() {
        let of = InvocationId::from_text("r-1/f-r-1/2/generate#7");
        assert_eq!(in_fork(&of, &RunId::from_text("r-22")).as_str(), "r-22/f-r-1/2/generate#7");
    }
}
