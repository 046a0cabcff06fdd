//! The provider against a fake server: sent requests, parsed replies, ignored claims.

use super::*;
use crate::fake_server::{FakeServer, Script, answer, stream};
use longhaul_core::model::{
    Message, MessagePart, MessageRole, OfferedTool, ReplyFormat, RequestedCall, StopReason, UsageTally,
};
use serde_json::json;
use std::time::Duration;

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
async fn a_reply_is_read_and_heard_wherever_its_bytes_are_split() {
    for size in [1, 2, 3, 7, 64, 10_000] {
        for text in [GOOD.to_owned(), GOOD.replace('\n', "\r\n"), format!(": ping\n\n{GOOD}")] {
            let pieces = text.as_bytes().chunks(size).map(<[u8]>::to_vec);
            // Pieces of one byte a write take a millisecond each, so the shortest ones play a part only.
            if size == 1 && text.len() > GOOD.len() {
                continue;
            }
            let outcome = check(vec![stream("", pieces)], "", &request()).await;
            let reply = outcome.reply();
            assert_eq!((reply.text.as_str(), reply.reason), ("Grüß Gott 😀", StopReason::End));
            assert_eq!((reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens), (12, 8, 5));
            assert_eq!(outcome.heard, reply.text);
        }
    }
}

#[tokio::test]
async fn ends_that_servers_leave_out_are_understood() {
    for text in [
        GOOD.replace("data: [DONE]\n\n", ""),
        GOOD.trim_end().to_owned(),
        GOOD.replace("\"finish_reason\":\"stop\"", "\"finish_reason\":null"),
        GOOD.replace(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gott",
            "data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":\"Gott",
        ),
    ] {
        assert_eq!(read(&text).await.reply().text, "Grüß Gott 😀", "{text}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({ "choices": [{ "message": { "content": "whole" }, "finish_reason": "length" }] }).to_string();
    let outcome = check(vec![answer(200, "Content-Type: application/json\r\n", &body)], "", &request()).await;
    assert_eq!((outcome.reply().text.as_str(), outcome.reply().reason), ("whole", StopReason::Length));
    assert_eq!(outcome.heard, "whole");
    // Nothing was counted, so it is estimated: silence must not bypass a budget.
    assert!(outcome.reply().usage.input_tokens > 0 && outcome.reply().usage.output_tokens > 0);
}

#[tokio::test]
async fn a_reply_tells_the_endpoint_that_gave_it_without_the_key() {
    let choices = json!([{ "message": { "content": "whole" }, "finish_reason": "stop" }]);
    let body = json!({ "id": "reply-1", "model": format!("m-1 {KEY}"), "choices": choices }).to_string();
    let outcome = check(vec![answer(200, "Content-Type: application/json\r\n", &body)], "", &request()).await;
    let endpoint = outcome.reply().endpoint.clone().unwrap();
    assert_eq!((endpoint.model.as_deref(), endpoint.id.as_deref()), (Some("m-1 [secret]"), Some("reply-1")));
    assert_eq!((endpoint.server.as_deref(), endpoint.port), (Some("127.0.0.1"), Some(outcome.server.port)));
    assert!(endpoint.streamed, "a stream was requested");
    for odd in ["{\"id\":7,\"model\":null,", "{\"id\":[],\"model\":{},", "{"] {
        let text =
            format!("data: {odd}\"choices\":[{{\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}]}}\n\n");
        let endpoint = read(&text).await.reply().endpoint.clone().unwrap();
        assert_eq!((endpoint.model, endpoint.id), (None, None), "{odd}");
    }
}

#[tokio::test]
async fn the_request_has_every_field_on_the_wire() {
    let mut request = request();
    request.messages = vec![
        Message {
            speaker: MessageRole::User,
            parts: vec![
                MessagePart::Text("see".into()),
                MessagePart::Image { media_type: "image/png".into(), data: vec![1, 2, 3] },
            ],
        },
        Message {
            speaker: MessageRole::Assistant,
            parts: vec![MessagePart::Requested(RequestedCall {
                id: "c1".into(),
                tool: "files".into(),
                function: "read".into(),
                arguments: "{}".into(),
            })],
        },
        Message {
            speaker: MessageRole::Tool,
            parts: vec![MessagePart::Answered { id: "c1".into(), output: "no such file".into(), failed: true }],
        },
    ];
    let parameters = json!({ "type": "object" });
    request.tools =
        vec![OfferedTool { tool: "files".into(), function: "read".into(), description: "reads".into(), parameters }];
    request.format = ReplyFormat::Schema(json!({ "type": "object" }));
    request.stop = ["a", "", "b", "c", "d", "e"].map(str::to_owned).to_vec();
    request.seed = Some(7);
    let settings = "image_detail = \"low\"\nextra_body = { reasoning_effort = \"low\" }";
    let outcome = check(vec![stream("", [GOOD.into()])], settings, &request).await;
    let expected = json!({
        "reasoning_effort": "low",
        "model": "m-1",
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": [
                { "type": "text", "text": "see" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AQID", "detail": "low" } },
            ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "files__read", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "the tool failed: no such file" },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 50,
        "temperature": 0.7,
        "seed": 7,
        "stop": ["a", "b", "c", "d"],
        "tools": [{ "type": "function", "function": { "name": "files__read", "description": "reads", "parameters": { "type": "object", "properties": {} } } }],
        "response_format": { "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": { "type": "object" } } },
    });
    assert_eq!(outcome.server.body(0), expected);
    let head = outcome.server.requests()[0].to_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1")
            && head.contains(&format!("authorization: bearer {KEY}"))
    );
}

