//! The backend and the shared runs against a real redis-server.

#[path = "support/server.rs"]
mod server;

use longhaul_conform::{Bench, conform_backend};
use longhaul_core::Clock as _;
use longhaul_core::memory::{MemoryBackend, MemoryEntry, MemoryError};
use longhaul_core::shared::{RunShare as _, SharedError};
use longhaul_redis::{RedisConfig, RedisMemory, SharedRuns};
use longhaul_testkit::HandClock;
use server::RedisServer;
use std::path::Path;
use std::sync::Arc;

fn clock() -> Arc<HandClock> {
    Arc::new(HandClock::at(HandClock::START_MS))
}

fn memory(config: &RedisConfig, clock: &Arc<HandClock>) -> RedisMemory {
    let clock = Arc::clone(clock) as Arc<dyn longhaul_core::Clock>;
    RedisMemory::new(config, &|_| None, Path::new("/"), clock).expect("the configuration fits")
}

fn entry(key: &str, value: &str) -> MemoryEntry {
    MemoryEntry { key: key.into(), value: serde_json::json!(value).to_string(), tags: Vec::new(), expires_at_ms: None }
}

struct OnServer {
    server: RedisServer,
    clock: Arc<HandClock>,
}

#[async_trait::async_trait]
impl Bench for OnServer {
    async fn open(&self, room: &str) -> Result<Box<dyn MemoryBackend>, String> {
        let config = RedisConfig { prefix: room.to_owned(), ..RedisConfig::at(&self.server.url()) };
        Ok(Box::new(memory(&config, &self.clock)))
    }

    fn clock(&self) -> &HandClock {
        &self.clock
    }
}

#[tokio::test]
async fn the_backend_passes_the_rules_of_the_conformance_kit() {
    let bench = OnServer { server: RedisServer::start(), clock: clock() };
    let report = conform_backend("redis", &bench).await;
    assert!(report.passes() && report.findings.len() >= 7, "{report}");
}

#[tokio::test]
async fn a_letter_of_a_pattern_is_a_letter() {
    let server = RedisServer::start();
    let backend = memory(&RedisConfig::at(&server.url()), &clock());
    for key in ["*", "a*", "ab", "a?", "[a-z]", "{x}", "a\0*"] {
        backend.put("n*", entry(key, key)).await.expect("kept");
    }
    backend.put("nx", entry("ab", "elsewhere")).await.expect("kept");
    let listed = backend.list("n*", "a*", None, 10).await.expect("listed");
    assert_eq!((listed.keys, listed.next), (vec!["a*".to_owned()], None));
    assert!(backend.delete("n*", "*").await.expect("deleted"));
    assert_eq!(
        backend.list("n*", "", None, 10).await.expect("listed").keys,
        ["[a-z]", "a\0*", "a*", "a?", "ab", "{x}"]
    );
    assert!(backend.get("nx", "ab").await.expect("read").is_some(), "another namespace is untouched");
}

/// When two machines stored one fact at once, one used to be lost.
#[tokio::test]
async fn an_entry_is_replaced_only_where_it_is_still_the_one_that_was_seen() {
    let (server, clock) = (RedisServer::start(), clock());
    let backend = memory(&RedisConfig::at(&server.url()), &clock);
    let (one, two, odd) = (entry("k", "one"), entry("k", "two"), entry("k", "\"\\ \u{7f}é\u{1f600}/\n"));
    assert!(backend.replace("n", None, one.clone()).await.expect("asked"));
    assert!(!backend.replace("n", None, two.clone()).await.expect("asked"), "somebody was quicker");
    assert!(!backend.replace("n", Some(&two), odd.clone()).await.expect("asked"));
    assert!(backend.replace("n", Some(&one), odd.clone()).await.expect("asked"));
    assert!(backend.replace("n", Some(&odd), two.clone()).await.expect("asked"), "whatever letters it has");
    assert_eq!(backend.get("n", "k").await.expect("read"), Some(two.clone()));
    assert_eq!(backend.list("n", "", None, 9).await.expect("listed").keys, ["k"]);
    // An entry that is expired by the host's clock counts as none, even while the server has it.
    clock.advance_ms(86_401_000);
    assert!(!backend.replace("n", Some(&two), one.clone()).await.expect("asked"));
    assert!(backend.replace("n", None, one).await.expect("asked"));
}

