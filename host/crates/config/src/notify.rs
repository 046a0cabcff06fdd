//! `[notify]`: the recipients of notifications, and their events.

use longhaul_core::fault::{self, bail};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The table `[notify]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// The events that are reported. Default: all four.
    pub on: Vec<NotificationEvent>,
    /// A program and its arguments, run in the project's directory, or for `server.toml` in the data directory, with
    /// the notification as one line of JSON on standard input. It has 10 s, no shell, and only those variables of the
    /// environment that find programs and a desktop.
    pub command: Vec<String>,
    /// An address that gets the notification as JSON by POST. Redirects are not followed.
    pub webhook: Option<String>,
    /// The variable of the environment that holds such an address, where the address itself is a secret.
    pub webhook_env: Option<String>,
    /// The mailbox that receives notifications.
    pub email: Option<EmailConfig>,
    /// True when notifications hold text of agents and models: questions, arguments, results. Default false.
    pub texts: bool,
    /// Notifications of one project, or of the data directory, in an hour. Those beyond are not sent, and the next one
    /// gives their number. Default 20.
    #[schemars(range(min = 1))]
    pub per_hour_max: u32,
    /// Attempts for one notification on one channel. Default 5.
    #[schemars(range(min = 1))]
    pub attempts_max: u32,
    /// The wait after the first attempt, in milliseconds; each further one is four times as long. Default 5,000.
    pub retry_wait_ms: u64,
}

/// `[notify.email]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmailConfig {
    /// The recipients.
    #[schemars(length(min = 1))]
    pub to: Vec<String>,
    /// The address of the sender.
    pub from: String,
    /// The program that takes a message on standard input. Default `/usr/sbin/sendmail -t -i`, which every mail server
    /// and `msmtp` bring: it queues, retries for days, and holds the password, so that Longhaul needs none.
    #[serde(default = "default_sendmail")]
    #[schemars(length(min = 1))]
    pub sendmail: Vec<String>,
}

/// An event that can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEvent {
    /// A call waits for its approval, or an agent has a question.
    Asks,
    /// The run waits for a person for another reason.
    Parks,
    /// The run ended, and not everything passes. Or a task of a schedule failed, and is not retried automatically.
    Fails,
    /// The run ended, and everything passes.
    Completes,
}

/// A channel for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationChannel {
    /// The command of `[notify]`.
    Command,
    /// `webhook` or `webhook_env`.
    Webhook,
    /// The mailbox of `[notify]`.
    Email,
}

impl fmt::Display for NotificationChannel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Command => "command",
            Self::Webhook => "webhook",
            Self::Email => "email",
        })
    }
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            on: vec![
                NotificationEvent::Asks,
                NotificationEvent::Parks,
                NotificationEvent::Fails,
                NotificationEvent::Completes,
            ],
            command: Vec::new(),
            webhook: None,
            webhook_env: None,
            email: None,
            texts: false,
            per_hour_max: 20,
            attempts_max: 5,
            retry_wait_ms: 5_000,
        }
    }
}

fn default_sendmail() -> Vec<String> {
    ["/usr/sbin/sendmail", "-t", "-i"].map(str::to_owned).to_vec()
}

impl NotifyConfig {
    /// The configured channels.
    pub fn channels(&self) -> Vec<NotificationChannel> {
        let webhook = self.webhook.is_some() || self.webhook_env.is_some();
        let channels = [
            (NotificationChannel::Command, !self.command.is_empty()),
            (NotificationChannel::Webhook, webhook),
            (NotificationChannel::Email, self.email.is_some()),
        ];
        channels.into_iter().filter_map(|(channel, is_there)| is_there.then_some(channel)).collect()
    }

    /// The wait after so many attempts, in milliseconds.
    pub fn wait_ms(&self, attempts: u32) -> u64 {
        self.retry_wait_ms.saturating_mul(4_u64.saturating_pow(attempts.saturating_sub(1)))
    }

    /// Refuses settings without a recipient, and addresses that could name another one.
    pub fn check(&self) -> fault::Result<()> {
        if self.channels().is_empty() {
            bail!("[notify] has no channel; add command, webhook or [notify.email]");
        }
        if self.attempts_max == 0 || self.per_hour_max == 0 {
            bail!("[notify] attempts_max and per_hour_max are at least 1; to send nothing, remove [notify]");
        }
        if self.webhook.is_some() && self.webhook_env.is_some() {
            bail!("[notify] has webhook and webhook_env; write one of them");
        }
        if let Some(address) = &self.webhook {
            check_address(address)?;
        }
        let Some(email) = &self.email else { return Ok(()) };
        if email.to.is_empty() || email.sendmail.is_empty() {
            bail!("[notify.email] needs `to`, and a program in `sendmail`");
        }
        if let Some(wrong) = email.to.iter().chain([&email.from]).find(|address| !is_mailbox(address)) {
            bail!("[notify.email] `{}` is no mailbox; write name@host", wrong.escape_debug());
        }
        Ok(())
    }
}

/// Refuses an address that is not a server's.
pub fn check_address(address: &str) -> fault::Result<Url> {
    match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => bail!("[notify] the webhook is no address; write https://HOST/PATH"),
    }
}

/// One plain mailbox, which can add no header and no further one.
fn is_mailbox(address: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@._+-=".contains(c);
    address.chars().all(plain)
        && !address.starts_with('-')
        && address
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let config: NotifyConfig = toml::from_str(text).expect("fields that there are");
        let said = config.check().err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn settings_without_a_recipient_or_with_a_forged_one_are_refused() {
        check("command = [\"notify-send\"]", "");
        check("webhook = \"https://a.example/x\"", "");
        check("", "has no channel");
        check("command = [\"x\"]\nattempts_max = 0", "at least 1");
        check("webhook = \"file:///etc/passwd\"", "is no address");
        check("webhook = \"https://a.example\"\nwebhook_env = \"A\"", "one of them");
        check("email = { to = [\"a@b.example\"], from = \"l@b.example\" }", "");
        for address in ["a@b.example\\nBcc: c@d.example", "a@b,c@d", "-oQ/tmp@x", "a", "a@b@c", ""] {
            check(&format!("email = {{ to = [\"{address}\"], from = \"l@b.example\" }}"), "is no mailbox");
        }
    }
}
