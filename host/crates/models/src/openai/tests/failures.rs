//! Failures of a provider: retries, refusals, interruptions, and replies without an end.

use super::*;
use std::time::Duration;

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
