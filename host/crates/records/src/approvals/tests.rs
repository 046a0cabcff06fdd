//! Long lists, the reported events of each approval, and rules that several people revoke.

use super::*;
use futures_util::future::join_all;
use longhaul_approval::{ApprovalKind, ApprovalSubject};
use longhaul_core::journal::EffectClass;
use longhaul_testkit::{MemoryStore, ProcessStore};
use std::sync::Arc;

fn approval(by: &str, entry: u32) -> Approval {
    let subject = ApprovalSubject {
        invocation: InvocationId::from_text(format!("r-1/{by}")),
        entry,
        tool: "files".into(),
        function: "write".into(),
        component: "c".into(),
        arguments: "{}".into(),
    };
    Approval {
        id: subject.id(),
        subject,
        asks: ApprovalKind::Call,
        agent: "agents.a".into(),
        plugin: "react".into(),
        effect: EffectClass::Acts,
        runs_commands: false,
        heard: Vec::new(),
        repeats: false,
        at_ms: entry.into(),
        standing: ApprovalStatus::Open,
    }
}

/// The list used to end silently at 10 000.
#[tokio::test]
async fn a_list_of_more_than_ten_thousand_approvals_is_whole_and_in_order() {
    let store = MemoryStore::default();
    let mut batch = Batch::new();
    for entry in 1..=10_050 {
        batch = insert(batch, &approval("f-a/1/generate", entry)).expect("a batch");
    }
    store.commit(batch).await.expect("stored");
    let listed = list(&store, &RunId::from_text("r-1")).expect("a list");
    let entries: Vec<u32> = listed.iter().map(|one| one.subject.entry).collect();
    assert_eq!(entries, (1..=10_050).collect::<Vec<_>>());
}

/// Each end of an invocation used to read all approvals of its run.
#[tokio::test]
async fn what_is_told_to_its_end_is_not_looked_at_again_and_each_thing_is_told_once() {
    let store = MemoryStore::default();
    let run = RunId::from_text("r-1");
    let (one, other) = (approval("f-a/1/generate", 1), approval("f-b/1/generate", 2));
    let batch = insert(insert(Batch::new(), &one).expect("a batch"), &other).expect("a batch");
    store.commit(batch).await.expect("stored");
    let tell_now = async |by: &str| {
        let (events, batch) = tell(&store, &InvocationId::from_text(format!("r-1/{by}")), Batch::new()).expect("news");
        store.commit(batch).await.expect("stored");
        events
            .iter()
            .map(|event| format!("{event:?}").split(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<String>>()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(tell_now("f-a/1/generate").await, ["ApprovalAsked"]);
    assert_eq!(tell_now("f-a/1/generate").await, none);
    let used = Approval { standing: ApprovalStatus::Used { decision: CallDecision::Stopped, at_ms: 3 }, ..one.clone() };
    store.commit(swap(Batch::new(), &one, &used).expect("a batch")).await.expect("stored");
    assert_eq!(tell_now("f-a/1/generate").await, ["ApprovalAnswered"]);
    let open: Vec<String> = with_news(&store, &run).expect("a list").into_iter().map(|one| one.id).collect();
    assert_eq!(open, [other.id]);
    assert_eq!(tell_now("f-a/1/generate").await, none);
    assert_eq!(tell_now("f-b/1/generate").await, ["ApprovalAsked"]);
}

#[tokio::test]
async fn a_rule_that_several_people_revoke_at_once_is_revoked_by_the_first() {
    let (store, run) = (Arc::new(MemoryStore::new()), RunId::from_text("r-1"));
    let rule = RunRule {
        id: "r-7".into(),
        tool: "files".into(),
        function: "write".into(),
        component: "c".into(),
        program: None,
        commands: None,
        beside: None,
        heard: Vec::new(),
        at_ms: 1,
        revoked_ms: None,
    };
    store.commit(put_rule(Batch::new(), &run, &rule).expect("a row")).await.expect("stored");
    let people = (10..18).map(|at_ms| {
        let (process, run) = (ProcessStore::of(&store), run.clone());
        async move { revoke(&process, &run, "r-7", at_ms).await.ok().and_then(|rule| rule.revoked_ms) }
    });
    let revoked: Vec<u64> = join_all(people).await.into_iter().flatten().collect();
    let stored = rules(&*store, &run).expect("read").into_iter().filter_map(|rule| rule.revoked_ms);
    assert_eq!((revoked.len(), stored.collect::<Vec<_>>()), (1, revoked));
}
