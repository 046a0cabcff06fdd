//! Somebody is told: when a run asks, parks, fails or completes, a command, an address or a mailbox of the operator's
//! hears of it.
//!
//! What is told is a letter in the store, written in the transaction of the event that it is about, so a kill loses
//! none. A letter is sent once as far as can be known: an attempt is counted before it leaves, and one that a kill cut
//! off is made again under the same id. It says which run and what to type; what agents wrote, which may hold secrets or
//! prompts, is in it only where the operator says so.
//!
//! | file | holds |
//! |---|---|
//! | `notify.rs` | letters, and who sends them when |
//! | `notify/config.rs` | `[notify]` |
//! | `notify/send.rs` | one letter on one way: a command, an address, a mailbox |

pub mod config;
mod send;

use crate::config::Config;
use crate::run::{self, RunRecord};
use crate::wiring::World;
use anyhow::Context as _;
use config::{NotifyConfig, Occasion, Way};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::text::{printable, truncate};
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Letters that are looked at once. Those that are done go after an hour.
const LETTERS_MAX: usize = 1_000;

/// For how long a letter that is done counts for the limit of its project.
const HOUR_MS: u64 = 3_600_000;

/// Longest text of an event that a letter holds, in bytes.
const TEXT_BYTES_MAX: usize = 500;

/// How long a process that ends waits for letters that are due.
const LAST_POST: Duration = Duration::from_secs(20);

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The same for every attempt.
    pub id: String,
    /// What happened.
    pub occasion: Occasion,
    /// The project.
    pub project: String,
    /// The run.
    pub run: RunId,
    /// The number of the event.
    pub event: u64,
    /// When it happened, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What to type.
    pub command: String,
    /// What was asked, or how it ended; only where `[notify]` has `texts = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Letters of this project that were not sent in the hour before, since there were too many.
    #[serde(default)]
    pub suppressed: u32,
}

/// A letter in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    letter: Letter,
    ways: Vec<Sending>,
}

/// A letter on one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sending {
    way: Way,
    attempts: u32,
    /// When it is tried, or was tried for the last time.
    due_ms: u64,
    state: SendState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SendState {
    Waits,
    Sent,
    GivenUp,
    Suppressed,
}

/// Who sends letters, one process at a time: the owner of the data directory.
#[derive(Default)]
pub struct Mail {
    /// Told when there may be a new one.
    wake: tokio::sync::Notify,
    sending: tokio::sync::Mutex<()>,
}

impl Mail {
    /// There may be a new letter.
    pub fn wake(&self) {
        self.wake.notify_one();
    }
}

/// Adds the letters about these events to the batch that keeps them.
///
/// What cannot be read of the configuration tells nobody: a run must not stop for it.
pub fn put_letters(mut batch: Batch, record: &RunRecord, events: &[RunEvent]) -> anyhow::Result<Batch> {
    if events.iter().all(|event| occasion(&event.event).is_none()) {
        return Ok(batch);
    }
    let Some(config) = record.config_now().ok().and_then(|config| config.notify) else { return Ok(batch) };
    for event in events {
        let Some((occasion, command, text)) = occasion(&event.event).filter(|(one, ..)| config.on.contains(one)) else {
            continue;
        };
        let number = event.number.to_be_bytes();
        let digest = Digest::of_parts(&[record.run.as_str().as_bytes(), &number]).to_string();
        let letter = Letter {
            id: format!("n-{}", &digest[..16]),
            occasion,
            project: record.project.clone(),
            run: record.run.clone(),
            event: event.number,
            at_ms: event.at_ms,
            command: command.replace("RUN", record.run.as_str()),
            text: config.texts.then(|| printable(&truncate(text, TEXT_BYTES_MAX), TEXT_BYTES_MAX * 2)),
            suppressed: 0,
        };
        let waits = |way| Sending { way, attempts: 0, due_ms: event.at_ms, state: SendState::Waits };
        let stored = Stored { ways: config.ways().into_iter().map(waits).collect(), letter };
        batch = batch.put(Table::States, key(&stored.letter), serde_json::to_vec(&stored)?);
    }
    Ok(batch)
}

