//! Notifications in the store: each is written in the transaction of its event, and sent when it is due, within an
//! hourly limit. Refuses to read the `[notify]` of an untrusted project.

use crate::notification::{Notification, NotificationSubject};
use crate::send;
use longhaul_agents::ExecutionResult;
use longhaul_config::notify::{NotificationChannel, NotificationEvent, NotifyConfig};
use longhaul_config::{Config, server};
use longhaul_core::Clock;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::text::{printable, truncate};
use longhaul_home::Home;
use longhaul_home::crash::CrashPoints;
use longhaul_records::record::{self, RunRecord};
use longhaul_schedule::ScheduledTask;
use longhaul_security::trust;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Notifications that one read returns. Those that are done are deleted after an hour.
const NOTIFICATIONS_MAX: usize = 1_000;

/// The time for which a notification that is done counts for the limit of its project, or of the data directory.
const HOUR_MS: u64 = 3_600_000;

/// Wait before another look for a readable `server.toml`, while a notification waits for one.
const MEND_WAIT_MS: u64 = 60_000;

/// Longest text of an event in a notification, in bytes.
const TEXT_BYTES_MAX: usize = 500;

/// The time for which a process that ends waits for the delivery of due notifications.
const LAST_POST: Duration = Duration::from_secs(20);

/// A stored notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredNotification {
    #[serde(rename = "letter")]
    notification: Notification,
    #[serde(rename = "ways")]
    deliveries: Vec<Delivery>,
}

/// A notification on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Delivery {
    #[serde(rename = "way")]
    channel: NotificationChannel,
    attempts: u32,
    /// The time of the next attempt, or of the last one.
    due_ms: u64,
    state: DeliveryState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeliveryState {
    Waits,
    Sent,
    GivenUp,
    Suppressed,
}

/// Sends notifications, in one process at a time: the owner of the data directory.
pub struct Notifier {
    home: PathBuf,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    crash: CrashPoints,
    known: Mutex<KnownSettings>,
    /// Notified when there may be a new notification.
    wake: tokio::sync::Notify,
    sending: tokio::sync::Mutex<()>,
}

/// The known `[notify]` of the data directory.
#[derive(Default)]
struct KnownSettings {
    /// The last settings that could be read.
    config: Option<NotifyConfig>,
    was_read: bool,
    /// The fault of the file since then.
    complaint: Option<String>,
}

impl Notifier {
    /// The notifier of a data directory, over its store.
    pub fn new(home: &Home, store: Arc<dyn Store>, clock: Arc<dyn Clock>, crash: CrashPoints) -> Self {
        Self {
            home: home.path().to_owned(),
            store,
            clock,
            crash,
            known: Mutex::default(),
            wake: tokio::sync::Notify::new(),
            sending: tokio::sync::Mutex::default(),
        }
    }