/// A fact that another machine stored after a person had looked used to be removed with the one that was seen.
#[tokio::test]
async fn an_entry_is_removed_only_where_it_is_still_the_one_that_was_seen() {
    let (server, clock) = (RedisServer::start(), clock());
    let config = RedisConfig::at(&server.url());
    let (ours, theirs) = (memory(&config, &clock), memory(&config, &clock));
    let (one, odd) = (entry("k", "one"), entry("k", "\"\\ \u{7f}é\u{1f600}/\n"));
    ours.put("n", one.clone()).await.expect("kept");
    ours.put("other", one.clone()).await.expect("kept");
    assert!(theirs.replace("n", Some(&one), odd.clone()).await.expect("asked"));
    assert!(!ours.remove("n", &one).await.expect("asked"), "somebody was quicker");
    assert_eq!(theirs.get("n", "k").await.expect("read"), Some(odd.clone()));
    assert!(ours.remove("n", &odd).await.expect("asked"), "whatever letters it has");
    assert_eq!(theirs.get("n", "k").await.expect("read"), None);
    assert!(theirs.list("n", "", None, 9).await.expect("listed").keys.is_empty());
    assert!(!ours.remove("n", &odd).await.expect("asked"), "it is removed");
    assert_eq!(ours.get("other", "k").await.expect("read"), Some(one.clone()), "another namespace is untouched");
    // An entry that is expired by the host's clock counts as none, even while the server has it.
    clock.advance_ms(86_401_000);
    assert!(!ours.remove("other", &one).await.expect("asked"));
}

#[tokio::test]
async fn what_has_no_lifetime_of_its_own_lives_a_day_also_on_the_server() {
    let (server, clock) = (RedisServer::start(), clock());
    let config = RedisConfig::at(&server.url());
    let backend = memory(&config, &clock);
    backend.put("n", entry("k", "v")).await.expect("kept");
    // The server's answer is `:SECONDS`; it counts down from a day.
    let left = server.ask(&["TTL", "longhaul:m:1:n:k"]);
    let left: u64 =
        left.lines().next().and_then(|line| line.strip_prefix(':')).expect("a number").parse().expect("one");
    assert!((86_300..=86_400).contains(&left), "{left}");
    clock.advance_ms(86_399_000);
    assert!(backend.get("n", "k").await.expect("read").is_some());
    clock.advance_ms(2_000);
    assert!(backend.get("n", "k").await.expect("read").is_none());
    #[expect(clippy::cast_precision_loss, reason = "a time")]
    let over = MemoryEntry { expires_at_ms: Some(clock.now_ms() as f64), ..entry("now", "v") };
    backend.put("n", over).await.expect("taken");
    assert!(backend.get("n", "now").await.expect("read").is_none(), "a lifetime of 0 is over at once");
}

#[tokio::test]
async fn several_processes_see_the_same_and_a_server_that_comes_back_is_found() {
    let (mut server, clock) = (RedisServer::start(), clock());
    let config = RedisConfig::at(&server.url());
    let (one, other) = (memory(&config, &clock), memory(&config, &clock));
    one.put("n", entry("k", "from one")).await.expect("kept");
    assert_eq!(other.get("n", "k").await.expect("read"), Some(entry("k", "from one")));
    server.restart();
    assert_eq!(other.get("n", "k").await.expect("the server is there again"), None);
    one.put("n", entry("k", "again")).await.expect("kept");
    server.kill();
    let away = other.get("n", "k").await;
    assert!(matches!(away, Err(MemoryError::Unavailable(_))), "{away:?}");
}

#[tokio::test]
async fn a_password_opens_the_server_and_its_absence_is_said() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let named = RedisConfig { password_env: Some("SHELF_KEY".into()), ..RedisConfig::at(&server.url()) };
    let open = |config: &RedisConfig, password: &'static str| {
        let variable = move |name: &str| (name == "SHELF_KEY").then(|| password.to_owned());
        RedisMemory::new(config, &variable, Path::new("/"), clock()).expect("the configuration fits")
    };
    open(&named, "hunter2").put("n", entry("k", "v")).await.expect("kept");
    let without = memory(&RedisConfig::at(&server.url()), &clock()).get("n", "k").await;
    let wrong = open(&named, "sesame").get("n", "k").await;
    for refused in [without, wrong] {
        let said = refused.expect_err("refused").to_string();
        assert!(said.contains("set password_env") && !said.contains("sesame"), "{said}");
    }
}

