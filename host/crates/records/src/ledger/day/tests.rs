//! Ledgers of several runs of one project, as several servers have them: what they may use together on a day, over
//! midnight, and after a kill.

use super::super::{Ledger, lock};
use super::*;
use longhaul_core::model::Cost as _;
use longhaul_core::supervisor::{InvocationTotals, Reservation, Supervisor as _, Tries, UsageDelta};
use longhaul_testkit::{HandClock, MemoryStore};
use std::time::Duration;

const PROJECT: &str = "p-1";

/// The last second of a day.
const EVENING_MS: u64 = HandClock::START_MS - 1_000;

struct Place {
    store: Arc<dyn Store>,
    clock: Arc<HandClock>,
}

impl Place {
    fn at(ms: u64) -> Self {
        Self { store: Arc::new(MemoryStore::default()), clock: Arc::new(HandClock::at(ms)) }
    }

    /// The ledger of a run, of which others may be open.
    fn ledger(&self, run: &str, cost_max: Option<u64>) -> Ledger {
        let caps = DayCaps { cost_microdollars_max: cost_max, tokens_max: None };
        let project = ProjectDay { project: PROJECT.to_owned(), caps, clock: self.clock.clone() };
        Ledger::open(Arc::clone(&self.store), &RunId::from_text(run), project).expect("a ledger")
    }

    /// The stored rows of the present day.
    fn rows(&self) -> Vec<DayRow> {
        rows(&*self.store, PROJECT, day::number(self.clock.now_ms())).expect("readable")
    }

    fn used(&self) -> u64 {
        let of = |row: &DayRow| match row {
            DayRow::Used(row) => row.used.cost_microdollars,
            DayRow::Call(_) => 0.0,
        };
        microdollars(self.rows().iter().map(of).sum())
    }

    fn calls(&self) -> usize {
        self.rows().iter().filter(|row| matches!(row, DayRow::Call(_))).count()
    }
}

fn cost(microdollars: f64) -> Usage {
    Usage { cost_microdollars: microdollars, input_tokens: 1, ..Usage::default() }
}

fn plan(run: &str) -> InvocationId {
    InvocationId::from_text(format!("{run}/plan"))
}

/// Makes a call that may cost `most` and costs `paid`.
async fn call(place: &Place, ledger: &Ledger, run: &str, most: f64, paid: f64) -> Result<(), LimitHit> {
    let held = ledger.reserve(&plan(run), cost(most), false).await?;
    answer(place, ledger, run, paid, held).await;
    Ok(())
}

/// Stores the answer of a call.
async fn answer(place: &Place, ledger: &Ledger, run: &str, paid: f64, held: Box<dyn Reservation>) {
    let more = UsageDelta { usage: cost(paid), ..UsageDelta::default() };
    let calls = InvocationTotals { model_calls: 1, ..InvocationTotals::default() };
    place.store.commit(ledger.spent(&plan(run), calls, more)).await.expect("stored");
    held.settle();
}

#[tokio::test]
async fn what_runs_of_a_project_use_in_a_day_is_added_up_and_the_next_call_is_refused_by_its_cap() {
    let place = Place::at(EVENING_MS);
    let (one, two) = (place.ledger("r-1", Some(1_000)), place.ledger("r-2", Some(1_000)));
    call(&place, &one, "r-1", 500.0, 400.0).await.expect("room");
    call(&place, &two, "r-2", 500.0, 300.0).await.expect("room");
    assert_eq!((place.used(), place.calls()), (700, 0));
    let hit = call(&place, &one, "r-1", 301.0, 0.0).await.expect_err("700 of 1000 are used");
    assert_eq!((hit.name.as_str(), hit.used, hit.max), ("cost_microdollars_per_day_max", 1_001.0, 1_000.0));
    call(&place, &two, "r-2", 300.0, 300.0).await.expect("exactly what is left");
    // A higher cap of one of them lets it go on at once.
    one.set_day_caps(DayCaps { cost_microdollars_max: Some(2_000), tokens_max: None });
    call(&place, &one, "r-1", 301.0, 1.0).await.expect("room");
}

#[tokio::test]
async fn tokens_have_a_cap_of_their_own() {
    let place = Place::at(EVENING_MS);
    let ledger = place.ledger("r-1", None);
    ledger.set_day_caps(DayCaps { cost_microdollars_max: None, tokens_max: Some(2) });
    for _ in 0..2 {
        call(&place, &ledger, "r-1", 1e9, 1e9).await.expect("a token each");
    }
    let hit = call(&place, &ledger, "r-1", 0.0, 0.0).await.expect_err("no token is left");
    assert_eq!((hit.name.as_str(), hit.used, hit.max), ("tokens_per_day_max", 3.0, 2.0));
}

