//! Servers and databases that a store is not opened on: each is refused in one clear line that says what to do.

#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::store::{Store as _, StoreError};
use longhaul_postgres::{FORMAT, PostgresConfig, PostgresStore, inspect};
use server::PostgresServer;
use std::net::TcpListener;
use stores::{Losses, batch, check, refusal, try_open};

/// A store is refused with an error that has all of these words.
#[track_caller]
fn check_refused(config: &PostgresConfig, words: &[&str]) -> StoreError {
    let refused = refusal(try_open(config, "a"));
    let told = refused.to_string();
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    refused
}

#[test]
fn a_wrong_password_is_refused_and_not_repeated_and_the_right_one_opens_the_store() {
    let server = PostgresServer::shared();
    server.ask("create role guarded login password 'sesame'; grant create on database postgres to guarded");
    let without = stores::config(&server.url_of("guarded", "postgres"));
    let config = PostgresConfig { password_env: Some("STORE_KEY".into()), ..without.clone() };
    let open = |password: &'static str| {
        let variable = move |name: &str| (name == "STORE_KEY").then(|| password.to_owned());
        PostgresStore::open(&config, &variable, Losses::default().options("a"))
    };
    let refused = refusal(open("hunter2"));
    let told = refused.to_string();
    assert!(matches!(refused, StoreError::Refused { .. }) && !told.contains("hunter2"), "{refused:?}");
    assert!(told.contains("password authentication failed") && told.contains("password_env"), "{told}");
    check_refused(&without, &["password", "password_env"]);
    check_refused(&config, &["password_env names `STORE_KEY`, which is not set; export it"]);
    open("sesame").unwrap();
}

#[test]
fn an_address_without_a_server_or_a_database_is_told() {
    let server = PostgresServer::shared();
    let missing =
        check_refused(&stores::config(&server.url_of("longhaul", "nowhere")), &["\"nowhere\"", "CREATE DATABASE"]);
    assert!(matches!(missing, StoreError::Refused { .. }), "{missing:?}");
    let unknown =
        check_refused(&stores::config(&server.url_of("nobody", "postgres")), &["\"nobody\"", "check the user in url"]);
    assert!(matches!(unknown, StoreError::Refused { .. }), "{unknown:?}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://longhaul@127.0.0.1:{closed}/postgres");
    let away = check_refused(&stores::config(&url), &[&url, "cannot be reached", "refused"]);
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away:?}");
    let no_url = PostgresConfig::at("http://longhaul.example");
    check_refused(&no_url, &["url is no address of a PostgreSQL server", "write postgres://USER@HOST:PORT/DATABASE"]);
}

/// It accepts connections and says nothing, as a firewall that swallows packets does.
#[test]
fn a_server_that_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://longhaul@127.0.0.1:{}/postgres", silent.local_addr().unwrap().port());
    let config = PostgresConfig { connect_ms_max: 300, ..stores::config(&url) };
    let away = check_refused(&config, &[&url, "no connection within 300 ms"]);
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away:?}");
}

#[test]
fn a_user_without_rights_is_told_which_are_missing() {
    let server = PostgresServer::shared();
    server.ask("create role reader login");
    let config = stores::config(&server.url_of("reader", "postgres"));
    let refused = check_refused(&config, &["permission denied", "grant the user the right to make a schema"]);
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    // Somebody else's tables.
    let made = PostgresConfig { schema: config.schema.clone(), ..stores::config(&server.url()) };
    drop(stores::open(&made, "a"));
    let refused = check_refused(&config, &["permission denied"]);
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
}

