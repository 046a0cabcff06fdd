//! One reply, read as any endpoint could send it, without a connection: for the fuzz targets.
//!
//! It uses the decoder and the assemblies of a real request, within smaller caps.

use crate::http_exchange::Assembly;
use crate::prices::Prices;
use crate::sse::Decoder;
use crate::tool_names::Names;
use crate::{anthropic, openai};
use longhaul_core::model::{ModelReply, ModelRequest, ReplyFormat};
use reqwest::header::HeaderMap;

/// Bytes of one line, and of all of a reply.
const LINE_BYTES_MAX: usize = 64 << 10;
const BYTES_MAX: usize = 1 << 20;

/// The protocol of an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// `chat/completions`.
    OpenAi,
    /// `messages`.
    Anthropic,
}

/// Reads a reply in these pieces, as a stream of events or whole; none: it is no reply.
pub fn read<'a>(protocol: Protocol, is_stream: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<ModelReply> {
    let request = request();
    let (names, headers) = (Names::of(&request.tools), HeaderMap::new());
    let events = events(is_stream, pieces)?;
    match protocol {
        Protocol::OpenAi => {
            let config = serde_json::from_str(r#"{"id": "model"}"#).ok()?;
            let whole = assembled(openai::fresh(), &events, &request)?;
            Some(whole.into_reply(&request, &config, &names, &Prices::Unknown, &headers))
        }
        Protocol::Anthropic => {
            let config = serde_json::from_str(r#"{"id": "model"}"#).ok()?;
            let whole = assembled(anthropic::fresh(), &events, &request)?;
            Some(whole.into_reply(&request, &config, &names, &Prices::Unknown, &headers))
        }
    }
}

fn events<'a>(is_stream: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<String>> {
    if !is_stream {
        let whole: Vec<u8> = pieces.into_iter().flatten().copied().collect();
        return (whole.len() <= BYTES_MAX).then(|| String::from_utf8(whole).ok()).flatten().map(|text| vec![text]);
    }
    let mut decoder = Decoder::new(LINE_BYTES_MAX, BYTES_MAX);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.push(piece).ok()?);
    }
    events.extend(decoder.finish().ok()?);
    Some(events)
}

/// Assembles the events until the endpoint ends the reply.
fn assembled<A: Assembly>(mut assembly: A, events: &[String], request: &ModelRequest) -> Option<A> {
    for event in events {
        assembly.take(event).ok()?;
        if assembly.is_done() {
            break;
        }
    }
    assembly.finish_text();
    let _ = (assembly.refusal(), assembly.counted(request), assembly.stated());
    assembly.is_whole().then_some(assembly)
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "model".into(),
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        format: ReplyFormat::Text,
        prefill: Some("{".into()),
        stop: vec!["STOP".into()],
        output_tokens_max: 1_000,
        temperature: None,
        seed: None,
    }
}
