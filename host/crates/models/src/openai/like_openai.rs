//! The provider against a server that behaves like OpenAI's reasoning models: it refuses unsupported parameters with
//! OpenAI's error bodies, and enforces OpenAI's rules for schemas and parameters.

use super::*;
use crate::fake_server::{FakeServer, Script, answer, stream};
use crate::probe::{ProbeKind, probe};
use crate::schema::{check, check_parameters};
use longhaul_core::Denial;
use longhaul_core::model::{Message, MessageRole, OfferedTool, ReplyFormat, UsageTally};
use serde_json::json;

const KEY: &str = "sk-test-abcdefghijklmnop";

/// The fields that the endpoint knows.
const KNOWN: [&str; 14] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "tools",
    "response_format",
    "reasoning_effort",
    "parallel_tool_calls",
];

fn refusal(status: u16, message: &str, param: Option<&str>, code: Option<&str>) -> Script {
    let error = json!({ "message": message, "type": "invalid_request_error", "param": param, "code": code });
    answer(status, "Content-Type: application/json\r\n", &json!({ "error": error }).to_string())
}

/// The endpoint's response to a request.
fn like_openai(request: &str) -> Script {
    if !request.contains(&format!("Bearer {KEY}")) && !request.contains(&format!("bearer {KEY}")) {
        let message = "Incorrect API key provided: sk-wrong. You can find your API key at https://platform.openai.com/account/api-keys.";
        return refusal(401, message, None, Some("invalid_api_key"));
    }
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: Value = serde_json::from_str(body).unwrap();
    if body["model"] != "o-test" {
        let message =
            format!("The model `{}` does not exist or you do not have access to it.", body["model"].as_str().unwrap());
        return refusal(404, &message, None, Some("model_not_found"));
    }
    if let Some(unknown) = body.as_object().unwrap().keys().find(|field| !KNOWN.contains(&field.as_str())) {
        return refusal(400, &format!("Unrecognized request argument supplied: {unknown}"), None, None);
    }
    if body.get("max_tokens").is_some() {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        return refusal(400, message, Some("max_tokens"), Some("unsupported_parameter"));
    }
    if let Some(temperature) = body.get("temperature").filter(|temperature| **temperature != 1.0) {
        let message = format!(
            "Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) value is supported."
        );
        return refusal(400, &message, Some("temperature"), Some("unsupported_value"));
    }
    for field in ["stop", "top_p", "parallel_tool_calls"] {
        if body.get(field).is_some() {
            let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
            return refusal(400, &message, Some(field), Some("unsupported_parameter"));
        }
    }
    let format = &body["response_format"]["json_schema"];
    if format["strict"] == true
        && let Some(wrong) = check(&format["schema"], Dialect::OpenAi).first()
    {
        let message = format!("Invalid schema for response_format 'reply': In context=({}), {}.", wrong.at, wrong.rule);
        return refusal(400, &message, Some("response_format"), None);
    }
    for (number, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        let function = &tool["function"];
        if let Some(wrong) = check_parameters(&function["parameters"], Dialect::OpenAi).first() {
            let message = format!("Invalid schema for function '{}': {}", function["name"], wrong.rule);
            let param = format!("tools[{number}].function.parameters");
            return refusal(400, &message, Some(&param), Some("invalid_function_parameters"));
        }
    }
    reply(&body)
}

fn reply(body: &Value) -> Script {
    let finish = |reason: &str| json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    let deltas = match (body["tools"].get(0), body["response_format"]["json_schema"].get("schema")) {
        (Some(tool), _) => {
            let call = json!({ "index": 0, "id": "call_1", "type": "function",
                "function": { "name": tool["function"]["name"], "arguments": "{\"zone\":\"utc\"}" } });
            vec![json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }), finish("tool_calls")]
        }
        (None, schema) => {
            let text = schema.map_or_else(|| "one two three".to_owned(), |schema| sample(schema).to_string());
            let middle = text.floor_char_boundary(text.len() / 2);
            let piece = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
            vec![piece(&text[..middle]), piece(&text[middle..]), finish("stop")]
        }
    };
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 20, "completion_tokens": 5 } });
    let pieces = deltas.iter().chain([&usage]).map(|event| format!("data: {event}\n\n").into_bytes());
    stream("", pieces.chain([b"data: [DONE]\n\n".to_vec()]).collect::<Vec<_>>())
}

