//! The real model end to end: SmolLM2-135M-Instruct, 98 MB, which is not in the repository.
//!
//! `cargo test -p longhaul-llama --features inference -- --ignored` runs it with the file that
//! `LONGHAUL_MODEL_FILE` names, or the one in `~/.cache/longhaul/models`. What is asserted holds
//! for any model of this kind, except where a text is compared; there it is a short, plain fact.
#![cfg(feature = "inference")]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use longhaul_llama::protocol::{ChatMessage, ChatRole, Completion, CompletionReply, CompletionStop};
use longhaul_llama::{LoadOptions, LoadedModel};
use serde_json::json;

fn model() -> LoadedModel {
    let path = std::env::var_os("LONGHAUL_MODEL_FILE").map_or_else(
        || {
            let home = std::env::var_os("HOME").unwrap_or_default();
            PathBuf::from(home).join(".cache/longhaul/models/smollm2-135m-instruct-q4_1.gguf")
        },
        PathBuf::from,
    );
    let started = Instant::now();
    let model = LoadedModel::load(&path, &LoadOptions::default()).expect("load the model");
    println!("loaded in {:?}: {:?}", started.elapsed(), model.info());
    model
}

fn ask(text: &str) -> Completion {
    Completion {
        messages: vec![ChatMessage::new(ChatRole::User, text)],
        output_tokens_max: 60,
        ..Completion::default()
    }
}

fn complete(model: &mut LoadedModel, request: &Completion) -> CompletionReply {
    let started = Instant::now();
    let mut first = None;
    let mut on_text = |_: &str| {
        first.get_or_insert_with(|| started.elapsed());
        ControlFlow::Continue(())
    };
    let reply = model.complete(request, &AtomicBool::new(false), &mut on_text);
    let reply = reply.expect("complete");
    println!("first text {first:?}, all {:?}: {reply:?}", started.elapsed());
    reply
}

#[test]
#[ignore = "needs the model file of 98 MB"]
fn a_plain_question_gets_a_sensible_greedy_answer() {
    let reply = complete(&mut model(), &ask("What is the capital city of Italy? Answer in one sentence."));
    assert!(reply.text.contains("Rome"), "{}", reply.text);
    assert_eq!(reply.stop_reason, CompletionStop::End);
}

#[test]
#[ignore = "needs the model file of 98 MB"]
fn an_answer_under_a_schema_is_json_of_that_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 30},
            "country": {"enum": ["France", "Japan", "Peru"]},
            "inhabitants": {"type": "integer"},
        },
        "required": ["city", "country", "inhabitants"],
        "additionalProperties": false,
    });
    let request = Completion { schema: Some(schema), ..ask("Describe Tokyo as JSON.") };
    let reply = complete(&mut model(), &request);
    let value: serde_json::Value = serde_json::from_str(&reply.text).expect("valid JSON");
    assert!(value["city"].is_string() && value["inhabitants"].is_i64(), "{value}");
}

#[test]
#[ignore = "needs the model file of 98 MB"]
fn the_same_seed_twice_is_the_same_text_and_another_seed_is_not() {
    let mut model = model();
    let request =
        Completion { session: "story".into(), temperature: 0.8, seed: 1, ..ask("Tell me a short story about a boat.") };
    let first = complete(&mut model, &request);
    let second = complete(&mut model, &request);
    assert_eq!(first.text, second.text);
    assert!(second.cached_tokens > first.cached_tokens);
    let other = complete(&mut model, &Completion { seed: 2, ..request });
    assert_ne!(first.text, other.text);
}

#[test]
#[ignore = "needs the model file of 98 MB"]
fn a_second_turn_pays_only_for_what_is_new() {
    let mut model = model();
    let facts = "The bridge was closed in May. The ferry runs on Monday. ".repeat(40);
    let mut request = Completion { session: "talk".into(), ..ask(&format!("{facts}\nWhen does the ferry run?")) };
    let first = complete(&mut model, &request);
    assert_eq!(first.cached_tokens, 0);
    request.messages.push(ChatMessage::new(ChatRole::Assistant, first.text));
    request.messages.push(ChatMessage::new(ChatRole::User, "Thank you."));
    let second = complete(&mut model, &request);
    assert!(second.cached_tokens >= first.prompt_tokens, "{second:?}");
    assert!(second.prompt_tokens - second.cached_tokens < 40, "{second:?}");
}

#[test]
#[ignore = "needs the model file of 98 MB"]
fn the_answer_goes_on_from_its_prefill_and_stops_at_its_stop_text() {
    let request = Completion {
        prefill: Some("```python\n".into()),
        stop: vec!["```".into()],
        output_tokens_max: 180,
        ..ask("Write a Python function add(a, b) that returns the sum of a and b.")
    };
    let reply = complete(&mut model(), &request);
    assert!(reply.text.starts_with("def add(a, b):"), "{}", reply.text);
    assert!(!reply.text.contains("```"), "{}", reply.text);
}
