//! Connections to the server: TLS, the settings of a session, bounds, and what a server must be.
//!
//! TLS trusts the machine's own authorities, as every client of the host does, or one file. No statement is prepared
//! under a name, and the settings of a session are wishes: a pooler refuses or ignores them, and the bounds of every
//! wait are held on this side.
//!
//! Commits need more than a wish: each must see one moment, and fail where a row that it changes was changed since, as
//! other seats write beside this one. So a connection for commits has REPEATABLE READ as the default of its session.
//! Behind a pooler, where a session is whoever's, each commit begins and ends a transaction of its own, in one message
//! with it. The statement looks for itself in what it runs. Everything else runs in READ COMMITTED, the claim among it:
//! there the second of two processes waits for the first, and then finds the row taken. A pooler that takes no
//! transaction is refused before anything is written.

use crate::config::{PostgresConfig, refused};
use crate::counts::StoreCounts;
use crate::error::{Place, Trouble, told};
use longhaul_core::store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Config, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The oldest server: the oldest that is maintained, as `server_version_num` tells it.
const VERSION_MIN: i32 = 150_000;

/// The time between two probes of a silent connection, and the number of lost ones that end it.
const PROBE: Duration = Duration::from_secs(2);
const PROBES: u32 = 3;

/// The default of a session whose statements are commits.
const REPEATABLE: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ";

/// The begin and the end of a transaction around a commit, for sessions that have no such default.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
const COMMIT: &str = "COMMIT";

/// An open connection. Dropping it closes it at once, also in the middle of a statement.
pub(crate) struct Connection {
    pub(crate) client: Client,
    task: AbortHandle,
    /// True once its session runs every statement in REPEATABLE READ.
    is_repeatable: bool,
}

impl Connection {
    /// False once it is known to be broken. True says nothing: the next statement may find out.
    pub(crate) fn seems_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Runs a commit in REPEATABLE READ. The three messages of a transaction go together, so that a process which stops
    /// leaves none open. The way to the server and back is one.
    pub(crate) async fn repeatable<T>(&self, commit: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if self.is_repeatable {
            return commit.await;
        }
        let begin = self.client.batch_execute(BEGIN);
        // In this order, in which they are sent. Where none began, the commit is one by itself, and looks in what it
        // runs.
        let (_begun, done, ended) = tokio::join!(biased; begin, commit, self.client.batch_execute(COMMIT));
        let done = done?;
        ended?;
        Ok(done)
    }

    /// Trusts the session no longer: each commit begins its own transaction.
    pub(crate) fn distrust_session(&mut self) {
        self.is_repeatable = false;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The server of a store, and how it is reached.
pub(crate) struct Server {
    pub(crate) place: Place,
    /// Without the options of a session.
    config: Config,
    tls: Option<ClientConfig>,
    pub(crate) connect_max: Duration,
    pub(crate) statement_max: Duration,
    /// The longest time that a call waits for a server that is gone.
    pub(crate) patience: Duration,
    pub(crate) lease: Duration,
    /// Counts of what this process did with the store on it.
    pub(crate) counts: StoreCounts,
    /// Set after the settings of a session were refused, which a pooler does.
    is_pooled: AtomicBool,
}

impl Server {
    /// Reads the settings and the password. Nothing is sent yet.
    pub(crate) fn of(settings: &PostgresConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        settings.check()?;
        let mut config = settings.parsed()?;
        if let Some(name) = &settings.password_env {
            let missing = || refused(format!("password_env names `{name}`, which is not set"), "export it");
            config.password(variable(name).ok_or_else(missing)?);
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls(settings.ca_file.as_deref())?),
        };
        // Each host gets its share, so that one that swallows packets leaves time for the next.
        let hosts = u32::try_from(config.get_hosts().len().max(config.get_hostaddrs().len())).unwrap_or(1).max(1);
        config
            .application_name("longhaul")
            .connect_timeout(settings.connect_max() / hosts)
            .tcp_user_timeout(PROBE * PROBES)
            .keepalives_idle(PROBE * PROBES)
            .keepalives_interval(PROBE)
            .keepalives_retries(PROBES)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self {
            place: Place(settings.address()),
            config,
            tls,
            connect_max: settings.connect_max(),
            statement_max: settings.statement_max(),
            patience: settings.patience(),
            lease: settings.lease(),
            counts: StoreCounts::default(),
            is_pooled: AtomicBool::new(false),
        })
    }

