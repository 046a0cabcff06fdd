//! The table `[store]` of `server.toml`: where the database is, and as whom.

use longhaul_core::store::StoreError;
use longhaul_objects::ContentConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::config::{Config, Host, SslMode};

/// The bounds of the lease, in milliseconds. Below the shortest a busy machine would lose it by itself.
const LEASE_MS: std::ops::RangeInclusive<u64> = 2_000..=600_000;

/// The bounds of the number of reading connections.
const CONNECTIONS: std::ops::RangeInclusive<u32> = 1..=64;

/// The longest name of a schema, in bytes: a name of PostgreSQL.
const SCHEMA_BYTES_MAX: usize = 63;

/// State in PostgreSQL, 15 or later, instead of in the data directory. One process leads at a time; others wait or work
/// on runs, and take over when it ends or loses the database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// `postgres://USER@HOST:PORT/DATABASE`, with several hosts as `HOST:PORT,HOST:PORT`; the one that takes writes is
    /// used. No password. TLS is required but for this machine and `?sslmode=disable`.
    pub url: String,
    /// The environment variable that holds the password. Default: no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The schema of the tables, made if it does not exist. Default `longhaul`.
    #[serde(default = "default_schema")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: String,
    /// The time after which another process takes over from one that the database no longer hears, in milliseconds.
    /// Renewed in half of it. Default 10,000, from 2,000 to 600,000.
    #[serde(default = "default_lease_ms")]
    #[schemars(range(min = 2_000, max = 600_000))]
    pub lease_ms: u64,
    /// The number of connections for reads; the writer and the lease have one each besides. Default 4, at most 64.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 64))]
    pub connections_max: u32,
    /// The longest time for a connection to be made, in milliseconds. Default 5,000.
    #[serde(default = "default_connect_ms")]
    #[schemars(range(min = 1))]
    pub connect_ms_max: u64,
    /// The longest time for a statement, in milliseconds. A call waits as long as this and `connect_ms_max` together
    /// for a server that is gone. Default 30,000.
    #[serde(default = "default_statement_ms")]
    #[schemars(range(min = 1))]
    pub statement_ms_max: u64,
    /// The authorities that the server's certificate is checked by: the absolute path of a file of PEM. Default: those
    /// of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Large content outside of the database. Default: none; the database holds all content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentConfig>,
}

fn default_schema() -> String {
    "longhaul".to_owned()
}

fn default_lease_ms() -> u64 {
    10_000
}

fn default_connections() -> u32 {
    4
}

fn default_connect_ms() -> u64 {
    5_000
}

fn default_statement_ms() -> u64 {
    30_000
}

/// The address without what may be a secret.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("url", &self.address())
            .field("password_env", &self.password_env)
            .field("schema", &self.schema)
            .field("lease_ms", &self.lease_ms)
            .field("connections_max", &self.connections_max)
            .field("connect_ms_max", &self.connect_ms_max)
            .field("statement_ms_max", &self.statement_ms_max)
            .field("ca_file", &self.ca_file)
            .field("content", &self.content)
            .finish()
    }
}

