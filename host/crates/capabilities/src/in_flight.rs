//! Effects that are on their way, and the wish to end.
//!
//! Who pauses a run wants no new effect, and wants to know of the ones that have left: one that is cut
//! off has an outcome that nobody knows. So no call leaves after [`InFlight::close`], and whoever
//! cancels may wait for those before with [`InFlight::landed`]. What touches nothing is not counted.
//! A model that is asked touches nothing and is paid for: who hands a run over waits for its answer,
//! too, with [`InFlight::answered`].

use longhaul_core::journal::EffectClass;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The effects of one invocation. Clones share them.
#[derive(Clone, Debug)]
pub struct InFlight {
    count: Arc<watch::Sender<usize>>,
    /// Models that are asked.
    asked: Arc<watch::Sender<usize>>,
    closing: Arc<AtomicBool>,
}

impl Default for InFlight {
    fn default() -> Self {
        let none = || Arc::new(watch::Sender::new(0));
        Self { count: none(), asked: none(), closing: Arc::default() }
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

    /// Returns when no effect is on its way and no model is asked.
    pub async fn answered(&self) {
        // An answer may lead to an effect; after [`InFlight::close`] it leads to none.
        let _ = self.asked.subscribe().wait_for(|count| *count == 0).await;
        self.landed().await;
    }

    /// A model is asked until what is answered is dropped, with its answer kept.
    pub(crate) fn ask_model(&self) -> InFlightEffect {
        InFlightEffect::on(&self.asked)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// An effect of this class is on its way until what is answered is dropped.
    pub(crate) fn leave(&self, class: EffectClass) -> Option<InFlightEffect> {
        (class != EffectClass::ReadOnly).then(|| InFlightEffect::on(&self.count))
    }
}

/// One effect, or one question to a model.
pub(crate) struct InFlightEffect(Arc<watch::Sender<usize>>);

impl InFlightEffect {
    fn on(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for InFlightEffect {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
