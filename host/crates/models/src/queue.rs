//! Queues of requests to one model: limits on parallel requests, requests a minute, and tokens a minute.
//!
//! Waiting requests are served in turns, run by run, so that a run with a hundred requests does not block one with a
//! single one; within a run they are served in order. Dropping a request cancels its wait. The tables of one process
//! with the same endpoint and the same key share a queue ([`Queues`]); other processes are unknown. A retry is another
//! request, and waits for the rates like any. Nothing is refused here.

use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Usage};
use longhaul_core::{Digest, InvocationId, LimitHit};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Longest time for which unused rates accumulate: providers count a minute in shorter pieces.
const SAVED_UP: Duration = Duration::from_secs(6);

/// Rates of one model. None: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rates {
    pub(crate) requests_at_once_max: Option<u32>,
    pub(crate) requests_per_minute_max: Option<u32>,
    pub(crate) tokens_per_minute_max: Option<u32>,
}

impl Rates {
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The queues of a process.
#[derive(Default)]
pub struct Queues(Mutex<HashMap<(Digest, Rates), Arc<Queue>>>);

impl Queues {
    pub(crate) fn of(&self, endpoint: Digest, rates: Rates) -> Arc<Queue> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(queues.entry((endpoint, rates)).or_insert_with(|| Arc::new(Queue::new(rates))))
    }
}

/// The queue of one endpoint.
pub(crate) struct Queue {
    at_once: Option<Turns>,
    /// One request at a time waits for the rates, with all others behind it.
    gate: Turns,
    requests: Option<Mutex<Bucket>>,
    tokens: Option<Mutex<Bucket>>,
}

impl Queue {
    fn new(rates: Rates) -> Self {
        let bucket = |a_minute: u32| Mutex::new(Bucket::new(f64::from(a_minute)));
        Self {
            at_once: rates.requests_at_once_max.map(|max| Turns::new(max as usize)),
            gate: Turns::new(1),
            requests: rates.requests_per_minute_max.map(bucket),
            tokens: rates.tokens_per_minute_max.map(bucket),
        }
    }

    /// Waits for a turn of `who`, which is held until the returned value is dropped.
    async fn enter(&self, who: &str, tokens: f64) -> Option<Turn> {
        let turn = match &self.at_once {
            Some(turns) => Some(turns.take(who).await),
            None => None,
        };
        self.pace(who, tokens).await;
        turn
    }

    /// Waits until the rates allow one more request.
    async fn pace(&self, who: &str, tokens: f64) {
        if self.requests.is_none() && self.tokens.is_none() {
            return;
        }
        let _gate = self.gate.take(who).await;
        for (bucket, amount) in [(&self.requests, 1.0), (&self.tokens, tokens)] {
            let Some(bucket) = bucket else { continue };
            loop {
                let wait = lock(bucket).take(amount);
                let Err(wait) = wait else { break };
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Corrects the estimate by a request's real usage: at most a minute's worth, whatever an endpoint states.
    fn settle(&self, taken: f64, used: f64) {
        if let Some(tokens) = &self.tokens {
            let mut bucket = lock(tokens);
            bucket.level -= (used - taken).min(60.0 * bucket.a_second);
        }
    }
}

/// A token bucket. It fills evenly and one request may overdraw it, which the next ones wait for.
struct Bucket {
    a_second: f64,
    full: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn new(a_minute: f64) -> Self {
        let a_second = a_minute / 60.0;
        let full = (a_second * SAVED_UP.as_secs_f64()).max(1.0);
        Self { a_second, full, level: full, at: Instant::now() }
    }

    /// Takes `amount`, or says how long to wait before trying again.
    fn take(&mut self, amount: f64) -> Result<(), Duration> {
        let now = Instant::now();
        self.level = (self.level + self.a_second * now.duration_since(self.at).as_secs_f64()).min(self.full);
        self.at = now;
        // A request that is larger than the bucket passes when it is full.
        let needed = amount.min(self.full);
        if self.level + 1e-9 >= needed {
            self.level -= amount;
            return Ok(());
        }
        Err(Duration::from_secs_f64((needed - self.level) / self.a_second).max(Duration::from_millis(1)))
    }
}

/// A limited number of turns at once; waiting callers are served in turns.
#[derive(Clone)]
struct Turns(Arc<Mutex<Waiting>>);

struct Waiting {
    free: usize,
    /// The waiting runs, the next one first. Each has a queue that is not empty.
    order: VecDeque<String>,
    queues: HashMap<String, VecDeque<oneshot::Sender<Turn>>>,
}

/// A turn, which ends when it is dropped.
pub(crate) struct Turn(Option<Turns>);

impl Turns {
    fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(Waiting { free: at_once.max(1), order: VecDeque::new(), queues: HashMap::new() })))
    }

