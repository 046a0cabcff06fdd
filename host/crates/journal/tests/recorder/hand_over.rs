//! Forks whose parent is deleted.

use crate::fakes::{Host, asked, call, invocation, said};
use longhaul_core::journal::EffectClass::ReadOnly;
use longhaul_core::journal::{Journal as _, JournalError};
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use longhaul_core::{InvocationId, RunId};
use longhaul_journal::{Recorder, entries, hand_over, holders, share};

const CALLS: u32 = 4;

fn fork(run: &str) -> InvocationId {
    InvocationId::from_text(format!("{run}/f1/1/generate"))
}

fn runs(names: &[&str]) -> Vec<RunId> {
    names.iter().map(|name| RunId::from_text(*name)).collect()
}

async fn answer(recorder: &Recorder, name: &str) {
    let handle = asked(recorder, ReadOnly, name).await;
    recorder.answer(handle, format!("\"{}\"", name.repeat(3_000))).await.unwrap();
}

/// A parent of some calls, and a fork of it after each of these entries, with a call of its own.
async fn forked(forks: &[(&str, u32)]) -> Host {
    let host = Host::new();
    let recorder = host.run();
    for number in 1..=CALLS {
        answer(&recorder, &number.to_string()).await;
    }
    for (run, through) in forks {
        host.commit(share(&*host.store, &invocation(), &fork(run), *through).unwrap()).await;
        go_on(&host, run, *through, "own").await;
    }
    host
}

/// Lets a fork make a call after those that it shares.
async fn go_on(host: &Host, run: &str, through: u32, name: &str) {
    let recorder = host.run_as(&fork(run));
    for number in 1..=through {
        let heard = said(&recorder.ask(call(ReadOnly, &number.to_string())).await);
        assert!(heard.starts_with("answered"), "{heard}");
    }
    answer(&recorder, name).await;
}

/// Everything that a person or a component reads of a journal.
fn told(store: &dyn Store, invocation: &InvocationId) -> String {
    format!("{:?}", entries(store, invocation, 0, 100).unwrap())
}

fn journal_rows(host: &Host, prefix: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    host.store.scan(Table::Journal, &Key::from_bytes(prefix.as_bytes().to_vec()), None, usize::MAX).unwrap()
}

/// Hands everything over, page by page, and deletes the run.
async fn delete(host: &Host, run: &str, forks: &[&str]) {
    let (gone, forks) = (RunId::from_text(run), runs(forks));
    loop {
        let page = hand_over(&*host.store, &gone, &forks).unwrap();
        if page.is_empty() {
            break;
        }
        host.commit(page).await;
    }
    let rows = journal_rows(host, &format!("{run}/"));
    assert!(!rows.is_empty());
    host.commit(rows.into_iter().map(|(key, _)| Op::Delete(Table::Journal, Key::from_bytes(key))).collect()).await;
}

const PARENT: &str = "r-3f9c02d1a4be";

#[tokio::test]
async fn forks_are_whole_after_their_parent_is_deleted_and_its_rows_are_kept_once() {
    let shares = [("r-2", 1), ("r-3", 3), ("r-4", 2), ("r-5", 3)];
    let host = forked(&shares).await;
    let names: Vec<&str> = shares.iter().map(|(run, _)| *run).collect();
    let before: Vec<String> = names.iter().map(|run| told(&*host.store, &fork(run))).collect();
    delete(&host, PARENT, &names).await;
    for (run, before) in names.iter().zip(before) {
        assert_eq!(told(&*host.store, &fork(run)), before, "{run}");
    }
    // Three entries and its own, with an end of the beginning that is no longer shared.
    assert_eq!(journal_rows(&host, "r-3/").len(), 1 + 4 * 2);
    for run in ["r-2", "r-4", "r-5"] {
        assert_eq!(journal_rows(&host, &format!("{run}/")).len(), 2 + 2, "{run} refers to r-3");
    }
    let host = host.restart();
    let recorder = host.run_as(&fork("r-4"));
    for (name, expected) in [("1", "111"), ("2", "222"), ("own", "ownown")] {
        let heard = said(&recorder.ask(call(ReadOnly, name)).await);
        assert!(heard.starts_with(&format!("answered \"{expected}")), "{heard:.40}");
    }
    answer(&recorder, "more").await;
    // And so once more, after the one that got the rows.
    let before = told(&*host.store, &fork("r-5"));
    delete(&host, "r-3", &["r-2", "r-4", "r-5"]).await;
    assert_eq!(told(&*host.store, &fork("r-5")), before);
    assert_eq!(entries(&*host.store, &fork("r-4"), 0, 100).unwrap().len(), 4);
}

