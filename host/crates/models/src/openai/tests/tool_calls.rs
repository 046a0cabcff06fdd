//! Tool calls, put together from the pieces of a stream.

use super::*;
use longhaul_core::model::{OfferedTool, RequestedCall, StopReason};

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