    async fn take(&self, who: &str) -> Turn {
        let receiver = {
            let mut waiting = lock(&self.0);
            if waiting.free > 0 {
                waiting.free -= 1;
                return Turn(Some(self.clone()));
            }
            let (sender, receiver) = oneshot::channel();
            waiting.add(who, sender);
            receiver
        };
        // Its sender is dropped only with the turn that was sent to it.
        receiver.await.unwrap_or(Turn(None))
    }

    /// Passes a turn to the next waiting caller.
    fn give(&self) {
        let mut waiting = lock(&self.0);
        while let Some(sender) = waiting.next() {
            match sender.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // The receiver is gone. Its turn must not end here, where the list is locked.
                Err(mut turn) => turn.0 = None,
            }
        }
        waiting.free += 1;
    }
}

impl Waiting {
    fn add(&mut self, who: &str, sender: oneshot::Sender<Turn>) {
        let queue = self.queues.entry(who.to_owned()).or_default();
        if queue.is_empty() {
            self.order.push_back(who.to_owned());
        }
        queue.push_back(sender);
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let who = self.order.pop_front()?;
        let queue = self.queues.get_mut(&who)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&who);
        } else {
            self.order.push_back(who);
        }
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.give();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model with a queue of requests.
pub(crate) struct Queued {
    inner: Arc<dyn Model>,
    queue: Arc<Queue>,
    /// The run that asks.
    who: String,
}

impl Queued {
    pub(crate) fn new(inner: Arc<dyn Model>, queue: Arc<Queue>) -> Self {
        Self { inner, queue, who: String::new() }
    }
}

/// A retry keeps its turn, and waits for the rates.
struct Paced<'a> {
    queue: &'a Queue,
    who: &'a str,
    tokens: f64,
    cost: &'a dyn Cost,
}

#[async_trait::async_trait]
impl Cost for Paced<'_> {
    async fn again(&self) -> Result<(), LimitHit> {
        self.queue.pace(self.who, self.tokens).await;
        self.cost.again().await
    }

    fn sent(&self, bytes: u64) {
        self.cost.sent(bytes);
    }

    fn wasted(&self, usage: Usage) {
        self.cost.wasted(usage);
    }
}

#[async_trait::async_trait]
impl Model for Queued {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn cost_most(&self, request: &ModelRequest) -> Usage {
        self.inner.cost_most(request)
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let taken = f64::from(u32::try_from(request.tokens_most()).unwrap_or(u32::MAX));
        let _turn = self.queue.enter(&self.who, taken).await;
        let paced = Paced { queue: &self.queue, who: &self.who, tokens: taken, cost };
        let reply = self.inner.ask(request, heard, &paced).await?;
        let used = f64::from(reply.usage.input_tokens) + f64::from(reply.usage.output_tokens);
        self.queue.settle(taken, used);
        Ok(reply)
    }

    fn within(&self, invocation: &InvocationId, answered: &[Digest]) -> Option<Arc<dyn Model>> {
        let inner = self.inner.within(invocation, answered).unwrap_or_else(|| Arc::clone(&self.inner));
        Some(Arc::new(Self { inner, queue: Arc::clone(&self.queue), who: invocation.run().to_string() }))
    }
}

#[cfg(test)]
mod tests;
