//! Somebody is told: when a run asks, parks, fails or completes, or a task of a schedule has failed for good, a
//! command, an address or a mailbox of the operator's hears of it. Of a run its project's `longhaul.toml` says who; of a
//! task, `server.toml` of the data directory.
//!
//! What is told is a letter in the store, written in the transaction of the event that it is about, so a kill loses
//! none. A letter is sent once as far as can be known: an attempt is counted before it leaves, and one that a kill cut
//! off is made again under the same id. It says which run or task and what to type; what agents wrote, which may hold
//! secrets or prompts, is in it only where the operator says so.
//!
//! | file | holds |
//! |---|---|
//! | `notify.rs` | letters, and who sends them when |
//! | `notify/send.rs` | one letter on one way: a command, an address, a mailbox |

mod send;

use crate::home::Home;
use crate::trust;
use crate::wiring::World;
use longhaul_agents::ExecutionResult;
use longhaul_config::notify::{NotifyConfig, Occasion, Way};
use longhaul_config::{Config, server};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::text::{printable, truncate};
use longhaul_core::{Digest, Name, RunId};
use longhaul_records::record::{self, RunRecord};
use longhaul_schedule::{Task, TaskId};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Letters that are looked at once. Those that are done go after an hour.
const LETTERS_MAX: usize = 1_000;

/// For how long a letter that is done counts for the limit of its project, or of the data directory.
const HOUR_MS: u64 = 3_600_000;

/// When it is looked again for a `server.toml` that can be read, where a letter waits for one.
const MEND_WAIT_MS: u64 = 60_000;

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
    /// To what. Its fields stand among the others.
    #[serde(flatten)]
    pub about: About,
    /// When it happened, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What to type.
    pub command: String,
    /// What was asked, or how it ended; only where `[notify]` has `texts = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Letters of the same project, or of the data directory, that were not sent in the hour before, since there were
    /// too many.
    #[serde(default)]
    pub suppressed: u32,
}

/// What a letter is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum About {
    /// An event of a run.
    Run {
        /// The project.
        project: String,
        /// The run.
        run: RunId,
        /// The number of the event.
        event: u64,
    },
    /// The end of a task of a schedule.
    Task {
        /// The task.
        task: TaskId,
        /// The agent that was to do it.
        agent: Name,
        /// The schedule.
        schedule: Name,
        /// How often it was tried.
        attempts: u64,
        /// The limit that stopped the last attempt, if one did, such as `timeout_ms`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
    },
}

impl About {
    /// The run or the task.
    fn name(&self) -> &str {
        match self {
            Self::Run { run, .. } => run.as_str(),
            Self::Task { task, .. } => task.as_str(),
        }
    }

    /// Tells apart what happens to it: a task that failed may be tried again by hand, and fail again.
    fn number(&self) -> u64 {
        match self {
            Self::Run { event, .. } => *event,
            Self::Task { attempts, .. } => *attempts,
        }
    }

    /// Whose letters are counted together: those of one project, or of the data directory.
    fn counted_with(&self) -> Option<&str> {
        match self {
            Self::Run { project, .. } => Some(project),
            Self::Task { .. } => None,
        }
    }

    fn letter_id(&self) -> String {
        let digest = Digest::of_parts(&[self.name().as_bytes(), &self.number().to_be_bytes()]).to_string();
        format!("n-{}", &digest[..16])
    }
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
pub struct Mail {
    home: PathBuf,
    known: Mutex<Known>,
    /// Told when there may be a new one.
    wake: tokio::sync::Notify,
    sending: tokio::sync::Mutex<()>,
}

/// What is known of `[notify]` of the data directory.
#[derive(Default)]
struct Known {
    /// As it was read last.
    config: Option<NotifyConfig>,
    was_read: bool,
    /// What has been wrong with the file since.
    complaint: Option<String>,
}

impl Mail {
    /// For a data directory.
    pub fn new(home: &Home) -> Self {
        Self {
            home: home.path().to_owned(),
            known: Mutex::default(),
            wake: tokio::sync::Notify::new(),
            sending: tokio::sync::Mutex::default(),
        }
    }

    /// There may be a new letter.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// `[notify]` of the data directory as it is now. What is wrong with the file leaves it as it was read before, and
    /// is logged once.
    ///
    /// # Errors
    /// What is wrong with the file, where nothing was read before.
    pub(crate) fn config(&self) -> fault::Result<Option<NotifyConfig>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match server::notify(&self.home) {
            Ok(config) => *known = Known { config, was_read: true, complaint: None },
            Err(error) => {
                // What is wrong in TOML is shown over several lines.
                let complaint = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
                if known.complaint.as_deref() != Some(complaint.as_str()) {
                    tracing::warn!("who is told of tasks that failed stays as it was: {complaint}");
                    known.complaint = Some(complaint);
                }
                if !known.was_read {
                    return Err(error);
                }
            }
        }
        Ok(known.config.clone())
    }
}