    /// The longest time for a commit of few bytes, and for a statement about the lease: short enough to be sent twice
    /// within a lease.
    pub(crate) fn append_max(&self) -> Duration {
        self.statement_max.min(self.lease / 2)
    }

    /// A connection for commits, to a server that takes writes and is fit for a store.
    pub(crate) async fn connect_checked(&self) -> Result<Connection, StoreError> {
        let mut connection = self.connect().await?;
        let facts = self.facts(&connection).await?;
        facts.check(&self.place)?;
        self.check_pooler(&connection, &facts).await.map_err(Trouble::into_error)?;
        self.prepare_commits(&mut connection, &facts).await.map_err(Trouble::into_error)?;
        Ok(connection)
    }

    /// Refuses a pooler that gives each statement a session of its own: a commit is a transaction. Where there is no
    /// pooler, nothing is asked.
    pub(crate) async fn check_pooler(&self, connection: &Connection, facts: &Facts) -> Result<(), Trouble> {
        if !self.has_pooler(facts) {
            return Ok(());
        }
        let client = &connection.client;
        let tried = async {
            client.batch_execute(BEGIN).await?;
            let asked = "SELECT current_setting('transaction_isolation') = 'repeatable read'";
            let is_within: bool = client.query_typed_one(asked, &[]).await?.try_get(0)?;
            client.batch_execute(COMMIT).await?;
            Ok::<bool, Error>(is_within)
        };
        match self.bounded(self.append_max(), tried).await? {
            true => Ok(()),
            // Another pooler, which spreads the statements of a transaction over sessions and says nothing.
            false => Err(Trouble::Final(self.place.statement_mode())),
        }
    }

    /// Makes a connection one for commits.
    pub(crate) async fn prepare_commits(&self, connection: &mut Connection, facts: &Facts) -> Result<(), Trouble> {
        if !self.has_pooler(facts) {
            self.bounded(self.append_max(), connection.client.batch_execute(REPEATABLE)).await?;
            connection.is_repeatable = true;
        }
        Ok(())
    }

    /// A connection to the first server that answers, which may be a replica where there is only one: what it says of
    /// itself makes a better error.
    pub(crate) async fn connect_to_any(&self) -> Result<Connection, StoreError> {
        let mut config = self.config.clone();
        if config.get_hosts().len().max(config.get_hostaddrs().len()) == 1 {
            config.target_session_attrs(TargetSessionAttrs::Any);
        }
        self.connect_as(&config).await
    }

    /// A connection to a server that takes writes: reads must see what was written.
    pub(crate) async fn connect(&self) -> Result<Connection, StoreError> {
        self.connect_as(&self.config).await
    }

    /// The server's own description.
    pub(crate) async fn facts(&self, connection: &Connection) -> Result<Facts, StoreError> {
        let facts = self.bounded(self.append_max(), Facts::ask(&connection.client)).await;
        facts.map_err(Trouble::into_error)
    }

    async fn connect_as(&self, config: &Config) -> Result<Connection, StoreError> {
        let made = timeout(self.connect_max, self.connect_in_either_way(config)).await;
        let late = |_| self.place.unreachable(format!("no connection within {} ms", self.connect_max.as_millis()));
        made.map_err(late)?.map_err(|error| self.place.no_connection(&error))
    }

