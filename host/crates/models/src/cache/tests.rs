//! Cached replies, and replies that are never cached, with a real endpoint on loopback.

use crate::config::{self, ModelConfig, ModelEnvironment};
use crate::fake_server::{FakeServer, answer};
use crate::queue::Queues;
use longhaul_core::model::{Message, MessageRole, ModelReply, ModelRequest};
use std::collections::BTreeMap;
use std::path::Path;

fn request(text: &str, temperature: Option<f32>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: String::new(),
        messages: vec![Message::text(MessageRole::User, text)],
        tools: vec![],
        format: Default::default(),
        prefill: None,
        stop: vec![],
        output_tokens_max: 50,
        temperature,
        seed: None,
    }
}

/// A server with this many answers, which are counted.
async fn server(answers: usize) -> FakeServer {
    let body = |number: usize| {
        serde_json::json!({
            "choices": [{ "message": { "content": format!("answer {number} {}", "x".repeat(200)) }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 4, "completion_tokens": 2, "cost": 0.5 },
        })
    };
    let json = "Content-Type: application/json\r\n";
    FakeServer::start((0..answers).map(|number| answer(200, json, &body(number).to_string())).collect()).await
}

async fn ask(server: &FakeServer, cache: &Path, more: &str, key: &str, request: &ModelRequest) -> ModelReply {
    let text = format!(
        "provider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1:{}/v1\"\napi_key_env = \"K\"\ncache = true\n{more}",
        server.port
    );
    let config: ModelConfig = toml::from_str(&text).unwrap();
    let surroundings = ModelEnvironment {
        variable: &|_| Some(key.to_owned()),
        base: cache,
        cache,
        child_command: vec![],
        queues: &Queues::default(),
        adaptations: &crate::Adaptations::default(),
    };
    let configs = BTreeMap::from([("m".to_owned(), config)]);
    let models = config::build(&configs, ["m".to_owned()], &surroundings).unwrap();
    models["m"].complete(request, &mut |_| {}).await.unwrap()
}

fn number(reply: &ModelReply) -> &str {
    reply.text.split(' ').nth(1).unwrap()
}

#[tokio::test]
async fn an_equal_request_gets_the_reply_again_at_no_cost() {
    let (server, cache) = (server(3).await, tempfile::tempdir().unwrap());
    let first = ask(&server, cache.path(), "", "key-one", &request("q", None)).await;
    assert_eq!((first.usage.cost_microdollars, &first.route), (500_000.0, &None));
    let again = ask(&server, cache.path(), "", "key-one", &request("q", None)).await;
    assert_eq!((again.text.as_str(), again.usage.cost_microdollars), (first.text.as_str(), 0.0));
    assert_eq!(again.usage.tokens(), first.usage.tokens());
    assert!(again.route.unwrap().cached);
    assert_eq!(server.requests().len(), 1);
    let other = ask(&server, cache.path(), "", "key-one", &request("another", None)).await;
    assert_eq!(number(&other), "1");
}

#[tokio::test]
async fn no_key_endpoint_or_setting_sees_a_reply_of_another() {
    let (one, two, cache) = (server(4).await, server(1).await, tempfile::tempdir().unwrap());
    let same = request("q", None);
    ask(&one, cache.path(), "", "key-one", &same).await;
    assert_eq!(number(&ask(&one, cache.path(), "", "key-two", &same).await), "1", "another key");
    assert_eq!(number(&ask(&one, cache.path(), "omit = [\"seed\"]", "key-one", &same).await), "2", "another setting");
    assert!(ask(&two, cache.path(), "", "key-one", &same).await.route.is_none(), "another endpoint");
    assert_eq!(number(&ask(&one, cache.path(), "", "key-one", &same).await), "0");
    let names: Vec<_> = walk(cache.path()).into_iter().map(|(path, _)| path).collect();
    assert!(!format!("{names:?}").contains("key-one"), "{names:?}");
}

#[tokio::test]
async fn who_wants_a_new_answer_gets_one() {
    let (server, cache) = (server(4).await, tempfile::tempdir().unwrap());
    for expected in ["0", "1"] {
        assert_eq!(number(&ask(&server, cache.path(), "", "key-one", &request("q", Some(0.7))).await), expected);
    }
    let seeded = ModelRequest { seed: Some(1), ..request("q", Some(0.7)) };
    for _ in 0..2 {
        assert_eq!(number(&ask(&server, cache.path(), "", "key-one", &seeded).await), "2");
    }
}

#[tokio::test]
async fn the_cache_keeps_to_its_size_and_to_its_owner_and_a_damaged_file_is_no_reply() {
    use std::os::unix::fs::PermissionsExt as _;
    let (server, cache) = (server(8).await, tempfile::tempdir().unwrap());
    let cap = "cache_bytes_max = 1000";
    for number in 0..6 {
        ask(&server, cache.path(), cap, "key-one", &request(&format!("q{number}"), Some(0.0))).await;
    }
    let kept = walk(cache.path());
    let held: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
    assert!(held <= 1000 && !kept.is_empty(), "{kept:?}");
    for (path, _) in &kept {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
        std::fs::write(path, "{\"text\": \"ha").unwrap();
    }
    let again = ask(&server, cache.path(), cap, "key-one", &request("q5", None)).await;
    assert_eq!((number(&again), &again.route), ("6", &None));
}

fn walk(directory: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let facts = entry.metadata().unwrap();
        if facts.is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push((entry.path(), facts.len()));
        }
    }
    found
}
