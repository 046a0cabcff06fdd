//! Drops the remains of a call off the path of its caller.
//!
//! Before its places in the pool serve again, the pages that an instance wrote are reset; an interpreter writes about a
//! megabyte. An engine with this option has a thread for it, so that a call returns before. The queue of that thread is
//! bounded: beyond the bound a caller drops for itself, so that callers cannot leave more than the thread drops. The
//! pool has places for the queue, beside those that it promises.
//!
//! A process that ends after its call drops nothing: the system takes all of its memory back at once, sooner than it
//! could be returned piece by piece.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Highest number of waiting drops, including the one in progress.
pub(crate) const CLEARING_MAX: u32 = 8;

/// The part of the program that drops what a call leaves.
pub(crate) enum Leftovers<T> {
    /// The caller, before the call returns.
    Caller,
    /// The thread of a queue.
    OfQueue(DeferredDrop<T>),
    /// The system, when the process ends.
    System,
}

impl<T> Clone for Leftovers<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Caller => Self::Caller,
            Self::OfQueue(queue) => Self::OfQueue(queue.clone()),
            Self::System => Self::System,
        }
    }
}

impl<T: Send + 'static> Leftovers<T> {
    /// Takes the remains of a call.
    pub(crate) fn take(&self, left: T) {
        match self {
            Self::Caller => drop(left),
            Self::OfQueue(queue) => queue.take(left),
            Self::System => std::mem::forget(left),
        }
    }
}

/// The queue of the thread, which ends when every clone of this is gone and the queue is empty.
pub(crate) struct DeferredDrop<T> {
    left: SyncSender<T>,
}

impl<T> Clone for DeferredDrop<T> {
    fn clone(&self) -> Self {
        Self { left: self.left.clone() }
    }
}

impl<T: Send + 'static> DeferredDrop<T> {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (left, taken) = sync_channel(CLEARING_MAX as usize - 1);
        std::thread::Builder::new().name("longhaul-clears".into()).spawn(move || taken.into_iter().for_each(drop))?;
        Ok(Self { left })
    }

    /// Takes the remains of a call.
    pub(crate) fn take(&self, left: T) {
        match self.left.try_send(left) {
            Ok(()) => {}
            Err(TrySendError::Full(left) | TrySendError::Disconnected(left)) => drop(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread::{ThreadId, current};

    /// Reports the beginning of its drop, and its thread, and waits until it may continue.
    struct Left {
        dropped_by: Sender<ThreadId>,
        may_go: Arc<Mutex<Receiver<()>>>,
    }

    impl Drop for Left {
        fn drop(&mut self) {
            self.dropped_by.send(current().id()).unwrap();
            if current().name() == Some("longhaul-clears") {
                let _ = self.may_go.lock().unwrap().recv();
            }
        }
    }

    #[test]
    fn the_caller_drops_what_is_left_unless_the_process_ends() {
        let (dropped_by, dropped) = channel();
        let left = || Left { dropped_by: dropped_by.clone(), may_go: Arc::new(Mutex::new(channel().1)) };
        Leftovers::Caller.clone().take(left());
        assert_eq!(dropped.try_recv(), Ok(current().id()));
        Leftovers::System.clone().take(left());
        assert!(dropped.try_recv().is_err());
    }

    #[test]
    fn the_caller_goes_on_until_as_much_waits_as_may_and_then_clears_for_itself() {
        let deferred_drop = DeferredDrop::start().unwrap();
        let ((dropped_by, dropped), (go, may_go)) = (channel(), channel());
        let may_go = Arc::new(Mutex::new(may_go));
        let left = || Left { dropped_by: dropped_by.clone(), may_go: Arc::clone(&may_go) };
        deferred_drop.take(left());
        let thread = dropped.recv().unwrap();
        assert_ne!(thread, current().id(), "it is on the thread");
        for _ in 1..CLEARING_MAX {
            deferred_drop.take(left());
        }
        assert!(dropped.try_recv().is_err(), "the others wait");
        deferred_drop.take(left());
        assert_eq!(dropped.try_recv(), Ok(current().id()), "one more is the caller's");
        drop((deferred_drop, go));
        for _ in 1..CLEARING_MAX {
            assert_eq!(dropped.recv(), Ok(thread), "what waits is cleared also when nobody asks any more");
        }
    }
}