    /// Announces that there may be a new notification.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// The current `[notify]` of the data directory. A faulty file leaves the settings that were read before, and is
    /// logged once.
    ///
    /// # Errors
    /// When the file is faulty and nothing was read before.
    pub fn config(&self) -> fault::Result<Option<NotifyConfig>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match server::notify(&self.home) {
            Ok(config) => *known = KnownSettings { config, was_read: true, complaint: None },
            Err(error) => {
                // A TOML error spans several lines.
                let complaint = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
                if known.complaint.as_deref() != Some(complaint.as_str()) {
                    tracing::warn!("[notify] of the data directory stays as it was: {complaint}");
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

/// Adds the notifications about these events to the batch that stores the events.
///
/// An unreadable configuration sends nothing: a run must not stop for it.
///
/// # Errors
/// When a notification cannot be written as JSON.
pub fn put_notifications(mut batch: Batch, record: &RunRecord, events: &[RunEvent]) -> fault::Result<Batch> {
    if events.iter().all(|event| notification_event(&event.event).is_none()) {
        return Ok(batch);
    }
    let Some(config) = record.config_now().ok().and_then(|config| config.notify) else { return Ok(batch) };
    for event in events {
        let Some((notification_event, command, text)) =
            notification_event(&event.event).filter(|(one, ..)| config.on.contains(one))
        else {
            continue;
        };
        let (project, run) = (record.project.clone(), record.run.clone());
        let about = NotificationSubject::Run { project, run, event: event.number };
        let notification = Notification {
            id: about.notification_id(),
            notification_event,
            about,
            at_ms: event.at_ms,
            command: command.replace("RUN", record.run.as_str()),
            text: told(&config, text),
            suppressed: 0,
        };
        batch = put(batch, &config, notification)?;
    }
    Ok(batch)
}

/// Adds the notification about a task that has failed for good to the batch that stores its end.
///
/// As with runs, a configuration that was never read sends nothing: a task must not stay running for it.
///
/// # Errors
/// When the notification cannot be written as JSON.
pub fn put_notification_of(
    batch: Batch,
    notifier: &Notifier,
    task: &ScheduledTask,
    result: &ExecutionResult,
    at_ms: u64,
) -> fault::Result<Batch> {
    let config = notifier.config().ok().flatten();
    let Some(config) = config.filter(|config| config.on.contains(&NotificationEvent::Fails)) else { return Ok(batch) };
    let about = NotificationSubject::Task {
        task: task.id.clone(),
        agent: task.agent.clone(),
        schedule: task.schedule.clone(),
        attempts: task.attempts.len() as u64,
        limit: result.limit.clone(),
    };
    let notification = Notification {
        id: about.notification_id(),
        notification_event: NotificationEvent::Fails,
        about,
        at_ms,
        command: format!("longhaul schedule tasks --task {}", task.id),
        text: result.error_message.as_deref().and_then(|error| told(&config, error)),
        suppressed: 0,
    };
    put(batch, &config, notification)
}

/// The text of a notification, where `[notify]` allows one.
fn told(config: &NotifyConfig, text: &str) -> Option<String> {
    config.texts.then(|| printable(&truncate(text, TEXT_BYTES_MAX), TEXT_BYTES_MAX * 2))
}

/// Adds a notification that waits to be sent on each channel.
fn put(batch: Batch, config: &NotifyConfig, notification: Notification) -> fault::Result<Batch> {
    let due_ms = notification.at_ms;
    let waits = |channel| Delivery { channel, attempts: 0, due_ms, state: DeliveryState::Waits };
    let stored = StoredNotification { deliveries: config.channels().into_iter().map(waits).collect(), notification };
    Ok(batch.put(Table::States, key(&stored.notification), serde_json::to_vec(&stored)?))
}

/// The notification event of an event, the command to type, and its text.
fn notification_event(event: &Event) -> Option<(NotificationEvent, &str, &str)> {
    match event {
        Event::Parked { question, answer_with } if answer_with.starts_with("longhaul approvals") => {
            Some((NotificationEvent::Asks, answer_with, question))
        }
        Event::Parked { question, answer_with } => Some((NotificationEvent::Parks, answer_with, question)),
        Event::RunEnded { status, summary, .. } => match status.as_str() {
            "completed" => Some((NotificationEvent::Completes, "longhaul report RUN", summary)),
            // The person who abandoned the run knows.
            "abandoned" => None,
            _ => Some((NotificationEvent::Fails, "longhaul report RUN", summary)),
        },
        _ => None,
    }
}

impl Notifier {
    /// Sends notifications as they come, until it is dropped.
    pub async fn deliver_for_ever(&self) {
        loop {
            let next = match self.deliver_due().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!("notifications could not be sent: {error:#}");
                    None
                }
            };
            let wait = next.map(|at| at.saturating_sub(self.clock.now_ms()));
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(wait.unwrap_or(HOUR_MS))) => {}
            }
        }
    }

    /// Ends the delivery task between two notifications, and sends what is due before the process ends.
    pub async fn deliver_last(&self, courier: JoinHandle<()>) {
        let last = async {
            drop(self.sending.lock().await);
            courier.abort();
            // The task holds the store, which the next owner of the data directory waits for.
            let _ = courier.await;
            self.deliver_due().await
        };
        match tokio::time::timeout(LAST_POST, last).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!("notifications could not be sent: {error:#}"),
            Err(_) => tracing::warn!("notifications are left for the next process that works on a run or on schedules"),
        }
    }

    /// Sends every due notification; returns when the next one is due.
    async fn deliver_due(&self) -> fault::Result<Option<u64>> {
        let _alone = self.sending.lock().await;
        let mut next: Option<u64> = None;
        let (notifications, keys) = notifications(&*self.store)?;
        for (at, stored) in notifications.iter().enumerate() {
            let now_ms = self.clock.now_ms();
            let waits = |one: &&Delivery| one.state == DeliveryState::Waits;
            match stored.deliveries.iter().filter(waits).map(|one| one.due_ms).min() {
                None if stored.notification.at_ms.saturating_add(HOUR_MS) < now_ms => {
                    forget(&*self.store, &keys[at]).await?
                }
                None => {}
                Some(due_ms) if due_ms > now_ms => next = Some(next.map_or(due_ms, |known| known.min(due_ms))),
                Some(_) => {
                    // Those that were sent in this round count as well.
                    let (notifications, _) = self::notifications(&*self.store)?;
                    let later = Post { notifier: self, notifications: &notifications }.send(stored.clone()).await?;
                    next = next.into_iter().chain(later).min();
                }
            }
        }
        Ok(next)
    }
}

/// One round of sending, with all stored notifications for the limits.
struct Post<'a> {
    notifier: &'a Notifier,
    notifications: &'a [StoredNotification],
}

