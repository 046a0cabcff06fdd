//! Proposals that their run and people change at once, in several processes.

use super::*;
use futures_util::future::join_all;
use longhaul_testkit::{MemoryStore, ProcessStore};
use std::sync::Arc;

fn proposal() -> Proposal {
    Proposal {
        id: "p-1".into(),
        at_ms: 1,
        by: InvocationId::from_text("r-1/f-a/1/generate"),
        change: ProposedChange::DropFeature { feature: "a".into() },
        reason: String::new(),
        standing: ProposalStatus::Open,
        told: false,
    }
}

async fn proposed() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.commit(proposal().insert(Batch::new()).expect("a row")).await.expect("stored");
    store
}

fn rejected(why: usize) -> ProposalStatus {
    ProposalStatus::Rejected { at_ms: 2, why: why.to_string() }
}

/// The end of the invocation used to write the whole proposal as it had read it, and took the decision back.
#[tokio::test]
async fn a_decision_while_the_invocation_of_a_proposal_ends_is_kept_and_the_proposal_is_told_once() {
    let (store, run) = (proposed().await, RunId::from_text("r-1"));
    let by = proposal().by;
    let (events, batch) = tell(&*store, &by, Batch::new()).expect("read");
    assert_eq!(events.len(), 1);
    decide(&ProcessStore::of(&store), &run, "p-1", &rejected(7)).await.expect("decided");
    store.commit(batch).await.expect("stored");
    assert_eq!(get(&*store, &run, "p-1").expect("read").expect("there").standing, rejected(7));
    assert!(tell(&*store, &by, Batch::new()).expect("read").0.is_empty(), "it was told");
}

#[tokio::test]
async fn of_several_decisions_at_once_the_first_counts_and_the_others_are_told_of_it() {
    let (store, run) = (proposed().await, RunId::from_text("r-1"));
    let people = (0..8).map(|person| {
        let (process, run) = (ProcessStore::of(&store), run.clone());
        async move { decide(&process, &run, "p-1", &rejected(person)).await.map(|()| person) }
    });
    let decided = join_all(people).await;
    let counted: Vec<usize> = decided.iter().filter_map(|one| one.as_ref().ok().copied()).collect();
    let [first] = counted[..] else { panic!("each thought that its decision counts: {counted:?}") };
    assert_eq!(get(&*store, &run, "p-1").expect("read").expect("there").standing, rejected(first));
    for why in decided.iter().filter_map(|one| one.as_ref().err()) {
        assert!(format!("{why:#}").ends_with(&format!("was rejected before: {first}")), "{why:#}");
    }
}

/// The acceptance was refused because of the rejection, although the run had the change by then.
#[tokio::test]
async fn an_acceptance_whose_change_is_made_holds_over_a_rejection_that_came_meanwhile() {
    let (store, run) = (proposed().await, RunId::from_text("r-1"));
    let standing = || get(&*store, &run, "p-1").expect("read").expect("there").standing;
    open(&*store, &run, "p-1").expect("open when the order is given");
    decide(&ProcessStore::of(&store), &run, "p-1", &rejected(7)).await.expect("decided");
    accepted(&*store, &run, "p-1", 3).await.expect("noted");
    assert_eq!(standing(), ProposalStatus::Accepted { at_ms: 3 });
    accepted(&*store, &run, "p-1", 4).await.expect("noted before");
    assert_eq!(standing(), ProposalStatus::Accepted { at_ms: 3 }, "the first acceptance counts");
    let late = decide(&*store, &run, "p-1", &rejected(8)).await.expect_err("the change is made");
    assert!(format!("{late:#}").ends_with("was accepted before"), "{late:#}");
    let unknown = accepted(&*store, &run, "p-2", 5).await.expect_err("no such proposal");
    assert!(format!("{unknown:#}").contains("there is no proposal `p-2`"), "{unknown:#}");
}

#[tokio::test]
async fn what_a_version_without_a_row_for_it_told_is_not_told_again() {
    let store = MemoryStore::new();
    let old = Proposal { told: true, ..proposal() };
    store.commit(old.insert(Batch::new()).expect("a row")).await.expect("stored");
    assert!(tell(&store, &old.by, Batch::new()).expect("read").0.is_empty());
}