impl PostgresConfig {
    /// A database at an address, without a password.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            password_env: None,
            schema: default_schema(),
            lease_ms: default_lease_ms(),
            connections_max: default_connections(),
            connect_ms_max: default_connect_ms(),
            statement_ms_max: default_statement_ms(),
            ca_file: None,
            content: None,
        }
    }

    /// Refuses invalid settings, without a connection.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn check(&self) -> Result<(), StoreError> {
        self.parsed()?;
        if !is_schema(&self.schema) {
            return Err(refused(
                format!("schema `{}` is no plain name", self.schema),
                "write a letter or `_`, then letters, digits and `_`, in lower case, at most 63 of them",
            ));
        }
        if let Some(file) = self.ca_file.as_deref().filter(|file| file.is_relative()) {
            return Err(refused(format!("ca_file `{}` is a relative path", file.display()), "write an absolute one"));
        }
        let wrong = |name: &str, value: u64, range: String| {
            Err(refused(format!("{name} = {value} is out of range"), &format!("write {range}")))
        };
        if !LEASE_MS.contains(&self.lease_ms) {
            let range = format!("{} to {} milliseconds", LEASE_MS.start(), LEASE_MS.end());
            return wrong("lease_ms", self.lease_ms, range);
        }
        if !CONNECTIONS.contains(&self.connections_max) {
            let range = format!("{} to {} connections", CONNECTIONS.start(), CONNECTIONS.end());
            return wrong("connections_max", self.connections_max.into(), range);
        }
        for (name, value) in [("connect_ms_max", self.connect_ms_max), ("statement_ms_max", self.statement_ms_max)] {
            if value == 0 || value > u64::from(u32::MAX) {
                return wrong(name, value, format!("1 to {} milliseconds", u32::MAX));
            }
        }
        self.content.as_ref().map_or(Ok(()), ContentConfig::check)
    }

    /// The address for people: without a password, also where it is invalid for holding one.
    #[must_use]
    pub fn address(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return "no address".to_owned();
        };
        let head = before_query(rest);
        let has_password = match head.split_once('@') {
            Some((user, _)) => user.contains(':'),
            // The `?` may be in a password.
            None => !head.contains('/') && rest.contains('@'),
        };
        // The last `@` ends the credentials, whatever a password contains.
        let place = if has_password { rest } else { head };
        let place = place.rsplit_once('@').map_or(head, |(_, place)| before_query(place));
        let has_user = has_password || head.contains('@');
        let user = head.split([':', '@']).next().filter(|_| has_user).unwrap_or_default();
        if user.is_empty() { format!("{scheme}://{place}") } else { format!("{scheme}://{user}@{place}") }
    }

    /// The address as the client reads it.
    pub(crate) fn parsed(&self) -> Result<Config, StoreError> {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| self.url.starts_with(scheme));
        // The text of an error leaves out the address, which may hold a secret.
        let Some(mut config) = is_url.then(|| readable(&self.url).parse::<Config>().ok()).flatten() else {
            return Err(refused(
                "url is no address of a PostgreSQL server",
                "write postgres://USER@HOST:PORT/DATABASE",
            ));
        };
        if config.get_password().is_some() {
            return Err(refused(
                "url holds a password",
                "remove it, and name a variable of the environment with password_env",
            ));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused("url names no host", "write postgres://USER@HOST:PORT/DATABASE"));
        }
        if config.get_dbname().is_none() {
            return Err(refused(
                "url names no database",
                "write it after the host: postgres://USER@HOST:PORT/DATABASE",
            ));
        }
        // The mode as the client read it decides: it may be named twice, or be written in another way.
        match (named_mode(&self.url), config.get_ssl_mode()) {
            (Some(_), SslMode::Prefer) => {
                return Err(refused(
                    "sslmode in url would go on without TLS where somebody on the way refuses it",
                    "write sslmode=require, or sslmode=disable for a network that you trust",
                ));
            }
            (Some(_), _) => {}
            (None, _) => {
                let mode = if is_local(&config) { SslMode::Disable } else { SslMode::Require };
                config.ssl_mode(mode);
            }
        }
        Ok(config)
    }

    /// The time for which the lease is taken.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// The longest time for a connection to be made.
    pub(crate) fn connect_max(&self) -> Duration {
        Duration::from_millis(self.connect_ms_max)
    }

    /// The longest time for a statement that reads.
    pub(crate) fn statement_max(&self) -> Duration {
        Duration::from_millis(self.statement_ms_max)
    }

    /// The longest time that a call waits for a server that is gone.
    pub(crate) fn patience(&self) -> Duration {
        self.connect_max() + self.statement_max()
    }
}

pub(crate) fn refused(detail: impl Into<String>, remedy: &str) -> StoreError {
    StoreError::Refused { detail: detail.into(), remedy: remedy.to_owned() }
}

fn is_schema(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    // Names that begin with `pg_` are the server's own.
    name.len() <= SCHEMA_BYTES_MAX
        && !name.starts_with("pg_")
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
}

fn before_query(text: &str) -> &str {
    text.split_once('?').map_or(text, |(before, _)| before)
}

/// The value of `sslmode` in an address.
fn named_mode(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("sslmode="))
}

