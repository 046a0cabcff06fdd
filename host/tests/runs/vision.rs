//! A picture on its way: fetched by a tool, shown to the model, and a placeholder everywhere else.

use crate::common::lab::Lab;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The beginning of the picture's bytes, as the wire has them.
const BASE64: &str = "iVBORw0KGgo";

/// A model that asks for a picture until it sees one, and the place where the picture is.
struct Eye {
    address: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Eye {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let eye = Self { address: address.clone(), asked: Arc::clone(&asked) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let _ = answer(&stream, &address, &asked);
            }
        });
        eye
    }
}

fn answer(stream: &TcpStream, address: &str, asked: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (kind, told) = if first.starts_with("POST") {
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let told = reply(&request, address);
        asked.lock().expect("whole").push(request);
        ("application/json", told.to_string().into_bytes())
    } else {
        ("image/png", png())
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        told.len()
    );
    let mut stream = stream;
    stream.write_all(&[head.as_bytes(), &told].concat())
}

fn reply(request: &Value, address: &str) -> Value {
    let sees = request.to_string().contains("image_url");
    let action = match sees {
        true => json!({ "thought": "I see it", "action": "finish", "answer": "a picture", "confidence": 1 }),
        false => {
            json!({ "thought": "look", "action": "picture.fetch", "args": { "url": format!("http://{address}/it.png") } })
        }
    };
    json!({
        "id": "eye", "object": "chat.completion", "created": 0, "model": "eye",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": action.to_string() }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}

fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([3_u32.to_be_bytes(), 2_u32.to_be_bytes()].concat());
    bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

const CONFIG: &str = r#"
[project]
name = "kept"

[models.eye]
provider = "openai"
id = "eye"
base_url = "http://{eye}/v1"
image_detail = "low"

[agents.code]
plugin = "react"
models = ["eye"]
tools = ["picture"]

[tools.picture]
plugin = "fetch-image"
hosts = ["http://{eye}"]
confirm_effects = true

[evaluator]
plugin = "lenient"
"#;

#[test]
fn a_model_sees_the_picture_that_a_tool_fetched_and_nobody_else_reads_its_bytes() {
    let eye = Eye::open();
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nLook at it.\n";
    let lab = Lab::new(&CONFIG.replace("{eye}", &eye.address), goal);
    lab.run(&["run"]).expect(0);
    let asked = eye.asked.lock().expect("whole").clone();
    assert_eq!(asked.len(), 2, "one reply asks for it, one has seen it");
    let messages = asked[1]["messages"].as_array().expect("messages");
    let [.., words, shown] = &messages[..] else { panic!("{messages:?}") };
    let image = &shown["content"][1]["image_url"];
    assert!(
        image["url"].as_str().is_some_and(|url| url.starts_with(&format!("data:image/png;base64,{BASE64}"))),
        "{shown}"
    );
    assert_eq!(image["detail"], "low");
    assert!(words["content"].as_str().is_some_and(|text| text.contains("[image image/png, 33 bytes]")), "{words}");
    assert!(!words.to_string().contains(BASE64), "its bytes are no words: {words}");

    let shown = lab.json(&["trajectories", "show", "f-one/1/generate"]);
    let told = shown["conversations"].to_string();
    assert!(told.contains("[image image/png, 33 bytes]") && !told.contains(BASE64), "{told}");
    let events = lab.run(&["attach"]);
    assert!(!events.said().contains(BASE64), "{}", events.said());
}
