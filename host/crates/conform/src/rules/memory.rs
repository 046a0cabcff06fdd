//! Rules for memory backends. Every call gets a fresh instance, so every read is after a reopening.

use crate::probe::{ODD, Probe};
use crate::report::RuleVerdict;
use longhaul_core::Clock as _;
use longhaul_core::memory::{MemoryBackend, MemoryEntry, MemoryError};
use longhaul_testkit::{Call, Ending, HandClock, Scene};
use serde_json::{Value, json};

/// Lifetime of an entry that has to expire.
const KEEP_MS: u64 = 1_000;

/// A built-in backend under test.
#[async_trait::async_trait]
pub trait Bench: Sync {
    /// Opens it as after a restart: entries from an earlier opening of the same `room` exist, and none of another one.
    ///
    /// # Errors
    /// The error as text.
    async fn open(&self, room: &str) -> Result<Box<dyn MemoryBackend>, String>;

    /// The clock that entries expire by.
    fn clock(&self) -> &HandClock;
}

/// A backend's answer, in the JSON that a component's answers have.
async fn answered(backend: &dyn MemoryBackend, call: Call) -> Result<Value, MemoryError> {
    let entry = |entry: MemoryEntry| {
        let MemoryEntry { key, value, tags, expires_at_ms } = entry;
        let value: Value = serde_json::from_str(&value).unwrap_or(Value::Null);
        json!({ "key": key, "value": value, "tags": tags, "expires_at_ms": expires_at_ms })
    };
    Ok(match call {
        Call::Put(namespace, entry) => backend.put(&namespace, entry).await.map(|()| Value::Null)?,
        Call::Get(namespace, key) => backend.get(&namespace, &key).await?.map_or(Value::Null, entry),
        Call::Search(namespace, query, limit) => {
            let hits = backend.search(&namespace, &query, limit).await?.into_iter();
            hits.map(|hit| json!({ "entry": entry(hit.entry), "score": hit.score })).collect()
        }
        Call::Delete(namespace, key) => Value::Bool(backend.delete(&namespace, &key).await?),
        Call::List { namespace, prefix, cursor, limit } => {
            let page = backend.list(&namespace, &prefix, cursor.as_deref(), limit).await?;
            json!({ "keys": page.keys, "cursor": page.next })
        }
        other => return Err(MemoryError::Invalid(format!("`{}` is no call of a memory backend", other.export()))),
    })
}

/// Checks that a backend refuses a value that is not JSON.
pub(crate) async fn refuses(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    let entry = MemoryEntry { key: "a".to_owned(), value: "{\"a\":".to_owned(), tags: Vec::new(), expires_at_ms: None };
    if backend.ask(Call::Put("n".to_owned(), entry)).await.is_ok() {
        return Ok(RuleVerdict::Fail("it took a value that is no JSON; answer with a typed error".to_owned()));
    }
    let found = backend.get("n", "a").await?;
    Ok(match found {
        Value::Null => RuleVerdict::Pass("a value that is no JSON was refused, and is not there".to_owned()),
        other => RuleVerdict::Fail(format!("a value that is no JSON was refused, and got back was {other}")),
    })
}

/// A backend, whose every answer must be a value.
pub(crate) enum TestedBackend<'a> {
    /// A component, called in one scene.
    Component(&'a Probe, Box<Scene>),
    /// A built-in backend, opened again for each call.
    Own(&'a dyn Bench, &'static str),
}

impl<'a> TestedBackend<'a> {
    pub(crate) fn of(probe: &'a Probe) -> Self {
        Self::Component(probe, Box::new(probe.scene()))
    }

    fn clock(&self) -> &HandClock {
        match self {
            Self::Component(_, scene) => scene.clock(),
            Self::Own(bench, _) => bench.clock(),
        }
    }

    async fn ask(&self, call: Call) -> Result<Value, String> {
        let what = call.export();
        match self {
            Self::Component(probe, scene) => match probe.call(scene, call).await?.ending {
                Ending::Returned(value) => Ok(value),
                Ending::Refused(refusal) => Err(format!("`{what}` answered `{}`: {}", refusal.case, refusal.text)),
                Ending::Stopped(error) => Err(format!("`{what}` was stopped: {error}")),
            },
            Self::Own(bench, room) => {
                let backend = bench.open(room).await?;
                answered(&*backend, call).await.map_err(|error| format!("`{what}` answered: {error}"))
            }
        }
    }