impl Post<'_> {
    /// Sends a notification on every channel that is due; returns when to try again.
    async fn send(&self, mut stored: StoredNotification) -> fault::Result<Option<u64>> {
        let is_of_a_task = matches!(stored.notification.about, NotificationSubject::Task { .. });
        if is_of_a_task && self.notifier.config().is_err() {
            // The notification waits until the file is corrected.
            return Ok(Some(self.notifier.clock.now_ms().saturating_add(MEND_WAIT_MS)));
        }
        let Some((config, directory)) = self.config(&stored.notification.about)? else {
            // No channel is configured any more.
            stored.deliveries.clear();
            return self.keep(&stored).await.map(|()| None);
        };
        stored.notification.suppressed = self.suppressed(&stored.notification.about);
        let is_new = stored.deliveries.iter().all(|one| one.attempts == 0);
        let over = is_new && self.sent(&stored.notification) >= config.per_hour_max;
        for at in 0..stored.deliveries.len() {
            let one = &stored.deliveries[at];
            if one.state != DeliveryState::Waits || one.due_ms > self.notifier.clock.now_ms() {
                continue;
            }
            if over {
                stored.deliveries[at].state = DeliveryState::Suppressed;
                continue;
            }
            self.attempt(&mut stored, at, &config, &directory).await?;
        }
        self.keep(&stored).await?;
        Ok(stored.deliveries.iter().filter(|one| one.state == DeliveryState::Waits).map(|one| one.due_ms).min())
    }

    async fn attempt(
        &self,
        stored: &mut StoredNotification,
        at: usize,
        config: &NotifyConfig,
        directory: &Path,
    ) -> fault::Result<()> {
        let one = &mut stored.deliveries[at];
        one.attempts += 1;
        one.due_ms = self.notifier.clock.now_ms().saturating_add(config.wait_ms(one.attempts));
        let (channel, attempts) = (one.channel, one.attempts);
        // Counted before it is sent: a kill in the middle must not make it a first attempt again.
        self.keep(stored).await?;
        self.notifier.crash.reach("notify.before-send");
        let sent = send::send(&stored.notification, channel, config, directory).await;
        self.notifier.crash.reach("notify.after-send");
        stored.deliveries[at].state = match sent {
            Ok(()) => DeliveryState::Sent,
            Err(error) => {
                let of = stored.notification.about.name();
                tracing::warn!(of, "attempt {attempts} to notify by {channel}: {error:#}");
                if attempts >= config.attempts_max { DeliveryState::GivenUp } else { DeliveryState::Waits }
            }
        };
        self.keep(stored).await
    }

    async fn keep(&self, stored: &StoredNotification) -> fault::Result<()> {
        let batch = Batch::new().put(Table::States, key(&stored.notification), serde_json::to_vec(stored)?);
        Ok(self.notifier.store.commit(batch).await?)
    }

    /// The recipients, and the directory for commands.
    fn config(&self, about: &NotificationSubject) -> fault::Result<Option<(NotifyConfig, PathBuf)>> {
        let NotificationSubject::Run { run, .. } = about else {
            let home = &self.notifier.home;
            return Ok(self.notifier.config()?.map(|config| (config, home.to_owned())));
        };
        let Some(record) = record::record(&*self.notifier.store, run)? else { return Ok(None) };
        let config: Option<Config> = record.config_now().ok();
        if let Some(config) = &config
            && let Err(error) = trust::expect(&*self.notifier.store, &record.directory, config)
        {
            tracing::warn!(run = %record.run, "no notification is sent: {error:#}");
            return Ok(None);
        }
        Ok(config.and_then(|config| config.notify).map(|notify| (notify, record.directory)))
    }

    /// Notifications that share the limit with this one and were sent in the hour before it.
    fn sent(&self, notification: &Notification) -> u32 {
        let since = notification.at_ms.saturating_sub(HOUR_MS);
        let left = |one: &&StoredNotification| one.deliveries.iter().any(|sending| sending.attempts > 0);
        let counted = |one: &&StoredNotification| {
            one.notification.about.counted_with() == notification.about.counted_with()
                && one.notification.at_ms >= since
                && one.notification.id != notification.id
        };
        u32::try_from(self.notifications.iter().filter(counted).filter(left).count()).unwrap_or(u32::MAX)
    }

    fn suppressed(&self, about: &NotificationSubject) -> u32 {
        let since = self.notifier.clock.now_ms().saturating_sub(HOUR_MS);
        let is_suppressed = |one: &&StoredNotification| {
            one.notification.about.counted_with() == about.counted_with()
                && one.notification.at_ms >= since
                && one.deliveries.iter().any(|sending| sending.state == DeliveryState::Suppressed)
        };
        u32::try_from(self.notifications.iter().filter(is_suppressed).count()).unwrap_or(u32::MAX)
    }
}

/// Every notification, by run or task, and their keys.
fn notifications(store: &dyn Store) -> fault::Result<(Vec<StoredNotification>, Vec<Key>)> {
    let found = store.scan(Table::States, &prefix(), None, NOTIFICATIONS_MAX)?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).or_internal(|| "a notification is damaged");
    let notifications = found.iter().map(|(_, bytes)| read(bytes)).collect::<fault::Result<_>>()?;
    Ok((notifications, found.into_iter().map(|(key, _)| Key::from_bytes(key)).collect()))
}

async fn forget(store: &dyn Store, key: &Key) -> fault::Result<()> {
    let mut batch = Batch::new();
    batch.push(Op::Delete(Table::States, key.clone()));
    Ok(store.commit(batch).await?)
}

fn prefix() -> Key {
    Key::of("letters")
}

fn key(notification: &Notification) -> Key {
    prefix().and(notification.about.name()).number(notification.about.number())
}