/// Each reserves 600 of 1,000 at once; the second one waits, and both together never have more.
#[tokio::test(start_paused = true)]
async fn a_call_waits_while_the_reservation_of_another_run_alone_prevents_it() {
    let place = Place::at(EVENING_MS);
    let (one, two) = (place.ledger("r-1", Some(1_000)), place.ledger("r-2", Some(1_000)));
    let held = one.reserve(&plan("r-1"), cost(600.0), false).await.expect("room");
    let plan_of_two = plan("r-2");
    let waits = two.reserve(&plan_of_two, cost(600.0), false);
    tokio::pin!(waits);
    let soon = Duration::from_secs(5);
    assert!(tokio::time::timeout(soon, &mut waits).await.is_err(), "1,200 would be reserved");
    assert_eq!(place.calls(), 1, "who waits holds nothing up");
    answer(&place, &one, "r-1", 300.0, held).await;
    let held = tokio::time::timeout(soon, waits).await.expect("it asks again").expect("room");
    answer(&place, &two, "r-2", 600.0, held).await;
    assert_eq!(place.used(), 900);
}

/// Many at once, each of a run of its own: whoever commits last sees all others.
#[tokio::test(start_paused = true)]
async fn calls_of_many_runs_at_once_never_pass_the_cap_together() {
    let place = Arc::new(Place::at(EVENING_MS));
    let runs: Vec<_> = (0..20)
        .map(|number| {
            let place = Arc::clone(&place);
            tokio::spawn(async move {
                let run = format!("r-{number}");
                let ledger = place.ledger(&run, Some(1_000));
                let held = ledger.reserve(&plan(&run), cost(300.0), false).await?;
                tokio::time::sleep(Duration::from_secs(1)).await;
                answer(&place, &ledger, &run, 300.0, held).await;
                Ok::<(), LimitHit>(())
            })
        })
        .collect();
    let mut made = 0;
    for run in runs {
        made += u32::from(run.await.expect("no panic").is_ok());
    }
    assert_eq!((made, place.used()), (3, 900));
}

/// Both wasted what they had reserved: neither waits for what the other could still use.
#[tokio::test(start_paused = true)]
async fn calls_of_two_runs_that_are_made_again_wait_for_each_other_and_not_for_ever() {
    let place = Arc::new(Place::at(EVENING_MS));
    let runs = ["r-1", "r-2"].map(|run| {
        let place = Arc::clone(&place);
        tokio::spawn(async move {
            let ledger = place.ledger(run, Some(500));
            let held = ledger.reserve(&plan(run), cost(150.0), false).await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
            let tries = Tries::new(&*held);
            tries.wasted(cost(150.0));
            tries.again().await?;
            drop(tries);
            answer(&place, &ledger, run, 160.0, held).await;
            Ok::<(), LimitHit>(())
        })
    });
    let all = futures_util::future::try_join_all(runs);
    let ended = tokio::time::timeout(Duration::from_secs(60), all).await.expect("an end").expect("no panic");
    assert_eq!(ended, [Ok(()), Ok(())]);
    assert_eq!(place.used(), 320);
}

/// The call counts where it was reserved, and the new day begins with nothing.
#[tokio::test]
async fn a_call_over_midnight_counts_on_the_day_on_which_it_began() {
    let place = Place::at(EVENING_MS);
    let ledger = place.ledger("r-1", Some(1_000));
    let held = ledger.reserve(&plan("r-1"), cost(900.0), false).await.expect("room");
    assert!(place.ledger("r-2", Some(1_000)).reserve(&plan("r-2"), cost(1_001.0), false).await.is_err());
    place.clock.advance_ms(2_000);
    assert_eq!((place.used(), place.calls()), (0, 0), "a new day");
    answer(&place, &ledger, "r-1", 800.0, held).await;
    assert_eq!((place.used(), place.calls()), (0, 0));
    call(&place, &ledger, "r-1", 1_000.0, 700.0).await.expect("the whole day is left");
    assert_eq!(place.used(), 700);
    // The rows of the day before are kept until it is two days ago.
    let all = || place.store.scan(Table::States, &project_key(PROJECT), None, 10).expect("readable").len();
    assert_eq!(all(), 2);
    place.clock.advance_ms(86_400_000);
    let later = place.ledger("r-3", None);
    place.store.commit(later.ride(Batch::new())).await.expect("stored");
    assert_eq!(all(), 1);
}

/// It is made again after midnight: what it wasted counts on the new day with the rest of it.
#[tokio::test]
async fn a_call_that_is_made_again_after_midnight_needs_budget_of_the_new_day() {
    let place = Place::at(EVENING_MS);
    let ledger = place.ledger("r-1", Some(1_000));
    let held = ledger.reserve(&plan("r-1"), cost(600.0), false).await.expect("room");
    let tries = Tries::new(&*held);
    tries.wasted(cost(300.0));
    place.clock.advance_ms(2_000);
    tries.again().await.expect("900 of 1,000");
    assert_eq!(place.calls(), 1);
    tries.wasted(cost(200.0));
    let hit = tries.again().await.expect_err("1,100 of 1,000");
    assert_eq!((hit.name.as_str(), hit.used), ("cost_microdollars_per_day_max", 1_100.0));
}

