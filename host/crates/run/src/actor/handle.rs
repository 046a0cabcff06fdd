//! The handle of a run that is active in this process: the orders to its actor, and the reason why it waits.
//!
//! A handle decides nothing and reads no state. Its orders are refused once the run has stopped.

use longhaul_core::fault::{self, Fault};
use longhaul_core::store::Batch;
use longhaul_harness::{Input, OrderRefusal};
use longhaul_records::bus::EventBus;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// An order to the actor of a run.
pub(super) enum Order {
    /// An input of the harness, with the rows to store if it is accepted; the reply says whether it was.
    Input(Box<Input>, Batch, oneshot::Sender<Result<(), OrderRefusal>>),
    /// Stops at once and records nothing: another process, or a later one, resumes the run from the store.
    Stop,
    /// As `Stop`, after the effects and model calls in flight have ended.
    HandOver,
}

/// The handle through which other tasks reach a run that is active in this process.
#[derive(Clone)]
pub struct RunHandle {
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) bus: EventBus,
    pub(super) waits: Waits,
}

impl RunHandle {
    /// Sends an input.
    pub async fn input(&self, input: Input) -> fault::Result<()> {
        self.input_with(input, Batch::new()).await
    }

    /// Sends an input, with rows that are stored in the same transaction as its step.
    pub async fn input_with(&self, input: Input, also: Batch) -> fault::Result<()> {
        let stopped = || Fault::conflict("the run has just stopped; try again");
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Input(Box::new(input), also, answer)).await.map_err(|_| stopped())?;
        Ok(answered.await.map_err(|_| stopped())??)
    }

    /// Asks the actor to stop; it has stopped when [`Gone`](longhaul_records::bus::BusMessage::Gone) arrives.
    pub async fn stop(&self) {
        let _ = self.orders.send(Order::Stop).await;
    }

    /// Asks the actor to stop after the effects and model calls in flight have ended.
    pub async fn hand_over(&self) {
        let _ = self.orders.send(Order::HandOver).await;
    }

    /// The reason why the run waits for capacity of the machine, while it waits.
    pub fn waits(&self) -> Option<String> {
        self.waits.get()
    }

    /// The event bus of the run's watchers.
    pub fn bus(&self) -> &EventBus {
        &self.bus
    }
}

/// The reason why a run waits for capacity, while it waits.
#[derive(Clone, Default)]
pub(super) struct Waits(Arc<Mutex<Option<String>>>);

impl Waits {
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}
