//! Usage and costs: claims of a provider, and replies that are paid for although they are of no use.

use super::*;

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