/// Adds the letters about these events to the batch that keeps them.
///
/// What cannot be read of the configuration tells nobody: a run must not stop for it.
pub fn put_letters(mut batch: Batch, record: &RunRecord, events: &[RunEvent]) -> fault::Result<Batch> {
    if events.iter().all(|event| occasion(&event.event).is_none()) {
        return Ok(batch);
    }
    let Some(config) = record.config_now().ok().and_then(|config| config.notify) else { return Ok(batch) };
    for event in events {
        let Some((occasion, command, text)) = occasion(&event.event).filter(|(one, ..)| config.on.contains(one)) else {
            continue;
        };
        let (project, run) = (record.project.clone(), record.run.clone());
        let about = About::Run { project, run, event: event.number };
        let letter = Letter {
            id: about.letter_id(),
            occasion,
            about,
            at_ms: event.at_ms,
            command: command.replace("RUN", record.run.as_str()),
            text: told(&config, text),
            suppressed: 0,
        };
        batch = put(batch, &config, letter)?;
    }
    Ok(batch)
}

/// Adds the letter about a task that has failed for good to the batch that keeps its end.
///
/// As with runs, a configuration that was never read tells nobody: a task must not stay running for it.
pub(crate) fn put_letter_of(
    batch: Batch,
    mail: &Mail,
    task: &Task,
    result: &ExecutionResult,
    at_ms: u64,
) -> fault::Result<Batch> {
    let config = mail.config().ok().flatten();
    let Some(config) = config.filter(|config| config.on.contains(&Occasion::Fails)) else { return Ok(batch) };
    let about = About::Task {
        task: task.id.clone(),
        agent: task.agent.clone(),
        schedule: task.schedule.clone(),
        attempts: task.attempts.len() as u64,
        limit: result.limit.clone(),
    };
    let letter = Letter {
        id: about.letter_id(),
        occasion: Occasion::Fails,
        about,
        at_ms,
        command: format!("longhaul schedule tasks --task {}", task.id),
        text: result.error_message.as_deref().and_then(|error| told(&config, error)),
        suppressed: 0,
    };
    put(batch, &config, letter)
}

/// A text as letters have it, where they may have any.
fn told(config: &NotifyConfig, text: &str) -> Option<String> {
    config.texts.then(|| printable(&truncate(text, TEXT_BYTES_MAX), TEXT_BYTES_MAX * 2))
}

/// Adds a letter that waits to be sent on each way.
fn put(batch: Batch, config: &NotifyConfig, letter: Letter) -> fault::Result<Batch> {
    let due_ms = letter.at_ms;
    let waits = |way| Sending { way, attempts: 0, due_ms, state: SendState::Waits };
    let stored = Stored { ways: config.ways().into_iter().map(waits).collect(), letter };
    Ok(batch.put(Table::States, key(&stored.letter), serde_json::to_vec(&stored)?))
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
        Err(_) => tracing::warn!("letters are left for the next process that works on a run or on schedules"),
    }
}