#[test]
fn settings_of_a_server_that_lose_commits_or_take_none_are_refused() {
    let server = PostgresServer::shared();
    server.ask("create role careless login; alter role careless set synchronous_commit = off");
    server.ask("create role looking login; alter role looking set default_transaction_read_only = on");
    server.ask("grant create on database postgres to careless, looking");
    let at = |user: &str| stores::config(&server.url_of(user, "postgres"));
    let careless = check_refused(&at("careless"), &["synchronous_commit = off", "SET synchronous_commit = on"]);
    assert!(matches!(careless, StoreError::Refused { .. }), "{careless:?}");
    let looking = check_refused(&at("looking"), &["takes no writes", "default_transaction_read_only = off"]);
    assert!(matches!(looking, StoreError::Refused { .. }), "{looking:?}");
    server.ask("alter role careless set synchronous_commit = local");
    stores::open(&at("careless"), "a");
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = stores::open(&config, "a");
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    drop(store);
    let format = |change: &str| server.ask(&format!("update {}.meta set format = format {change}", config.schema));
    format("+ 1");
    let refused = check_refused(&config, &["use the longhaul that wrote it, or a newer one"]);
    let newer = FORMAT + 1;
    assert!(matches!(refused, StoreError::Format { found, expected: FORMAT, .. } if found == newer), "{refused:?}");
    let owner = server.value(&format!("select coalesce(nonce::text, 'nobody') from {}.owner", config.schema));
    assert_eq!(owner, "nobody");
    format("- 1");
    assert_eq!(check(&*stores::open(&config, "a"), "a"), 1);
}

#[test]
fn tls_is_checked_by_the_authority_that_is_named_and_by_the_name_of_the_server() {
    let (server, certificate) = PostgresServer::start_tls();
    let at = |host: &str, mode: &str| PostgresConfig {
        ca_file: Some(certificate.clone()),
        ..stores::config(&format!("postgres://longhaul@{host}:{}/postgres?sslmode={mode}", server.port))
    };
    let config = at("localhost", "require");
    let store = stores::open(&config, "a");
    let encrypted = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) \
                     where application_name = 'longhaul'";
    assert_eq!(server.value(encrypted), "t");
    drop(store);
    stores::open(&at("localhost", "verify-full"), "a");
    check_refused(&at("127.0.0.1", "require"), &["certificate"]);
    let unknown = PostgresConfig { ca_file: None, ..at("localhost", "require") };
    check_refused(&unknown, &["certificate"]);
}

#[test]
fn a_server_without_tls_is_not_used_where_tls_is_required() {
    let server = PostgresServer::shared();
    let config = stores::config(&format!("{}?sslmode=require", server.url()));
    check_refused(&config, &["TLS"]);
}

#[test]
fn the_report_of_a_server_tells_its_settings_and_its_owner_and_refuses_neither() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let report = inspect(&config, &|_| None).unwrap();
    assert_eq!((report.format_found, report.format_expected, report.holder.clone()), (None, FORMAT, None));
    assert_eq!((report.synchronous_commit.as_str(), report.fsync.as_str()), ("on", "off"));
    assert_eq!((report.is_replica, report.is_pooled, report.is_encrypted), (false, false, false));
    assert_eq!((report.timeline, report.connections_max, &report.path), (Some(1), 100, &config.address()));
    assert!(report.clock_skew_ms.abs() < 60_000 && report.connections_used > 0, "{report:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = stores::open(&config, "a");
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    let report = inspect(&config, &|_| None).unwrap();
    assert!(report.holder.as_ref().is_some_and(|holder| holder.contains(" on a with /data/a")), "{report:?}");
    assert_eq!(report.holder_url.as_deref(), Some("http://a.example:7717"));
    assert!(
        report.lease_left_ms.is_some_and(|left| (1..=600_000).contains(&left)) && report.size_bytes > 0,
        "{report:?}"
    );
    assert_eq!((report.format_found, report.commits, report.epoch), (Some(FORMAT), Some(1), Some(1)));
    drop(store);
    let report = inspect(&config, &|_| None).unwrap();
    assert_eq!((report.holder, report.lease_left_ms), (None, None));
    server.ask("create role hasty login; alter role hasty set synchronous_commit = off");
    let hasty = inspect(&stores::config(&server.url_of("hasty", "postgres")), &|_| None).unwrap();
    assert_eq!(hasty.synchronous_commit, "off");
}
