//! Watching a run from the process that works on it: stored events, then live ones. Refuses to make the run wait for a
//! watcher, and to keep one that does not read.

use super::{RunNotification, Service};
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::StreamToken;
use longhaul_records::bus::{BusMessage, Subscription};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{self, OwnedPermit};

/// Longest time that a watcher may read nothing before it is disconnected.
const READER_WAIT: Duration = Duration::from_secs(30);

/// Sends stored events, then live ones, until the run is inactive. It never waits for long: the run does not wait at
/// all, and a watcher that does not read is disconnected.
pub async fn watch_here(service: &Service, run: &RunId, after: u64, sender: &mpsc::Sender<RunNotification>) {
    // Kept for the last word, which must not need room.
    let Ok(last_word) = sender.clone().reserve_owned().await else { return };
    Watcher { service, run, last: after, sender, is_behind: false, waits_max: READER_WAIT }.watch(last_word).await;
}

/// A watcher of a run that is active here.
struct Watcher<'a> {
    service: &'a Service,
    run: &'a RunId,
    /// The last event that was sent.
    last: u64,
    sender: &'a mpsc::Sender<RunNotification>,
    /// True when parts of what models say were lost since the last one that was sent.
    is_behind: bool,
    waits_max: Duration,
}

/// The reason for which a watcher gets no more events.
enum WatcherEnd {
    /// It went, or the store does not answer.
    Gone,
    /// It does not read.
    Slow,
}

impl Watcher<'_> {
    async fn watch(mut self, last_word: OwnedPermit<RunNotification>) {
        match self.watch_on().await {
            Ok(why) => drop(last_word.send(RunNotification::Gone(why))),
            Err(WatcherEnd::Slow) => drop(last_word.send(RunNotification::Dropped)),
            Err(WatcherEnd::Gone) => {}
        }
    }

    /// Watches until the run is gone; returns what ended it, if it was not the run itself.
    async fn watch_on(&mut self) -> Result<Option<String>, WatcherEnd> {
        // The watch begins before the store is read, so that nothing falls between.
        let watching = self.service.watch(self.run);
        self.catch_up().await?;
        let Some(Subscription { mut receiver, so_far }) = watching else { return Ok(None) };
        so_far.into_iter().for_each(|token| self.send_token(token));
        loop {
            match receiver.recv().await {
                // `last` is the watcher's word at first, and may be the end of all numbers.
                Ok(BusMessage::Event(event)) if self.last.checked_add(1) == Some(event.number) => {
                    self.send_event(event).await?;
                }
                // It was read from the store already, or something before it was not.
                Ok(BusMessage::Event(_)) => self.catch_up().await?,
                Ok(BusMessage::Token(token)) if self.is_behind => self.send_so_far(token),
                Ok(BusMessage::Token(token)) => self.send_token(token),
                Ok(BusMessage::Gone { why }) => {
                    self.catch_up().await?;
                    return Ok(why);
                }
                // A slow watcher missed events, which are in the store.
                Err(RecvError::Lagged(_)) => {
                    self.is_behind = true;
                    self.catch_up().await?;
                }
                Err(RecvError::Closed) => {
                    self.catch_up().await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Sends events that are stored.
    async fn catch_up(&mut self) -> Result<(), WatcherEnd> {
        loop {
            let events = self.service.events(self.run, self.last).map_err(|_| WatcherEnd::Gone)?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.send_event(event).await?;
            }
        }
    }

    async fn send_event(&mut self, event: RunEvent) -> Result<(), WatcherEnd> {
        let number = event.number;
        match self.sender.send_timeout(RunNotification::Event(event), self.waits_max).await {
            Ok(()) => self.last = number,
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => return Err(WatcherEnd::Slow),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => return Err(WatcherEnd::Gone),
        }
        Ok(())
    }

    /// A part is a live view: one that there is no room for is lost, and that is told before the next one.
    fn send_token(&mut self, token: StreamToken) {
        self.is_behind |= self.sender.try_send(RunNotification::Token(token)).is_err();
    }

    /// Tells of a loss, and then the present text as a whole.
    fn send_so_far(&mut self, token: StreamToken) {
        if self.sender.try_send(RunNotification::Lagged).is_err() {
            return;
        }
        self.is_behind = false;
        let so_far = self.service.so_far(self.run);
        let whole = so_far.into_iter().find(|one| one.invocation == token.invocation);
        self.send_token(whole.unwrap_or(token));
    }
}
