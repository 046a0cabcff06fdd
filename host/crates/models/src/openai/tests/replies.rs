//! Replies as they are read: streams in any pieces, ends that are missing, reasons, and thoughts beside the text.

use super::*;
use longhaul_core::model::StopReason;

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
async fn a_stop_holds_even_where_the_provider_does_not_know_it() {
    let mut request = request();
    request.prefill = Some("END: ".into());
    request.stop = vec!["never".into(), "END".into()];
    let text = delta(json!({ "content": "one END two" })) + &finish("length");
    let outcome = check(vec![stream("", [text.into()])], "prefill = \"native\"\nomit = [\"stop\"]", &request).await;
    assert_eq!((outcome.reply().text.as_str(), outcome.reply().reason), ("END: one ", StopReason::End));
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