/// Killed after the reservation and before the answer: the next process charges it, and others count it before that.
#[tokio::test(start_paused = true)]
async fn what_a_killed_call_reserved_stays_charged() {
    let place = Place::at(EVENING_MS);
    let killed = place.ledger("r-1", Some(1_000));
    let held = killed.reserve(&plan("r-1"), cost(700.0), false).await.expect("room");
    std::mem::forget(held);
    drop(killed);
    assert_eq!(place.calls(), 1, "it was durable before the call");
    let other = place.ledger("r-2", Some(1_000));
    {
        let plan = plan("r-2");
        let waits = other.reserve(&plan, cost(400.0), false);
        tokio::pin!(waits);
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut waits).await.is_err(), "its run may go on");
    }
    // Its run goes on: the call is made again, and the first one stays charged.
    let next = place.ledger("r-1", Some(1_000));
    let again = next.reserve(&plan("r-1"), cost(200.0), true).await.expect("900 of 1,000");
    assert!(again.was_cut_off());
    let hit = other.reserve(&plan("r-2"), cost(400.0), false).await.err().expect("700 are charged for certain");
    assert_eq!(hit.used, 1_100.0);
    answer(&place, &next, "r-1", 100.0, again).await;
    assert_eq!((place.used(), place.calls()), (800, 0));
    let last = place.ledger("r-1", Some(1_000));
    assert_eq!(call(&place, &last, "r-1", 201.0, 0.0).await.expect_err("used up").used, 1_001.0);
}

/// Nobody goes on with the run of a killed process: others wait for it, and not until midnight.
#[tokio::test]
async fn a_call_that_is_in_flight_for_too_long_counts_as_used() {
    let place = Place::at(EVENING_MS - 2 * STALE_MS);
    let killed = place.ledger("r-1", Some(1_000));
    std::mem::forget(killed.reserve(&plan("r-1"), cost(700.0), false).await.expect("room"));
    let other = place.ledger("r-2", Some(1_000));
    let asked = |ledger: &Ledger| {
        let today = day::number(place.clock.now_ms());
        lock(&ledger.room.book).day.verdict((&plan("r-2"), today), (Usage::default(), cost(400.0)), place.rows())
    };
    assert_eq!(asked(&other), DayVerdict::Taken);
    place.clock.advance_ms(STALE_MS);
    assert!(matches!(asked(&other), DayVerdict::Over(hit) if hit.used == 1_100.0));
    // Nobody waits for a clock that was set back, either.
    let clock = Arc::new(HandClock::at(EVENING_MS - 4 * STALE_MS));
    let back = Place { store: Arc::clone(&place.store), clock };
    let third = back.ledger("r-3", Some(1_000));
    let today = day::number(back.clock.now_ms());
    let asked = (Usage::default(), cost(400.0));
    let verdict = lock(&third.room.book).day.verdict((&plan("r-3"), today), asked, back.rows());
    assert!(matches!(verdict, DayVerdict::Over(_)), "{verdict:?}");
}

#[tokio::test]
async fn a_call_that_is_stopped_stays_charged_and_one_without_an_answer_does_not() {
    let place = Place::at(EVENING_MS);
    let ledger = place.ledger("r-1", Some(1_000));
    // An outage: it has no answer, and its end is known.
    ledger.reserve(&plan("r-1"), cost(600.0), false).await.expect("room").settle();
    drop(ledger.reserve(&plan("r-1"), cost(600.0), false).await.expect("room"));
    place.store.commit(ledger.ride(Batch::new())).await.expect("stored");
    assert_eq!(place.used(), 600);
    let hit = ledger.reserve(&plan("r-1"), cost(401.0), true).await.err().expect("600 are charged");
    assert_eq!(hit.used, 1_001.0);
}

/// No commit of its own, and no reservation; what is used counts for a cap that comes later.
#[tokio::test]
async fn without_a_cap_usage_is_counted_and_nothing_is_reserved() {
    let place = Place::at(EVENING_MS);
    let ledger = place.ledger("r-1", None);
    let held = ledger.reserve(&plan("r-1"), cost(600.0), false).await.expect("no cap");
    assert!(place.rows().is_empty());
    answer(&place, &ledger, "r-1", 600.0, held).await;
    assert_eq!(place.used(), 600);
    let capped = place.ledger("r-2", Some(1_000));
    assert!(capped.reserve(&plan("r-2"), cost(401.0), false).await.is_err());
}

#[test]
fn rows_are_read_in_the_form_in_which_they_are_stored() {
    let used = r#"{"used": {"invocation": "r-1/plan", "used": {
        "input_tokens": 3, "cached_tokens": 0, "output_tokens": 4, "cost_microdollars": 5.0
    }}}"#;
    let DayRow::Used(row) = serde_json::from_str(used).expect("a row") else { panic!("usage") };
    assert_eq!((row.used.tokens(), row.settled), (7, 0));
}
