//! Sends one notification on one channel. It never retries, and keeps no response.
//!
//! A webhook has an HTTP client of its own and does not use the guard of `egress`: its address is the operator's, and
//! may well be in a private network, which the guard refuses for names. Like the guard it refuses proxies of the
//! environment, redirects and retries. In a crash test the stand-in receiver gets the notification of every channel.

use crate::notification::{Notification, NotificationSubject};
use longhaul_config::notify::{EmailConfig, NotificationChannel, NotificationEvent, NotifyConfig, check_address};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_egress::stand_in;
use longhaul_home::variable;
use reqwest::Client;
use reqwest::redirect::Policy;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// Longest time for one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Variables of the host's environment, which may hold keys, that an operator's command gets.
const ENVIRONMENT: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "TZ", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Sends the notification.
///
/// # Errors
/// The recipient's error, or a timeout.
pub async fn send(
    notification: &Notification,
    channel: NotificationChannel,
    config: &NotifyConfig,
    directory: &Path,
) -> fault::Result<()> {
    if let Some(receiver) = stand_in::receiver() {
        return post(notification, &format!("http://{receiver}/notifications")).await;
    }
    match channel {
        NotificationChannel::Command => run(&config.command, &json(notification)?, directory).await,
        NotificationChannel::Webhook => post(notification, &address(config)?).await,
        NotificationChannel::Email => {
            let email = config.email.as_ref().context("[notify.email] is gone")?;
            run(&email.sendmail, &message(notification, email), directory).await
        }
    }
}

fn json(notification: &Notification) -> fault::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(notification)?))
}

fn address(config: &NotifyConfig) -> fault::Result<String> {
    match (&config.webhook, &config.webhook_env) {
        (Some(address), _) => Ok(address.clone()),
        (None, Some(name)) => variable(name).with_context(|| format!("the environment has no `{name}`")),
        (None, None) => bail!("the webhook is gone from [notify]"),
    }
}

async fn post(notification: &Notification, address: &str) -> fault::Result<()> {
    let url = check_address(address)?;
    let tls = longhaul_egress::tls::config(url.scheme() == "https").context("TLS cannot be used on this machine")?;
    let client = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .timeout(ATTEMPT)
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(reqwest::Error::without_url)?;
    // The client's own error contains the address, which may be a secret.
    let sent = client.post(url).header("idempotency-key", &notification.id).json(notification).send().await;
    let status = sent.map_err(reqwest::Error::without_url)?.status();
    if status.is_success() { Ok(()) } else { bail!("it answered {status}") }
}

async fn run(argv: &[String], input: &str, directory: &Path) -> fault::Result<()> {
    let (program, arguments) = argv.split_first().context("the command is gone from [notify]")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear();
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        command.process_group(0).kill_on_drop(true).spawn().with_context(|| format!("`{program}` does not start"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let stdin = child.stdin.take();
    let ended = timeout(ATTEMPT, async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is its operator's concern.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait().await
    })
    .await;
    match ended {
        Ok(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => Ok(()),
        Ok(status) => bail!("`{program}` ended with {}", status?),
        Err(_) => {
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            bail!("`{program}` did not end in {} s", ATTEMPT.as_secs())
        }
    }
}

/// A message for `sendmail -t`. Every part is ASCII without line ends: checked addresses, names of this program.
fn message(notification: &Notification, email: &EmailConfig) -> String {
    let Notification { id, about, command, text, suppressed, at_ms, .. } = notification;
    let (subject, first) = in_words(about, notification.notification_event);
    let at = i64::try_from(*at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    let date = jiff::fmt::rfc2822::to_string(&at.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default();
    let text = text.as_ref().map(|text| format!("\r\n{text}\r\n")).unwrap_or_default();
    let more =
        if *suppressed > 0 { format!("\r\n{suppressed} earlier messages were not sent.\r\n") } else { String::new() };
    format!(
        "From: {}\r\nTo: {}\r\nSubject: longhaul: {subject}\r\nDate: {date}\r\nMessage-ID: <{id}@longhaul>\r\n\
         Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
         {first}\r\n{text}\r\n    {command}\r\n{more}",
        email.from,
        email.to.join(", "),
    )
}

/// The subject line and the first line of a message.
fn in_words(about: &NotificationSubject, notification_event: NotificationEvent) -> (String, String) {
    let what = match notification_event {
        NotificationEvent::Asks => "asks for an answer",
        NotificationEvent::Parks => "waits",
        NotificationEvent::Fails => "ended, and not everything passes",
        NotificationEvent::Completes => "is complete",
    };
    match about {
        NotificationSubject::Run { project, run, .. } => {
            (format!("{project} {what}"), format!("Run {run} of {project} {what}."))
        }
        NotificationSubject::Task { task, agent, schedule, attempts, limit } => {
            let limit = limit.as_ref().map(|limit| format!(", limit: {limit}")).unwrap_or_default();
            let first =
                format!("Agent {agent} failed at task {task} of schedule {schedule} (attempts: {attempts}{limit}).");
            (format!("{agent} failed"), first)
        }
    }
}
