//! `server.toml` of the data directory: the address and access of the server, the limits of the scheduler, the
//! recipients of notifications about failed tasks, the database that holds the state, and the work of a server that
//! stands by.
//!
//! `[scheduler]` and `[store]` are read when a process comes to own the data directory. `[server]` and `[worker]` are
//! read when the server starts and at SIGHUP. Fields that only a start can change are reported then, and keep their
//! value. `[notify]` is read whenever a notification may be due.

use crate::notify::NotifyConfig;
use crate::server_url::ServerUrl;
use crate::toml_text;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_postgres::PostgresConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

pub use crate::worker::WorkerSettings;

/// The file's name in the data directory.
pub const FILE: &str = "server.toml";

/// Bytes of the file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Written {
    /// The settings of the server.
    server: ServerSettings,
    /// The limits of the scheduler.
    scheduler: SchedulerSettings,
    /// The recipients of notifications about tasks of schedules that failed for good. Default: none.
    notify: Option<NotifyConfig>,
    /// The PostgreSQL database that holds all state. Default: none; files of the data directory hold it. Only a start
    /// changes it, once `longhaul store migrate` has moved the state.
    store: Option<PostgresConfig>,
    /// The work of this server while it stands by: with this table, which may be empty, the leader of the database
    /// gives it runs. Default: none; it waits. Only a start adds it or takes it away.
    worker: Option<WorkerSettings>,
}

impl Written {
    /// Reads the file of a data directory; without one all values are the defaults.
    fn read(home: &Path, parse: impl Fn(&str) -> fault::Result<Self>) -> fault::Result<Self> {
        let path = home.join(FILE);
        let found = match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            found => found.or_invalid(|| format!("cannot read `{}`", path.display()))?,
        };
        if found.len() > FILE_BYTES_MAX {
            bail!("`{}` has {} bytes, more than {FILE_BYTES_MAX}", path.display(), found.len());
        }
        let text = std::fs::read_to_string(&path).or_invalid(|| format!("cannot read `{}`", path.display()))?;
        parse(&text).or_invalid(|| format!("`{}`", path.display()))
    }

    pub(crate) fn parse(text: &str) -> fault::Result<Self> {
        let written: Self = toml_text::read(text).map_err(Fault::invalid)?;
        written.server.check()?;
        written.scheduler.check()?;
        written.notify.as_ref().map_or(Ok(()), NotifyConfig::check)?;
        written.store.as_ref().map_or(Ok(()), check_store)?;
        written.worker.as_ref().map_or(Ok(()), WorkerSettings::check)?;
        if written.worker.is_some() && written.store.is_none() {
            bail!(
                "[worker] shares the runs of a database with other servers; add [store] with its url, or remove [worker]"
            );
        }
        Ok(written)
    }

    /// Leaves faults of other tables to their readers, which tell them.
    fn parse_for_store(text: &str) -> fault::Result<Self> {
        /// The table, beside any others.
        #[derive(Deserialize)]
        struct StoreTable {
            store: Option<PostgresConfig>,
        }
        let StoreTable { store } = toml_text::read(text).map_err(Fault::invalid)?;
        store.as_ref().map_or(Ok(()), check_store)?;
        Ok(Self { store, ..Self::default() })
    }

    /// Leaves faults of other tables to their readers, which tell them.
    fn parse_for_scheduler(text: &str) -> fault::Result<Self> {
        let written: Self = toml_text::read(text).map_err(Fault::invalid)?;
        written.scheduler.check()?;
        Ok(written)
    }
}

/// `[notify]` of a data directory; none: no notifications are sent. A fault elsewhere in the file is a fault here, too.
pub fn notify(home: &Path) -> fault::Result<Option<NotifyConfig>> {
    Ok(Written::read(home, Written::parse)?.notify)
}

/// `[scheduler]` of a data directory. A value that another table does not take is no fault here.
pub fn scheduler(home: &Path) -> fault::Result<SchedulerSettings> {
    Ok(Written::read(home, Written::parse_for_scheduler)?.scheduler)
}

/// `[store]` of a data directory; none: its own files hold the state. A fault of another table is no fault here.
pub fn store(home: &Path) -> fault::Result<Option<PostgresConfig>> {
    Ok(Written::read(home, Written::parse_for_store)?.store)
}

fn check_store(store: &PostgresConfig) -> fault::Result<()> {
    store.check().map_err(|error| Fault::invalid(format!("[store] {error}")))
}

/// `[scheduler]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulerSettings {
    /// Tasks of all schedules that may wait. A fire beyond them becomes no task, and is listed with the reason
    /// `queue_full`. Default 10,000, and at most 100,000. Only a start changes it.
    #[schemars(range(min = 1, max = 100_000))]
    pub queue_max: u32,
    /// The wait of a task before it is begun again after the host ended while it ran, in milliseconds. It doubles with
    /// each further time in a row. Default 1,000. Only a start changes it.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub interruption_backoff_ms_first: u64,
    /// The longest such wait, in milliseconds. Default 60,000, and at most a day. Only a start changes it.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub interruption_backoff_ms_max: u64,
}

impl Default for SchedulerSettings {
    fn default() -> Self {
        Self { queue_max: 10_000, interruption_backoff_ms_first: 1_000, interruption_backoff_ms_max: 60_000 }
    }
}

