//! Converts the result of a call to a value for an agent.
//!
//! A single text is parsed as JSON if it is JSON. Binary parts are replaced by type and size.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Extracted {
    /// A value.
    Value(Value),
    /// The server reports that the tool failed.
    Error(String),
}

impl From<Extracted> for Value {
    fn from(extracted: Extracted) -> Self {
        match extracted {
            Extracted::Value(value) => value,
            Extracted::Error(text) => json!({ "error": text }),
        }
    }
}

/// Reads a result.
#[must_use]
pub fn extract(result: &CallToolResult) -> Extracted {
    if result.is_error == Some(true) {
        return Extracted::Error(error_text(&result.content));
    }
    if let Some(structured) = &result.structured_content {
        return Extracted::Value(structured.clone());
    }
    Extracted::Value(match result.content.as_slice() {
        [] => json!({ "result": "no content returned" }),
        [ContentBlock::Text(text)] => json_or_text(&text.text),
        parts => parts.iter().map(part).collect(),
    })
}

fn error_text(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.as_str()).collect();
    if texts.is_empty() { "the tool failed and said nothing".to_owned() } else { texts.join("\n") }
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// One part of an answer.
pub(crate) fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({ "type": "text", "text": text.text }),
        ContentBlock::Image(image) => json!({ "type": "image", "size": size(&image.data) }),
        ContentBlock::Audio(audio) => json!({ "type": "audio", "size": size(&audio.data) }),
        ContentBlock::Resource(embedded) => resource(&embedded.resource),
        ContentBlock::ResourceLink(link) => json!({ "type": "resource_link", "uri": link.uri, "name": link.name }),
        _ => json!({ "type": "unknown" }),
    }
}

/// The content of a resource.
pub(crate) fn resource(contents: &ResourceContents) -> Value {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            json!({ "type": "resource", "uri": uri, "text": text })
        }
        ResourceContents::BlobResourceContents { uri, blob, .. } => {
            json!({ "type": "resource", "uri": uri, "size": size(blob) })
        }
        _ => json!({ "type": "resource" }),
    }
}

/// The decoded size; for invalid base64, the size of the text itself.
fn size(base64: &str) -> usize {
    STANDARD.decode(base64).map_or(base64.len(), |bytes| bytes.len())
}