#[tokio::test]
async fn tls_is_checked_by_the_authority_that_is_named_and_by_the_name() {
    let (server, certificate) = RedisServer::start_tls();
    let at = |host: &str| RedisConfig {
        ca_file: Some(certificate.clone()),
        ..RedisConfig::at(&format!("rediss://{host}:{}/0", server.port))
    };
    memory(&at("localhost"), &clock()).put("n", entry("k", "v")).await.expect("kept");
    let other_name = memory(&at("127.0.0.1"), &clock()).get("n", "k").await;
    assert!(other_name.is_err(), "the certificate is for another name: {other_name:?}");
    let unknown = RedisConfig { ca_file: None, ..at("localhost") };
    let unknown = memory(&unknown, &clock()).get("n", "k").await;
    assert!(unknown.is_err(), "nobody vouches for the certificate: {unknown:?}");
}

fn shared(server: &RedisServer) -> SharedRuns {
    SharedRuns::new(&RedisConfig::at(&server.url()), &|_| None, Path::new("/")).expect("the configuration fits")
}

#[tokio::test]
async fn one_holder_at_a_time_and_a_late_one_writes_nothing() {
    let server = RedisServer::start();
    let (ours, theirs) = (shared(&server), shared(&server));
    let lease = ours.acquire("r-1", "a", 60_000, false).await.expect("free");
    assert_eq!(ours.acquire("r-1", "a", 60_000, false).await.expect("renewed"), lease);
    ours.put(&lease, b"one").await.expect("written");
    let held = theirs.acquire("r-1", "b", 60_000, true).await;
    assert!(matches!(&held, Err(SharedError::Held { holder, .. }) if holder == "a"), "{held:?}");
    ours.release(&lease).await.expect("given back");
    let moved = theirs.acquire("r-1", "b", 60_000, false).await;
    assert!(matches!(&moved, Err(SharedError::Moved { holder, .. }) if holder == "a"), "{moved:?}");
    let later = theirs.acquire("r-1", "b", 60_000, true).await.expect("free again");
    assert_eq!(later.fence, lease.fence + 1);
    assert_eq!(theirs.get("r-1").await.expect("read").as_deref(), Some(&b"one"[..]));
    // A takeover without confirmation does not change the owner, even while its lease lasts.
    let early = theirs.acquire("r-1", "b", 60_000, false).await;
    assert!(matches!(&early, Err(SharedError::Moved { holder, .. }) if holder == "a"), "{early:?}");
    theirs.claim(&later).await.expect("taken over");
    let late = ours.claim(&lease).await;
    assert!(matches!(late, Err(SharedError::Fenced { .. })), "{late:?}");
    theirs.put(&later, b"two").await.expect("written");
    let late = ours.put(&lease, b"from the dead").await;
    assert!(matches!(late, Err(SharedError::Fenced { .. })), "{late:?}");
    assert_eq!(theirs.get("r-1").await.expect("read").as_deref(), Some(&b"two"[..]));
    // Its lease ended without a release: the last owner gets it again, and another machine only by a takeover.
    server.ask(&["DEL", "longhaul:lease:r-1"]);
    let moved = ours.acquire("r-1", "a", 60_000, false).await;
    assert!(matches!(moved, Err(SharedError::Moved { .. })), "{moved:?}");
    assert_eq!(theirs.acquire("r-1", "b", 60_000, false).await.expect("free").fence, later.fence + 1);
}

#[tokio::test]
async fn any_key_is_one_of_a_snapshot() {
    let server = RedisServer::start();
    let shared = shared(&server);
    let keys = ["../escaped".to_owned(), "k".repeat(300), "*".to_owned(), "r-1:agents.code".to_owned()];
    for key in &keys {
        let lease = shared.acquire(key, "a", 60_000, false).await.expect("free");
        shared.put(&lease, key.as_bytes()).await.expect("written");
        assert_eq!(shared.get(key).await.expect("read").as_deref(), Some(key.as_bytes()));
    }
    let mut sorted = keys.to_vec();
    sorted.sort();
    assert_eq!(shared.list().await.expect("listed"), sorted);
    shared.delete("*").await.expect("removed");
    assert_eq!(shared.list().await.expect("listed").len(), 3);
}