    /// Runs a statement with a bound.
    pub(crate) async fn bounded<T>(
        &self,
        limit: Duration,
        statement: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Trouble> {
        match timeout(limit, statement).await {
            Ok(done) => done.map_err(|error| self.place.trouble(&error)),
            Err(_) => {
                let detail = format!("no answer within {} ms", limit.as_millis());
                Err(Trouble::Unknown(self.place.unreachable(detail)))
            }
        }
    }

    /// True where a pooler is between: it refused the settings of a session, or did not hand them on.
    pub(crate) fn has_pooler(&self, facts: &Facts) -> bool {
        self.is_pooled() || facts.statement_timeout != self.statement_ms().to_string()
    }

    /// True once the settings of a session were refused.
    fn is_pooled(&self) -> bool {
        self.is_pooled.load(Ordering::Relaxed)
    }

    /// The time after which the server ends a statement by itself, where it hears of that.
    fn statement_ms(&self) -> u128 {
        self.statement_max.as_millis()
    }

    async fn connect_in_either_way(&self, config: &Config) -> Result<Connection, Error> {
        if !self.is_pooled() {
            match self.connect_with(&self.with_session(config)).await {
                // PgBouncer: `unsupported startup parameter in options`.
                Err(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                    tracing::info!(why = %told(&error), "a pooler refuses the settings of a session; going on without");
                    self.is_pooled.store(true, Ordering::Relaxed);
                }
                made => return made,
            }
        }
        self.connect_with(config).await
    }

    async fn connect_with(&self, config: &Config) -> Result<Connection, Error> {
        match &self.tls {
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                Ok(Connection { client, task: tokio::spawn(connection).abort_handle(), is_repeatable: false })
            }
            Some(tls) => {
                let (client, connection) = config.connect(MakeRustlsConnect::new(tls.clone())).await?;
                Ok(Connection { client, task: tokio::spawn(connection).abort_handle(), is_repeatable: false })
            }
        }
    }

    /// The settings with those of a session. Every statement goes by an index, also over tables that the server has no
    /// statistics of yet; and `jit` costs more than it gains for statements of a millisecond.
    fn with_session(&self, config: &Config) -> Config {
        let of_user = config.get_options().unwrap_or_default();
        let ms = self.statement_ms();
        let mut config = config.clone();
        config.options(format!(
            "{of_user} -c statement_timeout={ms} -c lock_timeout={ms} -c idle_in_transaction_session_timeout={ms} \
             -c default_transaction_isolation=read\\ committed -c client_min_messages=warning -c jit=off \
             -c enable_seqscan=off -c enable_bitmapscan=off"
        ));
        config
    }
}

/// The server's facts about itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) version: String,
    version_number: i32,
    pub(crate) is_replica: bool,
    is_read_only: bool,
    pub(crate) synchronous_commit: String,
    pub(crate) isolation: String,
    pub(crate) statement_timeout: String,
    /// As far as the server sees, before which a pooler may be.
    pub(crate) is_encrypted: bool,
}

impl Facts {
    pub(crate) async fn ask(client: &Client) -> Result<Self, Error> {
        let asked = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, \
                     pg_is_in_recovery(), current_setting('transaction_read_only')::bool, \
                     current_setting('synchronous_commit'), current_setting('default_transaction_isolation'), \
                     (SELECT setting FROM pg_settings WHERE name = 'statement_timeout'), \
                     coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)";
        let row = client.query_typed_one(asked, &[]).await?;
        Ok(Self {
            version: row.try_get(0)?,
            version_number: row.try_get(1)?,
            is_replica: row.try_get(2)?,
            is_read_only: row.try_get(3)?,
            synchronous_commit: row.try_get(4)?,
            isolation: row.try_get(5)?,
            statement_timeout: row.try_get(6)?,
            is_encrypted: row.try_get(7)?,
        })
    }

    /// Refuses a server that cannot keep a store.
    pub(crate) fn check(&self, place: &Place) -> Result<(), StoreError> {
        let unfit = |fault: String, remedy: &str| {
            Err(refused(format!("the server of the store in `{}` {fault}", place.0), remedy))
        };
        if self.version_number < VERSION_MIN {
            return unfit(format!("is PostgreSQL {}", self.version), "use PostgreSQL 15 or later");
        }
        if self.is_replica {
            return unfit(
                "is a replica, which takes no writes".to_owned(),
                "write the address of the primary in url, or those of all servers, separated by commas",
            );
        }
        if self.is_read_only {
            return unfit(
                "takes no writes".to_owned(),
                "set default_transaction_read_only = off for the user and the database",
            );
        }
        if self.synchronous_commit == "off" {
            return Err(not_durable(place));
        }
        Ok(())
    }
}