#[tokio::test]
async fn settings_change_the_request() {
    let mut request = request();
    request.format = ReplyFormat::Json;
    request.prefill = Some("{".into());
    let settings = "omit = [\"temperature\", \"stream_options\"]\noutput_tokens_field = \"max_completion_tokens\"\nprefill = \"continue\"";
    let body = check(vec![stream("", [GOOD.into()])], settings, &request).await.server.body(0);
    assert!(
        body.get("temperature").is_none() && body.get("stream_options").is_none() && body.get("max_tokens").is_none()
    );
    assert_eq!((&body["max_completion_tokens"], &body["continue_final_message"]), (&json!(50), &json!(true)));
    assert_eq!(body["messages"][2], json!({ "role": "assistant", "content": "{" }));
    assert_eq!(body["messages"][0]["content"], "be brief\n\nReply with one JSON value and nothing else.");
}

#[tokio::test]
async fn a_prefill_is_in_front_once_whatever_the_model_makes_of_it() {
    let cases = [
        ("prompt", "{\"a\"", "{\"a\": 1}", "{\"a\": 1}"),
        ("prompt", "{\"a\"", ": 1}", "{\"a\": 1}"),
        ("prompt", "{\"a\"", "\n {\"a\": 1}", "{\"a\": 1}"),
        ("prompt", "{\"a\"", "```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
        ("prompt", "```python\n", "```python\ndef f(): 1\n```", "```python\ndef f(): 1\n```"),
        ("prompt", "```python\n", "def f(): 1", "```python\ndef f(): 1"),
        ("prompt", "def f():\n    ", "def f():\n  return 1", "def f():\n    return 1"),
        ("prompt", "", "text", "text"),
        ("native", "{", "{}}", "{{}}"),
        ("continue", "{", "}", "{}"),
        ("native", "[", "[1]]", "[[1]]"),
        ("echoed", "[", "[[1]]", "[[1]]"),
        ("echoed", "def f():", "def f(): 1", "def f(): 1"),
    ];
    for (mode, prefill, written, expected) in cases {
        let mut request = request();
        request.prefill = Some(prefill.into());
        let text = delta(json!({ "content": written })) + &finish("stop");
        let outcome = check(vec![stream("", [text.into()])], &format!("prefill = \"{mode}\""), &request).await;
        assert_eq!(outcome.reply().text, expected, "{mode} {prefill:?} {written:?}");
        assert_eq!(outcome.heard, expected);
    }
}

#[tokio::test]
async fn a_provider_that_repeats_a_prefill_against_its_setting_is_noticed() {
    let mut request = request();
    request.prefill = Some("def f():".into());
    let text = delta(json!({ "content": "def f(): 1" })) + &finish("stop");
    let outcome = check(vec![stream("", [text.into()])], "prefill = \"native\"", &request).await;
    assert_eq!(outcome.reply().text, "def f(): 1");
}

#[tokio::test]
async fn the_window_is_told_as_the_provider_tells_it() {
    let body = json!({ "error": { "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096 } });
    let outcome = check(vec![answer(400, "", &body.to_string())], "", &request()).await;
    assert!(outcome.error().ends_with("limit `context_tokens_max` reached: 5000 of 4096"), "{}", outcome.error());
}

/// A server with a smaller window than configured used to get too long requests again and again.
#[tokio::test]
async fn a_window_that_a_refusal_names_is_believed_from_then_on() {
    for (message, used, max) in [
        // OpenAI, DeepSeek.
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
            9_001.0,
            8_192.0,
        ),
        // vLLM.
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion).",
            5_000.0,
            4_096.0,
        ),
        // OpenRouter.
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens (140000 of text input).",
            150_000.0,
            131_072.0,
        ),
        // Gemini.
        (
            "The input token count (2845475) exceeds the maximum number of tokens allowed (1048576).",
            2_845_475.0,
            1_048_576.0,
        ),
        // Anthropic, by way of a gateway.
        ("prompt is too long: 208310 tokens > 200000 maximum", 208_310.0, 200_000.0),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease it",
            200_001.0,
            200_000.0,
        ),
        // llama-server without its own fields, LM Studio, xAI, Mistral.
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 5_000.0, 4_096.0),
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
            4_097.0,
            4_096.0,
        ),
        ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 150_000.0, 131_072.0),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40_000.0,
            32_768.0,
        ),
    ] {
        let body = json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
        let server = FakeServer::start(vec![answer(400, "", &body)]).await;
        let text =
            format!("id = \"m-1\"\nbase_url = \"http://127.0.0.1:{}/v1\"\ncontext_tokens_max = 3000000", server.port);
        let model = OpenAi::new("gpt", toml::from_str(&text).unwrap(), &|_| None).unwrap();
        let error = model.ask(&request(), &mut |_| {}, &UsageTally::default()).await.unwrap_err();
        let ModelError::ContextFull(hit) = &error else { panic!("{message}: {error}") };
        assert_eq!((hit.used, hit.max), (used, max), "{message}");
        assert_eq!(f64::from(model.info().context_tokens_max), max, "{message}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_window_that_nobody_knows_is_asked_from_the_endpoint_once_a_conversation_grows() {
    let server = FakeServer::serving(|request| match request.starts_with("GET ") {
        true => {
            let listed = json!({ "data": [{ "id": "other" }, { "id": "m-1", "max_model_len": 32768 }] });
            answer(200, "Content-Type: application/json\r\n", &listed.to_string())
        }
        false => stream("", [GOOD.into()]),
    })
    .await;
    let text = format!("id = \"m-1\"\nbase_url = \"http://127.0.0.1:{}/v1\"", server.port);
    let model = OpenAi::new("gpt", toml::from_str(&text).unwrap(), &|_| None).unwrap();
    let ask = async |system: &str| {
        let request = ModelRequest { system: system.to_owned(), ..request() };
        model.ask(&request, &mut |_| {}, &UsageTally::default()).await.unwrap();
    };
    ask("short").await;
    assert_eq!((server.requests().len(), model.info().context_tokens_max), (1, 128_000));
    ask(&"word ".repeat(2_000)).await;
    ask(&"word ".repeat(2_000)).await;
    assert_eq!((server.requests().len(), model.info().context_tokens_max), (4, 32_768));
    assert!(server.requests()[1].starts_with("GET /v1/models HTTP/1.1\r\n"));
}

#[test]
fn a_common_model_brings_its_window_and_its_prices_at_its_own_address() {
    let model = |text: &str| OpenAi::new("gpt", toml::from_str(text).unwrap(), &|_| None).unwrap();
    let known = model("id = \"gpt-5-mini\"");
    assert_eq!(known.info().context_tokens_max, 400_000);
    assert!(known.cost_most(&request()).cost().is_some_and(|cost| cost > 0.0));
    let gateway = model("id = \"gpt-5-mini\"\nbase_url = \"https://llm.example.com/v1\"");
    assert_eq!((gateway.info().context_tokens_max, gateway.cost_most(&request()).cost()), (128_000, None));
}

#[tokio::test]
async fn a_stop_holds_even_where_the_provider_does_not_know_it() {
    let mut request = request();
    request.prefill = Some("END: ".into());
    request.stop = vec!["never".into(), "END".into()];
    let text = delta(json!({ "content": "one END two" })) + &finish("length");
    let outcome = check(vec![stream("", [text.into()])], "prefill = \"native\"\nomit = [\"stop\"]", &request).await;
    assert_eq!((outcome.reply().text.as_str(), outcome.reply().reason), ("END: one ", StopReason::End));
}

#[tokio::test]
async fn tool_calls_are_put_together_from_what_servers_send() {
    let call = |index: serde_json::Value, id: &str, name: &str, arguments: serde_json::Value| {
        let mut call = json!({ "function": { "name": name, "arguments": arguments } });
        if !index.is_null() {
            call["index"] = index;
        }
        if !id.is_empty() {
            call["id"] = json!(id);
        }
        delta(json!({ "tool_calls": [call] }))
    };
    let none = || serde_json::Value::Null;
    let cases = [
        (
            "in pieces, interleaved",
            [
                call(json!(0), "a", "files__read", json!("")),
                call(json!(1), "b", "files__li", json!("{")),
                call(json!(0), "", "", json!("{\"p\"")),
                call(json!(1), "", "st", json!("}")),
                call(json!(0), "", "", json!(":1}")),
            ]
            .concat(),
            r#"a files.read {"p":1}; b files.list {}"#,
        ),
        (
            "all numbered 0",
            [call(json!(0), "a", "files__read", json!("{}")), call(json!(0), "b", "files__list", json!("{}"))].concat(),
            "a files.read {}; b files.list {}",
        ),
        (
            "without numbers and ids, arguments as an object",
            [call(none(), "", "files__read", json!({ "p": 1 })), call(none(), "", "files__list", none())].concat(),
            r#"call_0 files.read {"p":1}; call_1 files.list {}"#,
        ),
        (
            "hostile ids, numbers and names",
            [
                call(json!(u64::MAX), "x y", "functions.files__read", json!("not json")),
                call(json!(7), "a", "rm__rf", json!("")),
                call(json!(8), "a", &"é".repeat(999), json!("")),
            ]
            .concat(),
            &format!("call_0 files.read not json; a rm.rf {{}}; a_ {}. {{}}", "é".repeat(128)),
        ),
        (
            "the name each time",
            [call(json!(0), "a", "files__read", json!("{")), call(json!(0), "a", "files__read", json!("}"))].concat(),
            "a files.read {}",
        ),
    ];
    for (what, text, expected) in cases {
        let mut request = request();
        let offer = |function: &str| OfferedTool {
            tool: "files".into(),
            function: function.into(),
            description: String::new(),
            parameters: json!({}),
        };
        request.tools = vec![offer("read"), offer("list")];
        let text = text + &finish("stop");
        let outcome = check(vec![stream("", [text.into()])], "", &request).await;
        let show = |call: &RequestedCall| format!("{} {}.{} {}", call.id, call.tool, call.function, call.arguments);
        let calls: Vec<_> = outcome.reply().calls.iter().map(show).collect();
        assert_eq!((calls.join("; ").as_str(), outcome.reply().reason), (expected, StopReason::Tools), "{what}");
    }
}

#[tokio::test]
async fn more_calls_than_any_model_needs_are_refused() {
    let calls: Vec<_> = (0..129).map(|index| json!({ "index": index, "function": { "name": "a" } })).collect();
    assert_eq!(
        read(&delta(json!({ "tool_calls": calls }))).await.error(),
        "limit `tool_calls_max` reached: 129 of 128"
    );
}

#[tokio::test]
async fn a_cost_is_believed_only_when_it_is_one() {
    let prices =
        "price_input_usd_per_million = 2.0\nprice_cached_usd_per_million = 0.5\nprice_output_usd_per_million = 10.0";
    // 4 fresh tokens at 2, 8 cached at a half, 5 written at 10.
    let priced = 62.0;
    for (headers, settings, expected) in [
        ("", prices, priced),
        ("", "", 0.0),
        ("X-Litellm-Response-Cost: 0.001\r\n", prices, 1000.0),
        ("X-Cost-USD: 0.002\r\n", "", 2000.0),
        ("X-Helicone-Cost-USD: 3e-5\r\n", prices, 30.0),
        ("X-Litellm-Response-Cost: 0.0\r\n", prices, priced),
        ("X-Litellm-Response-Cost: None\r\nX-Cost-USD: 0.002\r\n", prices, 2000.0),
        ("X-Cost-USD: -5\r\n", prices, priced),
        ("X-Cost-USD: NaN\r\n", prices, priced),
        ("X-Cost-USD: inf\r\n", prices, priced),
        ("X-Cost-USD: 1e99\r\n", prices, priced),
    ] {
        let outcome = check(vec![stream(headers, [GOOD.into()])], settings, &request()).await;
        let cost = outcome.reply().usage.cost_microdollars;
        assert!((cost - expected).abs() < 1e-6, "{headers:?} {settings:?}: {cost}");
    }
}

#[tokio::test]
async fn hostile_counts_do_not_overflow() {
    let text = GOOD.replace("12", "1e300").replace(":5", ":-5").replace(":8", ":99999999999");
    let usage = read(&text).await.reply().usage;
    assert_eq!((usage.input_tokens, usage.cached_tokens, usage.output_tokens), (u32::MAX, u32::MAX, 0));
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_when_it_said() {
    let scripts =
        vec![answer(429, "Retry-After: 1\r\n", "{\"error\":{\"message\":\"slow down\"}}"), stream("", [GOOD.into()])];
    let before = std::time::Instant::now();
    let outcome = check(scripts, "", &request()).await;
    assert_eq!(outcome.reply().text, "Grüß Gott 😀");
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_passed_on() {
    let outcome = check(vec![answer(429, "Retry-After: 3600\r\n", "{}")], "", &request()).await;
    let Err(ModelError::Unavailable(outage)) = &outcome.result else { panic!("{:?}", outcome.result) };
    assert_eq!(outage.retry_after_ms, Some(3_600_000));
    assert_eq!(outcome.server.requests().len(), 1);
}

#[tokio::test]
async fn a_provider_that_stays_broken_is_given_up() {
    let broken = || answer(503, "", "upstream\u{1b}[31m is down");
    let outcome = check(vec![broken(), broken(), broken(), broken()], "", &request()).await;
    let error = outcome.error();
    assert!(error.contains("answered HTTP 503: upstream [31m is down; gave up after 3 requests in "), "{error}");
    assert_eq!(outcome.server.requests().len(), 3);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_given_up() {
    let outcome = check(vec![], "", &request()).await;
    assert!(matches!(outcome.result, Err(ModelError::Unavailable(_))));
    assert!(outcome.error().contains("gave up after 3 requests"), "{}", outcome.error());
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_and_the_watcher_is_told() {
    let half = GOOD.split_inclusive("\n\n").take(2).collect::<String>();
    let torn = &GOOD[..GOOD.len() / 2];
    let inside =
        delta(json!({ "content": "Grüß " })) + "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n";
    for first in [half.as_str(), inside.as_str(), "", "data: "] {
        let outcome = check(vec![stream("", [first.into()]), stream("", [GOOD.into()])], "", &request()).await;
        assert_eq!(outcome.reply().text, "Grüß Gott 😀", "{first}");
        assert!(outcome.heard.ends_with("Grüß Gott 😀"));
        assert_eq!(outcome.heard.contains("[the answer broke off; asked again]\n"), first.contains("Gr"), "{first}");
    }
    let outcome = check(vec![stream("", [torn.into()]), stream("", [GOOD.into()])], "", &request()).await;
    assert_eq!(outcome.reply().text, "Grüß Gott 😀");
}

#[tokio::test]
async fn refusals_of_a_provider_are_told_apart_and_not_repeated() {
    let error = |message: &str, code: &str| json!({ "error": { "message": message, "code": code } }).to_string();
    type Is = fn(&ModelError) -> bool;
    let cases: [(u16, String, Is, &str); 11] = [
        (
            401,
            error("bad key", "invalid_api_key"),
            |e| matches!(e, ModelError::Rejected(_)),
            "bad key; put a valid key into the environment variable `K`",
        ),
        (403, "no".into(), |e| matches!(e, ModelError::Rejected(_)), "HTTP 403: no"),
        (402, "{}".into(), |e| matches!(e, ModelError::Rejected(_)), "add credit"),
        (429, error("quota", "insufficient_quota"), |e| matches!(e, ModelError::Rejected(_)), "add credit"),
        (400, error("too long", "context_length_exceeded"), |e| matches!(e, ModelError::ContextFull(_)), "128000"),
        (
            400,
            error("the request exceeds the available context size", ""),
            |e| matches!(e, ModelError::ContextFull(_)),
            "128000",
        ),
        (400, error("no", "content_filter"), |e| matches!(e, ModelError::Refused(_)), "no"),
        (
            400,
            "{\"detail\":\"no such field\"}".into(),
            |e| matches!(e, ModelError::Rejected(_)),
            "HTTP 400: no such field",
        ),
        (
            404,
            "{\"error\":\"no model\"}".into(),
            |e| matches!(e, ModelError::Rejected(_)),
            "no model; check `base_url` and `id` of [models.gpt]",
        ),
        (301, String::new(), |e| matches!(e, ModelError::Rejected(_)), "redirects are not followed"),
        (418, "x".repeat(5_000_000), |e| matches!(e, ModelError::Rejected(_)), "…[truncated "),
    ];
    for (status, body, is, expected) in cases {
        let outcome = check(vec![answer(status, "Location: http://127.0.0.1:1/\r\n", &body)], "", &request()).await;
        assert!(is(outcome.result.as_ref().unwrap_err()), "{status}: {}", outcome.error());
        assert!(outcome.error().contains(expected) && outcome.error().len() < 1500, "{status}: {}", outcome.error());
        assert_eq!(outcome.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_model_that_refuses_is_heard_in_its_own_words() {
    let text = delta(json!({ "refusal": "I will " })) + &delta(json!({ "refusal": "not" })) + &finish("stop");
    assert_eq!(read(&text).await.result.unwrap_err(), ModelError::Refused("I will not".into()));
    let text = delta(json!({ "content": "a" })) + &finish("content_filter");
    assert_eq!(read(&text).await.reply().reason, StopReason::Filtered);
}

#[tokio::test]
async fn a_reason_that_nobody_knows_is_no_end() {
    for (said, reason) in [("stop", StopReason::End), ("eos", StopReason::End), ("paused", StopReason::Other)] {
        let text = delta(json!({ "content": "a" })) + &finish(said);
        assert_eq!(read(&text).await.reply().reason, reason, "{said}");
    }
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

#[tokio::test]
async fn answers_that_are_too_much_are_not_read_to_their_end() {
    let many: Vec<Vec<u8>> = (0..200).map(|_| delta(json!({ "content": "x".repeat(900) })).into_bytes()).collect();
    let json = "Content-Type: application/json\r\n";
    let cases: [(Script, &str, &str); 4] = [
        (stream("", [vec![b'x'; 3000]]), "line_bytes_max = 2000", "limit `line_bytes_max` reached: 2001 of 2000"),
        (stream("", many), "response_bytes_max = 100000", "limit `response_bytes_max` reached: 100001 of 100000"),
        (answer(200, json, &"x".repeat(200_000)), "response_bytes_max = 100000", "limit `response_bytes_max` reached"),
        (stream("", [b"data: \xff\xfe\n\n".to_vec()]), "", "cannot be read: it is not UTF-8"),
    ];
    for (script, settings, expected) in cases {
        let outcome = check(vec![script], settings, &request()).await;
        assert!(outcome.error().contains(expected), "{}", outcome.error());
    }
}

#[tokio::test]
async fn silence_and_endlessness_have_an_end() {
    let silent = || Script::new();
    let outcome = check(vec![silent()], "idle_ms_max = 60\ntotal_ms_max = 100", &request()).await;
    assert!(outcome.error().contains("total_ms_max"), "{}", outcome.error());
    let drip = |_| (Duration::from_millis(5), b": still here\n\n".to_vec());
    let mut endless = stream("", []);
    endless.extend((0..1000).map(drip));
    let before = std::time::Instant::now();
    let outcome = check(vec![endless], "idle_ms_max = 60\ntotal_ms_max = 200", &request()).await;
    assert!(outcome.error().contains("no whole reply within total_ms_max = 200 ms"), "{}", outcome.error());
    assert!(before.elapsed() < Duration::from_secs(3));
    let mut stalls = stream("", [delta(json!({ "content": "a" })).into()]);
    stalls.push((Duration::from_secs(3600), vec![]));
    let outcome = check(vec![stalls], "idle_ms_max = 60\ntotal_ms_max = 65", &request()).await;
    assert!(matches!(outcome.result, Err(ModelError::Unavailable(_))), "{}", outcome.error());
}

#[tokio::test]
async fn a_request_that_cannot_be_made_is_not_sent() {
    let picture = |speaker, media_type: &str| {
        let mut request = request();
        request.messages =
            vec![Message { speaker, parts: vec![MessagePart::Image { media_type: media_type.into(), data: vec![] }] }];
        request
    };
    let mut hot = request();
    hot.temperature = Some(f32::NAN);
    for (request, expected) in [
        (picture(MessageRole::Assistant, "image/png"), "give pictures in a user's message"),
        (picture(MessageRole::User, "image/png;base64,AAAA\",\""), "give for example `image/png`"),
        (picture(MessageRole::User, "text/html"), "give for example `image/png`"),
        (hot, "temperature is `NaN`"),
    ] {
        let outcome = check(vec![], "", &request).await;
        assert!(matches!(outcome.result, Err(ModelError::Invalid(_))));
        assert!(outcome.error().contains(expected), "{}", outcome.error());
    }
}

#[test]
fn the_key_is_not_in_the_debug_text_of_headers() {
    let text = "id = \"m\"\napi_key_env = \"K\"";
    let model = OpenAi::new("gpt", toml::from_str(text).unwrap(), &|_| Some(KEY.to_owned())).unwrap();
    assert!(!format!("{:?}{:?}", model.exchange.endpoint.bearer(), model.exchange.endpoint.key).contains(KEY));
}

#[tokio::test]
async fn what_a_model_thought_is_told_apart_from_what_it_said() {
    let usage = json!({ "choices": [], "usage": {
        "prompt_tokens": 9, "completion_tokens": 30, "completion_tokens_details": { "reasoning_tokens": 20 },
    } });
    for field in ["reasoning_content", "reasoning"] {
        let text = [
            delta(json!({ field: "let me " })),
            delta(json!({ field: format!("see {KEY}") })),
            delta(json!({ "content": "4" })),
            finish("stop"),
            format!("data: {usage}\n\ndata: [DONE]\n\n"),
        ];
        let outcome = read(&text.concat()).await;
        let reply = outcome.reply();
        assert_eq!((reply.text.as_str(), outcome.heard.as_str()), ("4", "4"));
        assert_eq!(reply.thoughts.len(), 1);
        assert_eq!(reply.thoughts[0].text, "let me see [secret]");
        assert_eq!(reply.thoughts[0].signature, None, "nobody wants it back");
        assert_eq!((reply.usage.output_tokens, reply.usage.reasoning_tokens), (30, 20));
    }
}

/// They used to be paid for and counted nowhere.
#[tokio::test]
async fn answers_that_are_of_no_use_are_counted_as_paid() {
    let prices = "price_input_usd_per_million = 1.0\nprice_output_usd_per_million = 10.0";
    let broken = delta(json!({ "content": "half of it" }));
    let counted = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\n";
    let refused = delta(json!({ "refusal": "no" })) + counted + &finish("stop");
    for (scripts, tokens_min, tries) in [
        // It breaks off twice, and then succeeds.
        (vec![stream("", [broken.clone().into()]), stream("", [broken.into()]), stream("", [GOOD.into()])], 4, 3),
        (vec![stream("", [refused.into()])], 107, 1),
        (vec![stream("", ["data: nonsense\n\n".into()])], 2, 1),
    ] {
        let outcome = check(scripts, prices, &request()).await;
        let wasted = outcome.tally.wasted();
        assert!(wasted.tokens() >= tokens_min && wasted.cost_microdollars > 0.0, "{wasted:?}");
        let body = outcome.server.requests()[0].split_once("\r\n\r\n").unwrap().1.len() as u64;
        assert_eq!(outcome.tally.sent_bytes(), tries * body);
    }
    // A refusal before an answer begins costs nothing.
    let overloaded = "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n";
    for scripts in [
        vec![answer(401, "", "{}")],
        vec![answer(503, "", "{}"), stream("", [GOOD.into()])],
        vec![stream("", [overloaded.into()]), stream("", [GOOD.into()])],
    ] {
        let outcome = check(scripts, prices, &request()).await;
        assert_eq!(outcome.tally.wasted(), Usage::default());
    }
}