    async fn put(&self, namespace: &str, key: &str, value: &Value) -> Result<Value, String> {
        self.put_until(namespace, key, value, None).await
    }

    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
    async fn put_until(&self, namespace: &str, key: &str, value: &Value, until: Option<u64>) -> Result<Value, String> {
        let entry = MemoryEntry {
            key: key.to_owned(),
            value: value.to_string(),
            tags: vec!["probe".to_owned()],
            expires_at_ms: until.map(|ms| ms as f64),
        };
        self.ask(Call::Put(namespace.to_owned(), entry)).await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Value, String> {
        self.ask(Call::Get(namespace.to_owned(), key.to_owned())).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<Value, String> {
        self.ask(Call::Delete(namespace.to_owned(), key.to_owned())).await
    }

    async fn list(&self, namespace: &str, prefix: &str, cursor: Option<&str>, limit: u32) -> Result<Value, String> {
        let (namespace, prefix, cursor) = (namespace.to_owned(), prefix.to_owned(), cursor.map(str::to_owned));
        self.ask(Call::List { namespace, prefix, cursor, limit }).await
    }

    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<Value>, String> {
        let found = self.ask(Call::Search(namespace.to_owned(), query.to_owned(), limit)).await?;
        Ok(found.as_array().cloned().unwrap_or_default())
    }
}

pub(crate) async fn keeps(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    let (first, second) = (json!({ "a": [1, 2.5, null, true, "x"] }), json!("second"));
    backend.put("n", "k", &first).await?;
    let found = backend.get("n", "k").await?;
    if found["value"] != first || found["key"] != "k" || found["tags"] != json!(["probe"]) {
        return Ok(RuleVerdict::Fail(format!("{first} was put under `k`, and got back was {found}")));
    }
    backend.put("n", "k", &second).await?;
    let found = backend.get("n", "k").await?;
    if found["value"] != second {
        return Ok(RuleVerdict::Fail(format!("{second} was put in place of another value, and got back was {found}")));
    }
    if backend.get("n", "other").await? != Value::Null {
        return Ok(RuleVerdict::Fail("it gave an entry for a key that was never put".to_owned()));
    }
    if backend.delete("n", "k").await? != Value::Bool(true) || backend.get("n", "k").await? != Value::Null {
        return Ok(RuleVerdict::Fail(
            "an entry that was deleted is still there, or `delete` did not say that it was".to_owned(),
        ));
    }
    if backend.delete("n", "k").await? != Value::Bool(false) {
        return Ok(RuleVerdict::Fail("`delete` says that it deleted what was not there".to_owned()));
    }
    Ok(RuleVerdict::Pass("put, replaced, got and deleted, each in an instance of its own".to_owned()))
}

pub(crate) async fn lists(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    for key in ["b/1", "a/1", "a/3", "a/2"] {
        backend.put("n", key, &json!(1)).await?;
    }
    let mut keys = Vec::new();
    let mut cursor: Option<String> = None;
    // One more than there can be pages.
    for _ in 0..4 {
        let page = backend.list("n", "a/", cursor.as_deref(), 2).await?;
        let found: Vec<String> =
            page["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        if found.len() > 2 {
            return Ok(RuleVerdict::Fail(format!("`list` gave {} keys, and at most 2 were asked for", found.len())));
        }
        keys.extend(found);
        cursor = page["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let listed = keys.len();
    keys.sort();
    keys.dedup();
    if cursor.is_some() || listed != keys.len() || keys != ["a/1", "a/2", "a/3"] {
        return Ok(RuleVerdict::Fail(format!(
            "the keys that start with `a/` are a/1, a/2 and a/3; listed page by page: {}",
            keys.join(", ")
        )));
    }
    Ok(RuleVerdict::Pass("every key of a prefix once, in pages".to_owned()))
}

pub(crate) async fn searches(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    for at in 0..4 {
        backend.put("n", &format!("k{at}"), &json!("lighthouse keeper")).await?;
    }
    backend.put("m", "elsewhere", &json!("lighthouse keeper")).await?;
    let found = backend.search("n", "lighthouse", 2).await?;
    if found.len() > 2 {
        return Ok(RuleVerdict::Fail(format!("`search` gave {} hits, and at most 2 were asked for", found.len())));
    }
    if found.is_empty() {
        return Ok(RuleVerdict::Fail("`search` does not find a word of a value".to_owned()));
    }
    let all = backend.search("n", "lighthouse", 100).await?;
    if all.iter().any(|hit| hit["entry"]["key"] == "elsewhere") {
        return Ok(RuleVerdict::Fail("`search` found an entry of another namespace".to_owned()));
    }
    if !all.windows(2).all(|pair| pair[0]["score"].as_f64() >= pair[1]["score"].as_f64()) {
        return Ok(RuleVerdict::Fail("the hits are not in the order of their scores".to_owned()));
    }
    Ok(RuleVerdict::Pass(format!("{} hits within their namespace, and no more than asked for", all.len())))
}

pub(crate) async fn expires(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    let until = backend.clock().now_ms() + KEEP_MS;
    backend.put_until("n", "short", &json!("lighthouse"), Some(until)).await?;
    backend.put("n", "long", &json!("lighthouse")).await?;
    if backend.get("n", "short").await? == Value::Null {
        return Ok(RuleVerdict::Fail("an entry is gone before it expires".to_owned()));
    }
    backend.clock().advance_ms(KEEP_MS + 1);
    let (got, kept) = (backend.get("n", "short").await?, backend.get("n", "long").await?);
    let listed = backend.list("n", "", None, 10).await?;
    let found = backend.search("n", "lighthouse", 10).await?;
    if kept == Value::Null {
        return Ok(RuleVerdict::Fail("an entry without an expiry is gone".to_owned()));
    }
    let listed = listed["keys"].as_array().is_some_and(|keys| keys.iter().any(|key| key == "short"));
    let found = found.iter().any(|hit| hit["entry"]["key"] == "short");
    let shown: Vec<&str> = [("get", got != Value::Null), ("list", listed), ("search", found)]
        .into_iter()
        .filter(|(_, shows)| *shows)
        .map(|(name, _)| name)
        .collect();
    Ok(if shown.is_empty() {
        RuleVerdict::Pass("an expired entry is neither got, listed nor found".to_owned())
    } else {
        RuleVerdict::Fail(format!("an expired entry is still given by {}; ask `clock` for the time", shown.join(", ")))
    })
}

pub(crate) async fn isolates(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    // Pairs that are equal when namespace and key are joined carelessly.
    let pairs =
        [("a", "b/c"), ("a/b", "c"), ("a", "b:c"), ("a:b", "c"), ("", "a"), ("a", ""), ("a\0b", "c"), ("a", "b\0c")];
    let mut kept = Vec::new();
    for (namespace, key) in pairs {
        // A backend may refuse an empty name; one that it accepts must be separate from others.
        if backend.put(namespace, key, &json!([namespace, key])).await.is_ok() {
            kept.push((namespace, key));
        }
    }
    if kept.len() < 4 {
        return Ok(RuleVerdict::Fail(format!("only {} of {} namespaces and keys were taken", kept.len(), pairs.len())));
    }
    for (namespace, key) in &kept {
        let found = backend.get(namespace, key).await?;
        if found["value"] != json!([namespace, key]) {
            return Ok(RuleVerdict::Fail(format!(
                "`{}` of namespace `{}` holds {}",
                shown(key),
                shown(namespace),
                found["value"]
            )));
        }
    }
    if backend.get("b", "b/c").await? != Value::Null || !backend.search("b", "a b c", 10).await?.is_empty() {
        return Ok(RuleVerdict::Fail("an empty namespace shows entries of another".to_owned()));
    }
    let listed = backend.list("b", "", None, 10).await?;
    if listed["keys"].as_array().is_some_and(|keys| !keys.is_empty()) {
        return Ok(RuleVerdict::Fail("an empty namespace lists keys of another".to_owned()));
    }
    Ok(RuleVerdict::Pass(format!("{} namespaces and keys kept apart", kept.len())))
}

pub(crate) async fn odd_keys(backend: TestedBackend<'_>) -> Result<RuleVerdict, String> {
    let long = "ä".repeat(200);
    for (namespace, key) in [(ODD, "k"), ("n", ODD), ("n", "."), ("n", ".."), ("n", "../k"), ("n", "*"), ("n", &long)] {
        let value = json!([namespace, key]);
        backend.put(namespace, key, &value).await?;
        let found = backend.get(namespace, key).await?;
        if found["value"] != value || found["key"] != *key {
            return Ok(RuleVerdict::Fail(format!("`{}` was put, and got back was {}", shown(key), found["key"])));
        }
    }
    let listed = backend.list("n", "", None, 100).await?;
    if !listed["keys"].as_array().is_some_and(|keys| keys.iter().any(|key| key == ODD)) {
        return Ok(RuleVerdict::Fail("a key of odd characters is not listed as it was put".to_owned()));
    }
    Ok(RuleVerdict::Pass("control characters, other scripts, dots and long keys came back as they were".to_owned()))
}

/// A name for people.
fn shown(name: &str) -> String {
    name.chars().take(40).flat_map(char::escape_debug).collect()
}