/// Sends every letter that is due; answers when the next one is.
async fn deliver_due(world: &World) -> fault::Result<Option<u64>> {
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
    async fn send(&self, mut stored: Stored) -> fault::Result<Option<u64>> {
        let is_of_a_task = matches!(stored.letter.about, About::Task { .. });
        if is_of_a_task && self.world.mail.config().is_err() {
            // Who mends the file wants to be told still.
            return Ok(Some(self.world.clock.now_ms().saturating_add(MEND_WAIT_MS)));
        }
        let Some((config, directory)) = self.config(&stored.letter.about)? else {
            // Nobody is to be told any more.
            stored.ways.clear();
            return self.keep(&stored).await.map(|()| None);
        };
        stored.letter.suppressed = self.suppressed(&stored.letter.about);
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
    ) -> fault::Result<()> {
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
                let of = stored.letter.about.name();
                tracing::warn!(of, "attempt {attempts} to tell by {way}: {error:#}");
                if attempts >= config.attempts_max { SendState::GivenUp } else { SendState::Waits }
            }
        };
        self.keep(stored).await
    }

    async fn keep(&self, stored: &Stored) -> fault::Result<()> {
        let batch = Batch::new().put(Table::States, key(&stored.letter), serde_json::to_vec(stored)?);
        Ok(self.world.store.commit(batch).await?)
    }

    /// Who is told, and where commands run.
    fn config(&self, about: &About) -> fault::Result<Option<(NotifyConfig, PathBuf)>> {
        let About::Run { run, .. } = about else {
            let home = self.world.home.path();
            return Ok(self.world.mail.config()?.map(|config| (config, home.to_owned())));
        };
        let Some(record) = record::record(&*self.world.store, run)? else { return Ok(None) };
        let config: Option<Config> = record.config_now().ok();
        if let Some(config) = &config
            && let Err(error) = trust::expect(&*self.world.store, &record.directory, config)
        {
            tracing::warn!(run = %record.run, "nobody is told: {error:#}");
            return Ok(None);
        }
        Ok(config.and_then(|config| config.notify).map(|notify| (notify, record.directory)))
    }

    /// Letters that count with this one and left in the hour before it.
    fn sent(&self, letter: &Letter) -> u32 {
        let since = letter.at_ms.saturating_sub(HOUR_MS);
        let left = |one: &&Stored| one.ways.iter().any(|sending| sending.attempts > 0);
        let counted = |one: &&Stored| {
            one.letter.about.counted_with() == letter.about.counted_with()
                && one.letter.at_ms >= since
                && one.letter.id != letter.id
        };
        u32::try_from(self.letters.iter().filter(counted).filter(left).count()).unwrap_or(u32::MAX)
    }

    fn suppressed(&self, about: &About) -> u32 {
        let since = self.world.clock.now_ms().saturating_sub(HOUR_MS);
        let is_suppressed = |one: &&Stored| {
            one.letter.about.counted_with() == about.counted_with()
                && one.letter.at_ms >= since
                && one.ways.iter().any(|sending| sending.state == SendState::Suppressed)
        };
        u32::try_from(self.letters.iter().filter(is_suppressed).count()).unwrap_or(u32::MAX)
    }
}

/// Every letter, by run or task, and their keys.
fn letters(store: &dyn Store) -> fault::Result<(Vec<Stored>, Vec<Key>)> {
    let found = store.scan(Table::States, &prefix(), None, LETTERS_MAX)?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).or_internal(|| "a letter is damaged");
    let letters = found.iter().map(|(_, bytes)| read(bytes)).collect::<fault::Result<_>>()?;
    Ok((letters, found.into_iter().map(|(key, _)| Key::from_bytes(key)).collect()))
}

async fn forget(store: &dyn Store, key: &Key) -> fault::Result<()> {
    let mut batch = Batch::new();
    batch.push(Op::Delete(Table::States, key.clone()));
    Ok(store.commit(batch).await?)
}

fn prefix() -> Key {
    Key::of("letters")
}

fn key(letter: &Letter) -> Key {
    prefix().and(letter.about.name()).number(letter.about.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, about: &About) {
        let letter: Letter = serde_json::from_str(json).expect("a letter");
        assert_eq!(letter.about, *about);
        assert_eq!(serde_json::to_string(&letter).expect("JSON"), json);
    }

    #[test]
    fn a_letter_about_a_run_is_as_it_always_was_and_one_about_a_task_names_that() {
        let run = About::Run { project: "kept".into(), run: RunId::from_text("r-1"), event: 7 };
        check(
            r#"{"id":"n-0","occasion":"parks","project":"kept","run":"r-1","event":7,"at_ms":5,"command":"c","text":"t","suppressed":2}"#,
            &run,
        );
        let task = |limit: Option<&str>| About::Task {
            task: TaskId::from_text("t-1"),
            agent: "a".parse().expect("a name"),
            schedule: "s".parse().expect("a name"),
            attempts: 4,
            limit: limit.map(str::to_owned),
        };
        check(
            r#"{"id":"n-0","occasion":"fails","task":"t-1","agent":"a","schedule":"s","attempts":4,"at_ms":5,"command":"c","suppressed":0}"#,
            &task(None),
        );
        check(
            r#"{"id":"n-0","occasion":"fails","task":"t-1","agent":"a","schedule":"s","attempts":4,"limit":"timeout_ms","at_ms":5,"command":"c","suppressed":0}"#,
            &task(Some("timeout_ms")),
        );
    }

    #[test]
    fn letters_of_a_project_and_of_the_data_directory_are_counted_apart() {
        let run = |project: &str| About::Run { project: project.into(), run: RunId::from_text("r-1"), event: 1 };
        let task = |id: &str| About::Task {
            task: TaskId::from_text(id),
            agent: "a".parse().expect("a name"),
            schedule: "s".parse().expect("a name"),
            attempts: 1,
            limit: None,
        };
        assert_eq!(task("t-1").counted_with(), task("t-2").counted_with());
        assert_ne!(task("t-1").counted_with(), run("").counted_with());
        assert_ne!(run("a").counted_with(), run("b").counted_with());
    }
}