/// A value that satisfies a schema.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["anyOf"].get(0) {
        return sample(first);
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let types = schema["type"].as_array().map_or_else(|| vec![schema["type"].clone()], Clone::clone);
    match types[0].as_str().unwrap() {
        "object" => {
            let fields = schema["properties"].as_object().unwrap();
            fields.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect()
        }
        "array" => json!([]),
        "string" if schema["description"].as_str().is_some_and(|text| text.contains("JSON object")) => {
            json!("{\"a\": 1}")
        }
        "string" => json!("text"),
        "boolean" => json!(true),
        _ => json!(1),
    }
}

async fn model(settings: &str) -> (FakeServer, OpenAi) {
    let server = FakeServer::serving(like_openai).await;
    let base = format!("base_url = \"http://127.0.0.1:{}/v1\"\napi_key_env = \"K\"\n", server.port);
    let id = if settings.contains("id = ") { "" } else { "id = \"o-test\"\n" };
    let config = toml::from_str(&format!("{id}{base}{settings}")).unwrap();
    let key = if settings.contains("# wrong key") { "sk-wrong-abcdefghijkl" } else { KEY };
    let model = OpenAi::new("gpt", config, &|_| Some(key.to_owned())).unwrap();
    (server, model)
}

/// With every parameter that a reasoning model refuses, and the schema of a step of an agent.
fn request() -> ModelRequest {
    ModelRequest {
        model: "gpt".into(),
        system: String::new(),
        messages: vec![Message::text(MessageRole::User, "go")],
        tools: vec![],
        format: ReplyFormat::Schema(json!({
            "type": "object",
            "properties": {
                "action": { "type": "string", "enum": ["read"] },
                "args": { "type": "object" },
                "answer": { "type": "string", "maxLength": 100 },
                "confidence": { "type": "number" },
            },
            "required": ["action"],
            "anyOf": [{ "required": ["action"] }, { "required": ["answer"] }],
        })),
        prefill: None,
        stop: vec!["END".into()],
        output_tokens_max: 50,
        temperature: Some(0.2),
        seed: Some(1),
    }
}

/// Each of these used to be a 400, which ended a round.
#[tokio::test]
async fn a_model_that_refuses_parameters_and_schemas_is_asked_again_without_them_and_remembered() {
    let (server, model) = model("extra_body = { verbosity = \"low\", top_p = 0.9 }").await;
    let reply = model.ask(&request(), &mut |_| {}, &UsageTally::default()).await.unwrap();
    let said: Value = serde_json::from_str(&reply.text).unwrap();
    assert_eq!((&said["action"], &said["args"]), (&json!("read"), &json!({ "a": 1 })), "{said}");
    let told: Vec<&str> =
        reply.notes.iter().map(|note| note.split("`: ").last().unwrap().split(" (\"").next().unwrap()).collect();
    let at = format!("model `gpt` at `127.0.0.1:{}`: ", server.port);
    assert!(reply.notes.iter().all(|note| note.starts_with(&at)), "{:?}", reply.notes);
    assert_eq!(told.len(), 6, "{told:#?}");
    let body = server.body(server.requests().len() - 1);
    let fields: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["model", "messages", "stream", "stream_options", "max_completion_tokens", "seed", "response_format"];
    let mut sorted = (fields.clone(), expected.to_vec());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1);

    // The adaptation holds for the next request, without a note.
    let before = server.requests().len();
    let again = model.ask(&request(), &mut |_| {}, &UsageTally::default()).await.unwrap();
    assert_eq!((server.requests().len() - before, again.notes.len(), again.text), (1, 0, reply.text));
}

