//! Resources and prompts of a server, as functions beside its tools, if the operator enabled them.
//!
//! The host defines these functions and not the server, so that nothing of it needs a pin; a server's lists and content
//! are data of a call. A tool of the server with the same name has precedence. Refuses templates and subscriptions, and
//! to treat a prompt as an instruction: it is an answer like any other.

use crate::config::McpConfig;
use crate::extract::{part, resource};
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{FunctionInfo, ToolCall, ToolError};
use rmcp::model::{
    GetPromptRequestParams, JsonObject, PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams,
    Resource,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde::Deserialize;
use serde_json::{Value, json};

const LIST_RESOURCES: &str = "list_resources";
const READ_RESOURCE: &str = "read_resource";
const LIST_PROMPTS: &str = "list_prompts";
const GET_PROMPT: &str = "get_prompt";

/// Bytes of a description in a list.
const DESCRIPTION_BYTES_MAX: usize = 500;

/// A call of one of these functions.
pub(crate) enum Offer {
    ListResources(Page),
    ReadResource(Read),
    ListPrompts(Page),
    GetPrompt(Get),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    uri: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Get {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// The functions that the operator enabled. `has_tool` says whether the server has a tool of a name.
pub(crate) fn functions(config: &McpConfig, has_tool: impl Fn(&str) -> bool) -> Vec<FunctionInfo> {
    let cursor = json!({ "cursor": { "type": "string", "description": "`next_cursor` of the page before" } });
    let uri = json!({ "uri": { "type": "string" } });
    let prompt = json!({
        "name": { "type": "string" },
        "arguments": { "type": "object", "additionalProperties": { "type": "string" } },
    });
    let offered = [
        (config.resources, LIST_RESOURCES, "Lists what can be read of this server", cursor.clone(), &[][..]),
        (config.resources, READ_RESOURCE, "Reads a resource", uri, &["uri"][..]),
        (config.prompts, LIST_PROMPTS, "Lists prompts that this server has written, with their arguments", cursor, &[]),
        (config.prompts, GET_PROMPT, "Gets a prompt, filled in", prompt, &["name"]),
    ];
    let offered = offered.into_iter().filter(|(is_on, name, ..)| *is_on && !has_tool(name));
    offered
        .map(|(_, name, about, properties, required)| {
            FunctionInfo::of(name, about, effect(config, name), properties, required)
        })
        .collect()
}

/// Reading counts as an effect like any other call, unless the operator declares otherwise.
fn effect(config: &McpConfig, name: &str) -> EffectClass {
    if config.read_only.iter().any(|one| one == name) { EffectClass::ReadOnly } else { EffectClass::Acts }
}

impl Offer {
    /// The call as one of these functions; none if it is one of the server's tools, or unknown.
    pub(crate) fn of(
        call: &ToolCall,
        config: &McpConfig,
        has_tool: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, ToolError> {
        if has_tool(&call.function) {
            return Ok(None);
        }
        Ok(match call.function.as_str() {
            LIST_RESOURCES if config.resources => Some(Self::ListResources(call.read()?)),
            READ_RESOURCE if config.resources => Some(Self::ReadResource(call.read()?)),
            LIST_PROMPTS if config.prompts => Some(Self::ListPrompts(call.read()?)),
            GET_PROMPT if config.prompts => Some(Self::GetPrompt(call.read()?)),
            _ => None,
        })
    }

    /// Asks the server.
    pub(crate) async fn ask(self, peer: &Peer<RoleClient>) -> Result<Value, ServiceError> {
        let page = |Page { cursor }| Some(PaginatedRequestParams::default().with_cursor(cursor));
        Ok(match self {
            Self::ListResources(asked) => {
                let listed = peer.list_resources(page(asked)).await?;
                let resources: Vec<Value> = listed.resources.iter().map(resource_line).collect();
                json!({ "resources": resources, "next_cursor": listed.next_cursor })
            }
            Self::ReadResource(Read { uri }) => {
                let read = peer.read_resource(ReadResourceRequestParams::new(uri)).await?;
                json!({ "contents": read.contents.iter().map(resource).collect::<Vec<_>>() })
            }
            Self::ListPrompts(asked) => {
                let listed = peer.list_prompts(page(asked)).await?;
                let prompts: Vec<Value> = listed.prompts.iter().map(prompt_line).collect();
                json!({ "prompts": prompts, "next_cursor": listed.next_cursor })
            }
            Self::GetPrompt(Get { name, arguments }) => {
                let got = peer.get_prompt(GetPromptRequestParams::new(name).with_arguments(arguments)).await?;
                json!({ "messages": got.messages.iter().map(message).collect::<Vec<_>>() })
            }
        })
    }
}

fn resource_line(one: &Resource) -> Value {
    let about = one.description.as_deref().map(|text| truncate(text, DESCRIPTION_BYTES_MAX));
    json!({ "uri": one.uri, "name": one.name, "media_type": one.mime_type, "description": about })
}

fn prompt_line(one: &Prompt) -> Value {
    let about = one.description.as_deref().map(|text| truncate(text, DESCRIPTION_BYTES_MAX));
    json!({ "name": one.name, "description": about, "arguments": one.arguments })
}

fn message(one: &PromptMessage) -> Value {
    json!({ "role": one.role, "content": part(&one.content) })
}
