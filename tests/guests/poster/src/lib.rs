//! The tool `poster`: tells a server what it was told, in the three ways that differ after a kill.
//!
//! `post` acts and is never repeated, `put` has its effect once for a key, `look` has none. The server
//! is the one that the operator's settings name, and `token` of the settings goes to it as authorization.

use longhaul_sdk::http::outgoing_handler;
use longhaul_sdk::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use longhaul_sdk::tool::{CallContext, Tool, Verification};
use longhaul_sdk::tools::{EffectClass, Function, ToolError, ToolInfo, ToolResult};
use serde_json::{Value, json};

struct Poster;

impl Tool for Poster {
    fn describe(_: String) -> Result<ToolInfo, ToolError> {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
            "additionalProperties": false
        });
        let function = |name: &str, description: &str, effect| Function {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.to_string(),
            effect,
        };
        Ok(ToolInfo {
            id: "poster".to_owned(),
            description: "Tells a server.".to_owned(),
            functions: vec![
                function("post", "Tells it, once more each time.", EffectClass::Acts),
                function("put", "Tells it once for a key.", EffectClass::Idempotent),
                function("look", "Asks it.", EffectClass::ReadOnly),
            ],
        })
    }

    fn prepare(function: String, _: String, _: CallContext) -> Result<String, ToolError> {
        Err(ToolError::UnknownFunction(function))
    }

    fn verify(function: String, _: String, _: String, _: CallContext) -> Result<Verification, ToolError> {
        Err(ToolError::UnknownFunction(function))
    }

    fn call(function: String, arguments: String, context: CallContext) -> Result<ToolResult, ToolError> {
        let arguments: Value =
            serde_json::from_str(&arguments).map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        let settings: Value = serde_json::from_str(&context.settings).unwrap_or_default();
        let server = settings["server"].as_str().unwrap_or_default();
        let method = match function.as_str() {
            "post" => Method::Post,
            "put" => Method::Put,
            "look" => Method::Get,
            _ => return Err(ToolError::UnknownFunction(function)),
        };
        let body = match method {
            Method::Get => None,
            _ => Some(json!({ "key": context.idempotency_key, "text": arguments["text"] }).to_string()),
        };
        let path = format!("/{function}/{}", arguments["text"].as_str().unwrap_or_default());
        let output =
            exchange(method, server, &path, body.as_deref(), settings["token"].as_str()).map_err(ToolError::Failed)?;
        Ok(ToolResult { output, truncated: false })
    }
}

longhaul_sdk::export_tool!(Poster);

fn exchange(
    method: Method,
    server: &str,
    path: &str,
    body: Option<&str>,
    token: Option<&str>,
) -> Result<String, String> {
    let fields = Fields::new();
    if let Some(token) = token {
        let value = format!("Bearer {token}").into_bytes();
        fields.append("authorization", &value).map_err(|error| format!("{error:?}"))?;
    }
    let request = OutgoingRequest::new(fields);
    let wrong = |()| format!("`{server}{path}` makes no request");
    request.set_method(&method).map_err(wrong)?;
    request.set_scheme(Some(&Scheme::Http)).map_err(wrong)?;
    request.set_authority(Some(server)).map_err(wrong)?;
    request.set_path_with_query(Some(path)).map_err(wrong)?;
    let outgoing = request.body().map_err(wrong)?;
    let future = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
    if let Some(body) = body {
        let stream = outgoing.write().map_err(wrong)?;
        stream.blocking_write_and_flush(body.as_bytes()).map_err(|error| format!("{error:?}"))?;
    }
    OutgoingBody::finish(outgoing, None).map_err(|error| format!("{error:?}"))?;
    future.subscribe().block();
    let response = future.get().and_then(Result::ok).ok_or("no response")?.map_err(|error| format!("{error:?}"))?;
    let text = read(&response)?;
    if response.status() == 200 { Ok(text) } else { Err(format!("status {}: {text}", response.status())) }
}

fn read(response: &IncomingResponse) -> Result<String, String> {
    let body: IncomingBody = response.consume().map_err(|()| "no body".to_owned())?;
    let stream = body.stream().map_err(|()| "no body".to_owned())?;
    let mut bytes = Vec::new();
    // The end of a stream is an error too; what was cut short is not the JSON that is expected.
    while let Ok(more) = stream.blocking_read(1 << 16) {
        bytes.extend(more);
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
