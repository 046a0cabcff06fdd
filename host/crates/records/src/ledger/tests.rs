//! Calls side by side, kills in between, and what each kind of cap counts.

use super::caps::microdollars;
use super::*;
use longhaul_core::model::Cost as _;
use longhaul_core::supervisor::Tries;
use longhaul_testkit::{HandClock, MemoryStore};
use std::sync::atomic::{AtomicU64, Ordering};

fn cost(microdollars: f64) -> Usage {
    Usage { cost_microdollars: microdollars, input_tokens: 1, ..Usage::default() }
}

fn capped(store: &Arc<dyn Store>, limits: HarnessLimits) -> Ledger {
    let clock = Arc::new(HandClock::at(HandClock::START_MS));
    let project = ProjectDay { project: "p-1".to_owned(), caps: DayCaps::default(), clock };
    let ledger = Ledger::open(Arc::clone(store), &RunId::from_text("r-1"), project).expect("a book");
    ledger.set_caps(&limits);
    ledger
}

fn ledger(store: &Arc<dyn Store>, max: u64) -> Ledger {
    capped(store, HarnessLimits { cost_microdollars_max: Some(max), ..HarnessLimits::default() })
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

fn invocation(name: &str) -> InvocationId {
    InvocationId::from_text(format!("r-1/{name}"))
}

fn done(model_calls: u32, tool_calls: u32, fuel: u64) -> InvocationTotals {
    InvocationTotals { model_calls, tool_calls, fuel, memory_bytes_peak: 0 }
}

fn paid(microdollars: f64) -> UsageDelta {
    UsageDelta { usage: cost(microdollars), ..UsageDelta::default() }
}

fn shown(store: &Arc<dyn Store>, is_worked_on: bool) -> LedgerView {
    let run = RunId::from_text("r-1");
    let shown = view(&**store, &run, &HarnessLimits::default(), 0, is_worked_on).expect("a view");
    assert_eq!(total(&**store, &run, is_worked_on).expect("a sum"), shown.total);
    shown
}

/// The highest spending, when every parallel call costs its whole reservation.
#[tokio::test]
async fn calls_side_by_side_never_pass_a_cap_together() {
    let store = store();
    let ledger = Arc::new(ledger(&store, 1_000));
    let most = Arc::new(AtomicU64::new(0));
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let (ledger, most) = (Arc::clone(&ledger), Arc::clone(&most));
            tokio::spawn(async move {
                let who = invocation(&format!("f-{number}/1/generate"));
                let held = ledger.reserve(&who, cost(100.0), false).await?;
                tokio::task::yield_now().await;
                let _ = ledger.spent(&who, done(1, 0, 0), paid(60.0));
                held.settle();
                let now = microdollars(ledger.book().total().usage.cost_microdollars);
                most.fetch_max(now, Ordering::SeqCst);
                Ok::<(), LimitHit>(())
            })
        })
        .collect();
    let mut refused = 0;
    for call in calls {
        match call.await.expect("no panic") {
            Ok(()) => {}
            Err(hit) => {
                assert_eq!(hit.name, "cost_microdollars_max");
                refused += 1;
            }
        }
    }
    // 16 calls of 60 leave less than the 100 that the next one would have to hold.
    assert_eq!((most.load(Ordering::SeqCst), refused), (960, 34));
    assert_eq!(ledger.book().total().possibly_paid_twice, 0);
}

#[tokio::test]
async fn what_was_spent_is_there_after_a_restart_and_an_end_counts_once() {
    let store = store();
    let (one, two) = (invocation("f-a/1/generate"), invocation("plan"));
    let before = ledger(&store, 1_000);
    for batch in [before.spent(&one, done(1, 2, 50), paid(300.0)), before.spent(&two, done(1, 0, 0), paid(400.0))] {
        store.commit(batch).await.expect("stored");
    }
    for _ in 0..2 {
        store.commit(before.close(&one, done(1, 3, 70), UsageDelta::default())).await.expect("stored");
    }
    let after = ledger(&store, 1_000);
    assert_eq!(after.book().total(), before.book().total());
    let total = after.book().total();
    assert_eq!((total.fuel, total.tool_calls, total.model_calls), (70, 3, 2));
    assert!(after.reserve(&one, cost(301.0), false).await.is_err());
    assert!(after.reserve(&one, cost(300.0), false).await.is_ok());
}

