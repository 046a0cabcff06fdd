//! The provider against a fake server with the examples of the protocol's documentation.

use super::*;
use crate::fake_server::{FakeServer, Script, answer, stream};
use longhaul_core::model::{
    Message, MessagePart, MessageRole, OfferedTool, ReplyFormat, RequestedCall, StopReason, Thought,
};
use serde_json::json;

const KEY: &str = "sk-ant-test-abcdefghijkl";

/// A reply with thoughts, words and a call, its counts with a cache.
const GOOD: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_sequence":null,"usage":{"input_tokens":472,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":2},"content":[],"stop_reason":null}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I need the weather,"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" so I ask for it."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Okay, let's "}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"check 😀"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"weather__now","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"location\": \"San"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" Francisco\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: a_kind_of_tomorrow
data: {"type":"a_kind_of_tomorrow","more":[1]}

event: message_stop
data: {"type":"message_stop"}

"#;

fn request() -> ModelRequest {
    ModelRequest {
        model: "claude".into(),
        system: "be brief".into(),
        messages: vec![Message::text(MessageRole::User, "the weather?")],
        tools: vec![OfferedTool {
            tool: "weather".into(),
            function: "now".into(),
            description: "tells it".into(),
            parameters: json!({ "type": "object" }),
        }],
        format: ReplyFormat::Text,
        prefill: None,
        stop: vec![],
        output_tokens_max: 50,
        temperature: Some(1.5),
        seed: Some(3),
    }
}

struct Outcome {
    result: Result<ModelReply, ModelError>,
    heard: String,
    server: FakeServer,
}

/// Asks a server with `scripts`. `settings` are lines of TOML.
async fn check(scripts: Vec<Script>, settings: &str, request: &ModelRequest) -> Outcome {
    let server = FakeServer::start(scripts).await;
    let text = format!(
        "id = \"claude-sonnet-4-5\"\nbase_url = \"http://127.0.0.1:{}/v1\"\napi_key_env = \"K\"\n{settings}\n\
         [retry]\nretries_max = 2\nbackoff_ms_first = 1\nbackoff_ms_max = 2\nretry_after_ms_max = 1500",
        server.port
    );
    let model = Anthropic::new("claude", toml::from_str(&text).unwrap(), &|_| Some(KEY.to_owned())).unwrap();
    let mut heard = String::new();
    let result = model.complete(request, &mut |piece| heard.push_str(piece)).await;
    let shown = format!("{result:?}{heard}");
    assert!(!shown.contains(KEY) && !shown.contains(&KEY[..14]), "the key leaked: {shown}");
    Outcome { result, heard, server }
}

async fn refused(status: u16, headers: &str, kind: &str, message: &str) -> ModelError {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" });
    let scripts = (0..3).map(|_| answer(status, headers, &body.to_string())).collect();
    check(scripts, "", &request()).await.result.unwrap_err()
}

#[tokio::test]
async fn a_reply_is_read_and_heard_wherever_its_bytes_are_split() {
    for size in [3, 7, 64, 10_000] {
        let pieces = GOOD.as_bytes().chunks(size).map(<[u8]>::to_vec);
        let outcome = check(vec![stream("", pieces)], "", &request()).await;
        let reply = outcome.result.unwrap();
        assert_eq!((reply.text.as_str(), reply.reason), ("Okay, let's check 😀", StopReason::Tools));
        assert_eq!(outcome.heard, reply.text);
        let [call] = reply.calls.as_slice() else { panic!("{:?}", reply.calls) };
        assert_eq!((call.tool.as_str(), call.function.as_str()), ("weather", "now"));
        assert_eq!(call.arguments, "{\"location\": \"San Francisco\"}");
        let [thought, hidden] = reply.thoughts.as_slice() else { panic!("{:?}", reply.thoughts) };
        assert_eq!(thought.text, "I need the weather, so I ask for it.");
        assert_eq!(thought.signature.as_deref(), Some("EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="));
        assert!(hidden.hidden && hidden.signature.as_deref() == Some("EmwKAhgBEgy3va3pzix"));
        let usage = reply.usage;
        assert_eq!((usage.input_tokens, usage.cached_tokens, usage.cache_written_tokens), (1572, 1000, 100));
        // Thoughts are part of the output; their number is estimated, from above, if the provider does not state it.
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (89, 18));
    }
}

#[tokio::test]
async fn cached_tokens_have_their_own_price() {
    let prices = "price_input_usd_per_million = 3.0\nprice_output_usd_per_million = 15.0";
    let outcome = check(vec![stream("", [GOOD.as_bytes().to_vec()])], prices, &request()).await;
    let cost = outcome.result.unwrap().usage.cost_microdollars;
    assert!((cost - (472.0 * 3.0 + 1000.0 * 0.3 + 100.0 * 3.75 + 89.0 * 15.0)).abs() < 1e-6, "{cost}");
}