#[tokio::test]
async fn what_a_deleted_fork_shared_itself_stays_with_its_own_parent() {
    let host = forked(&[("r-2", 2)]).await;
    let own = |through| share(&*host.store, &fork("r-2"), &fork("r-3"), through).unwrap();
    host.commit(own(3)).await;
    host.commit(share(&*host.store, &fork("r-2"), &fork("r-4"), 2).unwrap()).await;
    host.commit(share(&*host.store, &fork("r-2"), &fork("r-5"), 3).unwrap()).await;
    let before = ["r-3", "r-4", "r-5"].map(|run| told(&*host.store, &fork(run)));
    let page = hand_over(&*host.store, &RunId::from_text("r-2"), &runs(&["r-3", "r-4", "r-5"])).unwrap();
    let pairs: Vec<String> =
        holders(&page).into_iter().map(|(holder, sharer)| format!("{sharer} of {holder}")).collect();
    assert_eq!(pairs, ["r-5 of r-3".to_owned(), format!("r-3 of {PARENT}")], "r-4 never referred to r-2");
    delete(&host, "r-2", &["r-3", "r-4", "r-5"]).await;
    assert_eq!(["r-3", "r-4", "r-5"].map(|run| told(&*host.store, &fork(run))), before);
    // Its own entry alone was copied.
    assert_eq!(journal_rows(&host, "r-3/").len(), 2 + 2);
}

#[tokio::test]
async fn a_run_that_no_fork_shares_has_nothing_to_hand_over() {
    let host = forked(&[]).await;
    host.commit(share(&*host.store, &invocation(), &fork("r-2"), 0).unwrap()).await;
    let gone = RunId::from_text(PARENT);
    assert!(hand_over(&*host.store, &gone, &runs(&["r-2", "r-3"])).unwrap().is_empty());
    assert!(holders(&[]).is_empty());
}

#[tokio::test]
async fn a_fork_that_changed_meanwhile_is_not_overwritten() {
    let host = forked(&[("r-2", 1), ("r-3", 2)]).await;
    let gone = RunId::from_text(PARENT);
    let outdated = hand_over(&*host.store, &gone, &runs(&["r-2", "r-3"])).unwrap();
    host.commit(hand_over(&*host.store, &gone, &runs(&["r-2"])).unwrap()).await;
    let before = host.store.rows();
    let refused = host.store.commit(Batch { ops: outdated }).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(host.store.rows(), before);
}

/// A store whose parent is handed over and deleted after as many reads as it says.
struct Deleted {
    store: std::sync::Arc<crate::fakes::MemoryStore>,
    after: std::sync::Arc<crate::fakes::MemoryStore>,
    reads: std::sync::atomic::AtomicUsize,
}

impl Deleted {
    fn now(&self) -> &dyn Store {
        let left = self.reads.load(std::sync::atomic::Ordering::SeqCst);
        self.reads.store(left.saturating_sub(1), std::sync::atomic::Ordering::SeqCst);
        if left == 0 { &*self.after } else { &*self.store }
    }
}

#[async_trait::async_trait]
impl Store for Deleted {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.now().get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &Key,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
        self.now().scan(table, prefix, after, limit)
    }

    fn blob(&self, digest: &longhaul_core::Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.store.commit(batch).await
    }
}

#[tokio::test]
async fn who_reads_while_a_parent_is_deleted_reads_the_whole_journal() {
    let host = forked(&[("r-2", 2), ("r-3", 3)]).await;
    let (before, after) = (host.restart(), host.restart());
    delete(&after, PARENT, &["r-2", "r-3"]).await;
    for run in ["r-2", "r-3"] {
        let expected = told(&*before.store, &fork(run));
        for reads in 0..30_usize {
            let store = Deleted { store: before.store.clone(), after: after.store.clone(), reads: reads.into() };
            assert_eq!(told(&store, &fork(run)), expected, "{run}, deleted after {reads} reads");
            let store = std::sync::Arc::new(Deleted { reads: reads.into(), ..store });
            let replayed = Recorder::replay(store, fork(run), "engine 1", &host.limits).unwrap().unwrap();
            assert!(replayed.remaining() >= 3);
        }
    }
}

#[tokio::test]
async fn a_parent_that_cannot_be_read_whole_is_not_handed_over() {
    let host = forked(&[("r-2", 2)]).await;
    let key = Key::of(invocation().as_str()).number(2).and("answered");
    host.commit(vec![Op::Delete(Table::Journal, key)]).await;
    let refused = hand_over(&*host.store, &RunId::from_text(PARENT), &runs(&["r-2"]));
    assert!(matches!(refused, Err(JournalError::Damaged { .. })), "{refused:?}");
}