/// The second attempt reaches the same fuel and the same calls again; both used to be counted twice.
#[tokio::test]
async fn an_invocation_that_parks_and_goes_on_is_counted_once() {
    let store = store();
    let who = invocation("f-a/1/generate");
    let ledger = ledger(&store, 1_000);
    let _ = ledger.spent(&who, done(1, 1, 100), UsageDelta::default());
    let _ = ledger.close(&who, done(1, 2, 180), UsageDelta::default());
    ledger.go_on(&who, done(1, 2, 180), UsageDelta::default()).expect("room");
    let _ = ledger.spent(&who, done(2, 2, 260), UsageDelta::default());
    let _ = ledger.close(&who, done(2, 3, 300), UsageDelta::default());
    let total = ledger.book().total();
    assert_eq!((total.fuel, total.tool_calls, total.model_calls), (300, 3, 2));
}

/// The reservation used to be forgotten.
#[tokio::test]
async fn what_a_killed_call_held_stays_charged_once_however_often_it_is_killed() {
    let store = store();
    let who = invocation("f-a/1/generate");
    // Killed before the reservation reached the store, and after that.
    for (rides, times) in [(false, 1), (true, 2), (false, 3)] {
        let ledger = ledger(&store, 10_000);
        let held = ledger.reserve(&who, cost(100.0), times > 1).await.expect("room");
        if rides {
            store.commit(ledger.ride(Batch::new())).await.expect("stored");
            assert_eq!(microdollars(shown(&store, true).held.cost_microdollars), 100);
            assert_eq!(shown(&store, true).total.possibly_paid_twice, times - 1);
            assert_eq!(shown(&store, false).total.possibly_paid_twice, times, "nobody works on it");
            let view = shown(&store, false);
            let all = view.possibly_paid_twice(|_| true);
            assert_eq!((all.calls, all.usage_max.cost_microdollars), (times, view.total.cut_off.cost_microdollars));
            assert_eq!(view.possibly_paid_twice(|_| false).calls, 0);
        }
        std::mem::forget(held);
    }
    let last = ledger(&store, 10_000);
    let held = last.reserve(&who, cost(100.0), true).await.expect("room");
    assert!(held.was_cut_off());
    store.commit(last.spent(&who, done(1, 0, 0), paid(60.0))).await.expect("stored");
    held.settle();
    let total = shown(&store, false).total;
    assert_eq!((total.possibly_paid_twice, total.cut_off.cost_microdollars), (3, 300.0));
    assert_eq!((total.usage.cost_microdollars, total.charged().cost_microdollars), (60.0, 360.0));
    assert_eq!(ledger(&store, 10_000).book().total(), total);
}

#[tokio::test]
async fn a_call_that_is_stopped_stays_charged_and_one_that_met_an_outage_does_not() {
    let store = store();
    let (stopped, met) = (invocation("f-a/1/generate"), invocation("f-b/1/generate"));
    let ledger = ledger(&store, 1_000);
    drop(ledger.reserve(&stopped, cost(400.0), false).await.expect("room"));
    ledger.reserve(&met, cost(600.0), false).await.expect("room").settle();
    assert!(ledger.reserve(&met, cost(601.0), true).await.is_err(), "the 400 are charged");
    // Each call is repeated by the same process, which knows how it ended.
    let again = ledger.reserve(&met, cost(100.0), true).await.expect("room");
    assert!(!again.was_cut_off());
    again.settle();
    let again = ledger.reserve(&stopped, cost(400.0), true).await.expect("room");
    assert!(again.was_cut_off());
    again.settle();
    store.commit(ledger.ride(Batch::new())).await.expect("stored");
    let total = shown(&store, false).total;
    assert_eq!((total.possibly_paid_twice, total.cut_off.cost_microdollars), (1, 400.0));
}

