//! Turns and rates, on a clock that the tests move.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn rates(at_once: Option<u32>, requests: Option<u32>, tokens: Option<u32>) -> Rates {
    Rates { requests_at_once_max: at_once, requests_per_minute_max: requests, tokens_per_minute_max: tokens }
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_cap_are_under_way_at_once() {
    let queue = Arc::new(Queue::new(rates(Some(3), None, None)));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks = (0..20).map(|number| {
        let (queue, now, most) = (Arc::clone(&queue), Arc::clone(&now), Arc::clone(&most));
        tokio::spawn(async move {
            let _turn = queue.enter(&format!("r-{}", number % 4), 1.0).await;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_many_requests_does_not_keep_out_one_with_a_single_one() {
    let queue = Arc::new(Queue::new(rates(Some(1), None, None)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let first = queue.enter("r-many", 1.0).await;
    let mut tasks = Vec::new();
    for who in ["r-many", "r-many", "r-many", "r-one"] {
        let (queue, order) = (Arc::clone(&queue), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let _turn = queue.enter(who, 1.0).await;
            lock(&order).push(who);
        }));
        settle().await;
    }
    drop(first);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*lock(&order), ["r-many", "r-one", "r-many", "r-many"]);
}

#[tokio::test(start_paused = true)]
async fn who_is_cancelled_while_waiting_or_at_its_turn_leaves_no_hole() {
    let queue = Arc::new(Queue::new(rates(Some(1), Some(6_000), None)));
    let first = queue.enter("a", 1.0).await;
    let waits = |who: &'static str| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.enter(who, 1.0).await })
    };
    let (gone, last) = (waits("b"), waits("c"));
    settle().await;
    gone.abort();
    settle().await;
    drop(first);
    let turn = last.await.unwrap();
    // One that was given its turn and never polled: the turn goes on.
    let handed = waits("d");
    settle().await;
    drop(turn);
    handed.abort();
    settle().await;
    assert!(queue.enter("e", 1.0).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn requests_a_minute_are_kept_to_and_little_is_saved_up() {
    let queue = Queue::new(rates(None, Some(60), None));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let start = Instant::now();
    for _ in 0..66 {
        queue.enter("r", 1.0).await;
    }
    let took = start.elapsed();
    assert!(
        (Duration::from_secs(60)..Duration::from_secs(61)).contains(&took),
        "6 at once, then one a second: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_a_minute_count_what_was_used_and_a_large_request_still_passes() {
    let queue = Queue::new(rates(None, None, Some(6_000)));
    let start = Instant::now();
    // Ten times the accumulated amount: it passes, and the next one waits for it.
    queue.enter("r", 6_000.0).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    queue.settle(6_000.0, 9_000.0);
    queue.enter("r", 1.0).await;
    let took = start.elapsed();
    assert!((Duration::from_secs(84)..Duration::from_secs(86)).contains(&took), "8 400 tokens late: {took:?}");
}

/// An endpoint that states impossible usage used to block all its callers for days.
#[tokio::test(start_paused = true)]
async fn what_an_endpoint_states_holds_nobody_up_for_longer_than_two_minutes() {
    let queue = Queue::new(rates(None, None, Some(6_000)));
    queue.enter("r-1", 6_000.0).await;
    queue.settle(6_000.0, f64::from(u32::MAX));
    let begun = Instant::now();
    queue.enter("r-1", 1.0).await;
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(60) && waited < Duration::from_secs(121), "{waited:?}");
}

#[test]
fn one_endpoint_has_one_queue_for_each_set_of_rates() {
    let queues = Queues::default();
    let (here, there) = (Digest::of(b"here"), Digest::of(b"there"));
    let slow = rates(Some(1), None, None);
    assert!(Arc::ptr_eq(&queues.of(here, slow), &queues.of(here, slow)));
    assert!(!Arc::ptr_eq(&queues.of(here, slow), &queues.of(there, slow)));
}

/// A model that fails this many times before it answers.
struct Failing(u32);

#[async_trait::async_trait]
impl Model for Failing {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: "failing".into(), context_tokens_max: 100 }
    }

    async fn ask(
        &self,
        _request: &ModelRequest,
        _heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        for _ in 0..self.0 {
            cost.again().await.expect("room");
        }
        Ok(ModelReply::default())
    }
}

/// Retries used to bypass the rate.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_made_again_counts_as_one_more_of_a_minute() {
    let request = ModelRequest {
        model: "m".into(),
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        format: Default::default(),
        prefill: None,
        stop: Vec::new(),
        output_tokens_max: 1,
        temperature: None,
        seed: None,
    };
    let since = Instant::now();
    let queued = Queued::new(Arc::new(Failing(9)), Arc::new(Queue::new(rates(Some(1), Some(60), None))));
    queued.complete(&request, &mut |_| {}).await.unwrap();
    // Ten of one a second, of which six were accumulated.
    assert!(since.elapsed() >= Duration::from_secs(4), "{:?}", since.elapsed());
}
