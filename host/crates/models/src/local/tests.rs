//! The keeper of the child against a fake child, and the conversion in both directions.

use super::*;
use longhaul_core::model::{Message, MessagePart, MessageRole, OfferedTool, ReplyFormat, RequestedCall, StopReason};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CHILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/local/fake_child.py");

struct Fixture {
    model: Local,
    directory: tempfile::TempDir,
}

/// A model whose child is the fake one; `mode` is the name it is started under, `edit` changes the settings.
fn fixture(mode: &str, edit: impl FnOnce(&mut LocalConfig)) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join(mode);
    std::fs::copy(CHILD, &script).unwrap();
    let mut config = LocalConfig { context_tokens_max: 2048, load_ms_max: 20_000, ..LocalConfig::default() };
    edit(&mut config);
    // The fake finds its own name in its first argument.
    let command = vec!["python3".into(), script.into_os_string()];
    Fixture { model: Local::new("small", config, command, Path::new("/models/fake.gguf")), directory }
}

impl Fixture {
    async fn ask(&self, text: &str) -> Result<ModelReply, ModelError> {
        self.model.complete(&request(text), &mut |_| {}).await
    }

    async fn error(&self, text: &str) -> String {
        self.ask(text).await.unwrap_err().to_string()
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.directory.path().join("starts")).unwrap_or_default().lines().count()
    }
}

fn request(text: &str) -> ModelRequest {
    ModelRequest {
        model: "small".into(),
        system: "be brief".into(),
        messages: vec![Message::text(MessageRole::User, text)],
        tools: vec![],
        format: ReplyFormat::Text,
        prefill: None,
        stop: vec![],
        output_tokens_max: 50,
        temperature: None,
        seed: None,
    }
}

fn with_tool(text: &str) -> ModelRequest {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let read = OfferedTool { tool: "files".into(), function: "read".into(), description: "Reads.".into(), parameters };
    ModelRequest { tools: vec![read], ..request(text) }
}

#[tokio::test]
async fn a_reply_is_heard_piece_by_piece_and_counted() {
    let fixture = fixture("child", |_| {});
    let mut heard = Vec::new();
    let request = ModelRequest { prefill: Some("oh ".into()), ..request("hi") };
    let reply = fixture.model.complete(&request, &mut |piece| heard.push(piece.to_owned())).await.unwrap();
    assert_eq!(heard, ["oh ", "he", "llo"]);
    assert_eq!((reply.text.as_str(), reply.reason), ("oh hello", StopReason::End));
    assert_eq!((reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens), (9, 4, 2));
    assert_eq!(fixture.model.info().id, "local/fake");
}

#[tokio::test]
async fn a_child_is_nice_knows_its_limits_and_nothing_of_our_environment() {
    let fixture = fixture("child", |config| config.nice = 7);
    let text = fixture.ask("facts").await.unwrap().text;
    let facts: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(facts[0], 7);
    assert_eq!(
        facts[1],
        json!({ "--file": "/models/fake.gguf", "--context-tokens-max": "2048", "--memory-bytes-max": "1073741824" })
    );
    // A python that is itself a script adds names of its own; ours would be these.
    let names = facts[2].to_string();
    assert!(names.contains("CANDLE_NUM_THREADS") && names.contains("RAYON_NUM_THREADS"), "{names}");
    assert!(std::env::var_os("HOME").is_some() && !names.contains("CARGO") && !names.contains("HOME"), "{names}");
}