/// For each cap: usage one below it, at it and above it.
#[tokio::test]
async fn each_cap_of_a_run_refuses_the_next_effect_by_its_name_and_a_higher_one_lets_it_go_on() {
    type Set = fn(&mut HarnessLimits, u64);
    type Use = fn(u64) -> (InvocationTotals, UsageDelta);
    let cases: [(&str, Set, Use, u64); 5] = [
        (
            "tool_calls_max",
            |limits, max| limits.tool_calls_max = Some(max),
            |n| (done(0, u32::try_from(n).unwrap_or(u32::MAX), 0), UsageDelta::default()),
            1,
        ),
        ("fuel_max", |limits, max| limits.fuel_max = Some(max), |n| (done(0, 0, n), UsageDelta::default()), 0),
        (
            "memory_bytes_max",
            |limits, max| limits.memory_bytes_max = Some(max),
            |n| (InvocationTotals { memory_bytes_peak: n, ..InvocationTotals::default() }, UsageDelta::default()),
            1,
        ),
        (
            "egress_bytes_max",
            |limits, max| limits.egress_bytes_max = Some(max),
            |n| (InvocationTotals::default(), UsageDelta { egress_bytes: n, ..UsageDelta::default() }),
            0,
        ),
        (
            "stored_bytes_max",
            |limits, max| limits.stored_bytes_max = Some(max),
            |n| (InvocationTotals::default(), UsageDelta { stored_bytes: n, ..UsageDelta::default() }),
            0,
        ),
    ];
    for (name, set, used, over) in cases {
        let with = |max: u64| {
            let mut limits = HarnessLimits::default();
            set(&mut limits, max);
            limits
        };
        let who = invocation("f-a/1/generate");
        let check = |used: (InvocationTotals, UsageDelta)| capped(&store(), with(10)).go_on(&who, used.0, used.1);
        assert_eq!(check(used(9 + over)), Ok(()), "{name}");
        let hit = check(used(10 + over)).expect_err(name);
        assert_eq!((hit.name.as_str(), hit.max), (name, 10.0));
        let ledger = capped(&store(), with(10));
        let (done, more) = used(10 + over);
        ledger.go_on(&who, done, more).expect_err(name);
        ledger.set_caps(&with(100));
        assert_eq!(ledger.go_on(&who, done, UsageDelta::default()), Ok(()), "{name}");
    }
}

#[tokio::test]
async fn steps_of_a_run_are_counted_with_those_under_way() {
    let store = store();
    let ledger = capped(&store, HarnessLimits { model_calls_max: Some(2), ..HarnessLimits::default() });
    let (one, two, three) = (invocation("plan"), invocation("f-a/1/generate"), invocation("f-b/1/generate"));
    let first = ledger.reserve(&one, cost(1.0), false).await.expect("room");
    let second = ledger.reserve(&two, cost(1.0), false).await.expect("room");
    let waits = ledger.reserve(&three, cost(1.0), false);
    let refused = async {
        for (who, held) in [(&one, first), (&two, second)] {
            let _ = ledger.spent(who, done(1, 0, 0), paid(1.0));
            held.settle();
            tokio::task::yield_now().await;
        }
    };
    let (waited, ()) = tokio::join!(waits, refused);
    let hit = waited.err().expect("no third step");
    assert_eq!((hit.name.as_str(), hit.used, hit.max), ("model_calls_max", 3.0, 2.0));
}

/// Retries used to pass the reservation of their call: each wasted answer came on top of it.
#[tokio::test]
async fn a_further_try_is_made_only_where_the_run_has_room_for_it_beside_what_was_wasted() {
    let store = store();
    let ledger = ledger(&store, 250);
    let who = invocation("f-a/1/generate");
    let held = ledger.reserve(&who, cost(100.0), false).await.expect("room");
    let tries = Tries::new(&*held);
    for _ in 0..2 {
        tries.wasted(cost(75.0));
        tries.again().await.expect("150 are wasted at the most, and 100 may come");
    }
    tries.wasted(cost(1.0));
    let hit = tries.again().await.expect_err("no room");
    assert_eq!((hit.name.as_str(), hit.used, hit.max), ("cost_microdollars_max", 251.0, 250.0));
    let (tally, over) = tries.end();
    assert_eq!((microdollars(tally.wasted().cost_microdollars), over), (151, Some(hit)));
}

