//! Tests of the JSON of messages, and of its bounds.

use super::*;
use longhaul_core::model::{OfferedTool, ReplyFormat};

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: "Be brief.".into(),
        messages,
        tools: vec![OfferedTool {
            tool: "files".into(),
            function: "read".into(),
            description: "Reads".into(),
            parameters: json!({ "type": "object" }),
        }],
        format: ReplyFormat::Text,
        prefill: None,
        stop: Vec::new(),
        output_tokens_max: 100,
        temperature: None,
        seed: None,
    }
}

fn call(arguments: &str) -> RequestedCall {
    RequestedCall { id: "c-1".into(), tool: "files".into(), function: "read".into(), arguments: arguments.into() }
}

fn value(attributes: &[KeyValue], key: &str) -> Value {
    let found = attributes.iter().find(|pair| pair.key.as_str() == key).unwrap_or_else(|| panic!("no {key}"));
    serde_json::from_str(&found.value.as_str()).unwrap()
}

fn is_cut(attributes: &[KeyValue]) -> bool {
    attributes.iter().any(|pair| pair.key.as_str() == "longhaul.content.truncated")
}

#[test]
fn a_conversation_has_the_form_of_the_conventions() {
    let thought = |text: &str, hidden| Thought { text: text.into(), hidden, ..Thought::default() };
    let messages = vec![
        Message::text(MessageRole::User, "Read it."),
        Message {
            speaker: MessageRole::Assistant,
            parts: vec![
                MessagePart::Thought(thought("hm", false)),
                MessagePart::Thought(thought("sealed", true)),
                MessagePart::Requested(call("{\"path\":\"a\"}")),
            ],
        },
        Message {
            speaker: MessageRole::Tool,
            parts: vec![MessagePart::Answered { id: "c-1".into(), output: "no JSON".into(), failed: false }],
        },
    ];
    let reply = ModelReply { text: "Done".into(), calls: vec![call("not JSON")], ..ModelReply::default() };
    let attributes = ContentWriter::new(65_536).exchange(&request(messages), &reply, "tool_call");
    let instructions = json!([{ "type": "text", "content": "Be brief." }]);
    assert_eq!(value(&attributes, "gen_ai.system_instructions"), instructions);
    let input = json!([
        { "role": "user", "parts": [{ "type": "text", "content": "Read it." }] },
        { "role": "assistant", "parts": [
            { "type": "reasoning", "content": "hm" },
            { "type": "tool_call", "id": "c-1", "name": "files.read", "arguments": { "path": "a" } },
        ] },
        { "role": "tool", "parts": [{ "type": "tool_call_response", "id": "c-1", "response": "no JSON" }] },
    ]);
    assert_eq!(value(&attributes, "gen_ai.input.messages"), input);
    let output = json!([{ "role": "assistant", "finish_reason": "tool_call", "parts": [
        { "type": "text", "content": "Done" },
        { "type": "tool_call", "id": "c-1", "name": "files.read", "arguments": "not JSON" },
    ] }]);
    assert_eq!(value(&attributes, "gen_ai.output.messages"), output);
    assert_eq!(value(&attributes, "gen_ai.tool.definitions"), json!([{ "type": "function", "name": "files.read" }]));
    assert!(!is_cut(&attributes));
}

#[test]
fn what_is_too_long_is_cut_and_stays_valid() {
    const MAX: usize = 4_096;
    let long = |text: &str| text.repeat(10_000);
    let image = MessagePart::Image { media_type: "image/png".into(), data: vec![0; 9] };
    for messages in [
        vec![Message::text(MessageRole::User, long("a"))],
        vec![Message::text(MessageRole::User, long("\u{1}"))],
        (0..100).map(|number| Message::text(MessageRole::User, format!("{number} {}", "é".repeat(200)))).collect(),
        vec![Message { speaker: MessageRole::User, parts: vec![MessagePart::Text(long("\"")); 50] }],
        vec![Message { speaker: MessageRole::User, parts: vec![image] }],
    ] {
        let reply = ModelReply { text: long("\n"), calls: vec![call(&long("[1e5,"))], ..ModelReply::default() };
        let attributes = ContentWriter::new(MAX).exchange(&request(messages), &reply, "stop");
        assert!(is_cut(&attributes));
        for key in ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"] {
            let found = value(&attributes, key);
            assert!(found.as_array().is_some_and(|items| !items.is_empty()), "{key}: {found}");
            assert!(found.to_string().len() <= MAX, "{key}: {} bytes", found.to_string().len());
        }
    }
    let newest = (0..100).map(|number| Message::text(MessageRole::User, format!("{number} {}", "x".repeat(200))));
    let attributes = ContentWriter::new(MAX).exchange(&request(newest.collect()), &ModelReply::default(), "stop");
    let input = value(&attributes, "gen_ai.input.messages").to_string();
    assert!(input.contains("\"99 x") && !input.contains("\"1 x"), "the newest messages stay");
}

#[test]
fn arguments_and_results_of_tools_are_bounded() {
    let attributes = ContentWriter::new(1_024).tool(Some("{\"path\":\"a\"}"), Some(&"x".repeat(2_000)));
    assert_eq!(value(&attributes, "gen_ai.tool.call.arguments"), json!({ "path": "a" }));
    assert!(is_cut(&attributes));
    assert!(attributes.iter().all(|pair| pair.value.as_str().len() < 1_100));
}
