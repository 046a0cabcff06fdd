//! The provider against a fake server: sent requests, parsed replies, ignored claims.

mod failures;
mod replies;
mod requests;
mod tool_calls;
mod usage;
mod windows;

use super::*;
use crate::fake_server::{FakeServer, Script, answer, stream};
use longhaul_core::model::{Message, MessageRole, ReplyFormat, UsageTally};
use serde_json::json;

const KEY: &str = "sk-test-abcdefghijklmnop";
const GOOD: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüß \"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gott 😀\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\n",
    "data: [DONE]\n\n",
);

fn request() -> ModelRequest {
    ModelRequest {
        model: "gpt".into(),
        system: "be brief".into(),
        messages: vec![Message::text(MessageRole::User, "greet me")],
        tools: vec![],
        format: ReplyFormat::Text,
        prefill: None,
        stop: vec![],
        output_tokens_max: 50,
        temperature: Some(0.7),
        seed: None,
    }
}

struct Outcome {
    result: Result<ModelReply, ModelError>,
    heard: String,
    server: FakeServer,
    tally: UsageTally,
}

impl Outcome {
    fn reply(&self) -> &ModelReply {
        self.result.as_ref().unwrap()
    }

    fn error(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }
}

/// Asks a server with `scripts`. `settings` are lines of TOML.
async fn check(scripts: Vec<Script>, settings: &str, request: &ModelRequest) -> Outcome {
    let server = FakeServer::start(scripts).await;
    let text = format!(
        "id = \"m-1\"\nbase_url = \"http://127.0.0.1:{}/v1\"\napi_key_env = \"K\"\n{settings}\n\
         [retry]\nretries_max = 2\nbackoff_ms_first = 1\nbackoff_ms_max = 2\nretry_after_ms_max = 1500",
        server.port
    );
    let model = OpenAi::new("gpt", toml::from_str(&text).unwrap(), &|_| Some(KEY.to_owned())).unwrap();
    let (mut heard, tally) = (String::new(), UsageTally::default());
    let result = model.ask(request, &mut |piece| heard.push_str(piece), &tally).await;
    let shown = format!("{result:?}{heard}");
    assert!(!shown.contains(KEY) && !shown.contains(&KEY[..12]), "the key leaked: {shown}");
    Outcome { result, heard, server, tally }
}

async fn read(text: &str) -> Outcome {
    check(vec![stream("", [text.as_bytes().to_vec()])], "", &request()).await
}

fn delta(delta: serde_json::Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
}

fn finish(reason: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }))
}

#[tokio::test]
async fn a_key_that_comes_back_is_shown_nowhere() {
    // `check` searches for the key in the result and in the streamed text.
    let echo = format!("{{\"error\":{{\"message\":\"you sent Authorization: Bearer {KEY}\"}}}}");
    for status in [400, 401, 404, 418, 429, 500] {
        let outcome = check(
            vec![answer(status, "", &echo), answer(status, "", &echo), answer(status, "", &echo)],
            "",
            &request(),
        )
        .await;
        assert!(outcome.error().contains("you sent Authorization: Bearer [secret]"), "{}", outcome.error());
    }
    // The excerpt of a body is cut inside the key.
    let long = format!("{}{KEY}", "x".repeat(490));
    check(vec![answer(400, "", &long)], "", &request()).await;
    let long = format!("{}{KEY}", "x".repeat(crate::http_exchange::ERROR_BODY_BYTES_MAX - 10));
    check(vec![answer(400, "", &long)], "", &request()).await;
    // In the middle of a reply, split over two pieces; in a refusal; in a call; in JSON of the wrong kind.
    let (one, two) = KEY.split_at(9);
    let text = delta(json!({ "content": format!("a {one}") }))
        + &delta(json!({ "content": format!("{two} b") }))
        + &finish("stop");
    assert_eq!(read(&text).await.reply().text, "a [secret] b");
    read(&(delta(json!({ "refusal": KEY })) + &finish("stop"))).await;
    let call = json!({ "tool_calls": [{ "id": KEY, "function": { "name": KEY, "arguments": format!("{{\"k\":\"{KEY}\"}}") } }] });
    assert_eq!(read(&(delta(call) + &finish("stop"))).await.reply().calls[0].arguments, "{\"k\":\"[secret]\"}");
    let outcome = read(&format!("data: {{\"choices\":\"{KEY}\"}}\n\n")).await;
    assert!(outcome.error().contains("cannot be read: invalid type: string \"[secret]\""), "{}", outcome.error());
}

#[test]
fn the_key_is_not_in_the_debug_text_of_headers() {
    let text = "id = \"m\"\napi_key_env = \"K\"";
    let model = OpenAi::new("gpt", toml::from_str(text).unwrap(), &|_| Some(KEY.to_owned())).unwrap();
    assert!(!format!("{:?}{:?}", model.exchange.endpoint.bearer(), model.exchange.endpoint.key).contains(KEY));
}
