//! Every secret that this process knows, for redaction of programs' output.
//!
//! The known secrets are the stored ones of all projects, the token of the local socket, the keys that the tables of
//! projects name (of models, servers and notifications), and the environment variables with secret-like names. The
//! search itself is [`SecretRedactor`]'s. It refuses to give out a value.

use super::SecretStore;
use longhaul_config::Config;
use longhaul_core::redact::{Redact, RedactStream};
use longhaul_egress::{Secret, SecretRedactor};
use longhaul_home::{Home, variable};
use longhaul_mcp::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A shorter value counts as the placeholder that a local server wants for a key, such as `lm-studio`, which texts may
/// hold. Secrets that a person stored count from eight bytes on.
const NAMED_BYTES_MIN: usize = 16;

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Words in such names, between `_`.
const SECRET_WORDS: [&str; 6] = ["AUTH", "PASS", "PW", "PWD", "PAT", "DSN"];

/// Variables of many shells whose names have such a word, and whose values are paths.
const NOT_SECRET: [&str; 3] = ["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// The secrets, and the search for them.
pub struct KnownSecrets {
    secret_store: SecretStore,
    token: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Values that tables and the environment name.
    named: BTreeSet<String>,
    /// The modification times of the stored secrets and the token when the search was built; none: it has to be
    /// rebuilt.
    made_of: Option<[Option<SystemTime>; 2]>,
    redactor: SecretRedactor,
}

impl KnownSecrets {
    /// The known secrets of a data directory and of the environment.
    pub fn new(home: &Home) -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let named = variables.filter(|(name, _)| says_secret(name)).filter_map(|(_, value)| value.into_string().ok());
        let inner = Inner { named: named.filter(|value| is_long(value)).collect(), ..Inner::default() };
        Self { secret_store: SecretStore::of(home), token: home.socket_token(), inner: Mutex::new(inner) }
    }

    /// Adds those that the tables of a project name. A secret that cannot be read is skipped for now.
    pub fn learn(&self, config: &Config, project: &Path) {
        let models = longhaul_models::config::keys(&config.models, project, &variable);
        let models = models.iter().map(|key| key.expose().to_owned());
        let of_servers = config.mcp.values().flat_map(|server| server.env.values()).filter_map(|value| match value {
            Value::From { from } if says_secret(from) => variable(from),
            Value::From { .. } | Value::Plain(_) | Value::Secret { .. } => None,
        });
        let servers = [&config.memory.redis, &config.checkpoints.redis];
        let passwords = servers.into_iter().flatten().filter_map(|server| server.password_env.as_deref());
        let webhook = config.notify.as_ref().and_then(|notify| notify.webhook_env.as_deref());
        let others = passwords.chain(webhook).filter_map(variable);
        let found = models.chain(of_servers).chain(others).filter(|value| is_long(value));
        let mut inner = self.lock();
        let before = inner.named.len();
        inner.named.extend(found);
        if inner.named.len() > before {
            inner.made_of = None;
        }
    }

    /// The current search for all of them.
    pub fn redactor(&self) -> SecretRedactor {
        let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
        // Each value that is set or removed changes the modification time of its directory.
        let now = [changed(self.secret_store.directory()), changed(&self.token)];
        let mut inner = self.lock();
        if inner.made_of != Some(now) {
            inner.redactor = SecretRedactor::of(&self.all(&inner.named));
            inner.made_of = Some(now);
        }
        inner.redactor.clone()
    }

    fn all(&self, named: &BTreeSet<String>) -> Vec<Secret> {
        let stored = self.secret_store.all().into_iter();
        let token = std::fs::read_to_string(&self.token).ok();
        stored.chain(named.iter().chain(&token).filter_map(|value| Secret::new(value).ok())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownSecrets")
    }
}

impl Redact for KnownSecrets {
    fn stream(&self) -> Option<Box<dyn RedactStream>> {
        self.redactor().stream()
    }
}

fn says_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let has_word = || name.split('_').any(|word| SECRET_WORDS.contains(&word));
    !NOT_SECRET.contains(&name.as_str()) && (SECRET_NAMES.iter().any(|part| name.contains(part)) || has_word())
}

fn is_long(value: &str) -> bool {
    value.trim().len() >= NAMED_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::says_secret;

    #[test]
    fn names_of_variables_say_which_hold_secrets() {
        for name in ["OPENAI_API_KEY", "gh_token", "REDIS_AUTH", "DB_PASS", "PGPASSWORD", "SENTRY_DSN", "GITHUB_PAT"] {
            assert!(says_secret(name), "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "AUTHOR", "XAUTHORITY", "COMPASS_HOME", "LANG"] {
            assert!(!says_secret(name), "{name}");
        }
    }
}
