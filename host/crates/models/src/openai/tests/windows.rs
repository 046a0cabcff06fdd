//! Windows of models: told by the provider, named in a refusal, asked from the endpoint, or well known.

use super::*;

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