/// The error for a server that acknowledges what it may lose.
pub(crate) fn not_durable(place: &Place) -> StoreError {
    refused(
        format!(
            "the server of the store in `{}` has synchronous_commit = off, which loses acknowledged commits",
            place.0
        ),
        "set it to on, for all or with ALTER ROLE ... SET synchronous_commit = on",
    )
}

/// The client's TLS settings: the certificate and the name of the server are checked in every case.
fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, StoreError> {
    let unusable = |why: rustls::Error| refused(format!("TLS cannot be used: {why}"), "install ca-certificates");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(unusable)?;
    match ca_file {
        Some(file) => Ok(builder.with_root_certificates(authorities(file)?).with_no_client_auth()),
        None => Ok(builder.with_platform_verifier().map_err(unusable)?.with_no_client_auth()),
    }
}

fn authorities(file: &Path) -> Result<RootCertStore, StoreError> {
    let unusable = |why: String| {
        refused(format!("ca_file `{}` cannot be used: {why}", file.display()), "write the path of a file of PEM")
    };
    let mut found = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|why| unusable(why.to_string()))? {
        let certificate = certificate.map_err(|why| unusable(why.to_string()))?;
        found.add(certificate).map_err(|why| unusable(why.to_string()))?;
    }
    if found.is_empty() {
        return Err(unusable("it has no certificate".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            version: "15.8".to_owned(),
            version_number: 150_008,
            is_replica: false,
            is_read_only: false,
            synchronous_commit: "on".to_owned(),
            isolation: "read committed".to_owned(),
            statement_timeout: "30000".to_owned(),
            is_encrypted: false,
        }
    }

    #[test]
    fn a_server_that_cannot_keep_a_store_is_refused_with_the_remedy() {
        let check = |change: &dyn Fn(&mut Facts), expected: &str| {
            let mut facts = facts();
            change(&mut facts);
            let said = facts.check(&Place("postgres://h/db".into())).map_err(|error| error.to_string());
            let said = said.err().unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
        };
        check(&|_| {}, "");
        check(&|facts| facts.synchronous_commit = "local".into(), "");
        check(&|facts| facts.synchronous_commit = "off".into(), "ALTER ROLE ... SET synchronous_commit = on");
        check(&|facts| facts.is_replica = true, "write the address of the primary in url");
        check(&|facts| facts.is_read_only = true, "default_transaction_read_only = off");
        check(&|facts| facts.version_number = 149_999, "use PostgreSQL 15 or later");
        check(&|facts| facts.version_number = 150_000, "");
    }

    #[test]
    fn a_password_that_is_not_there_is_said_by_the_name_of_its_variable_and_one_that_is_there_never() {
        let config = PostgresConfig {
            password_env: Some("STORE_KEY".into()),
            ..PostgresConfig::at("postgres://u@localhost/db")
        };
        let missing = Server::of(&config, &|_| None).err().map(|error| error.to_string());
        assert_eq!(missing.as_deref(), Some("password_env names `STORE_KEY`, which is not set; export it"));
        let server = Server::of(&config, &|_| Some("hunter2".into())).expect("settings");
        assert!(!format!("{:?} {:?}", server.config, server.place).contains("hunter2"));
    }

    #[test]
    fn authorities_that_cannot_be_read_are_told_with_their_path() {
        let config = PostgresConfig {
            ca_file: Some("/no/such/ca.pem".into()),
            ..PostgresConfig::at("postgres://u@db.example/db")
        };
        let said = Server::of(&config, &|_| None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("ca_file `/no/such/ca.pem` cannot be used"), "{said}");
    }
}
