//! `server.toml` of the data directory: the address and access of the server, the limits of the scheduler, the
//! recipients of notifications about failed tasks, and the database that holds the state.
//!
//! `[scheduler]` and `[store]` are read when a process comes to own the data directory. `[server]` is read when the
//! server starts and at SIGHUP. Fields that only a start can change are reported then, and keep their value. `[notify]`
//! is read whenever a notification may be due.

use crate::notify::NotifyConfig;
use crate::server_url::ServerUrl;
use crate::toml_text;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_postgres::PostgresConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

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
        }
    }
}

impl ServerSettings {
    /// `[server]` of a data directory; without the file all values are the defaults.
    pub fn read(home: &Path) -> fault::Result<Self> {
        Ok(Written::read(home, Written::parse)?.server)
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

    /// The settings of a running server after a change of the file, and the fields that need a restart.
    pub fn reloaded(&self, mut now: Self) -> (Self, Vec<&'static str>) {
        let mut kept = Vec::new();
        let mut keep = |name, differs: bool| differs.then(|| kept.push(name));
        keep("listen", now.listen != self.listen);
        keep("tokens", now.tokens != self.tokens);
        keep("url", now.url != self.url);
        keep("connections_max", now.connections_max != self.connections_max);
        (now.listen, now.tokens, now.connections_max) = (self.listen, self.tokens, self.connections_max);
        now.url.clone_from(&self.url);
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
mod tests {
    use super::*;

    #[test]
    fn a_file_may_leave_everything_out_and_a_wrong_word_is_refused() {
        let nothing = Written::parse("").unwrap();
        assert_eq!((nothing.server, nothing.notify.is_none()), (ServerSettings::default(), true));
        assert_eq!(Written::parse("[server]\nhosts = ['a.example']").unwrap().server.hosts, ["a.example"]);
        let url = Written::parse("[server]\nurl = 'http://10.0.0.2:7717/'").unwrap().server.server_url();
        assert_eq!(url.map(|url| url.to_string()).as_deref(), Some("http://10.0.0.2:7717"));
        assert!(Written::parse("[notify]\ncommand = ['true']").unwrap().notify.is_some());
        assert!(Written::parse("[store]\nurl = 'postgres://me@db.example/work'").unwrap().store.is_some());
        assert_eq!(Written::parse("[server]\n").unwrap().scheduler, SchedulerSettings::default());
        let edge = "[scheduler]\nqueue_max = 1\ninterruption_backoff_ms_first = 5\ninterruption_backoff_ms_max = 5";
        assert_eq!(Written::parse(edge).unwrap().scheduler.interruption_backoff_ms_max, 5);
        for wrong in [
            "[server]\nlisten = '0.0.0.0:1'\ntokens = false",
            "[server]\nrequests_per_second = 0",
            "[server]\nurl = ''",
            "[server]\nurl = '10.0.0.2:7717'",
            "[server]\nurl = 'http://me:secret@10.0.0.2:7717'",
            "[server]\nurl = 'http://10.0.0.2:7717'\ntokens = false",
            "[server]\nbody_bytes_max = 17000000",
            "[server]\nno_such = 1",
            "[sever]\n",
            "[scheduler]\nqueue_max = 0",
            "[scheduler]\nqueue_max = 100001",
            "[scheduler]\ninterruption_backoff_ms_first = 0",
            "[scheduler]\ninterruption_backoff_ms_max = 999",
            "[scheduler]\ninterruption_backoff_ms_max = 86400001",
            "[scheduler]\nno_such = 1",
            "[notify]\n",
            "[notify]\ncommand = ['true']\nno_such = 1",
            "[store]\n",
            "[store]\nurl = 'redis://h/0'",
            "[store]\nurl = 'postgres://me@h/db'\nlease_ms = 1999",
        ] {
            assert!(Written::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// The parser's own error has five lines.
    #[test]
    fn a_wrong_key_is_told_in_one_line_with_its_place_and_the_keys_that_are_meant() {
        let told = |text: &str| Written::parse(text).expect_err("wrong").to_string();
        assert_eq!(
            told("listen = '127.0.0.1:1'"),
            "line 1: unknown field `listen`; there are `server`, `scheduler`, `notify`, `store`"
        );
        assert_eq!(
            told("[scheduler]\nqueue_mx = 1"),
            "line 2: [scheduler] unknown field `queue_mx`; did you mean `queue_max`?"
        );
    }

    #[test]
    fn the_store_is_found_beside_faults_of_other_tables_and_its_own_are_told_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            store(folder.path())
        };
        assert_eq!(read("[server]\nno_such = 1\n").unwrap(), None);
        let found = read("[sever]\n[store]\nurl = 'postgres://me@h/db'\nca_file = '/ca.pem'\n").unwrap().unwrap();
        assert_eq!((found.schema.as_str(), found.ca_file), ("longhaul", Some("/ca.pem".into())));
        let told = |text: &str| format!("{:#}", read(text).unwrap_err());
        let path = folder.path().join(FILE);
        assert_eq!(
            told("[store]\nurl = 'postgres://me:hunter2@h/db'"),
            format!(
                "`{}`: [store] url holds a password; remove it, and name a variable of the environment with password_env",
                path.display()
            )
        );
        let slip = told("[store]\nurl = 'postgres://me@h/db'\nlease = 1");
        assert!(slip.contains("line 3: [store] unknown field `lease`") && slip.lines().count() == 1, "{slip}");
    }

    #[test]
    fn a_name_that_was_not_allowed_is_no_name_of_ours() {
        let local = ServerSettings { hosts: vec!["longhaul.example".into()], ..ServerSettings::default() };
        for ours in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "longhaul.example"] {
            assert!(local.answers_to(ours), "{ours}");
        }
        for other in ["", "evil.example", "localhost.evil.example", "127.0.0.2", "0.0.0.0", "longhaul.example.evil"] {
            assert!(!local.answers_to(other), "{other}");
        }
        let wide = ServerSettings { listen: "192.0.2.1:80".parse().unwrap(), ..ServerSettings::default() };
        assert!(wide.answers_to("192.0.2.1") && !wide.answers_to("localhost"));
        let at = |url: &str| ServerSettings { url: Some(url.to_owned()), ..wide.clone() };
        assert!(at("https://alpha.example").answers_to("Alpha.example"));
        assert!(at("http://[fd00::2]:1").answers_to("[fd00::2]"));
        assert!(!at("https://alpha.example").answers_to("beta.example"));
    }

    #[test]
    fn a_reload_takes_what_it_can_and_names_the_rest() {
        let before = ServerSettings::default();
        let url = Some("http://10.0.0.2:7717".to_owned());
        let after = ServerSettings { streams_max: 1, connections_max: 1, url, ..ServerSettings::default() };
        let (now, kept) = before.reloaded(after);
        assert_eq!((now.streams_max, now.connections_max, now.url), (1, 512, None));
        assert_eq!(kept, ["url", "connections_max"]);
    }
}