#[tokio::test]
async fn what_was_learned_is_shared_by_models_of_the_same_name_at_the_same_endpoint() {
    let (server, first) = model("").await;
    let all = Adaptations::default();
    let first = first.adapting(&all);
    first.ask(&request(), &mut |_| {}, &UsageTally::default()).await.unwrap();
    let before = server.requests().len();
    let text = format!("id = \"o-test\"\nbase_url = \"http://127.0.0.1:{}/v1/\"\napi_key_env = \"K\"", server.port);
    let second =
        OpenAi::new("other", toml::from_str(&text).unwrap(), &|_| Some(KEY.to_owned())).unwrap().adapting(&all);
    second.ask(&request(), &mut |_| {}, &UsageTally::default()).await.unwrap();
    assert_eq!(server.requests().len() - before, 1);
}

#[tokio::test]
async fn a_temperature_that_nobody_asked_for_is_not_sent() {
    let (server, model) = model("").await;
    let plain = ModelRequest { temperature: None, stop: vec![], format: ReplyFormat::Text, ..request() };
    model.ask(&plain, &mut |_| {}, &UsageTally::default()).await.unwrap();
    assert!(server.requests().iter().all(|request| !request.contains("\"temperature\"")));
}

#[tokio::test]
async fn a_refusal_for_good_ends_at_once_with_the_providers_words_and_what_to_do() {
    let bad_tool = OfferedTool {
        tool: "t".into(),
        function: "f".into(),
        description: String::new(),
        parameters: json!({ "type": "object", "properties": { "a": { "type": "array" } } }),
    };
    for (settings, request, reason, fix) in [
        (
            "# wrong key",
            request(),
            "answered HTTP 401: Incorrect API key provided: ",
            "put a valid key into the environment variable `K`",
        ),
        (
            "id = \"gpt-99\"",
            request(),
            "answered HTTP 404: The model `gpt-99` does not exist or you do not have access to it.",
            "check `base_url` and `id` of [models.gpt]",
        ),
    ] {
        let (server, model) = model(settings).await;
        let error = model.ask(&request, &mut |_| {}, &UsageTally::default()).await.unwrap_err();
        let ModelError::Rejected(Denial { reason: said, fix: mend }) = &error else { panic!("{error:?}") };
        assert!(said.contains(reason) && mend.contains(fix), "{error}");
        assert!(!error.to_string().contains("sk-wrong-abcdefghijkl"), "{error}");
        assert_eq!(server.requests().len(), 1, "{settings}");
    }
    // A list without items was one of these, and is corrected before it is sent.
    let (_server, model) = model("").await;
    let with_tool = ModelRequest { tools: vec![bad_tool], format: ReplyFormat::Text, ..request() };
    assert_eq!(model.ask(&with_tool, &mut |_| {}, &UsageTally::default()).await.unwrap().calls.len(), 1);
}

#[tokio::test]
async fn a_test_of_a_model_says_what_works() {
    let (_server, model) = model("").await;
    let probed = probe(&model, "gpt", 100).await;
    let told: Vec<_> = probed.iter().map(|one| (one.kind, one.works)).collect();
    assert_eq!(told, ProbeKind::ALL.map(|kind| (kind, true)), "{probed:#?}");
    assert!(probed[0].why.contains("it takes `max_completion_tokens` instead of `max_tokens`"), "{probed:#?}");
    assert!(
        probed.iter().all(|one| one.kind == ProbeKind::Streaming || one.usage.cost().is_none()),
        "no price is known"
    );

    let (server, wrong) = self::model("# wrong key").await;
    let probed = probe(&wrong, "gpt", 100).await;
    assert_eq!((probed.len(), probed[0].works, server.requests().len()), (1, false, 1));
    assert!(probed[0].why.contains("Incorrect API key provided"), "{}", probed[0].why);
}
