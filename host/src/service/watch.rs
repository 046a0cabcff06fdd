//! Watching a run from the process that works on it: what is stored, then what comes. Refuses to make the run wait for a
//! watcher, and to keep one that does not read.

use super::{Seen, Service};
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::Token;
use longhaul_records::bus::{Heard, Watching};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{self, OwnedPermit};

/// How long a watcher may not read at all before it is let go.
const READER_WAIT: Duration = Duration::from_secs(30);

/// Sends what is stored, then what comes, until nobody works on the run. It never waits for long: the run does
/// not at all, and a watcher that does not read is let go.
pub async fn watch_here(service: &Service, run: &RunId, after: u64, sender: &mpsc::Sender<Seen>) {
    // Kept for the last word, which must not need room.
    let Ok(last_word) = sender.clone().reserve_owned().await else { return };
    Watcher { service, run, last: after, sender, is_behind: false, waits_max: READER_WAIT }.watch(last_word).await;
}

/// Who watches a run from here.
struct Watcher<'a> {
    service: &'a Service,
    run: &'a RunId,
    /// The last event that was sent.
    last: u64,
    sender: &'a mpsc::Sender<Seen>,
    /// Whether parts of what models say were lost since the last one that was sent.
    is_behind: bool,
    waits_max: Duration,
}

/// Why a watcher gets no more.
enum Left {
    /// It went, or the store does not answer.
    Gone,
    /// It does not read.
    Slow,
}

impl Watcher<'_> {
    async fn watch(mut self, last_word: OwnedPermit<Seen>) {
        match self.watch_on().await {
            Ok(why) => drop(last_word.send(Seen::Gone(why))),
            Err(Left::Slow) => drop(last_word.send(Seen::Dropped)),
            Err(Left::Gone) => {}
        }
    }

    /// Until the run is gone; gives what ended it, if it was not the run itself.
    async fn watch_on(&mut self) -> Result<Option<String>, Left> {
        // Before the store is read, so that nothing falls between.
        let watching = self.service.watch(self.run);
        self.catch_up().await?;
        let Some(Watching { mut receiver, so_far }) = watching else { return Ok(None) };
        so_far.into_iter().for_each(|token| self.send_token(token));
        loop {
            match receiver.recv().await {
                // Where to begin is the watcher's word, and may be the end of all numbers.
                Ok(Heard::Event(event)) if self.last.checked_add(1) == Some(event.number) => {
                    self.send_event(event).await?;
                }
                // It was read from the store already, or something before it was not.
                Ok(Heard::Event(_)) => self.catch_up().await?,
                Ok(Heard::Token(token)) if self.is_behind => self.send_so_far(token),
                Ok(Heard::Token(token)) => self.send_token(token),
                Ok(Heard::Gone { why }) => {
                    self.catch_up().await?;
                    return Ok(why);
                }
                // Too slow: events that were missed are in the store.
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
    async fn catch_up(&mut self) -> Result<(), Left> {
        loop {
            let events = self.service.events(self.run, self.last).map_err(|_| Left::Gone)?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.send_event(event).await?;
            }
        }
    }

    async fn send_event(&mut self, event: RunEvent) -> Result<(), Left> {
        let number = event.number;
        match self.sender.send_timeout(Seen::Event(event), self.waits_max).await {
            Ok(()) => self.last = number,
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => return Err(Left::Slow),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => return Err(Left::Gone),
        }
        Ok(())
    }

    /// A part is a live view: one that there is no room for is lost, and that is told before the next one.
    fn send_token(&mut self, token: Token) {
        self.is_behind |= self.sender.try_send(Seen::Token(token)).is_err();
    }

    /// After a loss: that there was one, and what is being said as a whole.
    fn send_so_far(&mut self, token: Token) {
        if self.sender.try_send(Seen::Lagged).is_err() {
            return;
        }
        self.is_behind = false;
        let so_far = self.service.so_far(self.run);
        let whole = so_far.into_iter().find(|one| one.invocation == token.invocation);
        self.send_token(whole.unwrap_or(token));
    }
}