/// The address with the modes of libpq that the client has no word for. With rustls the certificate and the name are
/// checked in every mode that has TLS, so `verify-full` and `verify-ca` are what `require` is here.
fn readable(url: &str) -> String {
    let Some((url, query)) = url.split_once('?') else {
        return url.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair {
        "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require",
        "sslmode=allow" => "sslmode=prefer",
        other => other,
    });
    format!("{url}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// True when every host is this machine.
fn is_local(config: &Config) -> bool {
    let named = config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    });
    named && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_and_no_password_is_repeated() {
        let check = |change: &dyn Fn(&mut PostgresConfig), expected: &str| {
            let mut config = PostgresConfig::at("postgres://me@db.example:5433/work");
            change(&mut config);
            let said = config.check().map_err(|error| error.to_string()).err().unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
            assert!(!said.contains("hunter2") && !format!("{config:?}").contains("hunter2"), "{said} {config:?}");
        };
        check(&|_| {}, "");
        check(&|config| config.url = "postgres://me:hunter2@h/db".into(), "url holds a password");
        check(&|config| config.url = "postgres://me@h/db?password=hunter2".into(), "url holds a password");
        check(&|config| config.url = "host=h password=hunter2".into(), "no address of a PostgreSQL server");
        check(&|config| config.url = "postgres://me:hun@ter2@h:port/db".into(), "no address of a PostgreSQL server");
        check(&|config| config.url = "postgres://me@h".into(), "url names no database");
        check(&|config| config.url = "postgres:///db".into(), "url names no host");
        check(&|config| config.url = "postgres://h/db?sslmode=prefer".into(), "would go on without TLS");
        check(&|config| config.url = "postgres://h/db?sslmode=allow".into(), "would go on without TLS");
        check(&|config| config.url = "postgres://h/db?sslmode=%70refer".into(), "would go on without TLS");
        check(
            &|config| config.url = "postgres://h/db?sslmode=require&sslmode=prefer".into(),
            "would go on without TLS",
        );
        check(&|config| config.url = "postgres://h/db?sslmode=verify-full".into(), "");
        check(&|config| config.schema = "a-b".into(), "schema `a-b` is no plain name");
        check(&|config| config.schema = "pg_work".into(), "is no plain name");
        check(&|config| config.schema = "a".repeat(64), "is no plain name");
        check(&|config| config.ca_file = Some("ca.pem".into()), "ca_file `ca.pem` is a relative path");
        check(&|config| config.lease_ms = 1_999, "lease_ms = 1999 is out of range; write 2000 to 600000");
        check(&|config| config.lease_ms = 600_000, "");
        check(&|config| config.connections_max = 0, "connections_max = 0");
        check(&|config| config.connections_max = 65, "connections_max = 65");
        check(&|config| config.statement_ms_max = 0, "statement_ms_max = 0");
        check(&|config| config.content = Some(ContentConfig::at("file:///srv/content")), "");
        check(&|config| config.content = Some(ContentConfig::at("srv/content")), "content.url is no address");
    }

    #[test]
    fn tls_is_required_but_for_this_machine_and_where_it_is_switched_off() {
        let mode = |url: &str| PostgresConfig::at(url).parsed().expect("an address").get_ssl_mode();
        assert_eq!(mode("postgres://u@db.example/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@127.0.0.1,db.example/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/db?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/db?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/db"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/db?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://u@%2Ftmp%2Fsockets/db"), SslMode::Disable);
    }

    #[test]
    fn the_address_for_people_has_the_user_and_neither_a_password_nor_parameters() {
        let address = |url: &str| PostgresConfig::at(url).address();
        assert_eq!(address("postgres://me@h:1,i:2/db?sslmode=require"), "postgres://me@h:1,i:2/db");
        for password in ["a", "a@b:c", "a?b", "a@b?c", "a?b@c"] {
            assert_eq!(address(&format!("postgres://me:{password}@h/db?sslmode=require")), "postgres://me@h/db");
        }
        assert_eq!(address("postgres://h/db?password=a@b"), "postgres://h/db");
        assert_eq!(address("host=h password=x"), "no address");
    }
}
