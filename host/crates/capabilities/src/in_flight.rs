//! Effects that are on their way, and the wish to end.
//!
//! Who pauses a run wants no new effect, and wants to know of the ones that have left: one that is cut
//! off has an outcome that nobody knows. So no call leaves after [`InFlight::close`], and whoever
//! cancels may wait for those before with [`InFlight::landed`]. What touches nothing is not counted.

use longhaul_core::journal::EffectClass;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The effects of one invocation. Clones share them.
#[derive(Clone, Debug)]
pub struct InFlight {
    count: Arc<watch::Sender<usize>>,
    closing: Arc<AtomicBool>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)), closing: Arc::default() }
    }
}

impl InFlight {
    /// From now on no call leaves.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Returns when no effect is on its way.
    pub async fn landed(&self) {
        // The sender is ours, so waiting cannot fail.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// An effect of this class is on its way until what is answered is dropped.
    pub(crate) fn leave(&self, class: EffectClass) -> Option<OnItsWay> {
        (class != EffectClass::ReadOnly).then(|| {
            self.count.send_modify(|count| *count += 1);
            OnItsWay(Arc::clone(&self.count))
        })
    }
}

/// One effect.
pub(crate) struct OnItsWay(Arc<watch::Sender<usize>>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