#[tokio::test]
async fn an_answer_in_one_piece_is_understood() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "max_tokens",
        "content": [{ "type": "text", "text": "whole" }, { "type": "tool_use", "id": "t", "name": "weather__now", "input": { "a": 1 } }],
        "usage": { "input_tokens": 7, "output_tokens": 3, "output_tokens_details": { "thinking_tokens": 2 } },
    });
    let script = answer(200, "Content-Type: application/json\r\n", &body.to_string());
    let outcome = check(vec![script], "", &request()).await;
    let reply = outcome.result.unwrap();
    assert_eq!((reply.text.as_str(), reply.reason, outcome.heard.as_str()), ("whole", StopReason::Length, "whole"));
    assert_eq!(reply.calls[0].arguments, "{\"a\":1}");
    assert_eq!((reply.usage.input_tokens, reply.usage.reasoning_tokens), (7, 2));
}

#[tokio::test]
async fn the_request_has_every_field_on_the_wire() {
    let mut request = request();
    request.stop = vec!["END".into(), "\n".into()];
    let call = RequestedCall {
        id: "call_1:x".into(),
        tool: "weather".into(),
        function: "now".into(),
        arguments: "{\"a\":1}".into(),
    };
    let thought = |model: &str| {
        MessagePart::Thought(Thought {
            text: "hm".into(),
            model: model.into(),
            signature: Some("sig".into()),
            hidden: false,
        })
    };
    let picture = MessagePart::Image { media_type: "image/png".into(), data: vec![1, 2, 3] };
    request.messages = vec![
        Message { speaker: MessageRole::User, parts: vec![MessagePart::Text("see".into()), picture] },
        Message {
            speaker: MessageRole::Assistant,
            parts: vec![
                thought("claude-sonnet-4-5"),
                thought("another"),
                MessagePart::Text(String::new()),
                MessagePart::Requested(call),
            ],
        },
        Message::text(MessageRole::User, "well?"),
        Message {
            speaker: MessageRole::Tool,
            parts: vec![MessagePart::Answered { id: "call_1:x".into(), output: "rain".into(), failed: true }],
        },
    ];
    let outcome = check(vec![stream("", [GOOD.as_bytes().to_vec()])], "beta = [\"b-1\"]", &request).await;
    let head = outcome.server.requests()[0].to_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for header in [&format!("x-api-key: {KEY}"), "anthropic-version: 2023-06-01", "anthropic-beta: b-1"] {
        assert!(head.contains(&format!("{header}\r\n")), "{header} in {head}");
    }
    assert!(!head.contains("authorization"), "{head}");
    let mark = json!({ "type": "ephemeral" });
    let expected = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 50, "stream": true, "temperature": 1.0, "stop_sequences": ["END"],
        "system": [{ "type": "text", "text": "be brief", "cache_control": mark }],
        "tools": [{ "name": "weather__now", "description": "tells it", "input_schema": { "type": "object", "properties": {} } }],
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "see" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AQID" } },
            ] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "sig" },
                { "type": "tool_use", "id": "call_1_x", "name": "weather__now", "input": { "a": 1 } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "call_1_x", "content": "rain", "is_error": true },
                { "type": "text", "text": "well?", "cache_control": mark },
            ] },
        ],
    });
    assert_eq!(outcome.server.body(0), expected);
}

#[tokio::test]
async fn thinking_is_asked_for_beside_the_reply_and_takes_no_temperature() {
    let script = || vec![stream("", [GOOD.as_bytes().to_vec()])];
    let body = check(script(), "thinking_tokens_max = 2000\nprompt_cache = false", &request()).await.server.body(0);
    assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(2050), &json!(2000)));
    assert!(body.get("temperature").is_none() && !body.to_string().contains("cache_control"), "{body}");
    let settings = "schema = \"native\"\nextra_body = { thinking = { type = \"adaptive\" }, output_config = { effort = \"low\" } }";
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    let asked = ModelRequest { format: ReplyFormat::Schema(schema.clone()), ..request() };
    let body = check(script(), settings, &asked).await.server.body(0);
    let format = json!({ "type": "json_schema", "schema": schema });
    assert_eq!(body["output_config"], json!({ "effort": "low", "format": format }));
    assert_eq!((&body["thinking"], body.get("temperature")), (&json!({ "type": "adaptive" }), None));
}

