//! The address of a server, and the errors of a connection.

use longhaul_core::Outage;
use longhaul_core::memory::MemoryError;
use longhaul_core::shared::SharedError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The default lifetime of entries, in seconds: a day.
const TTL_S: u64 = 86_400;

/// The settings of a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://HOST:PORT/DATABASE`; with `rediss` over TLS, its authorities those of the machine. No password.
    pub url: String,
    /// The environment variable that holds the password. Default: no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The user, for servers with several. Default: the server's default user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The authority that the server's certificate is checked by, PEM, relative to the project. Default: those of the
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Lifetime of an entry without one of its own, in seconds. Default 86,400.
    #[serde(default = "default_ttl")]
    #[schemars(range(min = 1))]
    pub ttl_s: u64,
    /// The prefix of all keys on the server. Default `longhaul`.
    #[serde(default = "default_prefix")]
    #[schemars(length(min = 1))]
    pub prefix: String,
}

fn default_ttl() -> u64 {
    TTL_S
}

fn default_prefix() -> String {
    "longhaul".to_owned()
}

/// The address without what may be a secret.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &self.plain_address())
            .field("password_env", &self.password_env)
            .field("user", &self.user)
            .field("ca_file", &self.ca_file)
            .field("ttl_s", &self.ttl_s)
            .field("prefix", &self.prefix)
            .finish()
    }
}

impl RedisConfig {
    /// A server at an address, without a password.
    #[must_use]
    pub fn at(url: &str) -> Self {
        let url = url.to_owned();
        Self { url, password_env: None, user: None, ca_file: None, ttl_s: TTL_S, prefix: default_prefix() }
    }

    /// Refuses invalid settings.
    ///
    /// # Errors
    /// [`RedisError::Config`].
    pub fn check(&self) -> Result<(), RedisError> {
        let wrong = |why: String| Err(RedisError::Config(why));
        if self.ttl_s == 0 {
            return wrong("ttl_s = 0 would keep nothing; write for how many seconds entries are kept".to_owned());
        }
        if self.prefix.is_empty() {
            return wrong("prefix is empty; write what the keys on the server start with".to_owned());
        }
        // The text leaves out the address, which may hold a secret.
        let Some(parsed) = redis::parse_redis_url(&self.url) else {
            return wrong("url is no address of a Redis server; write redis://HOST:PORT/DATABASE".to_owned());
        };
        if parsed.password().is_some() {
            return wrong("url holds a password; name a variable of the environment with password_env".to_owned());
        }
        if parsed.fragment().is_some() {
            return wrong("url ends in `#...`, which would switch a check of TLS off; remove it".to_owned());
        }
        Ok(())
    }

    /// The address, if it has no place for a secret. One that cannot be read may be anything.
    fn plain_address(&self) -> &str {
        let is_plain = redis::parse_redis_url(&self.url).is_some() && !self.url.contains(['@', '?', '#']);
        if is_plain { &self.url } else { "not shown" }
    }

    /// The lifetime of entries, in milliseconds.
    pub(crate) fn ttl_ms(&self) -> u64 {
        self.ttl_s.saturating_mul(1_000)
    }
}

/// The reason why a call to a server failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The server is unavailable now.
    #[error(transparent)]
    Unavailable(Outage),
    /// Any other error of the server.
    #[error("the Redis server refused: {0}")]
    Refused(String),
}

impl RedisError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Config(_) | Self::Refused(_) => false,
        }
    }
}

impl From<redis::RedisError> for RedisError {
    fn from(error: redis::RedisError) -> Self {
        let gone = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
        if gone || error.is_connection_refusal() {
            let reason = format!("the Redis server is not there: {error}");
            return Self::Unavailable(Outage { reason, retry_after_ms: Some(RETRY_MS) });
        }
        match error.code() {
            Some("LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN") => {
                let reason = format!("the Redis server is not ready: {error}");
                Self::Unavailable(Outage { reason, retry_after_ms: Some(RETRY_MS) })
            }
            code if matches!(code, Some("NOAUTH" | "WRONGPASS"))
                || error.kind() == redis::ErrorKind::AuthenticationFailed =>
            {
                Self::Refused(format!("{error}; set password_env, and user where the server has several"))
            }
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// The time before the next attempt, in milliseconds.
const RETRY_MS: u32 = 1_000;

impl From<RedisError> for MemoryError {
    fn from(error: RedisError) -> Self {
        match error {
            RedisError::Unavailable(outage) => Self::Unavailable(outage),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<RedisError> for SharedError {
    fn from(error: RedisError) -> Self {
        match error {
            RedisError::Unavailable(outage) => Self::Unavailable(outage),
            other => Self::Failed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_and_no_password_is_repeated() {
        let check = |change: &dyn Fn(&mut RedisConfig), expected: &str| {
            let mut config = RedisConfig::at("redis://127.0.0.1:6379/0");
            change(&mut config);
            let said = config.check().map_err(|error| error.to_string()).err().unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
            let debugged = format!("{config:?}");
            assert!(!debugged.contains("hunter2") && debugged.contains("prefix"), "{debugged}");
        };
        check(&|_| {}, "");
        check(&|config| config.ttl_s = 0, "ttl_s = 0 would keep nothing");
        check(&|config| config.prefix.clear(), "prefix is empty");
        check(&|config| config.url = "redis://u:hunter2@h/".into(), "url holds a password");
        check(&|config| config.url = "rediss://h/#insecure".into(), "switch a check of TLS off");
        check(&|config| config.url = "http://hunter2".into(), "no address of a Redis server");
        let debugged = format!("{:?}", RedisConfig::at("redis://127.0.0.1:6379/0"));
        assert!(debugged.contains("\"redis://127.0.0.1:6379/0\""), "{debugged}");
    }
}