/// Each call wastes its reservation, and retries beside the other: neither waits for a reservation whose call waits
/// too.
#[tokio::test]
async fn calls_that_try_again_side_by_side_wait_for_each_other_and_not_for_ever() {
    let store = store();
    let ledger = Arc::new(ledger(&store, 500));
    let calls = ["plan", "f-a/1/generate"].map(|name| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            let who = invocation(name);
            let held = ledger.reserve(&who, cost(150.0), false).await?;
            tokio::task::yield_now().await;
            let tries = Tries::new(&*held);
            tries.wasted(cost(150.0));
            tries.again().await?;
            let _ = ledger.spent(&who, done(1, 0, 0), paid(160.0));
            drop(tries);
            held.settle();
            Ok::<(), LimitHit>(())
        })
    });
    let all = futures_util::future::try_join_all(calls);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("an end");
    assert_eq!(ended.expect("no panic"), [Ok(()), Ok(())]);
}

/// The call used to wait until another reservation ended, however high the new cap was.
#[tokio::test]
async fn who_waits_for_room_goes_on_when_the_cap_is_raised() {
    let store = store();
    let ledger = ledger(&store, 100);
    let (one, two) = (invocation("plan"), invocation("f-a/1/generate"));
    let _held = ledger.reserve(&one, cost(80.0), false).await.expect("room");
    let raise = async {
        tokio::task::yield_now().await;
        ledger.set_caps(&HarnessLimits { cost_microdollars_max: Some(1_000), ..HarnessLimits::default() });
    };
    let (held, ()) = tokio::join!(ledger.reserve(&two, cost(80.0), false), raise);
    assert!(held.is_ok());
}

#[tokio::test]
async fn bytes_of_tools_are_counted_exactly_and_a_refusal_names_its_cap_once() {
    let store = store();
    let ledger = capped(&store, HarnessLimits { egress_bytes_max: Some(100), ..HarnessLimits::default() });
    let who = invocation("f-a/1/generate");
    ledger.sends(&who, 100).expect("room");
    let hit = ledger.sends(&who, 1).expect_err("no room");
    assert_eq!(ledger.book().total().egress_bytes, 100);
    assert_eq!((ledger.refused_bytes(&who), ledger.refused_bytes(&who)), (Some(hit), None));
}

#[tokio::test]
async fn memory_is_that_of_all_who_are_under_way() {
    let store = store();
    let ledger = capped(&store, HarnessLimits { memory_bytes_max: Some(100), ..HarnessLimits::default() });
    let (one, two) = (invocation("f-a/1/generate"), invocation("f-b/1/generate"));
    let held = |bytes| InvocationTotals { memory_bytes_peak: bytes, ..InvocationTotals::default() };
    ledger.go_on(&one, held(60), UsageDelta::default()).expect("room");
    ledger.go_on(&two, held(60), UsageDelta::default()).expect_err("both have more than 100");
    let _ = ledger.close(&one, held(60), UsageDelta::default());
    ledger.go_on(&two, held(60), UsageDelta::default()).expect("room");
    store.commit(ledger.close(&two, held(60), UsageDelta::default())).await.expect("stored");
    assert_eq!(shown(&store, false).memory_bytes_at_once_peak, 120);
}

#[test]
fn a_row_from_before_tools_were_counted_is_read() {
    let row: LedgerRow =
        serde_json::from_str(r#"{"invocation": "r-1/plan", "spent": {"fuel": 70, "model_calls": 1}}"#).expect("a row");
    let mut book = LedgerBook::new(vec![row], Vec::new());
    book.tell(&invocation("plan"), done(1, 0, 90), UsageDelta::default());
    assert_eq!(book.total().fuel, 90);
}

#[test]
fn a_correction_reaches_the_agent_of_its_feature_or_the_planner_and_nobody_who_judges() {
    let of = |action: &str| addressee(&invocation(action)).map(str::to_owned);
    assert_eq!(of("f-a/1/generate"), Some("a".into()));
    assert_eq!(of("f-a/e2/1/generate/h1"), Some("a".into()));
    assert_eq!((of("plan/t2"), of("replan/1")), (Some(String::new()), Some(String::new())));
    assert_eq!((of("f-a/1/judge"), of("f-a/1/generate#4"), of("synthesize/1")), (None, None, None));
}
