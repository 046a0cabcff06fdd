//! The tool `http-fetch`: text, JSON and web pages from hosts that the operator granted.
//!
//! Web pages become text that a model can read. Where a request may go, and where a name may lead, the host decides
//! for each hop. There is no cookie jar, no cache and no repeating; a `post` is never redirected.

mod exchange;
mod page;

use exchange::{Bounds, Fetched, Method, Outgoing, invalid};
use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::{Functions, json, schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Headers of one request, and bytes of one.
const HEADERS_MAX: usize = 20;
const HEADER_BYTES_MAX: usize = 4_096;

/// Bytes of what a `post` sends.
const SENT_BYTES_MAX: usize = 1 << 20;

/// The most that the operator can ask for.
const BODY_BYTES_MAX: usize = 3 << 20;

/// Headers that belong to the connection, or would change what comes back.
const OURS: [&str; 8] =
    ["accept-encoding", "connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"];

fn functions() -> Functions {
    let url = || schema::text().chars(8, 8_192).about("https:// or http://");
    let shape = || schema::one_of(["auto", "text", "json", "raw"]).about("auto: a web page as text; raw: as it came");
    let headers = || schema::any_object().about("names and texts");
    let get = schema::object().required("url", url()).optional("as", shape()).optional("headers", headers());
    let post = schema::object()
        .required("url", url())
        .optional("json", schema::any().about("is sent as JSON"))
        .optional("text", schema::text().about("is sent as it is, with its own content-type header"))
        .optional("as", shape())
        .optional("headers", headers());
    Functions::new("http-fetch", "Fetches text, JSON and web pages.")
        .read_only("get", "Fetches an address. Redirects are followed.", get, get_it)
        .acts("post", "Sends something to an address. Redirects are not followed.", post, post_it)
}

longhaul_sdk::export_functions!(functions);

#[derive(Deserialize)]
struct Get {
    url: String,
    #[serde(default, rename = "as")]
    shape: Shape,
    #[serde(default)]
    headers: Map<String, Value>,
}

#[derive(Deserialize)]
struct Post {
    url: String,
    json: Option<Value>,
    text: Option<String>,
    #[serde(default, rename = "as")]
    shape: Shape,
    #[serde(default)]
    headers: Map<String, Value>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Shape {
    #[default]
    Auto,
    Text,
    Json,
    Raw,
}

/// Under `[tools.http-fetch.settings]` of `longhaul.toml`.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// Bytes of a body that are read; the rest is left, and said. Default 256 KiB, at most 3 MiB.
    body_bytes_max: usize,
    /// Default 5, at most 10.
    redirects_max: u32,
    /// Longest wait in milliseconds for the connection, for the first byte and for each further one. Default 10 000.
    timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { body_bytes_max: 256 << 10, redirects_max: 5, timeout_ms: 10_000 }
    }
}

fn bounds(context: &CallContext) -> Result<Bounds, ToolError> {
    let settings: Settings = json::read("settings of the tool `http-fetch`", &context.settings)?;
    Ok(Bounds {
        body_bytes_max: settings.body_bytes_max.clamp(1, BODY_BYTES_MAX),
        redirects_max: settings.redirects_max.min(10),
        timeout_ms: settings.timeout_ms.clamp(1, context.remaining_ms.max(1).into()),
    })
}

fn get_it(asked: Get, context: &CallContext) -> Result<Value, ToolError> {
    let headers = headers(&asked.headers)?;
    let outgoing = Outgoing { method: Method::Get, url: asked.url, headers, body: None };
    told(exchange::fetch(outgoing, bounds(context)?)?, asked.shape)
}

fn post_it(asked: Post, context: &CallContext) -> Result<Value, ToolError> {
    let mut headers = headers(&asked.headers)?;
    let body = match (asked.json, asked.text) {
        (Some(_), Some(_)) => return Err(invalid("give `json` or `text`, not both")),
        (Some(value), None) => {
            headers.retain(|(name, _)| name != "content-type");
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            value.to_string()
        }
        (None, text) => text.unwrap_or_default(),
    };
    if body.len() > SENT_BYTES_MAX {
        return Err(invalid(format!("what is sent has {} bytes; {SENT_BYTES_MAX} are the most", body.len())));
    }
    let outgoing = Outgoing { method: Method::Post, url: asked.url, headers, body: Some(body.into_bytes()) };
    told(exchange::fetch(outgoing, bounds(context)?)?, asked.shape)
}

fn headers(asked: &Map<String, Value>) -> Result<Vec<(String, String)>, ToolError> {
    if asked.len() > HEADERS_MAX {
        return Err(invalid(format!("{} headers are more than {HEADERS_MAX}", asked.len())));
    }
    let mut headers = Vec::new();
    for (name, value) in asked {
        let (lower, shown) = (name.to_ascii_lowercase(), json::cut(name, 80));
        let value = value.as_str().ok_or_else(|| invalid(format!("the header `{shown}` is no text")))?;
        if OURS.contains(&lower.as_str()) {
            return Err(invalid(format!("the header `{shown}` is the host's to send; leave it out")));
        }
        if name.len() + value.len() > HEADER_BYTES_MAX || value.chars().any(char::is_control) {
            return Err(invalid(format!("the header `{shown}` is too long or has a control character")));
        }
        headers.push((lower, value.to_owned()));
    }
    Ok(headers)
}

fn told(fetched: Fetched, shape: Shape) -> Result<Value, ToolError> {
    let kind = fetched.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let is_page = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let mut told = json!({
        "url": fetched.url,
        "status": fetched.status,
        "content_type": json::cut(&fetched.content_type, 200),
        "bytes": fetched.body.len(),
        "truncated": fetched.is_cut,
    });
    if !fetched.redirects.is_empty() {
        told["redirects"] = json!(fetched.redirects);
    }
    if let Some(location) = &fetched.location {
        told["location"] = json!(json::cut(location, 500));
    }
    match shape {
        Shape::Json | Shape::Auto if is_json || shape == Shape::Json => {
            match serde_json::from_slice::<Value>(&fetched.body) {
                Ok(value) => told["json"] = value,
                Err(error) if shape == Shape::Json => {
                    return Err(exchange::failed(format!(
                        "the answer with status {} is no JSON: {error}",
                        fetched.status
                    )));
                }
                Err(_) => told["text"] = text(&fetched.body).into(),
            }
        }
        Shape::Auto | Shape::Text if is_page => {
            let page = page::read(&fetched.body).map_err(exchange::failed)?;
            told["text"] = page.into();
        }
        _ if fetched.body.contains(&0) => {
            return Err(exchange::failed(format!("the answer is binary (`{kind}`), and this tool reads text")));
        }
        _ => told["text"] = text(&fetched.body).into(),
    }
    Ok(told)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
