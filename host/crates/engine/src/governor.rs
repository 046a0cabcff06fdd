//! Limits of time: processor time, wall time and cancel, checked each time a guest yields.
//!
//! A guest yields about every million fuel, at most 0.3 ms apart, so a call ends that much late. The host's work on its
//! behalf is awaited here too, and so is bounded by the same wall time.

use crate::cooperative::CooperativeCall;
use longhaul_capabilities::{InFlight, Stop};
use longhaul_core::journal::Journal;
use longhaul_core::process_registry::GuestRecord;
use longhaul_core::{LimitHit, Limits};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Cancels calls. Clones share the state; a cancel is permanent.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<CancelLevel>>);

/// The requested end of a call, each stronger than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CancelLevel {
    GoOn,
    HandOver,
    End,
}

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(CancelLevel::GoOn)))
    }
}

impl Cancel {
    /// Ends every call that was given a clone, at its next yield, or when its effects in flight are answered.
    pub fn cancel(&self) {
        self.0.send_replace(CancelLevel::End);
    }

    /// As [`Cancel::cancel`] for work that another process continues: it also waits for answers of models, and all of
    /// it for up to [`HAND_OVER_MS_MAX`], since the other process would pay for them again.
    pub fn hand_over(&self) {
        self.0.send_modify(|wish| *wish = (*wish).max(CancelLevel::HandOver));
    }

    /// True when it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() != CancelLevel::GoOn
    }

    /// Returns when it is cancelled.
    pub async fn cancelled(&self) {
        self.wished(CancelLevel::HandOver).await;
    }

    /// Returns when a model's answer is no longer awaited: at once after a cancel, and after [`HAND_OVER_MS_MAX`] when
    /// the work is handed over.
    pub async fn waited(&self) {
        self.cancelled().await;
        let _ = tokio::time::timeout(Duration::from_millis(HAND_OVER_MS_MAX), self.wished(CancelLevel::End)).await;
    }

    async fn wished(&self, at_least: CancelLevel) {
        // The sender lives in this value, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|wish| *wish >= at_least).await;
    }
}

/// Runs a call within its limits of time.
pub(crate) async fn govern<T>(
    call: impl Future<Output = T>,
    limits: &Limits,
    journal: Option<&Arc<dyn Journal>>,
    cancel: &Cancel,
    in_flight: &InFlight,
    guest: &GuestRecord,
) -> Result<T, Stop> {
    let cpu_ms_max = limits.cpu_ms_max;
    let mut watched = TimedCall { call: CooperativeCall::new(call), cpu: Duration::ZERO, cpu_ms_max, journal, guest };
    let mut called_off = pin!(called_off(cancel, in_flight));
    let mut wall = pin!(tokio::time::sleep(Duration::from_millis(limits.wall_ms_max)));
    poll_fn(|cx| {
        // A call that was cancelled before it began never runs.
        if called_off.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Stop::Cancelled));
        }
        if let Poll::Ready(done) = Pin::new(&mut watched).poll(cx) {
            return Poll::Ready(done);
        }
        // A call that is cancelled while it is on a thread ends as it leaves the thread, and not at its next turn.
        if called_off.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Stop::Cancelled));
        }
        let late = || LimitHit::new("wall_ms_max", limits.wall_ms_max, limits.wall_ms_max);
        wall.as_mut().poll(cx).map(|()| Err(late().into()))
    })
    .await
}

/// The longest time that a cancelled call may continue for its effects in flight, in milliseconds. Most answer within
/// it; for one that does not, a person is asked when the run continues.
pub const IN_FLIGHT_MS_MAX: u64 = 30_000;

/// The longest time that a call that is handed over may continue for its effects and its models' answers, in
/// milliseconds: longer than models and tools take, so that only one that hangs is interrupted.
pub const HAND_OVER_MS_MAX: u64 = 600_000;

/// Returns when the call was cancelled and none of its awaited effects is in flight.
async fn called_off(cancel: &Cancel, in_flight: &InFlight) {
    cancel.cancelled().await;
    in_flight.close();
    tokio::select! {
        () = in_flight.answered() => return,
        () = cancel.waited() => {}
    }
    let _ = tokio::time::timeout(Duration::from_millis(IN_FLIGHT_MS_MAX), in_flight.landed()).await;
}

/// Adds up the time in which the call is on a thread.
struct TimedCall<'a, F> {
    call: CooperativeCall<F>,
    cpu: Duration,
    cpu_ms_max: u64,
    journal: Option<&'a Arc<dyn Journal>>,
    guest: &'a GuestRecord,
}

impl<F> TimedCall<'_, F> {
    /// While calls are answered from the journal, limits of time are off: they would not stop at the same place.
    fn check(&self) -> Result<(), LimitHit> {
        let used = u64::try_from(self.cpu.as_millis()).unwrap_or(u64::MAX);
        let replaying = self.journal.is_some_and(|journal| journal.is_replaying());
        if used > self.cpu_ms_max && !replaying {
            Err(LimitHit::new("cpu_ms_max", used, self.cpu_ms_max))
        } else {
            Ok(())
        }
    }
}

impl<F: Future> Future for TimedCall<'_, F> {
    type Output = Result<F::Output, Stop>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let start = Instant::now();
        let polled = Pin::new(&mut self.call).poll(cx);
        self.cpu += start.elapsed();
        self.guest.ran(u64::try_from(self.cpu.as_micros()).unwrap_or(u64::MAX));
        match polled {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => match self.check() {
                Ok(()) => Poll::Pending,
                Err(hit) => Poll::Ready(Err(hit.into())),
            },
        }
    }
}