#[tokio::test]
async fn a_death_fails_its_request_and_the_next_one_starts_it_again() {
    let fixture = fixture("child", |_| {});
    let error = fixture.ask("die").await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable(_)));
    let expected = "model `small`: its process ended: exit status: 3; it last said: first words last words; the next request starts it again";
    assert_eq!(error.to_string(), expected);
    assert_eq!(fixture.ask("hi").await.unwrap().text, "hello");
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test]
async fn a_death_between_requests_costs_nobody_a_request() {
    let fixture = fixture("child", |_| {});
    fixture.ask("die later").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(fixture.ask("hi").await.unwrap().text, "hello");
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test]
async fn a_child_without_requests_ends_and_comes_back() {
    let fixture = fixture("child", |config| config.idle_ms_max = 50);
    fixture.ask("hi").await.unwrap();
    fixture.ask("hi").await.unwrap();
    assert_eq!(fixture.starts(), 1);
    tokio::time::sleep(Duration::from_millis(600)).await;
    fixture.ask("hi").await.unwrap();
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test]
async fn a_request_that_is_dropped_is_cancelled_and_the_child_stays() {
    let fixture = fixture("child", |_| {});
    fixture.ask("hi").await.unwrap();
    give_up_in_the_middle(&fixture, "slow").await;
    assert_eq!(fixture.ask("hi").await.unwrap().text, "hello");
    assert_eq!(fixture.starts(), 1);
}

#[tokio::test]
async fn a_child_that_does_not_listen_is_killed() {
    let fixture = fixture("child", |_| {});
    fixture.ask("hi").await.unwrap();
    give_up_in_the_middle(&fixture, "deaf").await;
    assert_eq!(fixture.ask("hi").await.unwrap().text, "hello");
    assert_eq!(fixture.starts(), 2);
}

async fn give_up_in_the_middle(fixture: &Fixture, text: &str) {
    let (heard, wait) = tokio::sync::oneshot::channel();
    let mut heard = Some(heard);
    let request = request(text);
    let mut hear = move |_: &str| {
        if let Some(heard) = heard.take() {
            let _ = heard.send(());
        }
    };
    tokio::select! {
        reply = fixture.model.complete(&request, &mut hear) => panic!("{reply:?}"),
        _ = wait => {}
    }
}

#[tokio::test]
async fn requests_are_served_in_the_order_in_which_they_came() {
    let fixture = fixture("child", |_| {});
    let order = std::sync::Mutex::new(Vec::new());
    let ask = async |index: usize| {
        fixture.ask(&format!("say {index}")).await.unwrap();
        order.lock().unwrap().push(index);
    };
    futures_util::future::join_all((0..100).map(ask)).await;
    assert_eq!(order.into_inner().unwrap(), (0..100).collect::<Vec<_>>());
    assert_eq!(fixture.starts(), 1);
}

