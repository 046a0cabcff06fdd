//! Effects in flight, and the closing of an invocation for new ones.
//!
//! A run that pauses starts no new effect, and has to know the outcome of those in flight: an interrupted one has an
//! unknown outcome. So no call starts after [`InFlight::close`], and a cancel may wait for the earlier ones with
//! [`InFlight::landed`]. Calls without effects are not counted. A model call has no effect and costs money: a run that
//! is handed over also waits for its answer, with [`InFlight::answered`].

use longhaul_core::journal::EffectClass;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The effects of one invocation. Clones share them.
#[derive(Clone, Debug)]
pub struct InFlight {
    count: Arc<watch::Sender<usize>>,
    /// Model calls in flight.
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
    /// From now on no call starts.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Returns when no effect is in flight.
    pub async fn landed(&self) {
        // The sender lives in this value, so waiting cannot fail.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Returns when no effect and no model call is in flight.
    pub async fn answered(&self) {
        // An answer may lead to an effect; after [`InFlight::close`] it leads to none.
        let _ = self.asked.subscribe().wait_for(|count| *count == 0).await;
        self.landed().await;
    }

    /// A model call is in flight until the returned value is dropped, after its answer is stored.
    pub(crate) fn ask_model(&self) -> InFlightEffect {
        InFlightEffect::on(&self.asked)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// An effect of this class is in flight until the returned value is dropped.
    pub(crate) fn leave(&self, class: EffectClass) -> Option<InFlightEffect> {
        (class != EffectClass::ReadOnly).then(|| InFlightEffect::on(&self.count))
    }
}

/// One effect, or one model call.
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
