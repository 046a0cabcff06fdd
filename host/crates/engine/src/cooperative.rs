//! Cooperative turns on a thread: a guest that yields queues by a ticket, and its own task stays free to be woken.
//!
//! A task that yields stands in the runtime's queue behind all others, and nothing wakes it there: a cancel would wait
//! for the turn of its guest, measured at 5 ms behind 100 busy neighbours. So the guest's task goes to sleep, and a
//! ticket, a task that does nothing else, stands in the queue for it and wakes it when its turn has come. A cancel
//! wakes it at any time. The runtime's queue decides whose turn is next, not this module.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A call that takes turns with others.
pub(crate) struct CooperativeCall<F> {
    call: Pin<Box<F>>,
    turn: Arc<CooperativeTurn>,
    /// The waker that the call is polled with: it wakes through `turn`.
    waker: Waker,
}

struct CooperativeTurn {
    place: Mutex<QueuePlace>,
}

struct QueuePlace {
    stage: Stage,
    /// The task that polled the call last.
    task: Waker,
}

/// The state of the call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits to be woken.
    Asleep,
    /// It is on a thread.
    Running,
    /// It is on a thread and was woken meanwhile, as a guest that yields wakes itself.
    Yielding,
    /// It waits for its ticket.
    Queued,
}

impl<F> CooperativeCall<F> {
    pub(crate) fn new(call: F) -> Self {
        let place = QueuePlace { stage: Stage::Asleep, task: Waker::noop().clone() };
        let turn = Arc::new(CooperativeTurn { place: Mutex::new(place) });
        Self { call: Box::pin(call), waker: Waker::from(Arc::clone(&turn)), turn }
    }
}

impl<F: Future> Future for CooperativeCall<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { call, turn, waker } = &mut *self;
        if !turn.begin(cx.waker()) {
            return Poll::Pending;
        }
        let polled = call.as_mut().poll(&mut Context::from_waker(waker));
        if polled.is_pending() && turn.pause() {
            queue(QueueTicket(Arc::clone(turn)));
        }
        polled
    }
}

impl CooperativeTurn {
    /// True when it is the call's turn; otherwise notes the task to wake.
    fn begin(&self, task: &Waker) -> bool {
        let mut place = self.lock();
        place.task.clone_from(task);
        let begins = place.stage != Stage::Queued;
        if begins {
            place.stage = Stage::Running;
        }
        begins
    }

    /// The call left its thread. True when it yielded, and so needs a ticket.
    fn pause(&self) -> bool {
        let mut place = self.lock();
        let yields = place.stage == Stage::Yielding;
        place.stage = if yields { Stage::Queued } else { Stage::Asleep };
        yields
    }

    /// Its turn has come.
    fn call_up(&self) {
        let mut place = self.lock();
        place.stage = Stage::Asleep;
        let task = place.task.clone();
        drop(place);
        task.wake();
    }

    fn lock(&self) -> MutexGuard<'_, QueuePlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for CooperativeTurn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut place = self.lock();
        match place.stage {
            Stage::Asleep => {
                let task = place.task.clone();
                drop(place);
                task.wake();
            }
            Stage::Running => place.stage = Stage::Yielding,
            // It will be polled in any case.
            Stage::Yielding | Stage::Queued => {}
        }
    }
}

/// A place in the queue. It wakes the call when it is dropped, so also when its runtime ends.
struct QueueTicket(Arc<CooperativeTurn>);

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.0.call_up();
    }
}

/// Outside of a task, as in `block_on`, there is no queue, and the thread is the call's own.
fn queue(ticket: QueueTicket) {
    if tokio::task::try_id().is_some() {
        tokio::spawn(async move {
            to_the_back().await;
            drop(ticket);
        });
    }
}

/// Moves behind all tasks that wait now. Not `tokio::task::yield_now`, which comes back before them.
async fn to_the_back() {
    let mut went = false;
    std::future::poll_fn(|cx| {
        if went {
            return Poll::Ready(());
        }
        went = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn take(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    /// A guest that only yields, and counts its turns on a thread.
    fn yields(polled: &AtomicUsize) -> CooperativeCall<impl Future<Output = ()>> {
        CooperativeCall::new(std::future::poll_fn(|cx| {
            polled.fetch_add(1, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn poll<F: Future>(turns: &mut CooperativeCall<F>, task: &Arc<Woken>) -> Poll<F::Output> {
        Pin::new(turns).poll(&mut Context::from_waker(&Waker::from(Arc::clone(task))))
    }

    /// Runs work in a task, where the queue exists.
    fn in_a_task(work: impl Future<Output = ()> + Send + 'static) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { tokio::spawn(work).await.unwrap() });
    }

    #[test]
    fn a_guest_that_yields_is_on_a_thread_again_when_its_ticket_was_called_and_not_before() {
        in_a_task(async {
            let (polled, task) = (AtomicUsize::new(0), Arc::new(Woken::default()));
            let mut turns = yields(&polled);
            for turn in 1..4 {
                assert!(poll(&mut turns, &task).is_pending());
                assert!(poll(&mut turns, &task).is_pending(), "woken by somebody else");
                assert_eq!((polled.load(Ordering::Relaxed), task.take()), (turn, 0));
                to_the_back().await;
                assert_eq!(task.take(), 0, "the ticket stands behind who stood there before");
                to_the_back().await;
                assert_eq!(task.take(), 1, "its turn");
            }
        });
    }

    #[test]
    fn a_ticket_wakes_the_task_that_polls_the_call_by_then() {
        in_a_task(async {
            let (polled, first, second) = (AtomicUsize::new(0), Arc::default(), Arc::default());
            let mut turns = yields(&polled);
            assert!(poll(&mut turns, &first).is_pending());
            assert!(poll(&mut turns, &second).is_pending());
            to_the_back().await;
            to_the_back().await;
            assert_eq!((first.take(), second.take()), (0, 1));
        });
    }

    #[test]
    fn a_call_that_waits_for_something_is_woken_by_it_at_once() {
        in_a_task(async {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let (mut turns, task) = (CooperativeCall::new(receiver), Arc::new(Woken::default()));
            assert!(poll(&mut turns, &task).is_pending());
            assert_eq!(task.take(), 0);
            sender.send(7).unwrap();
            assert_eq!(task.take(), 1);
            assert_eq!(poll(&mut turns, &task), Poll::Ready(Ok(7)));
        });
    }

    #[test]
    fn without_a_queue_a_guest_that_yields_goes_on_at_once() {
        let (polled, task) = (AtomicUsize::new(0), Arc::new(Woken::default()));
        let mut turns = yields(&polled);
        for turn in 1..4 {
            assert!(poll(&mut turns, &task).is_pending());
            assert_eq!((polled.load(Ordering::Relaxed), task.take()), (turn, 1));
        }
    }
}