#[tokio::test]
async fn what_a_broken_child_says_is_bounded_and_told() {
    let broken = fixture("child", |_| {});
    assert!(broken.error("junk").await.contains("its process said `Segmentation fault`, which is not of the protocol"));
    assert!(broken.error("flood").await.contains("said a line of more than 4194304 bytes"));
    assert_eq!(
        broken.error("too long").await,
        "the conversation is longer than the model's window: limit `context_tokens_max` reached: 2049 of 2048"
    );
    assert_eq!(broken.ask("hi").await.unwrap().text, "hello");
    assert_eq!(fixture("refuses", |_| {}).error("hi").await, "the model failed: model `small`: not a GGUF file");
    let error = fixture("dies-early", |_| {}).error("hi").await;
    assert!(error.contains("exit status: 1; it last said: no memory [31m left"), "{error}");
    let error = fixture("child", |config| config.context_tokens_max = 4096).error("hi").await;
    assert!(
        error.contains(
            "has a window of 2048 tokens, less than [models.small] context_tokens_max = 4096; set it to 2048"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_child_that_takes_too_long_is_given_up() {
    let before = Instant::now();
    let error = fixture("sleeps", |config| config.load_ms_max = 100).error("hi").await;
    assert!(error.contains("did not load within load_ms_max = 100 ms"), "{error}");
    let late = fixture("child", |config| config.reply_ms_max = 1_500);
    late.ask("hi").await.unwrap();
    assert!(late.error("slow").await.contains("no whole reply within reply_ms_max = 1500 ms"));
    assert_eq!(late.ask("hi").await.unwrap().text, "hello");
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let command = vec!["/nowhere/longhaul".into(), "model-child".into()];
    let model = Local::new("small", LocalConfig::default(), command, Path::new("/m.gguf"));
    let error = model.complete(&request("hi"), &mut |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("cannot start `/nowhere/longhaul`"), "{error}");
}

#[tokio::test]
async fn a_tool_call_comes_out_of_its_envelope() {
    let fixture = fixture("child", |_| {});
    let said = |text: &str| with_tool(&format!("say {text}"));
    let ask = async |request: ModelRequest| fixture.model.complete(&request, &mut |_| {}).await.unwrap();
    let reply = ask(said(r#"{"call":"files__read","arguments":{"path":"a"}}"#)).await;
    let call = RequestedCall {
        id: "call_0".into(),
        tool: "files".into(),
        function: "read".into(),
        arguments: r#"{"path":"a"}"#.into(),
    };
    assert_eq!((reply.text.as_str(), reply.calls.as_slice(), reply.reason), ("", &[call][..], StopReason::Tools));
    assert_eq!(ask(said(r#"{"answer":"done"}"#)).await.text, "done");
    assert_eq!(ask(said(r#"{"answer":{"a":1}}"#)).await.text, r#"{"a":1}"#);
    assert_eq!(ask(said(r#"{"answer":"cut o"#)).await.text, r#"{"answer":"cut o"#);
}

#[tokio::test]
async fn offered_tools_become_a_schema() {
    let fixture = fixture("child", |_| {});
    let text = fixture.model.complete(&with_tool("schema"), &mut |_| {}).await.unwrap().text;
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["anyOf"][0]["properties"]["call"]["const"], "files__read");
    assert_eq!(schema["anyOf"][0]["properties"]["arguments"]["properties"]["path"]["type"], "string");
    assert_eq!(schema["anyOf"][1]["required"], json!(["answer"]));
    let mut request = with_tool("schema");
    request.tools[0].parameters = json!({ "$ref": "#/$defs/a", "$defs": { "a": {} } });
    let schema: Value =
        serde_json::from_str(&fixture.model.complete(&request, &mut |_| {}).await.unwrap().text).unwrap();
    assert_eq!(schema["anyOf"][0]["properties"]["arguments"], json!({ "type": "object" }));
}

#[test]
fn a_conversation_with_tools_is_told_in_words() {
    let mut request = with_tool("read a");
    let call = RequestedCall {
        id: "call_0".into(),
        tool: "files".into(),
        function: "read".into(),
        arguments: "{\"path\":\"a\"}".into(),
    };
    request.messages.push(Message { speaker: MessageRole::Assistant, parts: vec![MessagePart::Requested(call)] });
    request.messages.push(Message {
        speaker: MessageRole::Tool,
        parts: vec![MessagePart::Answered { id: "call_0".into(), output: "\"text\"".into(), failed: false }],
    });
    let messages = Dialogue::of(&request).unwrap().completion().messages;
    assert!(messages[0].content.contains("- files__read: Reads. Arguments: {"));
    assert_eq!(messages[2].content, r#"{"call":"files__read","arguments":{"path":"a"}}"#);
    assert_eq!(messages[3].content, "The function returned: \"text\"");
}

#[test]
fn what_the_small_model_cannot_do_is_refused() {
    let prefill = |request: ModelRequest| ModelRequest { prefill: Some("{".into()), ..request };
    let mut picture = request("");
    picture.messages[0].parts = vec![MessagePart::Image { media_type: "image/png".into(), data: vec![] }];
    for (request, expected) in [
        (prefill(with_tool("a")), "leave one of them out"),
        (prefill(ModelRequest { format: ReplyFormat::Json, ..request("a") }), "leave one of them out"),
        (picture, "sees no pictures"),
    ] {
        let error = Dialogue::of(&request).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