/// What an event is an occasion for, what to type then, and its text.
fn occasion(event: &Event) -> Option<(Occasion, &str, &str)> {
    match event {
        Event::Parked { question, answer_with } if answer_with.starts_with("longhaul approvals") => {
            Some((Occasion::Asks, answer_with, question))
        }
        Event::Parked { question, answer_with } => Some((Occasion::Parks, answer_with, question)),
        Event::RunEnded { status, summary, .. } => match status.as_str() {
            "completed" => Some((Occasion::Completes, "longhaul report RUN", summary)),
            // Who gave it up knows.
            "abandoned" => None,
            _ => Some((Occasion::Fails, "longhaul report RUN", summary)),
        },
        _ => None,
    }
}

/// Sends letters as they come, for as long as it is not dropped.
pub async fn deliver_for_ever(world: Arc<World>) {
    loop {
        let next = match deliver_due(&world).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!("letters could not be sent: {error:#}");
                None
            }
        };
        let wait = next.map(|at| at.saturating_sub(world.clock.now_ms()));
        tokio::select! {
            () = world.mail.wake.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait.unwrap_or(HOUR_MS))) => {}
        }
    }
}

/// Ends the courier between two letters, and sends what is due before the process ends.
pub async fn deliver_last(world: &World, courier: JoinHandle<()>) {
    let last = async {
        drop(world.mail.sending.lock().await);
        courier.abort();
        // It holds the world, and so the lock of the data directory.
        let _ = courier.await;
        deliver_due(world).await
    };
    match tokio::time::timeout(LAST_POST, last).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!("letters could not be sent: {error:#}"),
        Err(_) => tracing::warn!("letters are left for the next process that works on a run"),
    }
}

/// Sends every letter that is due; answers when the next one is.
async fn deliver_due(world: &World) -> anyhow::Result<Option<u64>> {
    let _alone = world.mail.sending.lock().await;
    let mut next: Option<u64> = None;
    let (letters, keys) = letters(&*world.store)?;
    for (at, stored) in letters.iter().enumerate() {
        let now_ms = world.clock.now_ms();
        let waits = |one: &&Sending| one.state == SendState::Waits;
        match stored.ways.iter().filter(waits).map(|one| one.due_ms).min() {
            None if stored.letter.at_ms.saturating_add(HOUR_MS) < now_ms => forget(&*world.store, &keys[at]).await?,
            None => {}
            Some(due_ms) if due_ms > now_ms => next = Some(next.map_or(due_ms, |known| known.min(due_ms))),
            Some(_) => {
                // Those that left in this round count as well.
                let (letters, _) = self::letters(&*world.store)?;
                let later = Post { world, letters: &letters }.send(stored.clone()).await?;
                next = next.into_iter().chain(later).min();
            }
        }
    }
    Ok(next)
}

/// One round of sending, with all letters that there are for the limits.
struct Post<'a> {
    world: &'a World,
    letters: &'a [Stored],
}