/// They used to be sent unchanged, which the provider refuses.
#[tokio::test]
async fn bounds_of_a_schema_are_told_in_words_where_the_provider_takes_none() {
    let count = |description: Option<&str>| {
        let bounds = json!({ "type": "integer", "minimum": 0, "maximum": 5 });
        description.map_or(bounds, |description| json!({ "type": "integer", "description": description }))
    };
    let schema = |names: Value, count: Value| {
        let one = json!({
            "type": "object", "properties": { "maximum": names, "count": count }, "required": ["count"],
            "additionalProperties": false,
        });
        json!({ "type": "array", "items": { "anyOf": [one] } })
    };
    let sent = schema(json!({ "type": "string", "maxLength": 9, "description": "a name" }), count(None));
    let asked = ModelRequest { format: ReplyFormat::Schema(sent), ..request() };
    let script = vec![stream("", [GOOD.as_bytes().to_vec()])];
    let body = check(script, "schema = \"native\"", &asked).await.server.body(0);
    let name = json!({ "type": "string", "description": "a name (maxLength: 9)" });
    let told =
        ["(maximum: 5, minimum: 0)", "(minimum: 0, maximum: 5)"].map(|told| schema(name.clone(), count(Some(told))));
    assert!(told.contains(&body["output_config"]["format"]["schema"]), "{body:#}");
}

#[tokio::test]
async fn errors_are_told_apart_as_the_documentation_does() {
    let cases = [
        (400, "invalid_request_error", "messages: at least one", "messages: at least one; mend [models.claude], and"),
        (401, "authentication_error", "invalid x-api-key", "put a valid key into the environment variable `K`"),
        (402, "billing_error", "pay", "add credit at the provider"),
        (400, "invalid_request_error", "Your credit balance is too low to access it", "add credit at the provider"),
        (403, "permission_error", "no", "put a valid key"),
        (404, "not_found_error", "model: x", "check `base_url` and `id` of [models.claude]"),
        (413, "request_too_large", "large", "HTTP 413: large; mend [models.claude]"),
        (529, "overloaded_error", "Overloaded", "HTTP 529: Overloaded; gave up after 3 requests"),
        (500, "api_error", "Internal server error", "gave up after 3 requests"),
    ];
    for (status, kind, message, expected) in cases {
        let error = refused(status, "", kind, message).await.to_string();
        assert!(error.contains(expected), "{status} {kind}: {error}");
    }
    let full = "prompt is too long: 208310 tokens > 200000 maximum";
    let ModelError::ContextFull(hit) = refused(400, "", "invalid_request_error", full).await else { panic!("{full}") };
    assert_eq!((hit.used, hit.max), (208_310.0, 200_000.0));
    let ModelError::Unavailable(outage) = refused(429, "retry-after: 60\r\n", "rate_limit_error", "slow").await else {
        panic!("no outage")
    };
    assert_eq!(outage.retry_after_ms, Some(60_000), "longer than we wait: the run is told when to come back");
}

#[tokio::test]
async fn an_overload_in_the_middle_is_asked_again_and_a_wrong_request_is_not() {
    let start = &GOOD[..GOOD.find("event: message_delta").unwrap()];
    let broken = |kind: &str| {
        let error = json!({ "type": "error", "error": { "type": kind, "message": "Overloaded" } });
        stream("", [format!("{start}event: error\ndata: {error}\n\n").into_bytes()])
    };
    let good = stream("", [GOOD.as_bytes().to_vec()]);
    let outcome = check(vec![broken("overloaded_error"), good.clone()], "", &request()).await;
    assert_eq!(outcome.result.unwrap().text, "Okay, let's check 😀");
    assert_eq!(outcome.server.requests().len(), 2);
    let outcome = check(vec![broken("invalid_request_error"), good.clone()], "", &request()).await;
    assert!(outcome.result.unwrap_err().to_string().contains("ended its answer with an error"));
    let outcome = check(vec![stream("", [start.as_bytes().to_vec()]), good], "", &request()).await;
    assert_eq!(outcome.result.unwrap().usage.output_tokens, 89, "what breaks off is no reply");
}

#[tokio::test]
async fn a_refusal_is_not_a_reply() {
    let refused = GOOD.replace("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"refusal\"");
    let reply = check(vec![stream("", [refused.clone().into_bytes()])], "", &request()).await.result.unwrap();
    assert_eq!(reply.reason, StopReason::Filtered, "what was said before stays");
    let end = refused.find("event: message_delta").unwrap();
    let silent = format!("{}{}", &refused[..refused.find("event: content_block_start").unwrap()], &refused[end..]);
    let error = check(vec![stream("", [silent.into_bytes()])], "", &request()).await.result.unwrap_err();
    assert!(matches!(error, ModelError::Refused(_)), "{error}");
}

#[tokio::test]
async fn a_thought_with_the_key_in_it_does_not_come_through() {
    let text = GOOD.replace("so I ask for it.", KEY);
    let reply = check(vec![stream("", [text.into_bytes()])], "", &request()).await.result.unwrap();
    assert_eq!(reply.thoughts[0].text, "I need the weather, [secret]");
    assert_eq!(reply.thoughts[0].signature, None, "what was changed is not what was signed");
}