impl SchedulerSettings {
    /// Refuses a queue without a place, and waits that are none or longer than a day.
    fn check(&self) -> fault::Result<()> {
        const DAY_MS: u64 = 86_400_000;
        let (first, max) = (self.interruption_backoff_ms_first, self.interruption_backoff_ms_max);
        let figures = [
            ("queue_max", u64::from(self.queue_max), 1, 100_000),
            ("interruption_backoff_ms_first", first, 1, DAY_MS),
            ("interruption_backoff_ms_max", max, first, DAY_MS),
        ];
        match figures.into_iter().find(|(_, value, least, most)| !(*least..=*most).contains(value)) {
            Some((name, value, least, most)) => {
                bail!("[scheduler] {name} is {value}; write a number from {least} to {most}")
            }
            None => Ok(()),
        }
    }
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address to listen on. Default 127.0.0.1:7717. Only a start changes it.
    pub listen: SocketAddr,
    /// True when clients need a token. Default true; without tokens it listens on loopback alone. Only a start changes
    /// it.
    pub tokens: bool,
    /// Host names by which clients may reach it, beside those of loopback and its own address: without port.
    pub hosts: Vec<String>,
    /// The address by which other servers of the same database reach this one, such as `http://10.0.0.2:7717`: servers
    /// that stand by forward requests there while this one works, with the tokens in them. `http` is not encrypted, and
    /// fits a private network alone. Its host is one of `hosts`, too. Default: none, and nobody forwards requests here.
    /// Only a start changes it.
    pub url: Option<String>,
    /// Requests per second for each token, or for each address without a token. Default 200.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_second: u32,
    /// Requests in a burst, likewise. Default 400.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_burst: u32,
    /// Connections at once; more wait to be accepted. Default 512. Only a start changes it.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_max: usize,
    /// Streams of events at once; more are refused. Default 256.
    #[schemars(range(min = 1, max = 100_000))]
    pub streams_max: usize,
    /// Bytes of a request's body. Default 1 MiB, and at most 16 MiB.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub body_bytes_max: usize,
    /// Jobs of `exec` at once; more are refused. Default 4.
    #[schemars(range(min = 1, max = 1_000))]
    pub exec_max: usize,
    /// `[worker]`, which stands beside `[server]` in the file.
    #[serde(skip)]
    pub worker: Option<WorkerSettings>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7717)),
            tokens: true,
            hosts: Vec::new(),
            url: None,
            requests_per_second: 200,
            requests_burst: 400,
            connections_max: 512,
            streams_max: 256,
            body_bytes_max: 1 << 20,
            exec_max: 4,
            worker: None,
        }
    }
}

impl ServerSettings {
    /// `[server]` and `[worker]` of a data directory; without the file all values are the defaults.
    pub fn read(home: &Path) -> fault::Result<Self> {
        let Written { server, worker, .. } = Written::read(home, Written::parse)?;
        Ok(Self { worker, ..server })
    }

    /// Refuses a server open to a network, and numbers that would admit no request.
    pub fn check(&self) -> fault::Result<()> {
        if !self.tokens && !self.listen.ip().is_loopback() {
            bail!(
                "{} can be reached by others, so clients need tokens; take `tokens = false` or --no-token away",
                self.listen
            );
        }
        if self.url.is_some() && self.server_url().is_none() {
            bail!("url is no address of a server; write http://HOST:PORT or https://HOST:PORT, without user and path");
        }
        if self.url.is_some() && !self.tokens {
            bail!(
                "other servers forward requests of their clients to url, so clients need tokens; take `tokens = false` or \
                 --no-token away"
            );
        }
        let figures = [
            ("requests_per_second", self.requests_per_second as usize, 1_000_000),
            ("requests_burst", self.requests_burst as usize, 1_000_000),
            ("connections_max", self.connections_max, 100_000),
            ("streams_max", self.streams_max, 100_000),
            ("body_bytes_max", self.body_bytes_max, 16 << 20),
            ("exec_max", self.exec_max, 1_000),
        ];
        match figures.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            Some((name, value, most)) => bail!("{name} is {value}; write a number from 1 to {most}"),
            None => Ok(()),
        }
    }

    /// The address by which other servers reach this one.
    pub fn server_url(&self) -> Option<ServerUrl> {
        self.url.as_deref().and_then(ServerUrl::parse)
    }

    /// The work of this server while it stands by; none: it waits.
    pub fn worker(&self) -> Option<&WorkerSettings> {
        self.worker.as_ref()
    }

    /// The settings of a running server after a change of the file, and the fields that need a restart.
    pub fn reloaded(&self, mut now: Self) -> (Self, Vec<&'static str>) {
        let mut kept = Vec::new();
        let mut keep = |name, differs: bool| differs.then(|| kept.push(name));
        keep("listen", now.listen != self.listen);
        keep("tokens", now.tokens != self.tokens);
        keep("url", now.url != self.url);
        keep("connections_max", now.connections_max != self.connections_max);
        // A server becomes a worker, or ceases to be one, when it opens the database.
        let worker_differs = now.worker.is_some() != self.worker.is_some();
        keep("[worker]", worker_differs);
        (now.listen, now.tokens, now.connections_max) = (self.listen, self.tokens, self.connections_max);
        now.url.clone_from(&self.url);
        if worker_differs {
            now.worker.clone_from(&self.worker);
        }
        (now, kept)
    }

    /// True when a client may address the server by this host name, which has no port.
    pub fn answers_to(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let own = self.listen.ip();
        let is_local = ["localhost", "127.0.0.1", "::1"].iter().any(|name| host.eq_ignore_ascii_case(name));
        // A server that listens only on a network's address has no loopback name.
        (is_local && (own.is_loopback() || own.is_unspecified()))
            || host.parse() == Ok(own)
            || self.hosts.iter().any(|name| host.eq_ignore_ascii_case(name))
            || self.server_url().is_some_and(|url| host.eq_ignore_ascii_case(url.host()))
    }
}

#[cfg(test)]
mod tests;