impl Post<'_> {
    /// Sends a letter on every way that is due; answers when it is to be tried again.
    async fn send(&self, mut stored: Stored) -> anyhow::Result<Option<u64>> {
        let Some((config, directory)) = self.config(&stored.letter.run)? else {
            // Nobody is to be told any more.
            stored.ways.clear();
            return self.keep(&stored).await.map(|()| None);
        };
        let project = &stored.letter.project;
        stored.letter.suppressed = self.suppressed(project);
        let is_new = stored.ways.iter().all(|one| one.attempts == 0);
        let over = is_new && self.sent(&stored.letter) >= config.per_hour_max;
        for at in 0..stored.ways.len() {
            let one = &stored.ways[at];
            if one.state != SendState::Waits || one.due_ms > self.world.clock.now_ms() {
                continue;
            }
            if over {
                stored.ways[at].state = SendState::Suppressed;
                continue;
            }
            self.attempt(&mut stored, at, &config, &directory).await?;
        }
        self.keep(&stored).await?;
        Ok(stored.ways.iter().filter(|one| one.state == SendState::Waits).map(|one| one.due_ms).min())
    }

    async fn attempt(
        &self,
        stored: &mut Stored,
        at: usize,
        config: &NotifyConfig,
        directory: &Path,
    ) -> anyhow::Result<()> {
        let one = &mut stored.ways[at];
        one.attempts += 1;
        one.due_ms = self.world.clock.now_ms().saturating_add(config.wait_ms(one.attempts));
        let (way, attempts) = (one.way, one.attempts);
        // Counted before it leaves: a kill in the middle must not make it a first attempt again.
        self.keep(stored).await?;
        self.world.crash.reach("notify.before-send");
        let sent = send::send(&stored.letter, way, config, directory).await;
        self.world.crash.reach("notify.after-send");
        stored.ways[at].state = match sent {
            Ok(()) => SendState::Sent,
            Err(error) => {
                tracing::warn!(run = %stored.letter.run, "attempt {attempts} to tell by {way}: {error:#}");
                if attempts >= config.attempts_max { SendState::GivenUp } else { SendState::Waits }
            }
        };
        self.keep(stored).await
    }

    async fn keep(&self, stored: &Stored) -> anyhow::Result<()> {
        let batch = Batch::new().put(Table::States, key(&stored.letter), serde_json::to_vec(stored)?);
        Ok(self.world.store.commit(batch).await?)
    }

    fn config(&self, run: &RunId) -> anyhow::Result<Option<(NotifyConfig, std::path::PathBuf)>> {
        let Some(record) = run::record(&*self.world.store, run)? else { return Ok(None) };
        let config: Option<Config> = record.config_now().ok();
        Ok(config.and_then(|config| config.notify).map(|notify| (notify, record.directory)))
    }

    /// Letters of the project that left in the hour before this one.
    fn sent(&self, letter: &Letter) -> u32 {
        let since = letter.at_ms.saturating_sub(HOUR_MS);
        let left = |one: &&Stored| one.ways.iter().any(|sending| sending.attempts > 0);
        let counted = |one: &&Stored| {
            one.letter.project == letter.project && one.letter.at_ms >= since && one.letter.id != letter.id
        };
        u32::try_from(self.letters.iter().filter(counted).filter(left).count()).unwrap_or(u32::MAX)
    }

    fn suppressed(&self, project: &str) -> u32 {
        let since = self.world.clock.now_ms().saturating_sub(HOUR_MS);
        let is_suppressed = |one: &&Stored| {
            one.letter.project == project
                && one.letter.at_ms >= since
                && one.ways.iter().any(|sending| sending.state == SendState::Suppressed)
        };
        u32::try_from(self.letters.iter().filter(is_suppressed).count()).unwrap_or(u32::MAX)
    }
}

/// Every letter, by run and event, and their keys.
fn letters(store: &dyn Store) -> anyhow::Result<(Vec<Stored>, Vec<Key>)> {
    let found = store.scan(Table::States, &prefix(), None, LETTERS_MAX)?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).context("a letter is damaged");
    let letters = found.iter().map(|(_, bytes)| read(bytes)).collect::<anyhow::Result<_>>()?;
    Ok((letters, found.into_iter().map(|(key, _)| Key::from_bytes(key)).collect()))
}

async fn forget(store: &dyn Store, key: &Key) -> anyhow::Result<()> {
    let mut batch = Batch::new();
    batch.push(Op::Delete(Table::States, key.clone()));
    Ok(store.commit(batch).await?)
}

fn prefix() -> Key {
    Key::of("letters")
}

fn key(letter: &Letter) -> Key {
    prefix().and(letter.run.as_str()).number(letter.event)
}
