//! Requests as they are sent: their fields, the settings that change them, and prefills.

use super::*;
use longhaul_core::model::{MessagePart, OfferedTool, RequestedCall};

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
