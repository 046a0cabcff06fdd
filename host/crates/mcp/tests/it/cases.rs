//! The suite `mcp_extract` of `$LONGHAUL_CASES`.

use longhaul_mcp::extract;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn every_case_of_the_suite_mcp_extract_holds() {
    let cases = cases_of("mcp_extract");
    assert!(!cases.is_empty(), "no case of the suite `mcp_extract` in {}", directory().display());
    for case in cases {
        let result = json!({ "content": content(&case), "isError": case["isError"] });
        let result: CallToolResult = serde_json::from_value(result).expect("a result of the protocol");
        assert_eq!(Value::from(extract(&result)), case["expected"], "{}", case["id"]);
    }
}

/// `["text", TEXT]` and `["bin", BYTES]` as parts of the protocol.
fn content(case: &Value) -> Vec<Value> {
    let part = |part: &Value| match part[0].as_str() {
        Some("text") => json!({ "type": "text", "text": part[1] }),
        Some("bin") => {
            let bytes = vec![b'x'; usize::try_from(part[1].as_u64().expect("a number")).expect("small")];
            json!({ "type": "image", "data": encoded(&bytes), "mimeType": "image/png" })
        }
        other => panic!("unknown part {other:?}; write a driver for it in {}", file!()),
    };
    case["content"].as_array().expect("a list").iter().map(part).collect()
}

fn encoded(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn several_parts_keep_their_order_and_bytes_are_told_by_size() {
    let result = json!({ "content": [
        { "type": "text", "text": "{\"a\":1}" },
        { "type": "audio", "data": encoded(b"12345"), "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "file:///a", "text": "t" } },
    ] });
    let result: CallToolResult = serde_json::from_value(result).unwrap();
    let expected = json!([
        { "type": "text", "text": "{\"a\":1}" },
        { "type": "audio", "size": 5 },
        { "type": "resource", "uri": "file:///a", "text": "t" },
    ]);
    assert_eq!(Value::from(extract(&result)), expected);
}

fn directory() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    std::env::var_os("LONGHAUL_CASES").map_or_else(default, PathBuf::from)
}

/// Files are picked by their field `suite`, never by their name.
fn cases_of(suite: &str) -> Vec<Value> {
    let entries = std::fs::read_dir(directory()).expect("a directory of cases");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| -> Value {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let files = paths.map(read).filter(|file| file["suite"] == suite);
    files.flat_map(|file| file["cases"].as_array().cloned().expect("a list of cases")).collect()
}
